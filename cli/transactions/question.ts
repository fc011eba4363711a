/** What a person at the terminal is asked, and may refuse to answer. */
import { createInterface } from "node:readline/promises";

/** Where somebody reads and types. */
export interface Terminal {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
}

/**
 * Whether somebody says yes. An input that ends, or is closed by Ctrl-D or Ctrl-C, says no.
 * @throws the signal's reason
 */
export async function isConfirmed(
  question: string,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<boolean> {
  const lines = createInterface(terminal);
  // The question itself is never settled then, and the process would end without a word.
  const closed = new Promise<undefined>((resolve) => lines.once("close", () => resolve(undefined)));
  try {
    const answer = await Promise.race([lines.question(question, { signal }), closed]);
    if (answer === undefined) {
      // The prompt's line is not ended by anybody's Enter.
      terminal.output.write("\n");
      return false;
    }
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    lines.close();
  }
}
