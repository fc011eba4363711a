/**
 * An adversary's search for the program whose full block takes longest, through commit (D21): random loops,
 * of which the dearest are changed again and again, in small blocks and by processor time; then full blocks
 * of the dearest by the clock, which is what a network waits for. The seed is printed.
 */
import { contractAddressOf } from "../../../chain/evm/contract-address.js";
import { hexToBytes } from "../../../chain/hex.js";
import { createRandom, type Random } from "../../helpers/random.js";
import type { ExecutionChain } from "../../helpers/chains/execution-chain.js";
import { type BenchRow, formatFigure } from "../report.js";
import { createSenders, type Payment, type Sender } from "../senders.js";
import { openChain, signed, type TimedBlock, timedFill } from "./blocks.js";
import { FIRST_TURN, turnsCode, turnsData } from "./cases.js";
import { type Body, mutatedBody, randomBody } from "./search-programs.js";

/** Name of the row here, for `--only`. */
export const SEARCH_ROWS = ["weights-search"] as const;

/** What the row is run with. */
export interface SearchOptions {
  readonly quick: boolean;
  readonly say: (line: string) => void;
}

const SEARCH_MS = { quick: 30_000, full: 300_000 };
const REPORT_MS = 10_000;

/** Compute units of a small block: enough that what a block costs by itself counts for little. */
const SMALL_NS = 60_000_000;
/** Of a full one (D21), and of each transaction in it: so little is left where the last does not fit. */
const FULL_NS = 1_000_000_000;
const TRANSACTION_NS = 50_000_000;
const MOST_GAS = 28_000_000;
const GAS_LIMIT = 30_000_000n;
/** Transactions of 30 M gas that fit into a block, and one that does not. */
const MOST_TRANSACTIONS = 21;

/** The dearest ones, which others are made from, and how many of them are timed in full blocks at the end. */
const KEPT = 16;
const CONFIRMED = 8;
const REPETITIONS = 4;

/** A program that was timed. */
interface Found {
  readonly body: Body;
  /** Processor time of all threads for the time of its units. */
  readonly cost: number;
}

/** A program whose full block was timed. */
interface Confirmed {
  readonly body: Body;
  readonly block: TimedBlock;
}

/** Runs the row: what the full block of the dearest program that was found takes on the clock. */
export async function runSearchRow({ quick, say }: SearchOptions): Promise<BenchRow[]> {
  const seed = Date.now() % 2 ** 32;
  say(`search of dear programs, seed ${seed}`);
  const random = createRandom(seed);
  const [sender] = createSenders(1, "weights search");
  if (sender === undefined) throw new Error("nobody sends");
  const chain = await openChain([sender]);
  const lab = new Lab(chain, sender);
  try {
    const until = performance.now() + (quick ? SEARCH_MS.quick : SEARCH_MS.full);
    let kept: Found[] = [];
    let tried = 0;
    let reportAt = performance.now() + REPORT_MS;
    while (performance.now() < until) {
      const body = nextBody(random, kept);
      const first = await lab.time(body);
      tried += 1;
      // A pause of the collector makes any program dear once: what would be kept is timed again.
      const isDear = first !== undefined && first.cost > (kept[KEPT - 1]?.cost ?? 0);
      const found = isDear ? (await lab.repeat(body))[0] : undefined;
      if (found !== undefined) kept = dearest([...kept, found]);
      if (performance.now() < reportAt) continue;
      reportAt += REPORT_MS;
      say(`${tried} programs, the dearest ${(kept[0]?.cost ?? 0).toFixed(2)} s per s of units`);
    }
    const confirmed: Confirmed[] = [];
    for (const { body, cost } of kept.slice(0, CONFIRMED)) {
      const block = await lab.timeFull(body);
      if (block !== undefined) confirmed.push({ body, block });
      say(`${cost.toFixed(2)} s per s of units; a full block ${block?.clockMs.toFixed(0)} ms`);
    }
    return [rowOf(confirmed, tried)];
  } finally {
    await chain.close();
  }
}

function nextBody(random: Random, kept: readonly Found[]): Body {
  if (kept.length < KEPT / 2 || random.integer(4) === 0) return randomBody(random);
  return mutatedBody(random, random.pick(kept).body);
}

function dearest(found: readonly Found[]): Found[] {
  return found.toSorted((left, right) => right.cost - left.cost).slice(0, KEPT);
}

function rowOf(confirmed: readonly Confirmed[], tried: number): BenchRow {
  const sorted = confirmed.toSorted((left, right) => right.block.clockMs - left.block.clockMs);
  const slowestMs = sorted[0]?.block.clockMs ?? Number.POSITIVE_INFINITY;
  return {
    title: `an adversary's search among ${formatFigure(tried)} programs through commit, its full block`,
    unit: "s of units per s",
    ours: FULL_NS / 1e6 / slowestMs,
    peer: 1,
    peerName: "its weight",
    aim: { ratio: 0.77 },
    details: sorted.map(({ body, block: { clockMs, cpuMs, computeMs } }) => {
      const parts = body.join(" ");
      const text = parts.length > 120 ? `${parts.slice(0, 120)}...` : parts;
      const units = `${computeMs.toFixed(0)} ms of units`;
      return `${clockMs.toFixed(0)} ms on the clock, ${cpuMs.toFixed(0)} ms of processor time, ${units}: ${text}`;
    }),
  };
}

