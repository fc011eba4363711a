/**
 * Lets signing and frozen withdrawals go on after an operator has looked. The chain is read first;
 * nothing is paid a second time without proof that the first payment can never happen.
 */
import type { Hash32, Height } from "../../../chain/hex.js";
import { LedgerError } from "../../errors.js";
import { incidentText, openIncident } from "../../incidents.js";
import { readKillSwitch } from "../../kill-switch/kill-switch.js";
import { stops } from "../../kill-switch/kill-switch-level.js";
import { adoptPayment } from "../adopted-payment.js";
import {
  acknowledge,
  type Acknowledgement,
  type ForeignNonce,
  type ForeignOutflow,
  readAcknowledged,
  readRecorded,
  readUnacknowledged,
  releaseWithForeignNonce,
} from "../foreign-transactions.js";
import {
  assertAllShown,
  type FrozenWithdrawal,
  readFrozenWithdrawals,
  resumeSlot,
  resumeUnpaid,
  skipForeignNonces,
  takeOverFrozen,
  transactionsSince,
  useOfSlot,
  walletOfOpenSlot,
  type WalletTransaction,
} from "../operator-decisions.js";
import { bearerOf } from "../../requests/bearer.js";
import { isSamePayment, termsOf } from "../../requests/payment-terms.js";
import { type ForeignPayment, mayBePaidBy } from "../../requests/possible-payments.js";
import type {
  ReleaseContext,
  ReleaseDecision,
  ReleaseObstacle,
  ReleaseReport,
  ReleaseStep,
  WalletChain,
} from "./outcome.js";
import {
  findAnyUnclaimed,
  type FrozenSlot,
  maybePaid,
  obstacleToFreeNonce,
} from "./other-payments.js";
import {
  readSwitchCause,
  releaseSigning,
  type SwitchCause,
} from "../../requests/signing-freeze.js";
import { recordInclusions } from "../recorded-inclusions.js";
import { receiptOfSlot, unprovenReason } from "../slot-outcomes.js";
import { isSameInclusion, type LiveSlot } from "../slot-rows.js";
import { waitingBehind, waitingText } from "../../wallets/waiting-in-pool.js";
import { createHotWallet, readHotWallet } from "../../wallets/wallet-lease.js";
import type { WithdrawalId } from "../../requests/withdrawal-id.js";

interface Release extends ReleaseContext {
  /** The wallet's. */
  readonly chain: WalletChain;
  readonly steps: ReleaseStep[];
  readonly obstacles: ReleaseObstacle[];
}

function begin(context: ReleaseContext): Release {
  return { ...context, chain: context.chainOf(context.wallet), steps: [], obstacles: [] };
}

/**
 * Looks at every frozen withdrawal again and releases signing. Every transaction of the wallet that
 * nobody asked for keeps it frozen until an operator acknowledges it by its hash.
 * @throws NO_WALLET_TRANSACTION when a hash is acknowledged that is no foreign transaction, and while the
 * node shows fewer transactions than the wallet's nonces count
 */
export async function releaseWallet(
  context: ReleaseContext,
  options: { readonly acknowledgement?: Acknowledgement | undefined },
): Promise<ReleaseReport> {
  const release = begin(context);
  const { database, wallet, obstacles } = release;
  const looked = await readSwitchCause(database, wallet);
  const isExplained = await settleForeign(release, options.acknowledgement);
  for (const frozen of await readFrozenWithdrawals(database, wallet)) {
    await lookAgain(release, frozen);
  }
  // Withdrawals that stay frozen keep their nonce or have none: signing others is safe.
  if (isExplained) await liftSwitch(release, looked);
  const incident = await openIncident(database);
  if (incident !== undefined) {
    obstacles.push({ obstacle: "incident", reason: incidentText(incident) });
  }
  const killSwitch = await readKillSwitch(database);
  if (stops(killSwitch.level, "stop-sign")) obstacles.push({ obstacle: "kill-switch", killSwitch });
  return release;
}

