/** What several tests of audits set up alike. */
import { ANY_REQUEST } from "../../helpers/keys/signing.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { acceptWithdrawals } from "../../../ledger/withdrawals/withdrawals.js";
import type { SqlDatabase } from "../../../runtime/sql/sql.js";
import { HOT, STRANGER } from "../../helpers/services/watcher.js";

/** A request of a customer, accepted: its amount is held. */
export async function acceptOne(
  database: SqlDatabase,
  customer: string,
  amountUnits: bigint,
): Promise<void> {
  const request = {
    idempotencyKey: `audit-${customer}`,
    customerId: parseCustomerId(customer),
    asset: "TOKEN",
    destination: STRANGER,
    destinationText: STRANGER,
    amountUnits,
    wallet: HOT,
  };
  const rules = { ...ANY_REQUEST, nowMs: Date.now() };
  const [outcome] = await acceptWithdrawals(database, [request], rules);
  if (outcome?.outcome !== "accepted") throw new Error("the ledger did not take the request");
}
