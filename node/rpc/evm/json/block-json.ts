/**
 * Serialised blocks, receipts and journals. A committed block never changes (D10), so its JSON is
 * built once, a page at a time with others running in between, and kept as bytes; a repeated read
 * copies nothing.
 */
import type { BlockOutline } from "../../../../chain/block.js";
import { LRUCache } from "lru-cache";
import type { PlacedClaimMove } from "../../../../chain/staking/claims.js";
import { errorCode } from "../../../../chain/errors.js";
import type { Hash32, Height } from "../../../../chain/hex.js";
import { breathe } from "../../../../runtime/process/main-thread.js";
import { endlessSignal, ownerOf, type WorkOwner } from "../../../../runtime/process/work-owner.js";
import type { BlockClaims } from "../../../modules/reads/block-claims.js";
import type { BlockPage } from "../../../view/block-pages.js";
import type { ChainView } from "../../../view/chain-view.js";
import { cosmosOf } from "../../../view/cosmos-items.js";
import {
  BLOCK_END,
  blockStartJson,
  minedTransactionJson,
  placeOf,
  receiptTexts,
} from "../../../view/evm-json.js";
import { type Asker, Askers } from "./askers.js";
import { cosmosJson, journalEndJson, journalStartJson, pageJournalJson } from "./journal-json.js";
import type { EvmApiOptions, EvmRpcLimits } from "../options.js";
import { responseTooLarge } from "../errors.js";
import { LARGE_BYTES, LargeLane } from "../large-lane.js";
import { RawJson } from "../method.js";

/** The parts of a block's text: what comes first, each page's items, what comes last. */
interface BlockTexts {
  start(outline: BlockOutline): string;
  /** Items joined by commas, in one piece or more; undefined where others may have their turn. */
  page(outline: BlockOutline, page: BlockPage): Iterable<string | undefined>;
  end(outline: BlockOutline, view: ChainView, own: OwnTexts): string;
}

/** What a journal has beside its pages. */
interface OwnTexts {
  readonly cosmosTexts: readonly string[];
  readonly claims: JournaledClaims;
  readonly consensusBlockHash: Hash32 | undefined;
}

/** What journals hold beside what the view tells; see `EvmApiOptions`. */
export type JournalSources = Pick<EvmApiOptions, "claims" | "consensusBlockHash">;

/** Changes of claims: undefined on a chain without stake, null where the state is pruned. */
type JournaledClaims = readonly PlacedClaimMove[] | null | undefined;

/** The serialisations of a block. */
const VARIANTS = {
  hashes: {
    start: blockStartJson,
    page: (_outline, page) => [
      page
        .hashes()
        .map((hash) => `"${hash}"`)
        .join(","),
    ],
    end: () => BLOCK_END,
  },
  full: { start: blockStartJson, page: pageTransactionsJson, end: () => BLOCK_END },
  receipts: {
    start: () => "[",
    page: (outline, page) => inPieces(pageReceiptsJson(outline, page)),
    end: () => "]",
  },
  journal: {
    start: journalStartJson,
    page: (_outline, page) => inPieces(pageJournalJson(page)),
    end: ({ header: { height } }, view, { cosmosTexts, ...own }) =>
      journalEndJson({ ...view.blockChanges(height), ...own }, cosmosTexts),
  },
} as const satisfies Record<string, BlockTexts>;

type Variant = keyof typeof VARIANTS;

/** Which text it is. */
interface AskedText {
  readonly height: Height;
  readonly variant: Variant;
}

/** Part of the byte budget for answers of eth_getLogs. */
const LOG_SHARE = 0.25;

/** Texts that are remembered as too large: a key and a number each. */
const MAX_EXCEEDED = 1_000;

/** Memory that an entry takes beside its bytes. */
const ENTRY_BYTES = 200;

/** What the making of a text waits for. */
interface MakingTurns {
  /** Waits for a place among large texts. @returns gives it back */
  readonly enter: () => Promise<() => void>;
  readonly signal: AbortSignal;
}

/** A text that is on its way, and who waits for it. */
interface Making {
  readonly made: Promise<RawJson | undefined>;
  readonly askers: Askers;
}

