/**
 * Every way in which a chain with stake gives coins to an account, on deposit addresses: what somebody pays is
 * credited, what the chain pays for stake, votes and by its parameters' decisions waits for a person, and
 * nothing is missing from the books.
 */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { HDNodeWallet, Interface, Mnemonic } from "ethers";
import { type Address, parseAddress, toBech32 } from "../../../chain/address.js";
import { collectEvidence } from "../../../deposit-watcher/api/evidence.js";
import { listDeposits, type StoredDeposit } from "../../../ledger/deposits/deposit-queries.js";
import {
  accountOf,
  nativeGenesis,
  operatorText,
  published,
  wallets,
} from "../../helpers/chains/native-chain.js";
import { signWithCosmJs } from "../../helpers/cosmos/cosmjs.js";
import { depositKey, type Message, TokenBench } from "../tokens/token-bench.js";

const TOKEN = 10n ** 18n;
const { signal } = new AbortController();
const { address: GOV } = published("IGov");

/** Signs with CosmJS. */
const PHRASE = "legal winner thank year wave sausage worth useful legal winner thank yellow";
const PAYER = parseAddress(
  HDNodeWallet.fromMnemonic(Mnemonic.fromPhrase(PHRASE), "m/44'/60'/0'/0/0").address.toLowerCase(),
);

let bench: TokenBench;
let alice: Address;
let bob: Address;
let carol: Address;

const coins = (amount: bigint) => [{ denom: "atoken", amount: amount.toString() }];

const wallet = (index: number) => {
  const found = wallets[index];
  if (found === undefined) throw new Error(`no wallet ${index}`);
  return found;
};

/** A call of one of the chain's contracts. */
function native(
  from: Message["from"],
  name: Parameters<typeof published>[0],
  method: string,
  ...args: readonly unknown[]
): Message {
  const { abi, address } = published(name);
  const data = new Interface(abi.fragments).encodeFunctionData(method, [...args]);
  return { ...(from === undefined ? {} : { from }), to: address, data };
}

/** Mines what must succeed. */
async function done(messages: readonly Message[], cosmos: readonly Uint8Array[] = []) {
  const hashes = await bench.mine(messages, [], cosmos);
  const { height } = bench.chain.chain.view.head();
  const receipts = await bench.node.getTransactionReceipts(hashes, { signal });
  expect(receipts.map((receipt) => receipt?.status)).toEqual(messages.map(() => 1));
  return height;
}

let sequence = 0;

function signed(typeUrl: string, value: unknown): Uint8Array {
  const [answer] = signWithCosmJs(PHRASE, [
    {
      messages: [{ typeUrl, value }],
      chainId: bench.chain.chain.genesis.cosmosChainId,
      sequence,
      gas: 300_000,
      fee: coins(300_000n * 25_000_000n),
    },
  ]);
  sequence += 1;
  if (answer === undefined) throw new Error("not signed");
  return answer.raw;
}

/** What the books have of an address, in the chain's order. */
async function booked(address: Address): Promise<StoredDeposit[]> {
  await bench.mine([]);
  await bench.mine([]);
  await bench.caughtUp();
  const found = await listDeposits(bench.database, { address, afterSeq: 0, limit: 100 });
  return found.toSorted((one, other) => one.height - other.height || one.opIndex - other.opIndex);
}

const shown = (deposits: readonly StoredDeposit[]) =>
  deposits.map(({ status, amountUnits }) => [status, amountUnits]);

/** Each of them says by the chain what the books say. */
async function expectProven(deposits: readonly StoredDeposit[]): Promise<(string | undefined)[]> {
  const types = [];
  for (const deposit of deposits) {
    const { node, source, database } = bench;
    const parts = { node, source, database, contractOf: () => undefined };
    const { chain } = await collectEvidence(parts, deposit, { signal });
    expect([deposit.id, chain?.agrees]).toEqual([deposit.id, true]);
    types.push(chain?.operation?.type);
  }
  return types;
}

beforeAll(async () => {
  const genesis = nativeGenesis({
    "staking.unbonding_time": "20s",
    "distribution.community_tax": "0.5",
    "gov.min_deposit": "1000",
    "gov.voting_period": "20s",
  });
  bench = await TokenBench.open(undefined, [], genesis);
  [alice, bob, carol] = [
    await bench.register("alice"),
    await bench.register("bob"),
    await bench.register("carol"),
  ];
  await bench.watch([]);
  await bench.mine([{ from: wallet(2), to: PAYER, value: 100n * TOKEN }]);
});

afterAll(() => bench.close());

