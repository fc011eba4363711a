/** Locked coins: what may be done with them, over whole blocks of both kinds of transactions. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { readFileSync } from "node:fs";
import { Interface, Wallet } from "ethers";
import { parseAddress, toBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import { contractAddressOf } from "../../../chain/evm/contract-address.js";
import { decodeCosmosTransaction } from "../../../chain/cosmos/cosmos-transaction.js";
import { parseHexBytes } from "../../../chain/hex.js";
import { decodeTransaction } from "../../../chain/transaction.js";
import { BlockExecution } from "../../../node/blocks/block-executor.js";
import { spendableAtoken, VestingLocks } from "../../../node/modules/vesting.js";
import { encodeGenesis, type Genesis, parseGenesis } from "../../../node/settings/genesis.js";
import { lockedAt, lockedSupplyAt } from "../../../node/settings/vesting.js";
import { JournaledState } from "../../../node/state/journaled-state.js";
import { commitBlock } from "../../../node/store/block-commit.js";
import { ExecutionChain } from "../../helpers/chains/execution-chain.js";
import { type CosmJsMessage, signWithCosmJs } from "../../helpers/cosmos/cosmjs.js";
import { accountAt, stakedGenesis } from "../../helpers/cosmos/module-state.js";

const MNEMONIC = "test test test test test test test test test test test junk";
const owner = Wallet.fromPhrase(MNEMONIC);
const from = parseAddress(owner.address);
const to = parseAddress(`0x${"77".repeat(20)}`);
const TOKEN = 10n ** 18n;
const PRICE = 25_000_000n;
const START = 1_750_000_000_000;
const FEE = 10_000_000n;

/** 100 TOKEN, 80 of them free bit by bit over 100 seconds, with two validators. */
function genesisOf(vesting: Record<string, unknown>): Genesis {
  const staked = stakedGenesis([40, 60], { "staking.unbonding_time": "4s" });
  const plain = { balanceAtoken: 100n * TOKEN, code: undefined, storage: new Map() };
  const alloc = new Map(staked.alloc).set(from, plain);
  const json = JSON.parse(encodeGenesis({ ...staked, alloc }));
  json.alloc[from].vesting = vesting;
  return parseGenesis(JSON.stringify(json));
}

const continuous = {
  originalAtoken: (80n * TOKEN).toString(),
  startTimeMs: START,
  endTimeMs: START + 100_000,
};

let chain: ExecutionChain;
let nonce = 0;

beforeAll(async () => {
  chain = await ExecutionChain.open(genesisOf(continuous));
});
afterAll(() => chain.close());

const coin = (amount: bigint) => ({ denom: "atoken", amount: amount.toString() });
const bank = (amount: bigint) => ({
  typeUrl: "/cosmos.bank.v1beta1.MsgSend",
  value: { fromAddress: toBech32(from), toAddress: toBech32(to), amount: [coin(amount)] },
});
const staking = (name: string, amount: bigint) => ({
  typeUrl: `/cosmos.staking.v1beta1.${name}`,
  value: {
    delegatorAddress: toBech32(from),
    validatorAddress: toBech32(accountAt(0), VALIDATOR_PREFIX),
    amount: coin(amount),
  },
});

interface EvmCall {
  readonly value: bigint;
  readonly to?: string;
  readonly data?: string;
  readonly gasLimit?: bigint;
}

/** A proposal with a deposit, by the chain's own contract. */
function proposing(depositAtoken: bigint): EvmCall {
  const { abi, address } = JSON.parse(readFileSync("contracts/artifacts/IGov.json", "utf8"));
  const json = Buffer.from(JSON.stringify({ title: "T", summary: "S", metadata: "words" }), "utf8");
  const args = [owner.address, json, [["atoken", depositAtoken]]];
  const data = new Interface(abi).encodeFunctionData("submitProposal", args);
  return { value: 0n, to: address, data, gasLimit: 2_000_000n };
}

