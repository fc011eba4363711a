/**
 * How much work a piece of JavaScript is, as a number that no machine changes: V8 counts how often
 * each function and each branch and loop body in it is entered. What happens inside built-in
 * functions and WebAssembly is not counted.
 */
import { Session } from "node:inspector/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Counts the work of this process. */
export interface BlockCounter {
  /** Entries into functions, branches and loop bodies since the last call. */
  count(): Promise<number>;
  stop(): Promise<void>;
}

/** Starts counting. Only code that has not run before is counted: import it afterwards. */
export async function countExecutedBlocks(): Promise<BlockCounter> {
  // What earlier test files of this process have left would be counted along, each time.
  collectGarbage();
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  const entriesSinceLast = async () => {
    const { result } = await session.post("Profiler.takePreciseCoverage");
    let entries = 0;
    for (const { functions } of result) {
      for (const { ranges } of functions) for (const { count } of ranges) entries += count;
    }
    return entries;
  };
  return {
    count: entriesSinceLast,
    async stop() {
      await session.post("Profiler.stopPreciseCoverage");
      session.disconnect();
    },
  };
}
