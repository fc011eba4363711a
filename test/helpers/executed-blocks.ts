/**
 * How much work a piece of JavaScript is, as a number that no machine changes: V8 counts how often
 * each function and each branch and loop body in it is entered. What happens inside built-in
 * functions and WebAssembly is not counted.
 */
import { Session } from "node:inspector/promises";

/** Counts the work of this process. */
export interface BlockCounter {
  /** Entries into functions, branches and loop bodies while `work` ran. */
  count(work: () => Promise<unknown>): Promise<number>;
  stop(): Promise<void>;
}

/** Starts counting. Only code that has not run before is counted: import it afterwards. */
export async function countExecutedBlocks(): Promise<BlockCounter> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  /** Entries since it was last asked. */
  const take = async () => {
    const { result } = await session.post("Profiler.takePreciseCoverage");
    let entries = 0;
    for (const { functions } of result) {
      for (const { ranges } of functions) for (const { count } of ranges) entries += count;
    }
    return entries;
  };
  return {
    async count(work) {
      await take();
      await work();
      return take();
    },
    async stop() {
      await session.post("Profiler.stopPreciseCoverage");
      session.disconnect();
    },
  };
}
