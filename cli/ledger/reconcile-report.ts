/** The answer of a reconciliation as text for people and as JSON for programs. */
import { toChecksumAddress } from "../../chain/address.js";
import { atokenToToken } from "../../chain/units.js";
import { NATIVE_ASSET } from "../../ledger/journal/accounts.js";
import { divergenceText, type ExplainedReport } from "../../ledger/books/break-causes.js";
import { otherBlockText } from "../../ledger/books/compared-block.js";
import {
  type AccountLine,
  type AddressBreak,
  type ReconcileReport,
  type TokenReport,
} from "../../ledger/books/reconcile.js";

/** Of one asset, as it is told. */
type AssetPart = Omit<TokenReport, "contract">;

/** JSON: units of every asset, and the same as atoken where they are. */
export function encodeReport(report: ReconcileReport): object {
  const { tokens, ...native } = report;
  return { ...Object(withAtoken(native)), tokens };
}

/** Each `...Units` a second time as `...Atoken`. */
function withAtoken(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withAtoken);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, entry]): [string, unknown][] =>
      key.endsWith("Units")
        ? [
            [key, entry],
            [`${key.slice(0, -"Units".length)}Atoken`, entry],
          ]
        : [[key, withAtoken(entry)]],
    ),
  );
}

/** The lines of a report that compared: one per account, what is in flight, every break. */
export function renderReport(report: ReconcileReport, behindBlocks: number): readonly string[] {
  const { height, blockHash } = report;
  const otherBlock = otherBlockText(report);
  const notes = [
    ...(otherBlock === undefined ? [] : [`Other blocks: ${otherBlock}.`]),
    ...(behindBlocks > 0
      ? [`Blocks below the head that the watcher has not booked: ${behindBlocks}.`]
      : []),
    ...(report.halted === undefined ? [] : [`Crediting is halted by ${report.halted}.`]),
  ];
  const { count, amountUnits } = report.recoveredPayments;
  return [
    `Ledger and chain at height ${height} (${blockHash}), in TOKEN:`,
    ...renderAsset({ ...report, asset: NATIVE_ASSET }),
    ...(count === 0
      ? []
      : [
          `recovered payments that nobody has decided about: ${count}, ` +
            `${atokenToToken(amountUnits)}; see causeway ledger open`,
        ]),
    ...report.tokens.flatMap((part) => [
      `${part.asset} (${toChecksumAddress(part.contract)}), in its units:`,
      ...renderAsset(part),
    ]),
    ...notes,
    report.clean ? cleanText(report, behindBlocks) : "BREAK: ledger and chain do not match.",
  ];
}

/** Who reads the last line alone is told that nobody has looked at what came since. */
function cleanText({ height, halted }: ReconcileReport, behindBlocks: number): string {
  const even = "every account matches to the last atoken.";
  if (halted === undefined) return `Clean: ${even}`;
  const unseen = `Nothing is said of the ${behindBlocks} blocks since, which the watcher does not book.`;
  return `Clean at height ${height}, and HALTED: ${even} ${unseen}`;
}

