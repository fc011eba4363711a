/**
 * The past of newly registered addresses: coins that came before the address was given to a
 * customer go to suspense, one deposit row per operation, proven against the balance. And that of hot
 * wallets: what they held when they were registered, as one balance.
 */
import { NATIVE_ASSET } from "../ledger/journal/accounts.js";
import type { Address } from "../chain/address.js";
import type { Height } from "../chain/hex.js";
import { readTokenAssets, type TokenAsset } from "../ledger/assets/asset-registry.js";
import type { TokenBalance } from "../ledger/assets/token-opening.js";
import { readTokenStates, type TokenState } from "../ledger/assets/token-state.js";
import { commitBackfill, commitEmptyPasts, type PastOutflow } from "../ledger/blocks/backfill.js";
import type { NewDeposit } from "../ledger/blocks/new-deposits.js";
import type { LedgerGuard } from "../ledger/guard/ledger-guard.js";
import { bookWalletPast } from "../ledger/blocks/wallet-flows.js";
import { lockCursor, readCursor } from "../ledger/watch/watch-cursor.js";
import { proveWatchLease, type WatchLease } from "../ledger/watch/watch-lease.js";
import { listWallets } from "../ledger/wallets/wallet.js";
import { addressesToBackfill, type DepositAddress } from "../ledger/deposits/deposit-addresses.js";
import type { KnownBlock } from "../rpc-client/at.js";
import type { EvmClient } from "../rpc-client/evm-client.js";
import type { AccountJournalEntry, AccountJournalPage } from "../rpc-client/journal-codec.js";
import { isPruned } from "../rpc-client/errors.js";
import type { RpcOptions } from "../rpc-client/json-rpc.js";
import type { Logger } from "../runtime/process/logger.js";
import type { Sql, SqlDatabase } from "../runtime/sql/sql.js";
import { DepositError, IncidentFound } from "./errors.js";
import { answerOfFirst, answerOfSecond, PutOff, type PutOffMemory } from "./put-off.js";
import { ofOtherCode } from "./tokens/past-codes.js";
import { agreedHeld } from "./tokens/token-run.js";
import type { WatcherMetrics } from "./watcher-metrics.js";

/** Addresses looked at in one round. */
const ADDRESSES_PER_ROUND = 200;

/** Addresses read at the same time: enough to hide the round trip, few enough for the node. */
const PARALLEL = 8;

/** Entries of one address at most; more past than this needs an operator, not more memory. */
const MAX_PAST_ENTRIES = 500_000;

/** Calls of the node by which the past of an address is read. */
export type PastNode = Pick<
  EvmClient,
  "accountJournal" | "getBalance" | "getTransactionCount" | "tokenBalances" | "tokenCodes"
>;

/** Calls of a second node, which has to show the same before it is booked. */
export type SecondPastNode = Pick<
  EvmClient,
  "getBalances" | "getTransactionCount" | "tokenBalances"
>;

/** Where the past of an address is read and booked. */
export interface BackfillParts {
  readonly database: SqlDatabase;
  readonly guard: Pick<LedgerGuard, "assertStands">;
  readonly node: PastNode;
  /** Has to show the same balances, where there is one. */
  readonly secondNode?: SecondPastNode | undefined;
  /** What former rounds have put off. */
  readonly memory: PutOffMemory;
  readonly log: Logger;
  readonly metrics: Pick<WatcherMetrics, "backfilled">;
}

/** How nodes are asked. */
type PastOptions = Pick<RpcOptions, "signal" | "known">;

/** What a past is read by: a chain that loses blocks moves first blocks, of addresses and of tokens. */
interface PastBasis {
  /** The last booked block: a node that does not have it tells of another past. */
  readonly known: KnownBlock | undefined;
  readonly tokens: readonly (TokenAsset & { readonly isOpened: boolean })[];
  readonly openedTokens: number;
  readonly rewinds: number;
  /** Those of which the log says that their contracts' word is not booked: once for many addresses. */
  readonly silentTokens: Set<string>;
}

