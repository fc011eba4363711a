/** Rows of a ledger that lies: behind the database's back, as one who has taken it over would write them. */
import { House } from "../../../helpers/exchange/house.js";

/** Writes over what triggers of the database keep. */
export async function overwrite(
  house: House,
  sql: string,
  values: readonly unknown[],
): Promise<void> {
  await house.ledger.owner.transaction(async (tx) => {
    await tx.query(`SET LOCAL session_replication_role = replica`);
    await tx.query(sql, values);
  });
}
