/**
 * Headers and validators from before a restored height, down to where no evidence counts any more:
 * each header is proven by the hash in the one above it.
 */
import type { ConsensusHeader } from "../../chain/consensus/consensus-header.js";
import { type DuplicateVoteEvidence, hashEvidenceList } from "../../chain/consensus/evidence.js";
import { LightError } from "../../chain/consensus/light.js";
import type { ValidatorSet } from "../../chain/consensus/validator-set.js";
import { errorMessage } from "../../chain/errors.js";
import type { Height } from "../../chain/hex.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { Logger } from "../../runtime/process/logger.js";
import { retry } from "../../runtime/process/task.js";
import { fromAny, headersBelow, headersOfAny } from "./light/light-client.js";
import { HEADERS_PER_PAGE } from "./light/light-json.js";
import type { LightProvider } from "./light/light-rpc.js";
import type { Backfill } from "./statesync-ports.js";

/** How far back double signing is punished; evidence is too old only by both. */
export interface EvidenceWindow {
  readonly maxAgeBlocks: number;
  readonly maxAgeNs: bigint;
}

/** What is needed to look back. */
export interface BackfillOptions {
  readonly providers: readonly LightProvider[];
  readonly window: EvidenceWindow;
  readonly clock: Clock;
  readonly log: Logger;
}

/** BLOCKHASH reaches 256 blocks back, and the hash of one is in the header of the next. */
const MIN_HEADERS = 257;

/** Pages asked for at once: the way to a server is longer than its work. */
const PAGES_AT_ONCE = 4;

/** Tries of a page or a set of validators, and the pauses between them. */
const PAGE_RETRY = { attempts: 3, minDelayMs: 500, maxDelayMs: 2_000 };

/** How often progress is logged. */
const LOG_INTERVAL_MS = 10_000;

/**
 * Everything before a verified header that a node must know.
 * @param top header of the restored height
 * @throws LIGHT_INVALID, SERVER_UNAVAILABLE, SERVER_ANSWER_INVALID, or the signal's reason
 */
export async function fetchBackfill(
  top: ConsensusHeader,
  options: BackfillOptions,
  signal: AbortSignal,
): Promise<Backfill> {
  const { providers, window, clock, log } = options;
  const headers: ConsensusHeader[] = [];
  const sets: { height: Height; validators: ValidatorSet }[] = [];
  const evidence: DuplicateVoteEvidence[] = [];
  let above = top;
  let loggedAtMs = clock.monotonicMs();
  while (above.height > 1 && !isEnough(top, above, window)) {
    const ranges = nextRanges(above.height - 1);
    const pages = await Promise.all(
      ranges.map(async (range, turn) => {
        return { range, headers: await fetchPage(turned(providers, turn), range, signal) };
      }),
    );
    for (const header of await provenHeaders(above, pages, options, signal)) {
      if (headers.length === 0 || header.validatorsHash !== above.validatorsHash) {
        sets.push({ height: header.height, validators: await setOf(header, options, signal) });
      }
      evidence.push(...(await evidenceOf(header, options, signal)));
      headers.push(header);
      above = header;
      if (isEnough(top, above, window)) break;
    }
    if (clock.monotonicMs() - loggedAtMs < LOG_INTERVAL_MS) continue;
    loggedAtMs = clock.monotonicMs();
    log.info({ headers: headers.length, height: above.height }, "state sync reads headers");
  }
  return { headers, sets, evidence };
}

const NO_EVIDENCE = hashEvidenceList([]);

/**
 * Evidence in the block of a proven header; blocks hardly ever have some. Where no server has the block any
 * more this is said, and goes on: who signed twice is out for ever by the state, and all that is missing is
 * the refusal of a block that holds the same piece once more.
 */
async function evidenceOf(
  header: ConsensusHeader,
  { providers, log }: BackfillOptions,
  signal: AbortSignal,
): Promise<readonly DuplicateVoteEvidence[]> {
  const { height, evidenceHash } = header;
  if (evidenceHash === NO_EVIDENCE) return [];
  const ask = async (provider: LightProvider) => {
    const { evidence } = await provider.blockExtras(height, signal);
    if (hashEvidenceList(evidence) === evidenceHash) return evidence;
    throw new LightError("LIGHT_INVALID", `server ${provider.name} lists other evidence`, {
      details: { height },
    });
  };
  try {
    return await fromAny(providers, ask, signal);
  } catch (error) {
    signal.throwIfAborted();
    const reason = errorMessage(error);
    log.warn({ height, reason }, "no server shows a block's evidence of double signing");
    return [];
  }
}

/** Whether nothing older can matter. */
function isEnough(top: ConsensusHeader, lowest: ConsensusHeader, window: EvidenceWindow): boolean {
  const ageBlocks = top.height - lowest.height;
  const isOld = ageBlocks > window.maxAgeBlocks && top.timeNs - lowest.timeNs > window.maxAgeNs;
  return isOld && ageBlocks >= MIN_HEADERS;
}

/** Headers of some neighbouring heights, downwards. */
interface Range {
  readonly from: Height;
  readonly to: Height;
}

/** What some server gave for a range. */
interface Page {
  readonly range: Range;
  readonly headers: readonly ConsensusHeader[];
}

/**
 * The headers of pages below a proven one. A page that does not lead down is asked for anew, of all
 * servers.
 */
async function provenHeaders(
  above: ConsensusHeader,
  pages: readonly Page[],
  { providers }: BackfillOptions,
  signal: AbortSignal,
): Promise<readonly ConsensusHeader[]> {
  const proven: ConsensusHeader[] = [];
  for (const { range, headers } of pages) {
    const servers = [{ headers: async () => headers }, ...providers];
    const lowest = proven.at(-1) ?? above;
    const ask = () => headersBelow(servers, lowest, range, signal);
    proven.push(...(await retry(ask, { ...PAGE_RETRY, signal })));
  }
  return proven;
}

/** One page; hours of headers must not be fetched anew because servers were busy for a moment. */
function fetchPage(
  providers: readonly LightProvider[],
  range: Range,
  signal: AbortSignal,
): Promise<readonly ConsensusHeader[]> {
  return retry(() => headersOfAny(providers, range, signal), { ...PAGE_RETRY, signal });
}

/** Another server first in each turn: the work is shared, and hashes prove what comes. */
function turned(providers: readonly LightProvider[], turn: number): readonly LightProvider[] {
  const at = turn % providers.length;
  return [...providers.slice(at), ...providers.slice(0, at)];
}

/** The next pages downwards from a height. */
function nextRanges(from: Height): Range[] {
  const ranges: Range[] = [];
  for (let top = from; top >= 1 && ranges.length < PAGES_AT_ONCE; top -= HEADERS_PER_PAGE) {
    ranges.push({ from: top, to: Math.max(1, top - HEADERS_PER_PAGE + 1) });
  }
  return ranges;
}

/** The validators of a proven header, from whichever server has the right ones; tried again as a page is. */
function setOf(
  header: ConsensusHeader,
  { providers }: BackfillOptions,
  signal: AbortSignal,
): Promise<ValidatorSet> {
  const ask = async (provider: LightProvider) => {
    const set = await provider.validators(header.height, signal);
    if (set.hash() === header.validatorsHash) return set;
    throw new LightError("LIGHT_INVALID", `server ${provider.name} lists other validators`, {
      details: { height: header.height },
    });
  };
  return retry(() => fromAny(providers, ask, signal), { ...PAGE_RETRY, signal });
}
