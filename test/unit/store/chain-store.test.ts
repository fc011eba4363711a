/** What is on disk: restart, proofs at heights, refused stores, the pool's journal. */
import fs, { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { createMPTFromProof, verifyMerkleProof } from "@ethereumjs/mpt";
import { Wallet } from "ethers";
import { parseAddress } from "../../../chain/address.js";
import { keccak256 } from "../../../chain/hashes.js";
import { type Hash32, hexToBytes, parseHash32, parseHexBytes } from "../../../chain/hex.js";
import { decodeRlp, rlpBytes, rlpInteger, rlpList } from "../../../chain/encoding/rlp.js";
import { decodeTransaction } from "../../../chain/transaction.js";
import { encodeGenesis, loadGenesis, parseGenesis } from "../../../node/settings/genesis.js";
import { PoolStore } from "../../../node/store/pool-store.js";
import {
  OLDEST_FORMAT_VERSION,
  openDatabase,
  STORE_FORMAT_VERSION,
} from "../../../node/store/database.js";
import { ExecutionChain, testGenesis } from "../../helpers/chains/execution-chain.js";

const wallet = new Wallet(`0x${"33".repeat(32)}`);
const faucet = parseAddress(wallet.address);
const payee = (n: number) => parseAddress(`0x${n.toString(16).padStart(40, "5")}`);

function transfer(nonce: number, to: string, value = 1n): Promise<string> {
  const gasPrice = 25_000_000n;
  return wallet.signTransaction({
    type: 0,
    chainId: 6940,
    nonce,
    gasPrice,
    gasLimit: 21_000n,
    to,
    value,
  });
}

describe("the node's store", () => {
  const open: ExecutionChain[] = [];
  afterEach(async () => {
    for (const chain of open.splice(0)) await chain.close();
  });

  it("continues after a restart with the same blocks, state and supply", async () => {
    const genesis = testGenesis(wallet.address);
    const first = await ExecutionChain.open(genesis);
    for (let n = 0; n < 5; n++) await first.mine([await transfer(n, payee(n))]);
    const before = first.view.block(3);
    const supply = first.view.supply(5);
    await first.close({ keep: true });
    const second = await ExecutionChain.open(genesis, { folder: first.folder });
    open.push(second);
    expect(second.view.head().height).toBe(5);
    expect(second.view.supply(5)).toEqual(supply);
    expect(second.view.block(3)?.block).toEqual(before?.block);
    expect(second.view.block(3)?.receipts).toEqual(before?.receipts);
    expect(second.view.block(3)?.journal).toEqual(before?.journal);
    await second.mine([await transfer(5, payee(9))]);
    expect((await second.view.account(faucet, 6))?.nonce).toBe(6n);
    const hash = second.view.block(2)?.block.transactions[0]?.tx.hash ?? ("0x" as Hash32);
    expect(second.view.locate(hash)).toMatchObject({ height: 2, index: 0 });
    const heights: number[] = [];
    for await (const entry of second.view.accountJournal(payee(2), 0, 6))
      heights.push(entry.height);
    expect(heights).toEqual([3]);
  });

  it("proves accounts at the head and at earlier heights to @ethereumjs/mpt", async () => {
    const chain = await ExecutionChain.open(testGenesis(wallet.address));
    open.push(chain);
    for (let n = 0; n < 20; n++) {
      await chain.mine([
        await transfer(2 * n, payee(1), 7n),
        await transfer(2 * n + 1, payee(50 + n)),
      ]);
    }
    for (const height of [1, 10, 19, 20]) {
      const root = hexToBytes(chain.view.block(height)?.block.header.stateRoot ?? "0x");
      const { accountProof } = await chain.view.proof(
        payee(1),
        [],
        height,
        new AbortController().signal,
      );
      const nodes = accountProof.map((node) => parseHexBytes(node));
      const verified = await createMPTFromProof(nodes, { root });
      expect(verified).toBeDefined();
      const key = keccak256(hexToBytes(payee(1)));
      const value = await verifyMerkleProof(key, nodes);
      const [nonce, balance] = rlpList(decodeRlp(value ?? new Uint8Array()));
      expect([height, rlpInteger(nonce), rlpInteger(balance)]).toEqual([
        height,
        0n,
        BigInt(height) * 7n,
      ]);
      const absent = await chain.view.proof(payee(99), [], height, new AbortController().signal);
      const nothing = await verifyMerkleProof(
        keccak256(hexToBytes(payee(99))),
        absent.accountProof.map((node) => parseHexBytes(node)),
      );
      expect(nothing).toBeNull();
    }
  });

  it("proves the FeeCollector's storage", async () => {
    const chain = await ExecutionChain.open(testGenesis(wallet.address));
    open.push(chain);
    const { feeCollector, treasury } = chain.genesis.params;
    const slot = parseHash32(`0x${"00".repeat(32)}`);
    const { account, storageProof } = await chain.view.proof(
      feeCollector,
      [slot],
      0,
      new AbortController().signal,
    );
    expect(storageProof[0]?.value).toBe(BigInt(treasury));
    const nodes = (storageProof[0]?.proof ?? []).map((node) => parseHexBytes(node));
    expect(
      parseHash32(`0x${Buffer.from(keccak256(nodes[0] ?? Buffer.of())).toString("hex")}`),
    ).toBe(account.storageRoot);
    const value = await verifyMerkleProof(keccak256(hexToBytes(slot)), nodes);
    expect(
      BigInt(`0x${Buffer.from(rlpBytes(decodeRlp(value ?? Buffer.of()))).toString("hex")}`),
    ).toBe(BigInt(treasury));
  });

  it("refuses the store of another genesis, of a newer and of an older program", async () => {
    const genesis = testGenesis(wallet.address);
    const chain = await ExecutionChain.open(genesis);
    await chain.close({ keep: true });
    const other = { ...genesis, genesisTimeMs: genesis.genesisTimeMs + 1 };
    await expect(ExecutionChain.open(other, { folder: chain.folder })).rejects.toMatchObject({
      code: "STORE_FOREIGN",
    });
    const key = Buffer.concat([Buffer.of(1), Buffer.from("formatVersion")]);
    for (const [version, code] of [
      [STORE_FORMAT_VERSION + 1, "STORE_NEWER"],
      [OLDEST_FORMAT_VERSION - 1, "STORE_OLDER"],
    ] as const) {
      const database = await openDatabase(chain.folder);
      const value = Buffer.from(String(version));
      await database.write([{ key, value }], { durable: true });
      await database.close();
      await expect(ExecutionChain.open(genesis, { folder: chain.folder })).rejects.toMatchObject({
        code,
        // Who moved it away there would have nobody to sync from.
        message: expect.stringContaining("a chain with a single validator has no other copy"),
      });
    }
    fs.rmSync(chain.folder, { recursive: true });
  });

  it("refuses to open twice", async () => {
    const genesis = testGenesis(wallet.address);
    const chain = await ExecutionChain.open(genesis);
    open.push(chain);
    await expect(ExecutionChain.open(genesis, { folder: chain.folder })).rejects.toMatchObject({
      code: "STORE_LOCKED",
    });
  });
});

describe("the genesis", () => {
  it("reads what it writes, and its hash commits to every parameter", async () => {
    const genesis = testGenesis(wallet.address);
    expect(parseGenesis(encodeGenesis(genesis))).toEqual(genesis);
    const { createGenesisBlock } = await import("../../../node/blocks/genesis-block.js");
    const changed = { ...genesis, params: { ...genesis.params, maxBytes: 2_000 } };
    expect(createGenesisBlock(genesis).committed.block.hash).not.toBe(
      createGenesisBlock(changed).committed.block.hash,
    );
    expect(() => parseGenesis("{}")).toThrow(expect.objectContaining({ code: "GENESIS_INVALID" }));
    const [validator] = genesis.validators;
    if (validator === undefined) throw new Error("no validator");
    const mixedUp = encodeGenesis({ ...genesis, validators: [{ ...validator, address: faucet }] });
    expect(() => parseGenesis(mixedUp)).toThrow(/has the key of/);
  });

  it("names no account twice, and has nothing that is more than a word holds", () => {
    const account = `0x${"da".repeat(20)}`;
    const slot = `0x${"cd".repeat(32)}`;
    const read = (alloc: Record<string, unknown>) => {
      const json = JSON.parse(encodeGenesis(testGenesis(wallet.address)));
      return parseGenesis(JSON.stringify({ ...json, alloc: { ...json.alloc, ...alloc } }));
    };
    const balance = (amountAtoken: bigint) => ({ balanceAtoken: amountAtoken.toString() });
    const upper = (hex: string) => `0x${hex.slice(2).toUpperCase()}`;
    const twice = { [account]: balance(7n), [upper(account)]: balance(5n) };
    expect(() => read(twice)).toThrow(`genesis is not valid: alloc has ${account} twice`);
    const storage = { [slot]: "1", [upper(slot)]: "2" };
    const slotTwice = { [account]: { ...balance(7n), storage } };
    expect(() => read(slotTwice)).toThrow(`alloc ${account} has slot ${slot} twice`);
    const longWord = { [account]: { ...balance(7n), storage: { [slot]: `${2n ** 256n}` } } };
    expect(() => read(longWord)).toThrow(/alloc .* slot .* is more than 2\^256 - 1/);
    const half = balance(2n ** 254n);
    expect(() => read({ [account]: half, [`0x${"db".repeat(20)}`]: half })).toThrow(
      "balances of alloc are more than 2^255 - 1 atoken together",
    );
    expect(read({ [account]: half }).alloc.size).toBe(testGenesis(wallet.address).alloc.size + 1);
  });
});

describe("a genesis with a field that is written twice", () => {
  const text = encodeGenesis(testGenesis(wallet.address));
  const account = `0x${"da".repeat(20)}`;
  const entry = (amountAtoken: bigint) => `"${account}":{"balanceAtoken":"${amountAtoken}"}`;
  const alloc = /"alloc":\s*\{/;

  it("is refused, as JSON would lose the first", () => {
    const once = text.replace(alloc, (start) => `${start}${entry(7n)},`);
    expect(parseGenesis(once).alloc.get(parseAddress(account))?.balanceAtoken).toBe(7n);
    const twice = text.replace(alloc, (start) => `${start}${entry(7n)},${entry(5n)},`);
    const odd = text.replace(/"network"/, '"network":"mainnet","network"');
    for (const wrong of [twice, odd]) {
      expect(() => parseGenesis(wrong)).toThrow("genesis is not valid: a field is written twice");
    }
  });

  it("is refused by the name of its file", () => {
    const folder = mkdtempSync(join(tmpdir(), "causeway-genesis-"));
    const file = join(folder, "genesis.json");
    writeFileSync(
      file,
      text.replace(alloc, (start) => `${start}${entry(7n)},${entry(7n)},`),
    );
    expect(() => loadGenesis(file)).toThrow(`${file}: genesis is not valid: a field`);
    rmSync(folder, { recursive: true });
  });
});

describe("the pool's journal", () => {
  it("keeps a transaction that was dropped and sent again beside others", async () => {
    const chain = await ExecutionChain.open(testGenesis(wallet.address));
    const entry = async (nonce: number, sequence: number) => {
      const { raw, hash } = decodeTransaction(parseHexBytes(await transfer(nonce, payee(1))));
      return { hash, raw, from: faucet, receivedAtMs: 1_000, sequence };
    };
    const [x, y, again] = [await entry(0, 0), await entry(1, 1), await entry(0, 2)];
    const store = new PoolStore(chain.stores.database, () => false);
    const load = async () => {
      const left: Hash32[] = [];
      const reopened = new PoolStore(chain.stores.database, () => false);
      for await (const { hash } of reopened.load()) left.push(hash);
      return new Set(left);
    };
    await store.append([x, y]);
    await store.remove([x.hash]);
    expect(await load()).toEqual(new Set([y.hash]));
    await store.append([again]);
    expect(await load()).toEqual(new Set([x.hash, y.hash]));
    await store.remove([x.hash]);
    expect(await load()).toEqual(new Set([y.hash]));
    await store.mined([y.hash]);
    expect(await load()).toEqual(new Set());
    await chain.close();
  });

  it("writes what comes in and what goes for it at once, and neither is forgotten", async () => {
    const chain = await ExecutionChain.open(testGenesis(wallet.address));
    const entry = async (nonce: number, sequence: number) => {
      const { raw, hash } = decodeTransaction(parseHexBytes(await transfer(nonce, payee(1))));
      return { hash, raw, from: faucet, receivedAtMs: 1_000, sequence };
    };
    const [a, b, c] = [await entry(0, 0), await entry(1, 1), await entry(2, 2)];
    const underpriced = { status: "dropped", reason: "underpriced" } as const;
    const store = new PoolStore(chain.stores.database, () => false);
    const load = async () => {
      const left: Hash32[] = [];
      const reopened = new PoolStore(chain.stores.database, () => false);
      for await (const { hash } of reopened.load()) left.push(hash);
      return { left, outcomes: [...reopened.outcomes()] };
    };
    await store.append([a, b]);
    await store.append([c], new Map([[a.hash, underpriced]]));
    expect(await load()).toEqual({ left: [b.hash, c.hash], outcomes: [[a.hash, underpriced]] });
    // A peer's transaction took the place: nothing comes in.
    await store.append([], new Map([[b.hash, underpriced]]));
    const outcomes = [a, b].map(({ hash }) => [hash, underpriced]);
    expect(await load()).toEqual({ left: [c.hash], outcomes });
    await store.append([{ ...a, sequence: 3 }]);
    expect((await load()).left.toSorted()).toEqual([a.hash, c.hash].toSorted());
    await chain.close();
  });

  it("keeps a transaction that was removed before it was ever written, and came again", async () => {
    const chain = await ExecutionChain.open(testGenesis(wallet.address));
    const { raw, hash } = decodeTransaction(parseHexBytes(await transfer(0, payee(1))));
    const store = new PoolStore(chain.stores.database, () => false);
    // As after a write that failed: the pool lets go of what no record holds.
    await store.remove([hash]);
    await store.append([{ hash, raw, from: faucet, receivedAtMs: 1_000, sequence: 0 }]);
    const reopened = new PoolStore(chain.stores.database, () => false);
    const left: Hash32[] = [];
    for await (const entry of reopened.load()) left.push(entry.hash);
    expect(left).toEqual([hash]);
    await chain.close();
  });

  it("knows over restarts what became of removed ones, unless they come back or are mined", async () => {
    const chain = await ExecutionChain.open(testGenesis(wallet.address));
    const entry = async (nonce: number, sequence: number) => {
      const { raw, hash } = decodeTransaction(parseHexBytes(await transfer(nonce, payee(1))));
      return { hash, raw, from: faucet, receivedAtMs: 1_000, sequence };
    };
    const [a, b, c, d] = [
      await entry(0, 0),
      await entry(1, 1),
      await entry(2, 2),
      await entry(3, 3),
    ];
    const replaced = { status: "replaced", by: d.hash } as const;
    const dropped = { status: "dropped", reason: "nonce too low: 5" } as const;
    const open = async (mined: readonly Hash32[] = []) => {
      const store = new PoolStore(chain.stores.database, (hash) => mined.includes(hash));
      for await (const one of store.load()) expect(one.hash).toBe(d.hash);
      return store;
    };
    const store = await open();
    await store.append([a, b, c, d]);
    await store.remove([b.hash], new Map([[b.hash, dropped]]));
    await store.remove([a.hash], new Map([[a.hash, replaced]]));
    await store.remove([c.hash]);
    const expected = [
      [b.hash, dropped],
      [a.hash, replaced],
    ];
    expect([...(await open()).outcomes()]).toEqual(expected);
    // The record goes away, and what is known of its transactions stays, in the same order.
    await store.mined([d.hash]);
    const later = await open();
    expect([...later.outcomes()]).toEqual(expected);
    expect([...(await open([b.hash])).outcomes()]).toEqual([[a.hash, replaced]]);
    await later.append([{ ...a, sequence: 9 }]);
    expect([...later.outcomes().keys()]).not.toContain(a.hash);
    const left: Hash32[] = [];
    const last = new PoolStore(chain.stores.database, () => false);
    for await (const { hash } of last.load()) left.push(hash);
    expect(left).toEqual([a.hash]);
    expect(last.outcomes().has(a.hash)).toBe(false);
    await chain.close();
  });

  it("forgets what was mined or removed and keeps the rest over a restart", async () => {
    const chain = await ExecutionChain.open(testGenesis(wallet.address));
    const entries = await Promise.all(
      [0, 1, 2, 3].map(async (nonce) => {
        const { raw, hash } = decodeTransaction(parseHexBytes(await transfer(nonce, payee(1))));
        return { hash, raw, from: faucet, receivedAtMs: 1_000 + nonce, sequence: nonce };
      }),
    );
    const store = new PoolStore(chain.stores.database, () => false);
    await store.append(entries.slice(0, 3));
    await store.append(entries.slice(3));
    const [a, b, c, d] = entries.map(({ hash }) => hash);
    if (a === undefined || b === undefined || c === undefined || d === undefined) throw new Error();
    await store.remove([b]);
    const load = async (mined: readonly Hash32[]) => {
      const again = new PoolStore(chain.stores.database, (hash) => mined.includes(hash));
      const left: Hash32[] = [];
      for await (const { hash } of again.load()) left.push(hash);
      return left;
    };
    expect(await load([])).toEqual([a, c, d]);
    expect(await load([a])).toEqual([c, d]);
    await store.mined([a, c]);
    expect(await load([])).toEqual([d]);
    // Dropped, sent again and answered: it must be there after a restart.
    const [, , , last] = entries;
    if (last === undefined) throw new Error("no entry");
    await store.remove([d]);
    expect(await load([])).toEqual([]);
    await store.append([{ ...last, sequence: 9 }]);
    expect(await load([])).toEqual([d]);
    await chain.close();
  });
});
