/**
 * Entry of `npm start`: takes the home, starts the kit, does the main job once before the reader's
 * eyes and stays up with a live line, or with --once checks all that was printed and ends.
 */
import { processEnvironment } from "../runtime/config/config.js";
import { createKitOutput } from "./supervisor/kit-output.js";
import { runKitProcess } from "./supervisor/kit-process.js";

const { end, ...output } = createKitOutput(process.stdout, process.stderr);

const stopping = new AbortController();
const stop = (): void => stopping.abort(new DOMException("the kit is stopping", "AbortError"));
process.on("SIGINT", stop);
process.on("SIGTERM", stop);
process.on("SIGHUP", stop);
// Put to sleep, it would read nothing of what its parts log: they run on until their pipes are full, and
// stand still then, one behind the other. Beneath npm the shell is back all the same: npm does sleep.
process.on("SIGTSTP", () => {
  const behindLiveLine = output.output.isTty ? "\n" : "";
  const how = "fg has it in front again, where Ctrl-C ends it.";
  output.print(`${behindLiveLine}Ctrl-Z does not pause the kit: it goes on. ${how}`);
});

process.exitCode = await runKitProcess(process.argv.slice(2), {
  env: processEnvironment(),
  ...output,
  signal: stopping.signal,
});
await end(stopping.signal);
// Idle keep-alive connections of fetch must not hold the process for seconds.
process.exit();
