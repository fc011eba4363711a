/**
 * What a ledger in recovery can be rebuilt from: addresses, own payments and nonces, as the home and
 * the chain prove them. Nothing is written here.
 */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { TokenEntry } from "../../chain/token-list.js";
import type { Atoken } from "../../chain/units.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { unknownTokens } from "../assets/asset-registry.js";
import { readCursor, watchedFromHeight } from "../watch/watch-cursor.js";
import { openIncident } from "../incidents.js";
import { storedAddress, storedAtoken, storedHash, storedInteger } from "../stored-values.js";
import {
  assertAllShown,
  type SlotUse,
  transactionsSince,
  useOfSlot,
  type WalletTransaction,
} from "../withdrawals/operator-decisions.js";
import { mayBePaidBy } from "../requests/possible-payments.js";
import { type HotWallet, walletStatus } from "../wallets/wallet.js";
import { type PooledWallet, waitingBehind } from "../wallets/waiting-in-pool.js";
import { readHotWallet } from "../wallets/wallet-lease.js";
import { toWithdrawalId, type WithdrawalId } from "../requests/withdrawal-id.js";
import { type LedgerState, readLedgerState } from "../guard/ledger-state.js";
import { type AddressChain, findLostAddresses, type LostAddress } from "./lost-addresses.js";
import { readReporters } from "./reporters.js";
import type { SeenWallet, UnseenPayments } from "./unseen-payments.js";
import { countToldAsOthers } from "./told-again.js";

/** A mined transaction of the hot wallet with its block. */
export interface MinedPayment extends WalletTransaction {
  readonly blockHash: Hash32;
  /** What it paid to the network: a Cosmos transaction pays its fee in full, and has no price. */
  readonly feeAtoken: Atoken;
}

/** What a recovery asks of the chain. */
export interface RecoveryChain extends AddressChain {
  /** A wallet's next nonce after a block, or behind everything that waits in the node's pool. */
  readonly nonceAt: (wallet: Address, at: Height | "pending") => Promise<bigint>;
  /**
   * Nonces, rising, of what its pool has of a wallet and no block can take yet; undefined where it does not
   * tell.
   */
  readonly queuedNonces: (wallet: Address) => Promise<readonly bigint[] | undefined>;
  /** What a wallet signed in these blocks, both included, in order. */
  readonly transactions: (
    wallet: Address,
    range: {
      readonly from: Height;
      readonly to: Height;
    },
  ) => Promise<readonly MinedPayment[]>;
}

/** A slot of the ledger whose nonce the chain shows used for its own withdrawal. */
export interface FoundPayment {
  readonly slotId: string;
  readonly withdrawalId: WithdrawalId;
  readonly use: SlotUse;
  readonly payment: MinedPayment;
}

/** What a recovery would do about one hot wallet. */
export interface WalletPlan extends SeenWallet, PooledWallet {
  readonly wallet: HotWallet;
  /** False for one that only the home knows, or a person: it is registered, too. */
  readonly isRegistered: boolean;
  /** Undefined while the ledger has no nonces of the wallet. */
  readonly ledgerNonce: bigint | undefined;
  readonly nextNonce: bigint;
  readonly payments: readonly MinedPayment[];
  /** Which of them a person has accepted as outflows before. */
  readonly booked: readonly Hash32[];
  readonly found: readonly FoundPayment[];
}

/** Everything that a recovery would do. */
export interface RecoveryPlan {
  /** Why the ledger is in recovery. */
  readonly reason: string;
  /** By whose memory, as processes and persons are named. */
  readonly reporters: readonly string[];
  readonly headHeight: Height;
  /** Last block that the ledger has booked. */
  readonly cursorHeight: Height;
  /** Index behind the last one that was given out. */
  readonly nextAddressIndex: number;
  readonly addresses: readonly LostAddress[];
  /** Tokens of the home's list that the ledger does not know. */
  readonly tokens: readonly TokenEntry[];
  readonly wallets: readonly WalletPlan[];
  readonly epoch: number;
  /** Events that are told again, as their numbers stood for others. */
  readonly toldAgain: number;
  /** Highest event number that was ever told; the new epoch counts on from it. */
  readonly eventSeq: number;
}

/** Where a recovery works. */
export interface RecoveryContext {
  readonly database: SqlDatabase;
  readonly chain: RecoveryChain;
  /** Of the ledger and of the home, and those that a person has named. */
  readonly wallets: readonly HotWallet[];
  /** The home's list. */
  readonly tokens: readonly TokenEntry[];
}

/**
 * Reads ledger, remembered marks and chain.
 * @returns undefined when the ledger is not in recovery
 */
