/**
 * The search for logs over a range of blocks. The log index names the pages that have logs of the
 * wanted addresses or first topics; without either, or with too many of them, the blooms say which
 * blocks to look through. In a page each log is compared as it is stored, and only those that match
 * are decoded and encoded. A result count over the limit is an error, never a silent cut (D16).
 */
import { addressToBytes } from "../../../chain/address.js";
import { type Height, hexToBytes } from "../../../chain/hex.js";
import { breathe } from "../../../runtime/process/main-thread.js";
import type { ChainView, LogTerm, LogTest, PlacedLog } from "../../view/chain-view.js";
import { logJson, placeOf } from "../../view/evm-json.js";
import type { BlockJson } from "./json/block-json.js";
import { invalidParams, RpcFault } from "./errors.js";
import type { LogPosition } from "./filters.js";
import { LARGE_BYTES } from "./large-lane.js";
import { type HeightRange, type LogCriteria, mayContain } from "./log-filter.js";
import { type CallContext, RawJson } from "./method.js";

/** Terms that one search looks up; with more of them the blooms are the shorter way. */
const MAX_TERMS = 32;

/** Heights whose pages are gathered at once: bounds the memory of a search with many terms. */
const HEIGHTS_AT_ONCE = 1_000;

/** Hex digits of a byte. */
const HEX_DIGITS = 2;

/** Logs whose texts are turned into bytes at a stretch. */
const LOGS_PER_PIECE = 256;

/** Bounds and cancellation of one search. */
export interface SearchOptions {
  readonly maxResults: number;
  readonly maxBytes: number;
  /**
   * Whether the first block is given in full where it exceeds a bound alone. Otherwise the search is
   * over as soon as it is known to.
   */
  readonly isFirstWhole: boolean;
  readonly signal: AbortSignal;
  /** Awaited when more than `LARGE_BYTES` are found. */
  readonly becameLarge: CallContext["becameLarge"];
}

/** What a search found. */
export interface SearchResult {
  /** Logs as JSON texts, in order. */
  readonly logs: readonly string[];
  /** Height to go on from when the search stopped early. */
  readonly next: Height | undefined;
  /** Which bound was met. */
  readonly exceeded: "results" | "bytes" | undefined;
}

/**
 * Matching logs of a range. Stops before the block that would exceed a bound and says so; only
 * when the first block of the range alone exceeds it, that block may be given in full. What cannot
 * be given is looked at no further than it takes to say which bound is met, and nothing is made of it.
 * @throws the signal's reason
 */
export async function searchLogs(
  view: ChainView,
  criteria: LogCriteria,
  range: HeightRange,
  options: SearchOptions,
): Promise<SearchResult> {
  const { maxResults, maxBytes, isFirstWhole, signal } = options;
  const isWanted = logTest(criteria);
  const found: string[] = [];
  const size: SearchSize = { logs: 0, bytes: 0, isLarge: false };
  let exceeded: SearchResult["exceeded"];
  for await (const { height, starts } of candidates(view, criteria, range, signal)) {
    const isWhole = isFirstWhole && height === range.from;
    const logsBefore = size.logs;
    const hits: string[] = [];
    for (const start of starts) {
      await breathe(signal);
      const most = isWhole ? Number.MAX_SAFE_INTEGER : Math.max(maxResults - size.logs, 0) + 1;
      const page = { view, height, start, isWanted, most };
      const matches: PlacedLog[] = [];
      await findMatches(page, matches, signal);
      size.logs += matches.length;
      if (!isWhole && size.logs > maxResults) break;
      for await (const text of pageTexts(page, matches, options, size)) {
        if (!isWhole && size.bytes > maxBytes) break;
        hits.push(text);
      }
    }
    if (size.logs > maxResults) exceeded = "results";
    else if (size.bytes > maxBytes) exceeded = "bytes";
    // With the bytes of the first block alone, the next one may still exceed the other bound.
    const isKnown = !isWhole && exceeded === "results";
    const isNext = height !== range.from && size.logs > logsBefore;
    if (exceeded !== undefined && (isKnown || isNext))
      return { logs: found, next: height, exceeded };
    for (const hit of hits) found.push(hit);
  }
  return { logs: found, next: undefined, exceeded };
}

/**
 * Matching logs from a position on, in order: as many as the bounds allow, which they may exceed by one, so
 * that a block is given in parts however much is in it.
 * @param to the last height that is looked at
 * @returns with the position to go on from
 * @throws the signal's reason
 */
