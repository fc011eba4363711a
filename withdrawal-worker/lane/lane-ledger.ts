/** The ledger as a lane uses it: every call is one commit. */
import type { Address } from "../../chain/address.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import type { LedgerGuard } from "../../ledger/guard/ledger-guard.js";
import {
  beginCancelling,
  cancelExpired,
  type CancelIntent,
  hasExpired,
} from "../../ledger/withdrawals/cancellation.js";
import {
  type NewAttempt,
  type QueuedWithdrawal,
  readLiveSlots,
  readSlotQueue,
  type SlotQuery,
  storeAttempts,
  sumOpenSlots,
  sumOpenTokens,
  type TakenSlots,
  takeSlots,
} from "../../ledger/withdrawals/nonce-slots.js";
import {
  freezeBehindChain,
  freezeSigning,
  readFreeze,
  type SigningFreeze,
} from "../../ledger/requests/signing-freeze.js";
import type { ApprovalSignature } from "../../ledger/policy/approval-digest.js";
import { readSignedApprovals } from "../../ledger/policy/approval-rows.js";
import {
  recordVerdicts,
  type ScreeningAnswer,
  withoutVerdict,
} from "../../ledger/policy/screening-verdicts.js";
import type { OpenSlots, SlotCandidate } from "../../ledger/withdrawals/slot-choice.js";
import { customersWithFailures } from "../../ledger/withdrawals/payout-failures.js";
import {
  recordInclusions,
  type SlotReceipt,
} from "../../ledger/withdrawals/recorded-inclusions.js";
import {
  freezeWithdrawals,
  settleSlots,
  type SettleTerms,
} from "../../ledger/withdrawals/slot-outcomes.js";
import { type LiveSlot, readSigningAges } from "../../ledger/withdrawals/slot-rows.js";
import {
  acquireLease,
  createHotWallet,
  readHotWallet,
  releaseLease,
  renewLease,
  showBalance,
  type WalletLease,
} from "../../ledger/wallets/wallet-lease.js";
import { sayKeyHeld } from "../../ledger/wallets/key-mark.js";
import type { Payer } from "../../ledger/wallets/payer-choice.js";
import type { NonceLedger } from "../../ledger/withdrawals/chain-nonces.js";
import { readOtherWallets, readPayers } from "../../ledger/withdrawals/wallet-overview.js";
import { endBeforeSlot } from "../../ledger/requests/endings.js";
import {
  drawBack,
  moveWithdrawals,
  postponeWithdrawals,
  readWaitedOut,
  type Step,
} from "../../ledger/requests/withdrawal-steps.js";
import type { WithdrawalId } from "../../ledger/requests/withdrawal-id.js";
import { ShownNonces } from "./shown-nonces.js";

type Ids = ReadonlySet<WithdrawalId>;

