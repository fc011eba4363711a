/**
 * What a node passes on of a batch that it did not judge as a whole: others, with another head or other
 * prices, must find nothing in it for which they would turn away the node that passed it on.
 */
import { afterEach, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { Wallet } from "ethers";
import { parseAddress, toBech32 } from "../../../chain/address.js";
import { ChainError } from "../../../chain/errors.js";
import { decodeTransaction, recoverSender } from "../../../chain/transaction.js";
import type { PoolRules } from "../../../node/mempool/admission/admission.js";
import { TransactionGossip } from "../../../node/p2p/gossip/transaction-gossip.js";
import type { NodeId } from "../../../node/p2p/node-key.js";
import { decodeTransactions, encodeTransactions } from "../../../node/p2p/peers/peer-codec.js";
import { signWithCosmJs } from "../../helpers/cosmos/cosmjs.js";
import { until } from "../../helpers/until.js";
import { freeOfCharge } from "../../integration/p2p/fakes.js";
import { account, createFixture, transfer } from "./support.js";

const MNEMONIC = "test test test test test test test test test test test junk";
const liar = "aa".repeat(20) as NodeId;
const good = transfer(account(1), 0, { priceAtoken: 1_000n });

/** A node on the network, as far as transactions go. */
async function open(rules: Partial<PoolRules>) {
  const made = await createFixture({ rules });
  const published: Uint8Array[] = [];
  const gossip = new TransactionGossip({
    pool: made.pool,
    publish: (bytes) => published.push(bytes),
    report: () => undefined,
    load: { ...freeOfCharge, mayServe: () => true, served: () => undefined },
    clock: { nowMs: () => 0, monotonicMs: () => 0 },
  });
  made.bus.on("pendingTransactions", (list) => gossip.onAdmitted(list));
  const told = () => published.flatMap((bytes) => decodeTransactions(bytes));
  return { pool: made.pool, gossip, published, told };
}

let stopping = new AbortController();

afterEach(() => {
  stopping.abort(new Error("test over"));
  stopping = new AbortController();
});

/** Lets a node publish until the test is over. */
function run({ gossip }: { readonly gossip: TransactionGossip }): void {
  gossip.run(stopping.signal).catch(() => undefined);
}

/** What the second node says of the first, which has passed on what a liar sent it. */
async function passedOn(
  forged: Uint8Array,
  rules: { readonly first: Partial<PoolRules>; readonly second: Partial<PoolRules> },
) {
  const [first, second] = [await open(rules.first), await open(rules.second)];
  const batch = encodeTransactions([forged, good.raw]);
  const verdict = await first.gossip.onGossip(batch, liar);
  const heard = [...first.published, ...(verdict === "relay" ? [batch] : [])];
  const verdicts: string[] = [];
  for (const bytes of heard) verdicts.push(await second.gossip.onGossip(bytes, liar));
  return { verdict, verdicts, status: second.pool.status(good.hash).status };
}

/** A transfer that pays little, and that nobody signed. */
function forgedTransfer(priceAtoken: bigint): Uint8Array {
  const raw = Uint8Array.from(transfer(account(2), 0, { priceAtoken }).raw);
  // The last byte of r, which s follows: of half of all numbers there is no point.
  const at = raw.length - 34;
  for (let value = 0; value < 256; value++) {
    raw[at] = value;
    try {
      recoverSender(decodeTransaction(raw));
    } catch (error) {
      if (error instanceof ChainError) return raw;
      throw error;
    }
  }
  throw new Error("every signature is somebody's");
}

const alone = { verdict: "used", verdicts: ["relay"], status: "pending" };

describe("what goes out beside a transaction that was refused before its signature was looked at", () => {
  let timed: Uint8Array;
  let free: Uint8Array;

  beforeAll(() => {
    const fromAddress = toBech32(parseAddress(Wallet.fromPhrase(MNEMONIC).address));
    const toAddress = toBech32(parseAddress(`0x${"77".repeat(20)}`));
    const amount = [{ denom: "atoken", amount: "7" }];
    const typeUrl = "/cosmos.bank.v1beta1.MsgSend";
    const messages = [{ typeUrl, value: { fromAddress, toAddress, amount } }];
    const forged = { messages, chainId: "chain_6941-1", gas: 70_000 };
    const fee = [{ denom: "atoken", amount: "7000000" }];
    const raws = signWithCosmJs(MNEMONIC, [
      { ...forged, fee, timeoutHeight: 5 },
      { ...forged, fee },
    ]).map(({ raw }) => raw);
    [timed = new Uint8Array(0), free = new Uint8Array(0)] = raws;
  });

  it("has nothing for a node that is behind to hold against this one", async () => {
    const rules = { first: { headHeight: () => 9 }, second: { headHeight: () => 3 } };
    expect(await passedOn(timed, rules)).toEqual(alone);
  });

  it("has nothing for a node that asks for lower fees", async () => {
    const price = { minGasPrice: { numerator: 101n, denominator: 1n } };
    expect(await passedOn(free, { first: price, second: {} })).toEqual(alone);
  });

  it("has nothing for a node that takes cheaper transfers", async () => {
    const rules = { first: { minGasPriceAtoken: 100n }, second: {} };
    expect(await passedOn(forgedTransfer(10n), rules)).toEqual(alone);
  });

  it("is passed on as it came where all of it was judged", async () => {
    const [first, second] = [await open({}), await open({})];
    const known = transfer(account(3), 0);
    await first.pool.submit([known.raw], "peer");
    const batch = encodeTransactions([known.raw, good.raw]);
    expect(await first.gossip.onGossip(batch, liar)).toBe("relay");
    expect(first.published).toEqual([]);
    expect(await second.gossip.onGossip(batch, liar)).toBe("relay");
  });
});

describe("what waits behind a nonce that is missing", () => {
  it("goes no further before it is executable, and then does", async () => {
    const node = await open({});
    run(node);
    const [first, second, third] = [0, 1, 2].map((nonce) => transfer(account(4), nonce).raw);
    const gapped = [second, third].filter((raw) => raw !== undefined);
    expect(await node.gossip.onGossip(encodeTransactions(gapped), liar)).toBe("drop");
    // Beside what can be executed it is left out.
    const [other, far] = [transfer(account(5), 0).raw, transfer(account(4), 9).raw];
    for (const mixed of [
      [...gapped, good.raw],
      [far, other],
    ]) {
      expect(await node.gossip.onGossip(encodeTransactions(mixed), liar)).toBe("used");
    }
    expect(node.told()).toEqual([good.raw, other]);
    expect(await node.gossip.onGossip(encodeTransactions([first ?? far]), liar)).toBe("relay");
    await until(() => node.told().length === 4, { timeoutMs: 5_000 });
    expect(node.told().slice(2)).toEqual(gapped);
  });
});

describe("what a block made executable, while a node catches up", () => {
  it("does not go out where the next block has it", async () => {
    const made = await open({});
    const gapped = transfer(account(7), 1);
    await made.gossip.onGossip(encodeTransactions([gapped.raw]), liar);
    const status = jest.spyOn(made.pool, "status");
    status.mockImplementation((hash) =>
      hash === gapped.hash ? { status: "included", height: 2, index: 0 } : { status: "pending" },
    );
    made.gossip.onAdmitted([
      { tx: gapped, from: account(7).address },
      { tx: good, from: account(1).address },
    ]);
    run(made);
    await until(() => made.published.length > 0, { timeoutMs: 5_000 });
    expect(made.told()).toEqual([good.raw]);
  });
});

describe("what a client sends while a peer's copy of it is being judged", () => {
  it("goes out from here, as the peer's copy goes no further", async () => {
    const node = await open({});
    run(node);
    const own = transfer(account(6), 0);
    const sent = node.pool.submit([own.raw]);
    expect(await node.gossip.onGossip(encodeTransactions([own.raw]), liar)).toBe("drop");
    expect(await sent).toEqual([own.hash]);
    await until(() => node.told().length === 1, { timeoutMs: 5_000 });
  });
});
