/** Sends signed transactions to a chain, at once or on a schedule, and watches its blocks. */
import { type Accepted, judgeTrial, RateSearch, type SeenBlock } from "./held-rate.js";
import type { TrialVerdict } from "./held-rate.js";
import type { ChainTarget } from "./targets/chain-target.js";
import { LoadConnection } from "./http-load.js";
import { type Batch, createBatches, createSenders, type Payment, type Sender } from "./senders.js";
import { ETHEREUM_WIRE, type Question, type Wire } from "./wires.js";
import type { Turns } from "./turns.js";

/** Connections to each node of a network: one waits while the other is answered. */
const CONNECTIONS_PER_NODE = 2;

/** Senders of one trial; each trial has fresh ones, so that a failed one leaves no nonce gaps. */
export const SENDERS_PER_TRIAL = 200;

/** Fresh senders for so many trials. */
export function senderGroups(count: number, label: string): Sender[][] {
  const senders = createSenders(count * SENDERS_PER_TRIAL, label);
  return Array.from({ length: count }, (_, group) =>
    senders.slice(group * SENDERS_PER_TRIAL, (group + 1) * SENDERS_PER_TRIAL),
  );
}

/** Time between two looks at the head. */
const POLL_MS = 20;

/** Block interval of both chains. */
const INTERVAL_MS = 2_000;

/** Longest wait for what was sent to be mined. */
const DRAIN_TIMEOUT_MS = 60_000;

/** Transactions of the burst that finds where to start the search. */
const BURST_COUNT = 20_000;

/**
 * Trials beyond the plan while no rate has held: a burst may be accepted several times as fast as
 * any rate can be held, and the search begins at the burst.
 */
const TRIALS_TO_FIND_ONE = 6;

/** Blocks of the trial that does not count. */
const WARM_UP_BLOCKS = 6;

/** Most trials of a search. */
export function maxTrials(trials: number): number {
  return trials + TRIALS_TO_FIND_ONE;
}

/** What a row's trials have in common. */
export interface TrialPlan {
  readonly target: ChainTarget;
  /** A trial is one turn. */
  readonly turns: Turns;
  /** Fresh senders for each trial. */
  readonly senders: () => readonly Sender[];
  readonly payment: (index: number, sender: Sender) => Payment;
  /** How transactions go in and blocks are seen; Ethereum's JSON-RPC when absent. */
  readonly wire?: Wire;
  readonly blocksPerTrial: number;
  readonly trials: number;
  /** Rate that the chain's rules allow at most, where they are what bounds it. */
  readonly ceilingPerSecond?: number;
  /** Where the search begins; without it a burst finds that out. */
  readonly firstPerSecond?: number;
  /** Rate of a trial before all others that does not count: V8 compiles in the first blocks. */
  readonly warmUpPerSecond?: number;
  /** Told when a trial's transactions are signed and the first is about to be sent. */
  readonly onStart?: () => void;
  /** Told when a trial is the best so far, while what it left is still there to be read. */
  readonly onBest?: () => void;
  readonly say: (line: string) => void;
}

/** The highest rate that held, with the figures at that rate. */
export interface HeldResult {
  readonly perSecond: number;
  readonly verdict: TrialVerdict | undefined;
  /** Processor time of the server for each transaction at that rate, microseconds. */
  readonly cpuMicroseconds: number | undefined;
  /** Undefined where the search began without one. */
  readonly burstPerSecond: number | undefined;
  /** Rate that the chain's rules allow at most, as the plan has it. */
  readonly ceilingPerSecond: number | undefined;
  /** Blocks of the trial at that rate. */
  readonly blocks: readonly SeenBlock[];
}

/** Finds the highest rate that a chain holds. */
export async function findHeldRate(plan: TrialPlan): Promise<HeldResult> {
  const { say, target, warmUpPerSecond } = plan;
  if (warmUpPerSecond !== undefined) {
    await plan.turns.take(() =>
      runTrial({ ...plan, blocksPerTrial: WARM_UP_BLOCKS }, warmUpPerSecond),
    );
  }
  const burstPerSecond = plan.firstPerSecond === undefined ? await runBurst(plan) : undefined;
  const first = plan.firstPerSecond ?? (burstPerSecond ?? 0) * 0.8;
  const ceiling = plan.ceilingPerSecond ?? Number.POSITIVE_INFINITY;
  const search = new RateSearch(Math.min(first, ceiling * 0.95));
  let best: Trial | undefined;
  for (let trial = 0; trial < maxTrials(plan.trials); trial += 1) {
    // Beyond the plan only to have a rate that holds at all, and one step closer to the limit.
    if (trial > plan.trials && search.held > 0) break;
    const perSecond = search.next();
    if (perSecond === undefined || perSecond > ceiling * 1.5) break;
    const outcome = await plan.turns.take(() => runTrial(plan, perSecond));
    search.learn(perSecond, outcome.verdict.held);
    if (outcome.verdict.held && perSecond >= search.held) {
      best = outcome;
      plan.onBest?.();
    }
    const { held, reason } = outcome.verdict;
    say(`${target.name}: ${perSecond}/s ${held ? "held" : `not held: ${reason}`}`);
  }
  return {
    perSecond: search.held,
    verdict: best?.verdict,
    cpuMicroseconds: best?.cpuMicroseconds,
    burstPerSecond,
    ceilingPerSecond: plan.ceilingPerSecond,
    blocks: best?.blocks ?? [],
  };
}