/** @param looked why it was thrown before anything was looked at; undefined where it was not */
async function liftSwitch(
  { database, wallet, steps, obstacles }: Release,
  looked: SwitchCause | undefined,
): Promise<void> {
  if (looked !== undefined) {
    const isLifted = await releaseSigning(database, wallet, looked);
    if (isLifted) {
      steps.push({ step: "signing-released" });
      return;
    }
  }
  const cause = await readSwitchCause(database, wallet);
  if (cause === undefined) return;
  obstacles.push({ obstacle: "frozen-meanwhile", wallet, reason: cause.reason });
}

/**
 * Decides about one frozen withdrawal; signing stays as it is.
 * @throws NOT_FROZEN; NO_WALLET_TRANSACTION when a payment is named that is none of the wallet's
 */
export async function releaseWithdrawal(
  context: ReleaseContext,
  id: WithdrawalId,
  decision: ReleaseDecision,
): Promise<ReleaseReport> {
  const release = begin(context);
  const { database, wallet, obstacles } = release;
  const isNamed = decision.decision === "paid-by";
  const owner = (isNamed ? await walletOfOpenSlot(database, id) : undefined) ?? wallet;
  const all = await readFrozenWithdrawals(database, owner);
  const frozen = all.find((entry) => entry.id === id);
  if (frozen === undefined) {
    throw new LedgerError("NOT_FROZEN", `${id} is not a frozen withdrawal.`, { details: { id } });
  }
  if (isNamed) {
    const chain = release.chainOf(owner);
    await adopt(release, { ...release, wallet: owner, chain }, frozen, decision.hash);
  } else if (decision.decision === "not-paid" && isUndoubted(frozen)) {
    if (await resumeUnpaid(database, frozen)) {
      await tellResumed(release, id, { step: "unpaid-resumed", id });
    } else {
      const again = (await readFrozenWithdrawals(database, owner)).find((entry) => entry.id === id);
      const isOther = again !== undefined && again.reason !== frozen.reason;
      obstacles.push(isOther ? openQuestion(again) : { obstacle: "payment-under-way", id });
    }
  } else {
    await lookAgain(release, frozen, decision.decision === "not-paid");
  }
  return release;
}

/**
 * Transactions that nobody asked for stand in the way until the operator acknowledges each: those
 * the watcher found, and those behind the last nonce that the ledger gave.
 * @returns true when nothing unknown is left
 */
async function settleForeign(
  release: Release,
  acknowledgement: Acknowledgement | undefined,
): Promise<boolean> {
  const behind = await findForeignNonces(release);
  if (behind === "pending") return false;
  let open = await readOpen(release, behind);
  if (acknowledgement !== undefined) {
    await store(release, acknowledgement, open);
    // Of what the watcher has found there may be more than is named at once.
    open = await readOpen(release, behind);
  }
  if (open.size > 0) {
    release.obstacles.push({ obstacle: "foreign-mined", transactions: [...open.values()] });
    return false;
  }
  await skipNonces(release, behind);
  return true;
}

/** Transactions that nobody has acknowledged, by their hashes. */
async function readOpen(
  { database, wallet }: Release,
  { transactions }: ForeignNonces,
): Promise<ReadonlyMap<Hash32, WalletTransaction | ForeignOutflow>> {
  const open = new Map<Hash32, WalletTransaction | ForeignOutflow>();
  for (const outflow of await readUnacknowledged(database, wallet)) open.set(outflow.hash, outflow);
  const hashes = transactions.map(({ hash }) => hash);
  const known = await readAcknowledged(database, wallet, hashes);
  for (const each of transactions) if (!known.has(each.hash)) open.set(each.hash, each);
  return open;
}

/**
 * What these may have paid, whoever signed them. The wallet's nonces do not show all of its own: a lane that
 * opened behind them has begun there, and where none ever did there is no nonce to hold them against.
 */
async function shownPayments(
  { paymentOf }: Release,
  foreign: readonly (WalletTransaction | ForeignOutflow)[],
): Promise<readonly ForeignPayment[]> {
  const found: ForeignPayment[] = [];
  for (const each of foreign) {
    const shown = "nonce" in each ? each : await paymentOf(each);
    if (shown !== undefined) found.push(shown);
  }
  return found;
}

