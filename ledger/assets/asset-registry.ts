/**
 * The assets of this ledger: the chain's own coin, and each token of `config/tokens.json` once, with
 * the contract that it is. What an asset is never changes: books are kept in its units.
 */
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import type { TokenEntry } from "../../chain/token-list.js";
import { ConfigError, type ConfigFault } from "../../runtime/config/config.js";
import { loadTokenFile, tokenFile } from "../../runtime/config/token-file.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { FIRST_WATCHED, lockCursor, readCursor } from "../watch/watch-cursor.js";
import { LedgerError } from "../errors.js";
import { storedAddress, storedHeight } from "../stored-values.js";

/** A token that the exchange keeps books of. */
export interface TokenAsset {
  /** What customers call it; the asset of every row. */
  readonly symbol: string;
  readonly contract: Address;
  readonly decimals: number;
  /** First block whose movements are booked one by one. */
  readonly fromHeight: Height;
}

const SYMBOL_PATTERN = /^[A-Za-z0-9_.:-]{1,32}$/;

/** Whether rows and customers can carry a symbol: no ledger has a token of another one. */
export function isAssetSymbol(text: string): boolean {
  return SYMBOL_PATTERN.test(text);
}

/**
 * The list as the exchange takes it: customers name tokens by their symbols, so each stands for one
 * contract.
 * @throws ConfigError with every fault
 */
export function parseExchangeTokens(entries: readonly TokenEntry[], file: string): TokenEntry[] {
  const faults: ConfigFault[] = [];
  const seen = new Set<string>();
  entries.forEach(({ symbol }, index) => {
    const fault = (allowed: string) =>
      faults.push({ file, key: `[${index}].symbol`, value: JSON.stringify(symbol), allowed });
    if (!isAssetSymbol(symbol)) fault("1 to 32 of [A-Za-z0-9_.:-], for an exchange");
    if (seen.has(symbol)) fault("each symbol once, for an exchange");
    seen.add(symbol);
  });
  if (faults.length > 0) throw new ConfigError(faults);
  return [...entries];
}

/**
 * The list of a home, as the exchange takes it; a home without the file has no tokens.
 * @throws ConfigError with every fault of the list
 */
export function loadExchangeTokens(home: string): TokenEntry[] {
  return parseExchangeTokens(loadTokenFile(home), tokenFile(home));
}

/** Tokens of this ledger in the order of their symbols. */
export async function readTokenAssets(sql: Sql): Promise<TokenAsset[]> {
  const rows = await sql.query<{
    symbol: string;
    contract: string;
    decimals: number;
    from_height: string;
  }>(
    // A chain that came back to a block before the registration is booked from there on. Where a ledger
    // began later, it has booked what wallets held by then.
    `SELECT symbol, contract, decimals,
            greatest(${FIRST_WATCHED},
                     least(from_height, (SELECT min(r.to_height) + 1 FROM chain_rewind r
                                          WHERE r.at >= a.registered_at)))::text AS from_height
       FROM asset a WHERE contract IS NOT NULL ORDER BY symbol`,
  );
  return rows.map((row) => ({
    symbol: row.symbol,
    contract: storedAddress(row.contract),
    decimals: row.decimals,
    fromHeight: storedHeight(row.from_height),
  }));
}

/**
 * Stores the tokens that are new; their movements count from the next block on.
 * @returns all tokens of the ledger
 * @throws ASSET_CONTRADICTED where the list says otherwise than the ledger, or no longer says it
 */
export function registerTokens(
  database: SqlDatabase,
  entries: readonly TokenEntry[],
): Promise<TokenAsset[]> {
  return database.transaction(async (tx) => {
    await lockCursor(tx);
    assertAgree(await readTokenAssets(tx), entries);
    await storeTokens(tx, await unknownTokens(tx, entries));
    return readTokenAssets(tx);
  });
}

/**
 * Stores tokens that the ledger has not got any more, where a standby took over without them: what came of
 * them would be nobody's. Their movements count from the next block on.
 * @returns all tokens of the ledger
 */
export async function storeLost(
  database: SqlDatabase,
  entries: readonly TokenEntry[],
): Promise<TokenAsset[]> {
  if ((await unknownTokens(database, entries)).length > 0) {
    await database.transaction(async (tx) => {
      await lockCursor(tx);
      await storeTokens(tx, await unknownTokens(tx, entries));
    });
  }
  return readTokenAssets(database);
}

/** Those of a list that the ledger knows neither by their symbols nor by their contracts. */
export async function unknownTokens(
  sql: Sql,
  entries: readonly TokenEntry[],
): Promise<readonly TokenEntry[]> {
  const known = await readTokenAssets(sql);
  const symbols = new Set(known.map(({ symbol }) => symbol));
  const contracts = new Set(known.map(({ contract }) => contract));
  return entries.filter(
    ({ symbol, contractAddress }) => !symbols.has(symbol) && !contracts.has(contractAddress),
  );
}

/** Stores tokens that the ledger does not know, in a transaction that holds the cursor. */
export async function storeTokens(tx: Sql, fresh: readonly TokenEntry[]): Promise<void> {
  if (fresh.length === 0) return;
  const { height } = await readCursor(tx);
  await tx.query(
    `INSERT INTO asset (symbol, contract, decimals, from_height)
     SELECT symbol, contract, decimals, $4 FROM unnest($1::text[], $2::text[], $3::integer[])
         AS t (symbol, contract, decimals)`,
    [
      fresh.map(({ symbol }) => symbol),
      fresh.map(({ contractAddress }) => contractAddress),
      fresh.map(({ decimals }) => decimals),
      height + 1,
    ],
  );
  // Nothing lies before block 0, so such a token has nothing to open with.
  await tx.query(
    `INSERT INTO token_state (asset, opened, code_hash, changed_by)
     SELECT symbol, $3, code_hash, 'registry' FROM unnest($1::text[], $2::text[])
         AS t (symbol, code_hash)`,
    [
      fresh.map(({ symbol }) => symbol),
      fresh.map(({ codeHash }) => codeHash ?? null),
      height === -1,
    ],
  );
}

/**
 * Tokens of the ledger, held against the list, for programs that only read them; those that the
 * watcher has not stored yet are not among them.
 * @throws ASSET_CONTRADICTED
 */
export async function readAgreedTokens(
  sql: Sql,
  entries: readonly TokenEntry[],
): Promise<TokenAsset[]> {
  const known = await readTokenAssets(sql);
  assertAgree(known, entries);
  return known;
}

function assertAgree(known: readonly TokenAsset[], entries: readonly TokenEntry[]): void {
  for (const { symbol, contract, decimals } of known) {
    const entry = entries.find((one) => one.symbol === symbol || one.contractAddress === contract);
    const isSame =
      entry?.symbol === symbol && entry.contractAddress === contract && entry.decimals === decimals;
    if (isSame) continue;
    const found = entry === undefined ? "has no line for it" : "says otherwise";
    throw new LedgerError(
      "ASSET_CONTRADICTED",
      `the ledger keeps books of ${symbol} as ${contract} with ${decimals} decimals, and ` +
        `config/tokens.json ${found}: put that line back, with that symbol, contract and decimals`,
      { details: { symbol, contract, decimals } },
    );
  }
}
