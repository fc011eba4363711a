/**
 * Which transactions are behind a break. They are looked for from the block on in which it begins, a bounded
 * number of them: how much a wallet ever did has no bound, and the break itself was told before.
 */
import { type Address, toChecksumAddress } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { DEPOSIT_ADDRESSES, NATIVE_ASSET } from "../journal/accounts.js";
import { memoHash } from "../journal/journal.js";
import { storedAtoken, storedHash, storedHeight } from "../stored-values.js";
import { bisectBreaks, type BreakPlace } from "./break-bisection.js";
import {
  type AddressBreak,
  type BreakCause,
  type ChainMovement,
  faultOfChain,
  type HeightRange,
  type ReconcileChain,
  type ReconcileReport,
} from "./reconcile.js";
import { ADDRESS_ENTRIES, MAX_LISTED } from "./reconcile-books.js";

/** Where one address' break begins, and by what. */
export interface Divergence {
  readonly asset: string;
  readonly account: string;
  readonly address: Address;
  /** The first block after which they differ; undefined when they did before the first watched one. */
  readonly height: Height | undefined;
  /** Transactions of that block whose effects differ. */
  readonly causes: readonly BreakCause[];
  /** Why the node does not tell where. */
  readonly untold?: string;
}

/** A report with the causes of its breaks, and where each begins. */
export interface ExplainedReport {
  readonly report: ReconcileReport;
  readonly divergences: readonly Divergence[];
}

/**
 * Movements of an address that are looked through on either side: some hundred megabytes of memory, and a
 * hundred answers of the node. Whoever reads the causes wants the first ones.
 */
const MAX_MOVEMENTS = 100_000;

/** Answers of the node for one address: one may have next to nothing in it. */
const MAX_ANSWERS = 100;

/**
 * Looks for where each break of a report begins, then for the transactions from there on. It takes a while:
 * tell what is broken first.
 * @throws faults of the database; what the node does not tell is said in the answer
 */
