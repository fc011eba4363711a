/** Events of modules that code called: found by searches like those of messages, from disk too. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Interface } from "ethers";
import {
  type Address,
  parseAddress,
  toBech32,
  toChecksumAddress,
} from "../../../../chain/address.js";
import { searchTransactions } from "../../../../node/rpc/comet/search/event-search.js";
import { parseQuery } from "../../../../node/rpc/comet/search/query.js";
import type { CometChain } from "../../../../node/rpc/comet/ports.js";
import { executedAt, executedPages } from "../../../../node/rpc/comet/chain-reads.js";
import { transactionEventSteps } from "../../../../chain/abci-event.js";
import { EventStore } from "../../../../node/store/blocks/event-store.js";
import { ExecutionChain } from "../../../helpers/chains/execution-chain.js";
import {
  accountOf,
  NativeChain,
  operatorText,
  published,
  type Sent,
} from "../../../helpers/chains/native-chain.js";
import { compileFixture } from "../../../helpers/contracts/solidity.js";
import { allAtOnce } from "../../../../chain/steps/steps.js";

const TOKEN = 10n ** 18n;
const staking = published("IStaking");
const distribution = published("IDistribution");
const { Staker } = compileFixture("NativeCallers.sol");
if (Staker === undefined) throw new Error("not compiled");
const abi = new Interface(Staker.abi);

let chain: ExecutionChain;
let heights: Record<"delegated" | "moved" | "claimed" | "undone" | "unchanged", number>;
let staker: Address;
let passing: readonly [Address, Address];
/** Has no account: it gets a transaction and no coins. */
const NOBODY = parseAddress(`0x${"7e".repeat(20)}`);

/** Creates a contract that calls the address in its first word with the rest of its input. */
const PASSES_ON = "0x6014600c60003960146000f36020360360205f375f5f602036035f5f5f355af100";

function word(address: Address): string {
  return address.slice(2).padStart(64, "0");
}

beforeAll(async () => {
  const first = await NativeChain.open();
  staker = await first.deploy(Staker.bytecode, { value: 9n * TOKEN });
  const at = async (...sent: readonly Sent[]) =>
    (await first.mine(...sent)).committed.block.header.height;
  const to = (contract: typeof staking, name: string, ...args: unknown[]) => ({
    to: contract.address,
    data: contract.abi.encodeFunctionData(name, args),
  });
  passing = [await first.deploy(PASSES_ON), await first.deploy(PASSES_ON)];
  const passed = (target: Address, input: string) => `0x${word(target)}${input.slice(2)}`;
  const direct = to(distribution, "setWithdrawAddress", passing[1], toBech32(accountOf(4)));
  heights = {
    // A plain transfer before it: places in a page are not those of transactions with events.
    delegated: await at(
      { to: accountOf(4), value: 1n },
      { to: staker, data: abi.encodeFunctionData("stake", [operatorText(0), 3n * TOKEN]) },
    ),
    moved: await at(
      to(staking, "delegate", accountOf(2), operatorText(1), 2n * TOKEN),
      to(staking, "redelegate", accountOf(2), operatorText(1), operatorText(0), TOKEN),
      to(staking, "undelegate", accountOf(2), operatorText(1), TOKEN),
    ),
    claimed: await at(to(distribution, "claimRewards", accountOf(2), 9)),
    undone: await at({
      to: staker,
      data: abi.encodeFunctionData("stakeAndRevert", [operatorText(0), TOKEN]),
    }),
    // Whoever is named in these stays as it was: no coins, no nonce, no storage.
    unchanged: await at(
      { to: passing[0], data: passed(passing[1], passed(distribution.address, direct.data)) },
      { to: NOBODY },
      { to: staker, data: "0xffffffff", value: 1n },
    ),
  };
  await first.chain.close({ keep: true });
  const { genesis, folder } = first.chain;
  chain = await ExecutionChain.open(genesis, { folder });
});

afterAll(() => chain.close());

function comet(): CometChain {
  const { stores, view } = chain;
  const consensus = { height: () => view.head().height };
  return { view, events: new EventStore(stores.database), consensus } as unknown as CometChain;
}

async function search(text: string): Promise<string[]> {
  const found = await searchTransactions(comet(), parseQuery(text), new AbortController().signal);
  return found.map(({ height, index }) => `${height}/${index}`);
}

describe("events of modules that code called", () => {
  it("are found by every attribute of the table", async () => {
    const { delegated, moved, claimed } = heights;
    expect(await search(`delegate.amount='${3n * TOKEN}atoken'`)).toEqual([`${delegated}/1`]);
    expect(await search(`delegate.validator='${operatorText(1)}'`)).toEqual([`${moved}/0`]);
    expect(await search(`delegate.delegator='${toBech32(accountOf(2))}'`)).toEqual([`${moved}/0`]);
    const route = `redelegate.source_validator='${operatorText(1)}'`;
    expect(
      await search(`${route} AND redelegate.destination_validator='${operatorText(0)}'`),
    ).toEqual([`${moved}/1`]);
    expect(await search("unbond.completion_time EXISTS")).toEqual([`${moved}/2`]);
    expect(await search("withdraw_rewards.amount EXISTS AND tx.height > 0")).toContain(
      `${claimed}/0`,
    );
    expect(await search(`message.module='staking' & tx.height=${delegated}`)).toEqual([
      `${delegated}/1`,
    ]);
    expect(await search(`message.module='distribution'`)).toEqual([
      `${claimed}/0`,
      `${heights.unchanged}/0`,
    ]);
  });

  it("are found by accounts that stay as they were", async () => {
    const { unchanged } = heights;
    const [first, second] = passing.map((address) => toBech32(address));
    const at = `tx.height >= ${unchanged - 1}`;
    expect(await search(`message.sender='${second}' AND ${at}`)).toEqual([`${unchanged}/0`]);
    expect(await search(`message.sender='${first}' AND ${at}`)).toEqual([]);
    const recipient = (address: Address) => `ethereum_tx.recipient='${toChecksumAddress(address)}'`;
    expect(await search(`${recipient(passing[0])} AND ${at}`)).toEqual([`${unchanged}/0`]);
    expect(await search(`${recipient(NOBODY)} AND ${at}`)).toEqual([`${unchanged}/1`]);
    const failed = `ethereum_tx.ethereumTxFailed EXISTS AND tx.height=${unchanged}`;
    expect(await search(failed)).toEqual([`${unchanged}/2`]);
    // Transactions that failed, too.
    expect(await search(`${recipient(staker)} AND ${at}`)).toEqual([
      `${heights.undone}/0`,
      `${unchanged}/2`,
    ]);
  });

  it("are not there where the frame was undone", async () => {
    expect(await search(`delegate.delegator EXISTS AND tx.height=${heights.undone}`)).toEqual([]);
  });

  it("are the same one by one and page by page", async () => {
    for (const height of Object.values(heights)) {
      const pages = [...executedPages(chain.view, height)].flatMap((page) => page ?? []);
      for (const executed of pages) {
        const one = await executedAt(comet(), { height, index: executed.index });
        expect([height, allAtOnce(transactionEventSteps(one))]).toEqual([
          height,
          allAtOnce(transactionEventSteps(executed)),
        ]);
      }
    }
  });
});
