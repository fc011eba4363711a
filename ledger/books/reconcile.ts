/**
 * Reconciliation: the chain's balances at one height against the books, tolerance 0. What is on
 * its way is explained exactly from chain data; what is not explained is a break. Which transactions
 * are behind it is looked for once it is told (`break-causes.ts`).
 */
import { AppError, errorMessage, MissingAnswer, present } from "../../chain/errors.js";
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import { SqlError } from "../../runtime/sql/sql-errors.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { LedgerError } from "../errors.js";
import type { LoggedTransfer } from "../requests/payment-terms.js";
import { listWallets } from "../wallets/wallet.js";
import { DEPOSIT_ADDRESSES } from "../journal/accounts.js";
import {
  type AssetBooks,
  type BookTotals,
  type BookedWallet,
  type Books,
  type DecidedEntry,
  type InternalBreak,
  MAX_LISTED,
  readBooks,
  type UnsettledAttempt,
  type ListWallets,
} from "./reconcile-books.js";
import { missingBlockText } from "./compared-block.js";

/** The chain as the reconciliation asks it. */
export interface ReconcileChain {
  /** Hash of the block at a height; undefined while the chain has not come so far. */
  blockHash(height: Height): Promise<Hash32 | undefined>;
  /** Balances after the block of each query's height, in order. */
  balances(
    queries: readonly { readonly address: Address; readonly height: Height }[],
  ): Promise<readonly bigint[]>;
  /** The same of a token; undefined where its contract does not tell. */
  tokenBalances(
    contract: Address,
    queries: readonly { readonly address: Address; readonly height: Height }[],
  ): Promise<readonly (bigint | undefined)[]>;
  /**
   * What a mined transaction took from its sender; undefined while it is in no block up to the height. A
   * node that has not come so far is a fault.
   */
  minedCosts(
    hashes: readonly Hash32[],
    upToHeight: Height,
  ): Promise<readonly (MinedCost | undefined)[]>;
  /** Effective balance changes of an address, a part for each answer of the node, in chain order. */
  movements(address: Address, range: HeightRange): AsyncIterable<ChainPart>;
  /** The same of a token, by the transfers from and to the address that its contract logged. */
  tokenMovements(contract: Address, address: Address, range: HeightRange): AsyncIterable<ChainPart>;
}

/** Blocks from the first to the last one, both of them included. */
export interface HeightRange {
  readonly from: Height;
  readonly to: Height;
}

/** A mined transaction's cost to its sender. */
export interface MinedCost {
  readonly height: Height;
  /** False when it failed: then only the fee left. */
  readonly isSuccess: boolean;
  readonly feeAtoken: Atoken;
  readonly transfers: readonly LoggedTransfer[];
}

/** One effective change of one address. */
export interface ChainMovement {
  readonly txHash: Hash32;
  readonly height: Height;
  /** Signed. */
  readonly deltaUnits: bigint;
}

/** What an address moved in some blocks. */
export interface ChainPart {
  /** The last of these blocks. */
  readonly upTo: Height;
  readonly movements: readonly ChainMovement[];
}

/** Something on its way, explained exactly. */
export interface InFlightItem {
  readonly what: string;
  /** Signed: what the chain has more than the ledger's account because of it. */
  readonly amountUnits: bigint;
  /** Of a payment of this wallet that is mined and not settled: its transaction. */
  readonly mined?: MinedPlace;
  /** Of such a one by which the exchange pays itself: what has left the wallet, beside its fee. */
  readonly movedUnits?: bigint;
}

/** Where a transaction was mined. */
export interface MinedPlace {
  readonly txHash: Hash32;
  readonly height: Height;
}

/** A transaction whose effect on the chain and in the books differ. */
export interface BreakCause {
  readonly txHash: Hash32;
  /** Undefined for one that the books have and the chain does not. */
  readonly height: Height | undefined;
  /** Of such a one: its block in the books. */
  readonly bookedHeight?: Height;
  readonly chainUnits: bigint;
  readonly ledgerUnits: bigint;
}

/** An address whose balance the books do not explain. */
export interface AddressBreak {
  readonly address: Address;
  readonly ledgerUnits: bigint;
  readonly chainUnits: bigint;
  /** chain - ledger. */
  readonly differenceUnits: bigint;
  /** In the order of their blocks; none before they were looked for. */
  readonly causes: readonly BreakCause[];
  /** Causes beyond those listed. */
  readonly moreCauses: number;
  /** Last block that was looked through for causes, where there are more movements behind it. */
  readonly lookedUpTo?: Height;
  /** Why the node does not tell the causes; it is a break all the same. */
  readonly unexplained?: string;
}

