/**
 * Heights of what stays booked although a chain has lost its blocks: payments are not reversed, since their
 * bytes are sent again. They would count from their former blocks on, and a chain that came back shorter
 * reaches those later, if ever; until then wallets would have by the books what they have paid. Nor is what
 * a person has explained, which is decided once.
 */
import type { Height } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { type AccountCode, BREAK, DEPOSIT_ADDRESSES } from "../journal/accounts.js";
import { type JournalEntry, type Posting, postJournals } from "../journal/journal.js";
import { storedAtoken, storedHeight } from "../stored-values.js";

/** What moved coins of our addresses and is not reversed: payments, and what a person has explained. */
const STAYING_KINDS = [
  "withdrawal.settle",
  "withdrawal.fail",
  "withdrawal.reject",
  "withdrawal.cancel",
  "recovery.payment",
  "ledger.outflow",
  "ledger.adjustment",
];

/**
 * SQL: whether no loss of blocks that the watcher went back for has taken what was seen in a block.
 * @param height an expression @param rewinds an expression: the losses before it was seen
 */
export function stands(height: string, rewinds: string): string {
  return `NOT EXISTS (
  SELECT 1 FROM chain_rewind r WHERE r.id > ${rewinds} AND ${height} > r.to_height)`;
}

/** Kind of the first entry of `bringForward`, which may be brought forward again. */
export const FORWARD = "wallet.forward";

/** Kind of the second entry of `bringForward`. */
export const FORWARD_FROM = "wallet.forward_from";

/**
 * Has payments above a block, and what a person has explained there, count from the next one on: an entry
 * there does what they do, and one at the former height undoes it, so that together they are nothing.
 * Wallets' heights go back as well: a worker waits for the chain to reach them.
 * @param to.rewinds losses of blocks with this one
 */
export async function bringForward(
  tx: Sql,
  to: { readonly height: Height; readonly rewinds: number },
): Promise<void> {
  // All of them: what settles at this moment is settled before, and brought forward, or sees the loss.
  await tx.query(`SELECT 1 FROM hot_wallet ORDER BY wallet FOR UPDATE`);
  await tx.query(
    `UPDATE hot_wallet
        SET settled_height = least(settled_height, $1),
            seen_height = CASE WHEN seen_height > $1 THEN $1 ELSE seen_height END
      WHERE settled_height > $1 OR seen_height > $1`,
    [Math.max(0, to.height)],
  );
  const rows = await tx.query<
    Record<"key" | "memo" | "height" | "asset" | "account" | "units", string>
  >(
    `SELECT e.idem_key AS key, coalesce(e.memo, s.mined_hash, '') AS memo,
            e.effective_height::text AS height, p.asset, side.account,
            sum(side.units)::text AS units
       FROM journal_entry e
       JOIN posting p ON p.journal_id = e.id
      CROSS JOIN LATERAL (VALUES (p.credit, p.amount_units), (p.debit, -p.amount_units))
            AS side (account, units)
       LEFT JOIN nonce_slot s ON e.idem_key = 'withdrawal:' || s.withdrawal_id || ':end'
                             AND s.outcome IN ('paid', 'reverted', 'cancelled')
      WHERE e.effective_height > $1 AND e.kind = ANY ($2::text[])
        AND (is_wallet_account(side.account) OR side.account = '${DEPOSIT_ADDRESSES}')
        AND NOT EXISTS (SELECT 1 FROM journal_entry f
                         WHERE f.idem_key = 'forward-from:' || e.idem_key)
      GROUP BY e.id, s.mined_hash, p.asset, side.account HAVING sum(side.units) <> 0
      ORDER BY e.id`,
    [to.height + 1, [...STAYING_KINDS, FORWARD]],
  );
  const taken = new Map<string, Taken>();
  for (const { key, memo, height, asset, account, units } of rows) {
    const known = taken.get(key) ?? { memo, height: storedHeight(height), parts: [] };
    known.parts.push({ asset, account: account as AccountCode, units: storedAtoken(units) });
    taken.set(key, known);
  }
  await postJournals(
    tx,
    [...taken].flatMap(([key, { memo, height, parts }]): JournalEntry[] => [
      {
        kind: FORWARD,
        idemKey: `forward-r${to.rewinds}:${key}`,
        effectiveHeight: to.height + 1,
        memo,
        postings: parts.map((part) => takenFrom(part, part.units)),
      },
      {
        kind: FORWARD_FROM,
        idemKey: `forward-from:${key}`,
        effectiveHeight: height,
        memo,
        postings: parts.map((part) => takenFrom(part, -part.units)),
      },
    ]),
  );
}

/** What an entry did to one of our accounts. */
interface Part {
  readonly asset: string;
  readonly account: AccountCode;
  /** Signed: what it took; never zero. */
  readonly units: bigint;
}

/** What an entry took of our addresses, and gave them. */
interface Taken {
  readonly memo: string;
  readonly height: Height;
  readonly parts: Part[];
}

function takenFrom({ asset, account }: Part, units: bigint): Posting {
  return units < 0n
    ? { asset, debit: account, credit: BREAK, amountUnits: -units }
    : { asset, debit: BREAK, credit: account, amountUnits: units };
}
