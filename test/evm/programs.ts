/** Random programs on both engines, by as many threads as wanted. */
import { once } from "node:events";
import { Worker } from "node:worker_threads";

/** What a seed stands for: one message to random code, several transactions, or both. */
export const PROGRAM_KINDS = ["program", "sequence", "both"] as const;

/** One of them. */
export type ProgramKind = (typeof PROGRAM_KINDS)[number];

/** Seeds to run: `from` and those behind it. */
export interface SeedRange {
  readonly from: number;
  readonly count: number;
  readonly kind: ProgramKind;
}

/** Seeds whose outcomes differ. */
export interface RangeResult {
  readonly differing: readonly number[];
}

/** Seeds that a thread takes at once. */
const RANGE = 1_000;

const PROGRESS_MS = 10_000;
const FAILURES_SHOWN = 100;

/** What to run. */
export interface ProgramsOptions {
  readonly count: number;
  readonly kind: ProgramKind;
  readonly firstSeed: number;
  readonly threads: number;
  readonly say: (line: string) => void;
}

/** Runs the programs of `count` seeds; says which differ, and ends with "N passed, N failed". */
export async function runPrograms(options: ProgramsOptions): Promise<boolean> {
  const { count, kind, firstSeed, threads, say } = options;
  const end = firstSeed + count;
  const done = { count: 0, failed: 0 };
  const startMs = performance.now();
  let shownMs = startMs;
  let next = firstSeed;
  const lane = async () => {
    const worker = new Worker(new URL("./program-worker.js", import.meta.url));
    try {
      while (next < end) {
        const range: SeedRange = { from: next, count: Math.min(RANGE, end - next), kind };
        next += range.count;
        worker.postMessage(range, []);
        const [{ differing }] = (await once(worker, "message")) as [RangeResult];
        for (const seed of differing) {
          if (++done.failed <= FAILURES_SHOWN)
            say(`the engines differ on the program of seed ${seed}`);
        }
        done.count += range.count;
        const nowMs = performance.now();
        if (nowMs - shownMs < PROGRESS_MS) continue;
        shownMs = nowMs;
        const perSecond = Math.round((done.count * 1_000) / (nowMs - startMs));
        say(`causeway: ${done.count} of ${count} programs, ${perSecond}/s, ${done.failed} differ`);
      }
    } finally {
      await worker.terminate();
    }
  };
  say(`causeway: ${count} random programs (${kind}), seeds from ${firstSeed}, ${threads} threads`);
  await Promise.all(Array.from({ length: threads }, lane));
  say(`${done.count - done.failed} passed, ${done.failed} failed`);
  return done.failed === 0 && done.count > 0;
}
