/** Which account bears what a request was to pay, where the chain has paid it in another way, or did not. */
import type { Sql } from "../../runtime/sql/sql.js";
import {
  type AccountCode,
  COLD_STORAGE,
  customerAccount,
  parseCustomerId,
  SUSPENSE,
  TREASURY,
} from "../journal/accounts.js";
import type { WithdrawalId } from "./withdrawal-id.js";

/**
 * Pure: a customer's request is borne by its customer. What the treasury moves is the exchange's wherever it
 * is: coins for cold storage lie there, and gas that nobody had asked for by the books waits in suspense, as
 * what came to its address.
 * @param moveKind of the treasury's move whose request it is; null for a customer's
 */
export function bearerAccount(request: {
  readonly customerId: string;
  readonly moveKind: string | null;
}): AccountCode {
  if (request.moveKind === null) return customerAccount(parseCustomerId(request.customerId));
  return request.moveKind === "cold" ? COLD_STORAGE : SUSPENSE;
}

/** Which bear what the treasury's moves were to pay, of either kind. */
export const BEARERS_OF_MOVES: ReadonlySet<AccountCode> = new Set(
  ["cold", "top-up"].map((moveKind) => bearerAccount({ customerId: TREASURY, moveKind })),
);

/** The account of a stored request; undefined where there is none. */
export async function bearerOf(sql: Sql, id: WithdrawalId): Promise<AccountCode | undefined> {
  const [row] = await sql.query<{ customer_id: string; move_kind: string | null }>(
    `SELECT w.customer_id, m.kind AS move_kind
       FROM withdrawal w LEFT JOIN treasury_move m ON m.withdrawal_id = w.id WHERE w.id = $1`,
    [id],
  );
  return row && bearerAccount({ customerId: row.customer_id, moveKind: row.move_kind });
}
