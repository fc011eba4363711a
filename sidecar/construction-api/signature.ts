/** What /construction/combine demands of a signature before it becomes a transaction. */
import { publicKeyToAddress } from "../../chain/address.js";
import { parsePublicKey, SECP256K1_ORDER, secp256k1 } from "../../chain/crypto.js";
import { bytesEqual, bytesToBigint, hexToBytes } from "../../chain/hex.js";
import { SidecarError } from "../rosetta/errors.js";
import { parseAccountAddress } from "../rosetta/identifiers.js";
import { fault, inside, type Place, readFields, readItems } from "../rosetta/request-fields.js";
import { readMaybe, readText } from "../rosetta/request-fields.js";
import { parseAccount } from "../rosetta/identifiers.js";

/** Curve of every account's key. */
const CURVE_TYPE = "secp256k1";

/** 65 bytes: r, s, and the recovery id 0 or 1. */
export const SIGNATURE_TYPE = "ecdsa_recovery";

/** A signature as the transaction encoder takes it. */
export interface CheckedSignature {
  readonly r: Uint8Array;
  readonly s: Uint8Array;
  readonly recoveryId: number;
}

/**
 * `public_key` of a request to its 64 bytes (x, y).
 * @throws INVALID_PUBLIC_KEY
 */
export function parseKey(value: unknown, place: Place): Uint8Array {
  const here: Place = { ...place, code: "INVALID_PUBLIC_KEY" };
  const fields = readFields(value, here, ["hex_bytes", "curve_type"]);
  if (fields["curve_type"] !== CURVE_TYPE) throw fault(inside(here, "curve_type"), CURVE_TYPE);
  const bytes = readRawHex(fields["hex_bytes"], inside(here, "hex_bytes"));
  try {
    return parsePublicKey(bytes);
  } catch (cause) {
    throw new SidecarError("INVALID_PUBLIC_KEY", { field: place.at }, cause);
  }
}

/**
 * `public_keys` of a request: none is needed; where they are given, they must be the payer's.
 * @throws INVALID_PUBLIC_KEY, SIGNER_MISMATCH
 */
export function checkPayerKeys(value: unknown, from: string): void {
  const place = { at: "public_keys" };
  const keys = readMaybe(value, place, readItems) ?? [];
  keys.forEach((key, index) => {
    if (publicKeyToAddress(parseKey(key, inside(place, index))) !== from) {
      throw new SidecarError("SIGNER_MISMATCH", { expected: from });
    }
  });
}

/**
 * `signatures` of a combine request: exactly one, over this digest, by this account.
 * @param expected digest that payloads asked to sign (32 bytes) and the paying account
 * @throws INVALID_SIGNATURE, SIGNING_PAYLOAD_MISMATCH, SIGNER_MISMATCH, INVALID_PUBLIC_KEY
 */
export function checkSignatures(
  value: unknown,
  expected: { readonly digest: Uint8Array; readonly from: string },
): CheckedSignature {
  const place: Place = { at: "signatures", code: "INVALID_SIGNATURE" };
  const items = readItems(value, place);
  if (items.length !== 1) throw fault(place, "exactly one signature");
  const here = inside(place, 0);
  const known = ["signing_payload", "public_key", "signature_type", "hex_bytes"];
  const fields = readFields(items[0], here, known);
  if (fields["signature_type"] !== SIGNATURE_TYPE) {
    throw fault(inside(here, "signature_type"), SIGNATURE_TYPE);
  }
  checkPayload(fields["signing_payload"], inside(here, "signing_payload"), expected);
  const key = parseKey(fields["public_key"], inside(here, "public_key"));
  if (publicKeyToAddress(key) !== expected.from) {
    throw new SidecarError("SIGNER_MISMATCH", { expected: expected.from });
  }
  const signature = parseSignature(fields["hex_bytes"], inside(here, "hex_bytes"));
  const compact = Buffer.concat([signature.r, signature.s]);
  const recovered = secp256k1.recover(expected.digest, compact, signature.recoveryId);
  if (recovered === undefined) throw fault(inside(here, "hex_bytes"), "a recoverable signature");
  if (!bytesEqual(recovered, key)) {
    throw new SidecarError("SIGNER_MISMATCH", { expected: expected.from });
  }
  return signature;
}

function checkPayload(
  value: unknown,
  place: Place,
  expected: { readonly digest: Uint8Array; readonly from: string },
): void {
  const known = ["account_identifier", "address", "hex_bytes", "signature_type"];
  const fields = readFields(value, place, known);
  const digest = readRawHex(fields["hex_bytes"], inside(place, "hex_bytes"));
  const signers = [
    readMaybe(fields["account_identifier"], inside(place, "account_identifier"), parseAccount),
    readMaybe(fields["address"], inside(place, "address"), parseAccountAddress),
  ];
  const isOther = signers.some((signer) => signer !== undefined && signer !== expected.from);
  if (isOther) throw new SidecarError("SIGNER_MISMATCH", { expected: expected.from });
  const type = readMaybe(fields["signature_type"], inside(place, "signature_type"), readText);
  const isOurType = type === undefined || type === SIGNATURE_TYPE;
  if (!isOurType || !bytesEqual(digest, expected.digest)) {
    throw new SidecarError("SIGNING_PAYLOAD_MISMATCH");
  }
}

/** r, s and recovery id; s in the lower half, so that no second form of it is valid (EIP-2). */
function parseSignature(value: unknown, place: Place): CheckedSignature {
  const bytes = readRawHex(value, place);
  const recoveryId = bytes[64];
  if (bytes.length !== 65 || recoveryId === undefined || recoveryId > 1)
    throw fault(place, "65 bytes, the last 0 or 1");
  const [r, s] = [bytes.subarray(0, 32), bytes.subarray(32, 64)];
  const [rNumber, sNumber] = [bytesToBigint(r), bytesToBigint(s)];
  const inRange = rNumber > 0n && rNumber < SECP256K1_ORDER && sNumber > 0n;
  if (!inRange || sNumber > SECP256K1_ORDER / 2n) throw fault(place, "0 < r < n, 0 < s <= n / 2");
  return { r, s, recoveryId };
}

/** Rosetta writes bytes as hex without a prefix; the prefixed form means the same. */
function readRawHex(value: unknown, place: Place): Uint8Array {
  const text = readText(value, place);
  if (!/^(0x)?([0-9a-fA-F]{2})+$/.test(text)) throw fault(place, "hex");
  return hexToBytes(text.startsWith("0x") ? text : `0x${text}`);
}
