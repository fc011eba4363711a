/** What the exchange owes as of a block, and the addresses that hold what it owes it from. */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { shareOut } from "../deposits/mined-again.js";
import { inSuspense } from "../deposits/suspense.js";
import { readCursor, watchedFromHeight } from "../watch/watch-cursor.js";
import { LedgerError } from "../errors.js";
import { listWallets } from "../wallets/wallet.js";
import { storedAddress, storedAtoken, storedHash } from "../stored-values.js";
import { customerAccount, heldAccount, NATIVE_ASSET } from "../journal/accounts.js";
import { SUSPENSE, SUSPENSE_HOLDER, TREASURY } from "../journal/accounts.js";

/** What is owed to one customer, withdrawals on their way included, or to nobody known yet. */
export interface Liability {
  readonly asset: string;
  /** `SUSPENSE_HOLDER` for coins whose owner is not known. */
  readonly customerId: string;
  /** At least zero. */
  readonly units: bigint;
}

/** What an address of ours is. */
export const OWN_ROLES = ["hot-wallet", "cold-storage", "deposit-address"] as const;

/** An address of ours. */
export interface OwnAddress {
  readonly address: Address;
  readonly role: (typeof OWN_ROLES)[number];
  /** Of a hot wallet that was retired since, and may have held coins in the block. */
  readonly isRetired?: boolean;
}

/** One moment of the books. */
export interface LiabilityBooks {
  readonly ledgerId: string;
  readonly height: Height;
  /** The last booked block: these books are about no chain but the one that has it. */
  readonly booked: { readonly height: Height; readonly blockHash: Hash32 };
  readonly liabilities: readonly Liability[];
  readonly addresses: readonly OwnAddress[];
  /** Payments that were open when the liabilities were read. */
  readonly openPayments: readonly OpenPayment[];
}

/** A customer's payment that was signed and whose end is not booked: its hold is owed, mined or not. */
export interface OpenPayment {
  readonly withdrawalId: string;
  readonly hash: Hash32;
}

/**
 * Reads liabilities and addresses in one look. Entries without a block only move coins between a
 * customer's own accounts, or are corrections of former releases (below).
 * @param height a booked block, or the one that the books began behind; undefined: the last one
 * @throws HEIGHT_NOT_BOOKED; NEGATIVE_LIABILITY where the books owe less than nothing
 */
export function readLiabilities(
  database: SqlDatabase,
  options: { readonly height: Height | undefined },
): Promise<LiabilityBooks> {
  return database.transaction(async (tx) => {
    await tx.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY");
    const { height: last, blockHash, rewinds } = await readCursor(tx);
    if (blockHash === undefined) {
      throw new LedgerError("HEIGHT_NOT_BOOKED", "no block is booked yet");
    }
    const height = options.height ?? last;
    if (height > last) {
      const message = `block ${height} is not booked yet; the last one is ${last}`;
      throw new LedgerError("HEIGHT_NOT_BOOKED", message);
    }
    // Of earlier blocks nobody knows what was owed: it would look like nothing.
    const first = (await watchedFromHeight(tx)) - 1;
    if (height < first) {
      const message = `these books began behind block ${first}: name that one or a later one, not ${height}`;
      throw new LedgerError("HEIGHT_NOT_BOOKED", message);
    }
    const [identity] = await tx.query<{ ledger_id: string }>(
      `SELECT value AS ledger_id FROM meta WHERE key = 'ledger_id'`,
    );
    return {
      ledgerId: identity?.ledger_id ?? "",
      height,
      booked: { height: last, blockHash },
      liabilities: await readOwed(tx, { height, rewinds }),
      addresses: await readOwnAddresses(tx, height),
      openPayments: await readOpenPayments(tx),
    };
  });
}

/** By wallet and nonce; of one withdrawal each signature. What takes a payment's place pays nothing. */
export async function readOpenPayments(sql: Sql): Promise<readonly OpenPayment[]> {
  const rows = await sql.query<{ withdrawal_id: string; hash: string }>(
    `SELECT s.withdrawal_id, t.hash
       FROM nonce_slot s
       JOIN withdrawal_attempt t ON t.slot_id = s.id AND t.kind = 'payment'
       JOIN withdrawal w ON w.id = s.withdrawal_id AND w.customer_id <> $1
      WHERE s.outcome IS NULL ORDER BY s.wallet, s.nonce, t.n`,
    [TREASURY],
  );
  return rows.map((row) => ({ withdrawalId: row.withdrawal_id, hash: storedHash(row.hash) }));
}