export async function logsFrom(
  view: ChainView,
  criteria: LogCriteria,
  { from, to }: { readonly from: LogPosition; readonly to: Height },
  options: Omit<SearchOptions, "isFirstWhole">,
): Promise<{ readonly logs: readonly string[]; readonly next: LogPosition }> {
  const { maxResults, maxBytes, signal } = options;
  const isWanted = logTest(criteria);
  const logs: string[] = [];
  const size: SearchSize = { logs: 0, bytes: 0, isLarge: false };
  const range = { from: from.height, to };
  for await (const { height, starts } of candidates(view, criteria, range, signal)) {
    const given = height === from.height ? from.given : 0;
    let before = 0;
    for (const start of starts) {
      await breathe(signal);
      const page = { view, height, start, isWanted, most: Number.MAX_SAFE_INTEGER };
      const matches: PlacedLog[] = [];
      await findMatches(page, matches, signal);
      const behind = before + matches.length;
      let place = Math.min(Math.max(given, before), behind);
      for await (const text of pageTexts(page, matches, options, size, place - before)) {
        logs.push(text);
        place += 1;
        const isFull = logs.length >= maxResults || size.bytes >= maxBytes;
        if (isFull) return { logs, next: { height, given: place } };
      }
      before = behind;
    }
  }
  return { logs, next: { height: to + 1, given: 0 } };
}

/** How much a search has found so far. */
interface SearchSize {
  logs: number;
  /** Bytes of the texts that were made of these logs. */
  bytes: number;
  /** It has its place among the large ones. */
  isLarge: boolean;
}

/** A page of a block, and what is looked for in it. */
interface SearchedPage {
  readonly view: ChainView;
  readonly height: Height;
  readonly start: number;
  readonly isWanted: LogTest;
  /** So many matches are looked for. */
  readonly most: number;
}

/** Adds the matching logs of one page, as they are stored, to those that are there. */
async function findMatches(
  { view, height, start, isWanted, most }: SearchedPage,
  matches: PlacedLog[],
  signal: AbortSignal,
): Promise<void> {
  for (const match of view.pageLogs(height, start, isWanted)) {
    if (match === undefined) await breathe(signal);
    else if (matches.push(match) >= most) return;
  }
}

/**
 * Matching logs of one page as JSON texts. A page may hold tens of megabytes: it is let go of while
 * a large answer waits for its place, and read again.
 * @param matches what `findMatches` found; emptied meanwhile
 * @param size counts what is given
 * @param first place of the match that the texts begin with
 */
async function* pageTexts(
  page: SearchedPage,
  matches: PlacedLog[],
  { becameLarge, signal }: Pick<SearchOptions, "becameLarge" | "signal">,
  size: SearchSize,
  first = 0,
): AsyncGenerator<string> {
  const { view, height } = page;
  const outline = view.outline(height);
  if (outline === undefined) throw new Error(`block ${height} is missing`);
  const place = placeOf(outline);
  for (let index = first; index < matches.length; index++) {
    const nextBytes = () => HEX_DIGITS * (matches[index]?.log.data.length ?? 0);
    if (!size.isLarge && size.bytes + nextBytes() > LARGE_BYTES) {
      matches.length = 0;
      await becameLarge();
      size.isLarge = true;
      await findMatches(page, matches, signal);
    }
    const placed = matches[index];
    if (placed === undefined) throw new RangeError(`the page has no log ${index} any more`);
    const { log, logIndex, transactionIndex, transactionHash } = placed;
    const text = logJson(log, { logIndex, transactionIndex, transactionHash, place });
    size.bytes += text.length + 1;
    yield text;
    await breathe(signal);
  }
}

/** A block that may have matching logs, and the pages in which they can be. */
interface Candidate {
  readonly height: Height;
  readonly starts: readonly number[];
}

async function* candidates(
  view: ChainView,
  criteria: LogCriteria,
  range: HeightRange,
  signal: AbortSignal,
): AsyncGenerator<Candidate> {
  const terms = termsOf(criteria);
  if (terms === undefined) {
    for await (const { height, bloom } of view.blooms(range.from, range.to)) {
      await breathe(signal);
      if (mayContain(criteria, bloom)) yield { height, starts: view.pageStarts(height) };
    }
    return;
  }
  for (let from = range.from; from <= range.to; from += HEIGHTS_AT_ONCE) {
    const to = Math.min(from + HEIGHTS_AT_ONCE - 1, range.to);
    const pages = new Map<Height, Set<number>>();
    for (const term of terms) {
      for await (const { height, starts } of view.logPages(term, from, to)) {
        await breathe(signal);
        const known = pages.get(height) ?? new Set();
        pages.set(height, known);
        for (const start of starts) known.add(start);
      }
    }
    const ascending = (left: number, right: number) => left - right;
    for (const height of [...pages.keys()].toSorted(ascending)) {
      yield { height, starts: [...(pages.get(height) ?? [])].toSorted(ascending) };
    }
  }
}

