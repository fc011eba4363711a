/**
 * Reconciliation: the chain's balances at one height against the books, tolerance 0. What is on
 * its way is explained exactly from chain data; what is not explained is a break, with the
 * transactions behind it.
 */
import { present } from "../../chain/errors.js";
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import type { HotWallet } from "../wallets/wallet.js";
import { DEPOSIT_ADDRESSES } from "./accounts.js";
import {
  bookedByTransaction,
  type BookedWallet,
  type Books,
  type DecidedEntry,
  type InternalBreak,
  MAX_LISTED,
  readBooks,
  type ReconciledAddress,
} from "./reconcile-books.js";

/** The chain as the reconciliation asks it. */
export interface ReconcileChain {
  /** Balances after the block of each query's height, in order. */
  balances(
    queries: readonly { readonly address: Address; readonly height: Height }[],
  ): Promise<readonly bigint[]>;
  /** What a mined transaction took from its sender; undefined while it is not mined. */
  minedCosts(hashes: readonly Hash32[]): Promise<readonly (MinedCost | undefined)[]>;
  /** Effective balance changes of an address up to a height, in chain order. */
  movements(address: Address, upToHeight: Height): AsyncIterable<ChainMovement>;
}

/** A mined transaction's cost to its sender. */
export interface MinedCost {
  readonly height: Height;
  /** False when it failed: then only the fee left. */
  readonly isSuccess: boolean;
  readonly feeAtoken: bigint;
}

/** One effective change of one address. */
export interface ChainMovement {
  readonly txHash: Hash32;
  readonly height: Height;
  /** Signed. */
  readonly deltaAtoken: bigint;
}

/** Something on its way, explained exactly. */
export interface InFlightItem {
  readonly what: string;
  /** Signed: what the chain has more than the ledger's account because of it. */
  readonly amountAtoken: bigint;
}

/** A transaction whose effect on the chain and in the books differ. */
export interface BreakCause {
  readonly txHash: Hash32;
  /** Undefined for one that the books have and the chain does not. */
  readonly height: Height | undefined;
  readonly chainAtoken: bigint;
  readonly ledgerAtoken: bigint;
}

/** An address whose balance the books do not explain. */
export interface AddressBreak {
  readonly address: Address;
  readonly ledgerAtoken: bigint;
  readonly chainAtoken: bigint;
  /** chain - ledger. */
  readonly differenceAtoken: bigint;
  readonly causes: readonly BreakCause[];
  /** Causes beyond those listed. */
  readonly moreCauses: number;
}

/** One asset account against the chain. */
export interface AccountLine {
  readonly account: string;
  readonly ledgerAtoken: bigint;
  readonly inFlight: readonly InFlightItem[];
  readonly chainAtoken: bigint;
  /** chain - (ledger + in flight); zero when reconciled. */
  readonly differenceAtoken: bigint;
  readonly breaks: readonly AddressBreak[];
  /** Addresses that differ beyond those listed. */
  readonly moreBreaks: number;
}

/** The whole answer. */
export interface ReconcileReport {
  readonly height: Height;
  readonly blockHash: Hash32 | undefined;
  readonly clean: boolean;
  readonly lines: readonly AccountLine[];
  readonly internalBreaks: readonly InternalBreak[];
  /** Σ that customers can withdraw, and that is held for their withdrawals. */
  readonly availableAtoken: bigint;
  readonly heldAtoken: bigint;
  /** Operators' entries that explain coins on the chain, newest first. */
  readonly decided: readonly DecidedEntry[];
  /** Payments that a recovery booked and nobody has decided about. */
  readonly recoveredPayments: Books["recoveredPayments"];
  /** The incident that halts crediting, in words; undefined when there is none. */
  readonly halted: string | undefined;
}

/** Balances asked at a time. */
const BALANCE_CHUNK = 5_000;

/**
 * Compares books and chain at the height of the watcher's cursor.
 * @param wallets all hot wallets, retired ones included, the first registered first
 */
