/** The ledger's side of a reconciliation: everything read from one snapshot of the database. */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import {
  type AccountCode,
  COLD_STORAGE,
  customerAccount,
  DEPOSIT_ADDRESSES,
  heldAccount,
  HOT_WALLET,
  IN_TRANSIT,
  NATIVE_ASSET,
  SUSPENSE,
  TREASURY,
  walletAccount,
} from "../journal/accounts.js";
import { memoHash } from "../journal/journal.js";
import { WATCHED_FROM, WITH_LOSSES } from "../deposits/deposit-addresses.js";
import { readTokenAssets } from "../assets/asset-registry.js";
import { openedWith, TOKEN_OPENING } from "../assets/token-opening.js";
import { IS_IN_TRANSIT } from "../treasury/stranded-moves.js";
import { IS_ON_ITS_WAY_AGAIN } from "../requests/lost-gas.js";
import { FORWARD, FORWARD_FROM } from "../watch/lost-heights.js";
import { SWEEP_OUT, TOP_UP } from "../treasury/treasury-flows.js";
import { readTokenStates } from "../assets/token-state.js";
import { type Incident, openIncident } from "../incidents.js";
import {
  storedAddress,
  storedAtoken,
  storedHash,
  storedHeight,
  storedInteger,
} from "../stored-values.js";
import { type HotWallet, listWallets } from "../wallets/wallet.js";
import { readCursor, type WatchCursor, watchedFromHeight } from "../watch/watch-cursor.js";

/** Mismatches of one kind that a report lists at most; the rest is counted. */
export const MAX_LISTED = 20;

/** A deposit address, whatever the asset. */
export interface BookedAddress {
  readonly address: Address;
  readonly fromHeight: Height;
  /** False while coins from before the registration are not booked. */
  readonly backfilled: boolean;
}

/** What the books say about one hot wallet. */
export interface BookedWallet {
  readonly wallet: HotWallet;
  readonly account: AccountCode;
  /** In the asset's smallest unit. */
  readonly balanceUnits: bigint;
}

/** A signed transaction of a withdrawal that is not settled. */
export interface UnsettledAttempt {
  readonly wallet: Address;
  readonly hash: Hash32;
  readonly withdrawalId: string;
  /** What it sends away when it is mined: zero for a cancelling transfer. */
  readonly amountUnits: bigint;
  /** Whether the exchange pays itself: gas of a sweep, or a move to cold storage. */
  readonly isOwn: boolean;
}

/** An operator's posting that explains coins on the chain. */
export interface DecidedEntry {
  /** Number of the decision. */
  readonly decision: number;
  readonly debit: string;
  readonly credit: string;
  readonly amountUnits: bigint;
  readonly txHash: Hash32;
  readonly height: Height;
  readonly reason: string;
  /** Who proposed and who approved it, once where one did both. */
  readonly operators: readonly string[];
}

/** A contradiction inside the ledger. */
export interface InternalBreak {
  readonly what: string;
  readonly expectedUnits: bigint;
  readonly foundUnits: bigint;
}

/** The books as of one moment; asset accounts hold what is effective up to the cursor. */
export interface Books {
  readonly cursor: WatchCursor;
  /** First block that is watched: what was before is in the opening capital. */
  readonly watchedFrom: Height;
  readonly incident: Incident | undefined;
  /** In the order of their indexes. */
  readonly addresses: readonly BookedAddress[];
  readonly native: AssetBooks;
  /** Tokens in the order of their symbols; none that is not opened yet. */
  readonly tokens: readonly (AssetBooks & { readonly contract: Address })[];
  /** Payments that a recovery booked and nobody has decided about; the amount is that of coins. */
  readonly recoveredPayments: { readonly count: number; readonly amountUnits: bigint };
}

/** What an asset's books have beside the accounts that are compared with the chain, in its smallest unit. */
export interface BookTotals {
  /** Σ of what can be withdrawn and what is held for withdrawals, `own…Units` among it. */
  readonly availableUnits: bigint;
  readonly heldUnits: bigint;
  /** What of these the exchange owes itself: no customer has it. */
  readonly ownAvailableUnits: bigint;
  readonly ownHeldUnits: bigint;
  readonly coldUnits: bigint;
  /**
   * What has left one of the exchange's addresses and is not booked at another. The books alone do not know
   * of a payment that is mined and not settled; a report does.
   */
  readonly inTransitUnits: bigint;
}

