/** Runs mesh-check inside the test's process, as its entry would. */
import { Command } from "commander";
import { runMeshCheck as run } from "../../cli/mesh-check/command.js";
import type { MeshFault } from "../../cli/mesh-check/faults.js";
import { describeMeshCheck } from "../../cli/mesh-check/words.js";
import { systemClock } from "../../runtime/process/clock.js";

/** The JSON document of a run, as far as tests look. */
export interface MeshCheckDocument {
  readonly ok: boolean;
  readonly from: number;
  readonly to: number;
  readonly transactionCount: number;
  readonly operationCount: number;
  readonly operationKinds: Readonly<Record<string, number>>;
  readonly accountCount: number;
  readonly currencies: readonly string[];
  readonly answerCount: number;
  readonly supplyBlockCount: number;
  readonly quarantined: readonly { readonly contractAddress: string; readonly fromIndex: number }[];
  readonly seed: number;
  readonly durationMs: number;
  readonly faults: readonly MeshFault[];
}

/** What a run came to. */
export interface MeshCheckRun {
  readonly code: number;
  readonly printed: readonly string[];
  readonly progress: readonly string[];
  /** The document; only with `--json` and an exit code of 0 or 1. */
  readonly document: MeshCheckDocument;
}

/** Runs the command with the given words. */
export async function runMeshCheck(
  words: readonly string[],
  signal: AbortSignal = new AbortController().signal,
): Promise<MeshCheckRun> {
  const printed: string[] = [];
  const progress: string[] = [];
  let code = -1;
  const command = describeMeshCheck(new Command("mesh-check"))
    .option("--json")
    .action(async (options) => {
      code = await run(options, {
        clock: systemClock,
        signal,
        print: (line) => printed.push(line),
        printProgress: (line) => progress.push(line),
      });
    });
  await command.parseAsync([...words], { from: "user" });
  const isDocument = words.includes("--json") && printed.length > 0;
  return { code, printed, progress, document: isDocument ? JSON.parse(printed[0] ?? "") : {} };
}
