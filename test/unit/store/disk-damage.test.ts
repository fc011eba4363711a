/** Damage on disk is named and believed by nobody: one flipped bit in any kind of record. */
import fs from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { addressToBytes, parseAddress } from "../../../chain/address.js";
import {
  type Database,
  KEY_SPACE,
  openDatabase,
  StoreError,
  storeKey,
} from "../../../node/store/database.js";
import { ExecutionChain, testGenesis } from "../../helpers/chains/execution-chain.js";
import { putRaw, type RawRecord, rawRecords, withFlippedBit } from "../../helpers/raw-level.js";

const wallet = new Wallet(`0x${"44".repeat(32)}`);
const faucet = parseAddress(wallet.address);
const genesis = testGenesis(wallet.address);
const payee = parseAddress(`0x${"6".repeat(40)}`);

function transfer(nonce: number): Promise<string> {
  return wallet.signTransaction({
    type: 0,
    chainId: 6940,
    nonce,
    gasPrice: 25_000_000n,
    gasLimit: 21_000n,
    to: payee,
    value: 1n,
  });
}

let folder: string;
/** The store as it was before the newest block. */
let earlier: readonly [Buffer, Buffer][];

beforeEach(async () => {
  const chain = await ExecutionChain.open(genesis);
  ({ folder } = chain);
  const { database } = chain.stores;
  for (let nonce = 0; nonce < 3; nonce++) {
    earlier = await entriesOf(database);
    await chain.mine([await transfer(nonce)]);
  }
  // What this chain has none of: any bytes do, nobody decodes them here.
  const written = new Set((await entriesOf(database)).map(([key]) => key[0]));
  const missing = Object.values(KEY_SPACE).filter((prefix) => !written.has(prefix));
  const writes = missing.map((prefix) => ({ key: Buffer.of(prefix, 7), value: Buffer.of(1, 2) }));
  await database.write(writes, { durable: true });
  await chain.close({ keep: true });
});

afterEach(() => fs.rmSync(folder, { recursive: true, force: true }));

async function entriesOf(database: Database): Promise<[Buffer, Buffer][]> {
  const found: [Buffer, Buffer][] = [];
  const range = { from: Buffer.of(0), to: Buffer.alloc(80, 0xff) };
  for await (const entry of database.entries(range)) found.push(entry);
  return found;
}

/** What reading says of each way to a record. */
async function readFaults(key: Buffer): Promise<{ faults: unknown[]; told: StoreError[] }> {
  const told: StoreError[] = [];
  const database = await openDatabase(folder, { onDamage: (error) => told.push(error) });
  const faults: unknown[] = [];
  const snapshot = database.snapshot();
  for (const read of [
    () => database.get(key),
    () => database.get(key, snapshot),
    () => entriesOf(database),
  ]) {
    try {
      await read();
      faults.push(undefined);
    } catch (error) {
      faults.push(error);
    }
  }
  await snapshot.close();
  await database.close();
  return { faults, told };
}

describe("a flipped bit", () => {
  it("is named with folder, key space and remedy, in a record of every space", async () => {
    const records = await rawRecords(folder);
    for (const [space, prefix] of Object.entries(KEY_SPACE)) {
      const record = records.find(
        ({ key }) => key[0] === prefix && key.toString("latin1", 1) !== "formatVersion",
      );
      if (record === undefined) throw new Error(`no record of ${space}`);
      const bit = (record.stored.length * 8) >> 1;
      await putRaw(folder, record.key, withFlippedBit(record.stored, bit));
      const { faults, told } = await readFaults(record.key);
      for (const fault of faults) {
        expect(fault).toBeInstanceOf(StoreError);
        expect(fault).toMatchObject({ code: "STORE_CORRUPT" });
        expect(String(fault)).toContain(folder);
        expect(String(fault)).toContain(`a record of ${space}, key 0x`);
        expect(String(fault)).toContain("move this folder away and the node syncs again");
        expect(String(fault)).toContain("a chain with a single validator has no other copy");
        expect(String(fault)).not.toContain("delete");
        expect(String(fault)).toContain("priv_validator_state.json");
      }
      expect([space, told.length]).toEqual([space, 1]);
      await putRaw(folder, record.key, record.stored);
    }
    expect(await readFaults(Buffer.of(2))).toMatchObject({
      faults: [undefined, undefined, undefined],
    });
  });

  it("is seen wherever it is in a record", async () => {
    const { key, stored } = await accountOf(faucet);
    for (let bit = 0; bit < stored.length * 8; bit += 41) {
      await putRaw(folder, key, withFlippedBit(stored, bit));
      const { faults } = await readFaults(key);
      const unseen = faults.filter((fault) => fault === undefined).length;
      expect([bit, unseen]).toEqual([bit, 0]);
    }
  });

  it("in the balance that a transaction spends gets into no block", async () => {
    const { key, stored } = await accountOf(faucet);
    await putRaw(folder, key, withFlippedBit(stored, 100));
    const chain = await ExecutionChain.open(genesis, { folder });
    await expect(chain.mine([await transfer(3)])).rejects.toMatchObject({ code: "STORE_CORRUPT" });
    expect(chain.view.head().height).toBe(3);
    await chain.close({ keep: true });
  });

  it("in the record of the format makes the node refuse the store", async () => {
    const key = storeKey("meta", Buffer.from("formatVersion"));
    for (const [text, code] of [
      ["7", "STORE_NEWER"],
      ["2", "STORE_OLDER"],
      ["#", "STORE_CORRUPT"],
      [undefined, "STORE_CORRUPT"],
    ] as const) {
      await putRaw(folder, key, text === undefined ? undefined : Buffer.from(text));
      await expect(ExecutionChain.open(genesis, { folder })).rejects.toMatchObject({ code });
    }
  });
});

