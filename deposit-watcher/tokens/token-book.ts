/**
 * The tokens that the watcher follows: stored in the ledger at the start, opened with what our
 * addresses held before, and looked at from time to time for other code than was accepted.
 */
import type { Address } from "../../chain/address.js";
import type { TokenEntry } from "../../chain/token-list.js";
import {
  readTokenAssets,
  registerTokens,
  storeLost,
  type TokenAsset,
} from "../../ledger/assets/asset-registry.js";
import {
  bookOpening,
  countBookedPasts,
  type OpeningBalance,
} from "../../ledger/assets/token-opening.js";
import { observeCodesNow, readTokenStates, reasonsOf } from "../../ledger/assets/token-state.js";
import { watchedAddressesFrom } from "../../ledger/deposits/deposit-addresses.js";
import { readCursor, type WatchCursor } from "../../ledger/watch/watch-cursor.js";
import type { WatchLease } from "../../ledger/watch/watch-lease.js";
import { listWallets } from "../../ledger/wallets/wallet.js";
import type { StateAt } from "../../rpc-client/at.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { PutOff, PutOffMemory, throwGravest } from "../put-off.js";
import { ofOtherCode } from "./past-codes.js";
import { agreedHeld, observedCodes, type TokenNodes } from "./token-run.js";

/** Tokens whose code one round looks at; the next round goes on with the others. */
const CODES_PER_ROUND = 25;

/** Addresses asked at once when a token is opened. */
const ADDRESS_PAGE = 1_000;

const DOES_NOT_TELL = "a token's contract does not tell what our addresses held before this block";

const OTHER_CODE = "a token is not opened while its contract runs other code than was accepted";

const NOT_BOOKED =
  "code that nobody accepted tells what our addresses held of a token before this block: it is not booked";

/** Where a token is looked up and opened: its code, and what our addresses hold of it already. */
export interface TokenBookParts {
  readonly database: SqlDatabase;
  readonly node: Pick<EvmClient, "blockNumber" | "tokenBalances" | "tokenCodes">;
  readonly log: Logger;
  /** Other than the system's in tests only. */
  readonly clock?: Pick<Clock, "monotonicMs">;
}

/** Who is asked beside the node when a token is opened. */
interface OpeningOptions {
  readonly signal: AbortSignal;
  readonly second?: TokenNodes["second"];
}

/** See the head of the file. */
export class TokenBook {
  readonly #parts: TokenBookParts;
  /** The home's list. */
  readonly #entries: readonly TokenEntry[];
  readonly #assets = new Map<Address, string>();
  #tokens: readonly TokenAsset[] = [];
  #next = 0;
  #checkedHeight = -1;
  /** Tokens of which the log says that their contracts do not tell, with the address they did not tell of. */
  readonly #silent = new Map<string, Address>();
  /** Tokens of which the log says that they are not opened for their contracts' code. */
  readonly #paused = new Set<string>();
  /** Tokens of which a node refused to tell. */
  readonly #memory: PutOffMemory;

  private constructor(parts: TokenBookParts, entries: readonly TokenEntry[]) {
    this.#parts = parts;
    this.#memory = new PutOffMemory(parts.clock);
    this.#entries = entries;
  }

  /** Those that are followed. */
  get tokens(): readonly TokenAsset[] {
    return this.#tokens;
  }

  /**
   * Stores new tokens of the list, which count from the next block on. What was there before them is booked
   * beside the blocks (`openWaiting`): of hundreds of thousands of addresses a node tells in minutes, for
   * each token, and neither deposits nor who asks for an address wait for that.
   * @throws ASSET_CONTRADICTED
   */
  static async open(parts: TokenBookParts, entries: readonly TokenEntry[]): Promise<TokenBook> {
    const book = new TokenBook(parts, entries);
    book.#follow(await registerTokens(parts.database, entries));
    return book;
  }

