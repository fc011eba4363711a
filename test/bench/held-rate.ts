/**
 * Whether a chain holds a rate: transactions are sent on a fixed schedule while its blocks are
 * watched from outside. Pure judgement here; sending is in `transfer-trial.ts`.
 */

/** Transactions that were accepted together. */
export interface Accepted {
  readonly atMs: number;
  readonly count: number;
}

/** A block as an outside observer saw it. */
export interface SeenBlock {
  readonly height: number;
  /** When it was first served. */
  readonly atMs: number;
  readonly transactions: number;
}

/** What a trial observed; times in milliseconds of one clock. */
export interface TrialRecord {
  readonly wantedPerSecond: number;
  readonly startMs: number;
  readonly accepted: readonly Accepted[];
  /** Blocks from the first after the start until everything was mined or time ran out. */
  readonly blocks: readonly SeenBlock[];
  readonly refused: number;
  readonly intervalMs: number;
}

/** The outcome of a trial. */
export interface TrialVerdict {
  readonly held: boolean;
  /** Why not, for people; empty when held. */
  readonly reason: string;
  readonly sentPerSecond: number;
  readonly meanIntervalMs: number;
  /** Time from acceptance to a block that holds it, first in first out. */
  readonly inclusionP50Ms: number;
  readonly inclusionP99Ms: number;
}

/** Blocks may be this much off their interval in the mean. */
const INTERVAL_TOLERANCE = 0.1;

/** A sender that gets less than this share of its schedule through was pushed back. */
const LEAST_SHARE_SENT = 0.95;

/** Blocks under load that hold less than this share of the rate leave a backlog that grows. */
const LEAST_SHARE_MINED = 0.93;

/** Blocks within which everything that was accepted has to be mined. */
const BLOCKS_TO_MINE = 2;