describe("a value under another key", () => {
  it("is damage, although it was written as it is", async () => {
    const [from, to] = [await accountOf(faucet), await accountOf(payee)];
    await putRaw(folder, to.key, from.stored);
    const { faults } = await readFaults(to.key);
    expect(faults).toEqual(Array.from({ length: 3 }, () => expect.any(StoreError)));
  });
});

describe("records that are whole, but not the newest, or not there", () => {
  /** The chain goes on with a payment to the account; what stops it, and who was told. */
  async function fault(): Promise<{ error: unknown; told: number }> {
    const told: StoreError[] = [];
    const chain = await ExecutionChain.open(genesis, {
      folder,
      onDamage: (error) => told.push(error),
    });
    const error = await chain.mine([await transfer(3)]).catch((cause: unknown) => cause);
    expect(chain.view.head().height).toBe(3);
    await chain.close({ keep: true });
    return { error, told: told.length };
  }

  it("an account that is hidden is not taken for a new one, whose balance would be gone", async () => {
    const { key } = await accountOf(payee);
    await putRaw(folder, key, undefined);
    const { error, told } = await fault();
    expect(error).toMatchObject({ code: "STORE_CORRUPT" });
    expect(String(error)).toMatch(/flat state and trie differ in the accounts, key 0x/);
    expect(told).toBe(1);
  });

  it("a trie node of an earlier block is not the one that its parent names", async () => {
    const database = await openDatabase(folder);
    // What level leaves when it drops the batch of block 3 from its log, of inner nodes.
    const inner = earlier.filter(
      ([key]) => key[0] === KEY_SPACE.trieNode && key[1] === 0xff && key.length > 2,
    );
    expect(inner.some(([key, node]) => !database.get(key)?.equals(node))).toBe(true);
    const writes = inner.map(([key, value]) => ({ key, value }));
    await database.write(writes, { durable: true });
    await database.close();
    const { error, told } = await fault();
    expect(error).toMatchObject({ code: "STORE_CORRUPT" });
    expect(String(error)).toMatch(/trieNode of the accounts, path 0x.*its parent names/);
    expect(told).toBe(1);
  });

  it("a trie node that is gone is missed", async () => {
    const records = await rawRecords(folder);
    const nodes = records.filter(({ key }) => key[0] === KEY_SPACE.trieNode && key[1] === 0xff);
    for (const { key } of nodes.filter((one) => one.key.length > 2)) {
      await putRaw(folder, key, undefined);
    }
    expect((await fault()).error).toMatchObject({ code: "STORE_CORRUPT" });
  });
});

describe("a store of the format before checksums", () => {
  it("is refused with the remedy, before anything of it is read", async () => {
    for (const { key, stored } of await rawRecords(folder)) {
      const isFormat = key.toString("latin1", 1) === "formatVersion";
      await putRaw(folder, key, isFormat ? Buffer.from("2") : stored.subarray(0, -4));
    }
    await expect(ExecutionChain.open(genesis, { folder })).rejects.toMatchObject({
      code: "STORE_OLDER",
      message: expect.stringMatching(/start the older program, or move the folder away/),
    });
  });
});

async function accountOf(address: typeof faucet): Promise<RawRecord> {
  const key = storeKey("account", addressToBytes(address));
  const record = (await rawRecords(folder)).find((one) => one.key.equals(key));
  if (record === undefined) throw new Error("no such account");
  return record;
}
