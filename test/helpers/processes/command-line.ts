/** `causeway` in this process: what a person types, and what it prints. */
import { createProgram } from "../../../cli/program/program.js";
import { sentenceOf } from "../../../cli/errors.js";

/** What a command printed, and how it ended. */
export interface Printed {
  readonly code: number;
  readonly out: string;
  /** Warnings, and why it failed. */
  readonly err: string;
}

/** `TxResponse` as far as tests look at it. */
export interface MinedResponse {
  readonly height: string;
  readonly txhash: string;
  readonly code: number;
  readonly codespace: string;
  readonly raw_log: string;
  readonly events: readonly {
    readonly type: string;
    readonly attributes: readonly { readonly key: string; readonly value: string }[];
  }[];
}

/** Runs `causeway WORDS --home HOME`, errors as its entry shows them, until `signal` fires. */
export async function runCommand(
  home: string,
  words: readonly string[],
  signal: AbortSignal = new AbortController().signal,
): Promise<Printed> {
  const [out, err]: [string[], string[]] = [[], []];
  let code = 0;
  const program = createProgram({
    version: "0",
    env: {},
    signal,
    print: (line) => out.push(line),
    warn: (line) => err.push(line),
    setExitCode: (given) => {
      code = given;
    },
  });
  try {
    await program.parseAsync(["node", "causeway", ...words, "--home", home]);
  } catch (error) {
    err.push(sentenceOf(error));
    code = 1;
  }
  return { code, out: out.join("\n"), err: err.join("\n") };
}

/** Has a transaction mined through the node of a home. @returns its `TxResponse`, whatever its code */
export async function runTx(home: string, words: readonly string[]): Promise<MinedResponse> {
  const flags = ["--yes", "--broadcast-mode", "block", "--output", "json"];
  const { out, err } = await runCommand(home, ["tx", ...words, ...flags]);
  if (out === "") throw new Error(`nothing was sent: ${err}`);
  return JSON.parse(out);
}
