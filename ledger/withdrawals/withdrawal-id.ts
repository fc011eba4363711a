/** Names of a withdrawal: its identifier, and the key of the one journal entry that ends it. */

/** Identifier of a withdrawal: `wd_` and a UUID. */
export type WithdrawalId = string & { readonly __brand: "WithdrawalId" };

/** Text from a request's path or a table to an identifier; any text may be looked up. */
export function toWithdrawalId(text: string): WithdrawalId {
  return text as WithdrawalId;
}

/** Key of the one journal entry that ends a withdrawal, whichever way it ends. */
export function endingKey(id: WithdrawalId): string {
  return `withdrawal:${id}:end`;
}
