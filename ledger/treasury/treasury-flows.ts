/**
 * What blocks show of the exchange's own movements, booked by the watcher before it asks whose the
 * rest is: coins of deposit addresses that arrive at hot wallets, gas that hot wallets gave to deposit
 * addresses, what comes back from cold storage.
 */
import type { Address } from "../../chain/address.js";
import { type Hash32, type Height, MAX_WORD } from "../../chain/hex.js";
import type { Sql } from "../../runtime/sql/sql.js";
import {
  type AccountCode,
  BREAK,
  COLD_STORAGE,
  DEPOSIT_ADDRESSES,
  IN_TRANSIT,
  NATIVE_ASSET,
  NETWORK_FEE,
  SUSPENSE,
  walletAccount,
} from "../journal/accounts.js";
import { lossSuffix, walletInflowKey } from "../journal/entry-keys.js";
import { type JournalEntry, type Posting, postJournals } from "../journal/journal.js";
import type { Outflow, WalletInflow } from "../watch/flows.js";
import { storedAddress, storedHash, storedInteger } from "../stored-values.js";
import { TOP_UP_KEY } from "../requests/lost-gas.js";
import { SWEEP_OUT_KEY } from "../assets/lost-sweeps.js";
import { lookAgain } from "../assets/sweep-due.js";
import { IS_IN_TRANSIT } from "./stranded-moves.js";
import { readTopUps } from "./top-ups.js";

/** Entries of `bookTreasuryFlows` that move single deposit addresses; see `ADDRESS_ENTRIES`. */
export const SWEEP_OUT = "sweep.out";

/** See `SWEEP_OUT`. */
export const TOP_UP = "sweep.top-up";

/** Entries of hot wallets. */
const SWEEP_IN = "sweep.in";
const COLD_RETURN = "treasury.return";

/** An address is left alone so long after a sweep that brought nothing. */
const FAILED_DELAY_MS = 3_600_000;

/** Coins that arrived at a deposit address, as far as this page needs to know. */
interface Arrival {
  readonly address: Address;
  readonly asset: string;
  readonly amountUnits: bigint;
  readonly height: Height;
  readonly txHash: Hash32;
}

/** Flows of a run of blocks. */
export interface Flows<Deposit extends Arrival> {
  readonly walletInflows: readonly WalletInflow[];
  readonly outflows: readonly Outflow[];
  readonly deposits: readonly Deposit[];
  /** How often the chain came back without blocks: places are told apart by it. */
  readonly rewinds: number;
}

/** What one transaction took from deposit addresses and brought to hot wallets. */
interface Moved {
  /** Outflows of deposit addresses. */
  readonly leaving: Outflow[];
  readonly leftUnits: Map<string, bigint>;
  readonly cameUnits: Map<string, bigint>;
}

/**
 * Books them. A transaction that takes from our deposit addresses exactly what it brings to our hot
 * wallets is a sweep, whoever asked for it: so a ledger from a backup explains its lost sweeps. Of any
 * other only what it took of the address that it was signed for is ours.
 * @returns the flows that are others'
 */
export async function bookTreasuryFlows<Deposit extends Arrival>(
  tx: Sql,
  flows: Flows<Deposit>,
): Promise<Pick<Flows<Deposit>, "walletInflows" | "outflows" | "deposits">> {
  const { outflows, deposits } = flows;
  const topUps = await readTopUps(tx, deposits);
  await bookTopUps(tx, topUps, flows.rewinds);
  const left = await bookSweeps(tx, flows);
  const walletInflows = await bookReturns(tx, left, flows.rewinds);
  const swept = new Set(left.swept);
  return {
    walletInflows,
    outflows: outflows.filter((outflow) => !swept.has(outflow)),
    deposits: deposits.filter((deposit) => !topUps.has(deposit)),
  };
}

