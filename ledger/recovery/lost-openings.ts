/**
 * What our addresses held when a wallet or a token was taken in stands in the books as a sum, at the block
 * before its first one. Where a chain has lost that block, the watcher goes through the blocks before the
 * registration as well, and books what they move as it comes: the sum is taken back, and what was held at the
 * block that is gone back to takes its place.
 */
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { readTokenAssets, type TokenAsset } from "../assets/asset-registry.js";
import { openingEntry } from "../assets/token-opening.js";
import { readTokenStates } from "../assets/token-state.js";
import { NATIVE_ASSET } from "../journal/accounts.js";
import { postJournals } from "../journal/journal.js";
import { pastEntry } from "../blocks/wallet-flows.js";
import { WATCHED_FROM, WITH_LOSSES } from "../deposits/deposit-addresses.js";
import { LedgerError } from "../errors.js";
import { storedAddress, storedHeight, storedInteger } from "../stored-values.js";
import { type HotWallet, listWallets } from "../wallets/wallet.js";
import { IS_NOT_REVERSED, reverseEntry } from "../journal/reversals.js";

/** What accounts held after a block, of coins and of tokens. */
export interface HoldingsChain {
  /** Coins of an account after a block. */
  readonly coinsAt: (address: Address, height: Height) => Promise<bigint>;
  /** Units of a token that accounts have after a block; undefined of one that is there and does not tell. */
  readonly unitsAt: (
    token: Address,
    accounts: readonly Address[],
    height: Height,
  ) => Promise<readonly (bigint | undefined)[]>;
}

/** What one of our addresses held after the block that is gone back to. */
interface Held {
  readonly address: Address;
  readonly asset: string;
  /** Greater than zero. */
  readonly amountUnits: bigint;
  /** As it was booked first: of a wallet with its coins, or of a token that was taken in later. */
  readonly as: "wallet-past" | "token-opening";
  readonly isHotWallet: boolean;
}

/** What takes the place of the sums that are lost. */
export interface LostOpenings {
  readonly held: readonly Held[];
  /** Assets whose contracts do not tell what some of our addresses held: nothing takes the place of that. */
  readonly untold: readonly string[];
  /** What there was when the chain was asked: with more of it the plan is not whole. */
  readonly known: string;
}

/** Addresses read at once. */
const ADDRESS_PAGE = 1_000;

/** Asks the chain for them; nothing is asked where all registrations are older than the block. */
export async function readLostOpenings(
  sql: Sql,
  chain: HoldingsChain,
  height: Height,
): Promise<LostOpenings> {
  const known = await readKnown(sql);
  // Before the first block nobody had anything.
  if (height < 0) return { held: [], untold: [], known };
  const wallets = await listWallets(sql);
  const held: Held[] = [];
  const untold = new Set<string>();
  for (const { address, fromHeight, pastBooked } of wallets) {
    if (!pastBooked || fromHeight <= height + 1) continue;
    const amountUnits = await chain.coinsAt(address, height);
    const base = { address, asset: NATIVE_ASSET, amountUnits, isHotWallet: true };
    held.push({ ...base, as: "wallet-past" });
  }
  const walletFrom = new Map(wallets.map((wallet) => [wallet.address, wallet.fromHeight]));
  const states = await readTokenStates(sql);
  const tokens = await readTokenAssets(sql);
  for (const token of tokens) {
    // One that is not opened yet is opened at the block that is gone back to, or was older before.
    const isOpened = states.get(token.symbol)?.isOpened === true;
    if (!isOpened && token.fromHeight > height) continue;
    for await (const accounts of registeredLater(sql, wallets, { token, height })) {
      if (accounts.length === 0) continue;
      const units = await chain.unitsAt(token.contract, accounts, height);
      accounts.forEach((address, index) => {
        const from = walletFrom.get(address);
        const amountUnits = units[index];
        if (amountUnits === undefined) {
          untold.add(token.symbol);
          return;
        }
        held.push({
          address,
          asset: token.symbol,
          amountUnits,
          as: from !== undefined && from >= token.fromHeight ? "wallet-past" : "token-opening",
          isHotWallet: from !== undefined,
        });
      });
    }
  }
  return { held: held.filter(({ amountUnits }) => amountUnits > 0n), untold: [...untold], known };
}

/** One of our addresses, as far as a sum of it is concerned. */
interface Owner {
  readonly address: Address;
  /** First block that the watcher books, former losses counted. */
  readonly fromHeight: Height;
  readonly isPastBooked: boolean;
}

