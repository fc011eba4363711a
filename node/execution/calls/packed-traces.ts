/**
 * Traces of a block on their way from a worker: the texts lie in one array of bytes. As an array each, those
 * of 12,000 transactions took the main thread a tenth of a second to receive.
 */
import type { Hash32 } from "../../../chain/hex.js";
import type { AnswerJson, TransactionTrace } from "./call-port.js";

/** Traces as they are sent. */
export interface PackedTraces {
  readonly transactionHashes: readonly Hash32[];
  /** All of them, one behind the other. */
  readonly json: AnswerJson;
  /** Where each ends. */
  readonly ends: readonly number[];
}

/** Puts traces together. */
export function packTraces(traces: readonly TransactionTrace[]): PackedTraces {
  let end = 0;
  const ends = traces.map(({ json }) => (end += json.length));
  const json = new Uint8Array(end);
  for (const [index, trace] of traces.entries()) json.set(trace.json, ends[index - 1] ?? 0);
  return { transactionHashes: traces.map(({ transactionHash }) => transactionHash), json, ends };
}

/** The traces again; their texts are parts of what was sent. */
export function unpackTraces({ transactionHashes, json, ends }: PackedTraces): TransactionTrace[] {
  return transactionHashes.map((transactionHash, index) => ({
    transactionHash,
    json: json.subarray(ends[index - 1] ?? 0, ends[index]),
  }));
}