/**
 * Books the past of every address and wallet that waits for it. One that a node does not tell of, as one that
 * has deleted old states, keeps no other waiting: it is asked for again later, at the
 * latest after five minutes.
 * @throws WATCH_LEASE_LOST, RECOVERY, IncidentFound; faults of the database and of nodes, of one address
 *   or wallet behind all that could be booked
 */
export async function runBackfill(
  parts: BackfillParts,
  options: { readonly lease: WatchLease; readonly signal: AbortSignal },
): Promise<void> {
  parts.memory.begin((await readCursor(parts.database)).rewinds);
  const putOff = new PutOff(parts.memory);
  await bookWalletPasts(parts, putOff, options);
  let firstIndex = 0;
  for (;;) {
    const basis = await readBasis(parts.database);
    const waiting = await addressesToBackfill(parts.database, {
      firstIndex,
      limit: ADDRESSES_PER_ROUND,
    });
    const last = waiting.at(-1);
    if (last === undefined) break;
    const putOffBefore = putOff.count;
    const assertStands = (tx: Sql) => parts.guard.assertStands(tx);
    const reader = { lease: options.lease, assertStands, rewinds: basis.rewinds };
    const queue = waiting.values();
    const unused: DepositAddress[] = [];
    const lane = async () => {
      for (const address of queue) {
        options.signal.throwIfAborted();
        await putOff.unlessUntold(address.address, async () => {
          const { signal } = options;
          const past = await readPast(parts, { address, basis }, { signal, known: basis.known });
          if (isEmpty(past)) unused.push(address);
          else if (await commitBackfill(parts.database, { ...reader, address, ...past })) {
            parts.metrics.backfilled(1);
          }
        });
      }
    };
    const lanes = await Promise.allSettled(Array.from({ length: PARALLEL }, lane));
    parts.metrics.backfilled(await commitEmptyPasts(parts.database, reader, unused));
    const failed = lanes.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    // Those behind these have their turn, too.
    if (putOff.count > putOffBefore) firstIndex = last.index + 1;
  }
  putOff.throwFirst();
}

/** The losses first: what is read of a chain that loses blocks in between is not booked. */
async function readBasis(database: SqlDatabase): Promise<PastBasis> {
  const { rewinds, height, blockHash: hash } = await readCursor(database);
  const states = await readTokenStates(database);
  const tokens = await readTokenAssets(database);
  return {
    rewinds,
    known: hash === undefined ? undefined : { height, hash },
    silentTokens: new Set(),
    openedTokens: countOpened(states),
    tokens: tokens.map((token) => {
      return { ...token, isOpened: states.get(token.symbol)?.isOpened === true };
    }),
  };
}

/** Tokens whose opening is booked: with a wallet of the same block only where its past was booked before. */
function countOpened(states: ReadonlyMap<string, Pick<TokenState, "isOpened">>): number {
  return [...states.values()].filter(({ isOpened }) => isOpened).length;
}

/** Without tokens of the wallet's own first block that are still to be opened: with what it holds, too. */
function notOpening(basis: PastBasis, { fromHeight }: { readonly fromHeight: Height }): PastBasis {
  const tokens = basis.tokens.filter((token) => token.isOpened || token.fromHeight < fromHeight);
  return { ...basis, tokens };
}

async function bookWalletPasts(
  parts: BackfillParts,
  putOff: PutOff,
  { lease, signal }: { readonly lease: WatchLease; readonly signal: AbortSignal },
): Promise<void> {
  const { database, guard, metrics } = parts;
  const basis = await readBasis(database);
  const waiting = (await listWallets(database)).filter(({ pastBooked }) => !pastBooked);
  const bookOne = async (owner: Pick<DepositAddress, "address" | "fromHeight">) => {
    const { address: wallet, fromHeight } = owner;
    const height = fromHeight - 1;
    const options = { signal, known: basis.known };
    const amountAtoken = await agreedBalance(parts, { address: wallet, height }, options);
    const tokens = await readTokens(parts, { owner, basis: notOpening(basis, owner) }, options);
    const isBooked = await database.transaction(async (tx) => {
      await proveWatchLease(tx, lease);
      // Where the chain lost blocks meanwhile it is looked at again, or a token was opened without it.
      if ((await lockCursor(tx)).rewinds !== basis.rewinds) return false;
      await guard.assertStands(tx);
      if (countOpened(await readTokenStates(tx)) !== basis.openedTokens) return false;
      return bookWalletPast(tx, { wallet, height, amountAtoken, tokens });
    });
    if (isBooked) metrics.backfilled(1);
  };
  for (const wallet of waiting) {
    signal.throwIfAborted();
    await putOff.unlessUntold(wallet.address, () => bookOne(wallet));
  }
}

