/** What must never become a store: damaged, false and incomplete snapshots, crashes, full disks. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { keccak256 } from "../../../chain/hashes.js";
import { bytesToHash32, EMPTY_TRIE_ROOT, type Hash32 } from "../../../chain/hex.js";
import { encodeRlp } from "../../../chain/encoding/rlp-writer.js";
import {
  decodeManifest,
  type SnapshotManifest,
} from "../../../node/statesync/snapshot/snapshot-manifest.js";
import {
  ChunkReader,
  RECORD_KIND,
  type SnapshotRecord,
} from "../../../node/statesync/snapshot/snapshot-records.js";
import {
  RESTORE_FAILPOINTS,
  restoredHeight,
  type RestoreOptions,
  restoreSnapshot,
} from "../../../node/statesync/snapshot/snapshot-restore.js";
import { proveBlock } from "../../../node/statesync/snapshot/snapshot-block.js";
import type { TrustedState } from "../../../node/statesync/statesync-ports.js";
import {
  type AccountRecord,
  decodeAccount,
  encodeAccount,
} from "../../../node/store/account-record.js";
import { createRandom } from "../../helpers/random.js";
import {
  makeHistory,
  SnapshotChain,
  type SnapshotFiles,
  temporaryFolder,
} from "../../helpers/chains/snapshot-chain.js";
import { until } from "../../helpers/until.js";

const SEED = 6_940;
const random = createRandom(SEED);
const INVALID = { code: "SNAPSHOT_INVALID" };

/** MSTORE(0, 1), LOG0(0, 32). */
const LOGGER_INIT = "0x600160005260206000a000";

let chain: SnapshotChain;
let files: SnapshotFiles;
let trusted: TrustedState;
let home: string;
let folder: string;
let good: readonly SnapshotRecord[];

beforeAll(async () => {
  chain = await SnapshotChain.open();
  await makeHistory(chain);
  // The block of the snapshot has a transfer, and a creation that logs 32 bytes.
  await chain.take([{ to: `0x${"88".repeat(20)}`, value: 1n }, { data: LOGGER_INIT }]);
  const { height } = chain.node;
  files = await chain.snapshot();
  await chain.take();
  await chain.take();
  trusted = chain.trusted(height);
  const reader = new ChunkReader();
  good = files.chunks.flatMap((chunk) => reader.read(chunk));
  home = temporaryFolder("restore");
});

beforeEach(() => {
  folder = path.join(home, "chain.restoring");
});

afterAll(async () => {
  await chain.close();
  fs.rmSync(home, { recursive: true, force: true });
});

function restore(change: Partial<RestoreOptions> & { chunks?: readonly Uint8Array[] } = {}) {
  const chunks = change.chunks ?? files.chunks;
  return restoreSnapshot({
    ...chain.restoreBase(folder),
    manifest: files.manifest,
    trusted,
    readChunk: async (index) => chunks[index] ?? new Uint8Array(0),
    ...change,
  });
}

/** A snapshot of these records whose hashes are right: only proofs can find it out. */
function forged(
  groups: readonly (readonly SnapshotRecord[])[],
  change: Partial<SnapshotManifest> = {},
): { manifest: SnapshotManifest; chunks: Uint8Array[] } {
  const chunks = groups.map((records) =>
    encodeRlp(records.map(({ kind, id, value }) => [Buffer.from([kind, ...id]), value])),
  );
  const chunkHashes = chunks.map((chunk) =>
    bytesToHash32(createHash("sha256").update(chunk).digest()),
  );
  return { manifest: { ...files.manifest, chunkHashes, ...change }, chunks };
}

async function refuses(options: Parameters<typeof restore>[0], reason?: string): Promise<void> {
  const details = reason === undefined ? expect.anything() : { reason };
  await expect(restore(options)).rejects.toMatchObject({ ...INVALID, details });
  expect(fs.existsSync(folder)).toBe(false);
}

const ofKind = (kind: number) => good.filter((record) => record.kind === kind);