async function bookTopUps(
  tx: Sql,
  topUps: ReadonlyMap<Arrival, { readonly id: number }>,
  rewinds: number,
): Promise<void> {
  if (topUps.size === 0) return;
  await postJournals(
    tx,
    [...topUps].map(([{ address, amountUnits, height, txHash }, { id }]) => ({
      kind: TOP_UP,
      idemKey: `${TOP_UP_KEY}${id}${lossSuffix(rewinds)}`,
      effectiveHeight: height,
      memo: `${txHash} ${address}`,
      postings: [
        { asset: NATIVE_ASSET, debit: DEPOSIT_ADDRESSES, credit: IN_TRANSIT, amountUnits },
      ],
    })),
  );
  await tx.query(
    `UPDATE treasury_move m SET state = 'arrived' WHERE id = ANY ($1::bigint[]) AND ${IS_IN_TRANSIT}`,
    [[...topUps.values()].map(({ id }) => id)],
  );
}

/**
 * Marks deposits that our own hot wallets paid and that no withdrawal of the ledger asked for: a ledger
 * that came back older has lost who asked. It may be gas for a sweep, which is nobody's deposit, so a
 * person decides.
 */
export async function withoutLostPayments<
  Deposit extends Arrival & { readonly creditable: boolean },
>(
  tx: Sql,
  { outflows, deposits }: Pick<Flows<Deposit>, "outflows" | "deposits">,
): Promise<readonly Deposit[]> {
  const paid = new Set(
    outflows.filter(({ role }) => role === "hot-wallet").map(({ txHash }) => txHash),
  );
  const hashes = [...new Set(deposits.map(({ txHash }) => txHash))].filter((hash) =>
    paid.has(hash),
  );
  if (hashes.length === 0) return deposits;
  const rows = await tx.query<{ hash: string }>(
    `SELECT hash FROM unnest($1::text[]) AS asked (hash)
      WHERE NOT EXISTS (SELECT 1 FROM withdrawal_attempt a WHERE a.hash = asked.hash)`,
    [hashes],
  );
  const lost = new Set(rows.map(({ hash }) => storedHash(hash)));
  return deposits.map((deposit) =>
    lost.has(deposit.txHash) ? { ...deposit, creditable: false } : deposit,
  );
}

interface Left {
  readonly walletInflows: readonly WalletInflow[];
  readonly swept: readonly Outflow[];
}

async function bookSweeps<Deposit extends Arrival>(tx: Sql, flows: Flows<Deposit>): Promise<Left> {
  const { walletInflows, rewinds } = flows;
  const leaving = flows.outflows.filter(({ role }) => role === "deposit-address");
  if (leaving.length === 0) return { walletInflows, swept: [] };
  const whole = movedBy(leaving, walletInflows);
  const sweeps = await readSweepsBy(tx, [...whole.keys()]);
  const own = leaving.filter(({ txHash, wallet }) => {
    // A sweep explains nothing of another address, of which its transaction may take tokens.
    return isEven(whole.get(txHash)) || sweeps.get(txHash)?.address === wallet;
  });
  const moved = movedBy(own, walletInflows);
  const entries: JournalEntry[] = [];
  for (const [hash, { leaving: rows }] of moved) {
    for (const address of new Set(rows.map(({ wallet }) => wallet))) {
      const ofAddress = rows.filter(({ wallet }) => wallet === address);
      entries.push(outEntry(hash, address, ofAddress, rewinds));
    }
  }
  const others: WalletInflow[] = [];
  const openUnits = new Map<string, bigint>();
  for (const [hash, { leftUnits }] of moved) {
    for (const [asset, units] of leftUnits) openUnits.set(`${hash} ${asset}`, units);
  }
  for (const inflow of walletInflows) {
    const key = `${inflow.txHash} ${inflow.asset}`;
    const open = openUnits.get(key) ?? 0n;
    const ours = open < inflow.amountUnits ? open : inflow.amountUnits;
    if (ours === 0n) others.push(inflow);
    else entries.push(inEntry(inflow, ours, rewinds));
    openUnits.set(key, open - ours);
  }
  entries.push(...shortEntries(moved, openUnits, rewinds));
  await postJournals(tx, entries);
  await endSweeps(tx, moved, sweeps);
  return { walletInflows: others, swept: [...moved.values()].flatMap((one) => one.leaving) };
}