/**
 * A balance that every node shows: what a single one makes up of a past would be booked.
 * @throws IncidentFound where they disagree; the nodes' faults
 */
async function agreedBalance(
  { node, secondNode }: BackfillParts,
  { address, height }: Place,
  options: PastOptions,
): Promise<bigint> {
  const [units, [otherUnits] = [units]] = await Promise.all([
    answerOfFirst(
      node.getBalance(address, height, options),
      `what ${address} had after block ${height}`,
    ),
    answerOfSecond(
      secondNode?.getBalances([{ address, at: height }], options),
      `what ${address} had after block ${height}`,
    ),
  ]);
  if (units === otherUnits) return units;
  throw new IncidentFound({
    kind: "BALANCE_MISMATCH",
    height,
    message: `the nodes disagree about what ${address} had after block ${height}`,
    details: { address, units, otherUnits },
  });
}

interface Place {
  readonly address: Address;
  readonly height: Height;
}

interface Past {
  readonly inflows: readonly NewDeposit[];
  readonly outflows: readonly PastOutflow[];
  readonly tokens: readonly TokenBalance[];
}

/** Most have none: a wallet's software shows its next address before anybody pays to it. */
function isEmpty({ inflows, outflows, tokens }: Past): boolean {
  return inflows.length + outflows.length + tokens.length === 0;
}

async function readPast(
  parts: BackfillParts,
  { address, basis }: { readonly address: DepositAddress; readonly basis: PastBasis },
  options: PastOptions,
): Promise<Past> {
  const lastHeight = address.fromHeight - 1;
  const place = { address: address.address, height: lastHeight };
  // First: where a node does not tell of it, nothing longer was asked for in vain.
  const balanceAtoken = await agreedBalance(parts, place, options);
  const entries = await readEntries(parts, address, options).catch(async (error: unknown) => {
    const isGone = error instanceof DepositError && isPruned(error.cause);
    if (isGone && balanceAtoken === 0n && (await hasSentNothing(parts, place, options))) return [];
    throw error;
  });
  const effective = entries.filter((entry) => entry.change.effective && entry.deltaAtoken !== 0n);
  const sumAtoken = effective.reduce((sum, entry) => sum + entry.deltaAtoken, 0n);
  if (sumAtoken !== balanceAtoken) {
    throw pastIncident(address, "the operations of its past do not add up to its balance", {
      operationsAtoken: sumAtoken,
      balanceAtoken,
      height: lastHeight,
    });
  }
  const tokens = await readTokens(parts, { owner: address, basis }, options);
  return { ...splitPast(address, effective), tokens };
}

async function readEntries(
  { node }: BackfillParts,
  owner: DepositAddress,
  options: PastOptions,
): Promise<readonly AccountJournalEntry[]> {
  const { address, fromHeight } = owner;
  const to = fromHeight - 1;
  const entries: AccountJournalEntry[] = [];
  let from: number | undefined = 0;
  while (from !== undefined) {
    const page: AccountJournalPage = await answerOfFirst(
      node.accountJournal(address, { from, to }, options),
      `blocks up to ${to}, in which ${address} may have had coins`,
    );
    for (const entry of page.entries) entries.push(entry);
    if (entries.length > MAX_PAST_ENTRIES) {
      throw pastIncident(owner, "its past is longer than can be booked by itself", {
        entries: entries.length,
      });
    }
    from = page.next;
  }
  return entries;
}

