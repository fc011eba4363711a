/** Transactions as the SDK's `TxResponse` shows them. */
import { EncodedMessage, type ProtoMessage } from "../../../chain/protobuf/values.js";
import type {
  SdkResult,
  SdkSubmission,
  SdkTransactionRecord,
} from "../../view/sdk-transactions.js";
import { upperHex, upperHexOf } from "../comet/json/encode.js";

const TX_TYPE_URL = "/cosmos.tx.v1beta1.Tx";

/** `TxResponse` of a mined transaction. */
export function txResponse(record: SdkTransactionRecord): ProtoMessage {
  const { hash, bytes, height, timeMs, result } = record;
  return {
    height: BigInt(height),
    txhash: upperHex(hash),
    ...resultFields(result),
    tx: { type_url: TX_TYPE_URL, value: bytes },
    // Whole seconds, as the SDK writes it.
    timestamp: `${new Date(timeMs).toISOString().slice(0, 19)}Z`,
    events: eventMessages(result),
  };
}

/** `TxResponse` of a submission. */
export function submissionResponse({ hash, result }: SdkSubmission): ProtoMessage {
  return { txhash: upperHex(hash), ...resultFields(result), events: eventMessages(result) };
}

/** The transaction itself, as `cosmos.tx.v1beta1.Tx`. */
export function txOf({ bytes }: SdkTransactionRecord): EncodedMessage {
  return new EncodedMessage(bytes);
}

/** `tendermint.abci.Event` of each event. */
export function eventMessages({ events }: SdkResult): readonly ProtoMessage[] {
  return events.map(({ type, attributes }) => ({
    type,
    attributes: attributes.map(({ key, value, index }) => ({ key, value, index })),
  }));
}

function resultFields({ code, codespace, log, data, gasWanted, gasUsed }: SdkResult) {
  return {
    codespace,
    code,
    data: upperHexOf(data),
    raw_log: log,
    gas_wanted: gasWanted,
    gas_used: gasUsed,
  };
}
