/** The pool over its journal as the node's store keeps it, with transactions of both kinds. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { parseAddress, toBech32 } from "../../../chain/address.js";
import { present } from "../../../chain/errors.js";
import { sdkTransactionHash } from "../../../chain/consensus/sdk-transaction.js";
import { sha256Hex } from "../../../chain/hashes.js";
import { type Hash32, parseHexBytes } from "../../../chain/hex.js";
import { decodeTransaction } from "../../../chain/transaction.js";
import { Mempool } from "../../../node/mempool/mempool.js";
import { type Database, openDatabase, storeKey } from "../../../node/store/database.js";
import type { PoolLimits } from "../../../node/mempool/pool-limits.js";
import { PoolStore } from "../../../node/store/pool-store.js";
import { EventBus } from "../../../node/view/event-bus.js";
import { COSMOS_RULES } from "../../helpers/chains/cosmos-rules.js";
import { signWithCosmJs } from "../../helpers/cosmos/cosmjs.js";
import { CHAIN_ID, FakeState } from "./support.js";

const MNEMONIC = "test test test test test test test test test test test junk";
const owner = Wallet.fromPhrase(MNEMONIC);
const address = parseAddress(owner.address);
const receiver = parseAddress(`0x${"77".repeat(20)}`);

const send = {
  typeUrl: "/cosmos.bank.v1beta1.MsgSend",
  value: {
    fromAddress: toBech32(address),
    toAddress: toBech32(receiver),
    amount: [{ denom: "atoken", amount: "7" }],
  },
};
const common = { messages: [send], chainId: "chain_6940-1", gas: 70_000 };
const fee = [{ denom: "atoken", amount: "7000000" }];
const [signed] = signWithCosmJs(MNEMONIC, [{ ...common, fee, sequence: 0 }]);
const cosmos = present(signed, "nothing was signed").raw;

async function evmTransfer(nonce: number, gasPrice = 100n) {
  const raw = await owner.signTransaction({
    type: 0,
    chainId: CHAIN_ID,
    nonce,
    gasPrice,
    gasLimit: 21_000n,
    to: receiver,
    value: 1n,
  });
  return decodeTransaction(parseHexBytes(raw));
}

describe("the pool over the journal of the store", () => {
  let folder: string;
  let database: Database;
  const mined = new Set<Hash32>();

  beforeEach(async () => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-journal-"));
    database = await openDatabase(folder);
    mined.clear();
  });

  afterEach(async () => {
    await database.close();
    fs.rmSync(folder, { recursive: true, force: true });
  });

  /** A pool as after a restart: nothing is left but what the disk has. */
  function open(
    state = new FakeState(),
    oldestHeight = 1,
    limits?: Partial<PoolLimits>,
  ): Promise<Mempool> {
    const clock = { nowMs: () => 1_700_000_000_000, monotonicMs: () => 0 };
    const throws = (error: unknown) => {
      throw error;
    };
    return Mempool.open({
      state,
      journal: new PoolStore(database, (hash) => mined.has(hash)),
      bus: new EventBus(throws),
      clock,
      rules: {
        chainId: CHAIN_ID,
        ...COSMOS_RULES,
        minGasPriceAtoken: 1n,
        maxTransactionGas: 30_000_000n,
      },
      locate: (hash) => (mined.has(hash) ? { height: 1, index: 0, blockHash: hash } : undefined),
      oldestHeight: () => oldestHeight,
      haltReason: () => undefined,
      onJournalFault: throws,
      ...(limits === undefined ? {} : { limits }),
    });
  }

  it("has after a restart what was pending, transactions of both kinds", async () => {
    const pool = await open();
    const transfer = await evmTransfer(1);
    const hashes = [sha256Hex(cosmos), transfer.hash];
    expect(await pool.submit([cosmos, transfer.raw])).toEqual(hashes);
    const again = await open();
    expect(hashes.map((hash) => again.status(hash))).toEqual([
      { status: "pending" },
      { status: "pending" },
    ]);
  });

  it("gives out no number that a record has, though what had it was mined", async () => {
    const [first, waiting, next] = [
      await evmTransfer(0),
      await evmTransfer(1),
      await evmTransfer(2),
    ];
    const store = new PoolStore(database, (hash) => mined.has(hash));
    const times = { from: address, receivedAtMs: 1_700_000_000_000 };
    const entries = [
      { hash: first.hash, raw: first.raw, ...times, sequence: 7 },
      { hash: waiting.hash, raw: waiting.raw, ...times, sequence: 6 },
    ];
    await store.append(entries);
    mined.add(first.hash);
    const state = new FakeState();
    state.nonces.set(address, 1n);
    const pool = await open(state);
    expect(await pool.submit([next.raw])).toEqual([next.hash]);
    // As behind a kill: nothing is left but what the disk has.
    const again = await open(state);
    for (const { hash } of [waiting, next]) {
      expect(again.status(hash)).toEqual({ status: "pending" });
    }
  });

  it("holds no more after a start than it may, and keeps what pays most", async () => {
    const pool = await open();
    const transfers = await Promise.all([0, 1, 2, 3].map((nonce) => evmTransfer(nonce)));
    await pool.submit(transfers.map(({ raw }) => raw));
    const smaller = await open(new FakeState(), 1, { totalCount: 3 });
    expect(smaller.counts().pending).toBe(3);
    expect(transfers.map(({ hash }) => smaller.status(hash).status)).toEqual([
      "pending",
      "pending",
      "pending",
      "dropped",
    ]);
  });

  it("does not call a transaction dropped that was mined in a block which is pruned", async () => {
    const pool = await open();
    const [paid, waiting] = [await evmTransfer(0), await evmTransfer(1)];
    await pool.submit([paid.raw, waiting.raw]);
    // Their record stays for the one that waits; the block with the other one, and its place, are deleted.
    const state = new FakeState();
    state.nonces.set(address, 1n);
    const pruned = await open(state, 500);
    expect(pruned.status(paid.hash)).toEqual({ status: "unknown" });
    expect(pruned.status(waiting.hash)).toEqual({ status: "pending" });
    await pruned.submit([(await evmTransfer(2)).raw]);
    expect((await open(state, 500)).status(paid.hash)).toEqual({ status: "unknown" });
  });

  it("says of one whose nonce another has used that it was dropped, where it has all blocks", async () => {
    const pool = await open();
    const [passed, waiting] = [await evmTransfer(0), await evmTransfer(1)];
    await pool.submit([passed.raw, waiting.raw]);
    const state = new FakeState();
    state.nonces.set(address, 1n);
    expect((await open(state)).status(passed.hash)).toEqual({
      status: "dropped",
      reason: "nonce too low: nonce 0 was used by another transaction",
    });
  });

  it("tells of what became of an EVM transaction by the hash of consensus, too", async () => {
    const pool = await open();
    const [first, outbid] = [await evmTransfer(0), await evmTransfer(1)];
    const by = await evmTransfer(1, 200n);
    await pool.submit([first.raw, outbid.raw]);
    await pool.submit([by.raw]);
    await pool.submit([(await evmTransfer(2)).raw]);
    const used = new FakeState();
    used.nonces.set(address, 1n);
    const again = await open(used);
    const statuses = (from: Mempool, tx: typeof first) =>
      [tx.hash, sdkTransactionHash(tx, address)].map((hash) => from.status(hash));
    const replaced = { status: "replaced", by: by.hash };
    expect(statuses(again, outbid)).toEqual([replaced, replaced]);
    const reason = "nonce too low: nonce 0 was used by another transaction";
    const passed = { status: "dropped", reason };
    expect(statuses(again, first)).toEqual([passed, passed]);
    await again.submit([(await evmTransfer(3)).raw]);
    const third = await open(used);
    expect([statuses(third, outbid), statuses(third, first)]).toEqual([
      [replaced, replaced],
      [passed, passed],
    ]);
  });

  it("keeps on the disk little more than what waits, whatever came with it", async () => {
    const pool = await open();
    const other = Wallet.createRandom();
    const sign = async (
      wallet: Pick<Wallet, "signTransaction">,
      nonce: number,
      sizeBytes: number,
    ) =>
      parseHexBytes(
        await wallet.signTransaction({
          type: 0,
          chainId: CHAIN_ID,
          nonce,
          gasPrice: sizeBytes === 0 ? 200n : 100n,
          gasLimit: 3_000_000n,
          to: receiver,
          data: `0x${"00".repeat(sizeBytes)}`,
        }),
      );
    // Behind a gap: nobody has paid for any of them, and the small one may wait for hours.
    const waiting = await sign(owner, 7, 0);
    const large = [await sign(other, 5, 60_000), await sign(other, 6, 10_000)];
    const answers = await pool.submit([large[0] ?? waiting, waiting, large[1] ?? waiting]);
    expect(answers.filter((answer) => answer instanceof Error)).toEqual([]);
    const replacements = [await sign(other, 5, 0), await sign(other, 6, 0)];
    for (const one of replacements) await pool.submit([one]);
    await pool.close();
    let journalBytes = 0;
    const range = { from: storeKey("pool"), to: storeKey("pool", Buffer.alloc(33, 0xff)) };
    for await (const [, value] of database.entries(range)) journalBytes += value.length;
    expect(journalBytes).toBeLessThan(12_000);
    const hashes = [waiting, ...replacements].map((raw) => decodeTransaction(raw).hash);
    const again = await open();
    expect(hashes.map((hash) => again.status(hash).status)).toEqual(hashes.map(() => "queued"));
    expect(again.counts()).toEqual({ pending: 0, queued: 3 });
    await again.close();
  });

  it("does not bring back what was mined or dropped, of either kind", async () => {
    const pool = await open();
    const transfer = await evmTransfer(1);
    await pool.submit([cosmos, transfer.raw]);
    mined.add(sha256Hex(cosmos));
    const state = new FakeState();
    state.nonces.set(address, 1n);
    const second = await open(state);
    expect(second.counts()).toEqual({ pending: 1, queued: 0 });
    mined.clear();
    const third = await open();
    third.drop(sha256Hex(cosmos), "for a test");
    await third.submit([(await evmTransfer(2)).raw]);
    expect((await open()).status(sha256Hex(cosmos))).toEqual({
      status: "dropped",
      reason: "for a test",
    });
  });
});
