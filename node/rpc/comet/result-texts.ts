/**
 * Results of a block's transactions as JSON text: some kilobytes for each transaction, asked for
 * by every explorer at every height. Made in slices, so that a full block delays nobody, and kept.
 */
import { setImmediate as yieldToLoop } from "node:timers/promises";
import { LRUCache } from "lru-cache";
import type { Height } from "../../../chain/hex.js";
import type { CommittedBlock } from "../../event-bus.js";
import { transactionResultJson } from "./results.js";

/** Characters that are kept; the newest full block alone may be some 20 million. */
const CACHED_CHARACTERS = 64 * 1024 * 1024;

/** Work between two turns of the event loop. */
const SLICE_MS = 5;

/** A result that is JSON already. */
export class JsonText {
  constructor(readonly text: string) {}
}

/** Texts by height; a height's results never change. */
export class ResultTexts {
  private readonly texts = new LRUCache<Height, string>({
    maxSize: CACHED_CHARACTERS,
    sizeCalculation: (text) => text.length,
  });
  private readonly making = new Map<Height, Promise<string>>();

  /** `txs_results` of a committed block. */
  of(committed: CommittedBlock): Promise<string> | string {
    const { height } = committed.block.header;
    const known = this.texts.get(height) ?? this.making.get(height);
    if (known !== undefined) return known;
    const text = resultsText(committed);
    this.making.set(height, text);
    return text
      .then((done) => {
        this.texts.set(height, done);
        return done;
      })
      .finally(() => this.making.delete(height));
  }
}

async function resultsText(committed: CommittedBlock): Promise<string> {
  const texts: string[] = [];
  let sliceEndMs = performance.now() + SLICE_MS;
  for (const index of committed.block.transactions.keys()) {
    texts.push(JSON.stringify(transactionResultJson(committed, index)));
    if (performance.now() < sliceEndMs) continue;
    await yieldToLoop();
    sliceEndMs = performance.now() + SLICE_MS;
  }
  return `[${texts.join(",")}]`;
}