describe("a restore", () => {
  it("takes the true snapshot, however it is divided into chunks", async () => {
    expect(Object.values(RECORD_KIND).filter((kind) => ofKind(kind).length === 0)).toEqual([]);
    await restore();
    expect(await restoredHeight(folder)).toBe(files.manifest.height);
    expect(fs.existsSync(path.join(folder, "sorting"))).toBe(false);
    await restore(forged([good.slice(0, 7), good.slice(7)]));
    expect(await restoredHeight(folder)).toBe(files.manifest.height);
  });

  it("refuses chunks that are not those of the manifest", async () => {
    const [first = new Uint8Array(0)] = files.chunks;
    for (let round = 0; round < 20; round++) {
      const damaged = Uint8Array.from(first);
      const at = random.integer(damaged.length);
      damaged[at] = (damaged[at] ?? 0) ^ (1 << random.integer(8));
      await refuses({ chunks: [damaged] });
    }
    await refuses({ chunks: [first.subarray(0, -1)] });
    await refuses({ chunks: [new Uint8Array(0)] });
    await refuses({ chunks: [Buffer.concat([first, first])] });
  });

  it("refuses every kind of record with a byte changed under right hashes", async () => {
    for (const kind of Object.values(RECORD_KIND)) {
      const indexes = [...good.keys()].filter((index) => good[index]?.kind === kind);
      for (let round = 0; round < 8; round++) {
        const at = random.pick(indexes);
        const records = good.map((record, index) => {
          if (index !== at) return record;
          const value = Buffer.from(record.value);
          const byte = random.integer(value.length);
          value[byte] = (value[byte] ?? 0) ^ (1 << random.integer(8));
          return { ...record, value };
        });
        await refuses(forged([records]));
      }
    }
  });

  it("refuses keys that are changed, records that are missing, added, doubled or moved", async () => {
    const account = ofKind(RECORD_KIND.account)[0];
    const slot = ofKind(RECORD_KIND.storage)[0];
    const code = ofKind(RECORD_KIND.code)[0];
    if (account === undefined || slot === undefined || code === undefined) throw new Error("none");
    const { counts } = files.manifest;
    const sorted = (records: readonly SnapshotRecord[]) =>
      records.toSorted((left, right) =>
        Buffer.compare(
          Buffer.from([left.kind, ...left.id]),
          Buffer.from([right.kind, ...right.id]),
        ),
      );
    for (const one of [account, slot, code]) {
      const id = Buffer.from(one.id);
      id[id.length - 1] = (id.at(-1) ?? 0) ^ 1;
      await refuses(
        forged([sorted(good.map((record) => (record === one ? { ...one, id } : record)))]),
      );
      await refuses(forged([good.filter((record) => record !== one)]));
      await refuses(forged([good.flatMap((record) => (record === one ? [one, one] : [record]))]));
      await refuses(forged([good.filter((record) => record !== one), [one]]));
      await refuses(forged([good, [one]]));
    }
    const fewer = { ...counts, accounts: counts.accounts - 1 };
    await refuses(forged([good.filter((record) => record !== account)], { counts: fewer }));
    const without = { ...counts, slots: counts.slots - 1 };
    await refuses(forged([good.filter((record) => record !== slot)], { counts: without }));
    const codeless = { ...counts, codes: counts.codes - 1 };
    await refuses(forged([good.filter((record) => record !== code)], { counts: codeless }));
    // Storage of nobody, a whole contract's storage missing, and a code that no account has.
    const stray = { ...slot, id: Buffer.concat([Buffer.alloc(20, 0x55), slot.id.subarray(20)]) };
    const more = { ...counts, slots: counts.slots + 1 };
    await refuses(forged([sorted([...good, stray])], { counts: more }));
    const none = { ...counts, slots: 0 };
    await refuses(
      forged([good.filter(({ kind }) => kind !== RECORD_KIND.storage)], { counts: none }),
    );
    const value = Buffer.from("6001", "hex");
    const id = Buffer.from(keccak256(value));
    const another = { kind: RECORD_KIND.code, id, value };
    const coded = { ...counts, codes: counts.codes + 1 };
    await refuses(forged([sorted([...good, another])], { counts: coded }));
  });

  it("refuses accounts that only the state root tells from the true ones", async () => {
    const accounts = ofKind(RECORD_KIND.account).map((record) => ({
      record,
      account: decodeAccount(record.value),
    }));
    const [first, second] = accounts.filter(({ account }) => account.balanceAtoken > 1n);
    if (first === undefined || second === undefined) throw new Error("no accounts");
    const changed = (one: typeof first, change: Partial<AccountRecord>) => ({
      ...one.record,
      value: encodeAccount({ ...one.account, ...change }),
    });
    const put = (...records: readonly SnapshotRecord[]) =>
      good.map((record) => records.find(({ id }) => id.equals(record.id)) ?? record);
    const nonce = first.account.nonce + 1n;
    await refuses(forged([put(changed(first, { nonce }))]), "the state root");
    // Coins that change hands: the sum stays.
    const moved = put(
      changed(first, { balanceAtoken: first.account.balanceAtoken + 1n }),
      changed(second, { balanceAtoken: second.account.balanceAtoken - 1n }),
    );
    await refuses(forged([moved]), "the state root");
    const made = put(changed(first, { balanceAtoken: first.account.balanceAtoken + 1n }));
    await refuses(forged([made]), "the sum of balances is not the supply");
    // Each of two contracts with the storage of the other.
    const [keeper, witness] = accounts.filter(
      ({ account }) => account.storageRoot !== EMPTY_TRIE_ROOT,
    );
    if (keeper === undefined || witness === undefined) throw new Error("no storage");
    const swapped = put(
      changed(keeper, { storageRoot: witness.account.storageRoot }),
      changed(witness, { storageRoot: keeper.account.storageRoot }),
    );
    await refuses(forged([swapped]), "the storage of an account");
  });

  it("refuses a block or receipts with any byte changed", () => {
    const joined = (kind: number) => Buffer.concat(ofKind(kind).map(({ value }) => value));
    const [block, receipts] = [joined(RECORD_KIND.block), joined(RECORD_KIND.receipts)];
    expect(proveBlock({ block, receipts }, trusted).committed.receipts[1]?.logs).toHaveLength(1);
    const damaged = (bytes: Buffer, at: number) => {
      const copy = Buffer.from(bytes);
      copy[at] = (copy[at] ?? 0) ^ (1 << random.integer(8));
      return copy;
    };
    for (const at of block.keys()) {
      const wrong = { block: damaged(block, at), receipts };
      expect(() => proveBlock(wrong, trusted)).toThrow(expect.objectContaining(INVALID));
    }
    for (const at of receipts.keys()) {
      const wrong = { block, receipts: damaged(receipts, at) };
      expect(() => proveBlock(wrong, trusted)).toThrow(expect.objectContaining(INVALID));
    }
  });

  it("refuses coins made or lost even where counts and sums are told to agree", async () => {
    const { supply } = files.manifest;
    const up = (field: keyof typeof supply) => ({ ...supply, [field]: supply[field] + 1n });
    await refuses({ manifest: { ...files.manifest, supply: up("totalAtoken") } });
    const both = { ...up("mintedAtoken"), burnedAtoken: supply.burnedAtoken + 1n };
    await refuses({ manifest: { ...files.manifest, supply: both } });
    const minted = { ...up("mintedAtoken"), totalAtoken: supply.totalAtoken + 1n };
    await refuses({ manifest: { ...files.manifest, supply: minted } });
  });

  it("refuses a manifest of another height, chain or size", async () => {
    const { manifest } = files;
    const other: Partial<SnapshotManifest>[] = [
      { height: manifest.height + 1 },
      { height: 1 },
      { genesisHash: trusted.blockId.hash },
      { counts: { ...manifest.counts, accounts: manifest.counts.accounts + 1 } },
      { counts: { ...manifest.counts, slots: 2 ** 40 } },
      { chunkHashes: [...manifest.chunkHashes, ...manifest.chunkHashes] },
      { chunkHashes: [trusted.blockId.hash] },
      { chunkHashes: [] },
    ];
    for (const change of other) await refuses({ manifest: { ...manifest, ...change } });
    // Bits of the bytes themselves: refused when read, or when held against the chain.
    for (let round = 0; round < 60; round++) {
      const damaged = Buffer.from(files.manifestBytes);
      const at = random.integer(damaged.length);
      damaged[at] = (damaged[at] ?? 0) ^ (1 << random.integer(8));
      const attempt = async () => restore({ manifest: decodeManifest(damaged) });
      await expect(attempt()).rejects.toMatchObject(INVALID);
    }
  });

  it("refuses what is not the state that validators signed", async () => {
    const wrong = `0x${"12".repeat(32)}` as Hash32;
    const { header, next } = trusted;
    const changed: Partial<TrustedState>[] = [
      { next: { ...next, appHash: wrong } },
      { next: { ...next, lastResultsHash: wrong } },
      { header: { ...header, dataHash: wrong } },
      { header: { ...header, timeNs: header.timeNs + 1_000_000n } },
    ];
    for (const change of changed) await refuses({ trusted: { ...trusted, ...change } });
    // The snapshot of one height with the proofs of another.
    await refuses({ trusted: chain.trusted(files.manifest.height - 1) });
  });

  it("ends with the signal and leaves nothing", async () => {
    const controller = new AbortController();
    const stop = () => controller.abort(new Error("told to stop"));
    const attempt = restore({
      signal: controller.signal,
      onChunk: stop,
      ...forged([good.slice(0, 9), good.slice(9)]),
    });
    await expect(attempt).rejects.toThrow("told to stop");
    expect(fs.existsSync(folder)).toBe(false);
  });
});

