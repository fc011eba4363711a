/**
 * Where books and chain begin to differ: a break is a difference at one height, and somewhere before
 * it there is a block after which it was not there. Found by bisection over the chain's balances of
 * the past, in some twenty questions, whatever lies in between.
 */
import type { Address } from "../../chain/address.js";
import { present } from "../../chain/errors.js";
import type { Height } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { watchedFromHeight } from "../watch/watch-cursor.js";
import { WATCHED_FROM, WITH_LOSSES } from "../deposits/deposit-addresses.js";
import { readTokenAssets } from "../assets/asset-registry.js";
import { storedAddress, storedAtoken, storedHeight } from "../stored-values.js";
import { listWallets } from "../wallets/wallet.js";
import { DEPOSIT_ADDRESSES, NATIVE_ASSET } from "../journal/accounts.js";
import {
  type AddressBreak,
  faultOfChain,
  type MinedPlace,
  type ReconcileChain,
  type ReconcileReport,
  type TokenReport,
} from "./reconcile.js";
import { accountsOfWallet, ADDRESS_ENTRIES } from "./reconcile-books.js";
import { lastCleanHeight } from "./reconcile-runs.js";

/** Where one address' break begins. */
export interface BreakPlace {
  readonly asset: string;
  /** The token's contract; undefined for coins. */
  readonly contract: Address | undefined;
  readonly account: string;
  readonly found: AddressBreak;
  /** The first block after which they differ; undefined when they did before the first watched one. */
  readonly height: Height | undefined;
  /** Why the node does not tell where. */
  readonly untold?: string;
  /** Accounts of a wallet; undefined of a deposit address. */
  readonly accounts: readonly string[] | undefined;
  /** Of a wallet: its payments that are mined and not settled. */
  readonly mined: readonly MinedMovement[];
  /** First block whose movements are booked one by one. */
  readonly fromHeight: Height;
}

/** What a payment that is mined and not settled moved. */
export interface MinedMovement extends MinedPlace {
  readonly units: bigint;
}

/** Addresses that are looked into: as many as a report lists of one asset; behind one break many follow. */
const MAX_BISECTED = 40;

/**
 * Parts of a range of blocks that one look at the books adds up. Of a wallet it is a look at all that it ever
 * paid: three of them lead to one block of a thousand million.
 */
const PARTS = 1_000;

/** What the search asks the chain. */
type PastBalances = Pick<ReconcileChain, "balances" | "tokenBalances">;

/** What the search takes of a report. */
type BrokenReport = Pick<ReconcileReport, "height" | "lines"> & {
  readonly tokens?: readonly Pick<TokenReport, "asset" | "contract" | "lines">[];
};

/**
 * Looks into the breaks of a report, in its order: those of coins, then of tokens. Of each it is some
 * twenty balances and a few sums of the books.
 */
export async function bisectBreaks(
  sql: Sql,
  chain: PastBalances,
  report: BrokenReport,
): Promise<readonly BreakPlace[]> {
  const coins = { asset: NATIVE_ASSET, contract: undefined, lines: report.lines };
  const breaks = [coins, ...(report.tokens ?? [])].flatMap(({ asset, contract, lines }) =>
    lines.flatMap(({ account, inFlight, breaks: found }) =>
      found.map((one) => ({ asset, contract, account, inFlight, found: one })),
    ),
  );
  const looked = breaks.slice(0, MAX_BISECTED);
  const starts = await readStarts(
    sql,
    looked.map(({ found }) => found.address),
  );
  const cleanHeight = await lastCleanHeight(sql, report.height);
  const places: BreakPlace[] = [];
  for (const { asset, contract, account, inFlight, found } of looked) {
    const { address } = found;
    const isDeposit = account === DEPOSIT_ADDRESSES;
    const accounts = isDeposit ? undefined : starts.accountsOf(address);
    const mined = inFlight.flatMap((item) =>
      item.mined === undefined ? [] : [{ ...item.mined, units: item.amountUnits }],
    );
    const sides: Sides = {
      async chainAt(height) {
        const asked = [{ address, height }];
        const [balance] =
          contract === undefined
            ? await chain.balances(asked)
            : await chain.tokenBalances(contract, asked);
        // As in the report: a token that does not tell has nothing of ours.
        return contract === undefined ? present(balance, "balance of an account") : (balance ?? 0n);
      },
      booked: (from, high) => bookedFrom(sql, { asset, accounts, address, mined, from, high }),
    };
    const fromHeight = starts.fromOf({ asset, account, address });
    const range = { low: Math.max(0, fromHeight - 1), high: report.height };
    const known = { asset, contract, account, found, accounts, mined, fromHeight };
    try {
      const expectedUnits = found.ledgerUnits;
      const height = await beginningOf(sides, range, { cleanHeight, expectedUnits });
      places.push({ ...known, height });
    } catch (error) {
      places.push({ ...known, height: undefined, untold: faultOfChain(error) });
    }
  }
  return places;
}

