/**
 * A chain that came back without blocks that the ledger has booked: what it lost, and how far the
 * watcher would have to go back. Nothing is written here.
 */
import type { Address } from "../../chain/address.js";
import { type Hash32, type Height, type Hex, parseHex } from "../../chain/hex.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { readCursor, type WatchCursor, watchedFromHeight } from "../watch/watch-cursor.js";
import { LedgerError } from "../errors.js";
import { openIncident } from "../incidents.js";
import { listWallets } from "../wallets/wallet.js";
import { type HoldingsChain, type LostOpenings, readLostOpenings } from "./lost-openings.js";
import { IS_NOT_REVERSED } from "../journal/reversals.js";
import { REMINED } from "../blocks/remined-payments.js";
import { storedAddress, storedAtoken, storedHash, storedHeight } from "../stored-values.js";

/** A payment that was mined once and is not on the chain. */
export interface VanishedPayment {
  /** Undefined for one that a recovery booked and nobody has linked. */
  readonly withdrawalId: string | undefined;
  readonly nonce: bigint;
  readonly hash: Hash32;
  readonly height: Height;
  /** `TOKEN`, a symbol, or the contract of a token that is not listed. */
  readonly asset: string;
  readonly amountUnits: bigint;
  /** The signed bytes; undefined for a transaction that this ledger did not sign. */
  readonly raw: Hex | undefined;
  /** What was signed for the same withdrawal on nonces that foreign transactions had used. */
  readonly former: readonly FormerAttempt[];
}

interface FormerAttempt {
  readonly wallet: Address;
  readonly nonce: bigint;
  readonly hash: Hash32;
}

/** A deposit whose block is not on the chain. */
export interface VanishedDeposit {
  readonly id: string;
  readonly txHash: Hash32;
  readonly height: Height;
  readonly customerId: string;
  readonly asset: string;
  readonly amountUnits: bigint;
  readonly status: string;
}

/** A journal entry about what came in a block that is gone, beside deposits. */
export interface VanishedInflow {
  readonly idemKey: string;
  /** The transaction, and the address where one is named. */
  readonly memo: string;
  readonly txHash: Hash32;
  readonly height: Height;
}

/** What going back to the last booked block that the chain still has would undo; a person sees it before. */
export interface RewindPlan {
  readonly cursor: WatchCursor;
  /** Last booked block that the ledger can prove to be on the chain; undefined hash: before all. */
  readonly to: { readonly height: Height; readonly hash: Hash32 | undefined };
  readonly headHeight: Height;
  readonly deposits: readonly VanishedDeposit[];
  readonly inflows: readonly VanishedInflow[];
  readonly payments: readonly VanishedPayment[];
  /**
   * Of deposits and inflows what the chain has all the same: mined again, or in a block above the one that
   * is gone back to which was never lost. It is reversed with the others, and booked again as the watcher
   * comes by.
   */
  readonly onChain: ReadonlySet<Hash32>;
  /** What wallets and tokens that were taken in later held at the block that is gone back to. */
  readonly openings: LostOpenings;
  /**
   * Of the payments those that must not be sent again, by their hashes, each with the reason: bytes that
   * were signed for them before may pay, or have paid.
   */
  readonly paidOtherwise: ReadonlyMap<Hash32, string>;
  /** Those whose nonces are free and whose bytes are not here: this ledger did not sign them. */
  readonly unsendable: ReadonlySet<Hash32>;
}

/** The chain's side of a plan: which of our blocks and payments it has, and what wallets have used. */
export interface RewindChain extends HoldingsChain {
  readonly headHeight: () => Promise<Height>;
  /** Hash of a block; undefined above the head, "pruned" where the node has it no more. */
  readonly blockHash: (height: Height) => Promise<Hash32 | "pruned" | undefined>;
  /** Whether each transaction is mined. */
  readonly areMined: (hashes: readonly Hash32[]) => Promise<readonly boolean[]>;
  /** How many transactions of a wallet are mined. */
  readonly nextNonce: (wallet: Address) => Promise<bigint>;
}

/**
 * Rows of one kind that a plan holds at most; more is no small loss, and no command's work. A plan
 * with some of them would set the cursor back behind rows that it does not undo.
 */
const MAX_ROWS = 100_000;

/** Blocks that are asked for at a time; a lost day may have as many of ours as it has blocks. */
const BLOCKS_AT_ONCE = 50;

/**
 * Payments of a wallet that were mined at or above a nonce that the chain shows as free, in the order
 * of their nonces. On this chain they cannot be there.
 */
export async function paymentsFrom(
  sql: Sql,
  options: { readonly wallet: Address; readonly nonce: bigint; readonly limit: number },
): Promise<VanishedPayment[]> {
  return readPayments(sql, `nonce >= $2::numeric`, [
    options.wallet,
    options.nonce.toString(),
    options.limit,
  ]);
}

