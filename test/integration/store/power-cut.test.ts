/**
 * What was promised to be on disk is there after a power cut, which keeps nothing that was not
 * forced: remove one fsync of these paths and a test fails.
 *
 * @jest-environment ./test/helpers/faults/forced-files-environment.mjs
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { VOTE_TYPE, type VoteContent } from "../../../chain/consensus/vote.js";
import { parseHash32, parseHexBytes, ZERO_HASH } from "../../../chain/hex.js";
import { decodeTransaction, recoverSender } from "../../../chain/transaction.js";
import { Wal } from "../../../node/consensus/log/wal.js";
import { PrivateValidator } from "../../../node/consensus/signing/private-validator.js";
import { SnapshotFolder } from "../../../node/statesync/snapshot/snapshot-folder.js";
import {
  restoredHeight,
  restoreSnapshot,
} from "../../../node/statesync/snapshot/snapshot-restore.js";
import { StateSyncFolders } from "../../../node/statesync/state-sync-folders.js";
import { ConsensusStore } from "../../../node/store/consensus-store.js";
import { openDatabase } from "../../../node/store/database.js";
import { PoolStore } from "../../../node/store/pool-store.js";
import { createFileOnce, replaceFile, SECRET_MODE } from "../../../runtime/files/durable-file.js";
import { ensureFolder } from "../../../runtime/files/folder.js";
import { ExecutionChain, testGenesis } from "../../helpers/chains/execution-chain.js";
import {
  quietLog,
  readFiles,
  roomyDisk,
  SnapshotChain,
} from "../../helpers/chains/snapshot-chain.js";
import { SignedChain } from "../../helpers/chains/signed-chain.js";
import { validatorGenesis, writeValidatorHome } from "../../helpers/chains/validator-node.js";
import { installPowerCut, PowerCut } from "../../helpers/faults/power-cut.js";

let uninstall: () => void;
let base: string;
let root: string;
let cut: PowerCut;
let left: string;

beforeAll(() => {
  uninstall = installPowerCut();
});

afterAll(() => uninstall());

beforeEach(() => {
  base = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "causeway-power-"));
  root = path.join(base, "before");
  left = path.join(base, "after");
  fs.mkdirSync(root);
});

afterEach(() => {
  cut.end();
  fs.rmSync(base, { recursive: true, force: true });
});

function watch(): void {
  cut = PowerCut.watch(root);
}

/** What the disk holds when the power is back. */
async function after(...names: string[]): Promise<string> {
  await cut.leave(left);
  return path.join(left, ...names);
}

/** Hashes of what the pool would begin with. */
async function pooledHashes(database: Awaited<ReturnType<typeof openDatabase>>): Promise<string[]> {
  const found: string[] = [];
  for await (const { hash } of new PoolStore(database, () => false).load()) found.push(hash);
  return found;
}

describe("the power cut of these tests", () => {
  it("keeps what was forced and nothing else", async () => {
    fs.mkdirSync(path.join(root, "old"));
    fs.writeFileSync(path.join(root, "old", "kept"), "1");
    watch();
    fs.writeFileSync(path.join(root, "old", "kept"), "2");
    fs.writeFileSync(path.join(root, "old", "new"), "3");
    const forced = path.join(root, "forced");
    fs.writeFileSync(forced, "4");
    const handle = await fs.promises.open(forced, "r+");
    await handle.sync();
    await handle.close();
    await after();
    expect(fs.readFileSync(path.join(left, "old", "kept"), "utf8")).toBe("1");
    expect(fs.existsSync(path.join(left, "old", "new"))).toBe(false);
    expect(fs.existsSync(path.join(left, "forced"))).toBe(false);
  });
});

describe("a file", () => {
  it("that was replaced has its new content, under its name", async () => {
    fs.writeFileSync(path.join(root, "file"), "old");
    watch();
    await replaceFile(path.join(root, "file"), "new", SECRET_MODE);
    expect(fs.readFileSync(await after("file"), "utf8")).toBe("new");
  });

  it("that was created once is there, whole, in folders that are there", async () => {
    watch();
    const folder = path.join(root, "a", "b");
    ensureFolder(folder);
    expect(createFileOnce(path.join(folder, "key"), "secret", SECRET_MODE)).toBe(true);
    expect(fs.readFileSync(await after("a", "b", "key"), "utf8")).toBe("secret");
  });
});