/** A contract that was deployed, and what a turn of its program takes. */
interface Deployed {
  readonly turnNs: number;
  readonly turnGas: number;
  /** Calls it with turns that nobody had before. */
  readonly payment: (turns: number) => Payment;
}

/** Deploys programs and times blocks of them. */
class Lab {
  private turn = FIRST_TURN;
  /** What a block takes that holds next to nothing. */
  private emptyMs: number | undefined;

  constructor(
    private readonly chain: ExecutionChain,
    private readonly sender: Sender,
  ) {}

  /** Undefined for a program that fails. */
  time(body: Body): Promise<Found | undefined> {
    return this.unlessItFails(async () => {
      const deployed = await this.deploy(body);
      const { cpuMs, computeMs } = await this.run(callsOf(deployed, SMALL_NS, SMALL_NS));
      return { body, cost: (cpuMs - (this.emptyMs ?? 0)) / computeMs };
    });
  }

  /** Times a program several times; the cheapest counts, since pauses only add. */
  async repeat(body: Body): Promise<Found[]> {
    const all: Found[] = [];
    for (let turn = 0; turn < REPETITIONS; turn++) {
      const found = await this.time(body);
      if (found !== undefined) all.push(found);
    }
    return dearest(all).slice(-1);
  }

  /** Times full blocks of a program; the quickest counts, as above. */
  async timeFull(body: Body): Promise<TimedBlock | undefined> {
    const all: TimedBlock[] = [];
    for (let turn = 0; turn < REPETITIONS; turn++) {
      const block = await this.unlessItFails(async () => {
        return await this.run(callsOf(await this.deploy(body), FULL_NS, TRANSACTION_NS));
      });
      if (block !== undefined) all.push(block);
    }
    return all.toSorted((left, right) => left.clockMs - right.clockMs)[0];
  }

  private async unlessItFails<Result>(run: () => Promise<Result>): Promise<Result | undefined> {
    const nonce = this.sender.nextNonce;
    try {
      return await run();
    } catch {
      // Nothing of a block is kept that holds a failed transaction.
      const account = this.chain.stores.state.account(this.sender.address);
      this.sender.nextNonce = account?.nonce ?? nonce;
      return undefined;
    }
  }

  private async deploy(body: Body): Promise<Deployed> {
    const { sender } = this;
    const contract = contractAddressOf(sender.address, sender.nextNonce);
    await this.run([{ to: undefined, data: creation(turnsCode(body.join(""))) }]);
    const payment = (turns: number): Payment => {
      const from = this.turn;
      this.turn += turns;
      return { to: contract, data: turnsData({ from, to: from + turns, value: 1 }) };
    };
    const one = await this.run([payment(1)]);
    this.emptyMs = Math.min(this.emptyMs ?? Number.POSITIVE_INFINITY, one.cpuMs);
    const six = await this.run([payment(6)]);
    return {
      payment,
      turnNs: Math.max(1, ((six.computeMs - one.computeMs) * 1e6) / 5),
      turnGas: Math.max(1, Number(six.gasUsed - one.gasUsed) / 5),
    };
  }

  /** A block of the sender's next transactions. */
  private async run(payments: readonly Payment[]): Promise<TimedBlock> {
    const ready = payments.map((payment) => {
      return signed(this.sender, { valueAtoken: 0n, gasLimit: GAS_LIMIT, ...payment });
    });
    const block = await timedFill(this.chain, ready);
    if (block.transactions < ready.length) {
      this.sender.nextNonce -= BigInt(ready.length - block.transactions);
    }
    return block;
  }
}

/** Calls that take about so many compute units, or all the gas of a block. */
function callsOf({ turnNs, turnGas, payment }: Deployed, wantedNs: number, mostNs: number) {
  const turns = Math.max(1, Math.floor(Math.min(mostNs / turnNs, MOST_GAS / turnGas)));
  const count = Math.min(MOST_TRANSACTIONS, Math.ceil(wantedNs / (turns * turnNs)));
  return Array.from({ length: count }, () => payment(turns));
}

/** Creation code that leaves a contract: PUSH2 length, DUP1, PUSH1 10, PUSH0, CODECOPY, PUSH0, RETURN. */
function creation(code: string): Uint8Array {
  const length = (code.length / 2).toString(16).padStart(4, "0");
  return hexToBytes(`0x61${length}80600a5f395ff3${code}`);
}