/**
 * Compares what is booked with the chain, payments of all wallets.
 * @returns undefined when the chain has the last booked block and all payments
 * @throws RECOVERY when more is gone than one plan holds (`maxRows` of a kind), and where the node has
 *   deleted the blocks that would have to be compared
 */
export async function planRewind(
  database: SqlDatabase,
  chain: RewindChain,
  { maxRows = MAX_ROWS }: { readonly maxRows?: number } = {},
): Promise<RewindPlan | undefined> {
  const cursor = await readCursor(database);
  const headHeight = await chain.headHeight();
  const shown = cursor.blockHash && (await chain.blockHash(cursor.height));
  if (shown === "pruned") throw await cutOff(chain, cursor.height, headHeight);
  const isCursorThere = shown === cursor.blockHash;
  const to = isCursorThere
    ? { height: cursor.height, hash: cursor.blockHash }
    : await findCommonBlock(database, chain, { belowHeight: cursor.height, headHeight });
  const limit = maxRows + 1;
  const mined = await readPayments(database, `height > $2`, [null, to.height, limit]);
  const unmined = await readUnmined(database, chain, limit);
  const deposits = isCursorThere ? [] : await readDeposits(database, to.height, limit);
  const inflows = isCursorThere ? [] : await readInflows(database, to.height, limit);
  if ([mined, unmined, deposits, inflows].some((rows) => rows.length > maxRows)) {
    throw new LedgerError(
      "RECOVERY",
      `above block ${to.height} more than ${maxRows} rows of one kind are booked that this chain ` +
        "may not have: ask a node with the whole chain, or restore the ledger as well",
    );
  }
  const areMined = await chain.areMined(mined.map(({ hash }) => hash));
  const missing = [...mined.filter((_, index) => areMined[index] !== true), ...unmined];
  // In the order in which they can be mined.
  const payments = [...new Map(missing.map((one) => [one.hash, one])).values()].toSorted(
    (left, right) => Number(left.nonce - right.nonce),
  );
  if (isCursorThere && payments.length === 0) return undefined;
  return {
    cursor,
    to,
    headHeight,
    deposits,
    inflows,
    payments,
    onChain: await findOnChain(chain, [...deposits, ...inflows]),
    openings: await readLostOpenings(database, chain, to.height),
    paidOtherwise: await findPaidOtherwise(chain, payments),
    unsendable: new Set(unmined.filter(({ raw }) => raw === undefined).map(({ hash }) => hash)),
  };
}

/** What a block pays by itself is called by that block's hash. */
async function findOnChain(
  chain: RewindChain,
  rows: readonly { readonly txHash: Hash32; readonly height: Height }[],
): Promise<ReadonlySet<Hash32>> {
  const heightOf = new Map(rows.map(({ txHash, height }) => [txHash, height]));
  const hashes = [...heightOf.keys()];
  const areMined = await chain.areMined(hashes);
  const onChain = new Set(hashes.filter((_, index) => areMined[index] === true));
  const others = [...heightOf].filter(([hash]) => !onChain.has(hash));
  for (let start = 0; start < others.length; start += BLOCKS_AT_ONCE) {
    const part = others.slice(start, start + BLOCKS_AT_ONCE);
    const blocks = await Promise.all(part.map(([, height]) => chain.blockHash(height)));
    for (const [index, [hash]] of part.entries()) if (blocks[index] === hash) onChain.add(hash);
  }
  return onChain;
}

/**
 * A payment has a second nonce only with proof that a foreign transaction had used its first one. A chain
 * that lost that transaction, too, takes the first bytes again, from whoever has them: sent as well, the
 * second ones would pay once more.
 */
async function findPaidOtherwise(
  chain: RewindChain,
  payments: readonly VanishedPayment[],
): Promise<ReadonlyMap<Hash32, string>> {
  const found = new Map<Hash32, string>();
  for (const { hash, former } of payments) {
    const areMined = await chain.areMined(former.map((attempt) => attempt.hash));
    for (const [place, attempt] of former.entries()) {
      const { wallet, nonce } = attempt;
      if (areMined[place] === true) {
        found.set(hash, `${attempt.hash}, which was signed for it before, was mined`);
      } else if (!found.has(hash) && nonce >= (await chain.nextNonce(wallet))) {
        const how = `nonce ${nonce} of ${wallet} is free, and ${attempt.hash} may pay it there`;
        found.set(hash, `${how}: use the nonce up first`);
      }
    }
  }
  return found;
}

/**
 * By nonces, since a payment that was made again after a loss says where it was mined first: that block
 * may lie below those that a further loss took.
 */