describe("a crash in a restore", () => {
  it.each(RESTORE_FAILPOINTS)(
    "at %s leaves no store that would be taken, or a whole one",
    async (name) => {
      const image = `${folder}.image`;
      const crash = new Error("crashed");
      const attempt = restore({
        failpoint(reached) {
          if (reached !== name) return;
          // What a killed process leaves: level's files as they are at this moment.
          fs.cpSync(folder, image, { recursive: true });
          throw crash;
        },
      });
      await expect(attempt).rejects.toBe(crash);
      const isDone = name === "restore.after-mark";
      expect(await restoredHeight(image)).toBe(isDone ? files.manifest.height : undefined);
      fs.rmSync(folder, { recursive: true, force: true });
      fs.renameSync(image, folder);
      await restore();
      expect(await restoredHeight(folder)).toBe(files.manifest.height);
    },
  );

  it("that left files of any kind is no store", async () => {
    expect(await restoredHeight(path.join(home, "nowhere"))).toBeUndefined();
    const broken = path.join(home, "broken");
    fs.mkdirSync(broken);
    fs.writeFileSync(path.join(broken, "CURRENT"), "MANIFEST-000001\n");
    expect(await restoredHeight(broken)).toBeUndefined();
  });
});

describe("a full disk", () => {
  it("stops a restore with the folder and the reason, and nothing stays", async () => {
    const disk = path.join(home, "disk");
    fs.mkdirSync(disk);
    const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=256k", "none", disk]);
    if (mounted.status !== 0) {
      process.stdout.write("left out: no tmpfs can be mounted here\n");
      return;
    }
    try {
      folder = path.join(disk, "chain.restoring");
      const ballast = path.join(disk, "ballast");
      fs.writeFileSync(ballast, Buffer.alloc(230 * 1024));
      const attempt = restore();
      await expect(attempt).rejects.toMatchObject({ message: expect.stringMatching(/disk|space/) });
      await expect(attempt).rejects.not.toMatchObject(INVALID);
      expect(fs.existsSync(folder)).toBe(false);
    } finally {
      await until(() => spawnSync("umount", [disk]).status === 0, { timeoutMs: 10_000 });
    }
  });
});
