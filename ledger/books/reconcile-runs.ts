/** The record of reconciliations on a schedule: what was found, when, at which height. */
import type { Height } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { listedBehind, listedBy, type ListOrder } from "../list-order.js";
import { storedHeight, storedInteger } from "../stored-values.js";
import { NATIVE_ASSET } from "../journal/accounts.js";
import type { AccountLine, ReconcileReport } from "./reconcile.js";
import type { BookTotals } from "./reconcile-books.js";

/** One account of coins at one height; units as decimal strings, as they are stored. */
export interface ReconciledAccount {
  readonly account: string;
  readonly chainUnits: string;
  readonly ledgerUnits: string;
  /** What is on its way; chain - ledger - this is zero when reconciled. */
  readonly inFlightUnits: string;
}

/** One asset at one height. */
export interface ReconciledAsset {
  readonly asset: string;
  readonly accounts: readonly ReconciledAccount[];
  /** What can be withdrawn and what is held for withdrawals, the exchange's own moves among it. */
  readonly availableUnits: string;
  readonly heldUnits: string;
  /** What customers have of both; undefined in runs of former versions, as what follows. */
  readonly owedUnits?: string;
  /** By the books, beside the accounts: in cold storage, and between two addresses of the exchange. */
  readonly coldUnits?: string;
  readonly inTransitUnits?: string;
}

/** One reconciliation. */
export interface ReconcileRun {
  readonly id: number;
  readonly at: Date;
  readonly height: Height;
  readonly clean: boolean;
  /** Sentences about what does not match; empty when all does. */
  readonly findings: readonly string[];
  /** Empty for runs of former versions. */
  readonly assets: readonly ReconciledAsset[];
}

/** Findings that are kept of one run: they are for people. */
const MAX_FINDINGS = 50;

/** Accounts that are kept of one asset, few enough to be kept each time. */
const MAX_ACCOUNTS = 50;

/** The wallets together that are not kept one by one: without them an asset would have less than it has. */
export const OTHER_WALLETS = "asset:wallet:others";

/** What a report says of each asset. */
export function reconciledAssets(report: ReconcileReport): readonly ReconciledAsset[] {
  return [{ ...report, asset: NATIVE_ASSET }, ...report.tokens].map(
    ({ asset, lines, ...totals }) => ({
      asset,
      accounts: keptAccounts(lines.filter(isUsed)),
      availableUnits: totals.availableUnits.toString(),
      heldUnits: totals.heldUnits.toString(),
      owedUnits: owedUnits(totals).toString(),
      coldUnits: totals.coldUnits.toString(),
      inTransitUnits: totals.inTransitUnits.toString(),
    }),
  );
}

/** Most wallets hold none of most tokens. */
function isUsed({ chainUnits, ledgerUnits, inFlight }: AccountLine): boolean {
  return chainUnits !== 0n || ledgerUnits !== 0n || inFlight.length > 0;
}

/** The last ones: deposit addresses, and the wallets that were registered last. */
function keptAccounts(lines: readonly AccountLine[]): readonly ReconciledAccount[] {
  if (lines.length <= MAX_ACCOUNTS) return lines.map((line) => accountOf(line.account, [line]));
  const first = lines.length - (MAX_ACCOUNTS - 1);
  return [
    accountOf(OTHER_WALLETS, lines.slice(0, first)),
    ...lines.slice(first).map((line) => accountOf(line.account, [line])),
  ];
}

function accountOf(account: string, lines: readonly AccountLine[]): ReconciledAccount {
  const sumOf = (read: (line: AccountLine) => bigint) =>
    lines.reduce((sum, line) => sum + read(line), 0n).toString();
  return {
    account,
    chainUnits: sumOf(({ chainUnits }) => chainUnits),
    ledgerUnits: sumOf(({ ledgerUnits }) => ledgerUnits),
    inFlightUnits: sumOf(({ inFlight }) =>
      inFlight.reduce((sum, { amountUnits }) => sum + amountUnits, 0n),
    ),
  };
}

/** What customers have: all that can be withdrawn or is held, without what the exchange owes itself. */
function owedUnits(totals: BookTotals): bigint {
  const { availableUnits, heldUnits, ownAvailableUnits, ownHeldUnits } = totals;
  return availableUnits - ownAvailableUnits + (heldUnits - ownHeldUnits);
}

/**
 * Runs that are kept, and as many of those before that found something: of five weeks at one in five minutes,
 * of more than the console draws. Whatever is older tells that nothing was found then.
 */
