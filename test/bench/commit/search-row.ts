/**
 * An adversary's search for the program that takes longest for its compute units, through commit (D21):
 * random loops, of which the dearest are changed again and again. The seed is printed.
 */
import { contractAddressOf } from "../../../chain/contract-address.js";
import { hexToBytes } from "../../../chain/hex.js";
import { createRandom, type Random } from "../../helpers/random.js";
import type { ExecutionChain } from "../../helpers/chains/execution-chain.js";
import { type BenchRow, formatFigure } from "../report.js";
import { createSenders, type Payment, type Sender } from "../senders.js";
import { openChain, signed } from "./blocks.js";
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

/** Compute units of a timed block: enough that what a block costs by itself counts for little. */
const WANTED_NS = 60_000_000;
const MOST_GAS = 28_000_000;
const GAS_LIMIT = 30_000_000n;
/** Transactions of 30 M gas that fit into a block. */
const MOST_TRANSACTIONS = 20;

/** The dearest ones, which others are made from, and how many of them are timed again at the end. */
const KEPT = 16;
const REPEATED = 5;
const REPETITIONS = 4;

/** A program that was timed. */
interface Found {
  readonly body: Body;
  /** Processor time of all threads for the time of its units. */
  readonly cost: number;
  readonly computeMs: number;
  readonly clockMs: number;
}

/** Runs the row: processor time of the dearest program that was found for a second of its units. */
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
    const confirmed: Found[] = [];
    for (const { body } of kept.slice(0, REPEATED)) confirmed.push(...(await lab.repeat(body)));
    return [rowOf(dearest(confirmed), tried)];
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

function rowOf(found: readonly Found[], tried: number): BenchRow {
  const [first] = found;
  return {
    title: `an adversary's search among ${formatFigure(tried)} programs through commit, the dearest`,
    unit: "s of units per s",
    ours: first === undefined ? 0 : 1 / first.cost,
    peer: 1,
    peerName: "its weight",
    aim: { ratio: 0.77 },
    details: found.slice(0, REPEATED).map(({ body, cost, computeMs, clockMs }) => {
      const parts = body.join(" ");
      const text = parts.length > 120 ? `${parts.slice(0, 120)}...` : parts;
      const clock = (clockMs / computeMs).toFixed(2);
      return `${cost.toFixed(2)} s per s of units, ${clock} on the clock: ${text}`;
    }),
  };
}

/** What a program took. */
interface Run {
  readonly computeNs: number;
  readonly gas: number;
  readonly cpuMs: number;
  readonly clockMs: number;
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
  async time(body: Body): Promise<Found | undefined> {
    const nonce = this.sender.nextNonce;
    try {
      return await this.timeOne(body);
    } catch {
      // Nothing of a block is kept that holds a failed transaction.
      const account = this.chain.stores.state.account(this.sender.address);
      this.sender.nextNonce = account?.nonce ?? nonce;
      return undefined;
    }
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

  private async timeOne(body: Body): Promise<Found> {
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
    const turnNs = Math.max(1, (six.computeNs - one.computeNs) / 5);
    const turnGas = Math.max(1, (six.gas - one.gas) / 5);
    const turns = Math.max(1, Math.floor(Math.min(WANTED_NS / turnNs, MOST_GAS / turnGas)));
    const wanted = Math.ceil(WANTED_NS / (turns * turnNs));
    const count = Math.min(MOST_TRANSACTIONS, wanted);
    const { computeNs, cpuMs, clockMs } = await this.run(
      Array.from({ length: count }, () => payment(turns)),
    );
    const computeMs = computeNs / 1e6;
    return { body, computeMs, clockMs, cost: (cpuMs - this.emptyMs) / computeMs };
  }

  /** A block of the sender's next transactions. */
  private async run(payments: readonly Payment[]): Promise<Run> {
    const ready = payments.map((payment) => {
      return signed(this.sender, { valueAtoken: 0n, gasLimit: GAS_LIMIT, ...payment });
    });
    const begin = process.cpuUsage();
    const beginMs = performance.now();
    const { count, computeNs, gasUsed } = await this.chain.fill(ready);
    const clockMs = performance.now() - beginMs;
    const { user, system } = process.cpuUsage(begin);
    if (count < ready.length) throw new Error("the block is full");
    return { computeNs, gas: Number(gasUsed), cpuMs: (user + system) / 1_000, clockMs };
  }
}

/** Creation code that leaves a contract: PUSH2 length, DUP1, PUSH1 10, PUSH0, CODECOPY, PUSH0, RETURN. */
function creation(code: string): Uint8Array {
  const length = (code.length / 2).toString(16).padStart(4, "0");
  return hexToBytes(`0x61${length}80600a5f395ff3${code}`);
}