/** Keeps the operator's word about those transactions that there are. */
async function store(
  release: Release,
  acknowledgement: Acknowledgement,
  foreign: ReadonlyMap<Hash32, WalletTransaction | ForeignOutflow>,
): Promise<void> {
  const { database, wallet, steps } = release;
  const { hashes } = acknowledgement;
  const before = await readAcknowledged(database, wallet, hashes);
  // One that was shown as foreign may be explained by now, as what its slot was used up by.
  const recorded = await readRecorded(database, wallet, hashes);
  const unknown = hashes.find(
    (hash) => !foreign.has(hash) && !before.has(hash) && !recorded.has(hash),
  );
  if (unknown !== undefined) {
    throw new LedgerError(
      "NO_WALLET_TRANSACTION",
      `${unknown} is no foreign transaction of the hot wallet.`,
      { details: { hash: unknown } },
    );
  }
  const named = hashes.flatMap((hash) => foreign.get(hash) ?? []);
  const payments = await shownPayments(release, named);
  const frozen = await acknowledge(database, wallet, acknowledgement, payments);
  if (frozen.size > 0) steps.push({ step: "equal-frozen", count: frozen.size });
}

/** Mined transactions behind the last nonce that the ledger gave. */
interface ForeignNonces {
  /** The nonce behind them; undefined when there are none. */
  readonly nextNonce: bigint | undefined;
  readonly transactions: readonly WalletTransaction[];
}

async function findForeignNonces(release: Release): Promise<ForeignNonces | "pending"> {
  const { database, chain, wallet, obstacles } = release;
  const none: ForeignNonces = { nextNonce: undefined, transactions: [] };
  const row = await readHotWallet(database, wallet);
  if (row === undefined) return none;
  const to = await chain.headHeight();
  const minedNonce = await chain.nonceAt(to);
  const pool = { queued: await chain.queuedNonces(), pendingNonce: await chain.nonceAt("pending") };
  const waiting = waitingText(wallet, waitingBehind(pool, [minedNonce, row.nextNonce]));
  if (waiting !== undefined) {
    obstacles.push({ obstacle: "foreign-pending", waiting });
    return "pending";
  }
  if (minedNonce <= row.nextNonce) return none;
  const isForeign = ({ nonce }: WalletTransaction) => nonce >= row.nextNonce;
  const asked = { wallet, nonce: row.nextNonce, from: 0, to };
  const all = await transactionsSince(database, asked, chain, (found) => {
    return BigInt(found.filter(isForeign).length) >= minedNonce - row.nextNonce;
  });
  const transactions = all.filter(isForeign);
  assertAllShown(wallet, transactions.length, minedNonce - row.nextNonce);
  return { nextNonce: minedNonce, transactions };
}

async function skipNonces(
  { database, wallet, steps }: Release,
  { nextNonce, transactions }: ForeignNonces,
): Promise<void> {
  if (nextNonce === undefined) return;
  const options = { wallet, nextNonce, foreign: transactions };
  const frozen = await skipForeignNonces(database, options);
  steps.push({ step: "foreign-accepted", nextNonce, count: transactions.length });
  if (frozen.size > 0) steps.push({ step: "equal-frozen", count: frozen.size });
}

/** Whether it has no nonce, and no recovered payment may have been its own: it would freeze again. */
function isUndoubted({ slot, recovered }: FrozenWithdrawal): boolean {
  return slot === undefined && recovered === undefined;
}

/**
 * Looks for receipts first; then at who consumed the nonce.
 * @param isSaidUnpaid an operator's word: what a booked outflow may have paid was not this one
 */
