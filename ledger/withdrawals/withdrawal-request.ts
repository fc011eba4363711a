/** Pure: a withdrawal as it is asked for, what makes two requests the same, and as it is stored. */
import type { Address } from "../../chain/address.js";
import { sha256Hex } from "../../chain/hashes.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { CustomerId } from "../journal/accounts.js";
import type { ApprovalState } from "../policy/approval-rows.js";
import type { WithdrawalId } from "../requests/withdrawal-id.js";
import type { WithdrawalStatus } from "../requests/withdrawal-status.js";

/** What a client asks for, parsed. */
export interface WithdrawalRequest {
  /** 1-128 printable ASCII characters; one accepted request each, for ever. */
  readonly idempotencyKey: string;
  readonly customerId: CustomerId;
  readonly asset: string;
  readonly destination: Address;
  /** The destination as the client wrote it; shown in answers. */
  readonly destinationText: string;
  /** The asset is on no list here; who was accepted where it is on one is answered all the same. */
  readonly isUnlisted?: boolean;
  /** Nobody is paid there any more; who was accepted before it was so is answered all the same. */
  readonly isForbidden?: boolean;
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
  return sha256Hex(Buffer.from(meaning, "utf8"));
}

/** A withdrawal as stored. */
export interface Withdrawal {
  readonly id: WithdrawalId;
  /** Place in the list of all withdrawals; commit order. */
  readonly position: number;
  readonly customerId: string;
  readonly asset: string;
  /** The hot wallet whose nonce it has; undefined before it has one. */
  readonly wallet: Address | undefined;
  readonly destination: Address;
  readonly destinationText: string;
  readonly amountUnits: bigint;
  /** Held beside the amount; the exchange's when it settles. */
  readonly feeUnits: bigint;
  readonly status: WithdrawalStatus;
  /** Why it ended without payment, froze or waits; undefined on the usual way. */
  readonly reason: string | undefined;
  /** Deadline in RFC 3339 UTC; undefined without one. */
  readonly expiresAt: string | undefined;
  /** Nonce of its latest slot. */
  readonly nonce: bigint | undefined;
  /** Hashes of every transaction signed for it, oldest first. */
  readonly hashes: readonly Hash32[];
  /** The mined transaction; before that the latest signed one. */
  readonly txHash: Hash32 | undefined;
  readonly blockNumber: Height | undefined;
  /** Every state it was in, `at` in RFC 3339 UTC. */
  readonly history: readonly { readonly status: WithdrawalStatus; readonly at: string }[];
  readonly approval: ApprovalState;
}