function movedBy(
  leaving: readonly Outflow[],
  walletInflows: readonly WalletInflow[],
): Map<Hash32, Moved> {
  const moved = new Map<Hash32, Moved>();
  for (const outflow of leaving) {
    const { txHash, asset, amountUnits } = outflow;
    const known = moved.get(txHash) ?? {
      leaving: [],
      leftUnits: new Map<string, bigint>(),
      cameUnits: new Map<string, bigint>(),
    };
    known.leaving.push(outflow);
    known.leftUnits.set(asset, (known.leftUnits.get(asset) ?? 0n) + amountUnits);
    moved.set(txHash, known);
  }
  for (const { txHash, asset, amountUnits } of walletInflows) {
    const came = moved.get(txHash)?.cameUnits;
    came?.set(asset, (came.get(asset) ?? 0n) + amountUnits);
  }
  return moved;
}

/** Everything that left came to us, and something did. */
function isEven(moved: Moved | undefined): boolean {
  if (moved === undefined) return false;
  const { leftUnits, cameUnits } = moved;
  const left = [...leftUnits].filter(([, units]) => units > 0n);
  return left.length > 0 && left.every(([asset, units]) => cameUnits.get(asset) === units);
}

/** Sweeps by their transactions. */
type SweepsBy = ReadonlyMap<Hash32, { readonly id: number; readonly address: Address }>;

async function readSweepsBy(tx: Sql, hashes: readonly Hash32[]): Promise<SweepsBy> {
  const rows = await tx.query<Record<"hash" | "id" | "address", string>>(
    `SELECT t.hash, s.id::text, s.address
       FROM sweep_attempt t JOIN sweep s ON s.id = t.sweep_id WHERE t.hash = ANY ($1::text[])`,
    [hashes],
  );
  return new Map(
    rows.map(({ hash, id, address }) => [
      storedHash(hash),
      { id: storedInteger(id), address: storedAddress(address) },
    ]),
  );
}

function outEntry(
  hash: Hash32,
  address: Address,
  rows: readonly Outflow[],
  rewinds: number,
): JournalEntry {
  const credit = DEPOSIT_ADDRESSES;
  const postings = rows.flatMap(({ asset, amountUnits, feeAtoken }): Posting[] => [
    { asset, debit: IN_TRANSIT, credit, amountUnits },
    { asset: NATIVE_ASSET, debit: NETWORK_FEE, credit, amountUnits: feeAtoken },
  ]);
  return {
    kind: SWEEP_OUT,
    idemKey: `${SWEEP_OUT_KEY}${hash}:${address}${lossSuffix(rewinds)}`,
    effectiveHeight: rows[0]?.height ?? null,
    memo: `${hash} ${address}`,
    postings: postings.filter(({ amountUnits }) => amountUnits > 0n),
  };
}

/** What came beyond what left is nobody's yet. */
function inEntry(inflow: WalletInflow, ours: bigint, rewinds: number): JournalEntry {
  const { asset, wallet, amountUnits } = inflow;
  const debit = walletAccount(wallet);
  const parts: readonly (readonly [AccountCode, bigint])[] = [
    [IN_TRANSIT, ours],
    [SUSPENSE, amountUnits - ours],
  ];
  return {
    ...inflowEntry(inflow, SWEEP_IN, rewinds),
    postings: parts.flatMap(([credit, units]) =>
      units > 0n ? [{ asset, debit, credit, amountUnits: units }] : [],
    ),
  };
}

function inflowEntry(
  inflow: WalletInflow,
  kind: string,
  rewinds: number,
): Omit<JournalEntry, "postings"> {
  return {
    kind,
    idemKey: walletInflowKey(inflow, rewinds),
    effectiveHeight: inflow.height,
    memo: inflow.txHash,
  };
}

/** A token that keeps a part of what it moves: gone, and said so. */
function shortEntries(
  moved: ReadonlyMap<Hash32, Moved>,
  openUnits: ReadonlyMap<string, bigint>,
  rewinds: number,
): JournalEntry[] {
  return [...moved].flatMap(([hash, { leaving, leftUnits }]) =>
    [...leftUnits.keys()].flatMap((asset) => {
      const amountUnits = openUnits.get(`${hash} ${asset}`) ?? 0n;
      if (amountUnits === 0n) return [];
      return [
        {
          kind: "sweep.short",
          idemKey: `sweep-short:${hash}:${asset}${lossSuffix(rewinds)}`,
          effectiveHeight: leaving[0]?.height ?? null,
          memo: hash,
          postings: inParts(amountUnits).map((part) => {
            return { asset, debit: BREAK, credit: IN_TRANSIT, amountUnits: part };
          }),
        },
      ];
    }),
  );
}