it("credits what Cosmos messages pay, each output by itself", async () => {
  const from = toBech32(PAYER);
  const outputs = [
    { address: toBech32(alice), coins: coins(5n) },
    { address: toBech32(bob), coins: coins(7n) },
    { address: toBech32(alice), coins: coins(5n) },
  ];
  const inputs = [{ address: from, coins: coins(17n) }];
  await done(
    [],
    [
      signed("/cosmos.bank.v1beta1.MsgSend", {
        fromAddress: from,
        toAddress: toBech32(alice),
        amount: coins(3n),
      }),
      signed("/cosmos.bank.v1beta1.MsgMultiSend", { inputs, outputs }),
    ],
  );
  const deposits = [await booked(alice), await booked(bob)];
  expect(deposits.map(shown)).toEqual([
    [
      ["credited", 3n],
      ["credited", 5n],
      ["credited", 5n],
    ],
    [["credited", 7n]],
  ]);
  expect(await expectProven(deposits.flat())).toEqual(["CALL", "CALL", "CALL", "CALL"]);
});

it("holds rewards and commissions that somebody has sent to a deposit address", async () => {
  const before = { alice: await booked(alice), bob: await booked(bob) };
  await done([
    native(wallet(2), "IStaking", "delegate", accountOf(2), operatorText(0), 50n * TOKEN),
    native(wallet(2), "IDistribution", "setWithdrawAddress", accountOf(2), toBech32(alice)),
    native(wallet(0), "IDistribution", "setWithdrawAddress", accountOf(0), toBech32(bob)),
  ]);
  await done([]);
  await done([
    native(wallet(2), "IDistribution", "withdrawDelegatorRewards", accountOf(2), operatorText(0)),
    native(wallet(0), "IDistribution", "withdrawValidatorCommission", operatorText(0)),
  ]);
  const rewards = (await booked(alice)).slice(before.alice.length);
  const commissions = (await booked(bob)).slice(before.bob.length);
  for (const deposits of [rewards, commissions]) {
    expect(deposits.map(({ status }) => status)).toEqual(["suspense"]);
    expect(await expectProven(deposits)).toEqual(["CLAIM"]);
  }
});

it("holds what governance pays, and what comes back to a deposit address by its own key", async () => {
  const before = await booked(bob);
  const key = depositKey(2);
  expect(parseAddress(key.address.toLowerCase())).toBe(carol);
  await done([{ from: wallet(3), to: carol, value: 30n * TOKEN }]);
  const messages = [
    {
      "@type": "/cosmos.distribution.v1beta1.MsgCommunityPoolSpend",
      authority: toBech32(GOV),
      recipient: toBech32(bob),
      amount: coins(11n),
    },
    {
      "@type": "/cosmos.bank.v1beta1.MsgSend",
      from_address: toBech32(GOV),
      to_address: toBech32(bob),
      amount: coins(13n),
    },
  ];
  const words = { title: "T", summary: "S", metadata: "words" };
  const proposal = Buffer.from(JSON.stringify({ ...words, messages }));
  const deposit = [{ denom: "atoken", amount: 1_000n }];
  await done([
    // Its account takes no coins, but those of a contract that ends.
    { from: wallet(3), data: `0x73${GOV.slice(2)}ff`, value: 13n },
    native(wallet(3), "IDistribution", "fundCommunityPool", accountOf(3), deposit),
    native(key, "IGov", "submitProposal", carol, proposal, deposit),
    native(wallet(0), "IGov", "vote", accountOf(0), 1n, 1, ""),
    native(key, "IStaking", "delegate", carol, operatorText(1), 20n * TOKEN),
    native(key, "IStaking", "undelegate", carol, operatorText(1), 20n * TOKEN),
  ]);
  for (let block = 0; block < 12; block += 1) await done([]);
  const paid = (await booked(bob)).slice(before.length);
  expect(shown(paid)).toEqual([
    ["suspense", 11n],
    ["credited", 13n],
  ]);
  expect(await expectProven(paid)).toEqual(["CLAIM", "CALL"]);
  const own = await booked(carol);
  expect(shown(own)).toEqual([
    ["credited", 30n * TOKEN],
    ["suspense", 1_000n],
    ["suspense", 20n * TOKEN],
  ]);
  expect(await expectProven(own)).toEqual(["CALL", "GOV_REFUND", "UNBOND_COMPLETE"]);
});

it("has every coin of them in the books, and names what a deposit address paid by its own key", async () => {
  for (const address of [alice, bob]) {
    const deposits = await listDeposits(bench.database, { address, afterSeq: 0, limit: 100 });
    const sum = deposits.reduce((before, { amountUnits }) => before + amountUnits, 0n);
    expect(sum).toBe(await bench.node.getBalance(address, "latest", { signal }));
  }
  const { lines, internalBreaks } = await bench.reconcile();
  expect(internalBreaks).toEqual([]);
  const [found, ...others] = lines.flatMap(({ breaks }) => breaks);
  expect(others).toEqual([]);
  expect(found?.address).toBe(carol);
  const sent = await bench.node.getTransactionCount(carol, "latest", { signal });
  expect(found?.causes).toHaveLength(Number(sent));
  const told = found?.causes.reduce((sum, { chainUnits }) => sum + chainUnits, 0n);
  expect(told).toBe(found?.differenceUnits);
});