/** Our addresses of which, together with the token, the younger one is of a block that is lost. */
async function* registeredLater(
  sql: Sql,
  wallets: readonly HotWallet[],
  { token, height }: { readonly token: TokenAsset; readonly height: Height },
): AsyncGenerator<readonly Address[]> {
  const isLater = (fromHeight: Height) => Math.max(fromHeight, token.fromHeight) > height + 1;
  const toBook = (owners: readonly Owner[]) =>
    owners.flatMap(({ address, fromHeight, isPastBooked }) => {
      // What a younger one held is booked with its past, which waits for the recovery.
      const isBooked = isPastBooked || fromHeight <= height;
      return isBooked && isLater(fromHeight) ? [address] : [];
    });
  const known: ReadonlySet<Address> = new Set(wallets.map(({ address }) => address));
  yield toBook(wallets.map((wallet) => ({ ...wallet, isPastBooked: wallet.pastBooked })));
  // Addresses are given out in the order of blocks.
  let firstIndex = isLater(0) ? 0 : await firstIndexAbove(sql, height + 1);
  while (firstIndex !== undefined) {
    const page = await ownersFrom(sql, firstIndex);
    yield toBook(page.filter(({ address }) => !known.has(address)));
    const last = page.at(-1);
    firstIndex = page.length < ADDRESS_PAGE || last === undefined ? undefined : last.index + 1;
  }
}

async function ownersFrom(
  sql: Sql,
  firstIndex: number,
): Promise<readonly (Owner & { readonly index: number })[]> {
  const rows = await sql.query<{
    index: string;
    address: string;
    from_height: string;
    backfilled: boolean;
  }>(
    `${WITH_LOSSES}
     SELECT d.index::text, d.address, d.backfilled, (${WATCHED_FROM})::text AS from_height
       FROM deposit_address d WHERE d.index >= $1 ORDER BY d.index LIMIT $2`,
    [firstIndex, ADDRESS_PAGE],
  );
  return rows.map((row) => ({
    index: storedInteger(row.index),
    address: storedAddress(row.address),
    fromHeight: storedHeight(row.from_height),
    isPastBooked: row.backfilled,
  }));
}

async function firstIndexAbove(sql: Sql, fromHeight: Height): Promise<number | undefined> {
  const rows = await sql.query<{ index: string | null }>(
    `SELECT min(index)::text AS index FROM deposit_address WHERE from_height > $1`,
    [fromHeight],
  );
  const index = rows[0]?.index ?? null;
  return index === null ? undefined : storedInteger(index);
}

/**
 * Takes the sums back that are above the block, and books what was held there.
 * @param rewinds losses of blocks with this one: the new entries have keys of their own
 * @throws RECOVERY when something was registered, or booked for the first time, since the chain was asked
 */
export async function reopen(
  tx: Sql,
  { held, known }: LostOpenings,
  { height, rewinds }: { readonly height: Height; readonly rewinds: number },
): Promise<void> {
  if ((await readKnown(tx)) !== known) {
    throw new LedgerError(
      "RECOVERY",
      "addresses, wallets or tokens were added meanwhile: run it again",
    );
  }
  const rows = await tx.query<{ idem_key: string; memo: string; height: string }>(
    `SELECT e.idem_key, e.memo, e.effective_height::text AS height FROM journal_entry e
      WHERE (e.kind = 'wallet.past' OR e.idem_key LIKE 'token-opening:%')
        AND e.effective_height > $1
        AND ${IS_NOT_REVERSED}
      ORDER BY e.id`,
    [height],
  );
  for (const { idem_key: idemKey, memo, height: at } of rows) {
    await reverseEntry(tx, { idemKey, memo, height: storedHeight(at) });
  }
  const pasts = new Map<Address, Held[]>();
  for (const one of held.filter((each) => each.as === "wallet-past")) {
    pasts.set(one.address, [...(pasts.get(one.address) ?? []), one]);
  }
  const openings = held.filter((one) => one.as === "token-opening");
  await postJournals(tx, [
    ...[...pasts].map(([wallet, own]) => pastEntry({ wallet, height, held: own }, rewinds)),
    ...openings.map((one) => openingEntry({ ...one, fromHeight: height + 1 }, one, rewinds)),
  ]);
}

async function readKnown(sql: Sql): Promise<string> {
  const [row] = await sql.query<{ known: string }>(
    `SELECT (SELECT count(*) FROM wallet) || ' ' || (SELECT count(*) FROM asset) || ' '
            || (SELECT next_address_index FROM watch_cursor) || ' '
            || (SELECT count(*) FROM deposit_address WHERE NOT backfilled) || ' '
            || (SELECT count(*) FROM wallet WHERE NOT past_booked) || ' '
            || (SELECT count(*) FROM token_state WHERE NOT opened) AS known`,
  );
  return row?.known ?? "";
}
