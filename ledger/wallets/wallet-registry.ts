/**
 * Wallets come in, are drained and are retired. Every change is kept with its reason and who made it
 * (`wallet_change`); whoever takes nonces of a wallet has seen the change, or it waits for them.
 */
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { IS_LOST } from "../assets/lost-sweeps.js";
import type { TokenBalance } from "../assets/token-opening.js";
import { walletAccount } from "../journal/accounts.js";
import { lockCursor, watchedFromHeight } from "../watch/watch-cursor.js";
import { LedgerError } from "../errors.js";
import { storedInteger } from "../stored-values.js";
import { type HotWallet, knownWallet, MAX_WALLETS, type WalletStatus } from "./wallet.js";

/** Who changes something, and why: kept for ever. */
export interface WalletWord {
  /** 1-100 characters. */
  readonly operator: string;
  /** 1-1,000 characters. */
  readonly reason: string;
}

/** A wallet to be known from now on. */
export interface NewWallet extends WalletWord {
  readonly address: Address;
  /** What people call it, at most 64 characters. */
  readonly label: string;
}

/**
 * Registers wallets that are not known yet, as active; others stay as they are. The cursor is locked
 * meanwhile: every block after the commit is matched against them, and what lay there before is
 * booked by the watcher, once. The first wallet of a ledger takes over the account that the ledger
 * kept for its only one.
 * @returns the addresses that are new
 * @throws TOO_MANY_WALLETS; OWN_ADDRESS for one that a customer was given
 */
export function registerWallets(
  database: SqlDatabase,
  wallets: readonly NewWallet[],
): Promise<readonly Address[]> {
  return database.transaction((tx) => registerInside(tx, wallets));
}

/** The same inside the caller's transaction. */
export async function registerInside(
  tx: Sql,
  wallets: readonly NewWallet[],
): Promise<readonly Address[]> {
  const known = await tx.query<{ address: string }>(`SELECT address FROM wallet`);
  const isKnown = new Set(known.map(({ address }) => address));
  const missing = wallets.filter(({ address }) => !isKnown.has(address));
  if (missing.length === 0) return [];
  const cursor = await lockCursor(tx);
  // Again behind the lock: another process may have registered them meanwhile.
  const rows = await tx.query<{ address: string; place: string }>(
    `SELECT address, place::text FROM wallet`,
  );
  const present = new Set(rows.map(({ address }) => address));
  await refuseDepositAddresses(
    tx,
    missing.map(({ address }) => address).filter((address) => !present.has(address)),
  );
  let place = Math.max(0, ...rows.map((row) => storedInteger(row.place)));
  const isFirst = place === 0 && (await hasFormerAccount(tx));
  const registered: Address[] = [];
  for (const { address, label, reason, operator } of missing) {
    if (present.has(address)) continue;
    place += 1;
    if (place > MAX_WALLETS) {
      throw new LedgerError("TOO_MANY_WALLETS", `a ledger has at most ${MAX_WALLETS} wallets`);
    }
    const takesOver = isFirst && place === 1;
    const fromHeight = takesOver ? await watchedFromHeight(tx) : cursor.height + 1;
    await tx.query(
      `INSERT INTO wallet (address, place, status, reason, operator, label, from_height,
         past_booked)
       VALUES ($1, $2, 'active', $3, $4, $5, $6, $7)`,
      [address, place, reason, operator, label, fromHeight, takesOver || fromHeight === 0],
    );
    present.add(address);
    registered.push(address);
  }
  if (isFirst) await tx.query(`SELECT move_former_wallet_account()`);
  return registered;
}

/**
 * Refuses wallets that customers were given as deposit addresses: what they have is booked there already, and
 * what comes to them would be the exchange's from then on.
 * @throws OWN_ADDRESS
 */
export async function refuseDepositAddresses(
  sql: Sql,
  addresses: readonly Address[],
): Promise<void> {
  const [given] = await sql.query<{ address: string }>(
    `SELECT address FROM deposit_address WHERE address = ANY ($1::text[]) LIMIT 1`,
    [addresses],
  );
  if (given === undefined) return;
  throw new LedgerError(
    "OWN_ADDRESS",
    `${given.address} is a customer's deposit address, and can be no hot wallet: the treasury sweeps it; ` +
      "a home must have no keystore of it",
    { details: { address: given.address } },
  );
}

/** Whether the ledger was watched before it knew its wallet: its coins are booked already. */
async function hasFormerAccount(tx: Sql): Promise<boolean> {
  const rows = await tx.query(
    `SELECT 1 FROM posting WHERE debit = 'asset:hot_wallet' OR credit = 'asset:hot_wallet' LIMIT 1`,
  );
  return rows.length > 0;
}

/** No new payment from this wallet; what it has begun goes on. @throws UNKNOWN_WALLET, INVALID_DECISION */
export function drainWallet(
  database: SqlDatabase,
  wallet: Address,
  word: WalletWord,
): Promise<HotWallet> {
  return setStatus(database, wallet, { ...word, from: ["active", "retired"], to: "draining" });
}

/** Takes new payments again. @throws UNKNOWN_WALLET, INVALID_DECISION */
export function reactivateWallet(
  database: SqlDatabase,
  wallet: Address,
  word: WalletWord,
): Promise<HotWallet> {
  return setStatus(database, wallet, { ...word, from: ["draining"], to: "active" });
}

