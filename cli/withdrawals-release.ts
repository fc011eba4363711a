/**
 * `causeway withdrawals release`: lets signing and frozen withdrawals go on after an operator has
 * looked. The chain is read first; nothing is paid a second time without proof that the first
 * payment can never happen.
 */
import { parseHash32 } from "../chain/hex.js";
import {
  adoptPayment,
  type FrozenWithdrawal,
  heightBelowNonce,
  readFrozenWithdrawals,
  resumeSlot,
  resumeUnpaid,
  skipForeignNonces,
  type WalletTransaction,
} from "../ledger/operator-decisions.js";
import { releaseSigning } from "../ledger/signing-freeze.js";
import { recordInclusions, releaseWithForeignNonce } from "../ledger/slot-outcomes.js";
import { readHotWallet } from "../ledger/wallet-lease.js";
import { type WithdrawalId, toWithdrawalId } from "../ledger/withdrawals.js";
import type { NodeReceipt } from "../rpc-client/transaction-codec.js";
import { CliError } from "./errors.js";
import { type LedgerCommand, type OpenedLedger, toJson, withLedger } from "./ledger-tools.js";
import { readWalletTransactions } from "./wallet-transactions.js";
import { switchLine } from "./withdrawals.js";

/** Options of `withdrawals release`, as typed. */
export interface ReleaseOptions {
  /** Decide only about this withdrawal; the switch stays as it is. */
  readonly id?: string;
  /** With `id`: this mined transaction was its payment. */
  readonly paidBy?: string;
  /** With `id`: it was never paid, pay it. */
  readonly notPaid?: boolean;
  /** The operator looked at the transactions the ledger does not know; go on behind them. */
  readonly acceptForeign?: boolean;
}

/** What the command did and what still needs someone. */
interface ReleaseReport {
  readonly done: string[];
  /** Reasons why something stays frozen; empty when all goes on. */
  readonly remaining: string[];
}

/**
 * Re-checks receipts and nonces, then releases what can be released.
 * @returns 0 when nothing stays frozen of what was asked for, else 1
 */
export async function runReleaseWithdrawals(
  command: LedgerCommand,
  options: ReleaseOptions,
): Promise<number> {
  const { id, paidBy, notPaid } = options;
  if (id === undefined && (paidBy !== undefined || notPaid === true)) {
    throw new CliError("USAGE", "--paid-by and --not-paid need the id of a withdrawal.");
  }
  return withLedger(command, async (opened) => {
    const report: ReleaseReport = { done: [], remaining: [] };
    const release: Release = { opened, signal: command.signal, report };
    if (id === undefined) await releaseAll(release, options.acceptForeign === true);
    else await releaseOne(release, toWithdrawalId(id), { paidBy, notPaid: notPaid === true });
    if (command.json) command.print(toJson(report));
    else {
      for (const line of report.done) command.print(line);
      for (const line of report.remaining) command.print(`STILL FROZEN: ${line}`);
      command.print(await switchLine(opened));
    }
    return report.remaining.length === 0 ? 0 : 1;
  });
}

interface Release {
  readonly opened: OpenedLedger;
  readonly signal: AbortSignal;
  readonly report: ReleaseReport;
}

async function releaseAll(release: Release, acceptForeign: boolean): Promise<void> {
  const { opened, report } = release;
  const { database, hotWallet } = opened;
  const isExplained = await settleForeignNonces(release, acceptForeign);
  for (const frozen of await readFrozenWithdrawals(database, hotWallet)) {
    await recheck(release, frozen);
  }
  if (!isExplained) return;
  // Withdrawals that stay frozen keep their nonce or have none: signing others is safe.
  if (await releaseSigning(database, hotWallet, "an operator released it")) {
    report.done.push("signing is released");
  }
}

/** Transactions that the ledger does not know stand in the way until the operator accepts them. */
async function settleForeignNonces(release: Release, acceptForeign: boolean): Promise<boolean> {
  const { opened, signal, report } = release;
  const { database, node, hotWallet } = opened;
  const wallet = await readHotWallet(database, hotWallet);
  if (wallet === undefined) return true;
  const to = await node.blockNumber({ signal });
  const minedNonce = await node.getTransactionCount(hotWallet, to, { signal });
  const pendingNonce = await node.getTransactionCount(hotWallet, "pending", { signal });
  if (minedNonce <= wallet.nextNonce && pendingNonce <= wallet.nextNonce) return true;
  if (pendingNonce > minedNonce && pendingNonce > wallet.nextNonce) {
    report.remaining.push("foreign transactions of the wallet wait in the pool; wait until mined");
    return false;
  }
  const from = await heightBelowNonce(database, { wallet: hotWallet, nonce: wallet.nextNonce });
  const all = await readWalletTransactions(node, hotWallet, { from, to, signal });
  const foreign = all.filter(({ nonce }) => nonce >= wallet.nextNonce);
  if (!acceptForeign) {
    for (const transaction of foreign) report.remaining.push(describeForeign(transaction));
    report.remaining.push("look at these transactions, then release with --accept-foreign");
    return false;
  }
  const frozen = await skipForeignNonces(database, {
    wallet: hotWallet,
    nextNonce: minedNonce,
    foreign,
  });
  report.done.push(`the next nonce is ${minedNonce}; ${foreign.length} foreign ones are accepted`);
  if (frozen.size > 0) report.done.push(`${frozen.size} withdrawals may be paid already`);
  return true;
}

