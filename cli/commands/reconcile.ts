/** `causeway reconcile`: the ledger against the chain at one height, tolerance 0. */
import { openIncident } from "../../ledger/incidents.js";
import { reconcile, type ReconcileChain } from "../../ledger/books/reconcile.js";
import { readCursor } from "../../ledger/deposits/watch-cursor.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import { sleep } from "../../runtime/process/task.js";
import { type LedgerCommand, type OpenedLedger, toJson, withLedger } from "./ledger-tools.js";
import { encodeReport, renderReport } from "./reconcile-report.js";

/** Exit code of a clean reconciliation. */
const EXIT_CLEAN = 0;

/** Exit code of a break: ledger and chain, or the ledger with itself, disagree. */
const EXIT_BREAK = 1;

/** Polls of the watcher that the command waits for, so that what is mined now is looked at too. */
const WAIT_POLLS = 5;

/** Blocks whose logs are asked for at once: what this chain's nodes take of one question. */
const LOG_BLOCKS = 10_000;

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
      command.json
        ? toJson({ ...encodeReport(report), behindBlocks })
        : renderReport(report, behindBlocks),
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
  node: Pick<
    EvmClient,
    "getBalances" | "getTransactionReceipts" | "accountJournal" | "tokenBalances" | "transferLogs"
  >,
  signal: AbortSignal,
): ReconcileChain {
  return {
    balances: (queries) =>
      node.getBalances(
        queries.map(({ address, height }) => ({ address, at: height })),
        { signal },
      ),
    tokenBalances: (token, queries) =>
      node.tokenBalances(
        queries.map(({ address: account, height: at }) => ({ token, account, at })),
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
              transfers: receipt.transfers,
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
          const { height, deltaAtoken: deltaUnits } = entry;
          yield { height, deltaUnits, txHash: entry.transactionHash ?? entry.blockHash };
        }
        from = page.next;
      }
    },
    async *tokenMovements(contract, account, range) {
      for (let from = range.from; from <= range.to; from += LOG_BLOCKS) {
        const to = Math.min(from + LOG_BLOCKS - 1, range.to);
        const wanted = { signal, contracts: [contract], account };
        for (const log of await node.transferLogs({ from, to }, wanted)) {
          const { height, txHash, value = 0n } = log;
          // A transfer to itself moved nothing.
          if (log.from === log.to || value === 0n) continue;
          yield { height, txHash, deltaUnits: log.to === account ? value : -value };
        }
      }
    },
  };
}