/** What stands in the way of a retirement. */
export interface WalletRest {
  /** Nonces that are taken and not booked. */
  readonly openSlots: number;
  /** Sweeps that are not booked, or whose block is lost, of which some signed bytes go here. */
  readonly openSweeps: number;
  readonly balanceAtoken: Atoken;
  /** Of the ledger's tokens what it has, greater than zero each. */
  readonly tokens: readonly TokenBalance[];
  /** Symbols of those whose contracts do not tell what it has: it may be anything. */
  readonly untold: readonly string[];
}

/**
 * Nobody signs for this wallet any more; it is watched on.
 * @param allowed.dustAtoken a balance up to this is left there; of tokens nothing is dust
 * @param allowed.force also with open nonces or a balance: what is open is signed for by nobody
 * @throws UNKNOWN_WALLET, INVALID_DECISION, WALLET_NOT_EMPTY
 */
export function retireWallet(
  database: SqlDatabase,
  wallet: Address,
  allowed: WalletWord &
    /** On the chain, read before. */
    Pick<WalletRest, "balanceAtoken" | "tokens"> &
    Partial<Pick<WalletRest, "untold">> & {
      /** The block that they were read after. */
      readonly height: Height;
      readonly dustAtoken: Atoken;
      readonly force: boolean;
    },
): Promise<HotWallet> {
  const { balanceAtoken, tokens, untold = [], height, dustAtoken, force, ...word } = allowed;
  return setStatus(database, wallet, {
    ...word,
    from: ["draining"],
    to: "retired",
    async check(tx) {
      const [row] = await tx.query<Record<"slots" | "sweeps", string>>(
        `SELECT (SELECT count(*) FROM nonce_slot WHERE wallet = $1 AND outcome IS NULL)::text
                  AS slots,
                (SELECT count(*) FROM sweep s
                  WHERE (s.state IN ('signed', 'sent', 'frozen') OR ${IS_LOST})
                    AND EXISTS (SELECT 1 FROM sweep_attempt t
                      WHERE t.sweep_id = s.id AND coalesce(t.wallet, s.wallet) = $1))::text
                  AS sweeps`,
        [wallet],
      );
      const openSlots = storedInteger(row?.slots);
      const openSweeps = storedInteger(row?.sweeps);
      const isIdle = openSlots === 0 && openSweeps === 0;
      const hasTokens = tokens.length > 0 || untold.length > 0;
      const isEmpty = isIdle && balanceAtoken <= dustAtoken && !hasTokens;
      const rest = { openSlots, openSweeps, balanceAtoken, tokens, untold };
      if (force) return;
      if (!isEmpty) throw notEmpty(wallet, rest);
      // A sweep that was booked since is open no more, and its coins are not in what was read.
      if (await hasComeBehind(tx, wallet, height)) throw filledSince(wallet, height);
    },
  });
}

async function hasComeBehind(tx: Sql, wallet: Address, height: Height): Promise<boolean> {
  const rows = await tx.query(
    `SELECT 1 FROM posting p JOIN journal_entry e ON e.id = p.journal_id
      WHERE p.debit = $1 AND e.effective_height > $2 LIMIT 1`,
    [walletAccount(wallet), height],
  );
  return rows.length > 0;
}

function filledSince(wallet: Address, height: Height): LedgerError {
  return new LedgerError(
    "WALLET_NOT_EMPTY",
    `coins came to ${wallet} behind block ${height}, at which it was looked at: type it again`,
    { details: { wallet, height } },
  );
}

function notEmpty(wallet: Address, rest: WalletRest): LedgerError {
  const { openSlots, openSweeps, balanceAtoken, untold } = rest;
  const sweeps = openSweeps === 0 ? "" : `, ${openSweeps} sweeps towards it`;
  const tokens = rest.tokens.map(({ asset, amountUnits }) => `${amountUnits} units of ${asset}`);
  const unread = untold.map((asset) => `as much of ${asset} as its contract does not tell`);
  const held = [`${balanceAtoken} atoken`, ...tokens, ...unread].join(", ");
  return new LedgerError(
    "WALLET_NOT_EMPTY",
    `${wallet} has ${openSlots} open nonces${sweeps} and ${held}: wait, move its coins and tokens, ` +
      "or say --leave-behind with a reason",
    { details: { ...rest, wallet, balanceAtoken: `${balanceAtoken}` } },
  );
}

async function setStatus(
  database: SqlDatabase,
  wallet: Address,
  change: WalletWord & {
    readonly from: readonly WalletStatus[];
    readonly to: WalletStatus;
    readonly check?: (tx: Sql) => Promise<void>;
  },
): Promise<HotWallet> {
  const { from, to, reason, operator } = change;
  return database.transaction(async (tx) => {
    // Whoever takes a nonce holds this row: the change waits for the commit, or is seen.
    await tx.query(`SELECT 1 FROM hot_wallet WHERE wallet = $1 FOR UPDATE`, [wallet]);
    const { status } = await knownWallet(tx, wallet);
    if (status === to) throw refused(`${wallet} is ${to} already`);
    if (!from.includes(status)) {
      throw refused(`${wallet} is ${status}: only ${from.join(" or ")} ones can be made ${to}`);
    }
    await change.check?.(tx);
    const moved = await tx.query(
      `WITH moved AS (
         UPDATE wallet SET status = $2, since = now(), reason = $3, operator = $4
          WHERE address = $1 AND status = $5 RETURNING 1)
       SELECT 1 FROM moved`,
      [wallet, to, reason, operator, status],
    );
    if (moved.length === 0) throw refused(`somebody else changed ${wallet} at the same time`);
    return knownWallet(tx, wallet);
  });
}

function refused(message: string): LedgerError {
  return new LedgerError("INVALID_DECISION", message);
}
