/** `causeway audit statement CUSTOMER`: opening, movements with their evidence, closing. */
import { AUDIT_EXIT } from "../errors.js";
import { createHash } from "node:crypto";
import { basename, resolve } from "node:path";
import { momentMsOf } from "../../../chain/encoding/calendar.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import {
  type CustomerUnits,
  readStatement,
  type StatementAsset,
} from "../../../ledger/books/statement.js";
import { toldUntil } from "../../../ledger/books/statement-ends.js";
import { linkAll } from "../../../ledger/tamper/chainer.js";
import { amountText } from "../../amount-text.js";
import { type CommandContext, printJson } from "../../command-context.js";
import { withLedgerAlone } from "../../ledger/ledger-alone.js";
import { assertOwnLedger } from "../../ledger/own-ledger.js";
import { CliError } from "../../errors.js";
import { createFilesOnce, SECRET_MODE } from "../../home/home-file.js";
import { balancesJson, statementCsv, statementJson } from "./formats.js";

/** Flags, as typed. */
export interface StatementOptions {
  readonly from: string;
  readonly to: string;
  readonly out?: string;
}

/** Writes `OUT.json`, `OUT.csv` and `OUT.sha256`, which `sha256sum -c` reads. */
export async function runStatement(
  context: CommandContext,
  customer: string,
  options: StatementOptions,
): Promise<number> {
  const customerId = parseCustomerId(customer);
  const period = { from: readMoment("--from", options.from), to: readMoment("--to", options.to) };
  if (period.from >= period.to) throw new CliError("USAGE", "--from must lie before --to.");
  return withLedgerAlone(context, async ({ database, identity }) => {
    assertOwnLedger(context.home, identity.genesisHash);
    await linkAll(database, context);
    const statement = await readStatement(database, customerId, period, context);
    const day = (moment: string) => moment.slice(0, 10);
    const days = `${day(statement.from)}-${day(statement.to)}`;
    const name = `statement-${customerId.replaceAll(":", "_")}-${days}`;
    const stem = resolve(options.out ?? name);
    const files = [
      { path: `${stem}.json`, text: statementJson(statement) },
      { path: `${stem}.csv`, text: statementCsv(statement) },
    ].map((file) => ({ ...file, sha256: sha256(file.text) }));
    const sums = files.map(({ path, sha256: sum }) => `${sum}  ${basename(path)}\n`).join("");
    const taken = await createFilesOnce(
      [...files, { path: `${stem}.sha256`, text: sums }].map(({ path, text }) => {
        return { path, mode: SECRET_MODE, content: () => text };
      }),
      context,
    );
    if (taken !== undefined) {
      throw new CliError("USAGE", `${taken} is there already: choose another name with --out.`);
    }
    if (context.json) {
      printJson(context, {
        ok: true,
        from: statement.from,
        to: statement.to,
        assets: statement.assets.map(({ movements, ...asset }) => ({
          ...balancesJson(asset),
          movements: movements.length,
        })),
        files: files.map(({ path, sha256: sum }) => ({ path, sha256: sum })),
      });
      return AUDIT_EXIT.clean;
    }
    if (statement.to !== period.to.toISOString()) {
      context.print(`That time is not over: it ends at ${statement.to}.`);
      const told = await toldUntil(database);
      if (told !== undefined && told > statement.to) {
        context.print(
          `The books were told up to ${told} before: what came since lies behind that.`,
        );
      }
    }
    for (const asset of statement.assets) context.print(sumLine(asset));
    for (const { path, sha256: sum } of files) context.print(`${path}  SHA-256 ${sum}`);
    return AUDIT_EXIT.clean;
  });
}

/** "opening 1 TOKEN + 0.5 TOKEN in 2 movements = closing 1.5 TOKEN": what auditors add up first. */
function sumLine({ asset, opening, movements, closing }: StatementAsset): string {
  const total = ({ availableUnits, heldUnits }: CustomerUnits) => availableUnits + heldUnits;
  const moved = movements.reduce((sum, { change }) => sum + total(change), 0n);
  const text = (units: bigint) => amountText(asset, units);
  return (
    `opening ${text(total(opening))} + ${text(moved)} in ${movements.length} movements = ` +
    `closing ${text(total(closing))}`
  );
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** A date (its beginning in UTC) or a time of RFC 3339. */
function readMoment(flag: string, text: string): Date {
  const momentMs = momentMsOf(text);
  if (!Number.isNaN(momentMs)) return new Date(momentMs);
  throw new CliError("USAGE", `${flag} takes a date (2026-11-01) or a time with its zone.`);
}