async function lookAgain(
  release: Release,
  frozen: FrozenWithdrawal,
  isSaidUnpaid = false,
): Promise<void> {
  const { database, chain, steps, obstacles } = release;
  const { slot, id } = frozen;
  if (slot === undefined) {
    obstacles.push(openQuestion(frozen));
    return;
  }
  const receipts = await chain.receipts(slot.attempts.map(({ hash }) => hash));
  const byHash = new Map(
    receipts.flatMap((receipt) =>
      receipt === undefined ? [] : [[receipt.transactionHash, receipt]],
    ),
  );
  const mined = receiptOfSlot(slot, byHash);
  if (mined !== undefined) {
    const { inclusion } = slot;
    // It would freeze again for want of the proof that it froze for, or be proven by what other code logged.
    const isUnproven = !mined.isProven || frozen.reason === unprovenReason(mined);
    if (isUnproven && inclusion !== undefined && isSameInclusion(mined, inclusion)) {
      obstacles.push({ obstacle: "unproven", id, hash: mined.hash });
      return;
    }
    const moved = await recordInclusions(database, [mined]);
    if (moved.has(id)) steps.push({ step: "found-mined", id, hash: mined.hash });
    else obstacles.push({ obstacle: "moved-meanwhile", id });
    return;
  }
  const height = await chain.headHeight();
  if (slot.nonce >= (await chain.nonceAt(height))) {
    const obstacle = await obstacleToFreeNonce(release, { frozen, slot, isSaidUnpaid });
    if (obstacle !== undefined) obstacles.push(obstacle);
    else if (await resumeSlot(database, frozen)) {
      steps.push({ step: "slot-resumed", id, nonce: slot.nonce });
    } else obstacles.push({ obstacle: "moved-meanwhile", id });
    return;
  }
  await proveForeign(release, { frozen, slot, isSaidUnpaid }, height);
}

/** What a person has to say about one without a nonce. */
function openQuestion({ id, reason, recovered }: FrozenWithdrawal): ReleaseObstacle {
  if (recovered !== undefined) return { obstacle: "recovered", id, hash: recovered };
  return { obstacle: "undecided", id, reason };
}

/**
 * A second slot only with the transaction in hand that consumed the first one's nonce, and where nothing may
 * have paid it: not that transaction either, among others.
 */
async function proveForeign(
  release: Release,
  { frozen, slot, isSaidUnpaid }: FrozenSlot,
  to: Height,
): Promise<void> {
  const { database, steps, obstacles } = release;
  const { id, recovered } = frozen;
  const used = await readUse(release, frozen, slot, to);
  if (used === undefined) return;
  const { consumer, use } = used;
  const unclaimed =
    use === "paid"
      ? [{ hash: consumer.hash, isBooked: false }]
      : await findAnyUnclaimed(release, frozen, used.transactions);
  const doubt = maybePaid(unclaimed, { frozen, isSaidUnpaid });
  if (doubt !== undefined) {
    obstacles.push(doubt);
    return;
  }
  if (use !== undefined && recovered !== undefined) {
    obstacles.push({ obstacle: "recovered", id, hash: recovered });
    return;
  }
  if (use !== undefined) {
    const found = { slotId: slot.slotId, withdrawalId: id, use, transaction: consumer };
    const isTaken = await takeOverFrozen(database, found);
    if (isTaken) steps.push({ step: "found-mined", id, hash: consumer.hash });
    else obstacles.push({ obstacle: "moved-meanwhile", id });
    return;
  }
  if (!(await releaseWithForeignNonce(database, proofOf(slot, consumer)))) {
    obstacles.push({ obstacle: "moved-meanwhile", id });
    return;
  }
  await tellResumed(release, id, { step: "nonce-replaced", id, foreignHash: consumer.hash });
}

/** Says what was done, or why it froze again in the same commit. */
async function tellResumed(
  { database, wallet, steps, obstacles }: Release,
  id: WithdrawalId,
  done: ReleaseStep,
): Promise<void> {
  const all = await readFrozenWithdrawals(database, wallet);
  const again = all.find((entry) => entry.id === id);
  if (again === undefined) steps.push(done);
  else obstacles.push(openQuestion(again));
}

/** What used up a slot's nonce, and what that did; undefined where nothing shows it, which is said. */
async function readUse(
  { database, chain, wallet, obstacles }: Release,
  frozen: FrozenWithdrawal,
  slot: LiveSlot,
  to: Height,
) {
  const isConsumer = ({ nonce }: WalletTransaction) => nonce === slot.nonce;
  const asked = { wallet, nonce: slot.nonce, from: 0, to };
  const transactions = await transactionsSince(database, asked, chain, (found) => {
    return found.some(isConsumer);
  });
  const consumer = transactions.find(isConsumer);
  if (consumer === undefined) {
    obstacles.push({ obstacle: "nonce-unexplained", id: frozen.id, nonce: slot.nonce });
    return undefined;
  }
  return { transactions, consumer, use: useOfSlot({ ...frozen, wallet }, consumer) };
}

