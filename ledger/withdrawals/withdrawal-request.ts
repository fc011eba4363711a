/** Pure: a request to withdraw, and what makes two of them the same. */
import type { Address } from "../../chain/address.js";
import { sha256 } from "../../chain/hashes.js";
import { bytesToHex } from "../../chain/hex.js";
import type { CustomerId } from "../books/accounts.js";

/** What a client asks for, parsed. */
export interface WithdrawalRequest {
  /** 1-128 printable ASCII characters; one accepted request each, for ever. */
  readonly idempotencyKey: string;
  readonly customerId: CustomerId;
  readonly asset: string;
  readonly destination: Address;
  /** The destination as the client wrote it; shown in answers. */
  readonly destinationText: string;
  /** Greater than zero, below 2^256. */
  readonly amountUnits: bigint;
  /** Deadline, milliseconds since 1970 UTC: not paid by then, it is cancelled; none without it. */
  readonly expiresAtMs?: number | undefined;
  /** The API key that asks; it can never approve. */
  readonly requestedBy?: string | undefined;
}

/** Hash of what the request means: another spelling of the same request is the same request. */
export function hashRequest(request: WithdrawalRequest): string {
  const { customerId, asset, destination, amountUnits, expiresAtMs } = request;
  const terms = [customerId, asset, destination, amountUnits.toString()];
  // Without a deadline the hash is what it was before there were any.
  const meaning = JSON.stringify(expiresAtMs === undefined ? terms : [...terms, expiresAtMs]);
  return bytesToHex(sha256(Buffer.from(meaning, "utf8")));
}
