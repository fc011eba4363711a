/** A snapshot that lies is found out while it is fetched, long before all of it is here. */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { bytesToHash32 } from "../../../../chain/hex.js";
import { encodedRlpItems } from "../../../../chain/encoding/rlp.js";
import { encodeRlp, encodeRlpListOfEncoded } from "../../../../chain/encoding/rlp-writer.js";
import { proveBlock } from "../../../../node/statesync/snapshot/snapshot-block.js";
import { SnapshotError } from "../../../../node/statesync/snapshot/snapshot-error.js";
import { SnapshotGuard } from "../../../../node/statesync/snapshot/snapshot-guard.js";
import type { SnapshotManifest } from "../../../../node/statesync/snapshot/snapshot-manifest.js";
import {
  ChunkReader,
  RECORD_KIND,
  type SnapshotRecord,
} from "../../../../node/statesync/snapshot/snapshot-records.js";
import type { TrustedState } from "../../../../node/statesync/statesync-ports.js";
import { decodeAccount, encodeAccount } from "../../../../node/store/account-record.js";
import {
  makeHistory,
  SnapshotChain,
  type SnapshotFiles,
} from "../../../helpers/chains/snapshot-chain.js";

let chain: SnapshotChain;
let files: SnapshotFiles;
let trusted: TrustedState;
let good: readonly SnapshotRecord[];

beforeAll(async () => {
  chain = await SnapshotChain.open();
  await makeHistory(chain);
  const { height } = chain.node;
  files = await chain.snapshot();
  await chain.take();
  await chain.take();
  trusted = chain.trusted(height);
  const reader = new ChunkReader();
  good = files.chunks.flatMap((chunk) => reader.read(chunk));
});

afterAll(() => chain.close());

interface Forged {
  readonly manifest: SnapshotManifest;
  readonly chunks: readonly Uint8Array[];
}

/** A snapshot in chunks of so many records, with hashes that are right. */
function forged(
  records: readonly SnapshotRecord[],
  options: { readonly perChunk?: number; readonly change?: Partial<SnapshotManifest> } = {},
): Forged {
  const { perChunk = 5, change = {} } = options;
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < records.length; at += perChunk) {
    const group = records.slice(at, at + perChunk);
    chunks.push(encodeRlp(group.map(({ kind, id, value }) => [Buffer.from([kind, ...id]), value])));
  }
  const chunkHashes = chunks.map((chunk) =>
    bytesToHash32(createHash("sha256").update(chunk).digest()),
  );
  return { manifest: { ...files.manifest, chunkHashes, ...change }, chunks };
}

/** Takes all chunks as state sync does. @returns how many were looked at before it was given up */
function lookedAt({ manifest, chunks }: Forged): number {
  const guard = new SnapshotGuard({ manifest, trusted });
  let count = 0;
  try {
    for (let first = 0, isProven = false; !isProven; first++) {
      count++;
      isProven = guard.takeFirst(first, chunks[first] ?? new Uint8Array(0));
    }
    for (const [index, chunk] of [...chunks.entries()].toReversed()) {
      count++;
      guard.check(index, chunk);
    }
    return Number.POSITIVE_INFINITY;
  } catch (error) {
    expect(error).toMatchObject({ code: "SNAPSHOT_INVALID" });
    return count;
  }
}

/** The first broken rule, and what of it was found out in reading. */
function faultOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (!(error instanceof SnapshotError)) throw error;
    const { message, cause } = error;
    return cause instanceof Error ? `${message}: ${cause.message}` : message;
  }
  return "taken";
}

const ofKind = (kind: number) => good.filter((record) => record.kind === kind);