async function readUnmined(
  database: SqlDatabase,
  chain: RewindChain,
  limit: number,
): Promise<VanishedPayment[]> {
  const found: VanishedPayment[] = [];
  for (const { address: wallet } of await listWallets(database)) {
    const nonce = await chain.nextNonce(wallet);
    found.push(...(await paymentsFrom(database, { wallet, nonce, limit })));
  }
  return found;
}

/** Whether an incident says that the chain lost blocks: only then may the watcher go back. */
export async function isChainDoubted(sql: Sql): Promise<boolean> {
  const kind = (await openIncident(sql))?.kind;
  return kind === "HEIGHT_WENT_BACK" || kind === "HASH_CHANGED" || kind === "PARENT_MISMATCH";
}

interface KnownBlock {
  readonly height: Height;
  readonly hash: Hash32;
}

/**
 * The highest block that the watcher has passed and that the chain still has. Only deposits that it found as
 * it came by tell which blocks those were: what a worker, a recovery or the past of a new address names may
 * be of the chain that came back, read before the watcher met it, and what lies below on that chain was never
 * looked at. Blocks that are there may lie below some that are not: halving would have the watcher go back
 * behind them, and what waits would be ended for deposits that are not gone. So some block that is there is
 * found from the newest on, in steps that grow, and then all above it are asked for.
 * @throws RECOVERY where none is found, and the node has deleted some
 */
async function findCommonBlock(
  database: SqlDatabase,
  chain: RewindChain,
  { belowHeight, headHeight }: { readonly belowHeight: Height; readonly headHeight: Height },
): Promise<{ readonly height: Height; readonly hash: Hash32 | undefined }> {
  const rows = await database.query<{ height: string; hash: string }>(
    `SELECT DISTINCT height::text, hash FROM (
       SELECT d.height, d.block_hash AS hash FROM deposit d
         JOIN deposit_address a ON a.address = d.address AND a.from_height <= d.height
        WHERE d.status <> 'reversed'
       UNION SELECT to_height, to_hash FROM chain_rewind WHERE to_hash IS NOT NULL
     ) AS known WHERE height < $1 AND height >= $2`,
    [belowHeight, await watchedFromHeight(database)],
  );
  const known: KnownBlock[] = rows
    .map((row) => ({ height: storedHeight(row.height), hash: storedHash(row.hash) }))
    .toSorted((left, right) => left.height - right.height);
  let pruned = -1;
  const isThere = async (index: number) => {
    const block = known[index];
    const hash = block && (await chain.blockHash(block.height));
    if (hash === "pruned") pruned = Math.max(pruned, index);
    return hash !== undefined && hash === block?.hash;
  };
  let there = known.length - 1;
  for (let step = 1; there >= 0 && !(await isThere(there)); step *= 2) {
    // What lies below one that the node has deleted it has deleted, too.
    there = there === 0 || pruned >= 0 ? -1 : Math.max(0, there - step);
  }
  for (let end = known.length; end > Math.max(there, pruned) + 1; end -= BLOCKS_AT_ONCE) {
    const start = Math.max(there + 1, pruned + 1, end - BLOCKS_AT_ONCE);
    const indexes = Array.from({ length: end - start }, (_, place) => start + place);
    const areThere = await Promise.all(indexes.map(isThere));
    const last = areThere.lastIndexOf(true);
    if (last === -1) continue;
    there = start + last;
    break;
  }
  const found = known[there];
  if (found !== undefined) return found;
  const cut = known[pruned];
  if (cut !== undefined) throw await cutOff(chain, cut.height, headHeight);
  // Which chain it is its genesis says: that block is never lost, nor booked a second time.
  const genesisHeight = Math.min(0, belowHeight - 1);
  const height = Math.max(genesisHeight, (await watchedFromHeight(database)) - 1);
  const hash = height < 0 ? undefined : await chain.blockHash(height);
  // A node that has deleted others keeps the genesis: there would be nothing to go on with.
  const isCut = hash === "pruned" || (await chain.blockHash(height + 1)) === "pruned";
  if (isCut) throw await cutOff(chain, height, headHeight);
  return { height, hash };
}

/** @param height of the block that would have to be compared, and that the node has deleted */
async function cutOff(
  chain: RewindChain,
  height: Height,
  headHeight: Height,
): Promise<LedgerError> {
  let [pruned, oldest] = [height, headHeight];
  while (oldest - pruned > 1) {
    const middle = Math.floor((pruned + oldest) / 2);
    if ((await chain.blockHash(middle)) === "pruned") pruned = middle;
    else oldest = middle;
  }
  return new LedgerError(
    "RECOVERY",
    `the last block of ours that can be compared is ${height}, and the node has none below ${oldest}: ` +
      "ask a node with the whole chain",
    { details: { height, oldest } },
  );
}