export async function explainBreaks(
  sql: Sql,
  chain: Pick<ReconcileChain, "balances" | "tokenBalances" | "movements" | "tokenMovements">,
  report: ReconcileReport,
): Promise<ExplainedReport> {
  const places = await bisectBreaks(sql, chain, report);
  const explained = new Map<AddressBreak, AddressBreak>();
  const divergences: Divergence[] = [];
  for (const place of places) {
    const { asset, account, found, height, untold } = place;
    const known = await explainBreak(sql, chain, { place, to: report.height });
    explained.set(found, known);
    const causes = known.causes.filter((cause) => placeOf(cause) === height);
    divergences.push({
      asset,
      account,
      address: found.address,
      height,
      causes: height === undefined ? [] : causes,
      ...(untold === undefined ? {} : { untold }),
    });
  }
  const withCauses = <T extends Pick<ReconcileReport, "lines">>(part: T): T => ({
    ...part,
    lines: part.lines.map((line) => ({
      ...line,
      breaks: line.breaks.map((found) => explained.get(found) ?? found),
    })),
  });
  const tokens = report.tokens.map(withCauses);
  return { report: { ...withCauses(report), tokens }, divergences };
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

/** Block in which a cause makes both sides differ: the chain's, or the one that the books say. */
function placeOf({ height, bookedHeight }: BreakCause): Height | undefined {
  return height ?? bookedHeight;
}

type MovementsOf = Pick<ReconcileChain, "movements" | "tokenMovements">;

async function explainBreak(
  sql: Sql,
  chain: MovementsOf,
  { place, to }: { readonly place: BreakPlace; readonly to: Height },
): Promise<AddressBreak> {
  const { contract, found } = place;
  const range = { from: place.height ?? place.fromHeight, to };
  try {
    const movements =
      contract === undefined
        ? chain.movements(found.address, range)
        : chain.tokenMovements(contract, found.address, range);
    const { causes, upTo } = await findCauses(sql, { movements, place, range });
    const moreCauses = Math.max(0, causes.length - MAX_LISTED);
    const cut = upTo < to ? { lookedUpTo: upTo } : {};
    return { ...found, causes: causes.slice(0, MAX_LISTED), moreCauses, ...cut };
  } catch (error) {
    return { ...found, unexplained: faultOfChain(error) };
  }
}

/** Finds the transactions whose effect differs between the chain and the books. */
async function findCauses(
  sql: Sql,
  asked: {
    readonly movements: ReturnType<MovementsOf["movements"]>;
    readonly place: BreakPlace;
    readonly range: HeightRange;
  },
): Promise<{ readonly causes: readonly BreakCause[]; readonly upTo: Height }> {
  const { place, range } = asked;
  const moved = await readMoved(asked.movements, range.to);
  // What differed before the first block may be an entry of an older one.
  const from = place.height ?? 0;
  const told = await bookedByTransaction(sql, place, { from, to: moved.upTo });
  const { upTo } = told;
  const booked = new Map<Hash32, { readonly units: bigint; readonly height: Height }>(
    told.byTransaction,
  );
  for (const { txHash, height, units } of place.mined) {
    // Settled between the snapshot and now: the books have it already.
    if (height < from || height > upTo || booked.has(txHash)) continue;
    booked.set(txHash, { units, height });
  }
  const onChain = new Map<Hash32, ChainMovement>();
  for (const movement of moved.movements) {
    if (movement.height > upTo) break;
    const { txHash, height, deltaUnits } = movement;
    const sum = onChain.get(txHash)?.deltaUnits ?? 0n;
    onChain.set(txHash, { txHash, height, deltaUnits: sum + deltaUnits });
  }
  const causes: BreakCause[] = [];
  for (const { txHash, height, deltaUnits: chainUnits } of onChain.values()) {
    const ledgerUnits = booked.get(txHash)?.units ?? 0n;
    if (chainUnits !== ledgerUnits) causes.push({ txHash, height, chainUnits, ledgerUnits });
  }
  for (const [txHash, { units: ledgerUnits, height: bookedHeight }] of booked) {
    if (onChain.has(txHash) || ledgerUnits === 0n) continue;
    causes.push({ txHash, height: undefined, bookedHeight, chainUnits: 0n, ledgerUnits });
  }
  // Sorting is stable: those of one block stay in the chain's order.
  causes.sort((one, other) => (placeOf(one) ?? 0) - (placeOf(other) ?? 0));
  return { causes, upTo };
}

/** What the chain tells, up to a block behind which nothing was read. */
async function readMoved(
  parts: ReturnType<MovementsOf["movements"]>,
  to: Height,
): Promise<{ readonly movements: readonly ChainMovement[]; readonly upTo: Height }> {
  const movements: ChainMovement[] = [];
  let [answers, upTo] = [0, to];
  for await (const part of parts) {
    for (const movement of part.movements) movements.push(movement);
    answers += 1;
    upTo = part.upTo;
    if (movements.length >= MAX_MOVEMENTS || answers >= MAX_ANSWERS) break;
  }
  return { movements, upTo };
}

/** What a transaction moved at an address, as the books have it. */
interface BookedMovement {
  readonly units: bigint;
  /** First block of its entries. */
  readonly height: Height;
}

/** Net movement of an asset at an address per transaction, up to a block behind which nothing was read. */
async function bookedByTransaction(
  sql: Sql,
  { accounts, asset, found }: Pick<BreakPlace, "accounts" | "asset" | "found">,
  { from, to }: HeightRange,
): Promise<{ readonly byTransaction: ReadonlyMap<Hash32, BookedMovement>; readonly upTo: Height }> {
  const rows = await sql.query<Record<"tx_hash" | "delta" | "height", string>>(
    accounts === undefined ? DEPOSIT_ADDRESS_BY_TRANSACTION : HOT_WALLET_BY_TRANSACTION,
    accounts === undefined
      ? [DEPOSIT_ADDRESSES, from, to, asset, MAX_MOVEMENTS + 1, found.address]
      : [accounts, from, to, asset, MAX_MOVEMENTS + 1],
  );
  // Of the block of the first one that is too many there may be others, too.
  const cut = rows[MAX_MOVEMENTS];
  const upTo = cut === undefined ? to : storedHeight(cut.height) - 1;
  const byTransaction = new Map(
    rows.flatMap(({ tx_hash: hash, delta, height: first }) => {
      const height = storedHeight(first);
      return height > upTo ? [] : [[storedHash(hash), { units: storedAtoken(delta), height }]];
    }),
  );
  return { byTransaction, upTo };
}

/** SQL: the first ones of movements in the blocks from $2 to $3, by their transactions. */
const byTransaction = (movements: string) => `
  SELECT tx_hash, sum(delta)::text AS delta, min(height)::text AS height
    FROM (${movements}) AS movement
   WHERE tx_hash IS NOT NULL AND height BETWEEN $2 AND $3
   GROUP BY tx_hash ORDER BY min(height), tx_hash LIMIT $5`;

/** Inflows carry the hash as memo; a withdrawal's ending belongs to its slot's mined hash. */
const HOT_WALLET_BY_TRANSACTION = byTransaction(`
  SELECT coalesce(slot.mined_hash, ${memoHash("entry")}) AS tx_hash,
         entry.effective_height AS height,
         CASE WHEN posting.debit = ANY ($1::text[]) THEN amount_units ELSE -amount_units END AS delta
    FROM posting
    JOIN journal_entry entry ON entry.id = posting.journal_id
    LEFT JOIN nonce_slot slot ON entry.idem_key = 'withdrawal:' || slot.withdrawal_id || ':end'
          AND slot.outcome IN ('paid', 'reverted', 'cancelled')
   WHERE (posting.debit = ANY ($1::text[]) OR posting.credit = ANY ($1::text[]))
     AND posting.asset = $4`);

const DEPOSIT_ADDRESS_BY_TRANSACTION = byTransaction(`
  SELECT tx_hash, amount_units AS delta, height FROM deposit
   WHERE address = $6 AND status <> 'reversed' AND asset = $4
  UNION ALL
  SELECT tx_hash, delta, effective_height FROM (${ADDRESS_ENTRIES}) AS entries
   WHERE address = $6 AND asset = $4`);