export async function planRecovery(context: RecoveryContext): Promise<RecoveryPlan | undefined> {
  const { database, chain } = context;
  const incident = await openIncident(database);
  if (incident?.kind !== "RECOVERY") return undefined;
  const state = await readLedgerState(database);
  const remembered = await highestRemembered(database, state);
  const cursor = await readCursor(database);
  const headHeight = await chain.headHeight();
  const addresses = await findLostAddresses(chain, {
    known: state.nextAddressIndex,
    remembered: remembered.nextAddressIndex,
    headHeight,
  });
  const scanned: ScannedWallet[] = [];
  for (const wallet of context.wallets) {
    scanned.push(await scanWallet(context, wallet, { cursorHeight: cursor.height, headHeight }));
  }
  return {
    reason: incident.message,
    reporters: await readReporters(database),
    headHeight,
    cursorHeight: cursor.height,
    nextAddressIndex: state.nextAddressIndex + addresses.length,
    addresses,
    tokens: await unknownTokens(database, context.tokens),
    wallets: matchSlots(scanned),
    epoch: remembered.epoch + 1,
    toldAgain: await countToldAsOthers(database),
    eventSeq: remembered.eventSeq,
  };
}

/** A wallet with what the chain shows of it, before its slots are held against all wallets' payments. */
interface ScannedWallet extends Omit<WalletPlan, "found"> {
  readonly consumed: readonly ConsumedSlot[];
}

/** An open slot whose nonce a transaction has used that the ledger did not store for it. */
interface ConsumedSlot {
  readonly slot: OpenSlot;
  readonly payment: MinedPayment;
  /** Undefined where it was meant for something else. */
  readonly use: SlotUse | undefined;
}

async function scanWallet(
  { database, chain }: RecoveryContext,
  hotWallet: HotWallet,
  { cursorHeight, headHeight }: { readonly cursorHeight: Height; readonly headHeight: Height },
): Promise<ScannedWallet> {
  const { address: wallet } = hotWallet;
  const isRegistered = (await walletStatus(database, wallet)) !== undefined;
  const fromHeight = isRegistered ? hotWallet.fromHeight : cursorHeight + 1;
  const ledgerNonce = (await readHotWallet(database, wallet))?.nextNonce;
  const minedNonce = await chain.nonceAt(wallet, headHeight);
  // What becomes executable between these two is counted twice, and never left out.
  const queued = await chain.queuedNonces(wallet);
  const pendingNonce = await chain.nonceAt(wallet, "pending");
  const slots = await readOpenSlots(database, wallet);
  const known = await readKnownNonces({ database, chain }, { wallet, fromHeight });
  const lowest = [...slots.map(({ nonce }) => nonce), known.nextNonce].reduce((left, right) =>
    left < right ? left : right,
  );
  // A person may have let the ledger go on behind transactions that it does not know.
  const nextNonce = [minedNonce, known.nextNonce, ledgerNonce ?? 0n].reduce((left, right) =>
    left > right ? left : right,
  );
  const scanned = {
    nonceAt: (at: Height) => chain.nonceAt(wallet, at),
    transactions: (range: { readonly from: Height; readonly to: Height }) =>
      chain.transactions(wallet, range),
  };
  const asked = { wallet, nonce: lowest, from: known.fromHeight, to: headHeight };
  const mined =
    lowest < minedNonce
      ? await transactionsSince(database, asked, scanned, (found) => {
          const since = found.filter(({ nonce }) => nonce >= lowest);
          return BigInt(since.length) >= minedNonce - lowest;
        })
      : [];
  const payments = mined.filter(({ nonce }) => nonce >= known.nextNonce);
  const unknown = minedNonce > known.nextNonce ? minedNonce - known.nextNonce : 0n;
  assertAllShown(wallet, payments.length, unknown);
  return {
    wallet: { ...hotWallet, fromHeight },
    isRegistered,
    ledgerNonce,
    nextNonce,
    payments,
    unseen: known.unseen,
    booked: await readBooked(database, wallet, payments),
    consumed: consumedSlots({ wallet, slots, mined }),
    ...waitingBehind({ pendingNonce, queued }, [nextNonce]),
  };
}

/**
 * From which nonce on the ledger knows nothing of the wallet. Its own next nonce does not say it: a worker
 * makes that of the chain's in a ledger that has just come up empty, and whoever accepts foreign
 * transactions raises it over all that there are, payments that an older ledger has lost among them.
 */
async function readKnownNonces(
  { database, chain }: Pick<RecoveryContext, "database" | "chain">,
  asked: { readonly wallet: Address; readonly fromHeight: Height },
): Promise<KnownNonces> {
  const { wallet } = asked;
  const [row] = await database.query<{ next_nonce: string | null }>(
    `SELECT (greatest((SELECT max(nonce) FROM nonce_slot WHERE wallet = $1),
                      (SELECT max(nonce) FROM recovered_payment WHERE wallet = $1)) + 1)::text
            AS next_nonce`,
    [wallet],
  );
  const watchedFrom = await watchedFromHeight(database);
  const fromHeight = Math.max(asked.fromHeight, watchedFrom);
  if (row?.next_nonce != null) {
    return { nextNonce: storedAtoken(row.next_nonce), fromHeight, unseen: undefined };
  }
  // What was before the first watched block is in the opening capital, or in what lay there.
  const upTo = fromHeight - 1;
  const count = upTo < 0 ? 0n : await chain.nonceAt(wallet, upTo);
  const isBehindWatch = fromHeight === watchedFrom;
  const unseen = count === 0n ? undefined : { count, upTo, isBehindWatch };
  return { nextNonce: count, fromHeight, unseen };
}

