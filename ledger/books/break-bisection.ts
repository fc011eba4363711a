/**
 * Where books and chain begin to differ: a break is a difference at one height, and somewhere before
 * it there is a block after which it was not there. Found by bisection over the chain's balances of
 * the past, in some twenty questions, whatever lies in between.
 */
import { toChecksumAddress } from "../../chain/address.js";
import { present } from "../../chain/errors.js";
import type { Height } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { watchedFromHeight } from "../deposits/watch-cursor.js";
import { storedAtoken } from "../stored-values.js";
import { DEPOSIT_ADDRESSES, NATIVE_ASSET } from "./accounts.js";
import type { AddressBreak, BreakCause, ReconcileChain, ReconcileReport } from "./reconcile.js";
import { ADDRESS_ENTRIES } from "./reconcile-books.js";

/** Where one address' break begins. */
export interface Divergence {
  readonly account: string;
  readonly address: AddressBreak["address"];
  /** The first block after which they differ; undefined when they did before the first watched one. */
  readonly height: Height | undefined;
  /** Transactions of that block whose effects differ. */
  readonly causes: readonly BreakCause[];
}

/** Addresses that are looked into; behind one break many follow. */
const MAX_BISECTED = 20;

/** Blocks of payments on their way that are passed over before the search ends. */
const MAX_PASSED = 16;

/** What the search asks the chain. */
type PastBalances = Pick<ReconcileChain, "balances">;

/** Looks into the breaks of a report, in its order. */
export async function bisectBreaks(
  sql: Sql,
  chain: PastBalances,
  report: Pick<ReconcileReport, "height" | "lines">,
): Promise<readonly Divergence[]> {
  const from = await watchedFromHeight(sql);
  const breaks = report.lines.flatMap(({ account, breaks: found }) =>
    found.map((one) => ({ account, found: one })),
  );
  const divergences: Divergence[] = [];
  for (const { account, found } of breaks.slice(0, MAX_BISECTED)) {
    const { address, causes } = found;
    const sides: Sides = {
      async chainAt(height) {
        const [balance] = await chain.balances([{ address, height }]);
        return present(balance, "balance of an account");
      },
      booked: (range) => bookedBetween(sql, { account, address, ...range }),
    };
    const low = account === DEPOSIT_ADDRESSES ? 0 : Math.max(0, from - 1);
    const height = await firstCause(sides, { low, high: report.height }, causes);
    const there = causes.filter((cause) => cause.height === height);
    divergences.push({ account, address, height, causes: height === undefined ? [] : there });
  }
  return divergences;
}

/** One sentence for people. */
export function divergenceText({ address, height, causes }: Divergence): string {
  const who = toChecksumAddress(address);
  if (height === undefined) return `${who} differed before the first block that is watched.`;
  const named = causes.map(({ txHash }) => txHash).join(", ");
  return `${who} differs since block ${height}${named === "" ? "" : `: ${named}`}`;
}

/** Both sides of one address. */
interface Sides {
  readonly chainAt: (height: Height) => Promise<bigint>;
  /** What the books moved in blocks above `low`, up to `high`. */
  readonly booked: (range: HeightRange) => Promise<bigint>;
}

interface HeightRange {
  readonly low: Height;
  readonly high: Height;
}

/**
 * The block of the first cause. What is on its way differs, too, and is explained elsewhere: a block
 * without one of the causes is passed over, and the search goes on behind it.
 */
async function firstCause(
  sides: Sides,
  { low, high }: HeightRange,
  causes: readonly BreakCause[],
): Promise<Height | undefined> {
  let from = low;
  for (let passed = 0; passed < MAX_PASSED; passed += 1) {
    const found = await firstDifference(sides, { low: from, high });
    if (found === undefined) return undefined;
    if (causes.length === 0 || causes.some(({ height }) => height === found)) return found;
    from = found;
  }
  return undefined;
}

/**
 * A block before which both sides moved alike since `low` and after which they did not: the first
 * one, where what differs once differs ever after.
 */
async function firstDifference(
  { chainAt, booked }: Sides,
  { low, high }: HeightRange,
): Promise<Height | undefined> {
  const base = await chainAt(low);
  const differs = async (height: Height) =>
    (await chainAt(height)) - base !== (await booked({ low, high: height }));
  if (high <= low || !(await differs(high))) return undefined;
  let [even, uneven] = [low, high];
  while (uneven - even > 1) {
    const middle = Math.floor((even + uneven) / 2);
    if (await differs(middle)) uneven = middle;
    else even = middle;
  }
  return uneven;
}

async function bookedBetween(
  sql: Sql,
  asked: HeightRange & { readonly account: string; readonly address: string },
): Promise<bigint> {
  const { account, address, low, high } = asked;
  const rows =
    account === DEPOSIT_ADDRESSES
      ? await sql.query<{ units: string }>(BOOKED_OF_DEPOSITS, [
          DEPOSIT_ADDRESSES,
          address,
          NATIVE_ASSET,
          low,
          high,
        ])
      : await sql.query<{ units: string }>(BOOKED_OF_WALLET, [account, NATIVE_ASSET, low, high]);
  return storedAtoken(rows[0]?.units);
}

const BOOKED_OF_WALLET = `
  SELECT coalesce(sum(CASE WHEN p.debit = $1 THEN p.amount_units ELSE -p.amount_units END), 0)::text
           AS units
    FROM posting p JOIN journal_entry e ON e.id = p.journal_id
   WHERE (p.debit = $1 OR p.credit = $1) AND p.asset = $2
     AND e.effective_height > $3 AND e.effective_height <= $4`;

const BOOKED_OF_DEPOSITS = `
  SELECT coalesce(sum(units), 0)::text AS units FROM (
    SELECT height, amount_units AS units FROM deposit
     WHERE address = $2 AND asset = $3 AND status <> 'reversed'
    UNION ALL
    SELECT effective_height, delta FROM (${ADDRESS_ENTRIES}) AS entries
     WHERE address = $2 AND asset = $3
  ) AS movement WHERE height > $4 AND height <= $5`;
