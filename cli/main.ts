/** Entry of the `causeway` command. */
import { setMaxListeners } from "node:events";
import { escapeUnshowable } from "../chain/evm/foreign-text.js";
import { KIT_VERSION } from "../chain/version.js";
import { processEnvironment } from "../runtime/config/config.js";
import { onCtrlC } from "../runtime/process/interrupts.js";
import { refuseEarly } from "./program/early-flags.js";
import { createProgram } from "./program/program.js";
import { sentenceOf } from "./errors.js";
import { refuseKept } from "./shared-options.js";
import { createStandardOutput } from "./standard-output.js";

const output = createStandardOutput(process.stdout);
const complain = (text: string): void => {
  process.stderr.write(`causeway: ${escapeUnshowable(text, "many")}\n`);
};

/** Exit code of a command that was stopped, as shells count it. */
const STOPPED = 130;

const stopping = new AbortController();
// Every request of the command hangs on this one signal; Node warns at eleven by default.
setMaxListeners(0, stopping.signal);
const stop = (): void => stopping.abort(new DOMException("the command was stopped", "AbortError"));
onCtrlC(processEnvironment(), () => {
  // Not all waits know of the first one: a database that hangs answers to nothing. What is on its way may be
  // killed as at any moment.
  if (stopping.signal.aborted) process.exit(STOPPED);
  stop();
});
process.on("SIGTERM", stop);

let faultCode = 1;
try {
  const program = createProgram({
    version: KIT_VERSION,
    env: processEnvironment(),
    signal: stopping.signal,
    print: output.print,
    printParts: output.printParts,
    warn: complain,
    setExitCode: (code) => {
      process.exitCode = code;
    },
    setFaultCode: (code) => {
      faultCode = code;
    },
  });
  refuseKept(program, processEnvironment());
  refuseEarly(program, process.argv.slice(2), (code) => {
    faultCode = code;
  });
  await program.parseAsync(process.argv);
  await output.end();
} catch (error) {
  complain(sentenceOf(error));
  process.exitCode = stopping.signal.aborted ? STOPPED : faultCode;
}
// Idle keep-alive connections must not hold a finished command.
process.exit();
