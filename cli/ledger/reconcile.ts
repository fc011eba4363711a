/** `causeway reconcile`: the ledger against the chain at one height, tolerance 0. */
import { explainBreaks } from "../../ledger/books/break-causes.js";
import { openIncident } from "../../ledger/incidents.js";
import { reconcile } from "../../ledger/books/reconcile.js";
import { readCursor } from "../../ledger/watch/watch-cursor.js";
import { createReconcileChain } from "../../rpc-client/reconcile-chain.js";
import { listKnownWallets } from "../../ledger/wallets/home-wallets.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { sleep } from "../../runtime/process/task.js";
import { CliError } from "../errors.js";
import { toJson } from "../command-context.js";
import { type LedgerCommand, type OpenedLedger, withLedger } from "./ledger-tools.js";
import { encodeReport, renderExplained, renderReport } from "./reconcile-report.js";

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
 * @returns 0 when every account matches to the last atoken, 1 on a break; of the watcher's last block
 * @throws NOTHING_COMPARED where no block is booked, or the node has not the last one; faults of
 *   settings, node and database
 */
export async function runReconcile(command: LedgerCommand): Promise<number> {
  return withLedger(command, async (opened) => {
    const behindBlocks = await waitForWatcher(opened, command.signal);
    const chain = createReconcileChain(opened.node, command.signal);
    const listAll = (tx: Sql) => listKnownWallets(tx, command.home);
    const report = await reconcile(opened.database, chain, listAll);
    if (report.uncompared !== undefined) {
      const message = `Nothing was compared: ${report.uncompared}.`;
      throw new CliError("NOTHING_COMPARED", message, { retriable: true });
    }
    const explain = async () =>
      report.clean ? { report, divergences: [] } : explainBreaks(opened.database, chain, report);
    if (command.json) {
      const { report: explained, divergences } = await explain();
      command.print(toJson({ ...encodeReport(explained), behindBlocks, divergences }));
    } else {
      // What is broken first: looking into it takes as long as the books are large.
      for (const line of renderReport(report, behindBlocks)) command.print(line);
      for (const line of renderExplained(await explain())) command.print(line);
    }
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
