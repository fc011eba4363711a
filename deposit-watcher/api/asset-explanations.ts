/**
 * "Why was this not credited?", asset by asset: one transaction may bring coins and several tokens, and the
 * reason of one says nothing of the others.
 */
import type { Address } from "../../chain/address.js";
import { AppError } from "../../chain/errors.js";
import type { Hash32 } from "../../chain/hex.js";
import { readTokenAssets, type TokenAsset } from "../../ledger/assets/asset-registry.js";
import { listSightings } from "../../ledger/assets/token-sightings.js";
import { depositIdsByAsset } from "../../ledger/deposits/deposit-evidence.js";
import { findDeposit } from "../../ledger/deposits/deposit-queries.js";
import { NATIVE_ASSET } from "../../ledger/journal/accounts.js";
import { readCursor } from "../../ledger/watch/watch-cursor.js";
import { arrivalsIn, claimsIn } from "./arrivals.js";
import type { ExplanationCode } from "./explanation-codes.js";
import {
  type Asking,
  type Explanation,
  type ExplanationParts,
  ofArrivals,
  ofDeposits,
  ofListed,
  ofSighting,
  ofUnlisted,
  transactionsOf,
} from "./explanation.js";

/** What became of one asset of a transaction. */
export interface AssetExplanation {
  /** Symbol; undefined for a token that nobody listed. */
  readonly asset: string | undefined;
  /** Undefined for coins. */
  readonly contract: Address | undefined;
  readonly code: ExplanationCode;
  readonly message: string;
}

/** Assets of one transaction that are told, and rows of it that are read, at most. */
const MAX_ASSETS = 100;

/** Entries by contract, in the order in which they were found; coins have no contract. */
class Found {
  readonly entries: AssetExplanation[] = [];
  readonly #told = new Set<string>();

  constructor(private readonly listed: ReadonlyMap<Address, TokenAsset>) {}

  has(contract: Address | undefined): boolean {
    return this.#told.has(contract ?? NATIVE_ASSET);
  }

  add(contract: Address | undefined, [code, message]: readonly [ExplanationCode, string]): void {
    this.#told.add(contract ?? NATIVE_ASSET);
    if (this.entries.length === MAX_ASSETS) return;
    const isKnown = this.entries.some((one) => one.contract === contract && one.code === code);
    if (isKnown) return;
    const asset = contract === undefined ? NATIVE_ASSET : this.listed.get(contract)?.symbol;
    this.entries.push({ asset, contract, code, message });
  }
}

/**
 * The reasons of each asset that a transaction brought, or says that it brought, to addresses of ours: by its
 * deposits, by what is recorded of it, then by what its block and its logs tell, as far as node and Data API
 * tell it at the moment. None while it is in no block that was read, or where it failed.
 * @param explained the answer about the whole transaction
 * @throws the faults of the ledger
 */
export async function explainAssets(
  parts: ExplanationParts,
  hash: Hash32,
  explained: Explanation,
  options: Asking,
): Promise<readonly AssetExplanation[]> {
  const { database } = parts;
  const { deposits, height, code, message } = explained;
  const isRead = height !== undefined && (await readCursor(database)).height >= height;
  if (!isRead || code === "FAILED") return [];
  const listed = new Map((await readTokenAssets(database)).map((one) => [one.contract, one]));
  const found = new Found(listed);
  const contracts = new Map([...listed.values()].map((one) => [one.symbol, one.contract]));
  const isReversed = code === "REVERSED";
  const txHash = deposits[0]?.txHash ?? explained.ownHash ?? hash;
  const byAsset = await depositIdsByAsset(database, txHash);
  for (const asset of new Set([...deposits.map((one) => one.asset), ...byAsset.keys()])) {
    const listedOwn = deposits.filter((one) => one.asset === asset);
    // More were made than are listed: none of this asset is.
    const isListed = listedOwn.length > 0;
    const unlisted = isListed ? undefined : await findDeposit(database, byAsset.get(asset) ?? "");
    const own = unlisted === undefined ? listedOwn : [unlisted];
    const standing = isReversed ? own : own.filter(({ status }) => status !== "reversed");
    const [first] = standing;
    if (first === undefined) continue;
    const told = isReversed ? { code, message } : await ofDeposits(parts, standing, first);
    found.add(contracts.get(asset), [told.code, told.message]);
  }
  const sightings = await listSightings(database, { txHash, afterId: 0, limit: MAX_ASSETS });
  for (const sighting of sightings) {
    found.add(sighting.contract, await ofSighting(parts, sighting));
  }
  await addClaims(parts, { txHash, height }, found, { listed, signal: options.signal });
  return found.entries;
}

/** What only the chain tells: assets of which the ledger has nothing. */
async function addClaims(
  parts: ExplanationParts,
  { txHash, height }: { readonly txHash: Hash32; readonly height: number },
  found: Found,
  { listed, ...options }: Asking & { readonly listed: ReadonlyMap<Address, TokenAsset> },
): Promise<void> {
  const { database, node, source, watched } = parts;
  const isOurs = (address: Address) => watched.customerOf(address) !== undefined;
  const [receipt, transactions] = await Promise.all([
    unlessUntold(node.getTransactionReceipt(txHash, options), options),
    unlessUntold(transactionsOf(source, height, isOurs, options), options),
  ]);
  const isTold = transactions !== undefined && typeof transactions !== "string";
  const transaction = isTold ? transactions.find((one) => one.hash === txHash) : undefined;
  const arrived = arrivalsIn(transaction, isOurs);
  if (arrived.length > 0 && !found.has(undefined)) {
    found.add(undefined, await ofArrivals(database, arrived));
  }
  for (const { contract, address } of claimsIn(transaction, receipt, isOurs)) {
    if (found.has(contract)) continue;
    const token = listed.get(contract);
    const told = token && (await ofListed(parts, token, { address, height }));
    found.add(contract, told ?? ofUnlisted(contract));
  }
}

/** Undefined where node or Data API do not tell: the answer about the whole stands without it. */
async function unlessUntold<T>(read: Promise<T>, { signal }: Asking): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof AppError)) throw error;
    return undefined;
  }
}