  /**
   * Books what our addresses held before the tokens that are not opened yet. One whose first block the
   * node does not reach waits for a later call: the chain may have lost blocks, and what is waited for
   * here would keep the watcher from finding it out. One that the node does not tell of keeps no other
   * waiting, and is asked for again after a delay (`PutOffMemory`); neither does one whose contract does
   * not tell: nothing is booked of it, and the log says so. Nor does one whose contract runs other code than
   * was accepted: it is opened once that is, and where it ran such code before and goes on without, with
   * nothing.
   * @throws IncidentFound where a second node shows another balance; the faults of nodes and database, behind
   *   all that could be opened
   */
  async openWaiting({ signal, second }: OpeningOptions): Promise<void> {
    const { database, node, log } = this.#parts;
    const untold = new Map<string, PromiseSettledResult<unknown>>();
    const putOff = new PutOff(this.#memory);
    for (;;) {
      // First: what is read of a chain that loses blocks in between is not booked, nor what another process
      // has left out of a wallet's past meanwhile.
      const { rewinds, height: bookedHeight, blockHash } = await readCursor(database);
      this.#memory.begin(rewinds);
      const bookedPasts = await countBookedPasts(database);
      const states = await readTokenStates(database);
      const waiting = (await readTokenAssets(database)).filter(
        ({ symbol }) => states.get(symbol)?.isOpened === false && !untold.has(symbol),
      );
      const headHeight = waiting.length === 0 ? 0 : await node.blockNumber({ signal });
      const token = waiting.find(({ fromHeight }) => fromHeight <= headHeight + 1);
      if (token === undefined) break;
      const first = this.#silent.get(token.symbol);
      // Of another chain, or another history of this one, no node shows the booked block.
      const known = blockHash === undefined ? undefined : { height: bookedHeight, hash: blockHash };
      let held: HeldBefore | undefined;
      const [read] = await Promise.allSettled([
        putOff.unlessUntold(token.symbol, async () => {
          const at = blockHash ?? token.fromHeight - 1;
          held = await readHeld(this.#parts, token, { first, known, signal, second, now: at });
        }),
      ]);
      if (held === undefined || "waitsFor" in held) {
        untold.set(token.symbol, read);
        if (held !== undefined) this.#tellWaiting(token, held.waitsFor);
        continue;
      }
      const { balances, isOfNobody } = held;
      if (isOfNobody) this.#tell(token, NOT_BOOKED);
      if (!(await bookOpening(database, token, { balances, rewinds, bookedPasts }))) continue;
      const { symbol: asset, contract, fromHeight: height } = token;
      log.info({ asset, contract, height }, "a token is watched from this block on");
    }
    throwGravest([...untold.values()]);
    putOff.throwFirst();
  }

  #tellWaiting(token: TokenAsset, { silent }: { readonly silent?: Address }): void {
    const { symbol } = token;
    if (silent === undefined) {
      if (!this.#paused.has(symbol)) this.#tell(token, OTHER_CODE);
      this.#paused.add(symbol);
      return;
    }
    if (!this.#silent.has(symbol)) this.#tell(token, DOES_NOT_TELL, silent);
    this.#silent.set(symbol, silent);
  }

  #tell(token: TokenAsset, text: string, address?: Address): void {
    const { symbol: asset, contract, fromHeight: height } = token;
    const whose = address === undefined ? {} : { address };
    this.#parts.log.error({ asset, contract, height, ...whose }, text);
  }

  /**
   * Follows the ledger's tokens: a recovery, or a watcher whose list is newer, may have stored some, and of
   * the list's a standby that took over may lack some.
   */
  async refresh(): Promise<void> {
    this.#follow(await storeLost(this.#parts.database, this.#entries));
  }

  #follow(tokens: readonly TokenAsset[]): void {
    this.#tokens = tokens;
    // An older ledger that was put back may lack some.
    this.#assets.clear();
    for (const { contract, symbol } of tokens) this.#assets.set(contract, symbol);
  }

  /** Assets by their contracts; tokens that are followed later are among them then. */
  assets(): ReadonlyMap<Address, string> {
    return this.#assets;
  }

  /**
   * Looks at the code of some tokens after a booked block, once for each block.
   * @returns why tokens were stopped, one sentence each
   * @throws WATCH_LEASE_LOST
   */
  async checkCodes(
    { height, blockHash }: Pick<WatchCursor, "height" | "blockHash">,
    { lease, ...options }: { readonly lease: WatchLease; readonly signal: AbortSignal },
  ): Promise<readonly string[]> {
    const { database, node } = this.#parts;
    // A chain that has lost blocks comes to the same heights again.
    const isNew = blockHash !== undefined && height !== this.#checkedHeight;
    if (this.tokens.length === 0 || !isNew) return [];
    const places = this.#nextTokens().map(({ symbol, contract }) => {
      return { asset: symbol, contract, height, blockHash };
    });
    const observed = await observedCodes(node, places, options);
    const events = await observeCodesNow(database, lease, observed);
    this.#checkedHeight = height;
    return reasonsOf(events);
  }

  #nextTokens(): readonly TokenAsset[] {
    const from = this.#next;
    const part = this.tokens.slice(from, from + CODES_PER_ROUND);
    this.#next = from + CODES_PER_ROUND < this.tokens.length ? from + CODES_PER_ROUND : 0;
    return part;
  }
}

