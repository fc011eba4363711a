/**
 * Serialised blocks, receipts, journals and logs. A committed block never changes (D10), so its
 * JSON is built once and kept as bytes; a repeated read copies nothing.
 */
import { LRUCache } from "lru-cache";
import type { Height } from "../../../chain/hex.js";
import type { Log } from "../../../chain/receipt.js";
import type { ChainView } from "../../chain-view.js";
import type { CommittedBlock } from "../../event-bus.js";
import { blockJson, logJson, placeOf, receiptJson } from "./encode.js";
import { blockJournalJson } from "./journal-json.js";
import { RawJson } from "./method.js";

/** A log with its JSON text. */
export interface EncodedLog {
  readonly log: Log;
  readonly json: string;
}

/** Which serialisation of a block; the value is part of the cache key. */
const VARIANTS = { hashes: 0, full: 1, receipts: 2, journal: 3 } as const;

type Variant = keyof typeof VARIANTS;

/** Keys are height x 4 + variant. */
const VARIANT_COUNT = Object.keys(VARIANTS).length;

/** Part of the byte budget for the logs of blocks, and the same for answers of eth_getLogs. */
const LOG_SHARE = 0.125;

/** Bytes counted for an encoded log beside its text. */
const LOG_OVERHEAD_BYTES = 100;

/** Blocks, receipts and journals as JSON, cached within a budget of bytes. */
export class BlockJson {
  private readonly buffers: LRUCache<number, RawJson>;
  /** Answers of eth_getLogs by range and criteria. */
  readonly logAnswers: LRUCache<string, RawJson>;
  private readonly logLists: LRUCache<Height, readonly EncodedLog[]>;

  constructor(
    private readonly view: ChainView,
    cacheBytes: number,
  ) {
    this.buffers = new LRUCache({
      maxSize: Math.floor(cacheBytes * (1 - 2 * LOG_SHARE)),
      sizeCalculation: (value) => Math.max(value.content.length, 1),
    });
    this.logAnswers = new LRUCache({
      maxSize: Math.floor(cacheBytes * LOG_SHARE),
      sizeCalculation: (answer, key) => answer.content.length + key.length,
    });
    this.logLists = new LRUCache({
      maxSize: Math.floor(cacheBytes * LOG_SHARE),
      sizeCalculation: (logs) =>
        logs.reduce((sum, { json }) => sum + json.length + LOG_OVERHEAD_BYTES, LOG_OVERHEAD_BYTES),
    });
  }

  /** Block as eth_getBlockBy* gives it; undefined above the head. */
  block(height: Height, full: boolean): RawJson | undefined {
    return this.cached(height, full ? "full" : "hashes", ({ block }) => blockJson(block, full));
  }

  /** All receipts of a block. */
  receipts(height: Height): RawJson | undefined {
    return this.cached(height, "receipts", blockReceiptsJson);
  }

  /** The answer of causeway_getBlockJournal. */
  journal(height: Height): RawJson | undefined {
    return this.cached(height, "journal", blockJournalJson);
  }

  /** All logs of a block in order, with their texts; none above the head. */
  logs(height: Height): readonly EncodedLog[] {
    const known = this.logLists.get(height);
    if (known !== undefined) return known;
    const committed = this.view.block(height);
    if (committed === undefined) return [];
    const logs = encodeLogs(committed);
    this.logLists.set(height, logs);
    return logs;
  }

  private cached(
    height: Height,
    variant: Variant,
    build: (committed: CommittedBlock) => string,
  ): RawJson | undefined {
    const key = height * VARIANT_COUNT + VARIANTS[variant];
    const known = this.buffers.get(key);
    if (known !== undefined) return known;
    const committed = this.view.block(height);
    if (committed === undefined) return undefined;
    const built = new RawJson(Buffer.from(build(committed)));
    this.buffers.set(key, built);
    return built;
  }
}

function blockReceiptsJson(committed: CommittedBlock): string {
  const place = placeOf(committed.block);
  let firstLogIndex = 0;
  const receipts = committed.receipts.map((receipt, index) => {
    const json = receiptJson(committed, receipt, { place, index, firstLogIndex });
    firstLogIndex += receipt.logs.length;
    return json;
  });
  return `[${receipts.join(",")}]`;
}

/** One receipt of a block; undefined where there is no such transaction. */
export function receiptAt(committed: CommittedBlock, index: number): string | undefined {
  const receipt = committed.receipts[index];
  if (receipt === undefined) return undefined;
  let firstLogIndex = 0;
  for (let before = 0; before < index; before++) {
    firstLogIndex += committed.receipts[before]?.logs.length ?? 0;
  }
  return receiptJson(committed, receipt, {
    place: placeOf(committed.block),
    index,
    firstLogIndex,
  });
}

function encodeLogs(committed: CommittedBlock): readonly EncodedLog[] {
  const place = placeOf(committed.block);
  const encoded: EncodedLog[] = [];
  committed.receipts.forEach((receipt, transactionIndex) => {
    const mined = committed.block.transactions[transactionIndex];
    if (mined === undefined) throw new Error("a receipt has no transaction");
    for (const log of receipt.logs) {
      const at = { place, transactionHash: mined.tx.hash, transactionIndex };
      encoded.push({ log, json: logJson(log, { ...at, logIndex: encoded.length }) });
    }
  });
  return encoded;
}
