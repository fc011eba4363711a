/** `causeway reconcile`: the ledger against the chain at one height, tolerance 0. */
import { toChecksumAddress } from "../../chain/address.js";
import { atokenToToken } from "../../chain/units.js";
import { openIncident } from "../../ledger/incidents.js";
import {
  type AccountLine,
  type AddressBreak,
  reconcile,
  type ReconcileChain,
  type ReconcileReport,
} from "../../ledger/books/reconcile.js";
import { readCursor } from "../../ledger/deposits/watch-cursor.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import { sleep } from "../../runtime/process/task.js";
import { type LedgerCommand, type OpenedLedger, toJson, withLedger } from "./ledger-tools.js";

/** Exit code of a clean reconciliation. */
const EXIT_CLEAN = 0;

/** Exit code of a break: ledger and chain, or the ledger with itself, disagree. */
const EXIT_BREAK = 1;

/** Polls of the watcher that the command waits for, so that what is mined now is looked at too. */
const WAIT_POLLS = 5;

/** Pause between two looks at the cursor. */
const CURSOR_LOOK_MS = 50;

/**
 * Compares ledger and chain and prints the result.
 * @returns 0 when every account matches to the last atoken, 1 on a break
 * @throws faults of settings, node and database
 */
export async function runReconcile(command: LedgerCommand): Promise<number> {
  return withLedger(command, async (opened) => {
    const behindBlocks = await waitForWatcher(opened, command.signal);
    const chain = createReconcileChain(opened.node, command.signal);
    const report = await reconcile(opened.database, chain, opened.wallets);
    command.print(
      command.json ? toJson({ ...report, behindBlocks }) : renderReport(report, behindBlocks),
    );
    return report.clean ? EXIT_CLEAN : EXIT_BREAK;
  });
}

/**
 * Lets a running watcher book what is mined at this moment; a stopped or halted one is not waited
 * for long.
 * @returns blocks that are not looked at
 */
async function waitForWatcher(opened: OpenedLedger, signal: AbortSignal): Promise<number> {
  const head = await opened.node.blockNumber({ signal });
  const deadlineMs = performance.now() + WAIT_POLLS * opened.pollIntervalMs;
  let seenHeight = Number.NaN;
  let stuckSinceMs = performance.now();
  for (;;) {
    const { height } = await readCursor(opened.database);
    const nowMs = performance.now();
    if (height !== seenHeight) stuckSinceMs = nowMs;
    seenHeight = height;
    // Catching up is waited for as long as it moves.
    const isOver = nowMs > deadlineMs && nowMs - stuckSinceMs > opened.pollIntervalMs * 2;
    if (height >= head || isOver || (await openIncident(opened.database)) !== undefined) {
      return Math.max(0, head - height);
    }
    await sleep(CURSOR_LOOK_MS, { signal });
  }
}

/** The node as the reconciliation's port. */
export function createReconcileChain(
  node: Pick<EvmClient, "getBalances" | "getTransactionReceipts" | "accountJournal">,
  signal: AbortSignal,
): ReconcileChain {
  return {
    balances: (queries) =>
      node.getBalances(
        queries.map(({ address, height }) => ({ address, at: height })),
        { signal },
      ),
    async minedCosts(hashes) {
      const receipts = await node.getTransactionReceipts(hashes, { signal });
      return receipts.map((receipt) =>
        receipt === undefined
          ? undefined
          : {
              height: receipt.height,
              isSuccess: receipt.status === 1,
              feeAtoken: receipt.gasUsed * receipt.effectiveGasPriceAtoken,
            },
      );
    },
    async *movements(address, upToHeight) {
      let from: number | undefined = 0;
      while (from !== undefined && from <= upToHeight) {
        const range = { from, to: upToHeight };
        const page = await node.accountJournal(address, range, { signal });
        for (const entry of page.entries) {
          if (!entry.change.effective || entry.deltaAtoken === 0n) continue;
          const { height, deltaAtoken } = entry;
          yield { height, deltaAtoken, txHash: entry.transactionHash ?? entry.blockHash };
        }
        from = page.next;
      }
    },
  };
}

