/**
 * Entry of `npm start`: takes the home, starts the kit, does the main job once before the reader's
 * eyes and stays up with a live line, or with --once checks all that was printed and ends.
 */
import { processEnvironment } from "../runtime/config/config.js";
import { runKitProcess } from "./supervisor/kit-process.js";

const print = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

// A reader that went away (`npm start | head`) is no reason to stop the kit.
process.stdout.on("error", () => undefined);
process.stderr.on("error", () => undefined);

const stopping = new AbortController();
const stop = (): void => stopping.abort(new DOMException("the kit is stopping", "AbortError"));
process.on("SIGINT", stop);
process.on("SIGTERM", stop);
process.on("SIGHUP", stop);

process.exitCode = await runKitProcess(process.argv.slice(2), {
  env: processEnvironment(),
  print,
  printError: (line) => process.stderr.write(`${line}\n`),
  output: {
    isTty: process.stdout.isTTY,
    get columns() {
      return process.stdout.columns;
    },
    write: (text) => process.stdout.write(text),
  },
  signal: stopping.signal,
});
// Idle keep-alive connections of fetch must not hold the process for seconds.
process.exit();