function renderAsset(part: AssetPart): string[] {
  const amount = (units: bigint) => amountOf(part.asset, units);
  const { ownAvailableUnits, ownHeldUnits, coldUnits, inTransitUnits } = part;
  const ownUnits = ownAvailableUnits + ownHeldUnits;
  const rows = [
    ["account", "ledger", "in flight", "chain", "difference"],
    ...part.lines.map((line) => [
      line.account,
      amount(line.ledgerUnits),
      amount(line.inFlight.reduce((sum, item) => sum + item.amountUnits, 0n)),
      amount(line.chainUnits),
      amount(line.differenceUnits),
    ]),
  ];
  const unit = unitOf(part.asset);
  return [
    ...alignColumns(rows),
    `customers can withdraw ${amount(part.availableUnits - ownAvailableUnits)}, ` +
      `held for their withdrawals ${amount(part.heldUnits - ownHeldUnits)}`,
    ...(ownUnits === 0n ? [] : [`held for the exchange's own moves ${amount(ownUnits)}`]),
    ...(coldUnits === 0n && inTransitUnits === 0n
      ? []
      : [
          `by the books beside these accounts: in cold storage ${amount(coldUnits)}, ` +
            `in transit ${amount(inTransitUnits)}`,
        ]),
    ...part.lines.flatMap(({ inFlight }) =>
      inFlight.map((item) => `in flight: ${item.what}: ${amount(item.amountUnits)}`),
    ),
    ...renderDecided(part),
    ...part.lines.flatMap((line) => renderBreaks(line, unit)),
    ...part.internalBreaks.map(
      (found) =>
        `BREAK inside the ledger: ${found.what}: expected ${found.expectedUnits} ${unit}, ` +
        `found ${found.foundUnits} ${unit}`,
    ),
  ];
}

/** What persons said about coins on the chain. */
function renderDecided({ asset, decided }: AssetPart): string[] {
  return decided.map(
    (entry) =>
      `decided (${entry.decision}): ${entry.txHash} in block ${entry.height}: ` +
      `${amountOf(asset, entry.amountUnits)} from ${entry.credit} to ${entry.debit}, ` +
      `by ${entry.operators.join(" and ")}: ${entry.reason}`,
  );
}

function renderBreaks(line: AccountLine, unit: string): string[] {
  return [
    ...line.breaks.flatMap((found) => renderBreak(line.account, found, unit)),
    ...(line.moreBreaks > 0 ? [`BREAK ${line.account}: ${line.moreBreaks} more addresses`] : []),
  ];
}

function renderBreak(account: string, found: AddressBreak, unit: string): string[] {
  return [
    `BREAK ${account} ${toChecksumAddress(found.address)}: chain ${found.chainUnits} ${unit}, ` +
      `ledger ${found.ledgerUnits} ${unit}, difference ${found.differenceUnits} ${unit}`,
  ];
}

/** The lines about breaks that were looked into: since when each is there, and the transactions behind it. */
export function renderExplained({ report, divergences }: ExplainedReport): readonly string[] {
  const assets: readonly AssetPart[] = [{ ...report, asset: NATIVE_ASSET }, ...report.tokens];
  return divergences.flatMap((divergence) => {
    const { asset, account, address } = divergence;
    const found = assets
      .find((part) => part.asset === asset)
      ?.lines.find((line) => line.account === account)
      ?.breaks.find((one) => one.address === address);
    const causes = found === undefined ? [] : renderCauses(found, unitOf(asset));
    return [divergenceText(divergence), ...causes];
  });
}

function renderCauses(found: AddressBreak, unit: string): string[] {
  const { lookedUpTo } = found;
  return [
    ...found.causes.map(
      (cause) =>
        `  ${cause.txHash} ` +
        (cause.height === undefined ? "is not on the chain" : `in block ${cause.height}`) +
        `: chain ${cause.chainUnits} ${unit}, ledger ${cause.ledgerUnits} ${unit}`,
    ),
    ...(found.unexplained === undefined
      ? []
      : [`  the node does not tell its transactions: ${found.unexplained}`]),
    ...(found.moreCauses > 0 ? [`  and ${found.moreCauses} more transactions`] : []),
    ...(lookedUpTo === undefined
      ? []
      : [`  and more transactions than are looked through: those behind block ${lookedUpTo}`]),
  ];
}

/** Coins in TOKEN with all 18 decimals where they are not zero; tokens in whole units. */
function amountOf(asset: string, units: bigint): string {
  return asset === NATIVE_ASSET ? atokenToToken(units) : units.toString();
}

function unitOf(asset: string): string {
  return asset === NATIVE_ASSET ? "atoken" : `units of ${asset}`;
}

/** First column to the left, the others to the right. */
function alignColumns(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? "").length)),
  );
  return rows.map((row) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join("  "),
  );
}