/** What to look up in the index; undefined where it cannot help. */
function termsOf({ addresses, topics }: LogCriteria): readonly LogTerm[] | undefined {
  const [firstTopics] = topics;
  if (addresses !== undefined && firstTopics !== undefined) {
    if (addresses.size * firstTopics.size <= MAX_TERMS) {
      return [...addresses].flatMap((address) =>
        [...firstTopics].map((topic) => ({ address, topic })),
      );
    }
  }
  if (addresses !== undefined && addresses.size <= MAX_TERMS) {
    return [...addresses].map((address) => ({ address }));
  }
  if (firstTopics === undefined || firstTopics.size > MAX_TERMS) return undefined;
  return [...firstTopics].map((topic) => ({ topic }));
}

/** The criteria as a test of what is stored. */
function logTest({ addresses, topics }: LogCriteria): LogTest {
  const wantedAddress = addresses && bytesTest([...addresses].map(addressToBytes));
  const wantedTopics = topics.map((set) => set && bytesTest([...set].map(hexToBytes)));
  return (address, words) => {
    if (wantedAddress !== undefined && !wantedAddress(address)) return false;
    // A log with fewer topics than asked for does not match, whatever these may be.
    if (wantedTopics.length > words.length) return false;
    return wantedTopics.every((isWanted, position) => {
      const word = words[position];
      return isWanted === undefined || (word !== undefined && isWanted(word));
    });
  };
}

function bytesTest(alternatives: readonly Uint8Array[]): (bytes: Uint8Array) => boolean {
  const [only] = alternatives;
  if (only !== undefined && alternatives.length === 1) {
    return (bytes) => Buffer.compare(bytes, only) === 0;
  }
  const known = new Set(alternatives.map(byteText));
  return (bytes) => known.has(byteText(bytes));
}

function byteText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
}

/**
 * All matching logs of a range, or the error that a bound was met. Committed blocks never change,
 * so many clients that follow the same contract share one serialised answer.
 * @throws INVALID_PARAMS, RESPONSE_TOO_LARGE
 */
export async function getLogs(
  view: ChainView,
  json: BlockJson,
  criteria: LogCriteria,
  range: HeightRange,
  options: SearchOptions,
): Promise<RawJson> {
  const key = `${range.from}-${range.to}-${criteria.key}`;
  const known = json.logAnswers.get(key);
  if (known !== undefined) return known;
  const { logs, exceeded } = await searchLogs(view, criteria, range, options);
  if (exceeded !== undefined) throw tooMuch(exceeded, range, options.maxResults);
  const answer = await joinLogs(logs, options.signal);
  json.logAnswers.set(key, answer);
  return answer;
}

/**
 * The refusal of what has too much. Indexers ask for fewer blocks where they are told so in words that they
 * know, as graph-node and Ponder do these. No range is named that is answered: Ponder would keep to its
 * length for ever.
 */
function tooMuch(
  exceeded: "results" | "bytes",
  { from, to }: HeightRange,
  maxResults: number,
): RpcFault {
  const hint = from < to ? ": block range too large" : "";
  return exceeded === "results"
    ? invalidParams(`query returned more than ${maxResults} results${hint}`)
    : new RpcFault("RESPONSE_TOO_LARGE", `response too large${hint}`);
}

/**
 * Logs as one JSON array.
 * @throws the signal's reason
 */
export async function joinLogs(logs: readonly string[], signal: AbortSignal): Promise<RawJson> {
  const pieces = [Buffer.from("[")];
  for (let start = 0; start < logs.length; start += LOGS_PER_PIECE) {
    const text = logs.slice(start, start + LOGS_PER_PIECE).join(",");
    pieces.push(Buffer.from(start === 0 ? text : `,${text}`));
    await breathe(signal);
  }
  pieces.push(Buffer.from("]"));
  return new RawJson(Buffer.concat(pieces));
}