/** The report as text: a line per account, what is in flight, and every break with its cause. */
export function renderReport(report: ReconcileReport, behindBlocks: number): string {
  if (report.blockHash === undefined) {
    return "The watcher has not booked a block yet; there is nothing to compare.";
  }
  const rows = [
    ["account", "ledger", "in flight", "chain", "difference"],
    ...report.lines.map((line) => [
      line.account,
      token(line.ledgerAtoken),
      token(line.inFlight.reduce((sum, item) => sum + item.amountAtoken, 0n)),
      token(line.chainAtoken),
      token(line.differenceAtoken),
    ]),
  ];
  const notes = [
    ...(behindBlocks > 0
      ? [`Blocks below the head that the watcher has not booked: ${behindBlocks}.`]
      : []),
    ...(report.halted === undefined ? [] : [`Crediting is halted by ${report.halted}.`]),
  ];
  return [
    `Ledger and chain at height ${report.height} (${report.blockHash}), in TOKEN:`,
    ...alignColumns(rows),
    `customers can withdraw ${token(report.availableAtoken)}, ` +
      `held for withdrawals ${token(report.heldAtoken)}`,
    ...report.lines.flatMap(renderInFlight),
    ...renderDecided(report),
    ...report.lines.flatMap(renderBreaks),
    ...report.internalBreaks.map(
      (found) =>
        `BREAK inside the ledger: ${found.what}: expected ${found.expectedAtoken} atoken, ` +
        `found ${found.foundAtoken} atoken`,
    ),
    ...notes,
    report.clean
      ? "Clean: every account matches to the last atoken."
      : "BREAK: ledger and chain do not match.",
  ].join("\n");
}

function renderInFlight(line: AccountLine): string[] {
  return line.inFlight.map((item) => `in flight: ${item.what}: ${token(item.amountAtoken)}`);
}

/** What persons said about coins on the chain. */
function renderDecided({ decided, recoveredPayments }: ReconcileReport): string[] {
  const { count, amountAtoken } = recoveredPayments;
  return [
    ...decided.map(
      (entry) =>
        `decided (${entry.decision}): ${entry.txHash} in block ${entry.height}: ` +
        `${token(entry.amountAtoken)} from ${entry.credit} to ${entry.debit}, ` +
        `by ${entry.operators.join(" and ")}: ${entry.reason}`,
    ),
    ...(count === 0
      ? []
      : [
          `recovered payments that nobody has decided about: ${count}, ${token(amountAtoken)}; ` +
            "see causeway ledger open",
        ]),
  ];
}

function renderBreaks(line: AccountLine): string[] {
  return [
    ...line.breaks.flatMap((found) => renderBreak(line.account, found)),
    ...(line.moreBreaks > 0 ? [`BREAK ${line.account}: ${line.moreBreaks} more addresses`] : []),
  ];
}

function renderBreak(account: string, found: AddressBreak): string[] {
  return [
    `BREAK ${account} ${toChecksumAddress(found.address)}: chain ${found.chainAtoken} atoken, ` +
      `ledger ${found.ledgerAtoken} atoken, difference ${found.differenceAtoken} atoken`,
    ...found.causes.map(
      (cause) =>
        `  ${cause.txHash} ` +
        (cause.height === undefined ? "is not on the chain" : `in block ${cause.height}`) +
        `: chain ${cause.chainAtoken} atoken, ledger ${cause.ledgerAtoken} atoken`,
    ),
    ...(found.moreCauses > 0 ? [`  and ${found.moreCauses} more transactions`] : []),
  ];
}

/** Exact: all 18 decimals where they are not zero. */
function token(amountAtoken: bigint): string {
  return atokenToToken(amountAtoken);
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