/** Younger wallets are booked with what they hold by then, of opened tokens also those of the same block. */
async function walletsBefore(
  database: SqlDatabase,
  { fromHeight }: TokenAsset,
): Promise<ReadonlySet<Address>> {
  const wallets = await listWallets(database);
  const known = wallets.filter(
    (wallet) =>
      wallet.fromHeight < fromHeight || (wallet.fromHeight === fromHeight && wallet.pastBooked),
  );
  return new Set(known.map(({ address }) => address));
}

/**
 * What was held, or why nobody says so yet: one of our addresses of which the contract does not tell, or the
 * code that it runs.
 */
type HeldBefore =
  | {
      readonly balances: readonly OpeningBalance[];
      /** The contract ran code then that nobody has accepted: there may have been more. */
      readonly isOfNobody: boolean;
    }
  | { readonly waitsFor: { readonly silent?: Address } };

/**
 * What our addresses held before the first block that counts; younger ones have a past of their own.
 * @param options.first asked before all others: a contract that did not tell of it is asked in every round
 * @param options.now the last booked block, after which the contract may run other code still
 */
async function readHeld(
  { database, node }: TokenBookParts,
  token: TokenAsset,
  {
    first,
    second,
    now,
    ...options
  }: OpeningOptions & {
    readonly first: Address | undefined;
    readonly now: StateAt;
  } & Pick<RpcOptions, "known">,
): Promise<HeldBefore> {
  const height = token.fromHeight - 1;
  const queryOf = (account: Address) => ({ token: token.contract, account, at: height, height });
  const nodes = { first: node, second };
  const isOther = async (at: StateAt) => {
    return (await ofOtherCode({ database, node }, [token], { at, ...options })).size > 0;
  };
  if (await isOther(height)) {
    return (await isOther(now)) ? { waitsFor: {} } : { balances: [], isOfNobody: true };
  }
  const wallets = await walletsBefore(database, token);
  if (first !== undefined) {
    const [units] = await agreedHeld(nodes, [queryOf(first)], options);
    if (units === undefined) return { waitsFor: { silent: first } };
  }
  const found: OpeningBalance[] = [];
  let firstIndex = 0;
  for (;;) {
    const page = await watchedAddressesFrom(database, { firstIndex, limit: ADDRESS_PAGE });
    const older = page.filter(({ fromHeight }) => fromHeight <= token.fromHeight);
    const accounts = older.map(({ address }) => address);
    if (firstIndex === 0) accounts.push(...wallets);
    const held = await agreedHeld(nodes, accounts.map(queryOf), options);
    for (const [index, address] of accounts.entries()) {
      const units = held[index];
      if (units === undefined) return { waitsFor: { silent: address } };
      const isHotWallet = wallets.has(address);
      if (units > 0n) found.push({ asset: token.symbol, address, amountUnits: units, isHotWallet });
    }
    const last = page.at(-1);
    if (page.length < ADDRESS_PAGE || last === undefined)
      return { balances: found, isOfNobody: false };
    firstIndex = last.index + 1;
  }
}