/** The books of one asset, in its smallest unit. */
export interface AssetBooks extends BookTotals {
  readonly asset: string;
  /** First block whose movements are booked one by one. */
  readonly fromHeight: Height;
  /** The first registered first. */
  readonly wallets: readonly BookedWallet[];
  readonly depositAddressesUnits: bigint;
  /** Deposits that are detected or held: on the chain, not posted yet. */
  readonly unpostedDepositsUnits: bigint;
  /**
   * Of each deposit address: deposits of every status minus what left before the registration. Where that is
   * nothing there is none: most addresses have none of most tokens, and all of them are held in memory.
   */
  readonly unitsOf: ReadonlyMap<Address, bigint>;
  readonly openedWith: ReadonlySet<Address>;
  readonly unsettled: readonly UnsettledAttempt[];
  /** Operators' entries about coins on the chain, newest first, at most `MAX_LISTED`. */
  readonly decided: readonly DecidedEntry[];
  readonly internalBreaks: readonly InternalBreak[];
}

/** Lists hot wallets by rows of the same snapshot as the books. */
export type ListWallets = (tx: Sql) => Promise<readonly HotWallet[]>;

/**
 * Reads the books in one REPEATABLE READ snapshot.
 * @param listAll lists all wallets that there are, the first registered first
 */
export async function readBooks(
  database: SqlDatabase,
  listAll: ListWallets = listWallets,
): Promise<Books> {
  return database.transaction(async (tx) => {
    await tx.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY");
    const cursor = await readCursor(tx);
    // In here: a wallet's past that is booked meanwhile would count twice.
    const wallets = await listAll(tx);
    const watchedFrom = await watchedFromHeight(tx);
    const { height } = cursor;
    const native = { asset: NATIVE_ASSET, fromHeight: watchedFrom, height, wallets };
    const states = await readTokenStates(tx);
    const tokens: Books["tokens"][number][] = [];
    for (const { symbol, contract, fromHeight } of await readTokenAssets(tx)) {
      if (states.get(symbol)?.isOpened !== true) continue;
      const scope = { asset: symbol, fromHeight, height, wallets };
      tokens.push({ ...(await readAssetBooks(tx, scope)), contract });
    }
    return {
      cursor,
      watchedFrom,
      incident: await openIncident(tx),
      addresses: await readAddresses(tx),
      native: await readAssetBooks(tx, native),
      tokens,
      recoveredPayments: await readUndecided(tx),
    };
  });
}

/** Which rows are meant. */
interface Scope {
  readonly asset: string;
  readonly fromHeight: Height;
  /** Height of the cursor. */
  readonly height: Height;
  /** All hot wallets, the first registered first. */
  readonly wallets: readonly HotWallet[];
}

async function readAssetBooks(tx: Sql, scope: Scope): Promise<AssetBooks> {
  const totals = await readTotals(tx, scope);
  return {
    asset: scope.asset,
    fromHeight: scope.fromHeight,
    ...(await readAssets(tx, scope)),
    unpostedDepositsUnits: await readUnposted(tx, scope),
    unitsOf: await readUnitsOf(tx, scope),
    openedWith: await openedWith(tx, scope),
    decided: await readDecidedEntries(tx, scope),
    unsettled: await readUnsettled(tx, scope),
    ...totals,
  };
}

/** Accounts of a wallet: its own, and of the first one that of the time when there was only one. */
export function accountsOfWallet(wallet: Address, isFirst: boolean): readonly AccountCode[] {
  return isFirst ? [walletAccount(wallet), HOT_WALLET] : [walletAccount(wallet)];
}

/** A move is in transit by the books once it is wanted, and owed to the treasury until it is paid. */
const OWN_ACCOUNTS = [customerAccount(TREASURY), heldAccount(TREASURY)];