/**
 * Block in which an entry was booked. Former releases booked two decisions without one: of a deposit in
 * suspense, and about a payment that a recovery had found.
 */
const BOOKED_HEIGHT = `
  coalesce(e.effective_height, CASE e.kind
    WHEN 'ledger.suspense_release'
      THEN (SELECT d.height FROM deposit d WHERE d.id = substr(e.idem_key, 18))
    WHEN 'withdrawal.settle'
      THEN (SELECT r.height FROM recovered_payment r WHERE r.tx_hash = e.memo) END)`;

/**
 * When the block of an entry was booked: what undoes another entry, or decides about it, is of its block,
 * however much later it came.
 */
const BOOKED_AT = `
  coalesce((SELECT o.posted_at FROM journal_entry o
             WHERE o.effective_height = e.effective_height AND o.idem_key = CASE e.kind
               WHEN 'wallet.reversal' THEN substr(e.idem_key, 10)
               WHEN 'deposit.reversal' THEN 'deposit:' || split_part(e.idem_key, ':', 3)
               WHEN 'ledger.suspense_release' THEN 'deposit:' || split_part(e.idem_key, ':', 2)
               WHEN 'withdrawal.settle' THEN 'recovered-payment:' || e.memo END),
           e.posted_at)`;

/**
 * Block from which on an entry changes what is owed: its own, or, where the chain has lost that one since,
 * the first that may stand in its place. A chain that came back shorter reaches the former height later, if
 * ever, and wallets have paid by the books from there on (lost-heights.ts).
 * @param otherwise expressions: the block of an entry that has none of its own
 */
const heightOfEntry = (otherwise: string) => `
  least(coalesce(${BOOKED_HEIGHT}, ${otherwise}),
        (SELECT min(r.to_height) + 1 FROM chain_rewind r WHERE r.at >= ${BOOKED_AT}))`;

/** Former releases booked a correction without a block where its person named none. */
const IS_UNPLACED = `e.kind = 'ledger.adjustment' AND e.effective_height IS NULL`;

/**
 * Such corrections by entry, each at the highest block of all entries before it: the balance that it took was
 * there by then, and who proved what was owed at a block below it knew nothing of it.
 */
const PLACED_CORRECTIONS = `
  SELECT id, height FROM (
    SELECT e.id, ${IS_UNPLACED} AS is_unplaced, max(${heightOfEntry("0")}) OVER (ORDER BY e.id) AS height
      FROM journal_entry e
     WHERE e.id <= (SELECT max(e.id) FROM journal_entry e WHERE ${IS_UNPLACED})) AS entry
   WHERE is_unplaced`;

/** Deposits that are on the chain and not posted yet: owed all the same. @param 1 height */
const WAITING = `FROM deposit WHERE status IN ('detected', 'held') AND height <= $1`;

/**
 * What such deposits will not give to whom they belong, as their chain has mined them again: it went to
 * somebody, or was withdrawn, before.
 */
async function readNotGiven(tx: Sql, height: Height): Promise<readonly Liability[]> {
  const rows = await tx.query<Record<"id" | "asset" | "customer_id" | "units", string>>(
    `SELECT id, asset, customer_id, amount_units::text AS units ${WAITING} ORDER BY seq`,
    [height],
  );
  const waiting = rows.map(({ units, ...row }) => ({ ...row, amountUnits: storedAtoken(units) }));
  const shares = await shareOut(tx, waiting);
  return waiting.flatMap(({ id, asset, customer_id: customerId, amountUnits }) => {
    const { givenUnits = amountUnits, takenUnits = 0n } = shares.get(id) ?? {};
    return [
      { asset, customerId, units: givenUnits - amountUnits },
      { asset, customerId: SUSPENSE_HOLDER, units: takenUnits },
    ].filter(({ units }) => units !== 0n);
  });
}