/**
 * Blocks, receipts and journals as JSON, cached within a budget of bytes. Of what is larger than an answer
 * may be, no more is made than shows that, and not again for who asks next. All throw RESPONSE_TOO_LARGE.
 */
export class BlockJson {
  private readonly buffers: LRUCache<string, RawJson>;
  private readonly making = new Map<string, Making>();
  /** Bytes than which a text is known to be larger. */
  private readonly exceeded = new LRUCache<string, number>({ max: MAX_EXCEEDED });
  private readonly responseBytes: number;
  /** Of its own: who waits for a block that is being made may have a place in the requests' lane. */
  private readonly lane = new LargeLane();
  /** Indexes that payments wait for are made from these, and do not wait for what strangers look at. */
  private readonly journalLane = new LargeLane();
  /** Answers of eth_getLogs by range and criteria. */
  readonly logAnswers: LRUCache<string, RawJson>;

  /** @param sources what journals hold beside what the view tells */
  constructor(
    private readonly view: ChainView,
    { cacheBytes, responseBytes }: Pick<EvmRpcLimits, "cacheBytes" | "responseBytes">,
    private readonly sources: JournalSources,
  ) {
    this.responseBytes = responseBytes;
    const sizeCalculation = (answer: RawJson, key: string) =>
      answer.content.length + key.length + ENTRY_BYTES;
    const logBytes = Math.floor(cacheBytes * LOG_SHARE);
    this.buffers = new LRUCache({ maxSize: Math.max(cacheBytes - logBytes, 1), sizeCalculation });
    this.logAnswers = new LRUCache({ maxSize: Math.max(logBytes, 1), sizeCalculation });
  }

  /** Block as eth_getBlockBy* gives it; undefined above the head. */
  block(height: Height, full: boolean, asker: Asker): MadeJson {
    return this.cached({ height, variant: full ? "full" : "hashes" }, asker);
  }

  /** All receipts of a block, where they are no more than so many bytes. */
  receipts(height: Height, asker: Asker, maxBytes = this.responseBytes): MadeJson {
    return this.cached({ height, variant: "receipts" }, asker, maxBytes);
  }

  /** The answer of causeway_getBlockJournal. */
  journal(height: Height, asker: Asker): MadeJson {
    return this.cached({ height, variant: "journal" }, asker);
  }

  private cached(text: AskedText, asker: Asker, maxBytes = this.responseBytes): MadeJson {
    const { height, variant } = text;
    const key = `${variant}/${height}`;
    const known = this.buffers.get(key);
    const leastBytes = this.exceeded.get(key) ?? -1;
    if (leastBytes >= maxBytes || (known?.content.length ?? 0) > maxBytes) throw responseTooLarge();
    const bounded = `${key}/${maxBytes}`;
    if (known !== undefined) return known;
    // Whoever asks for the same meanwhile waits for the same; nobody's end stops it for the others.
    const found = this.making.get(bounded);
    found?.askers.add(asker);
    if (found !== undefined) return found.made;
    const askers = new Askers(asker);
    const forget = () => {
      if (this.making.get(bounded)?.askers === askers) this.making.delete(bounded);
    };
    // A journal keeps its place: an index that has lost patience asks again, and is not to be last for it.
    const enter = () =>
      variant === "journal"
        ? askers.enterAnyway(this.journalLane)
        : askers.enter(this.lane, forget);
    // What is being made goes on: who has given it up asks again, and finds it.
    const signal = endlessSignal(ownerOfText(variant, asker));
    const made = this.make(text, maxBytes, { enter, signal })
      .then((answer) => {
        if (answer !== undefined) this.buffers.set(key, answer);
        return answer;
      })
      .catch((error: unknown) => {
        const isTooLarge = errorCode(error) === "RESPONSE_TOO_LARGE";
        if (isTooLarge) this.exceeded.set(key, Math.max(maxBytes, this.exceeded.get(key) ?? 0));
        throw error;
      })
      .finally(forget);
    this.making.set(bounded, { made, askers });
    return made;
  }