describe("a validator", () => {
  const chainId = "chain_6940-1";
  const vote = (name: string): VoteContent => {
    const hash = parseHash32(`0x${name.repeat(64)}`);
    return {
      type: VOTE_TYPE.prevote,
      height: 5,
      round: 0,
      blockId: { hash, parts: { total: 1, hash } },
      timeNs: 7n,
    };
  };
  const open = (home: string) =>
    PrivateValidator.open({
      keyFile: path.join(home, "config", "priv_validator_key.json"),
      stateFile: path.join(home, "data", "priv_validator_state.json"),
      chainId,
    });

  it("remembers what it signed, and signs nothing else in its place", async () => {
    writeValidatorHome(root, Buffer.alloc(32, 5));
    watch();
    const signed = await (await open(root)).signVote(vote("a"));
    const again = await open(await after());
    await expect(again.signVote(vote("b"))).rejects.toMatchObject({ code: "SIGNATURE_REFUSED" });
    expect(await again.signVote(vote("a"))).toEqual(signed);
  });

  it("finds in its log what was synced, and the end of a height", async () => {
    watch();
    const { wal } = await Wal.open(path.join(root, "data", "cs.wal"), 4);
    await wal.endHeight(4);
    await wal.append({ type: "timeout", height: 5, round: 0, step: 1 });
    await wal.sync();
    const { wal: again, tail } = await Wal.open(await after("data", "cs.wal"), 4);
    expect(tail).toMatchObject({ endHeight: 4, records: [{ type: "timeout", height: 5 }] });
    await Promise.all([wal.close(), again.close()]);
  });

  it("finds the end of a height in its log, without another record behind it", async () => {
    watch();
    const { wal } = await Wal.open(path.join(root, "cs.wal"), 4);
    await wal.endHeight(4);
    const { wal: again, tail } = await Wal.open(await after("cs.wal"), 4);
    expect(tail).toMatchObject({ endHeight: 4, records: [], hasGap: false });
    await Promise.all([wal.close(), again.close()]);
  });

  it("finds its log whole where it was begun anew, and where it was mended", async () => {
    const folder = path.join(root, "cs.wal");
    fs.mkdirSync(folder);
    fs.writeFileSync(path.join(folder, "wal"), Buffer.alloc(17 * 1_048_576, 0xee));
    watch();
    const { wal, tail } = await Wal.open(folder, 4);
    expect(tail.hasGap).toBe(true);
    await wal.endHeight(4);
    await wal.append({ type: "timeout", height: 5, round: 0, step: 1 });
    await wal.sync();
    const opened = await Wal.open(await after("cs.wal"), 4);
    expect(opened.tail).toMatchObject({ endHeight: 4, hasGap: false, records: [{ height: 5 }] });
    expect(opened.keptFile).toBeUndefined();
    await Promise.all([wal.close(), opened.wal.close()]);
  });
});