describe("a snapshot", () => {
  it("that is true passes, however it is divided and in whatever order it comes", () => {
    for (const perChunk of [1, 3, 1_000]) {
      expect(lookedAt(forged(good, { perChunk }))).toBe(Number.POSITIVE_INFINITY);
    }
  });

  it("of another block is given up with its first chunk", () => {
    const others = good.map((record) => {
      if (record.kind !== RECORD_KIND.block) return record;
      return { ...record, value: Buffer.from(record.value).fill(7, 60, 61) };
    });
    expect(lookedAt(forged(others, { perChunk: 3 }))).toBe(1);
  });

  it("of another supply is given up with its first chunk", () => {
    const { supply } = files.manifest;
    const change = {
      supply: {
        ...supply,
        totalAtoken: supply.totalAtoken + 1n,
        mintedAtoken: supply.mintedAtoken + 1n,
      },
    };
    expect(lookedAt(forged(good, { perChunk: 3, change }))).toBe(1);
  });

  it("is read no further than it is proven", () => {
    const joined = (kind: number) => Buffer.concat(ofKind(kind).map(({ value }) => value));
    const block = joined(RECORD_KIND.block);
    const receipts = joined(RECORD_KIND.receipts);
    const [head, time, dataHash] = encodedRlpItems(block);
    if (head === undefined || time === undefined || dataHash === undefined) throw new Error("none");
    const million = (item: string) =>
      encodeRlpListOfEncoded([Buffer.from(item.repeat(1_000_000), "hex")]);
    const endless = million("c28080");
    const other = Buffer.from(head).fill(7, 60, 61);
    const unread = "the snapshot is not valid: the block cannot be read: there are too many items";
    const cases = [
      [{ block, receipts: million("c7808080808080c0") }, unread],
      [{ block: encodeRlpListOfEncoded([head, time, dataHash, endless]), receipts }, unread],
      [
        { block: encodeRlpListOfEncoded([other, time, dataHash, endless]), receipts },
        "the snapshot is not valid: the block is not the one that was decided",
      ],
    ] as const;
    expect(cases.map(([encoded]) => faultOf(() => proveBlock(encoded, trusted)))).toEqual(
      cases.map(([, fault]) => fault),
    );
  });

  it("whose first chunks never come to an end is given up with the block's bound", () => {
    const [block] = ofKind(RECORD_KIND.block);
    if (block === undefined) throw new Error("no block");
    const slices = Array.from({ length: 100 }, (_, index) => {
      const id = Buffer.alloc(4);
      id.writeUInt32BE(index);
      return { ...block, id, value: Buffer.alloc(3_000_000) };
    });
    expect(lookedAt(forged(slices, { perChunk: 1 }))).toBeLessThan(100);
  });

  it("with more coins than there are is given up at the account that has them", () => {
    const at = good.findIndex(({ kind }) => kind === RECORD_KIND.account) + 9;
    const rich = good.map((record, index) => {
      if (index !== at) return record;
      const account = decodeAccount(record.value);
      const balanceAtoken = account.balanceAtoken + files.manifest.supply.totalAtoken;
      return { ...record, value: encodeAccount({ ...account, balanceAtoken }) };
    });
    expect(lookedAt(forged(rich))).toBeLessThan(Number.POSITIVE_INFINITY);
  });

  it("with records that its description does not count, out of order or damaged is given up", () => {
    const accounts = ofKind(RECORD_KIND.account);
    const [first, second] = accounts;
    const [code] = ofKind(RECORD_KIND.code);
    if (first === undefined || second === undefined || code === undefined) throw new Error("few");
    const { counts } = files.manifest;
    const cases: readonly Forged[] = [
      forged(good, { change: { counts: { ...counts, accounts: counts.accounts - 1 } } }),
      forged(good, { change: { counts: { ...counts, slots: counts.slots - 1 } } }),
      forged(
        good.map((record) => (record === first ? second : record === second ? first : record)),
        { perChunk: 1 },
      ),
      forged(
        good.map((one) => (one === first ? { ...one, value: Buffer.from("c0", "hex") } : one)),
      ),
      forged(good.map((one) => (one === code ? { ...one, value: Buffer.alloc(40) } : one))),
    ];
    expect(cases.map((one) => lookedAt(one) < Number.POSITIVE_INFINITY)).toEqual(
      cases.map(() => true),
    );
  });

  it("of chunks that are larger than such chunks are is given up", () => {
    const huge = { ...good[0], value: Buffer.alloc(3_900_000) } as SnapshotRecord;
    const guard = new SnapshotGuard({ manifest: { ...files.manifest }, trusted });
    const chunk = encodeRlp([[Buffer.from([huge.kind, ...huge.id]), huge.value]]);
    const all = () => {
      for (let index = 0; index < 10; index += 2) guard.check(index, chunk);
    };
    expect(all).toThrow("too long");
  });
});
