/** After a run: what the APIs say, and beside it what the chain's blocks alone say. */
import { Client } from "pg";
import { databaseUrl } from "../../../runtime/config/service-urls.js";
import { type ApiDeposit, type ApiEvent, type ApiWithdrawal } from "./api.js";
import { readDeposits, readEvents, readWithdrawals } from "./api.js";
import type { ScannedTransaction, TestReceipt } from "./chain.js";
import type { ExpectedDeposit, ExchangeRun } from "./run.js";
import type { ExchangeStage } from "./stage.js";
import type { AcceptedIntent } from "./withdrawals.js";
import { runCauseway, type RunningKit } from "../kit.js";

/** A mined transaction of the hot wallet. */
export interface HotTransaction extends ScannedTransaction {
  readonly receipt: TestReceipt;
}

/** Both sides. */
export interface Audit {
  readonly deposits: readonly ApiDeposit[];
  readonly withdrawals: ReadonlyMap<string, ApiWithdrawal>;
  readonly events: readonly ApiEvent[];
  /** Every transaction that the hot wallet ever signed and that was mined, in chain order. */
  readonly hot: readonly HotTransaction[];
  /** Rows that must be there: what the test sent, and what withdrawals to own addresses brought. */
  readonly expected: readonly ExpectedDeposit[];
  /** Intents whose payment is on the chain. */
  readonly paid: readonly AcceptedIntent[];
}

/** Reads both sides. */
export async function auditRun(run: ExchangeRun): Promise<Audit> {
  const { kit, hotWallet, chain } = run.stage;
  const deposits = await readDeposits(kit);
  const rows = await readWithdrawals(kit);
  const withdrawals = new Map(rows.map((row) => [row.id, row]));
  const events = await readEvents(kit);
  const scanned = await chain.scan(hotWallet);
  const receipts = await chain.mined(scanned.map(({ hash }) => hash));
  const hot = scanned.flatMap((transaction, index) => {
    const receipt = receipts[index];
    return receipt === undefined ? [] : [{ ...transaction, receipt }];
  });
  const expected = [...run.deposits, ...broughtByWithdrawals(run, hot)];
  const paid = matchPayments(run.intents, hot);
  return { deposits, withdrawals, events, hot, expected, paid };
}

/** What one row is about, as text that two sides can be compared by. */
export function depositText(row: {
  readonly txHash: string;
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly txIndex: number;
  readonly address: string;
  readonly customerId: string;
  readonly amountAtoken: string;
  readonly status: string;
}): string {
  const place = `${row.blockNumber} ${row.blockHash} ${row.txIndex} ${row.txHash}`;
  const { customerId, amountAtoken, status } = row;
  return `${place} ${row.address.toLowerCase()} ${customerId} ${amountAtoken} ${status}`;
}

/** The same text of a row that must be there. */
export function expectedText({ receipt, ...row }: ExpectedDeposit): string {
  const { hash: txHash, blockNumber, blockHash, transactionIndex: txIndex } = receipt;
  const amountAtoken = row.amountAtoken.toString();
  return depositText({ ...row, txHash, blockNumber, blockHash, txIndex, amountAtoken });
}

/** Withdrawals that paid our own deposit addresses, directly or through a relay. */
function broughtByWithdrawals(
  { stage, contracts }: ExchangeRun,
  hot: readonly HotTransaction[],
): ExpectedDeposit[] {
  const own = new Map(stage.targets.map((target) => [target.address, target]));
  return hot.flatMap(({ to = "", valueAtoken, receipt }) => {
    const target = own.get(to) ?? contracts.relayTargets.get(to);
    if (target === undefined || !receipt.isSuccess) return [];
    const { address, customerId } = target;
    return [{ address, customerId, amountAtoken: valueAtoken, receipt, status: "credited" }];
  });
}

/**
 * Gives every successful payment on the chain to one intent with the same destination and amount.
 * @throws when a payment belongs to no intent that is left
 */
function matchPayments(
  intents: readonly AcceptedIntent[],
  hot: readonly HotTransaction[],
): AcceptedIntent[] {
  const open = new Map<string, AcceptedIntent[]>();
  for (const intent of intents) {
    const key = `${intent.body.to.toLowerCase()} ${intent.body.amountAtoken}`;
    open.set(key, [...(open.get(key) ?? []), intent]);
  }
  return hot.flatMap(({ to, valueAtoken, hash, receipt }) => {
    if (!receipt.isSuccess) return [];
    const intent = open.get(`${to} ${valueAtoken}`)?.pop();
    if (intent === undefined) throw new Error(`${hash} paid ${valueAtoken} to ${to} for nobody`);
    return [intent];
  });
}

/** Net credit balance of the suspense account, read from the postings. */
export async function suspenseAtoken(kit: RunningKit): Promise<bigint> {
  const portOffset = kit.port("depositApi") - 8_082;
  const client = new Client(databaseUrl({ home: kit.home, env: {}, portOffset }));
  await client.connect();
  try {
    const { rows } = await client.query<{ sum: string }>(
      `SELECT coalesce(sum(CASE WHEN credit = 'liability:suspense' THEN amount_units
                                ELSE -amount_units END), 0)::text AS sum
         FROM posting WHERE 'liability:suspense' IN (debit, credit)`,
    );
    return BigInt(rows[0]?.sum ?? "0");
  } finally {
    await client.end();
  }
}

/** A cause that `reconcile` names. */
export interface NamedCause {
  readonly account: string;
  readonly txHash: string;
  readonly chainAtoken: string;
  readonly ledgerAtoken: string;
}

/** The answer of `causeway reconcile --json`. */
export interface ReconcileAnswer {
  readonly code: number | null;
  readonly clean: boolean;
  readonly internalBreaks: readonly unknown[];
  readonly causes: readonly NamedCause[];
  /** Chain minus ledger of each account. */
  readonly differences: Readonly<Record<string, string>>;
  readonly text: string;
}

/** Runs the command. */
export async function reconcileKit(stage: ExchangeStage): Promise<ReconcileAnswer> {
  return readReconcile(await runCauseway(stage.kit, ["reconcile", "--json"]));
}

/** Reads what the command printed. */
export function readReconcile(output: {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}): ReconcileAnswer {
  if (output.stdout === "") throw new Error(`reconcile printed nothing: ${output.stderr}`);
  const report: {
    clean: boolean;
    internalBreaks: unknown[];
    lines: {
      account: string;
      differenceAtoken: string;
      breaks: { causes: { txHash: string; chainAtoken: string; ledgerAtoken: string }[] }[];
    }[];
  } = JSON.parse(output.stdout);
  return {
    code: output.code,
    clean: report.clean,
    internalBreaks: report.internalBreaks,
    causes: report.lines.flatMap(({ account, breaks }) =>
      breaks.flatMap(({ causes }) =>
        causes.map(({ txHash, chainAtoken, ledgerAtoken }) => ({
          account,
          txHash,
          chainAtoken,
          ledgerAtoken,
        })),
      ),
    ),
    differences: Object.fromEntries(
      report.lines.map(({ account, differenceAtoken }) => [account, differenceAtoken]),
    ),
    text: output.stdout,
  };
}