/**
 * Whether no node knows a transaction of an address. One that has no coins then never had any: nothing takes
 * coins of an account that has no code but what it has signed, and each of these counts.
 */
async function hasSentNothing(
  { node, secondNode }: BackfillParts,
  { address, height }: Place,
  options: PastOptions,
): Promise<boolean> {
  const what = `what ${address} had sent after block ${height}`;
  const [count, other = 0n] = await Promise.all([
    answerOfFirst(node.getTransactionCount(address, height, options), what),
    answerOfSecond(secondNode?.getTransactionCount(address, height, options), what),
  ]);
  return count === 0n && other === 0n;
}

/**
 * Tokens as sums: which transfers they came by is not asked of a whole chain. What a contract does not tell,
 * or only code tells that nobody has accepted, keeps no coins waiting: none of it is booked, the log says so,
 * and once it tells the reconciliation does.
 */
async function readTokens(
  parts: BackfillParts,
  asked: {
    readonly owner: Pick<DepositAddress, "address" | "fromHeight">;
    readonly basis: PastBasis;
  },
  options: PastOptions,
): Promise<TokenBalance[]> {
  const { node, secondNode: second, log } = parts;
  const { address, fromHeight } = asked.owner;
  // Younger tokens are opened with what this address holds by then.
  const { tokens, silentTokens } = asked.basis;
  const followed = tokens.filter((token) => token.fromHeight <= fromHeight);
  if (followed.length === 0) return [];
  const queries = followed.map(({ contract: token }) => {
    return { token, account: address, at: fromHeight - 1, height: fromHeight - 1 };
  });
  const held = await agreedHeld({ first: node, second }, queries, options);
  // Most hold nothing, and no code has to say so.
  const holding = followed.filter((_, index) => held[index] !== 0n && held[index] !== undefined);
  const others = await ofOtherCode(parts, holding, { at: fromHeight - 1, ...options });
  const skip = ({ symbol: asset, contract }: TokenAsset, text: string) => {
    const fields = { asset, contract, address, height: fromHeight };
    if (!silentTokens.has(asset)) log.error(fields, text);
    silentTokens.add(asset);
    return [];
  };
  return followed.flatMap((token, index) => {
    const { symbol: asset } = token;
    const amountUnits = held[index];
    if (amountUnits === undefined) {
      return skip(
        token,
        "a token's contract does not tell what an address of ours held before this block",
      );
    }
    if (others.has(asset)) {
      return skip(
        token,
        "code that nobody accepted tells what an address of ours held of a token before this block: " +
          "it is not booked",
      );
    }
    return amountUnits === 0n ? [] : [{ asset, amountUnits }];
  });
}

function splitPast(
  address: DepositAddress,
  entries: readonly AccountJournalEntry[],
): Pick<Past, "inflows" | "outflows"> {
  const inflows: NewDeposit[] = [];
  const outflows: PastOutflow[] = [];
  for (const entry of entries) {
    // A transfer to itself moved nothing.
    if (entry.change.from === entry.change.to) continue;
    const place = {
      asset: NATIVE_ASSET,
      address: address.address,
      height: entry.height,
      txHash: entry.transactionHash ?? entry.blockHash,
      txIndex: entry.transactionIndex,
      opIndex: entry.operationIndex,
    };
    if (entry.deltaAtoken > 0n) {
      inflows.push({
        ...place,
        customerId: address.customerId,
        amountUnits: entry.deltaAtoken,
        blockHash: entry.blockHash,
        creditable: false,
      });
    } else {
      outflows.push({ ...place, amountUnits: -entry.deltaAtoken });
    }
  }
  return { inflows, outflows };
}

function pastIncident(
  address: DepositAddress,
  what: string,
  details: Readonly<Record<string, unknown>>,
): IncidentFound {
  return new IncidentFound({
    kind: "BALANCE_MISMATCH",
    height: address.fromHeight - 1,
    message: `deposit address ${address.address}: ${what}`,
    details: { address: address.address, ...details },
  });
}
