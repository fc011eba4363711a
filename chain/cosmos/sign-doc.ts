/**
 * What the signer of a Cosmos transaction signs: SIGN_MODE_DIRECT (`SignDoc`), and amino JSON
 * (`StdSignDoc`, keys sorted, HTML escaped as Go does). Digests are keccak256, as ethsecp256k1
 * keys have it; accounts of this chain have no number, so it is 0 in every document.
 */
import { ProtoWriter } from "../protobuf/wire.js";
import { keccak256 } from "../hashes.js";
import type { CosmosTransaction } from "./cosmos-transaction.js";
import { aminoOfAny, type JsonValue } from "./field-schema.js";
import { rfc3339Nano, timeoutTimeOf } from "./timeout-time.js";

/** Number of every account. */
export const ACCOUNT_NUMBER = 0n;

/** `cosmos.tx.v1beta1.SignDoc`. */
export function directSignBytes(
  tx: Pick<CosmosTransaction, "bodyBytes" | "authInfoBytes">,
  chainId: string,
): Buffer {
  return new ProtoWriter()
    .bytes(1, tx.bodyBytes)
    .bytes(2, tx.authInfoBytes)
    .bytes(3, chainId)
    .integer(4, ACCOUNT_NUMBER)
    .finish();
}

/**
 * The document of amino JSON before its keys are sorted.
 * @throws INVALID_MESSAGE for what JSON cannot say
 */
export function aminoSignDoc(
  tx: Pick<
    CosmosTransaction,
    | "messages"
    | "memo"
    | "timeoutHeight"
    | "timeoutTimestamp"
    | "nonce"
    | "fee"
    | "gasLimit"
    | "feePayer"
  >,
  chainId: string,
): { readonly [key: string]: JsonValue } {
  const payer: { readonly [key: string]: JsonValue } =
    tx.feePayer === "" ? {} : { payer: tx.feePayer };
  const time = timeoutTimeOf(tx);
  return {
    account_number: ACCOUNT_NUMBER.toString(),
    chain_id: chainId,
    fee: {
      amount: tx.fee.map(({ denom, amount }) => ({ denom, amount })),
      gas: tx.gasLimit.toString(),
      ...payer,
    },
    memo: tx.memo,
    msgs: tx.messages.map(aminoOfAny),
    sequence: tx.nonce.toString(),
    ...(tx.timeoutHeight === 0n ? {} : { timeout_height: tx.timeoutHeight.toString() }),
    ...(time === undefined ? {} : { timeout_timestamp: rfc3339Nano(time) }),
  };
}

/** Bytes of a document as Go's JSON encoder writes it after sorting. */
export function aminoSignBytes(document: JsonValue): Buffer {
  return Buffer.from(goJsonText(sorted(document)), "utf8");
}

/** JSON as Go's encoder writes it: what HTML knows is escaped. */
export function goJsonText(value: JsonValue): string {
  return JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (mark) => {
    return `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value as Record<string, JsonValue>);
  entries.sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0));
  return Object.fromEntries(entries.map(([key, item]) => [key, sorted(item)]));
}

/** Digest of sign bytes. */
export function signDigest(bytes: Uint8Array): Uint8Array {
  return keccak256(bytes);
}