export async function reconcile(
  database: SqlDatabase,
  chain: ReconcileChain,
  wallets: readonly HotWallet[],
): Promise<ReconcileReport> {
  const books = await readBooks(database, wallets);
  const { height, blockHash } = books.cursor;
  const lines =
    blockHash === undefined
      ? []
      : [
          ...(await walletLines({ database, chain, books })),
          await depositLine({ database, chain, books }),
        ];
  const isEven = lines.every(
    (line) => line.differenceAtoken === 0n && line.breaks.length === 0 && line.moreBreaks === 0,
  );
  const { incident } = books;
  return {
    height,
    blockHash,
    clean: isEven && books.internalBreaks.length === 0,
    lines,
    internalBreaks: books.internalBreaks,
    availableAtoken: books.availableAtoken,
    heldAtoken: books.heldAtoken,
    decided: books.decided,
    recoveredPayments: books.recoveredPayments,
    halted: incident === undefined ? undefined : `${incident.kind}: ${incident.message}`,
  };
}

interface Sides {
  readonly database: SqlDatabase;
  readonly chain: ReconcileChain;
  readonly books: Books;
}

async function walletLines(sides: Sides): Promise<AccountLine[]> {
  const { chain, books } = sides;
  const { height } = books.cursor;
  const balances = await askBalances(
    chain,
    books.wallets.map(({ wallet }) => ({ address: wallet.address, height })),
  );
  const unsettled = await minedButUnsettled(sides);
  const lines: AccountLine[] = [];
  for (const [index, booked] of books.wallets.entries()) {
    const chainAtoken = present(balances[index], "balance of a hot wallet");
    const account: ReconciledAddress = {
      address: booked.wallet.address,
      role: index === 0 ? "first-wallet" : "wallet",
    };
    const mined = unsettled.filter(({ wallet }) => wallet === account.address);
    lines.push(await walletLine(sides, { account, booked, mined, chainAtoken }));
  }
  return lines;
}

async function walletLine(
  sides: Sides,
  found: {
    readonly account: ReconciledAddress;
    readonly booked: BookedWallet;
    readonly mined: readonly MinedUnsettled[];
    readonly chainAtoken: bigint;
  },
): Promise<AccountLine> {
  const { account, booked, mined, chainAtoken } = found;
  const { wallet } = booked;
  const items: InFlightItem[] = mined.map(({ item }) => item);
  if (!wallet.pastBooked) {
    const past = [{ address: wallet.address, height: wallet.fromHeight - 1 }];
    const [amountAtoken = 0n] = await askBalances(sides.chain, past);
    if (amountAtoken > 0n) items.push({ what: "coins from before its registration", amountAtoken });
  }
  const line = accountLine(booked.account, booked.balanceAtoken, items, chainAtoken);
  if (line.differenceAtoken === 0n) return line;
  const expectedAtoken = line.chainAtoken - line.differenceAtoken;
  const fromHeight = Math.max(sides.books.watchedFrom, wallet.fromHeight);
  const byTransaction = new Map(mined.map(({ hash, item }) => [hash, item.amountAtoken]));
  const amounts = { expectedAtoken, chainAtoken, byTransaction, fromHeight };
  return { ...line, breaks: [await explainBreak(sides, account, amounts)] };
}

/** A withdrawal's transaction that is mined and not booked yet. */
interface MinedUnsettled {
  readonly wallet: Address;
  readonly hash: Hash32;
  readonly item: InFlightItem;
}

/** Withdrawals that are mined up to the height and not booked yet, from their receipts. */
async function minedButUnsettled({ chain, books }: Sides): Promise<MinedUnsettled[]> {
  const costs = await chain.minedCosts(books.unsettled.map((attempt) => attempt.hash));
  return books.unsettled.flatMap(({ wallet, hash, withdrawalId, amountAtoken }, index) => {
    const cost = costs[index];
    if (cost === undefined || cost.height > books.cursor.height) return [];
    const item = {
      what: `withdrawal ${withdrawalId} mined in block ${cost.height}, not settled yet`,
      amountAtoken: -cost.feeAtoken - (cost.isSuccess ? amountAtoken : 0n),
    };
    return [{ wallet, hash, item }];
  });
}

