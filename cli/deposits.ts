/** `causeway deposits status|resume`: the watcher's standing, and an operator's word after an incident. */
import { userInfo } from "node:os";
import { openIncident, resumeCrediting } from "../ledger/incidents.js";
import { readCursor } from "../ledger/watch-cursor.js";
import { type LedgerCommand, toJson, withLedger } from "./ledger-tools.js";

/**
 * Prints the cursor and the open incident.
 * @returns 0 when crediting goes on, 1 while an incident halts it
 */
export async function runDepositsStatus(command: LedgerCommand): Promise<number> {
  return withLedger(command, async ({ database }) => {
    const cursor = await readCursor(database);
    const incident = await openIncident(database);
    if (command.json) {
      command.print(toJson({ cursor, incident: incident ?? null }));
    } else {
      const blocks =
        cursor.height < 0 ? "no block is booked yet" : `booked up to block ${cursor.height}`;
      const standing =
        incident === undefined
          ? "crediting goes on"
          : `crediting is halted since ${incident.openedAt} by ${incident.kind}: ${incident.message}`;
      command.print(`${blocks}, ${cursor.nextAddressIndex} addresses, ${standing}`);
    }
    return incident === undefined ? 0 : 1;
  });
}

/**
 * Resumes crediting after an incident. The watcher looks at the cause again and halts anew if it
 * is still there.
 * @returns 0
 */
export async function runDepositsResume(command: LedgerCommand): Promise<number> {
  return withLedger(command, async ({ database }) => {
    const incident = await openIncident(database);
    const resumed = await resumeCrediting(database, operatorName());
    if (command.json) {
      command.print(toJson({ resumed: resumed > 0, incident: incident ?? null }));
    } else if (incident === undefined || resumed === 0) {
      command.print("Nothing was halted.");
    } else {
      command.print(
        `Resumed after ${incident.kind}: ${incident.message}. ` +
          "The watcher checks again and halts anew if the cause is still there.",
      );
    }
    return 0;
  });
}

/** Who resumed, for the incident's record; some containers have users without a name. */
function operatorName(): string {
  try {
    return userInfo().username;
  } catch {
    return "operator";
  }
}