/** Where a search begins, and what it adds up. */
interface Starts {
  /** First block whose movements are booked one by one. */
  fromOf(of: {
    readonly asset: string;
    readonly account: string;
    readonly address: Address;
  }): Height;
  /** Accounts of a wallet. */
  accountsOf(wallet: Address): readonly string[];
}

/** What lay anywhere before its first block is booked as one sum, and no search leads through it. */
async function readStarts(sql: Sql, addresses: readonly Address[]): Promise<Starts> {
  const watchedFrom = await watchedFromHeight(sql);
  const wallets = await listWallets(sql);
  const fromOfWallet = new Map(wallets.map(({ address, fromHeight }) => [address, fromHeight]));
  const fromOfToken = new Map(
    (await readTokenAssets(sql)).map(({ symbol, fromHeight }) => [symbol, fromHeight]),
  );
  const rows = await sql.query<{ address: string; from_height: string; backfilled: boolean }>(
    `${WITH_LOSSES}
     SELECT d.address, (${WATCHED_FROM})::text AS from_height, d.backfilled
       FROM deposit_address d WHERE d.address = ANY ($1::text[])`,
    [addresses],
  );
  const fromOfAddress = new Map(
    rows.map(({ address, from_height: fromHeight, backfilled }) => [
      storedAddress(address),
      { fromHeight: storedHeight(fromHeight), backfilled },
    ]),
  );
  return {
    fromOf({ asset, account, address }) {
      const fromToken = fromOfToken.get(asset) ?? 0;
      if (account === DEPOSIT_ADDRESSES) {
        const { fromHeight = 0, backfilled = false } = fromOfAddress.get(address) ?? {};
        // Past coins are booked one by one once they are looked for, past tokens as one sum.
        const isPastBooked = asset === NATIVE_ASSET && backfilled;
        return Math.max(fromToken, isPastBooked ? 0 : fromHeight);
      }
      return Math.max(watchedFrom, fromToken, fromOfWallet.get(address) ?? 0);
    },
    accountsOf: (wallet) => accountsOfWallet(wallet, wallet === wallets[0]?.address),
  };
}

/** What the books have moved since the block that a search began behind, this one included. */
interface Moved {
  readonly height: Height;
  readonly units: bigint;
}

/** Both sides of one address. */
interface Sides {
  readonly chainAt: (height: Height) => Promise<bigint>;
  /** Further blocks, `PARTS` at most, in even steps; the last one is `high`. */
  readonly booked: (from: Moved, high: Height) => Promise<readonly Moved[]>;
}

interface SearchRange {
  readonly low: Height;
  readonly high: Height;
}

/**
 * Behind the last clean comparison, where both sides still match there: what is booked later may be of an
 * older block. A node that has deleted older states tells that much.
 */
async function beginningOf(
  sides: Sides,
  range: SearchRange,
  known: { readonly cleanHeight: Height | undefined; readonly expectedUnits: bigint },
): Promise<Height | undefined> {
  const { cleanHeight: low, expectedUnits } = known;
  if (low !== undefined && low > range.low) {
    const height = await firstDifference(sides, { low, high: range.high }, expectedUnits);
    if (height !== undefined) return height;
  }
  return firstDifference(sides, range);
}

/**
 * A block before which both sides moved alike since `low` and after which they did not: the first
 * one, where what differs once differs ever after.
 * @param expectedUnits what the books have at `high`: then there is none where both differ at `low` already
 */