async function depositLine(sides: Sides): Promise<AccountLine> {
  const { chain, books } = sides;
  const { height } = books.cursor;
  const items: InFlightItem[] = [];
  if (books.unpostedDepositsAtoken > 0n) {
    const amountAtoken = books.unpostedDepositsAtoken;
    items.push({ what: "deposits detected, not credited yet", amountAtoken });
  }
  const waiting = books.addresses.filter((entry) => !entry.backfilled);
  const past = await askBalances(
    chain,
    waiting.map((entry) => ({ address: entry.address, height: entry.fromHeight - 1 })),
  );
  const pastOf = new Map(
    waiting.map((entry, index) => [entry.address, present(past[index], "past balance")]),
  );
  for (const [address, amountAtoken] of pastOf) {
    if (amountAtoken === 0n) continue;
    items.push({ what: `coins of ${address} from before its registration`, amountAtoken });
  }
  const balances = await askBalances(
    chain,
    books.addresses.map(({ address }) => ({ address, height })),
  );
  const chainAtoken = balances.reduce((sum, balance) => sum + balance, 0n);
  const line = accountLine(DEPOSIT_ADDRESSES, books.depositAddressesAtoken, items, chainAtoken);
  const uneven = books.addresses.flatMap((entry, index) => {
    const expectedAtoken = entry.bookedAtoken + (pastOf.get(entry.address) ?? 0n);
    const balance = present(balances[index], "balance of a deposit address");
    return balance === expectedAtoken ? [] : [{ entry, expectedAtoken, chainAtoken: balance }];
  });
  const breaks: AddressBreak[] = [];
  for (const { entry, ...amounts } of uneven.slice(0, MAX_LISTED)) {
    const account: ReconciledAddress = { address: entry.address, role: "deposit-address" };
    // Before the backfill the past is in no book, and it is not what is missing.
    const fromHeight = entry.backfilled ? 0 : entry.fromHeight;
    const byTransaction = new Map<Hash32, bigint>();
    breaks.push(await explainBreak(sides, account, { ...amounts, byTransaction, fromHeight }));
  }
  return { ...line, breaks, moreBreaks: uneven.length - breaks.length };
}

function accountLine(
  account: string,
  ledgerAtoken: bigint,
  inFlight: readonly InFlightItem[],
  chainAtoken: bigint,
): AccountLine {
  const expectedAtoken = inFlight.reduce((sum, item) => sum + item.amountAtoken, ledgerAtoken);
  const differenceAtoken = chainAtoken - expectedAtoken;
  return {
    account,
    ledgerAtoken,
    inFlight,
    chainAtoken,
    differenceAtoken,
    breaks: [],
    moreBreaks: 0,
  };
}

async function askBalances(
  chain: ReconcileChain,
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

/** Finds the transactions whose effect differs between the chain and the books. */
async function explainBreak(
  { database, chain, books }: Sides,
  account: ReconciledAddress,
  found: {
    readonly expectedAtoken: bigint;
    readonly chainAtoken: bigint;
    /** In-flight effects that count as booked. */
    readonly byTransaction: ReadonlyMap<Hash32, bigint>;
    readonly fromHeight?: Height;
  },
): Promise<AddressBreak> {
  const { height } = books.cursor;
  const booked = new Map(await bookedByTransaction(database, account, height));
  for (const [hash, deltaAtoken] of found.byTransaction) {
    // Settled between the snapshot and now: the books have it already.
    if (!booked.has(hash)) booked.set(hash, deltaAtoken);
  }
  const onChain = new Map<Hash32, { height: Height; deltaAtoken: bigint }>();
  for await (const movement of chain.movements(account.address, height)) {
    if (movement.height < (found.fromHeight ?? 0)) continue;
    const sum = onChain.get(movement.txHash)?.deltaAtoken ?? 0n;
    const deltaAtoken = sum + movement.deltaAtoken;
    onChain.set(movement.txHash, { height: movement.height, deltaAtoken });
  }
  const causes: BreakCause[] = [];
  for (const [txHash, { height: at, deltaAtoken }] of onChain) {
    const ledgerAtoken = booked.get(txHash) ?? 0n;
    if (deltaAtoken === ledgerAtoken) continue;
    causes.push({ txHash, height: at, chainAtoken: deltaAtoken, ledgerAtoken });
  }
  for (const [txHash, ledgerAtoken] of booked) {
    if (onChain.has(txHash) || ledgerAtoken === 0n) continue;
    causes.push({ txHash, height: undefined, chainAtoken: 0n, ledgerAtoken });
  }
  return {
    address: account.address,
    ledgerAtoken: found.expectedAtoken,
    chainAtoken: found.chainAtoken,
    differenceAtoken: found.chainAtoken - found.expectedAtoken,
    causes: causes.slice(0, MAX_LISTED),
    moreCauses: Math.max(0, causes.length - MAX_LISTED),
  };
}
