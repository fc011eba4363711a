/** Entry of `npm run mesh-check`. */
import { Command } from "commander";
import { escapeUnshowable } from "../../chain/evm/foreign-text.js";
import { systemClock } from "../../runtime/process/clock.js";
import { sentenceOf } from "../errors.js";
import { judging } from "../shared-options.js";
import { createStandardOutput } from "../standard-output.js";
import { MESH_CHECK_EXIT, runMeshCheck } from "./command.js";
import { describeMeshCheck, type MeshCheckOptions } from "./words.js";

const output = createStandardOutput(process.stdout);
// The server that is judged has chosen many of the texts.
const complain = (line: string): void => {
  process.stderr.write(`${escapeUnshowable(line, "many")}\n`);
};

const stopping = new AbortController();
const stop = (): void => stopping.abort(new DOMException("the command was stopped", "AbortError"));
process.on("SIGINT", stop);
process.on("SIGTERM", stop);

const command = judging(describeMeshCheck(new Command("mesh-check")))
  .option("--json", "print one JSON document")
  .action(async (options: MeshCheckOptions) => {
    process.exitCode = await runMeshCheck(options, {
      clock: systemClock,
      signal: stopping.signal,
      print: (line) => output.print(escapeUnshowable(line, "one")),
      printProgress: complain,
    });
  });
await command.parseAsync(process.argv);
try {
  await output.end();
} catch (error) {
  complain(`mesh-check: ${sentenceOf(error)}`);
  process.exitCode = MESH_CHECK_EXIT.cannotRun;
}
// Idle keep-alive connections must not hold a finished command.
process.exit();