async function readAssets(tx: Sql, { asset, height, wallets }: Scope) {
  const codes = wallets.flatMap(({ address }, index) => accountsOfWallet(address, index === 0));
  const rows = await tx.query<{ account: string; balance: string }>(
    `SELECT account, sum(amount) AS balance
       FROM (
         SELECT debit AS account, amount_units AS amount, journal_id FROM posting
          WHERE debit = ANY ($1::text[]) AND asset = $3
         UNION ALL
         SELECT credit, -amount_units, journal_id FROM posting
          WHERE credit = ANY ($1::text[]) AND asset = $3
       ) AS side
       JOIN journal_entry entry ON entry.id = side.journal_id
      WHERE entry.effective_height IS NULL OR entry.effective_height <= $2
      GROUP BY account`,
    [[...codes, DEPOSIT_ADDRESSES, COLD_STORAGE, IN_TRANSIT, ...OWN_ACCOUNTS], height, asset],
  );
  const balances = new Map(rows.map((row) => [row.account, storedAtoken(row.balance)]));
  const unitsOf = (accounts: readonly AccountCode[]) =>
    accounts.reduce((sum, code) => sum + (balances.get(code) ?? 0n), 0n);
  return {
    wallets: wallets.map(
      (wallet, index): BookedWallet => ({
        wallet,
        account: walletAccount(wallet.address),
        balanceUnits: unitsOf(accountsOfWallet(wallet.address, index === 0)),
      }),
    ),
    depositAddressesUnits: unitsOf([DEPOSIT_ADDRESSES]),
    coldUnits: unitsOf([COLD_STORAGE]),
    inTransitUnits: unitsOf([IN_TRANSIT, ...OWN_ACCOUNTS]),
  };
}

async function readUnposted(tx: Sql, { asset }: Scope): Promise<bigint> {
  const rows = await tx.query<{ amount: string }>(
    `SELECT coalesce(sum(amount_units), 0) AS amount FROM deposit
      WHERE asset = $1 AND status IN ('detected', 'held')`,
    [asset],
  );
  return storedAtoken(rows[0]?.amount);
}

async function readAddresses(tx: Sql): Promise<BookedAddress[]> {
  const rows = await tx.query<{ address: string; from_height: string; backfilled: boolean }>(
    `${WITH_LOSSES}
     SELECT d.address, ${WATCHED_FROM} AS from_height, d.backfilled
       FROM deposit_address d ORDER BY d.index`,
  );
  return rows.map((row) => ({
    address: storedAddress(row.address),
    fromHeight: storedHeight(row.from_height),
    backfilled: row.backfilled,
  }));
}

async function readUnitsOf(
  tx: Sql,
  { asset, height }: Scope,
): Promise<ReadonlyMap<Address, bigint>> {
  const rows = await tx.query<Record<"address" | "units", string>>(
    `SELECT address, sum(amount) AS units FROM (
       SELECT address, amount_units AS amount FROM deposit
        WHERE asset = $3 AND status <> 'reversed'
       UNION ALL
       SELECT address, delta FROM (${ADDRESS_ENTRIES}) AS entries
        WHERE asset = $3 AND effective_height <= $2) AS booked
       -- Some entries name no address.
       JOIN deposit_address USING (address)
      GROUP BY address HAVING sum(amount) <> 0`,
    [DEPOSIT_ADDRESSES, height, asset],
  );
  return new Map(rows.map(({ address, units }) => [storedAddress(address), storedAtoken(units)]));
}

/**
 * What moved the units of single deposit addresses beside their deposits: their past, what came
 * unsaid, and operators' decisions. The memo names transaction and address.
 */
export const ADDRESS_ENTRIES = `
  SELECT split_part(entry.memo, ' ', 2) AS address, ${memoHash("entry")} AS tx_hash,
         coalesce(entry.effective_height, 0) AS effective_height, posting.asset,
         CASE WHEN posting.debit = $1 THEN amount_units ELSE -amount_units END AS delta
    FROM journal_entry entry JOIN posting ON posting.journal_id = entry.id
   WHERE entry.kind IN ('deposit.past_outflow', 'deposit.surplus', '${TOKEN_OPENING}',
                        'wallet.reversal', 'ledger.outflow', 'ledger.adjustment',
                        '${SWEEP_OUT}', '${TOP_UP}', '${FORWARD}', '${FORWARD_FROM}')
     AND (posting.debit = $1 OR posting.credit = $1)`;

