/** Pruning on a real store: what stays is as before, what is gone is refused, nothing is left over. */
import fs from "node:fs";
import path from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { createMPTFromProof, verifyMerkleProof } from "@ethereumjs/mpt";
import { Wallet } from "ethers";
import { type Address, parseAddress } from "../../../chain/address.js";
import { keccak256 } from "../../../chain/hashes.js";
import { heightBytes, readHeight } from "../../../chain/encoding/height-bytes.js";
import { type Hash32, hexToBytes, parseHash32, parseHexBytes } from "../../../chain/hex.js";
import { decodeRlp, rlpInteger, rlpList } from "../../../chain/encoding/rlp.js";
import { ConsensusStore } from "../../../node/store/consensus-store.js";
import { KEY_SPACE, type KeySpace, storeKey } from "../../../node/store/database.js";
import { baseWrites } from "../../../node/store/store-base.js";
import { Pruner, type PrunerOptions } from "../../../node/store/pruning/pruner.js";
import { PAGE_TRANSACTIONS } from "../../../node/view/block-pages.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { ExecutionChain, testGenesis } from "../../helpers/chains/execution-chain.js";

const wallet = new Wallet(`0x${"33".repeat(32)}`);
const faucet = parseAddress(wallet.address);
const payee = (n: number) => parseAddress(`0x${n.toString(16).padStart(40, "5")}`);
const PAYEES = 4;
/** SSTORE(0, NUMBER) and LOG1 on each call: storage, receipts with logs, a bloom. */
const CODE = "0x435f55435f5fa100";
const INIT = `0x6008600c60003960086000f3${CODE.slice(2)}`;

/** One pruned store, with what it said before it was pruned. */
class Witness {
  nonce = 0;
  contract: Address | undefined;
  readonly hashes = new Map<number, { block: Hash32; tx: Hash32; sdk: Hash32 }>();

  constructor(public chain: ExecutionChain) {}

  async mine(count: number): Promise<void> {
    for (let n = 0; n < count; n++) await this.mineOne();
  }

  /** One block of so many payments. */
  async minePayments(count: number): Promise<void> {
    const raws: string[] = [];
    for (let n = 0; n < count; n++) {
      raws.push(await this.sign({ to: payee(n % PAYEES), value: 1n, gasLimit: 21_000n }));
    }
    await this.chain.mine(raws);
  }

  private async mineOne(): Promise<void> {
    const raws: string[] = [];
    if (this.contract === undefined) raws.push(await this.sign({ data: INIT, gasLimit: 200_000n }));
    else raws.push(await this.sign({ to: this.contract, gasLimit: 100_000n }));
    raws.push(await this.sign({ to: payee(this.nonce % PAYEES), value: 1n, gasLimit: 21_000n }));
    const { committed, sdkHashes } = await this.chain.mine(raws);
    this.contract ??= committed.receipts[0]?.contractAddress;
    expect(committed.receipts.map(({ status }) => status)).toEqual([1, 1]);
    const [tx] = committed.block.transactions;
    const [sdk] = sdkHashes;
    if (tx === undefined || sdk === undefined) throw new Error("no transaction");
    const { hash } = committed.block;
    this.hashes.set(committed.block.header.height, { block: hash, tx: tx.tx.hash, sdk });
  }

  private sign(fields: { to?: string; value?: bigint; data?: string; gasLimit: bigint }) {
    const nonce = this.nonce++;
    return wallet.signTransaction({
      type: 0,
      chainId: 6940,
      gasPrice: 25_000_000n,
      nonce,
      ...fields,
    });
  }

  /** Balances and a slot after a height, as texts. */
  async stateAt(height: number): Promise<string[]> {
    const { view } = this.chain;
    const accounts = [faucet, ...Array.from({ length: PAYEES }, (_, n) => payee(n))];
    const found: string[] = [];
    for (const address of accounts) {
      const account = await view.account(address, height);
      found.push(`${account?.nonce} ${account?.balanceAtoken}`);
    }
    const slot = parseHash32(`0x${"00".repeat(32)}`);
    if (this.contract !== undefined)
      found.push(`${await view.storageAt(this.contract, slot, height)}`);
    return found;
  }
}

/** Heights that end the keys of a space, ascending. */
async function heightsIn(chain: ExecutionChain, space: KeySpace, at = -8): Promise<number[]> {
  const to = Buffer.alloc(80, 0xff);
  to[0] = KEY_SPACE[space];
  const heights: number[] = [];
  for await (const key of chain.stores.database.keys({ from: storeKey(space), to })) {
    heights.push(readHeight(key, at < 0 ? key.length + at : at));
  }
  return [...new Set(heights)].toSorted((left, right) => left - right);
}