/** One asset account against the chain. */
export interface AccountLine {
  readonly account: string;
  readonly ledgerUnits: bigint;
  readonly inFlight: readonly InFlightItem[];
  readonly chainUnits: bigint;
  /** chain - (ledger + in flight); zero when reconciled. */
  readonly differenceUnits: bigint;
  readonly breaks: readonly AddressBreak[];
  /** Addresses that differ beyond those listed. */
  readonly moreBreaks: number;
}

/** The whole answer; totals are of the chain's own coin. */
export interface ReconcileReport extends BookTotals {
  readonly height: Height;
  readonly blockHash: Hash32 | undefined;
  /** The block that the chain has there, where it is another one: then nothing is clean. */
  readonly otherBlockHash: Hash32 | undefined;
  /** Why nothing was compared, and what to do; then there are no lines, and nothing is clean. */
  readonly uncompared: string | undefined;
  readonly clean: boolean;
  readonly lines: readonly AccountLine[];
  readonly internalBreaks: readonly InternalBreak[];
  /** The same of each token, in its smallest unit. */
  readonly tokens: readonly TokenReport[];
  /** Operators' entries that explain coins on the chain, newest first. */
  readonly decided: readonly DecidedEntry[];
  /** Payments that a recovery booked and nobody has decided about. */
  readonly recoveredPayments: Books["recoveredPayments"];
  /** The incident that halts crediting, in words; undefined when there is none. */
  readonly halted: string | undefined;
}

/** One token against the chain. */
export interface TokenReport extends BookTotals {
  readonly asset: string;
  readonly contract: Address;
  readonly lines: readonly AccountLine[];
  readonly internalBreaks: readonly InternalBreak[];
  readonly decided: readonly DecidedEntry[];
}

/** Balances asked at a time. */
const BALANCE_CHUNK = 5_000;

/**
 * Compares books and chain at the height of the watcher's cursor. Balances that match after another
 * block than the one that was booked prove nothing.
 * @param listAll lists all hot wallets as of the books, retired ones included, the first registered first
 */
export async function reconcile(
  database: SqlDatabase,
  chain: ReconcileChain,
  listAll: ListWallets = listWallets,
): Promise<ReconcileReport> {
  const books = await readBooks(database, listAll);
  const { height, blockHash } = books.cursor;
  const chainHash = blockHash === undefined ? undefined : await chain.blockHash(height);
  const otherBlockHash = chainHash === blockHash ? undefined : chainHash;
  const uncompared = chainHash === undefined ? missingBlockText(books.cursor) : undefined;
  const { addresses } = books;
  const tokens: TokenReport[] = [];
  for (const token of books.tokens) {
    const { asset, contract, decided, internalBreaks } = token;
    const sides = { books: token, addresses, height, chain: tokenSide(chain, contract) };
    const lines = uncompared === undefined ? await linesOf(sides) : [];
    const totals = totalsOf(token, lines);
    tokens.push({ asset, contract, lines, internalBreaks, ...totals, decided });
  }
  const sides = { books: books.native, addresses, height, chain: nativeSide(chain) };
  const lines = uncompared === undefined ? await linesOf(sides) : [];
  const { incident } = books;
  const { decided, internalBreaks } = books.native;
  const isSameBlock = uncompared === undefined && otherBlockHash === undefined;
  return {
    height,
    blockHash,
    otherBlockHash,
    uncompared,
    clean: isSameBlock && [{ lines, internalBreaks }, ...tokens].every(isEven),
    lines,
    internalBreaks,
    tokens,
    ...totalsOf(books.native, lines),
    decided,
    recoveredPayments: books.recoveredPayments,
    halted: incident === undefined ? undefined : `${incident.kind}: ${incident.message}`,
  };
}

function totalsOf(books: BookTotals, lines: readonly AccountLine[]): BookTotals {
  const { availableUnits, heldUnits, ownAvailableUnits, ownHeldUnits, coldUnits } = books;
  const inTransitUnits = lines
    .flatMap(({ inFlight }) => inFlight)
    .reduce((sum, { movedUnits = 0n }) => sum + movedUnits, books.inTransitUnits);
  return {
    availableUnits,
    heldUnits,
    ownAvailableUnits,
    ownHeldUnits,
    coldUnits,
    inTransitUnits,
  };
}

