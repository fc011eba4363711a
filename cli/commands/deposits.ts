/** `causeway deposits list|status|resume`: what came, how far it is booked, what halts it. */
import { amountFields } from "../../ledger/journal/amount-fields.js";
import { type Incident, openIncident, resumeCrediting } from "../../ledger/incidents.js";
import { closeIfBehind } from "../../ledger/guard/ledger-guard.js";
import { readCursor } from "../../ledger/watch/watch-cursor.js";
import { readApiKeyFile } from "../../runtime/config/secret-file.js";
import { amountText } from "../amount-text.js";
import { CliError } from "../errors.js";
import { type CommandContext, toJson } from "../command-context.js";
import { homePaths } from "../home/home.js";
import { loadKitConfig } from "../home/kit-config.js";
import { createExchangeClient } from "../probe/exchange-client.js";
import { operatorName } from "./ledger-decisions.js";
import { withLedgerAlone } from "../ledger/ledger-alone.js";
import type { LedgerCommand } from "../ledger/ledger-tools.js";
import { accountIn } from "../transactions/values.js";

/** Lists the deposits to one address, oldest first, by the ids that `causeway ledger` takes. */
export async function runListDeposits(
  context: CommandContext,
  options: { readonly address: string },
): Promise<number> {
  const address = accountIn(options.address, "--address");
  const { depositUrl, withdrawalUrl } = loadKitConfig(context).endpoints;
  const apiKey = readApiKeyFile(homePaths(context.home).apiKey);
  const client = createExchangeClient({ depositUrl, withdrawalUrl, apiKey });
  const deposits = await client.depositsTo(address, context.signal);
  if (context.json) {
    const rows = deposits.map(({ amountUnits, ...row }) => ({
      ...row,
      ...amountFields(row.asset, amountUnits),
    }));
    context.print(toJson({ deposits: rows }));
    return 0;
  }
  for (const { id, blockNumber, txHash, asset, amountUnits, status } of deposits) {
    const amount = amountText(asset, amountUnits);
    context.print(`  ${id}  block ${blockNumber}  ${txHash}  ${amount}  ${status}`);
  }
  if (deposits.length === 0) context.print("No deposit to this address is known.");
  return 0;
}

/**
 * Prints the cursor and the open incident.
 * @returns 0 when crediting goes on, 1 while an incident halts it
 */
export async function runDepositsStatus(command: LedgerCommand): Promise<number> {
  return withLedgerAlone(command, async ({ database }) => {
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
          : `crediting and signing are halted since ${incident.openedAt} by ${incident.kind}: ` +
            sentence(incident);
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
  return withLedgerAlone(command, async ({ database }) => {
    await closeIfBehind(database, command.home);
    const incident = await openIncident(database);
    if (incident?.kind === "RECOVERY") {
      throw new CliError("USAGE", `This is no incident of the chain. ${sentence(incident)}`);
    }
    const resumed =
      incident === undefined
        ? 0
        : await resumeCrediting(database, operatorName(undefined), incident.id);
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

function sentence({ message, remedy }: Incident): string {
  return `${message}; ${remedy}`;
}