/**
 * A posting holds a word, all that there can be of a token, and one may log that each of several addresses
 * gave as much.
 */
function inParts(units: bigint): readonly bigint[] {
  if (units <= MAX_WORD) return [units];
  return [MAX_WORD, ...inParts(units - MAX_WORD)];
}

async function endSweeps(
  tx: Sql,
  moved: ReadonlyMap<Hash32, Moved>,
  sweeps: SweepsBy,
): Promise<void> {
  const ends = [...sweeps].flatMap(([hash, { id }]) => {
    const one = moved.get(hash);
    return one === undefined ? [] : [{ id, hash, ...endOf(one) }];
  });
  await endMined(tx, ends);
}

/** How a sweep ended, and by which of its transactions. */
interface SweepEnd {
  readonly id: number;
  readonly hash: Hash32;
  readonly height: Height;
  readonly state: string;
  readonly reason: string | undefined;
}

/** Ends those of the sweeps that are open, in the commit that books their blocks or behind it. */
export async function endMined(tx: Sql, ends: readonly SweepEnd[]): Promise<void> {
  if (ends.length === 0) return;
  const rows = await tx.query<{ id: string; state: string }>(
    `WITH input AS (
       SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[])
              AS input (id, state, reason, hash, height)
     ), open AS (
       SELECT s.id FROM sweep s JOIN input ON input.id = s.id
        WHERE s.state IN ('signed', 'sent', 'frozen') ORDER BY s.id FOR UPDATE OF s
     ), ended AS (
       UPDATE sweep s SET state = input.state, reason = input.reason, mined_hash = input.hash,
              block_number = input.height, rewinds = (SELECT rewinds FROM watch_cursor)
         FROM input JOIN open ON open.id = input.id
        WHERE s.id = input.id
       RETURNING s.id, s.state)
     SELECT id::text, state FROM ended`,
    [
      ends.map(({ id }) => id),
      ends.map(({ state }) => state),
      ends.map(({ reason }) => reason ?? null),
      ends.map(({ hash }) => hash),
      ends.map(({ height }) => height),
    ],
  );
  const failed = rows.filter(({ state }) => state === "failed").map(({ id }) => storedInteger(id));
  if (failed.length > 0) await lookAgain(tx, failed, FAILED_DELAY_MS);
}

function endOf({ leaving, leftUnits, cameUnits }: Moved) {
  const height = leaving[0]?.height ?? 0;
  const left = [...leftUnits].filter(([, units]) => units > 0n);
  if (left.length === 0) return unmovedAt(height);
  const short = left.find(([asset, units]) => (cameUnits.get(asset) ?? 0n) < units);
  if (short === undefined) return { state: "settled", reason: undefined, height };
  const [asset, units] = short;
  const reason = `${cameUnits.get(asset) ?? 0n} of ${units} units of ${asset} arrived`;
  return { state: "failed", reason, height };
}

/** The end of a sweep that was mined in a block, and moved nothing. */
export function unmovedAt(height: Height) {
  return { state: "failed", reason: "it was mined and moved nothing", height };
}