describe("the store", () => {
  const wallet = new Wallet(`0x${"55".repeat(32)}`);
  const raw = (nonce: number) =>
    wallet.signTransaction({
      type: 0,
      chainId: 6940,
      nonce,
      gasPrice: 25_000_000n,
      gasLimit: 21_000n,
      to: `0x${"6".repeat(40)}`,
      value: 1n,
    });
  const entryOf = (text: string) => {
    const tx = decodeTransaction(parseHexBytes(text));
    return { hash: tx.hash, raw: tx.raw, from: recoverSender(tx), receivedAtMs: 1, sequence: 0 };
  };

  it("has every block that was published, from the first on", async () => {
    watch();
    const genesis = testGenesis(wallet.address);
    const folder = path.join(root, "data", "chain");
    ensureFolder(folder);
    const chain = await ExecutionChain.open(genesis, { folder });
    const { committed } = await chain.mine([await raw(0)]);
    const again = await ExecutionChain.open(genesis, {
      folder: await after("data", "chain"),
    });
    const { block } = committed;
    expect(again.view.head()).toMatchObject({ height: 1, hash: block.hash });
    expect(again.view.block(1)?.block).toEqual(block);
    await again.close();
    await chain.close();
  });

  it("has what the pool answered for, and not what left it", async () => {
    watch();
    const folder = path.join(root, "chain");
    ensureFolder(folder);
    const database = await openDatabase(folder);
    const pool = new PoolStore(database, () => false);
    const [stays, goes] = [entryOf(await raw(0)), entryOf(await raw(1))];
    await pool.append([stays]);
    await pool.append([{ ...goes, sequence: 1 }]);
    await pool.remove([goes.hash]);
    const again = await openDatabase(await after("chain"));
    expect(await pooledHashes(again)).toEqual([stays.hash]);
    await again.close();
    await database.close();
  });

  it("has no more what left the pool, without another write behind it", async () => {
    watch();
    const folder = path.join(root, "chain");
    ensureFolder(folder);
    const database = await openDatabase(folder);
    const pool = new PoolStore(database, () => false);
    // Two in one record: it stays for the other one.
    const [stays, goes] = [entryOf(await raw(0)), entryOf(await raw(1))];
    await pool.append([stays, goes]);
    await pool.remove([goes.hash]);
    const again = await openDatabase(await after("chain"));
    expect(await pooledHashes(again)).toEqual([stays.hash]);
    await again.close();
    await database.close();
  });

  it("has the pool's answer at once, without another write behind it", async () => {
    watch();
    const folder = path.join(root, "chain");
    ensureFolder(folder);
    const database = await openDatabase(folder);
    const entry = entryOf(await raw(0));
    await new PoolStore(database, () => false).append([entry]);
    const again = await openDatabase(await after("chain"));
    expect(await pooledHashes(again)).toEqual([entry.hash]);
    await again.close();
    await database.close();
  });

  it("has the validators of the genesis", async () => {
    watch();
    const folder = path.join(root, "chain");
    ensureFolder(folder);
    const database = await openDatabase(folder);
    const { genesis, seeds } = validatorGenesis(4);
    const validators = new SignedChain(genesis, seeds, ZERO_HASH).validators(1);
    await new ConsensusStore(database).writeGenesis(validators);
    const again = await openDatabase(await after("chain"));
    expect(new ConsensusStore(again).validators(1)?.hash()).toEqual(validators.hash());
    await again.close();
    await database.close();
  });

  it("has the evidence that was taken", async () => {
    watch();
    const folder = path.join(root, "chain");
    ensureFolder(folder);
    const database = await openDatabase(folder);
    const { genesis, seeds } = validatorGenesis(4);
    const chain = new SignedChain(genesis, seeds, ZERO_HASH);
    const store = new ConsensusStore(database);
    const content = { type: VOTE_TYPE.prevote, height: 1, round: 0, timeNs: 7n };
    const hash = parseHash32(`0x${"11".repeat(32)}`);
    const voteA = chain.vote(0, { ...content, blockId: undefined });
    const voteB = chain.vote(0, { ...content, blockId: { hash, parts: { total: 1, hash } } });
    const power = { totalPower: 40n, validatorPower: 10n };
    await store.keepEvidence({ voteA, voteB, ...power, timeNs: 7n }, hash);
    const again = await openDatabase(await after("chain"));
    const found = new ConsensusStore(again);
    expect(await found.pendingEvidence()).toHaveLength(1);
    await again.close();
    await database.close();
  });
});

describe("state sync", () => {
  let chain: SnapshotChain;

  beforeAll(async () => {
    chain = await SnapshotChain.open();
    for (let blocks = 0; blocks < 3; blocks++) await chain.take();
  });

  afterAll(() => chain.close());

  const openSnapshots = (folder: string) =>
    SnapshotFolder.open({
      folder,
      genesisHash: chain.hash(0),
      headHeight: chain.node.height,
      oldestBlock: 0,
      log: quietLog,
      disk: roomyDisk,
    });

  it("offers the snapshot that was taken, with every chunk", async () => {
    fs.mkdirSync(path.join(root, "data"));
    watch();
    const files = await openSnapshots(path.join(root, "data", "snapshots"));
    await chain.addTo(files);
    const again = await openSnapshots(await after("data", "snapshots"));
    expect(again.list()).toEqual(files.list());
    expect(await readFiles(again)).toEqual(await readFiles(files));
  });

  it("goes on with the store that was restored, and with the one that took the chain's place", async () => {
    const data = path.join(root, "data");
    fs.mkdirSync(data);
    watch();
    const { height } = chain.node;
    const files = await chain.snapshot();
    await chain.take();
    await chain.take();
    await restoreSnapshot({
      ...chain.restoreBase(path.join(data, "chain.restoring")),
      manifest: files.manifest,
      trusted: chain.trusted(height),
      readChunk: async (index) => files.chunks[index] ?? new Uint8Array(0),
    });
    await cut.leave(left);
    expect(await restoredHeight(path.join(left, "data", "chain.restoring"))).toBe(height);
    // On from there, through another power cut.
    const again = PowerCut.watch(root, cut);
    expect(await new StateSyncFolders(data).adopt()).toBe(true);
    await again.leave(path.join(base, "last"));
    expect(fs.readdirSync(path.join(base, "last", "data"))).toEqual(["chain"]);
    expect(await restoredHeight(path.join(base, "last", "data", "chain"))).toBe(height);
  });
});