/** What a ledger knows of a wallet's nonces. */
interface KnownNonces {
  /** The first one that it knows nothing of. */
  readonly nextNonce: bigint;
  /** First block that counts. */
  readonly fromHeight: Height;
  readonly unseen: UnseenPayments | undefined;
}

/** Those that a person has accepted as outflows before: coins and fee are booked. */
export async function readBooked(
  sql: Sql,
  wallet: Address,
  payments: readonly MinedPayment[],
): Promise<readonly Hash32[]> {
  const rows = await sql.query<{ hash: string }>(
    `SELECT hash FROM unnest($2::text[]) AS mined (hash)
      WHERE explanation_of($1, hash) = 'outflow'`,
    [wallet, payments.map(({ hash }) => hash)],
  );
  return rows.map(({ hash }) => storedHash(hash));
}

/** The highest of what this ledger says and of what homes reported. */
export async function highestRemembered(
  sql: Sql,
  state: LedgerState,
): Promise<Pick<LedgerState, "epoch" | "nextAddressIndex" | "eventSeq">> {
  const rows = await sql.query<{ epoch: number; addresses: string; seq: string }>(
    `SELECT coalesce(max(epoch), 1) AS epoch, coalesce(max(next_address_index), 0) AS addresses,
            coalesce(max(event_seq), 0) AS seq FROM remembered_ledger`,
  );
  return {
    epoch: Math.max(state.epoch, storedInteger(rows[0]?.epoch)),
    nextAddressIndex: Math.max(state.nextAddressIndex, storedInteger(rows[0]?.addresses)),
    eventSeq: Math.max(state.eventSeq, storedInteger(rows[0]?.seq)),
  };
}

interface OpenSlot {
  readonly slotId: string;
  readonly withdrawalId: WithdrawalId;
  readonly nonce: bigint;
  readonly destination: Address;
  readonly contract: Address | undefined;
  readonly amountUnits: bigint;
  readonly hashes: readonly string[];
}

async function readOpenSlots(sql: Sql, wallet: Address): Promise<OpenSlot[]> {
  const rows = await sql.query<{
    id: string;
    withdrawal_id: string;
    nonce: string;
    destination: string;
    contract: string | null;
    amount: string;
    hashes: readonly string[] | null;
  }>(
    `SELECT s.id::text, s.withdrawal_id, s.nonce::text, w.destination,
            (SELECT contract FROM asset WHERE symbol = w.asset) AS contract,
            w.amount_units::text AS amount,
            (SELECT array_agg(a.hash) FROM withdrawal_attempt a WHERE a.slot_id = s.id) AS hashes
       FROM nonce_slot s JOIN withdrawal w ON w.id = s.withdrawal_id
      WHERE s.wallet = $1 AND s.outcome IS NULL ORDER BY s.nonce`,
    [wallet],
  );
  return rows.map((row) => ({
    slotId: row.id,
    withdrawalId: toWithdrawalId(row.withdrawal_id),
    nonce: storedAtoken(row.nonce),
    destination: storedAddress(row.destination),
    contract: row.contract === null ? undefined : storedAddress(row.contract),
    amountUnits: storedAtoken(row.amount),
    hashes: row.hashes ?? [],
  }));
}

function consumedSlots({
  wallet,
  slots,
  mined,
}: {
  readonly wallet: Address;
  readonly slots: readonly OpenSlot[];
  readonly mined: readonly MinedPayment[];
}): ConsumedSlot[] {
  const byNonce = new Map(mined.map((payment) => [payment.nonce, payment]));
  return slots.flatMap((slot) => {
    const payment = byNonce.get(slot.nonce);
    if (payment === undefined || slot.hashes.includes(payment.hash)) return [];
    return [{ slot, payment, use: useOfSlot({ ...slot, wallet }, payment) }];
  });
}

/**
 * A slot belongs to one withdrawal for ever, so its nonce with its terms is its payment, and a
 * transfer of nothing on it is its cancellation. One that paid nothing is left to a person where an
 * equal payment was lost as well, of whichever wallet: the lost ledger may have given the withdrawal a
 * second slot, or somebody paid it by hand.
 */
function matchSlots(scanned: readonly ScannedWallet[]): WalletPlan[] {
  const others = scanned.flatMap(({ payments, consumed }) => [
    ...payments,
    // Also what has used the nonce of another slot and was meant for something else.
    ...consumed.flatMap(({ use, payment }) => (use === undefined ? [payment] : [])),
  ]);
  return scanned.map(({ consumed, ...wallet }) => {
    const found = consumed.flatMap(({ slot, payment, use }) => {
      const isPaidElsewhere = others.some((other) => mayBePaidBy(slot, other));
      if (use === undefined || (use !== "paid" && isPaidElsewhere)) return [];
      const { slotId, withdrawalId } = slot;
      return [{ slotId, withdrawalId, use, payment }];
    });
    return { ...wallet, found };
  });
}