/** Coins of cold storage that a person sent to a hot wallet. @returns the inflows that are others' */
async function bookReturns(
  tx: Sql,
  { walletInflows }: Left,
  rewinds: number,
): Promise<readonly WalletInflow[]> {
  const sent = walletInflows.filter(({ sender, height }) => sender !== undefined && height > 0);
  if (sent.length === 0) return walletInflows;
  const rows = await tx.query<{ asset: string; address: string }>(
    `SELECT asset, address FROM cold_address c WHERE address = ANY ($1::text[])
        -- One that became ours is no cold storage any more: what leaves it is booked there.
        AND NOT EXISTS (SELECT 1 FROM wallet w WHERE w.address = c.address)
        AND NOT EXISTS (SELECT 1 FROM deposit_address d WHERE d.address = c.address)`,
    [sent.map(({ sender }) => sender)],
  );
  const cold = new Set(rows.map(({ asset, address }) => `${asset} ${address}`));
  const returns = sent.filter(({ asset, sender }) => cold.has(`${asset} ${sender}`));
  if (returns.length === 0) return walletInflows;
  await postJournals(
    tx,
    returns.map((inflow) => ({
      ...inflowEntry(inflow, COLD_RETURN, rewinds),
      postings: [
        {
          asset: inflow.asset,
          debit: walletAccount(inflow.wallet),
          credit: COLD_STORAGE,
          amountUnits: inflow.amountUnits,
        },
      ],
    })),
  );
  await tx.query(
    `UPDATE refill_request r
        -- Of a token whose contract lies to several wallets more may come than there can be.
        SET came_units = least(r.came_units + input.units, $4::numeric),
            -- Behind the entries: what is lost later is told by it from what came when none was open.
            changed_at = clock_timestamp(),
            state = CASE WHEN r.came_units + input.units >= r.amount_units THEN 'filled'
                         ELSE 'open' END
       -- What comes to another wallet than the one named is weighed by who asks, with all that is there.
       FROM (SELECT o.id, o.wallet, sum(came.units) AS units
               FROM unnest($1::text[], $2::text[], $3::numeric[]) AS came (asset, wallet, units)
               JOIN refill_request o ON o.asset = came.asset AND o.state = 'open'
                AND (o.wallet IS NULL OR o.wallet = came.wallet)
              GROUP BY o.id) AS input
      WHERE r.id = input.id AND r.state = 'open' AND r.wallet IS NOT DISTINCT FROM input.wallet`,
    [
      returns.map(({ asset }) => asset),
      returns.map(({ wallet }) => wallet),
      returns.map(({ amountUnits }) => amountUnits.toString()),
      MAX_WORD.toString(),
    ],
  );
  const isReturn = new Set(returns);
  return walletInflows.filter((inflow) => !isReturn.has(inflow));
}

/**
 * Coins of cold storage that a chain has lost fill nothing: the requests that had counted them ask for
 * them again. Of an asset one can be open: the newest, which the older ones' coins fill, too.
 * @param idemKeys entries that are reversed, of whichever kind
 */
export async function emptyRefills(tx: Sql, idemKeys: readonly string[]): Promise<void> {
  if (idemKeys.length === 0) return;
  await tx.query(
    `WITH lost AS (
       SELECT r.id, sum(p.amount_units) AS units
         FROM journal_entry e
         JOIN posting p ON p.journal_id = e.id
        CROSS JOIN LATERAL (
                SELECT id, wallet FROM refill_request r
                 WHERE r.asset = p.asset AND r.created_at <= e.posted_at
                   AND (r.state = 'open' OR r.state = 'filled' AND r.changed_at >= e.posted_at)
                 ORDER BY id LIMIT 1) AS r
        WHERE e.idem_key = ANY ($1::text[]) AND e.kind = '${COLD_RETURN}'
          AND (r.wallet IS NULL OR p.debit = 'asset:wallet:' || r.wallet)
        GROUP BY r.id)
     UPDATE refill_request r
        SET came_units = greatest(0, r.came_units - lost.units), changed_at = clock_timestamp(),
            state = 'open'
       FROM lost
      WHERE r.id = lost.id
        AND NOT EXISTS (SELECT 1 FROM refill_request later
                         WHERE later.asset = r.asset AND later.id > r.id
                           AND (later.state = 'open' OR later.id IN (SELECT id FROM lost)))`,
    [idemKeys],
  );
}

/**
 * The chain came back without the blocks above `height`: that the wallets were seen there to have enough
 * says nothing any more, and a request that is needless does not wait for such a block.
 */
export async function forgetEnoughAbove(tx: Sql, height: Height): Promise<void> {
  await tx.query(
    `UPDATE refill_request SET enough_height = NULL WHERE state = 'open' AND enough_height > $1`,
    [height],
  );
}