/** Entries of operators that explain coins on the chain, the newest ones. */
async function readDecidedEntries(tx: Sql, { asset, height }: Scope): Promise<DecidedEntry[]> {
  const rows = await tx.query<{
    debit: string;
    credit: string;
    amount: string;
    memo: string;
    height: string;
    reason: string;
    proposed_by: string;
    decided_by: string;
    decision: string;
  }>(
    `SELECT posting.debit, posting.credit, posting.amount_units::text AS amount, entry.memo,
            entry.effective_height::text AS height, decision.reason, decision.proposed_by,
            decision.decided_by, decision.id::text AS decision
       FROM operator_decision decision
      CROSS JOIN LATERAL (
              SELECT 'adjustment:' || decision.key AS idem_key WHERE decision.kind = 'adjustment'
              UNION
              SELECT 'outflow:' || tx_hash || ':' || wallet FROM foreign_outflow
               WHERE decision.kind = 'outflow' AND tx_hash = decision.key) AS booked
       JOIN journal_entry entry ON entry.idem_key = booked.idem_key
       JOIN posting ON posting.journal_id = entry.id
      WHERE decision.status = 'done' AND entry.effective_height <= $2
        AND (posting.debit = ANY ($1::text[]) OR posting.credit = ANY ($1::text[])
             OR is_wallet_account(posting.debit) OR is_wallet_account(posting.credit))
        AND posting.asset = $3
      ORDER BY entry.id DESC, posting.place LIMIT ${MAX_LISTED}`,
    [[HOT_WALLET, DEPOSIT_ADDRESSES], height, asset],
  );
  return rows.map((row) => ({
    decision: storedInteger(row.decision),
    debit: row.debit,
    credit: row.credit,
    amountUnits: storedAtoken(row.amount),
    txHash: storedHash(row.memo.split(" ")[0]),
    height: storedHeight(row.height),
    reason: row.reason,
    operators: [...new Set([row.proposed_by, row.decided_by])],
  }));
}

async function readUndecided(tx: Sql): Promise<Books["recoveredPayments"]> {
  const rows = await tx.query<{ count: string; amount: string }>(
    `SELECT count(*) AS count,
            coalesce(sum(amount_units) FILTER (WHERE contract IS NULL), 0) AS amount
       FROM recovered_payment WHERE decision IS NULL`,
  );
  return {
    count: storedInteger(rows[0]?.count),
    amountUnits: storedAtoken(rows[0]?.amount),
  };
}

/** A payment of a token costs coins for its fee: it is in both assets' books. */
async function readUnsettled(tx: Sql, { asset }: Scope): Promise<UnsettledAttempt[]> {
  const rows = await tx.query<
    Record<"wallet" | "hash" | "withdrawal_id" | "amount_units", string> & {
      readonly is_own: boolean;
    }
  >(
    `SELECT slot.wallet, attempt.hash, slot.withdrawal_id, withdrawal.customer_id = $3 AS is_own,
            CASE WHEN attempt.kind = 'cancel' OR withdrawal.asset <> $1 THEN 0
                 ELSE withdrawal.amount_units END
              AS amount_units
       FROM nonce_slot slot
       JOIN withdrawal_attempt attempt ON attempt.slot_id = slot.id
       JOIN withdrawal ON withdrawal.id = slot.withdrawal_id
      WHERE slot.outcome IS NULL AND (withdrawal.asset = $1 OR $1 = $2)
      ORDER BY slot.wallet, slot.nonce, attempt.n`,
    [asset, NATIVE_ASSET, TREASURY],
  );
  return rows.map((row) => ({
    wallet: storedAddress(row.wallet),
    hash: storedHash(row.hash),
    withdrawalId: row.withdrawal_id,
    amountUnits: storedAtoken(row.amount_units),
    isOwn: row.is_own,
  }));
}

/** Totals of customers' balances, and what of the books contradicts other parts of them. */
async function readTotals(tx: Sql, scope: Scope) {
  const row = await readTotalsRow(tx, scope);
  const amount = (name: Total) => storedAtoken(row?.[name]);
  return {
    availableUnits: amount("available"),
    heldUnits: amount("held"),
    ownAvailableUnits: amount("own_available"),
    ownHeldUnits: amount("own_held"),
    internalBreaks: [...unequalTotals(amount), ...unevenCustomers(row)],
  };
}

/** Totals that are to be equal, and are not. */
function unequalTotals(amount: (name: Total) => bigint): InternalBreak[] {
  const pairs: readonly (readonly [string, Total, Total])[] = [
    ["trial balance: assets and expenses = liabilities and equity", "credit_side", "debit_side"],
    ["coins held for withdrawals = open withdrawals", "open_withdrawals", "held"],
    ["coins in transit = open moves of the treasury", "open_moves", "in_transit"],
    // What was given stays given where a chain loses the block of the coins.
    ["coins given out of suspense have come (see ledger decisions)", "nothing", "overdrawn"],
  ];
  return pairs
    .map(([what, expected, found]): InternalBreak => {
      return { what, expectedUnits: amount(expected), foundUnits: amount(found) };
    })
    .filter(({ expectedUnits, foundUnits }) => expectedUnits !== foundUnits);
}