function describeForeign({ hash, height, nonce, to, valueAtoken }: WalletTransaction): string {
  const target = to ?? "a new contract";
  return `${hash} (block ${height}, nonce ${nonce}) sent ${valueAtoken} atoken to ${target}`;
}

/** Looks for receipts first; then at who consumed the nonce. */
async function recheck(release: Release, frozen: FrozenWithdrawal): Promise<void> {
  const { opened, signal, report } = release;
  const { database, node, hotWallet } = opened;
  const { slot, id } = frozen;
  if (slot === undefined) {
    report.remaining.push(`${id}: ${frozen.reason}; decide with --paid-by HASH or --not-paid`);
    return;
  }
  const hashes = slot.attempts.map(({ hash }) => hash);
  const receipts = await node.getTransactionReceipts(hashes, { signal });
  const mined = receipts.find((receipt) => receipt?.from === hotWallet);
  if (mined !== undefined) {
    await recordInclusions(database, [toSlotReceipt(frozen.id, slot.slotId, mined)]);
    report.done.push(`${id}: ${mined.transactionHash} is mined, the worker books it`);
    return;
  }
  const height = await node.blockNumber({ signal });
  if (slot.nonce >= (await node.getTransactionCount(hotWallet, height, { signal }))) {
    await resumeSlot(database, frozen);
    report.done.push(`${id}: nonce ${slot.nonce} is still free, the same bytes go out again`);
    return;
  }
  await proveForeign(release, frozen, { nonce: slot.nonce, slotId: slot.slotId, height });
}

/** A second slot only with the transaction in hand that consumed the first one's nonce. */
async function proveForeign(
  release: Release,
  frozen: FrozenWithdrawal,
  slot: { readonly nonce: bigint; readonly slotId: string; readonly height: number },
): Promise<void> {
  const { opened, signal, report } = release;
  const { database, node, hotWallet } = opened;
  const from = await heightBelowNonce(database, { wallet: hotWallet, nonce: slot.nonce });
  const range = { from, to: slot.height, signal };
  const transactions = await readWalletTransactions(node, hotWallet, range);
  const consumer = transactions.find(({ nonce }) => nonce === slot.nonce);
  if (consumer === undefined) {
    report.remaining.push(`${frozen.id}: nothing shows who consumed nonce ${slot.nonce}`);
    return;
  }
  if (consumer.to === frozen.destination && consumer.valueAtoken === frozen.amountAtoken) {
    report.remaining.push(
      `${frozen.id}: ${consumer.hash} paid the same amount to the same address; ` +
        `if it was this payment: --paid-by ${consumer.hash}`,
    );
    return;
  }
  await releaseWithForeignNonce(database, {
    slotId: slot.slotId,
    withdrawalId: frozen.id,
    foreignHash: consumer.hash,
    blockNumber: consumer.height,
  });
  report.done.push(`${frozen.id}: ${consumer.hash} consumed its nonce; it gets a new one`);
}

async function releaseOne(
  release: Release,
  id: WithdrawalId,
  decision: { readonly paidBy: string | undefined; readonly notPaid: boolean },
): Promise<void> {
  const { opened, report } = release;
  const all = await readFrozenWithdrawals(opened.database, opened.hotWallet);
  const frozen = all.find((entry) => entry.id === id);
  if (frozen === undefined) throw new CliError("USAGE", `${id} is not a frozen withdrawal.`);
  if (decision.paidBy !== undefined) {
    await adopt(release, frozen, decision.paidBy);
  } else if (decision.notPaid && frozen.slot === undefined) {
    if (await resumeUnpaid(opened.database, id)) report.done.push(`${id}: it will be paid`);
    else report.remaining.push(`${id}: a payment of it is on its way or done`);
  } else {
    await recheck(release, frozen);
  }
}

async function adopt(release: Release, frozen: FrozenWithdrawal, paidBy: string): Promise<void> {
  const { opened, signal, report } = release;
  const hash = parseHash32(paidBy);
  const { database, node, hotWallet: wallet } = opened;
  const receipt = await node.getTransactionReceipt(hash, { signal });
  if (receipt === undefined || receipt.from !== wallet) {
    throw new CliError("USAGE", `${hash} is not a mined transaction of the hot wallet.`);
  }
  const range = { from: receipt.height, to: receipt.height, signal };
  const transactions = await readWalletTransactions(node, wallet, range);
  const payment = transactions.find((transaction) => transaction.hash === hash);
  const isAdopted =
    payment !== undefined && (await adoptPayment(database, { wallet, id: frozen.id, payment }));
  if (isAdopted) report.done.push(`${frozen.id}: ${hash} is its payment, the worker books it`);
  else report.remaining.push(`${frozen.id}: ${hash} is not a payment of it`);
}

function toSlotReceipt(withdrawalId: WithdrawalId, slotId: string, receipt: NodeReceipt) {
  return {
    slotId,
    withdrawalId,
    isSuccess: receipt.status === 1,
    hash: receipt.transactionHash,
    blockNumber: receipt.height,
    blockHash: receipt.blockHash,
    gasUsed: receipt.gasUsed,
    effectiveGasPriceAtoken: receipt.effectiveGasPriceAtoken,
  };
}
