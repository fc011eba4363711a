/**
 * `causeway withdrawals release`: an operator's word, and what it came to in sentences. The rules are
 * in ledger/withdrawals/release/release.ts; here is the chain that they ask.
 */
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { type Hash32, parseHash32 } from "../../../chain/hex.js";
import {
  type Acknowledgement,
  readRecorded,
} from "../../../ledger/withdrawals/foreign-transactions.js";
import { keepingWord, type ReleaseWord } from "../../../ledger/withdrawals/release/release-word.js";
import { releaseWallet, releaseWithdrawal } from "../../../ledger/withdrawals/release/release.js";
import type {
  ReleaseContext,
  ReleaseDecision,
  ReleaseObstacle,
  ReleaseReport,
  ReleaseStep,
  WalletChain,
} from "../../../ledger/withdrawals/release/outcome.js";
import { closeIfBehind } from "../../../ledger/guard/ledger-guard.js";
import { refuseInRecovery } from "../../../ledger/guard/recovery-incident.js";
import { walletOfOpenSlot } from "../../../ledger/withdrawals/operator-decisions.js";
import { toWithdrawalId, type WithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import { hasKeptWish } from "../../../ledger/requests/endings.js";
import { phaseOf } from "../../../ledger/requests/withdrawal-status.js";
import { unprovenReason } from "../../../ledger/withdrawals/slot-outcomes.js";
import { findWithdrawal } from "../../../ledger/withdrawals/withdrawals.js";
import type { HotWallet } from "../../../ledger/wallets/wallet.js";
import type { Sql } from "../../../runtime/sql/sql.js";
import { CliError } from "../../errors.js";
import { operatorName, readReason } from "../ledger-decisions.js";
import { lookBeforeRelease } from "../../ledger/chain-look.js";
import { refuseLate } from "../../ledger/late-node.js";
import { toJson } from "../../command-context.js";
import { type LedgerCommand, type OpenedLedger, withLedger } from "../../ledger/ledger-tools.js";
import { foreignLine } from "../wallets/transaction-text.js";
import { readPayment, readWalletTransactions } from "../wallets/wallet-transactions.js";
import { readSwitches, switchLine, walletsMeant } from "./withdrawals.js";

/** Options of `withdrawals release`, as typed. */
export interface ReleaseOptions {
  /** Decide only about this withdrawal; the switch stays as it is. */
  readonly id?: string;
  /** With `id`: this mined transaction was its payment. */
  readonly paidBy?: string;
  /** With `id`: it was never paid, pay it. */
  readonly notPaid?: boolean;
  /** Hashes of transactions nobody asked for, which the operator looked at. */
  readonly acknowledge?: readonly string[];
  /** Acknowledge every such transaction that this release finds, each by its hash. */
  readonly acceptForeign?: boolean;
  /** What the operator found, for the record. */
  readonly reason?: string;
  /** Who decides, for the record; else the user. */
  readonly operator?: string;
  /** Without `id`: only this wallet. */
  readonly wallet?: string;
}

/**
 * Re-checks receipts and nonces, then releases what can be released.
 * @returns 0 when nothing stays frozen of what was asked for, else 1
 */
export async function runReleaseWithdrawals(
  command: LedgerCommand,
  options: ReleaseOptions,
): Promise<number> {
  refuseContradictions(options);
  // Before the first wallet: what is refused releases none.
  const reason = reasonOf(options);
  const operator = operatorName(options.operator);
  const { id } = options;
  return withLedger(command, async (opened) => {
    // Neither switch nor nonces nor requests are touched before the ledger knows what it paid.
    await closeIfBehind(opened.database, command.home);
    await refuseInRecovery(opened.database);
    const undone = "Nothing was released.";
    await refuseLate(command, opened, undone);
    const only = id === undefined ? undefined : toWithdrawalId(id);
    if (options.notPaid === true || (await hasKeptWish(opened.database, only))) {
      await lookBeforeRelease(command, opened, undone);
    }
    const meant =
      id === undefined
        ? walletsMeant(opened.wallets, options.wallet)
        : await walletsOfWithdrawal(opened, toWithdrawalId(id), options, command.signal);
    const hashesOf = await groupAcknowledged(opened, meant, options, command.signal);
    const reports: ReleaseReport[] = [];
    for (const { address: wallet } of meant) {
      const context: ReleaseContext = {
        database: opened.database,
        wallet,
        chainOf: (asked) => chainOf(opened, asked, command.signal),
        paymentOf: (asked) => readPayment(opened.node, asked, command),
      };
      reports.push(
        id === undefined
          ? await releaseAll(context, {
              ...options,
              acknowledge: hashesOf(wallet),
              by: operator,
              reason,
            })
          : await releaseOne(context, {
              id: toWithdrawalId(id),
              decision: decisionOf(options),
              operator,
              reason,
            }),
      );
    }
    // What has no nonce is no wallet's: it is met with each of them, and told once.
    const told: string[] = [];
    for (const step of reports.flatMap(({ steps }) => steps)) {
      told.push((await unwantedLine(opened.database, step)) ?? stepLine(step));
    }
    const done = [...new Set(told)];
    const remaining = [
      ...new Set(reports.flatMap(({ obstacles }) => obstacles).flatMap(obstacleLines)),
    ];
    if (command.json) command.print(toJson({ done, remaining }));
    else {
      for (const line of done) command.print(line);
      for (const line of remaining) command.print(`STILL FROZEN: ${line}`);
      const switches = await readSwitches(opened.database, meant);
      for (const line of switches.map(switchLine)) command.print(line);
    }
    return remaining.length === 0 ? 0 : 1;
  });
}

/**
 * A word that is not heard is none: whoever acknowledges a transaction beside a withdrawal's id would take
 * it for looked at, and of two words about one payment the other would be dropped.
 * @throws USAGE
 */
function refuseContradictions(options: ReleaseOptions): void {
  const { id, paidBy, notPaid, acknowledge, acceptForeign, wallet } = options;
  const isDecided = paidBy !== undefined || notPaid === true;
  if (id === undefined && isDecided) {
    throw new CliError("USAGE", "--paid-by and --not-paid need the id of a withdrawal.");
  }
  if (paidBy !== undefined && notPaid === true) {
    throw new CliError("USAGE", "say --paid-by or --not-paid.");
  }
  const isOfWallets = acknowledge !== undefined || acceptForeign === true || wallet !== undefined;
  if (id !== undefined && isOfWallets) {
    throw new CliError(
      "USAGE",
      "--acknowledge, --accept-foreign and --wallet are about wallets, and an id is about one withdrawal: " +
        "type them one after the other.",
    );
  }
}

/**
 * Each acknowledged transaction is that of every wallet from which the watcher saw it take something,
 * whoever sent it; before the watcher has seen it, its sender's; one of nobody's is refused by the
 * first wallet.
 */
async function groupAcknowledged(
  { database, node }: OpenedLedger,
  meant: readonly HotWallet[],
  { acknowledge = [] }: ReleaseOptions,
  signal: AbortSignal,
): Promise<(wallet: Address) => readonly string[]> {
  const [first, ...others] = meant;
  if (others.length === 0 || acknowledge.length === 0) return () => acknowledge;
  const hashes = acknowledge.map((hash) => parseHash32(hash));
  const receipts = await node.getTransactionReceipts(hashes, { signal });
  const seen: { readonly wallet: Address; readonly hash: Hash32 }[] = [];
  for (const { address: wallet } of meant) {
    for (const hash of await readRecorded(database, wallet, hashes)) seen.push({ wallet, hash });
  }
  const walletsOf = hashes.map((hash, index) => {
    const losers = seen.flatMap((one) => (one.hash === hash ? [one.wallet] : []));
    const sender = meant.find(({ address }) => address === receipts[index]?.from) ?? first;
    return losers.length > 0 ? losers : [sender?.address];
  });
  return (wallet) => hashes.filter((_, index) => walletsOf[index]?.includes(wallet));
}

/** The wallet whose nonce it has; for a payment that is named, the wallet that sent it. */
async function walletsOfWithdrawal(
  { database, node, wallets }: OpenedLedger,
  id: WithdrawalId,
  { paidBy }: ReleaseOptions,
  signal: AbortSignal,
): Promise<readonly HotWallet[]> {
  const [receipt] =
    paidBy === undefined
      ? []
      : await node.getTransactionReceipts([parseHash32(paidBy)], { signal });
  const named = receipt?.from ?? (await walletOfOpenSlot(database, id));
  const found = wallets.filter(({ address }) => address === named);
  return found.length > 0 ? found : wallets.slice(0, 1);
}

/** Looks first where everything found is to be acknowledged: what is recorded are hashes, so many at once. */
async function releaseAll(
  context: ReleaseContext,
  {
    acknowledge,
    acceptForeign,
    by,
    reason,
  }: {
    readonly acknowledge: readonly string[];
    readonly acceptForeign?: boolean;
    readonly by: string;
    readonly reason: string;
  },
): Promise<ReleaseReport> {
  const steps: ReleaseStep[] = [];
  let acknowledgement: Acknowledgement | undefined =
    acknowledge.length === 0
      ? undefined
      : { hashes: acknowledge.map((hash) => parseHash32(hash)), by, reason };
  for (;;) {
    const report = await releaseWallet(context, { acknowledgement });
    steps.push(...report.steps);
    const { obstacles } = report;
    const hashes = obstacles.flatMap((left) =>
      left.obstacle === "foreign-mined" ? left.transactions.map(({ hash }) => hash) : [],
    );
    if (acceptForeign !== true || hashes.length === 0) return { steps, obstacles };
    acknowledgement = { hashes: [...new Set(hashes)], by, reason };
  }
}

/** What is done about it is kept with who said so. */
function releaseOne(context: ReleaseContext, word: ReleaseWord): Promise<ReleaseReport> {
  const database = keepingWord(context.database, word);
  return releaseWithdrawal({ ...context, database }, word.id, word.decision);
}

function decisionOf({ paidBy, notPaid }: ReleaseOptions): ReleaseDecision {
  if (paidBy !== undefined) return { decision: "paid-by", hash: parseHash32(paidBy) };
  return { decision: notPaid === true ? "not-paid" : "look-again" };
}

/** What is written down with whatever is acknowledged or decided. @throws USAGE */
function reasonOf({ id, acknowledge = [], reason }: ReleaseOptions): string {
  if (reason !== undefined) return readReason(reason);
  if (id !== undefined) return "no reason was given";
  if (acknowledge.length === 0) {
    return "accepted with all others that were shown (--accept-foreign)";
  }
  throw new CliError("USAGE", "--acknowledge needs --reason TEXT: what you found.");
}

function chainOf({ node }: OpenedLedger, wallet: Address, signal: AbortSignal): WalletChain {
  return {
    headHeight: () => node.blockNumber({ signal }),
    nonceAt: (at) => node.getTransactionCount(wallet, at, { signal }),
    queuedNonces: () => node.queuedNonces(wallet, { signal }),
    receipts: (hashes) => node.getTransactionReceipts(hashes, { signal }),
    transactions: (range) => readWalletTransactions(node, wallet, { ...range, signal }),
  };
}

/** Of one that is let go on, and that somebody has taken back or rejected: it is let go on to its end. */
async function unwantedLine(sql: Sql, done: ReleaseStep): Promise<string | undefined> {
  const isLetGo = ["slot-resumed", "nonce-replaced", "unpaid-resumed"].includes(done.step);
  if (!isLetGo || !("id" in done)) return undefined;
  const { id } = done;
  const status = (await findWithdrawal(sql, id))?.status ?? "settled";
  if (status === "cancelling")
    return `${id}: it is not to be paid: a transfer of nothing takes its nonce`;
  return phaseOf(status) === "unpaid"
    ? `${id}: it is not to be paid: it ended as ${status}`
    : undefined;
}

function stepLine(done: ReleaseStep): string {
  switch (done.step) {
    case "signing-released":
      return "signing is released";
    case "foreign-accepted":
      return `the next nonce is ${done.nextNonce}; ${done.count} foreign ones are accepted`;
    case "equal-frozen":
      return `${done.count} withdrawals may be paid already`;
    case "found-mined":
      return `${done.id}: ${done.hash} is mined, the worker books it`;
    case "slot-resumed":
      return `${done.id}: nonce ${done.nonce} is still free, the same bytes go out again`;
    case "nonce-replaced":
      return `${done.id}: ${done.foreignHash} consumed its nonce; it gets a new one`;
    case "unpaid-resumed":
      return `${done.id}: it will be paid`;
    case "payment-adopted":
  }
  return `${done.id}: ${done.hash} is its payment, the worker books it`;
}

function obstacleLines(left: ReleaseObstacle): string[] {
  switch (left.obstacle) {
    case "incident":
      return [left.reason];
    case "kill-switch": {
      const { level, reason } = left.killSwitch;
      return [
        `kill switch ${level}: ${reason}; once its cause is gone: causeway killswitch lift --reason TEXT`,
      ];
    }
    case "foreign-pending":
      return [`foreign: ${left.waiting}`];
    case "frozen-meanwhile":
      return [
        `${toChecksumAddress(left.wallet)} was frozen while this was looked at: ${left.reason}; look at ` +
          "that, then type this again",
      ];
    case "foreign-mined":
      return [
        ...left.transactions.map(foreignLine),
        "look at these transactions, then release with --acknowledge HASH... --reason TEXT",
      ];
    case "undecided":
      return [`${left.id}: ${left.reason}; decide with --paid-by HASH or --not-paid`];
    case "unproven":
      return [`${left.id}: ${unprovenReason({ withdrawalId: left.id, hash: left.hash })}`];
    case "nonce-unexplained":
      return [`${left.id}: nothing shows who consumed nonce ${left.nonce}`];
    case "maybe-paid":
      return [
        `${left.id}: ${left.hash} paid the same amount to the same address; ` +
          `if it was this payment: --paid-by ${left.hash}`,
      ];
    case "maybe-paid-booked":
      return [
        `${left.id}: ${left.hash}, booked as an outflow, paid the same amount to the same address` +
          `${left.others.length > 0 ? `, and so did ${left.others.join(", ")}` : ""}; if it was this ` +
          `payment: causeway withdrawals cancel ${left.id} --reason TEXT; then, or if it was ` +
          "another: --not-paid",
      ];
    case "recovered":
      return [
        `${left.id}: the recovered payment ${left.hash} went to the same address with the same amount: ` +
          `causeway ledger link-payment ${left.hash} --withdrawal ${left.id} --reason TEXT, or, if it was ` +
          `another, causeway ledger pay-withdrawal ${left.id} --reason TEXT`,
      ];
    case "payment-under-way":
      return [`${left.id}: a payment of it is on its way or done`];
    case "nonce-free":
      return [
        `${left.id}: nonce ${left.nonce} of ${toChecksumAddress(left.wallet)} may still pay it; take it ` +
          `back (causeway withdrawals cancel ${left.id} --reason TEXT, then causeway withdrawals release ` +
          `${left.id}), and book what was paid: causeway ledger accept-outflow ${left.hash} --account ` +
          "<account> --reason TEXT; if that was another payment: book it, then --not-paid",
      ];
    case "moved-meanwhile":
      return [`${left.id}: it moved on meanwhile; look again`];
    case "no-payment":
  }
  return [`${left.id}: ${left.hash} is not a payment of it`];
}
