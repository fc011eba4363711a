/** What execution did with each transaction, as `last_results_hash` of the next block covers it. */
import { bytesToHash32, type Hash32 } from "../hex.js";
import type { Receipt } from "../receipt.js";
import type { SignedTransaction } from "../transaction.js";
import { leafHash, rootOfHashesSteps } from "./merkle.js";
import { ProtoWriter } from "../protobuf/wire.js";
import { mapInSteps, type Steps } from "../steps/steps.js";

/** The hashed fields of `tendermint.abci.ExecTxResult`. */
export interface ExecutionResult {
  /** 0, or `FAILED_CODE` for a transaction that is in the block and reverted. */
  readonly code: number;
  /** `TxMsgData` of a Cosmos transaction; absent for EVM transactions. */
  readonly data?: Uint8Array;
  readonly gasWanted: bigint;
  readonly gasUsed: bigint;
}

/** Code of a transaction whose execution failed: readers of the consensus RPC must see it. */
export const FAILED_CODE = 4;

/** The result of one transaction. */
export function executionResult(
  tx: Pick<SignedTransaction, "gasLimit">,
  receipt: Pick<Receipt, "status" | "gasUsed">,
): ExecutionResult {
  const code = receipt.status === 1 ? 0 : FAILED_CODE;
  return { code, gasWanted: tx.gasLimit, gasUsed: receipt.gasUsed };
}

/** `ExecTxResult` with the deterministic fields only. */
function encodeExecutionResult({ code, data, gasWanted, gasUsed }: ExecutionResult): Buffer {
  const writer = new ProtoWriter().integer(1, code);
  if (data !== undefined) writer.bytes(2, data);
  return writer.integer(5, gasWanted).integer(6, gasUsed).finish();
}

/** `last_results_hash` of the block after these, in steps. */
export function* executionResultSteps(results: readonly ExecutionResult[]): Steps<Hash32> {
  // Most transactions are transfers and have the same result.
  const known = new Map<string, Uint8Array>();
  const hashes = yield* mapInSteps(results, (result) => {
    if (result.data !== undefined) return leafHash(encodeExecutionResult(result));
    const key = `${result.code}/${result.gasWanted}/${result.gasUsed}`;
    const hash = known.get(key) ?? leafHash(encodeExecutionResult(result));
    known.set(key, hash);
    return hash;
  });
  return bytesToHash32(yield* rootOfHashesSteps(hashes));
}
