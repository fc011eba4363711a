/** Pure: a statement as JSON for programs and as CSV for spreadsheets; amounts are whole units. */
import type {
  CustomerUnits,
  Statement,
  StatementAsset,
  StatementMovement,
} from "../../../ledger/books/statement.js";

/** First field of the JSON. */
const FORMAT = "causeway-statement/1";

const COLUMNS = [
  "line",
  "asset",
  "time",
  "kind",
  "key",
  "available_change",
  "held_change",
  "available_after",
  "held_after",
  "deposit",
  "withdrawal",
  "transaction",
  "block",
  "link",
  "link_hash",
] as const;

type Cells = Partial<Record<(typeof COLUMNS)[number], string | number | bigint | undefined>>;

/** The JSON document, with a newline at its end. */
export function statementJson(statement: Statement): string {
  const { assets, ...head } = statement;
  const document = {
    format: FORMAT,
    ...head,
    assets: assets.map(({ asset, opening, movements, closing }) => ({
      asset,
      opening: unitsJson(opening),
      movements: movements.map(movementJson),
      closing: unitsJson(closing),
    })),
  };
  return `${JSON.stringify(document, null, 1)}\n`;
}

/** The table: a line for each opening, movement and closing (RFC 4180). */
export function statementCsv({ assets, from, to }: Statement): string {
  const lines = assets.flatMap((asset) => assetLines(asset, { from, to }));
  return [COLUMNS.join(","), ...lines.map(csvLine)].map((text) => `${text}\r\n`).join("");
}

function assetLines(
  { asset, opening, movements, closing }: StatementAsset,
  { from, to }: Pick<Statement, "from" | "to">,
): readonly Cells[] {
  return [
    { line: "opening", asset, time: from, ...after(opening) },
    ...movements.map(({ postedAt, kind, key, change, after: then, evidence }) => ({
      line: "movement",
      asset,
      time: postedAt,
      kind,
      key,
      available_change: change.availableUnits,
      held_change: change.heldUnits,
      ...after(then),
      deposit: evidence.depositId,
      withdrawal: evidence.withdrawalId,
      transaction: evidence.txHash,
      block: evidence.height,
      link: evidence.link?.n,
      link_hash: evidence.link?.hash,
    })),
    { line: "closing", asset, time: to, ...after(closing) },
  ];
}

function after({ availableUnits, heldUnits }: CustomerUnits): Cells {
  return { available_after: availableUnits, held_after: heldUnits };
}

function csvLine(cells: Cells): string {
  return COLUMNS.map((column) => csvCell(cells[column]?.toString() ?? "")).join(",");
}

/** Quoted where need be; a spreadsheet must not take a text for a formula. */
function csvCell(text: string): string {
  const isFormula = /^[=+@\t\r]/.test(text) || /^-[^0-9]/.test(text);
  const safe = isFormula ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function movementJson({ change, after: then, evidence, ...movement }: StatementMovement) {
  return {
    ...movement,
    change: unitsJson(change),
    after: unitsJson(then),
    evidence: {
      depositId: evidence.depositId ?? null,
      withdrawalId: evidence.withdrawalId ?? null,
      txHash: evidence.txHash ?? null,
      blockNumber: evidence.height ?? null,
      link: evidence.link ?? null,
    },
  };
}

/** Opening and closing of one asset, as the document has them. */
export function balancesJson({ asset, opening, closing }: Omit<StatementAsset, "movements">) {
  return { asset, opening: unitsJson(opening), closing: unitsJson(closing) };
}

function unitsJson({ availableUnits, heldUnits }: CustomerUnits) {
  return { availableUnits: availableUnits.toString(), heldUnits: heldUnits.toString() };
}