async function readOwed(
  tx: Sql,
  { height, rewinds }: { readonly height: Height; readonly rewinds: number },
): Promise<readonly Liability[]> {
  const notGiven = rewinds === 0 ? [] : await readNotGiven(tx, height);
  const rows = await tx.query<{ asset: string; holder: string; units: string }>(
    `WITH correction AS MATERIALIZED (${PLACED_CORRECTIONS})
     SELECT asset, holder, sum(units)::text AS units FROM (
       -- Summed up by account first: there are fewer accounts than postings to find the holder of.
       SELECT asset, CASE WHEN account = $2 THEN $3 ELSE
                regexp_replace(account, '^liability:(customer|held):', '') END AS holder, units
         FROM (
           SELECT p.asset, side.account, sum(side.units) AS units
             FROM posting p
             JOIN (SELECT e.id, ${heightOfEntry("correction.height, 0")} AS height
                     FROM journal_entry e LEFT JOIN correction ON correction.id = e.id
                   OFFSET 0) AS entry ON entry.id = p.journal_id AND entry.height <= $1
            CROSS JOIN LATERAL (VALUES (p.credit, p.amount_units), (p.debit, -p.amount_units))
                  AS side (account, units)
            WHERE side.account LIKE 'liability:%'
              -- What the exchange owes itself is on its way between its own addresses.
              AND side.account <> ALL ($4::text[])
            GROUP BY p.asset, side.account) AS booked
       UNION ALL
       SELECT asset, customer_id, amount_units ${WAITING}
       UNION ALL
       SELECT * FROM unnest($5::text[], $6::text[], $7::numeric[])) AS owed
      GROUP BY asset, holder HAVING sum(units) <> 0
        -- What a person took out of suspense before others' coins came in its place was owed to no one there;
        -- where none have come to this day, more was given than there is.
        AND NOT (holder = $3 AND sum(units) < 0 AND ${inSuspense("asset")} >= 0)
      ORDER BY asset, holder`,
    // Whole account codes are compared: a customer may be called "suspense".
    [
      height,
      SUSPENSE,
      SUSPENSE_HOLDER,
      [customerAccount(TREASURY), heldAccount(TREASURY)],
      notGiven.map(({ asset }) => asset),
      notGiven.map(({ customerId }) => customerId),
      notGiven.map(({ units }) => units.toString()),
    ],
  );
  return rows.map(({ asset, holder: customerId, units }) => {
    const owed = storedAtoken(units);
    if (owed < 0n) {
      const message = `the books owe ${owed} units of ${asset} to ${customerId} at block ${height}`;
      throw new LedgerError("NEGATIVE_LIABILITY", message);
    }
    return { asset, customerId, units: owed };
  });
}

async function readOwnAddresses(tx: Sql, height: Height): Promise<readonly OwnAddress[]> {
  const wallets = await listWallets(tx);
  const deposits = await tx.query<{ address: string }>(
    `SELECT DISTINCT address FROM deposit WHERE height <= $1 ORDER BY address`,
    [height],
  );
  return [
    ...wallets.map(({ address, status }) => {
      const wallet = { address, role: "hot-wallet" as const };
      return status === "retired" ? { ...wallet, isRetired: true } : wallet;
    }),
    ...(await readColdAddresses(tx)).map((address) => ({ address, role: "cold-storage" as const })),
    ...deposits.map((row) => ({ ...own(row), role: "deposit-address" as const })),
  ];
}

/** Addresses that a policy named as cold storage of coins, and that are nothing else of ours. */
async function readColdAddresses(tx: Sql): Promise<readonly Address[]> {
  const rows = await tx.query<{ address: string }>(
    `SELECT address FROM cold_address c WHERE asset = $1
        AND NOT EXISTS (SELECT 1 FROM wallet w WHERE w.address = c.address)
        AND NOT EXISTS (SELECT 1 FROM deposit_address d WHERE d.address = c.address)
      ORDER BY address`,
    [NATIVE_ASSET],
  );
  return rows.map(({ address }) => storedAddress(address));
}

function own({ address }: { readonly address: string }): { readonly address: Address } {
  return { address: storedAddress(address) };
}