const RUNS_KEPT = 10_000;

/** Old runs that are forgotten behind one: what former releases have kept goes within some days. */
const FORGOTTEN_AT_ONCE = 1_000;

/** Writes a run down, and forgets old ones; none of the last day, however many they are. */
export async function recordRun(
  sql: Sql,
  run: Pick<ReconcileRun, "height" | "clean" | "findings" | "assets">,
  kept = RUNS_KEPT,
): Promise<void> {
  const { height, clean, findings, assets } = run;
  await sql.query(
    `INSERT INTO reconcile_run (height, clean, findings, assets)
     VALUES ($1, $2, $3::jsonb, $4::jsonb)`,
    [height, clean, JSON.stringify(clean ? [] : keptFindings(findings)), JSON.stringify(assets)],
  );
  await sql.query(`SELECT prune_reconcile_runs($1, $2)`, [kept, FORGOTTEN_AT_ONCE]);
}

/** The first ones, and how many more there were. */
function keptFindings(findings: readonly string[]): readonly string[] {
  if (findings.length <= MAX_FINDINGS) return findings;
  const kept = findings.slice(0, MAX_FINDINGS - 1);
  return [...kept, `${findings.length - kept.length} ${MORE_FINDINGS}`];
}

/** Behind the number of those that a run does not keep. */
const MORE_FINDINGS = "more findings";

/**
 * Whether a run has kept these findings, between which it may have others: of more than a run keeps the
 * first ones of them, as it cannot say what the others were.
 */
export function hasKept(
  run: Pick<ReconcileRun, "findings"> | undefined,
  findings: readonly string[],
): boolean {
  const kept = new Set(run?.findings);
  const first = findings.findIndex((text) => !kept.has(text));
  if (first === -1) return true;
  const isCut = run?.findings.at(-1)?.endsWith(MORE_FINDINGS) ?? false;
  return isCut && first > 0 && !findings.slice(first).some((text) => kept.has(text));
}

/** The newest run. */
export interface LastRun extends ReconcileRun {
  /** By the database's clock, which dates runs; below zero where that was set back since. */
  readonly ageMs: number;
}

/** The last run of whichever process; undefined before the first. */
export async function lastRun(sql: Sql): Promise<LastRun | undefined> {
  const [row] = await sql.query<RunRow & { readonly age_ms: string }>(
    `SELECT ${RUN_COLUMNS}, (extract(epoch FROM clock_timestamp() - at) * 1000)::bigint::text AS age_ms
       FROM reconcile_run ORDER BY reconcile_run.id DESC LIMIT 1`,
  );
  if (row === undefined) return undefined;
  const { age_ms: ageMs, ...run } = row;
  return { ...toRun(run), ageMs: Number(ageMs) };
}

/** Block of the last comparison below a height in which all matched; undefined before the first. */
export async function lastCleanHeight(sql: Sql, below: Height): Promise<Height | undefined> {
  const [row] = await sql.query<{ height: string }>(
    `SELECT height::text AS height FROM reconcile_run
      WHERE clean AND height < $1 ORDER BY id DESC LIMIT 1`,
    [below],
  );
  return row === undefined ? undefined : storedHeight(row.height);
}

type RunRow = Omit<ReconcileRun, "id" | "height"> & Record<"id" | "height", string>;

const RUN_COLUMNS = "id, at, height, clean, findings, assets";

function toRun(row: RunRow): ReconcileRun {
  return { ...row, id: storedInteger(row.id), height: storedHeight(row.height) };
}

/**
 * Runs behind a position.
 * @param page.asset of this asset alone: of many tokens in many wallets one run has a tenth of a megabyte
 */
export async function listRuns(
  sql: Sql,
  page: {
    readonly afterId: number;
    readonly limit: number;
    readonly order: ListOrder;
    readonly asset?: string;
  },
): Promise<readonly ReconcileRun[]> {
  const rows = await sql.query<RunRow>(
    `SELECT id, at, height, clean, findings,
            CASE WHEN $3::text IS NULL THEN assets
                 ELSE jsonb_path_query_array(assets, '$[*] ? (@.asset == $asset)',
                                             jsonb_build_object('asset', $3::text)) END AS assets
       FROM reconcile_run
      WHERE ${listedBehind("id", page.order)} ORDER BY ${listedBy("id", page.order)} LIMIT $2`,
    [page.afterId, page.limit, page.asset ?? null],
  );
  return rows.map(toRun);
}