function isEven(part: Pick<TokenReport, "lines" | "internalBreaks">): boolean {
  return (
    part.internalBreaks.length === 0 &&
    part.lines.every(
      (line) => line.differenceUnits === 0n && line.breaks.length === 0 && line.moreBreaks === 0,
    )
  );
}

/** The chain's side of one asset. */
interface AssetSide {
  balances(
    queries: readonly { readonly address: Address; readonly height: Height }[],
  ): Promise<readonly bigint[]>;
  /** What a mined attempt took of the asset from the wallet, beside its fee. */
  moved(cost: MinedCost, attempt: UnsettledAttempt): bigint;
  /** What of the asset it took as its fee. */
  fee(cost: MinedCost): bigint;
  readonly minedCosts: ReconcileChain["minedCosts"];
}

function nativeSide(chain: ReconcileChain): AssetSide {
  return {
    balances: (queries) => chain.balances(queries),
    moved: ({ isSuccess }, { amountUnits }) => (isSuccess ? amountUnits : 0n),
    fee: ({ feeAtoken }) => feeAtoken,
    minedCosts: (hashes, upToHeight) => chain.minedCosts(hashes, upToHeight),
  };
}

/** What left is what the contract logged: success alone says nothing of tokens. */
function tokenSide(chain: ReconcileChain, contract: Address): AssetSide {
  return {
    async balances(queries) {
      const balances = await chain.tokenBalances(contract, queries);
      // A contract that does not tell has nothing of ours: with books of it, that is a break.
      return balances.map((units) => units ?? 0n);
    },
    // What the transaction gave back is an inflow, which the watcher has booked with its block.
    moved: ({ transfers }, { wallet }) =>
      transfers
        .filter((one) => one.contract === contract && one.from === wallet && one.to !== wallet)
        .reduce((sum, { units }) => sum + units, 0n),
    fee: () => 0n,
    minedCosts: (hashes, upToHeight) => chain.minedCosts(hashes, upToHeight),
  };
}

interface Sides {
  readonly chain: AssetSide;
  readonly books: AssetBooks;
  /** All deposit addresses. */
  readonly addresses: Books["addresses"];
  /** Height of the cursor. */
  readonly height: Height;
}

async function linesOf(sides: Sides): Promise<AccountLine[]> {
  return [...(await walletLines(sides)), await depositLine(sides)];
}

async function walletLines(sides: Sides): Promise<AccountLine[]> {
  const { chain, books, height } = sides;
  const balances = await askBalances(
    chain,
    books.wallets.map(({ wallet }) => ({ address: wallet.address, height })),
  );
  const unsettled = await minedButUnsettled(sides);
  const lines: AccountLine[] = [];
  for (const [index, booked] of books.wallets.entries()) {
    const chainUnits = present(balances[index], "balance of a hot wallet");
    const mined = unsettled.filter(({ wallet }) => wallet === booked.wallet.address);
    lines.push(await walletLine(sides, { booked, mined, chainUnits }));
  }
  return lines;
}

async function walletLine(
  sides: Sides,
  found: {
    readonly booked: BookedWallet;
    readonly mined: readonly MinedUnsettled[];
    readonly chainUnits: bigint;
  },
): Promise<AccountLine> {
  const { booked, mined, chainUnits } = found;
  const { wallet } = booked;
  const items: InFlightItem[] = mined.map(({ item }) => item);
  // What a wallet held of a token before the token itself counted is booked with the token.
  if (!wallet.pastBooked && wallet.fromHeight >= sides.books.fromHeight) {
    const past = [{ address: wallet.address, height: wallet.fromHeight - 1 }];
    const [amountUnits = 0n] = await askBalances(sides.chain, past);
    if (amountUnits > 0n) items.push({ what: "coins from before its registration", amountUnits });
  }
  const line = accountLine(booked.account, booked.balanceUnits, items, chainUnits);
  if (line.differenceUnits === 0n) return line;
  const expectedUnits = line.chainUnits - line.differenceUnits;
  return { ...line, breaks: [breakOf(wallet.address, { expectedUnits, chainUnits })] };
}

/** A withdrawal's transaction that is mined and not booked yet. */
interface MinedUnsettled {
  readonly wallet: Address;
  readonly item: InFlightItem;
}

