/**
 * Results of a block's transactions as JSON: some kilobytes for each transaction, asked for by every
 * explorer at every height. Made a page at a time, so that a full block delays nobody, and kept.
 */
import { LRUCache } from "lru-cache";
import type { Height } from "../../../../chain/hex.js";
import { breathe, doBreathing } from "../../../../runtime/process/main-thread.js";
import { endlessSignal, type WorkOwner } from "../../../../runtime/process/work-owner.js";
import type { ChainView } from "../../../view/chain-view.js";
import { executedPages } from "../chain-reads.js";
import { JsonPieces } from "./json-pieces.js";
import { resultTextSteps } from "./results.js";

/** Bytes that are kept where nobody says; a block of ten thousand transfers has some 20 million. */
const CACHED_BYTES = 32 * 1024 * 1024;

/** Transactions whose results are made at a stretch: less than a millisecond. */
const RESULTS_AT_ONCE = 16;

/** Texts by height; a height's results never change. */
export class ResultTexts {
  private readonly texts: LRUCache<Height, JsonPieces>;
  private readonly making = new Map<Height, Promise<JsonPieces>>();

  constructor(
    private readonly view: Pick<ChainView, "pages" | "cosmosTransaction" | "outline">,
    cacheBytes = CACHED_BYTES,
  ) {
    this.texts = new LRUCache({
      maxSize: cacheBytes,
      sizeCalculation: ({ pieces }) => pieces.reduce((sum, { length }) => sum + length, 1),
    });
  }

  /** `txs_results` of a committed block. @param owner who asks: whose the making is, if he is the first */
  of(height: Height, owner: WorkOwner): Promise<JsonPieces> | JsonPieces {
    const known = this.texts.get(height) ?? this.making.get(height);
    if (known !== undefined) return known;
    const made = this.make(height, endlessSignal(owner))
      .then((done) => {
        this.texts.set(height, done);
        return done;
      })
      .finally(() => this.making.delete(height));
    this.making.set(height, made);
    return made;
  }

  private async make(height: Height, signal: AbortSignal): Promise<JsonPieces> {
    const pieces: Buffer[] = [Buffer.from("[")];
    let isFirst = true;
    for (const executed of executedPages(this.view, height)) {
      if (executed === undefined) {
        await breathe(signal);
        continue;
      }
      for (let start = 0; start < executed.length; start += RESULTS_AT_ONCE) {
        const texts: string[] = [];
        for (const one of executed.slice(start, start + RESULTS_AT_ONCE)) {
          texts.push((await doBreathing(resultTextSteps(one), signal)).join(""));
        }
        pieces.push(Buffer.from(`${isFirst ? "" : ","}${texts.join(",")}`));
        isFirst = false;
        await breathe(signal);
      }
    }
    pieces.push(Buffer.from("]"));
    return new JsonPieces(pieces);
  }
}