function proofOf({ slotId, withdrawalId }: LiveSlot, consumer: WalletTransaction): ForeignNonce {
  return { slotId, withdrawalId, foreignHash: consumer.hash, blockNumber: consumer.height };
}

/** @param own the release of the wallet whose nonce the withdrawal has */
async function adopt(
  release: Release,
  own: Release,
  frozen: FrozenWithdrawal,
  hash: Hash32,
): Promise<void> {
  const { database, chain, wallet, steps, obstacles } = release;
  const { id } = frozen;
  const [receipt] = await chain.receipts([hash]);
  if (receipt === undefined || receipt.from !== wallet) {
    throw await notAlone(
      release,
      frozen,
      hash,
      `is not a mined transaction of the hot wallet with a receipt`,
    );
  }
  const { height } = receipt;
  const transactions = await chain.transactions({ from: height, to: height });
  const payment = transactions.find((transaction) => transaction.hash === hash);
  const isAmongOthers = payment !== undefined && mayBePaidBy(frozen, payment);
  if (isAmongOthers && !isSamePayment(frozen, termsOf(payment))) {
    throw await notAlone(release, frozen, hash, "may have paid it, and others or by others, too");
  }
  const { slot } = frozen;
  let former: ForeignNonce | undefined;
  const isOwn = own.wallet === wallet && slot?.nonce === payment?.nonce;
  if (payment !== undefined && slot !== undefined && !isOwn) {
    former = await proveUsed(own, frozen, slot, hash);
    if (former === undefined) return;
  }
  if (payment !== undefined) await openWallet(release);
  const isAdopted =
    payment !== undefined && (await adoptPayment(database, { wallet, id, payment, former }));
  if (isAdopted) steps.push({ step: "payment-adopted", id, hash });
  else obstacles.push({ obstacle: "no-payment", id, hash });
}

/** A request is settled by a receipt that says this payment and no other; else it ends by the books. */
async function notAlone(
  { database }: Release,
  { id }: FrozenWithdrawal,
  hash: Hash32,
  why: string,
): Promise<LedgerError> {
  return new LedgerError(
    "NO_WALLET_TRANSACTION",
    `${hash} ${why}. Where it paid ${id} by a contract, by Cosmos or among others: causeway withdrawals ` +
      `cancel ${id} --reason TEXT, causeway ledger accept-outflow ${hash} --account asset:break --reason ` +
      `TEXT, and, in place of causeway withdrawals release ${id} --not-paid, which gives its hold back, ` +
      `causeway ledger adjust --key KEY --debit ${await bearerOf(database, id)} --credit asset:break ` +
      `--amount-atoken N --withdrawal ${id} --reason TEXT, which takes it with the request's end`,
    { details: { hash } },
  );
}

/** The payment's nonce needs the rows that a lane makes at its first start, which may never have come. */
async function openWallet({ database, chain, wallet }: Release): Promise<void> {
  if ((await readHotWallet(database, wallet)) !== undefined) return;
  const firstNonce = await chain.nonceAt(await chain.headHeight());
  await createHotWallet(database, { wallet, firstNonce });
}

/**
 * Proof that the withdrawal's own nonce has paid nothing and never will; undefined without it, which is
 * said.
 * @param hash the payment that is named
 */
async function proveUsed(
  release: Release,
  frozen: FrozenWithdrawal,
  slot: LiveSlot,
  hash: Hash32,
): Promise<ForeignNonce | undefined> {
  const { chain, obstacles, wallet } = release;
  const { id } = frozen;
  const height = await chain.headHeight();
  if (slot.nonce >= (await chain.nonceAt(height))) {
    obstacles.push({ obstacle: "nonce-free", id, wallet, nonce: slot.nonce, hash });
    return undefined;
  }
  const used = await readUse(release, frozen, slot, height);
  if (used === undefined) return undefined;
  if (used.use === undefined) return proofOf(slot, used.consumer);
  obstacles.push({ obstacle: "payment-under-way", id });
  return undefined;
}