/** Judges a trial. */
export function judgeTrial(record: TrialRecord): TrialVerdict {
  const { accepted, blocks, startMs } = record;
  const total = sum(accepted.map(({ count }) => count));
  const mined = sum(blocks.map(({ transactions }) => transactions));
  const lastMs = accepted.at(-1)?.atMs ?? startMs;
  const sentPerSecond = total / Math.max(0.001, (lastMs - startMs) / 1_000);
  const fullCount = (record.wantedPerSecond * record.intervalMs) / 1_000;
  const meanIntervalMs = meanInterval(blocks, fullCount);
  const off = Math.abs(meanIntervalMs - record.intervalMs) / record.intervalMs;
  const backlog = worstBacklog(accepted, blocks);
  const limits = { untilMs: lastMs, intervalMs: record.intervalMs };
  const minedShare = minedPerSecond(blocks, limits) / Math.max(1, record.wantedPerSecond);
  const reasons = [
    record.refused > 0 ? `${record.refused} refused` : "",
    sentPerSecond < record.wantedPerSecond * LEAST_SHARE_SENT
      ? `only ${Math.round(sentPerSecond)}/s accepted`
      : "",
    mined < total ? `${total - mined} not mined` : "",
    backlog > 0 ? `${backlog} not mined within ${BLOCKS_TO_MINE} blocks` : "",
    minedShare < LEAST_SHARE_MINED ? "the backlog grows" : "",
    off > INTERVAL_TOLERANCE ? `blocks every ${Math.round(meanIntervalMs)} ms` : "",
  ].filter((reason) => reason !== "");
  return {
    held: reasons.length === 0,
    reason: reasons.join(", "),
    sentPerSecond,
    meanIntervalMs,
    ...inclusionTimes(accepted, blocks),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/**
 * Between blocks under load, where there are two: the mark before them is an empty block, which is
 * made in no time, and would count the making of the last one as stretching; the last ones take
 * what is left, and would hide some of it.
 */
function meanInterval(blocks: readonly SeenBlock[], fullCount: number): number {
  let count = blocks.length;
  while (count > 3 && (blocks[count - 1]?.transactions ?? 0) < fullCount / 2) count -= 1;
  const [first, last] = [blocks[count > 2 ? 1 : 0], blocks[count - 1]];
  if (first === undefined || last === undefined || last.height === first.height) return 0;
  return (last.atMs - first.atMs) / (last.height - first.height);
}

/**
 * Rate of the blocks under load, without the first, which lost the time of its own making. By the
 * nominal interval: when a block is seen varies on a busy machine, and stretching is judged apart.
 */
function minedPerSecond(blocks: readonly SeenBlock[], limits: MinedLimits): number {
  const loaded = blocks.filter(({ atMs }) => atMs <= limits.untilMs).slice(2);
  if (loaded.length === 0) return Number.POSITIVE_INFINITY;
  const count = sum(loaded.map(({ transactions }) => transactions));
  return count / ((loaded.length * limits.intervalMs) / 1_000);
}

interface MinedLimits {
  readonly untilMs: number;
  readonly intervalMs: number;
}

/** Most transactions that were accepted before a block was seen and not mined two blocks later. */
function worstBacklog(accepted: readonly Accepted[], blocks: readonly SeenBlock[]): number {
  let worst = 0;
  let mined = 0;
  for (const [index, block] of blocks.entries()) {
    mined += block.transactions;
    const reference = blocks[index - BLOCKS_TO_MINE];
    if (reference === undefined) continue;
    const due = sum(
      accepted.filter(({ atMs }) => atMs <= reference.atMs).map(({ count }) => count),
    );
    worst = Math.max(worst, due - mined);
  }
  return worst;
}

function inclusionTimes(accepted: readonly Accepted[], blocks: readonly SeenBlock[]) {
  const waits: { ms: number; count: number }[] = [];
  const queue = accepted.map(({ atMs, count }) => ({ atMs, left: count }));
  let first = 0;
  for (const block of blocks) {
    let room = block.transactions;
    for (let next = queue[first]; next !== undefined && room > 0; next = queue[first]) {
      const count = Math.min(room, next.left);
      waits.push({ ms: Math.max(0, block.atMs - next.atMs), count });
      next.left -= count;
      room -= count;
      if (next.left === 0) first += 1;
    }
  }
  waits.sort((left, right) => left.ms - right.ms);
  const all = sum(waits.map(({ count }) => count));
  const at = (share: number) => {
    let seen = 0;
    return waits.find(({ count }) => (seen += count) >= all * share)?.ms ?? 0;
  };
  return { inclusionP50Ms: at(0.5), inclusionP99Ms: at(0.99) };
}

/** The next rate to try, from what held and what did not; undefined when they are close. */
export class RateSearch {
  private highestHeld = 0;
  private lowestFailed = Number.POSITIVE_INFINITY;

  constructor(private readonly firstPerSecond: number) {}

  /** Steps while one side is still open; down in larger ones, to have something that holds. */
  private static readonly STEP_UP = 1.3;
  private static readonly STEP_DOWN = 1.6;

  /** Held and failed rates closer than this count as one. */
  private static readonly CLOSE_ENOUGH = 1.04;

  /** The highest rate that held; 0 when none did. */
  get held(): number {
    return this.highestHeld;
  }

  /** Takes the outcome of a trial. */
  learn(perSecond: number, held: boolean): void {
    if (held) this.highestHeld = Math.max(this.highestHeld, perSecond);
    else this.lowestFailed = Math.min(this.lowestFailed, perSecond);
  }

  /** Transactions per second to try next. */
  next(): number | undefined {
    const { highestHeld: low, lowestFailed: high } = this;
    if (low === 0 && high === Number.POSITIVE_INFINITY) return Math.round(this.firstPerSecond);
    if (high === Number.POSITIVE_INFINITY) return Math.round(low * RateSearch.STEP_UP);
    if (low === 0) return Math.round(high / RateSearch.STEP_DOWN);
    if (high / low < RateSearch.CLOSE_ENOUGH) return undefined;
    return Math.round(Math.sqrt(low * high));
  }
}