/** Withdrawals that are mined up to the height and not booked yet, from their receipts. */
async function minedButUnsettled({ chain, books, height }: Sides): Promise<MinedUnsettled[]> {
  const costs = await chain.minedCosts(
    books.unsettled.map((attempt) => attempt.hash),
    height,
  );
  return books.unsettled.flatMap((attempt, index) => {
    const { wallet, hash, withdrawalId, isOwn } = attempt;
    const cost = costs[index];
    if (cost === undefined || cost.height > height) return [];
    const movedUnits = chain.moved(cost, attempt);
    const amountUnits = -(movedUnits + chain.fee(cost));
    if (amountUnits === 0n) return [];
    const what = `withdrawal ${withdrawalId} mined in block ${cost.height}, not settled yet`;
    const mined = { txHash: hash, height: cost.height };
    const item = { what, amountUnits, mined };
    return [{ wallet, item: isOwn ? { ...item, movedUnits } : item }];
  });
}

async function depositLine(sides: Sides): Promise<AccountLine> {
  const { chain, books, addresses, height } = sides;
  const items: InFlightItem[] = [];
  if (books.unpostedDepositsUnits > 0n) {
    const amountUnits = books.unpostedDepositsUnits;
    items.push({ what: "deposits detected, not credited yet", amountUnits });
  }
  // What an address held of a token before the token itself counted is booked with the token.
  const waiting = addresses.filter(
    ({ address, backfilled, fromHeight }) =>
      !backfilled && fromHeight >= books.fromHeight && !books.openedWith.has(address),
  );
  const past = await askBalances(
    chain,
    waiting.map((entry) => ({ address: entry.address, height: entry.fromHeight - 1 })),
  );
  const pastOf = new Map(
    waiting.map((entry, index) => [entry.address, present(past[index], "past balance")]),
  );
  for (const [address, amountUnits] of pastOf) {
    if (amountUnits === 0n) continue;
    items.push({ what: `coins of ${address} from before its registration`, amountUnits });
  }
  const balances = await askBalances(
    chain,
    addresses.map(({ address }) => ({ address, height })),
  );
  const chainUnits = balances.reduce((sum, balance) => sum + balance, 0n);
  const line = accountLine(DEPOSIT_ADDRESSES, books.depositAddressesUnits, items, chainUnits);
  const uneven = addresses.flatMap(({ address }, index) => {
    const expectedUnits = (books.unitsOf.get(address) ?? 0n) + (pastOf.get(address) ?? 0n);
    const balance = present(balances[index], "balance of a deposit address");
    if (balance === expectedUnits) return [];
    return [breakOf(address, { expectedUnits, chainUnits: balance })];
  });
  const breaks = uneven.slice(0, MAX_LISTED);
  return { ...line, breaks, moreBreaks: uneven.length - breaks.length };
}

function accountLine(
  account: string,
  ledgerUnits: bigint,
  inFlight: readonly InFlightItem[],
  chainUnits: bigint,
): AccountLine {
  const expectedUnits = inFlight.reduce((sum, item) => sum + item.amountUnits, ledgerUnits);
  const differenceUnits = chainUnits - expectedUnits;
  return {
    account,
    ledgerUnits,
    inFlight,
    chainUnits,
    differenceUnits,
    breaks: [],
    moreBreaks: 0,
  };
}

async function askBalances(
  chain: AssetSide,
  queries: readonly { readonly address: Address; readonly height: Height }[],
): Promise<bigint[]> {
  const balances: bigint[] = [];
  for (let start = 0; start < queries.length; start += BALANCE_CHUNK) {
    const asked = queries.slice(start, start + BALANCE_CHUNK);
    const part = await chain.balances(asked);
    // A short answer would give every later address its neighbour's balance.
    asked.forEach((_, index) => balances.push(present(part[index], "balance of an account")));
  }
  return balances;
}

function breakOf(
  address: Address,
  { expectedUnits, chainUnits }: Record<"expectedUnits" | "chainUnits", bigint>,
): AddressBreak {
  const differenceUnits = chainUnits - expectedUnits;
  const unsought = { causes: [], moreCauses: 0 };
  return { address, ledgerUnits: expectedUnits, chainUnits, differenceUnits, ...unsought };
}

/**
 * In words, why a node that has shown that something differs does not tell more: it has pruned it, or does
 * not answer in time. A comparison that ended with it would keep the break to itself.
 * @throws every fault that is none of the chain's
 */
export function faultOfChain(error: unknown): string {
  const isOurs = [SqlError, LedgerError, MissingAnswer].some((kind) => error instanceof kind);
  if (isOurs || !(error instanceof AppError)) throw error;
  return errorMessage(error);
}
