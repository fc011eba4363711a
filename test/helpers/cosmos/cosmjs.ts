/** Transactions that CosmJS encodes and signs, independently of us. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/** A message as CosmJS takes it; a bigint is written as `"5n"`. */
export interface CosmJsMessage {
  readonly typeUrl: string;
  readonly value: unknown;
}

/** One transaction to sign. */
export interface CosmJsRequest {
  readonly messages: readonly CosmJsMessage[];
  readonly chainId: string;
  readonly memo?: string;
  readonly sequence?: number;
  readonly gas?: number;
  readonly fee?: readonly { readonly denom: string; readonly amount: string }[];
  readonly granter?: string;
  readonly timeoutHeight?: number;
  /** `SignMode`; the signature is one of SIGN_MODE_DIRECT in any case. */
  readonly mode?: number;
  /** Whether the amino JSON is wanted. */
  readonly amino?: boolean;
}

/** A signed transaction. */
export interface CosmJsAnswer {
  /** `TxRaw`. */
  readonly raw: Buffer;
  /** Amino JSON to be signed, where it was wanted. */
  readonly amino: string | undefined;
}

const SCRIPT = fileURLToPath(new URL("cosmjs-sign.mjs", import.meta.url));

/** Signs with the first account of an Ethereum wallet's mnemonic; one process for all of them. */
export function signWithCosmJs(
  mnemonic: string,
  requests: readonly CosmJsRequest[],
): readonly CosmJsAnswer[] {
  const output = execFileSync(process.execPath, ["--no-warnings", SCRIPT], {
    input: JSON.stringify({ mnemonic, requests }),
    maxBuffer: 64 * 1024 * 1024,
  });
  const answers: readonly { readonly raw: string; readonly amino?: string }[] = JSON.parse(
    output.toString("utf8"),
  );
  return answers.map(({ raw, amino }) => ({ raw: Buffer.from(raw, "hex"), amino }));
}
