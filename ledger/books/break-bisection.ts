/**
 * Where books and chain begin to differ: a break is a difference at one height, and somewhere before
 * it there is a block after which it was not there. Found by bisection over the chain's balances of
 * the past, in some twenty questions, whatever lies in between.
 */
import { type Address, toChecksumAddress } from "../../chain/address.js";
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
  type BreakCause,
  faultOfChain,
  type ReconcileChain,
  type ReconcileReport,
  type TokenReport,
} from "./reconcile.js";
import { accountsOfWallet, ADDRESS_ENTRIES } from "./reconcile-books.js";

/** Where one address' break begins. */
export interface Divergence {
  readonly asset: string;
  readonly account: string;
  readonly address: AddressBreak["address"];
  /** The first block after which they differ; undefined when they did before the first watched one. */
  readonly height: Height | undefined;
  /** Transactions of that block whose effects differ. */
  readonly causes: readonly BreakCause[];
  /** Why the node does not tell where. */
  readonly untold?: string;
}

/** Addresses that are looked into; behind one break many follow. */
const MAX_BISECTED = 20;

/** Blocks of payments on their way that are passed over before the search ends. */
const MAX_PASSED = 16;

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

/** Looks into the breaks of a report, in its order: those of coins, then of tokens. */
export async function bisectBreaks(
  sql: Sql,
  chain: PastBalances,
  report: BrokenReport,
): Promise<readonly Divergence[]> {
  const coins = { asset: NATIVE_ASSET, contract: undefined, lines: report.lines };
  const breaks = [coins, ...(report.tokens ?? [])].flatMap(({ asset, contract, lines }) =>
    lines.flatMap(({ account, breaks: found }) =>
      found.map((one) => ({ asset, contract, account, found: one })),
    ),
  );
  const looked = breaks.slice(0, MAX_BISECTED);
  const starts = await readStarts(
    sql,
    looked.map(({ found }) => found.address),
  );
  const divergences: Divergence[] = [];
  for (const { asset, contract, account, found } of looked) {
    const { address, causes } = found;
    const accounts = account === DEPOSIT_ADDRESSES ? undefined : starts.accountsOf(address);
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
      booked: (from, high) => bookedFrom(sql, { asset, accounts, address, from, high }),
    };
    const low = starts.lowOf({ asset, account, address });
    const where = { asset, account, address };
    try {
      const height = await firstCause(sides, { low, high: report.height }, causes);
      const there = causes.filter((cause) => placeOf(cause) === height);
      divergences.push({ ...where, height, causes: height === undefined ? [] : there });
    } catch (error) {
      divergences.push({ ...where, height: undefined, causes: [], untold: faultOfChain(error) });
    }
  }
  return divergences;
}

/** Where a search begins, and what it adds up. */
interface Starts {
  /** Last block before single movements are booked. */
  lowOf(of: Pick<Divergence, "asset" | "account" | "address">): Height;
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
  const rows = await sql.query<{ address: string; from_height: string }>(
    `${WITH_LOSSES}
     SELECT d.address, (${WATCHED_FROM})::text AS from_height
       FROM deposit_address d WHERE d.address = ANY ($1::text[])`,
    [addresses],
  );
  const fromOfAddress = new Map(
    rows.map((row) => [storedAddress(row.address), storedHeight(row.from_height)]),
  );
  return {
    lowOf({ asset, account, address }) {
      const fromToken = fromOfToken.get(asset) ?? 0;
      if (account === DEPOSIT_ADDRESSES) {
        // Past coins are booked one by one, past tokens as one sum.
        const from = asset === NATIVE_ASSET ? 0 : (fromOfAddress.get(address) ?? 0);
        return Math.max(0, Math.max(fromToken, from) - 1);
      }
      const from = Math.max(watchedFrom, fromToken, fromOfWallet.get(address) ?? 0);
      return Math.max(0, from - 1);
    },
    accountsOf: (wallet) => accountsOfWallet(wallet, wallet === wallets[0]?.address),
  };
}

/** One sentence for people. */
export function divergenceText({ asset, address, height, causes, untold }: Divergence): string {
  const name = toChecksumAddress(address);
  const who = asset === NATIVE_ASSET ? name : `${name} (${asset})`;
  if (untold !== undefined)
    return `${who}: the node does not tell since when it differs: ${untold}`;
  if (height === undefined) return `${who} differed before the first block that is watched.`;
  const named = causes.map(({ txHash }) => txHash).join(", ");
  return `${who} differs since block ${height}${named === "" ? "" : `: ${named}`}`;
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

interface HeightRange {
  readonly low: Height;
  readonly high: Height;
}

/** Block in which a cause makes both sides differ: the chain's, or the one that the books say. */
function placeOf({ height, bookedHeight }: BreakCause): Height | undefined {
  return height ?? bookedHeight;
}

/**
 * The block of the first cause. What is on its way differs, too, and is explained elsewhere: a block
 * without one of the causes is passed over, and the search goes on behind it. Where more of them lie before
 * it than are passed over, the causes themselves say where.
 */
async function firstCause(
  sides: Sides,
  { low, high }: HeightRange,
  causes: readonly BreakCause[],
): Promise<Height | undefined> {
  let from = low;
  for (let passed = 0; passed < MAX_PASSED; passed += 1) {
    const found = await firstDifference(sides, { low: from, high });
    if (found === undefined) break;
    if (causes.length === 0 || causes.some((cause) => placeOf(cause) === found)) return found;
    from = found;
  }
  const places = causes.flatMap((cause) => placeOf(cause) ?? []).filter((place) => place > low);
  return places.toSorted((one, other) => one - other)[0];
}

/**
 * A block before which both sides moved alike since `low` and after which they did not: the first
 * one, where what differs once differs ever after.
 */
async function firstDifference(
  { chainAt, booked }: Sides,
  { low, high }: HeightRange,
): Promise<Height | undefined> {
  if (high <= low) return undefined;
  const base = await chainAt(low);
  const differs = async ({ height, units }: Moved) => (await chainAt(height)) - base !== units;
  let even: Moved = { height: low, units: 0n };
  let places = await booked(even, high);
  if (!(await differs(at(places, places.length - 1)))) return undefined;
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
    readonly from: Moved;
    readonly high: Height;
  },
): Promise<readonly Moved[]> {
  const { asset, accounts, address, from, high } = asked;
  const low = from.height;
  const step = Math.ceil((high - low) / PARTS);
  const range = [asset, low, high, step];
  const rows =
    accounts === undefined
      ? await sql.query<PartRow>(BOOKED_OF_DEPOSITS, [DEPOSIT_ADDRESSES, ...range, address])
      : await sql.query<PartRow>(BOOKED_OF_WALLET, [accounts, ...range]);
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

const BOOKED_OF_WALLET = inParts(`
  SELECT e.effective_height AS height,
         CASE WHEN p.debit = ANY ($1::text[]) THEN p.amount_units ELSE -p.amount_units END AS units
    FROM posting p JOIN journal_entry e ON e.id = p.journal_id
   WHERE (p.debit = ANY ($1::text[]) OR p.credit = ANY ($1::text[])) AND p.asset = $2`);

const BOOKED_OF_DEPOSITS = inParts(`
  SELECT height, amount_units AS units FROM deposit
   WHERE address = $6 AND asset = $2 AND status <> 'reversed'
  UNION ALL
  SELECT effective_height, delta FROM (${ADDRESS_ENTRIES}) AS entries
   WHERE address = $6 AND asset = $2`);
