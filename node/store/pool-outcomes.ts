/**
 * What became of transactions that left the pool without being mined, as the value of their
 * markers: the last ones are known over a restart. Value: empty where nobody knows, else
 * RLP[order, kind, hash or reason], and as a fourth item the hash of the SDK Tx around an EVM transaction,
 * which markers of older releases have not.
 */
import { bytesToHash32, type Hash32 } from "../../chain/hex.js";
import { decodeRlp, rlpBytes, rlpInteger, rlpList } from "../../chain/encoding/rlp.js";
import { encodeRlp } from "../../chain/encoding/rlp-writer.js";

/** The same shape as the mempool's port has. */
export type StoredPoolOutcome = (
  | { readonly status: "replaced"; readonly by: Hash32 }
  | { readonly status: "dropped"; readonly reason: string }
) & { readonly sdkHash?: Hash32 };

/** Some days of a busy exchange; read in a tenth of a second at a start. */
const MAX_OUTCOMES = 20_000;

const KIND = { replaced: 1n, dropped: 2n } as const;

const NOTHING = new Uint8Array(0);

/** The last outcomes in the order in which they happened. */
export class PoolOutcomes {
  private readonly outcomes = new Map<Hash32, StoredPoolOutcome>();
  private nextOrder = 0n;

  /** All of them, oldest first. */
  all(): ReadonlyMap<Hash32, StoredPoolOutcome> {
    return this.outcomes;
  }

  has(hash: Hash32): boolean {
    return this.outcomes.has(hash);
  }

  /** Forgets one; true when it was known. */
  delete(hash: Hash32): boolean {
    return this.outcomes.delete(hash);
  }

  /** Remembers an outcome and gives the value of its marker. */
  add(hash: Hash32, outcome: StoredPoolOutcome | undefined): Uint8Array {
    this.outcomes.delete(hash);
    if (outcome === undefined) return NOTHING;
    this.outcomes.set(hash, outcome);
    const { status, sdkHash } = outcome;
    const what = status === "replaced" ? outcome.by : Buffer.from(outcome.reason, "utf8");
    const other = sdkHash === undefined ? [] : [sdkHash];
    return encodeRlp([this.nextOrder++, KIND[status], what, ...other]);
  }

  /** Takes the oldest out while there are too many. */
  evict(): readonly Hash32[] {
    const evicted: Hash32[] = [];
    for (const hash of this.outcomes.keys()) {
      if (this.outcomes.size <= MAX_OUTCOMES) break;
      this.outcomes.delete(hash);
      evicted.push(hash);
    }
    return evicted;
  }

  /** Takes back what the markers say, in any order. */
  restore(markers: Iterable<readonly [Hash32, Uint8Array]>): void {
    const read: { hash: Hash32; order: bigint; outcome: StoredPoolOutcome }[] = [];
    for (const [hash, value] of markers) {
      if (value.length > 0) read.push({ hash, ...decodeOutcome(value) });
    }
    read.sort((left, right) => (left.order < right.order ? -1 : 1));
    for (const { hash, order, outcome } of read) {
      this.outcomes.set(hash, outcome);
      this.nextOrder = order + 1n;
    }
  }
}

function decodeOutcome(value: Uint8Array): { order: bigint; outcome: StoredPoolOutcome } {
  const [order, kind, what, other] = rlpList(decodeRlp(value));
  const content = rlpBytes(what);
  const sdkHash = other === undefined ? {} : { sdkHash: bytesToHash32(rlpBytes(other)) };
  const outcome: StoredPoolOutcome =
    rlpInteger(kind) === KIND.replaced
      ? { status: "replaced", by: bytesToHash32(content), ...sdkHash }
      : { status: "dropped", reason: Buffer.from(content).toString("utf8"), ...sdkHash };
  return { order: rlpInteger(order), outcome };
}