/** How fast transactions are accepted when they all come at once. */
async function runBurst(plan: TrialPlan): Promise<number> {
  const { verdict } = await plan.turns.take(() => runTrial(plan, undefined));
  plan.say(`${plan.target.name}: a burst is accepted at ${Math.round(verdict.sentPerSecond)}/s`);
  return verdict.sentPerSecond;
}

interface Trial {
  readonly verdict: TrialVerdict;
  readonly cpuMicroseconds: number | undefined;
  readonly blocks: readonly SeenBlock[];
}

/** One trial at a rate, or without one as fast as the server takes them. */
async function runTrial(plan: TrialPlan, perSecond: number | undefined): Promise<Trial> {
  const { target, wire = ETHEREUM_WIRE } = plan;
  const seconds = (plan.blocksPerTrial * INTERVAL_MS) / 1_000;
  const ceiling = (plan.ceilingPerSecond ?? Number.POSITIVE_INFINITY) * seconds;
  const count = Math.ceil(
    perSecond === undefined ? Math.min(BURST_COUNT, ceiling) : perSecond * seconds,
  );
  const urls = target.urls ?? [target.url];
  const lanes = createBatches({
    url: target.url,
    senders: plan.senders(),
    count,
    wire,
    connections: Math.max(wire.connections, urls.length * CONNECTIONS_PER_NODE),
    payment: plan.payment,
  });
  const observer = new BlockObserver(target.url, wire);
  try {
    await observer.nextBlock();
    const cpuBefore = target.process.cpuSeconds();
    plan.onStart?.();
    const startMs = performance.now();
    const { accepted, refused } = await sendLanes(urls, lanes, { startMs, perSecond, wire });
    const total = accepted.reduce((sum, one) => sum + one.count, 0);
    await observer.drained(total);
    const cpuAfter = target.process.cpuSeconds();
    const blocks = observer.blocks;
    const wantedPerSecond = perSecond ?? 0;
    const record = {
      wantedPerSecond,
      startMs,
      accepted,
      blocks,
      refused,
      intervalMs: INTERVAL_MS,
    };
    const cpu =
      cpuBefore === undefined || cpuAfter === undefined ? undefined : cpuAfter - cpuBefore;
    return {
      verdict: judgeTrial(record),
      cpuMicroseconds: cpu === undefined ? undefined : (cpu * 1e6) / Math.max(1, total),
      blocks,
    };
  } finally {
    await observer.close();
  }
}

interface Schedule {
  readonly startMs: number;
  /** Undefined: no waiting between batches. */
  readonly perSecond: number | undefined;
  readonly wire: Wire;
}

async function sendLanes(
  urls: readonly string[],
  lanes: readonly (readonly Batch[])[],
  { startMs, perSecond, wire }: Schedule,
): Promise<{ accepted: Accepted[]; refused: number }> {
  const accepted: Accepted[] = [];
  let refused = 0;
  const sendLane = async (batches: readonly Batch[], lane: number) => {
    const connection = new LoadConnection(urls[lane % urls.length] ?? "");
    try {
      for (const [turn, { bytes, count }] of batches.entries()) {
        if (perSecond !== undefined) {
          const place = (turn * lanes.length + lane) * wire.batchSize;
          await waitUntil(startMs + (place / perSecond) * 1_000);
        }
        const answer = await connection.send(bytes, { wantsBody: true });
        const errors = wire.refusals(answer.body.toString("latin1"));
        refused += errors;
        accepted.push({ atMs: performance.now(), count: count - errors });
      }
    } finally {
      connection.close();
    }
  };
  await Promise.all(lanes.map(sendLane));
  return { accepted: accepted.toSorted((left, right) => left.atMs - right.atMs), refused };
}

async function waitUntil(atMs: number): Promise<void> {
  const delayMs = atMs - performance.now();
  if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
}

/** Looks at the head all the time and remembers when each block was first served. */
class BlockObserver {
  readonly blocks: SeenBlock[] = [];
  private readonly connection: LoadConnection;
  private readonly loop: Promise<void>;
  private isClosed = false;
  private mined = 0;
  private fault: unknown;

  constructor(
    private readonly url: string,
    private readonly wire: Wire,
  ) {
    this.connection = new LoadConnection(url);
    this.loop = this.run().catch((error: unknown) => {
      this.fault = error;
    });
  }

  /** Resolves at the next new block, which is forgotten: what is sent now comes after it. */
  async nextBlock(): Promise<void> {
    const known = this.blocks.length;
    await this.wait(() => this.blocks.length > known);
    this.blocks.splice(0, this.blocks.length - 1);
    this.mined = 0;
    const [last] = this.blocks;
    // The block stays as the mark of the first interval, without what it holds.
    if (last !== undefined) this.blocks[0] = { ...last, transactions: 0 };
  }

  /** Resolves when this many transactions are mined, or when time has run out. */
  async drained(count: number): Promise<void> {
    const deadlineMs = performance.now() + DRAIN_TIMEOUT_MS;
    await this.wait(() => this.mined >= count || performance.now() > deadlineMs);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.loop;
    this.connection.close();
  }

  private async wait(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.fault !== undefined) throw this.fault;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  private async run(): Promise<void> {
    const head = this.wire.head(this.url);
    let known = await this.number(head);
    while (!this.isClosed) {
      const height = await this.number(head);
      const atMs = performance.now();
      for (let next = known + 1; next <= height; next += 1) {
        const transactions = await this.number(this.wire.count(this.url, next));
        this.blocks.push({ height: next, atMs, transactions });
        this.mined += transactions;
      }
      known = height;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  private async number({ bytes, read }: Question): Promise<number> {
    const { body } = await this.connection.send(bytes, { wantsBody: true });
    return read(JSON.parse(body.toString()));
  }
}
