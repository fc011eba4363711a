/**
 * Requests that are signed by their caller's key, beside the bearer key that names it: a key that
 * leaks on its way changes nothing by itself, and what was signed is what is carried out. Pure.
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { verifySignature } from "../../chain/consensus/ed25519.js";
import { requestError } from "./http-errors.js";

/** What a key's signatures are held against. */
export type RequestVerifier =
  | { readonly kind: "hmac"; readonly secret: string }
  /** 32 bytes. */
  | { readonly kind: "ed25519"; readonly publicKey: Uint8Array };

/** The signed parts of a request. */
export interface SignedParts {
  readonly method: string;
  /** Path and query as they were sent. */
  readonly target: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawBody: Uint8Array;
}

/** Signatures that are older, or newer, are refused; younger ones are let through once. */
const SIGNATURE_WINDOW_MS = 300_000;

const MAX_HEADER_LENGTH = 256;
const ED25519_BYTES = 64;

/**
 * What is signed: method, target, timestamp and the SHA-256 of the body in hex, and the
 * Idempotency-Key where there is one, on a line each without a newline at the end. Timestamp and key
 * are as they were sent: who could change the key on its way would make a repeat another request.
 */
function signedText({ method, target, headers, rawBody }: SignedParts): string {
  const bodySha256 = createHash("sha256").update(rawBody).digest("hex");
  const lines = [method, target, headerOf(headers, "causeway-timestamp"), bodySha256];
  const { "idempotency-key": idempotencyKey } = headers;
  return [...lines, ...(typeof idempotencyKey === "string" ? [idempotencyKey] : [])].join("\n");
}

/**
 * Holds a request against its key.
 * @throws requestError 401 with the codes SIGNATURE_MISSING, SIGNATURE_EXPIRED, SIGNATURE_INVALID
 */
export function checkSignature(parts: SignedParts, verifier: RequestVerifier, nowMs: number): void {
  const timestamp = headerOf(parts.headers, "causeway-timestamp");
  const signature = headerOf(parts.headers, "causeway-signature");
  if (timestamp === "" || signature === "") {
    throw signatureFault(
      "SIGNATURE_MISSING",
      "this API key signs its requests: causeway-timestamp and causeway-signature are needed",
    );
  }
  const atMs = timestampMs(timestamp);
  if (atMs === undefined || Math.abs(nowMs - atMs) > SIGNATURE_WINDOW_MS) {
    throw signatureFault(
      "SIGNATURE_EXPIRED",
      "causeway-timestamp must be Unix time in seconds or milliseconds, at most 5 minutes off",
    );
  }
  const [, hex = ""] = /^v1=([0-9a-f]{64}|[0-9a-f]{128})$/i.exec(signature) ?? [];
  if (!isSignedBy(verifier, signedText(parts), Buffer.from(hex, "hex"))) {
    throw signatureFault(
      "SIGNATURE_INVALID",
      "causeway-signature is not this key's for this request",
    );
  }
}

/** Natural key of one signed request: the same is let through once. 64 hex digits. */
export function signedDigest(keyId: string, parts: SignedParts): string {
  return createHash("sha256")
    .update(`${keyId}\n${signedText(parts)}`)
    .digest("hex");
}

/** The refusal of a signed request that was let through before. */
export function signatureReplayed(): Error {
  return signatureFault(
    "SIGNATURE_REPLAYED",
    "this signed request was let through before: sign it anew, with another timestamp",
  );
}

function isSignedBy(verifier: RequestVerifier, text: string, signature: Buffer): boolean {
  if (verifier.kind === "hmac") {
    const expected = createHmac("sha256", verifier.secret).update(text).digest();
    return expected.length === signature.length && timingSafeEqual(expected, signature);
  }
  if (signature.length !== ED25519_BYTES) return false;
  return verifySignature(verifier.publicKey, Buffer.from(text, "utf8"), signature);
}

/** Seconds (10 digits) or milliseconds (13): a client may send the same twice in a second. */
function timestampMs(text: string): number | undefined {
  if (!/^([0-9]{10}|[0-9]{13})$/.test(text)) return undefined;
  return text.length === 10 ? Number(text) * 1_000 : Number(text);
}

/** The one value of a header; "" for none, several, or one that is too long. */
function headerOf(headers: IncomingHttpHeaders, name: string): string {
  const value = headers[name];
  return typeof value === "string" && value.length <= MAX_HEADER_LENGTH ? value : "";
}

function signatureFault(code: string, message: string): Error {
  return requestError(401, message, { details: { code } });
}
