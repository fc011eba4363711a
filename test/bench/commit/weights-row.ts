/** Compute units beside time, through commit (D21): what a full block takes for a second of its units. */
import { createSenders } from "../senders.js";
import { COMMIT_CASES } from "./cases.js";
import {
  deployExchange,
  deployToken,
  fillingOf,
  grow,
  openChain,
  SENDERS,
  swapFilling,
  type TimedBlock,
  timeBlock,
  tokenFilling,
} from "./blocks.js";
import { type BenchRow, formatFigure } from "../report.js";

/** What the row is run with. */
export interface CommitRowOptions {
  readonly quick: boolean;
  readonly say: (line: string) => void;
}

/** Timed blocks of each case behind one that is not; blocks that grow the state before all, of each case that does. */
const SIZES = {
  full: { blocks: 3, grown: 50 },
  quick: { blocks: 1, grown: 0 },
};

/** Runs the row: what the dearest block of all takes on the clock for a second of its units. */
export async function runCommitWeightsRow({ quick, say }: CommitRowOptions): Promise<BenchRow[]> {
  const { blocks, grown } = quick ? SIZES.quick : SIZES.full;
  // Each case has senders of its own: what did not fit into its last block keeps their nonces.
  const cases = COMMIT_CASES.map((item, index) => {
    const count = item.body === undefined ? SENDERS : 1;
    return { item, index, senders: createSenders(count, `commit weights ${index}`) };
  });
  const holders = createSenders(SENDERS, "commit weights, the token");
  const traders = createSenders(SENDERS, "commit weights, the exchange");
  const chain = await openChain([
    ...cases.flatMap(({ senders }) => senders),
    ...holders,
    ...traders,
  ]);
  try {
    const fillings = cases.map(({ item, index, senders }) => fillingOf(item, index, senders));
    fillings.push(tokenFilling(await deployToken(chain, holders), holders));
    fillings.push(swapFilling(await deployExchange(chain, traders), traders));
    for (const filling of fillings.filter(({ grows }) => grows)) {
      if (grown > 0) say(`${grown} blocks before: ${filling.name}`);
      await grow(chain, filling, grown);
    }
    const timed: { name: string; block: TimedBlock }[] = [];
    for (const filling of fillings) {
      const all: TimedBlock[] = [];
      for (let block = 0; block <= blocks; block++)
        all.push(await timeBlock(chain, filling, block));
      const [dearest] = all.slice(1).toSorted((left, right) => costOf(right) - costOf(left));
      if (dearest === undefined) throw new Error(`${filling.name} was not timed`);
      timed.push({ name: filling.name, block: dearest });
      say(line({ name: filling.name, block: dearest }));
    }
    const sorted = timed.toSorted((left, right) => costOf(right.block) - costOf(left.block));
    const [dearest] = sorted;
    return [
      {
        title: `compute units of ${sorted.length} kinds of blocks through commit, the dearest`,
        unit: "s of units per s",
        ours: dearest === undefined ? 0 : 1 / costOf(dearest.block),
        peer: 1,
        peerName: "its weight",
        aim: { ratio: 0.77 },
        details: sorted.map(line),
      },
    ];
  } finally {
    await chain.close();
  }
}

const costOf = ({ clockMs, computeMs }: TimedBlock): number => clockMs / computeMs;

function line({ name, block }: { readonly name: string; readonly block: TimedBlock }): string {
  const { transactions, gasUsed, computeMs, cpuMs, clockMs } = block;
  return (
    `${costOf(block).toFixed(2).padStart(6)} s per s of units; ${computeMs.toFixed(0)} ms of units, ` +
    `${clockMs.toFixed(0)} ms on the clock, ${cpuMs.toFixed(0)} ms of processor time, ${formatFigure(Number(gasUsed) / 1e6)} Mgas, ${transactions} transactions  ${name}`
  );
}
