/** Names of a withdrawal: its identifier, and the key of the one journal entry that ends it. */
import { randomUUID } from "node:crypto";

/** Identifier of a withdrawal: `wd_` and a UUID. */
export type WithdrawalId = string & { readonly __brand: "WithdrawalId" };

/**
 * A new identifier: 48 bits of time and 74 random ones (RFC 9562, version 7). Some seventeen entries of
 * indexes begin with it; those of one time share a few pages, however many withdrawals there are.
 * @param nowMs milliseconds since 1970 UTC
 */
export function newWithdrawalId(nowMs: number): WithdrawalId {
  const time = nowMs.toString(16).padStart(12, "0");
  // Of a random UUID all but its first 48 bits and its version.
  return toWithdrawalId(`wd_${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`);
}

/** Text from a request's path or a table to an identifier; any text may be looked up. */
export function toWithdrawalId(text: string): WithdrawalId {
  return text as WithdrawalId;
}

/** Key of the one journal entry that ends a withdrawal, whichever way it ends. */
export function endingKey(id: WithdrawalId): string {
  return `withdrawal:${id}:end`;
}