/** A block, some seconds later, with at most one transaction; what became of it. */
async function mine(seconds: number, what?: CosmJsMessage | EvmCall) {
  const parent = chain.view.head();
  const parentSupply = chain.stores.blocks.supply(parent.height);
  if (parentSupply === undefined) throw new Error("no supply");
  const { params } = chain.genesis;
  const execution = new BlockExecution(
    {
      chainId: 6940n,
      params,
      state: chain.stores.state.readerAt(parent.height),
      tries: chain.tries,
      blockHash: (height) => chain.stores.blocks.hashOf(height),
      monotonicMs: () => 0,
    },
    { parent, parentSupply, timeMs: parent.timeMs + seconds * 1_000, coinbase: chain.coinbase },
  );
  let outcome: { included: boolean; reason?: string } = { included: true };
  if (what !== undefined && "typeUrl" in what) {
    const asked = { chainId: "chain_6940-1", gas: 400_000, fee: [coin(FEE)], sequence: nonce };
    const [signed] = signWithCosmJs(MNEMONIC, [{ ...asked, messages: [what] }]);
    const tx = decodeCosmosTransaction(signed?.raw ?? new Uint8Array(0));
    outcome = await execution.addCosmos({ tx, from }, params.maxComputeNs);
  } else if (what !== undefined) {
    const fields = { type: 0, chainId: 6940, nonce, gasLimit: 21_000n, gasPrice: PRICE, to };
    const raw = await owner.signTransaction({ ...fields, ...what });
    const tx = decodeTransaction(parseHexBytes(raw));
    outcome = await execution.add({ tx, from }, params.maxComputeNs);
  }
  const executed = await execution.seal();
  await commitBlock(chain.stores, executed);
  chain.stores.state.publish(executed.changes);
  chain.tries.apply(executed.trieWrites);
  const { block } = executed.committed;
  chain.view.moveHead({ height: block.header.height, hash: block.hash, timeMs: block.timeMs });
  if (outcome.included && what !== undefined) nonce += 1;
  const [cosmos] = block.cosmos ?? [];
  return { ...outcome, code: cosmos?.result.code, log: cosmos?.result.log };
}

const balance = async () =>
  (await chain.view.account(from, chain.view.head().height))?.balanceAtoken;
const spendable = () => {
  const { timeMs } = chain.view.head();
  return spendableAtoken(chain.stores.state, chain.genesis.params.locks, { address: from, timeMs });
};

describe("a schedule of genesis", () => {
  it("survives the file, and says what is free when", () => {
    const { params } = chain.genesis;
    expect(parseGenesis(encodeGenesis(chain.genesis))).toEqual(chain.genesis);
    const schedule = params.locks?.get(from);
    if (schedule === undefined) throw new Error("the schedule is missing");
    // x/auth/vesting: original x (now - start) / (end - start) is free.
    expect(lockedAt(schedule, START - 1)).toBe(80n * TOKEN);
    expect(lockedAt(schedule, START + 25_000)).toBe(60n * TOKEN);
    expect(lockedAt(schedule, START + 99_999)).toBe(800_000_000_000_000n);
    expect(lockedAt(schedule, START + 100_000)).toBe(0n);
    const delayed = { ...schedule, startTimeMs: undefined };
    expect(lockedAt(delayed, START + 99_999)).toBe(80n * TOKEN);
    expect(lockedAt(delayed, START + 100_000)).toBe(0n);
    expect(lockedSupplyAt(params.locks, START + 50_000)).toBe(40n * TOKEN);
    expect(lockedSupplyAt(undefined, START)).toBe(0n);
  });

  it("is refused where it cannot be kept", () => {
    const faults: readonly (readonly [object, RegExp])[] = [
      [{ originalAtoken: (101n * TOKEN).toString() }, /more is locked than there is/],
      [{ originalAtoken: "0" }, /nothing is locked/],
      [{ endTimeMs: START }, /ends before it begins/],
      [{ cliff: 1 }, /cliff/],
    ];
    for (const [change, text] of faults) {
      expect(() => genesisOf({ ...continuous, ...change })).toThrow(text);
    }
  });
});