function unevenCustomers(row: TotalsRow | undefined): InternalBreak[] {
  return (row?.uneven ?? []).map(({ account, expected, found }): InternalBreak => {
    const what = `balance row of ${account} = its postings`;
    return { what, expectedUnits: storedAtoken(expected), foundUnits: storedAtoken(found) };
  });
}

/**
 * Totals of the customers' rows, of their accounts, and the trial balance; customers whose balance row is not
 * what their postings add up to. All of it by account, from one pass over the asset's postings.
 */
async function readTotalsRow(tx: Sql, { asset }: Scope): Promise<TotalsRow | undefined> {
  const [row] = await tx.query<TotalsRow>(
    `WITH posted AS MATERIALIZED (
       SELECT side.account, sum(side.amount) AS amount
         FROM posting p
        CROSS JOIN LATERAL (VALUES (p.debit, p.amount_units), (p.credit, -p.amount_units))
              AS side (account, amount)
        WHERE p.asset = $1 GROUP BY side.account
     ), kept AS (
       SELECT 'liability:customer:' || customer_id AS account, sum(available_units) AS amount
         FROM customer_balance WHERE asset = $1 GROUP BY customer_id
       UNION ALL
       SELECT 'liability:held:' || customer_id, sum(held_units)
         FROM customer_balance WHERE asset = $1 GROUP BY customer_id
     ), uneven AS (
       SELECT account, coalesce(-owed.amount, 0) AS expected, coalesce(kept.amount, 0) AS found
         FROM (SELECT * FROM posted WHERE account ~ '^liability:(customer|held):') AS owed
         FULL JOIN kept USING (account)
        WHERE coalesce(-owed.amount, 0) <> coalesce(kept.amount, 0)
        ORDER BY account LIMIT ${MAX_LISTED}
     )
     SELECT
       (SELECT coalesce(sum(available_units), 0) FROM customer_balance
         WHERE asset = $1) AS available,
       (SELECT coalesce(sum(held_units), 0) FROM customer_balance
         WHERE asset = $1) AS held,
       (SELECT coalesce(sum(available_units), 0) FROM customer_balance
         WHERE asset = $1 AND customer_id = $2) AS own_available,
       (SELECT coalesce(sum(held_units), 0) FROM customer_balance
         WHERE asset = $1 AND customer_id = $2) AS own_held,
       (SELECT coalesce(sum(amount_units + fee_units), 0) FROM withdrawal
         WHERE asset = $1 AND phase IN ('waiting', 'open'))
         AS open_withdrawals,
       (SELECT coalesce(sum(amount_units), 0) FROM treasury_move m
         WHERE asset = $1 AND (${IS_IN_TRANSIT} OR ${IS_ON_ITS_WAY_AGAIN})) AS open_moves,
       coalesce(sum(amount) FILTER (WHERE account = '${IN_TRANSIT}'), 0) AS in_transit,
       least(0, coalesce(-sum(amount) FILTER (WHERE account = '${SUSPENSE}'), 0)) AS overdrawn,
       '0' AS nothing,
       coalesce(sum(amount) FILTER (WHERE account ~ '^(asset|expense):'), 0) AS debit_side,
       coalesce(-sum(amount) FILTER (WHERE account !~ '^(asset|expense):'), 0) AS credit_side,
       (SELECT coalesce(jsonb_agg(jsonb_build_object(
                 'account', account, 'expected', expected::text, 'found', found::text)
                 ORDER BY account), '[]') FROM uneven) AS uneven
       FROM posted`,
    [asset, TREASURY],
  );
  return row;
}

type Total =
  | "available"
  | "held"
  | "own_available"
  | "own_held"
  | "open_withdrawals"
  | "open_moves"
  | "in_transit"
  | "overdrawn"
  | "nothing"
  | "debit_side"
  | "credit_side";

interface TotalsRow extends Readonly<Record<Total, string>> {
  readonly uneven: readonly Readonly<Record<"account" | "expected" | "found", string>>[];
}
