/**
 * A store of format 3 goes on: its accounts have both hashes always, and its reverse diffs tell every
 * node whole. It is made here from what the store had at each height.
 */
import fs from "node:fs";
import { afterEach, describe, expect, it } from "@jest/globals";
import { encodeRlp as ethersRlp, Wallet } from "ethers";
import { type Address, parseAddress } from "../../../chain/address.js";
import { heightBytes } from "../../../chain/encoding/height-bytes.js";
import { parseHash32 } from "../../../chain/hex.js";
import { decodeAccount, decodeStoredAccount } from "../../../node/store/account-record.js";
import {
  type Database,
  KEY_SPACE,
  OLDEST_FORMAT_VERSION,
  openDatabase,
  readMeta,
  STORE_FORMAT_VERSION,
  storeKey,
  type StoreWrite,
} from "../../../node/store/database.js";
import { ExecutionChain, testGenesis } from "../../helpers/chains/execution-chain.js";

const wallet = new Wallet(`0x${"45".repeat(32)}`);
const genesis = testGenesis(wallet.address);
const people = [1, 2, 3, 4].map((digit) => parseAddress(`0x${String(digit).repeat(40)}`));
const { signal } = new AbortController();
const EMPTY_ROOT = "56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421";
const EMPTY_CODE = "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470";
/** Keeps what it is called with in slot 0, as its creation does. */
const CREATION = "0x600560005560078060116000396000f360003560005500";

let chain: ExecutionChain;
let nonce = 0;

afterEach(async () => {
  await chain.close();
});

async function mine(payments: readonly { readonly to?: Address; readonly data?: string }[]) {
  const raws = [];
  for (const payment of payments) {
    raws.push(
      await wallet.signTransaction({
        type: 0,
        chainId: 6940,
        nonce: nonce++,
        gasPrice: 25_000_000n,
        gasLimit: 200_000n,
        value: payment.data === undefined ? 7n : 0n,
        ...payment,
      }),
    );
  }
  return chain.mine(raws);
}

type Records = ReadonlyMap<string, Buffer>;

async function recordsOf(database: Database): Promise<Records> {
  const found = new Map<string, Buffer>();
  const range = { from: Buffer.of(0), to: Buffer.alloc(120, 0xff) };
  for await (const [key, value] of database.entries(range)) {
    found.set(key.toString("latin1"), value);
  }
  return found;
}

/** What is proven of all accounts, and of the contract's slot, at every height. */
async function statesOf(contract: Address): Promise<unknown[]> {
  const states = [];
  const slot = parseHash32(`0x${"0".repeat(64)}`);
  for (let height = 0; height <= chain.view.head().height; height++) {
    for (const address of [parseAddress(wallet.address), ...people, contract]) {
      states.push(await chain.view.proof(address, [slot], height, signal));
    }
  }
  return states;
}

/** The writes that make a store of it as format 3 had it. */
function olderWrites(kept: readonly Records[]): StoreWrite[] {
  const now = kept.at(-1) ?? new Map<string, Buffer>();
  const writes: StoreWrite[] = [
    { key: storeKey("meta", Buffer.from("formatVersion")), value: Buffer.from("3") },
  ];
  for (const [name, value] of now) {
    const key = Buffer.from(name, "latin1");
    const isAccount = key[0] === KEY_SPACE.account || key[0] === KEY_SPACE.accountHistory;
    if (isAccount && value.length > 0) writes.push({ key, value: withBothHashes(value) });
    if (key[0] === KEY_SPACE.trieDiffPage) writes.push({ key, value: undefined });
  }
  for (const [height, after] of kept.entries()) {
    const before = kept[height - 1] ?? new Map<string, Buffer>();
    const isNode = (name: string) => name.charCodeAt(0) === KEY_SPACE.trieNode;
    const names = [...new Set([...after.keys(), ...before.keys()])]
      .filter((name) => isNode(name) && before.get(name)?.equals(after.get(name) ?? NONE) !== true)
      .toSorted();
    const told = names.map((name) => {
      return [Buffer.from(name.slice(1), "latin1"), before.get(name) ?? NONE];
    });
    const first = told[0]?.[0];
    if (first === undefined) throw new Error(`block ${height} changed no trie`);
    const at = heightBytes(height);
    const page = storeKey("trieDiffPage", at, Buffer.alloc(4));
    writes.push(
      { key: page, value: rlp(told) },
      { key: storeKey("trieDiff", at), value: rlp([first]) },
    );
  }
  return writes;
}

const NONE = Buffer.alloc(0);

function rlp(item: (Buffer | Buffer[])[]): Buffer {
  return Buffer.from(ethersRlp(item).slice(2), "hex");
}

function withBothHashes(value: Buffer): Buffer {
  const { nonce: count, balanceAtoken, storageRoot, codeHash } = decodeStoredAccount(value);
  const integer = (number: bigint) => {
    const hex = number === 0n ? "" : number.toString(16);
    return Buffer.from(hex.padStart(hex.length + (hex.length % 2), "0"), "hex");
  };
  const hash = (hex: string) => Buffer.from(hex.slice(2), "hex");
  return rlp([integer(count), integer(balanceAtoken), hash(storageRoot), hash(codeHash)]);
}

describe("a store of format 3", () => {
  it("is read, told what it is from then on, and goes on with shorter records", async () => {
    nonce = 0;
    chain = await ExecutionChain.open(genesis);
    const kept = [await recordsOf(chain.stores.database)];
    const created = await mine([{ data: CREATION }]);
    const outcome = created.outcomes[0];
    const contract = parseAddress(outcome?.included === true && outcome.receipt.contractAddress);
    kept.push(await recordsOf(chain.stores.database));
    for (const [index, to] of [...people, ...people].entries()) {
      const data = `0x${String(index + 1).padStart(64, "0")}`;
      await mine([{ to }, { to: contract, data }]);
      kept.push(await recordsOf(chain.stores.database));
    }
    const states = await statesOf(contract);
    await chain.close({ keep: true });

    const database = await openDatabase(chain.folder);
    const writes = olderWrites(kept);
    const both = Buffer.from(`a0${EMPTY_ROOT}a0${EMPTY_CODE}`, "hex");
    const plain = writes.filter(({ value }) => Buffer.from(value ?? NONE).includes(both));
    expect(plain.length).toBeGreaterThan(10);
    await database.write(writes, { durable: true });
    await database.close();

    chain = await ExecutionChain.open(genesis, { folder: chain.folder });
    expect(readMeta(chain.stores.database, "formatVersion")).toBe(String(STORE_FORMAT_VERSION));
    expect(STORE_FORMAT_VERSION).toBeGreaterThan(OLDEST_FORMAT_VERSION);
    expect(await statesOf(contract)).toEqual(states);
    for (const to of people) await mine([{ to }, { to: contract, data: `0x${"00".repeat(32)}` }]);
    const later = await statesOf(contract);
    expect(later.slice(0, states.length)).toEqual(states);
    expect(later.length).toBeGreaterThan(states.length);
  });

  it("has accounts that the strict reading of tries and snapshots refuses when they are short", () => {
    const short = rlp([Buffer.of(1), Buffer.of(2), NONE, NONE]);
    expect(decodeStoredAccount(short)).toEqual(decodeAccount(withBothHashes(short)));
    expect(() => decodeAccount(short)).toThrow(/expected 32 bytes/);
    expect(() => decodeStoredAccount(rlp([NONE, NONE, Buffer.alloc(31), NONE]))).toThrow();
    expect(fs.existsSync(chain.folder)).toBe(false);
  });
});