async function firstDifference(
  { chainAt, booked }: Sides,
  { low, high }: SearchRange,
  expectedUnits?: bigint,
): Promise<Height | undefined> {
  if (high <= low) return undefined;
  const base = await chainAt(low);
  const differs = async ({ height, units }: Moved) => (await chainAt(height)) - base !== units;
  let even: Moved = { height: low, units: 0n };
  let places = await booked(even, high);
  const last = at(places, places.length - 1);
  if (expectedUnits !== undefined && base + last.units !== expectedUnits) return undefined;
  if (!(await differs(last))) return undefined;
  for (;;) {
    const found = await firstPlace(places, differs);
    const uneven = at(places, found);
    if (found > 0) even = at(places, found - 1);
    if (uneven.height - even.height <= 1) return uneven.height;
    places = await booked(even, uneven.height);
  }
}

/** A place that differs, and the one before it does not; the last one differs. */
async function firstPlace(
  places: readonly Moved[],
  differs: (place: Moved) => Promise<boolean>,
): Promise<number> {
  let [even, uneven] = [-1, places.length - 1];
  while (uneven - even > 1) {
    const middle = Math.floor((even + uneven) / 2);
    if (await differs(at(places, middle))) uneven = middle;
    else even = middle;
  }
  return uneven;
}

function at(places: readonly Moved[], index: number): Moved {
  return present(places[index], "place of a search");
}

async function bookedFrom(
  sql: Sql,
  asked: {
    readonly asset: string;
    /** A wallet's; undefined for a deposit address. */
    readonly accounts: readonly string[] | undefined;
    readonly address: string;
    readonly mined: readonly MinedMovement[];
    readonly from: Moved;
    readonly high: Height;
  },
): Promise<readonly Moved[]> {
  const { asset, accounts, address, mined, from, high } = asked;
  const low = from.height;
  const step = Math.ceil((high - low) / PARTS);
  const range = [asset, low, high, step];
  const rows =
    accounts === undefined
      ? await sql.query<PartRow>(BOOKED_OF_DEPOSITS, [DEPOSIT_ADDRESSES, ...range, address])
      : await sql.query<PartRow>(BOOKED_OF_WALLET, [
          accounts,
          ...range,
          mined.map(({ txHash }) => txHash),
          mined.map(({ height }) => height),
          mined.map(({ units }) => units.toString()),
        ]);
  const unitsOf = new Map(rows.map(({ part, units }) => [part, storedAtoken(units)]));
  const places: Moved[] = [];
  for (let { height, units } = from; height < high; ) {
    units += unitsOf.get(places.length) ?? 0n;
    height = Math.min(height + step, high);
    places.push({ height, units });
  }
  return places;
}

interface PartRow {
  readonly part: number;
  readonly units: string;
}

/** SQL: units of movements by the step behind $3 that their blocks are in. */
const inParts = (movements: string) => `
  SELECT ((height - $3::bigint - 1) / $5::bigint)::integer AS part, sum(units)::text AS units
    FROM (${movements}) AS movement WHERE height > $3 AND height <= $4 GROUP BY part`;

/** What is mined counts as booked; what was settled since the report was made is. */
const BOOKED_OF_WALLET = inParts(`
  SELECT e.effective_height AS height,
         CASE WHEN p.debit = ANY ($1::text[]) THEN p.amount_units ELSE -p.amount_units END AS units
    FROM posting p JOIN journal_entry e ON e.id = p.journal_id
   WHERE (p.debit = ANY ($1::text[]) OR p.credit = ANY ($1::text[])) AND p.asset = $2
  UNION ALL
  SELECT mined.height, mined.units
    FROM unnest($6::text[], $7::bigint[], $8::numeric[]) AS mined (hash, height, units)
    JOIN withdrawal_attempt attempt ON attempt.hash = mined.hash
    JOIN nonce_slot slot ON slot.id = attempt.slot_id
   WHERE slot.outcome IS NULL`);

const BOOKED_OF_DEPOSITS = inParts(`
  SELECT height, amount_units AS units FROM deposit
   WHERE address = $6 AND asset = $2 AND status <> 'reversed'
  UNION ALL
  SELECT effective_height, delta FROM (${ADDRESS_ENTRIES}) AS entries
   WHERE address = $6 AND asset = $2`);