describe("locked coins", () => {
  it("stay: no EVM transfer, no fee and no bank message moves them", async () => {
    // After 10 seconds 8 of the 80 are free: 28 TOKEN may go.
    const fee = 21_000n * PRICE;
    expect(await mine(10, { value: 28n * TOKEN - fee + 1n })).toMatchObject({ included: false });
    expect(await mine(0, { value: 28n * TOKEN - fee })).toMatchObject({ included: true });
    expect(await balance()).toBe(72n * TOKEN);
    expect(spendable()).toBe(0n);
    expect(await mine(0, bank(1n))).toMatchObject({ included: false });
    // A second later 0.8 TOKEN more; what does not cover a message costs its fee only.
    expect(await mine(1, bank(TOKEN))).toMatchObject({
      included: true,
      code: 5,
      log: expect.stringContaining("is smaller than 1000000000000000000atoken"),
    });
    expect(await mine(0, bank(TOKEN / 2n))).toMatchObject({ included: true, code: 0 });
    expect(await balance()).toBe(72n * TOKEN - TOKEN / 2n - 2n * FEE);
  });

  it("are no deposit for a proposal", async () => {
    const had = (await balance()) ?? 0n;
    expect(await mine(0, proposing(TOKEN))).toMatchObject({ receipt: { status: 0 } });
    expect(had - ((await balance()) ?? 0n)).toBeLessThan(2_000_000n * PRICE);
    expect(await mine(0, proposing(TOKEN / 5n))).toMatchObject({ receipt: { status: 1 } });
    const message = {
      typeUrl: "/cosmos.gov.v1beta1.MsgDeposit",
      value: { proposalId: "1n", depositor: toBech32(from), amount: [coin(TOKEN)] },
    };
    expect(await mine(0, message)).toMatchObject({ included: true, code: 5 });
  });

  it("can be delegated, and are locked again when they come back", async () => {
    // At 11 s 71.2 are locked; 0.3 are free.
    const had = (await balance()) ?? 0n;
    expect(await mine(0, staking("MsgDelegate", 70n * TOKEN))).toMatchObject({ code: 0 });
    const left = (await balance()) ?? 0n;
    // Rewards are of this block on: nothing is paid yet.
    expect(left).toBe(had - 70n * TOKEN - FEE);
    const state = new JournaledState(chain.stores.state);
    const locks = new VestingLocks(
      state,
      chain.genesis.params.locks ?? new Map(),
      chain.view.head().timeMs,
    );
    expect(locks.of(from)).toEqual({
      unvestedAtoken: (712n * TOKEN) / 10n,
      delegatedLockedAtoken: 70n * TOKEN,
      delegatedFreeAtoken: 0n,
    });
    expect(spendable()).toBe(left - (12n * TOKEN) / 10n);
    expect(await mine(0, staking("MsgUndelegate", 70n * TOKEN))).toMatchObject({ code: 0 });
    const before = (await balance()) ?? 0n;
    await mine(5);
    expect(await balance()).toBe(before + 70n * TOKEN);
    // At 16 s 67.2 are locked, and none of them is delegated any more.
    expect(spendable()).toBe(before + 70n * TOKEN - (672n * TOKEN) / 10n);
    expect(await mine(0, { value: 60n * TOKEN })).toMatchObject({ included: false });
    await mine(84);
    expect(await mine(0, { value: 60n * TOKEN })).toMatchObject({ included: true });
  });
});

describe("an account with a schedule", () => {
  it("never becomes a contract, which could destroy itself and keep its locked coins", async () => {
    // PUSH20 `to`, SELFDESTRUCT.
    const data = `0x73${to.slice(2)}ff`;
    const made = contractAddressOf(from, 0n);
    const staked = stakedGenesis([40, 60]);
    const plain = { balanceAtoken: 100n * TOKEN, code: undefined, storage: new Map() };
    const alloc = new Map(staked.alloc).set(from, plain).set(made, plain);
    const json = JSON.parse(encodeGenesis({ ...staked, alloc }));
    json.alloc[made].vesting = continuous;
    const other = await ExecutionChain.open(parseGenesis(JSON.stringify(json)));
    try {
      const fields = { type: 0, chainId: 6940, gasLimit: 100_000n, gasPrice: PRICE, data };
      const raw = await owner.signTransaction({ ...fields, nonce: 0 });
      const blocks = [await other.execute([raw]), await other.execute([raw], [], "ethereumjs")].map(
        ({ executed, outcomes }) => ({ executed, outcome: outcomes[0] }),
      );
      for (const { executed, outcome } of blocks) {
        expect(outcome).toMatchObject({ included: true, receipt: { status: 0 } });
        expect(executed.changes.accounts.get(made)).toBeUndefined();
        expect(executed.changes.accounts.get(to)).toBeUndefined();
      }
      const hashes = blocks.map(({ executed }) => executed.committed.block.hash);
      expect(hashes[1]).toBe(hashes[0]);
    } finally {
      await other.close();
    }
  });
});
