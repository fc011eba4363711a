/** Entry of the `causeway` command. */
import { setMaxListeners } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { processEnvironment } from "../runtime/config.js";
import { createProgram } from "./program.js";
import { CliError, sentenceOf } from "./errors.js";
import { cloneFolder } from "./home.js";

/** Version of the package that this file belongs to. */
function packageVersion(): string {
  const value: unknown = JSON.parse(readFileSync(join(cloneFolder(), "package.json"), "utf8"));
  if (typeof value === "object" && value !== null && "version" in value) {
    return String(value.version);
  }
  throw new CliError("USAGE", "package.json names no version.");
}

// A reader that went away (`causeway ... | head`) ends the output, not the command.
process.stdout.on("error", () => undefined);

const stopping = new AbortController();
// Every request of the command hangs on this one signal; Node warns at eleven by default.
setMaxListeners(0, stopping.signal);
const stop = (): void => stopping.abort(new DOMException("the command was stopped", "AbortError"));
process.on("SIGINT", stop);
process.on("SIGTERM", stop);

try {
  const program = createProgram({
    version: packageVersion(),
    env: processEnvironment(),
    signal: stopping.signal,
    print: (line) => process.stdout.write(`${line}\n`),
    warn: (line) => process.stderr.write(`causeway: ${line}\n`),
    setExitCode: (code) => {
      process.exitCode = code;
    },
  });
  await program.parseAsync(process.argv);
} catch (error) {
  process.stderr.write(`causeway: ${sentenceOf(error)}\n`);
  process.exitCode = stopping.signal.aborted ? 130 : 1;
}
// Idle keep-alive connections must not hold a finished command.
process.exit();