/** Heights that are the values of a space. */
async function valuesIn(chain: ExecutionChain, space: KeySpace): Promise<number[]> {
  const range = { from: storeKey(space), to: storeKey(space, Buffer.alloc(40, 0xff)) };
  const heights = new Set<number>();
  for await (const [, value] of chain.stores.database.entries(range))
    heights.add(readHeight(value, 0));
  return [...heights].toSorted((left, right) => left - right);
}

/** Bytes of the store's files. */
function diskBytes(folder: string): number {
  const sizes = fs.readdirSync(folder).map((name) => fs.statSync(path.join(folder, name)).size);
  return sizes.reduce((sum, sizeBytes) => sum + sizeBytes, 0);
}

function span(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

describe("a pruned store", () => {
  const open: ExecutionChain[] = [];
  afterEach(async () => {
    for (const chain of open.splice(0)) await chain.close();
  });

  async function start(archive: boolean): Promise<Witness> {
    const chain = await ExecutionChain.open(testGenesis(wallet.address), { archive });
    open.push(chain);
    return new Witness(chain);
  }

  async function restart(witness: Witness, archive: boolean): Promise<void> {
    open.splice(open.indexOf(witness.chain), 1);
    await witness.chain.close({ keep: true });
    const { genesis, folder } = witness.chain;
    witness.chain = await ExecutionChain.open(genesis, { folder, archive });
    open.push(witness.chain);
  }

  function prunerOf({ chain }: Witness, options: Partial<PrunerOptions>): Pruner {
    return new Pruner({
      ...chain.stores,
      consensus: new ConsensusStore(chain.stores.database),
      head: () => chain.view.head().height,
      states: undefined,
      retainedFrom: () => 0,
      isPastEvidence: () => true,
      roundMs: 600_000,
      sweepAfterVersions: 1,
      clock: systemClock,
      log: createLogger({ component: "test", level: "silent" }),
      ...options,
    });
  }

  const run = async (pruner: Pruner) =>
    expect(await pruner.round(new AbortController().signal)).toBe(true);

  it("keeps recent states to the last value, and refuses older ones with their proofs", async () => {
    const witness = await start(true);
    await witness.mine(40);
    const before = new Map<number, string[]>();
    for (const height of span(0, 40)) before.set(height, await witness.stateAt(height));
    const states = { keepRecentBlocks: 5, intervalBlocks: 10 };
    await run(prunerOf(witness, { states }));
    const check = async () => {
      const { view } = witness.chain;
      expect(view.oldest()).toEqual({ block: 0, journal: 0, state: 35, proof: 35 });
      for (const height of span(35, 40)) {
        expect(await witness.stateAt(height)).toEqual(before.get(height));
        const root = hexToBytes(view.block(height)?.block.header.stateRoot ?? "0x");
        const { accountProof } = await view.proof(
          payee(1),
          [],
          height,
          new AbortController().signal,
        );
        const nodes = accountProof.map((node) => parseHexBytes(node));
        await createMPTFromProof(nodes, { root });
        const value = await verifyMerkleProof(keccak256(hexToBytes(payee(1))), nodes);
        const balance = rlpInteger(rlpList(decodeRlp(value ?? new Uint8Array()))[1]);
        expect(before.get(height)).toContain(`0 ${balance}`);
      }
      for (const height of [0, 1, 20, 34]) {
        const pruned = { code: "HISTORY_PRUNED" };
        await expect(witness.stateAt(height)).rejects.toMatchObject(pruned);
        await expect(
          view.proof(payee(1), [], height, new AbortController().signal),
        ).rejects.toMatchObject(pruned);
        expect(() => witness.chain.stores.state.readerAt(height)).toThrow("pruned history");
        expect(() => view.accountHeights(faucet, height, 40)).toThrow("pruned history");
        expect(() => view.accountJournal(faucet, height, 40)).not.toThrow();
        expect(view.block(height)?.block.header.height).toBe(height);
      }
      const seen: number[] = [];
      for await (const height of view.accountHeights(faucet, 35, 40)) seen.push(height);
      expect(seen).toEqual(span(35, 40));
    };
    await check();
    // One version of each name at most that is not above the base, and no reverse diff too many.
    expect(await heightsIn(witness.chain, "trieDiff")).toEqual(span(35, 40));
    const to = storeKey("accountHistory", Buffer.alloc(29, 0xff));
    const names = new Map<string, number>();
    for await (const key of witness.chain.stores.database.keys({
      from: storeKey("accountHistory"),
      to,
    })) {
      if (readHeight(key, 21) > 35) continue;
      const name = key.subarray(1, 21).toString("hex");
      names.set(name, (names.get(name) ?? 0) + 1);
    }
    expect(new Set(names.values())).toEqual(new Set([1]));
    expect(names.has(faucet.slice(2))).toBe(true);
    expect((await heightsIn(witness.chain, "storageHistory")).filter((at) => at <= 35)).toEqual([
      0, 35,
    ]);
    await restart(witness, true);
    await check();
    await witness.mine(1);
    expect(await witness.stateAt(40)).toEqual(before.get(40));
  });

  it("looks after states once an interval, not with each block", async () => {
    const witness = await start(true);
    await witness.mine(12);
    const pruner = prunerOf(witness, { states: { keepRecentBlocks: 2, intervalBlocks: 10 } });
    const bases: number[] = [];
    for (let n = 0; n < 20; n++) {
      await run(pruner);
      bases.push(witness.chain.view.oldest().state);
      await witness.mine(1);
    }
    expect(bases).toEqual([...Array(8).fill(10), ...Array(10).fill(18), 28, 28]);
  });

  it("leaves nothing of a pruned block behind, and keeps block 0 and what BLOCKHASH needs", async () => {
    const witness = await start(false);
    await witness.mine(300);
    const supply = witness.chain.view.supply(290);
    const balances = await witness.stateAt(5);
    const fullBytes = diskBytes(witness.chain.folder);
    await run(prunerOf(witness, { retainedFrom: (head) => head - 10, compactAfterBytes: 0 }));
    expect(diskBytes(witness.chain.folder)).toBeLessThan(fullBytes / 2);
    const check = async () => {
      const { chain } = witness;
      const { view } = chain;
      expect(view.oldest()).toMatchObject({ block: 290, journal: 290, state: 0 });
      const kept = [0, ...span(290, 300)];
      for (const space of ["outline", "blockChanges", "bloom", "supply", "event"] as const) {
        expect([space, await heightsIn(chain, space)]).toEqual([space, kept]);
      }
      for (const space of ["hashPage", "transactionPage", "receiptPage", "journalPage"] as const) {
        expect([space, await heightsIn(chain, space, 1)]).toEqual([space, span(290, 300)]);
      }
      for (const space of ["blockHash"] as const)
        expect(await valuesIn(chain, space)).toEqual(kept);
      for (const space of ["transaction", "sdkTransaction"] as const) {
        expect([space, await valuesIn(chain, space)]).toEqual([space, span(290, 300)]);
      }
      expect(await heightsIn(chain, "heightHash")).toEqual([0, ...span(34, 300)]);
      expect(view.genesis().block.header.height).toBe(0);
      expect(view.block(0)?.journal.blockChanges.length).toBeGreaterThan(0);
      expect(view.supply(290)).toEqual(supply);
      for (const height of [1, 100, 289]) {
        const hashes = witness.hashes.get(height);
        if (hashes === undefined) throw new Error("no hashes");
        for (const read of [() => view.block(height), () => view.supply(height)]) {
          expect(read).toThrow("pruned history unavailable");
        }
        expect(view.heightOfHash(hashes.block)).toBeUndefined();
        expect(view.locate(hashes.tx)).toBeUndefined();
        expect(view.locateBySdkHash(hashes.sdk)).toBeUndefined();
        expect(() => view.blooms(height, 300)).toThrow("pruned history unavailable");
        expect(() => view.accountJournal(faucet, height, 300)).toThrow("pruned history");
      }
      expect(view.blockHash(34)).toBe(witness.hashes.get(34)?.block);
      expect(() => view.blockHash(33)).toThrow("pruned history unavailable");
      // Balances of every height stay: they are what an exchange needs.
      expect(await witness.stateAt(5)).toEqual(balances);
      expect(view.locate(witness.hashes.get(290)?.tx ?? ("0x" as Hash32))?.height).toBe(290);
    };
    await check();
    await restart(witness, false);
    await check();
    await witness.mine(1);
    expect(witness.chain.view.head().height).toBe(301);
  });

  it("stops at a height whose evidence still counts", async () => {
    const witness = await start(false);
    await witness.mine(20);
    const isPastEvidence = (height: number) => height < 7;
    await run(prunerOf(witness, { retainedFrom: (head) => head - 5, isPastEvidence }));
    expect(witness.chain.view.oldest().block).toBe(7);
  });

  it("goes on where a round ended, and never holds more than its time", async () => {
    const witness = await start(false);
    await witness.mine(30);
    const pruner = prunerOf(witness, { retainedFrom: (head) => head - 3, roundMs: 0 });
    const { signal } = new AbortController();
    let rounds = 1;
    const bases = new Set<number>();
    while (!(await pruner.round(signal))) {
      rounds += 1;
      bases.add(witness.chain.view.oldest().block);
    }
    expect(rounds).toBeGreaterThanOrEqual(26);
    expect(bases.size).toBeGreaterThanOrEqual(26);
    expect(witness.chain.view.oldest().block).toBe(27);
  });

  it("forgets reverse diffs of an archive that became a usual node, and says what can be proven", async () => {
    const witness = await start(true);
    await witness.mine(8);
    await restart(witness, false);
    await witness.chain.stores.base.advance({ proofBase: 6 }, []);
    await run(prunerOf(witness, {}));
    expect(await heightsIn(witness.chain, "trieDiff")).toEqual([6, 7, 8]);
    expect(await heightsIn(witness.chain, "trieDiffPage", 1)).toEqual([6, 7, 8]);
    await restart(witness, true);
    expect(witness.chain.view.oldest().proof).toBe(6);
    await expect(
      witness.chain.view.proof(faucet, [], 5, new AbortController().signal),
    ).rejects.toMatchObject({
      code: "HISTORY_PRUNED",
    });
    expect(
      (await witness.chain.view.proof(faucet, [], 6, new AbortController().signal)).accountProof
        .length,
    ).toBeGreaterThan(0);
  });

  it("forgets them, too, where the first block comes after the first look", async () => {
    const witness = await start(true);
    await witness.mine(8);
    await restart(witness, false);
    const pruner = prunerOf(witness, {});
    await run(pruner);
    expect(await heightsIn(witness.chain, "trieDiff")).toEqual(span(0, 8));
    // As the next block does, when it is longer ago than the window that the archive began.
    witness.chain.stores.base.raiseProofs(6);
    await run(pruner);
    expect(await heightsIn(witness.chain, "trieDiff")).toEqual([6, 7, 8]);
    expect(await heightsIn(witness.chain, "trieDiffPage", 1)).toEqual([6, 7, 8]);
    // That block may never have been written.
    await restart(witness, true);
    expect(witness.chain.view.oldest().proof).toBe(6);
  });

  it("ends what is read of a block's records when they are taken away, and calls it no damage", async () => {
    const witness = await start(true);
    await witness.minePayments(PAGE_TRANSACTIONS + 2);
    await witness.mine(3);
    const { view } = witness.chain;
    expect([...view.records(1).pages]).toHaveLength(2);
    const pages = view.records(1).pages[Symbol.iterator]();
    expect(pages.next().value).toHaveLength(4);
    await run(prunerOf(witness, { retainedFrom: () => 3 }));
    const pruned = expect.objectContaining({ code: "HISTORY_PRUNED" });
    expect(() => pages.next()).toThrow(pruned);
    expect(() => view.records(1)).toThrow(pruned);
  });

  it("says so of whatever is read of a block while it is taken away", async () => {
    const witness = await start(true);
    await witness.minePayments(PAGE_TRANSACTIONS + 2);
    await witness.mine(3);
    // What is decoded in memory is read to its end.
    await restart(witness, true);
    const { view, stores } = witness.chain;
    const pages = view.pages(1)[Symbol.iterator]();
    const [first, second] = [pages.next().value, [...view.pages(1)][1]];
    if (first === undefined || second === undefined) throw new Error("no pages");
    expect(first.hashes().length).toBeGreaterThan(1);
    let pruning: Promise<void> | undefined;
    const loading = stores.blocks.load(1, () => {
      pruning ??= run(prunerOf(witness, { retainedFrom: () => 3 }));
      return pruning;
    });
    const pruned = expect.objectContaining({ code: "HISTORY_PRUNED" });
    await expect(loading).rejects.toEqual(pruned);
    expect(() => first.hashes()).toThrow(pruned);
    expect(() => second.receipts()).toThrow(pruned);
    expect(() => pages.next().value?.hashes()).toThrow(pruned);
  });

  it("says after a restart, too, that nothing is proven of states that it has not", async () => {
    const witness = await start(true);
    await witness.mine(8);
    // As the first block above a restored height writes them: its own window reaches further back.
    const bases = baseWrites({ historyBase: 7, proofBase: 3 });
    await witness.chain.stores.database.write(bases, { durable: true });
    await restart(witness, false);
    expect(witness.chain.view.oldest()).toMatchObject({ state: 7, proof: 7 });
    await run(prunerOf(witness, {}));
    expect(await heightsIn(witness.chain, "trieDiff")).toEqual([7, 8]);
    const { accountProof } = await witness.chain.view.proof(
      faucet,
      [],
      7,
      new AbortController().signal,
    );
    expect(accountProof.length).toBeGreaterThan(0);
  });

  it("of a home from before the bases knows by its reverse diffs what can be proven", async () => {
    const witness = await start(true);
    await witness.mine(8);
    const { database } = witness.chain.stores;
    const gone = span(0, 4).map((height) => storeKey("trieDiff", heightBytes(height)));
    await database.write(
      gone.map((key) => ({ key, value: undefined })),
      { durable: true },
    );
    await restart(witness, true);
    expect(witness.chain.view.oldest().proof).toBe(4);
  });
});