/** Use cases of `ledger/withdrawals`, described there; all throw the database's faults. */
export interface LaneLedger extends NonceLedger {
  createHotWallet(options: Parameters<typeof createHotWallet>[1]): Promise<void>;
  acquireLease(options: Parameters<typeof acquireLease>[1]): Promise<WalletLease | undefined>;
  renewLease(lease: WalletLease, options: { readonly leaseMs: number }): Promise<boolean>;
  releaseLease(lease: WalletLease): Promise<void>;
  sayKeyHeld(wallet: Address): Promise<void>;
  showBalance(lease: WalletLease, seen: Parameters<typeof showBalance>[2]): Promise<void>;
  readPayers(): Promise<Payer[]>;
  readFreeze(wallet: Address): Promise<SigningFreeze>;
  freezeSigning(wallet: Address, reason: string): Promise<boolean>;
  sumOpenSlots(wallet: Address, nonce?: bigint): Promise<OpenSlots>;
  sumOpenTokens(wallet: Address, nonce?: bigint): Promise<ReadonlyMap<string, bigint>>;
  readSlotQueue(options: Parameters<typeof readSlotQueue>[1]): Promise<QueuedWithdrawal[]>;
  takeSlots(
    lease: WalletLease,
    candidates: readonly SlotCandidate[],
    rules: Omit<Parameters<typeof takeSlots>[3], "shown" | "assertStands">,
  ): Promise<TakenSlots>;
  readSignedApprovals(
    ids: readonly WithdrawalId[],
  ): Promise<ReadonlyMap<string, readonly ApprovalSignature[]>>;
  withoutVerdict(ids: readonly WithdrawalId[]): Promise<ReadonlySet<string>>;
  recordVerdicts(answers: readonly ScreeningAnswer[]): Promise<void>;
  readLiveSlots(query: SlotQuery): Promise<LiveSlot[]>;
  readSigningAges(slotIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
  storeAttempts(
    lease: WalletLease,
    attempts: readonly NewAttempt[],
    rules: Parameters<typeof storeAttempts>[3],
  ): Promise<boolean>;
  markBroadcast(steps: readonly Step[]): Promise<Ids>;
  endBeforeSlot(
    lease: WalletLease,
    to: "failed" | "rejected",
    steps: readonly Step[],
  ): Promise<Ids>;
  postponeWithdrawals(options: Parameters<typeof postponeWithdrawals>[1]): Promise<void>;
  readWaitedOut(options: Parameters<typeof readWaitedOut>[1]): Promise<ReadonlySet<WithdrawalId>>;
  drawBack(options: Parameters<typeof drawBack>[1]): Promise<number>;
  beginCancelling(lease: WalletLease, intents: readonly CancelIntent[]): Promise<Ids>;
  hasExpired(): Promise<boolean>;
  cancelExpired(options: { readonly limit: number }): Promise<number>;
  recordInclusions(
    lease: WalletLease,
    receipts: readonly SlotReceipt[],
    rewinds: number,
  ): Promise<Ids>;
  settleSlots(receipts: readonly SlotReceipt[], terms: SettleTerms): Promise<Ids>;
  freezeWithdrawals(
    lease: WalletLease,
    steps: Parameters<typeof freezeWithdrawals>[1],
    signing?: string,
  ): Promise<Ids>;
  customersWithFailures(
    options: Parameters<typeof customersWithFailures>[1],
  ): Promise<ReadonlySet<string>>;
}

/**
 * The ledger in its PostgreSQL database, for all lanes of a process.
 * @param shown remembers the nonces that it shows
 * @param guard remembers what this process has told of it; absent where it tells nothing
 */
export function createLaneLedger(
  database: SqlDatabase,
  shown: ShownNonces = new ShownNonces(),
  guard?: Pick<LedgerGuard, "assertStands">,
): LaneLedger {
  const assertStands = async (tx: Sql) => guard?.assertStands(tx);
  return {
    async readHotWallet(wallet) {
      const row = await readHotWallet(database, wallet);
      return row && { ...row, shownNonce: shown.note(wallet, row) };
    },
    createHotWallet: (options) => createHotWallet(database, options),
    acquireLease: (options) => acquireLease(database, options),
    renewLease: (lease, options) => renewLease(database, lease, options),
    releaseLease: (lease) => releaseLease(database, lease),
    sayKeyHeld: (wallet) => sayKeyHeld(database, wallet),
    showBalance: (lease, seen) => showBalance(database, lease, seen),
    readPayers: () => readPayers(database),
    readOtherWallets: (wallet) => readOtherWallets(database, wallet),
    readFreeze: (wallet) => readFreeze(database, wallet),
    freezeSigning: (wallet, reason) => freezeSigning(database, wallet, reason),
    freezeBehindChain: (behind) => freezeBehindChain(database, behind),
    sumOpenSlots: (wallet, nonce) => sumOpenSlots(database, wallet, nonce),
    sumOpenTokens: (wallet, nonce) => sumOpenTokens(database, wallet, nonce),
    readSlotQueue: (options) => readSlotQueue(database, options),
    async takeSlots(lease, candidates, rules) {
      const told = { shown: shown.all, assertStands };
      const taken = await takeSlots(database, lease, candidates, { ...rules, ...told });
      if (taken.behind !== undefined) shown.note(lease.wallet, taken.behind);
      return taken;
    },
    readSignedApprovals: (ids) => readSignedApprovals(database, ids),
    withoutVerdict: (ids) => withoutVerdict(database, ids),
    recordVerdicts: (answers) => recordVerdicts(database, answers),
    readLiveSlots: (query) => readLiveSlots(database, query),
    readSigningAges: (slotIds) => readSigningAges(database, slotIds),
    storeAttempts: (lease, attempts, rules) => storeAttempts(database, lease, attempts, rules),
    markBroadcast: (steps) => moveWithdrawals(database, "broadcast", steps, ["signed"]),
    endBeforeSlot: (lease, to, steps) => endBeforeSlot(database, lease, to, steps, shown.all),
    drawBack: (options) => drawBack(database, options),
    postponeWithdrawals: (options) => postponeWithdrawals(database, options),
    readWaitedOut: (options) => readWaitedOut(database, options),
    beginCancelling: (lease, intents) => beginCancelling(database, lease, intents),
    hasExpired: () => hasExpired(database),
    cancelExpired: (options) => cancelExpired(database, { ...options, shown: shown.all }),
    recordInclusions: (lease, receipts, rewinds) =>
      recordInclusions(database, receipts, { lease, rewinds }),
    settleSlots: (receipts, terms) => settleSlots(database, receipts, terms),
    freezeWithdrawals: (lease, steps, signing) =>
      freezeWithdrawals(database, steps, { lease, signing }),
    customersWithFailures: (options) => customersWithFailures(database, options),
  };
}
