/** What is asked anew before bytes go out: a round may be long, and what it began with is old by then. */
import type { Address } from "../../chain/address.js";
import { openIncident } from "../../ledger/incidents.js";
import { stops } from "../../ledger/kill-switch/kill-switch-level.js";
import { readPayable } from "../../ledger/wallets/payable-wallets.js";
import type { TreasuryContext } from "./treasury-context.js";

/** Only these are given coins: another one's key may be gone, or in other hands. */
export async function payableWallets(context: TreasuryContext): Promise<readonly Address[]> {
  const known = new Set(context.wallets());
  return (await readPayable(context.database)).filter((address) => known.has(address));
}

/** Whether anything may be sent now. */
export async function maySend({ database, killSwitch }: TreasuryContext): Promise<boolean> {
  if (stops((await killSwitch.read()).level, "stop-broadcast")) return false;
  return (await openIncident(database)) === undefined;
}
