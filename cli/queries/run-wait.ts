/** `causeway query wait-tx`: waits until a block has a transaction. */
import { addAbortSignal, type Readable } from "node:stream";
import { loadDescriptors } from "../../runtime/files/descriptor-set.js";
import type { CommandContext } from "../command-context.js";
import { durationMs } from "../duration.js";
import { CliError } from "../errors.js";
import { TxNode } from "../transactions/tx-node.js";
import { print, type QueryFlags, targetOf, textFlag } from "./run.js";

/** As long as the SDK's command waits. */
const TIMEOUT = "15s";

/** A `TxResponse` of ten thousand events is smaller. */
const MAX_INPUT_CHARACTERS = 8 * 1024 * 1024;

/**
 * Prints the `TxResponse` of a transaction as soon as a block has it.
 * @param given its hash; without one it is that of the `TxResponse` which `input` brings
 * @throws USAGE; STEP_FAILED when the time is over
 */
export async function runWaitTx(
  context: CommandContext,
  given: string | undefined,
  flags: QueryFlags,
  input: Readable,
): Promise<number> {
  const timeoutMs = durationMs(textFlag(flags, "timeout") ?? TIMEOUT, "--timeout");
  const hash = hashOf(given ?? printedHash(await read(input, context.signal)));
  const node = new TxNode(loadDescriptors(), await targetOf(context, flags));
  print(context, flags, (await node.waitFor(hash, timeoutMs)).response);
  return 0;
}

function hashOf(given: string): string {
  const digits = given.replace(/^0x/i, "");
  if (/^[0-9a-f]{64}$/i.test(digits)) return digits.toUpperCase();
  throw new CliError("USAGE", `A transaction's hash is 64 hex digits, not "${given}".`);
}

/** Until its end, or until the command is stopped: a terminal on which nobody types has no end. */
async function read(input: Readable, signal: AbortSignal): Promise<string> {
  let text = "";
  try {
    for await (const part of addAbortSignal(signal, input)) {
      text += String(part);
      if (text.length > MAX_INPUT_CHARACTERS) throw noHash();
    }
  } finally {
    signal.throwIfAborted();
  }
  return text;
}

/** `txhash` of a response in JSON or YAML. */
function printedHash(text: string): string {
  const [, hash] = /(?:^|[{,\s])"?txhash"?\s*:\s*"?([0-9a-f]{64})\b/i.exec(text) ?? [];
  if (hash === undefined) throw noHash();
  return hash;
}

function noHash(): CliError {
  return new CliError("USAGE", "wait-tx takes a hash, or what a tx command has printed.");
}