  private async make(
    { height, variant }: AskedText,
    maxBytes: number,
    { enter, signal }: MakingTurns,
  ): Promise<RawJson | undefined> {
    const outline = this.view.outline(height);
    if (outline === undefined) return undefined;
    const texts: BlockTexts = VARIANTS[variant];
    const claims = variant === "journal" ? this.sources.claims?.begin(height) : undefined;
    const pieces: Buffer[] = [];
    let sizeBytes = 0;
    const add = (text: string) => {
      const piece = Buffer.from(text);
      sizeBytes += piece.length;
      if (sizeBytes > maxBytes) throw responseTooLarge();
      pieces.push(piece);
    };
    let leave: (() => void) | undefined;
    try {
      add(texts.start(outline));
      for (const page of this.view.pages(height)) {
        if (sizeBytes > LARGE_BYTES) leave ??= await enter();
        if (page.first > 0) add(",");
        if (claims !== undefined) notePage(claims, page);
        for (const text of texts.page(outline, page)) {
          if (text !== undefined) add(text);
          await breathe(signal);
        }
      }
      const cosmosTexts =
        variant === "journal" ? await this.cosmosTexts(claims, outline, signal) : [];
      const moves = claims === undefined ? undefined : await this.claimsOf(claims, height, signal);
      const own = {
        cosmosTexts,
        claims: moves,
        consensusBlockHash: this.sources.consensusBlockHash(height),
      };
      add(texts.end(outline, this.view, own));
      return new RawJson(Buffer.concat(pieces));
    } finally {
      leave?.();
    }
  }

  /** Cosmos transactions, which are noted for the claims as they are come to. */
  private async cosmosTexts(
    claims: BlockClaims | undefined,
    { header: { height }, transactionCount }: BlockOutline,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const cosmosTexts: string[] = [];
    for await (const mined of cosmosOf(this.view, height, signal)) {
      const index = transactionCount + cosmosTexts.length;
      const { code, events } = mined.result;
      claims?.note(index, mined.changes, code === 0 ? events : undefined);
      cosmosTexts.push(cosmosJson(mined, index));
    }
    return cosmosTexts;
  }

  /** The journal of a block is there longer than the state before it. */
  private async claimsOf(
    claims: BlockClaims,
    height: Height,
    signal: AbortSignal,
  ): Promise<JournaledClaims> {
    const { blockChanges, moduleEvents } = this.view.blockChanges(height);
    claims.note(undefined, blockChanges, moduleEvents);
    try {
      return await claims.changes(signal);
    } catch (error) {
      if (errorCode(error) === "HISTORY_PRUNED") return null;
      throw error;
    }
  }
}

/** Whose the making of a text is: journals come before what clients look at (see `journalLane`). */
function ownerOfText(variant: Variant, { client, signal }: Asker): WorkOwner {
  return { client, isOwn: variant === "journal" || ownerOf(signal).isOwn === true };
}

function notePage(claims: BlockClaims, page: BlockPage): void {
  for (const [item, { changes, events }] of page.journal().entries()) {
    claims.note(page.first + item, changes, events);
  }
}

/** Ready, on its way, or undefined for a block that is not there. */
type MadeJson = RawJson | undefined | Promise<RawJson | undefined>;

function pageTransactionsJson(outline: BlockOutline, page: BlockPage): readonly string[] {
  const place = placeOf(outline);
  const texts = page
    .transactions()
    .map((mined, item) => minedTransactionJson(mined, place, page.first + item));
  return [texts.join(",")];
}

/** Texts that are put together before they become bytes. */
const PIECE_CHARACTERS = 32 * 1024;

/** Texts put together; pauses between them are kept. */
function* inPieces(texts: Iterable<string | undefined>): Generator<string | undefined, void> {
  let piece = "";
  for (const text of texts) {
    if (text === undefined) {
      yield;
      continue;
    }
    piece += text;
    if (piece.length < PIECE_CHARACTERS) continue;
    yield piece;
    piece = "";
  }
  yield piece;
}

function* pageReceiptsJson(
  outline: BlockOutline,
  page: BlockPage,
): Generator<string | undefined, void> {
  const place = placeOf(outline);
  // Read before the first pause, in which the block may be pruned.
  const transactions = page.transactions();
  const receipts = yield* page.receiptSteps();
  for (const [item, receipt] of receipts.entries()) {
    const mined = transactions[item];
    if (mined === undefined) throw new Error("a receipt has no transaction");
    if (item > 0) yield ",";
    yield* receiptTexts(mined, receipt, { place, index: page.first + item });
  }
}