/** @param parameters the wallet, or null for all; what the condition compares with; a limit */
async function readPayments(
  sql: Sql,
  condition: string,
  parameters: readonly unknown[],
): Promise<VanishedPayment[]> {
  const rows = await sql.query<{
    withdrawal_id: string | null;
    nonce: string;
    hash: string;
    height: string;
    asset: string;
    amount: string;
    raw: string | null;
    former: readonly Record<"wallet" | "nonce" | "hash", string>[] | null;
  }>(
    `SELECT withdrawal_id, nonce::text, hash, height::text, asset, amount::text, raw,
            (SELECT json_agg(json_build_object('wallet', f.wallet, 'nonce', f.nonce::text,
                                               'hash', t.hash) ORDER BY f.id, t.n)
               FROM nonce_slot f JOIN withdrawal_attempt t ON t.slot_id = f.id
              WHERE f.withdrawal_id = mined.withdrawal_id AND f.outcome = 'foreign'
                AND t.kind = 'payment') AS former
       FROM (
       SELECT s.wallet, s.withdrawal_id, s.nonce, s.mined_hash AS hash, s.block_number AS height,
              w.asset, w.amount_units AS amount, a.raw
         FROM nonce_slot s JOIN withdrawal w ON w.id = s.withdrawal_id
         LEFT JOIN withdrawal_attempt a ON a.slot_id = s.id AND a.hash = s.mined_hash
        WHERE s.mined_hash IS NOT NULL AND s.outcome IS DISTINCT FROM 'foreign'
       UNION ALL
       SELECT wallet, NULL, nonce, tx_hash, height,
              coalesce((SELECT symbol FROM asset a WHERE a.contract = p.contract), p.contract,
                       'TOKEN'),
              amount_units, NULL
         FROM recovered_payment p
        WHERE withdrawal_id IS NULL
     ) AS mined
      WHERE ($1::text IS NULL OR wallet = $1) AND ${condition}
      ORDER BY mined.wallet, mined.nonce LIMIT $3`,
    parameters,
  );
  return rows.map((row) => ({
    withdrawalId: row.withdrawal_id ?? undefined,
    nonce: storedAtoken(row.nonce),
    hash: storedHash(row.hash),
    height: storedHeight(row.height),
    asset: row.asset,
    amountUnits: storedAtoken(row.amount),
    raw: row.raw === null ? undefined : parseHex(row.raw),
    former: (row.former ?? []).map((attempt) => ({
      wallet: storedAddress(attempt.wallet),
      nonce: storedAtoken(attempt.nonce),
      hash: storedHash(attempt.hash),
    })),
  }));
}

async function readDeposits(sql: Sql, above: Height, limit: number): Promise<VanishedDeposit[]> {
  const rows = await sql.query<{
    id: string;
    tx_hash: string;
    height: string;
    customer_id: string;
    asset: string;
    amount: string;
    status: string;
  }>(
    `SELECT id, tx_hash, height::text, customer_id, asset, amount_units::text AS amount, status
       FROM deposit WHERE height > $1 AND status <> 'reversed' ORDER BY seq LIMIT $2`,
    [above, limit],
  );
  return rows.map((row) => ({
    id: row.id,
    txHash: storedHash(row.tx_hash),
    height: storedHeight(row.height),
    customerId: row.customer_id,
    asset: row.asset,
    amountUnits: storedAtoken(row.amount),
    status: row.status,
  }));
}

/**
 * Inflows that are not reversed yet: a reversal's key is made of the entry's. Gas that was taken out of
 * suspense goes with the deposit that had brought it there: once it is mined again it is known as gas.
 */
export async function readInflows(
  sql: Sql,
  above: Height,
  limit: number,
): Promise<VanishedInflow[]> {
  const rows = await sql.query<{ idem_key: string; memo: string; height: string }>(
    // Late gas of former releases does not name its transaction.
    `SELECT e.idem_key, e.effective_height::text AS height,
            coalesce(e.memo, (SELECT s.mined_hash FROM treasury_move m
                                JOIN nonce_slot s ON s.withdrawal_id = m.withdrawal_id
                               WHERE e.idem_key = 'treasury-move:' || m.id || ':end'
                                 AND s.outcome = 'paid')) AS memo
       FROM journal_entry e
      WHERE e.kind IN ('wallet.inflow', 'deposit.surplus', 'deposit.past_outflow', 'sweep.out',
                       'sweep.in', 'sweep.top-up', 'sweep.short', 'treasury.return',
                       'treasury.late', '${REMINED}')
        AND e.effective_height > $1
        AND ${IS_NOT_REVERSED}
      ORDER BY e.id LIMIT $2`,
    [above, limit],
  );
  return rows.map((row) => ({
    idemKey: row.idem_key,
    memo: row.memo,
    txHash: storedHash(row.memo.split(" ")[0]),
    height: storedHeight(row.height),
  }));
}
