/**
 * Nonce slots and signed attempts. Taking a slot and changing the withdrawal's state is one
 * commit; a nonce is never recycled; the bytes are stored before they leave.
 */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height, Hex } from "../../chain/hex.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { appendEvents, type NewEvent } from "../events.js";
import { freezeRecovered } from "../recovery/recovered-payments.js";
import { lockFreeze } from "./signing-freeze.js";
import { storedAtoken, storedInteger } from "../stored-values.js";
import { lockWallet, type WalletLease } from "./wallet-lease.js";
import { stepWithdrawals } from "./withdrawal-steps.js";
import { type LiveSlot, SELECT_LIVE_SLOT, type SlotRow, toLiveSlot } from "./slot-rows.js";
import type { WithdrawalStatus } from "./withdrawal-status.js";
import { toWithdrawalId, type WithdrawalId } from "./withdrawals.js";

/** A withdrawal that is ready for a nonce, with the gas it will be signed with. */
export interface SlotCandidate {
  readonly id: WithdrawalId;
  readonly amountAtoken: bigint;
  readonly gasLimit: bigint;
  readonly gasPriceAtoken: bigint;
}

/** What the slots are counted against. */
export interface SlotBudget {
  /** The wallet's balance on the chain ... */
  readonly balanceAtoken: bigint;
  /** ... after this block. */
  readonly balanceHeight: Height;
  /** Most slots that may be open at once. */
  readonly maxLiveSlots: number;
}

/**
 * Why not all candidates got a slot: signing is frozen; the balance does not cover all open slots
 * and this one; too many are open; the balance was read at a block older than what is settled.
 */
export type SlotLimit = "frozen" | "reserve" | "window" | "stale-balance";

/** Result of taking slots. */
export interface TakenSlots {
  readonly taken: readonly WithdrawalId[];
  readonly limit: SlotLimit | undefined;
  /** Candidates that wait because the reserve does not cover them. */
  readonly uncovered: readonly WithdrawalId[];
}

/** A signed transaction to be stored for a slot. */
export interface NewAttempt {
  readonly slotId: string;
  readonly withdrawalId: WithdrawalId;
  /** 0 for the first; one more for each correction. */
  readonly n: number;
  readonly raw: Hex;
  readonly hash: Hash32;
  readonly gasLimit: bigint;
  readonly gasPriceAtoken: bigint;
  readonly valueAtoken: bigint;
}

/** Which open slots to read, in nonce order. */
export interface SlotQuery {
  readonly wallet: Address;
  readonly statuses: readonly WithdrawalStatus[];
  /** Only nonces from here on. */
  readonly fromNonce?: bigint;
  /** Only nonces below this one. */
  readonly belowNonce?: bigint;
  readonly limit: number;
}

/**
 * Gives nonces to candidates in the order of their requests, as many as the reserve, the window
 * and the switch allow. A candidate that the reserve does not cover waits; a smaller one behind it
 * may go first.
 * @throws LEASE_LOST
 */
export function takeSlots(
  database: SqlDatabase,
  lease: WalletLease,
  candidates: readonly SlotCandidate[],
  budget: SlotBudget,
): Promise<TakenSlots> {
  return database.transaction(async (tx) => {
    const wallet = await lockWallet(tx, lease);
    if ((await lockFreeze(tx, lease.wallet)).frozen) return noSlots("frozen");
    if (budget.balanceHeight < wallet.settledHeight) return noSlots("stale-balance");
    const open = await sumOpenSlots(tx, lease.wallet);
    const repeats = await freezeRecovered(
      tx,
      candidates.map(({ id }) => id),
    );
    const present = await lockAccepted(tx, candidates);
    const choice = chooseWithinBudget(present, open, budget);
    await writeSlots(tx, lease, choice.chosen, wallet.nextNonce, repeats.events);
    return {
      taken: choice.chosen.map(({ id }) => id),
      limit: choice.limit,
      uncovered: choice.uncovered,
    };
  });
}

/**
 * Stores signed transactions; the first one of a slot moves its withdrawal to `signed`. Nothing is
 * stored while signing is frozen. @returns false when it was frozen @throws LEASE_LOST
 */
export function storeAttempts(
  database: SqlDatabase,
  lease: WalletLease,
  attempts: readonly NewAttempt[],
): Promise<boolean> {
  return database.transaction(async (tx) => {
    await lockWallet(tx, lease);
    if ((await lockFreeze(tx, lease.wallet)).frozen) return false;
    await insertAttempts(tx, attempts);
    const first = attempts.filter(({ n }) => n === 0);
    const { events } = await stepWithdrawals(
      tx,
      "signed",
      first.map(({ withdrawalId, hash }) => ({ id: withdrawalId, data: { txHash: hash } })),
      ["slotted"],
    );
    await appendEvents(tx, events);
    return true;
  });
}

/** Open slots with their attempts, in nonce order. */
export async function readLiveSlots(sql: Sql, query: SlotQuery): Promise<LiveSlot[]> {
  const rows = await sql.query<SlotRow>(
    `${SELECT_LIVE_SLOT}
      WHERE s.outcome IS NULL AND s.wallet = $1 AND w.status = ANY ($2::text[])
        AND s.nonce >= $3::numeric AND ($4::numeric IS NULL OR s.nonce < $4)
      ORDER BY s.nonce LIMIT $5`,
    [
      query.wallet,
      query.statuses,
      (query.fromNonce ?? 0n).toString(),
      query.belowNonce?.toString() ?? null,
      query.limit,
    ],
  );
  return rows.map(toLiveSlot);
}

/** How many slots of a wallet are open, and what they may still take from it. */
export async function sumOpenSlots(
  sql: Sql,
  wallet: Address,
): Promise<{ readonly count: number; readonly reservedAtoken: bigint }> {
  const rows = await sql.query<{ count: string; reserved: string }>(
    `SELECT count(*)::text AS count, coalesce(sum(reserved_atoken), 0)::text AS reserved
       FROM nonce_slot WHERE wallet = $1 AND outcome IS NULL`,
    [wallet],
  );
  return {
    count: storedInteger(rows[0]?.count),
    reservedAtoken: storedAtoken(rows[0]?.reserved),
  };
}

/** Accepted withdrawals of a wallet that are due for a slot, oldest first. */
export async function readSlotQueue(
  sql: Sql,
  options: { readonly wallet: Address; readonly limit: number },
): Promise<
  { readonly id: WithdrawalId; readonly destination: string; readonly amountAtoken: bigint }[]
> {
  const rows = await sql.query<{ id: string; destination: string; amount_atoken: string }>(
    `SELECT id, destination, amount_atoken::text FROM withdrawal
      WHERE wallet = $1 AND status = 'accepted' AND next_try_at <= now()
      ORDER BY position LIMIT $2`,
    [options.wallet, options.limit],
  );
  return rows.map((row) => ({
    id: toWithdrawalId(row.id),
    destination: row.destination,
    amountAtoken: storedAtoken(row.amount_atoken),
  }));
}

function noSlots(limit: SlotLimit): TakenSlots {
  return { taken: [], limit, uncovered: [] };
}

/** Locks the candidates that still wait, in the order of their requests. */
async function lockAccepted(
  tx: Sql,
  candidates: readonly SlotCandidate[],
): Promise<SlotCandidate[]> {
  const rows = await tx.query<{ id: string }>(
    `SELECT id FROM withdrawal WHERE id = ANY ($1::text[]) AND status = 'accepted'
      ORDER BY position FOR UPDATE`,
    [candidates.map(({ id }) => id)],
  );
  const byId = new Map<string, SlotCandidate>(candidates.map((entry) => [entry.id, entry]));
  return rows.flatMap(({ id }) => byId.get(id) ?? []);
}

/** Value and the most that the gas can cost. */
function reserveOf(candidate: {
  readonly amountAtoken: bigint;
  readonly gasLimit: bigint;
  readonly gasPriceAtoken: bigint;
}): bigint {
  return candidate.amountAtoken + candidate.gasLimit * candidate.gasPriceAtoken;
}

function chooseWithinBudget(
  candidates: readonly SlotCandidate[],
  open: { readonly count: number; readonly reservedAtoken: bigint },
  budget: SlotBudget,
): { chosen: SlotCandidate[]; limit: SlotLimit | undefined; uncovered: WithdrawalId[] } {
  const chosen: SlotCandidate[] = [];
  const uncovered: WithdrawalId[] = [];
  let freeAtoken = budget.balanceAtoken - open.reservedAtoken;
  for (const candidate of candidates) {
    if (open.count + chosen.length >= budget.maxLiveSlots) {
      return { chosen, limit: "window", uncovered };
    }
    const neededAtoken = reserveOf(candidate);
    if (neededAtoken > freeAtoken) {
      uncovered.push(candidate.id);
      continue;
    }
    freeAtoken -= neededAtoken;
    chosen.push(candidate);
  }
  return { chosen, limit: uncovered.length > 0 ? "reserve" : undefined, uncovered };
}

async function writeSlots(
  tx: Sql,
  lease: WalletLease,
  chosen: readonly SlotCandidate[],
  firstNonce: bigint,
  earlier: readonly NewEvent[],
): Promise<void> {
  if (chosen.length === 0) return void (await appendEvents(tx, earlier));
  const nonces = chosen.map((_, index) => (firstNonce + BigInt(index)).toString());
  await tx.query(`UPDATE hot_wallet SET next_nonce = $2::numeric WHERE wallet = $1`, [
    lease.wallet,
    (firstNonce + BigInt(chosen.length)).toString(),
  ]);
  await tx.query(
    `INSERT INTO nonce_slot (wallet, nonce, withdrawal_id, gas_limit, gas_price_atoken,
       reserved_atoken)
     SELECT $1, nonce, id, gas_limit, price, reserved
       FROM unnest($2::numeric[], $3::text[], $4::numeric[], $5::numeric[], $6::numeric[])
            AS input (nonce, id, gas_limit, price, reserved)
      ORDER BY nonce`,
    [
      lease.wallet,
      nonces,
      chosen.map(({ id }) => id),
      chosen.map(({ gasLimit }) => gasLimit.toString()),
      chosen.map(({ gasPriceAtoken }) => gasPriceAtoken.toString()),
      chosen.map((candidate) => reserveOf(candidate).toString()),
    ],
  );
  const { events } = await stepWithdrawals(
    tx,
    "slotted",
    chosen.map(({ id }, index) => ({ id, data: { nonce: Number(nonces[index]) } })),
    ["accepted"],
  );
  await appendEvents(tx, [...earlier, ...events]);
}

/** Attempts of slots that have ended meanwhile are dropped; a stored attempt is never replaced. */
async function insertAttempts(tx: Sql, attempts: readonly NewAttempt[]): Promise<void> {
  const slotIds = attempts.map(({ slotId }) => slotId);
  await tx.query(
    `INSERT INTO withdrawal_attempt (slot_id, n, raw, hash, gas_limit, gas_price_atoken)
     SELECT input.slot_id, input.n, input.raw, input.hash, input.gas_limit, input.price
       FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::text[], $5::numeric[],
                   $6::numeric[]) AS input (slot_id, n, raw, hash, gas_limit, price)
       JOIN nonce_slot s ON s.id = input.slot_id AND s.outcome IS NULL
     ON CONFLICT (slot_id, n) DO NOTHING`,
    [
      slotIds,
      attempts.map(({ n }) => n),
      attempts.map(({ raw }) => raw),
      attempts.map(({ hash }) => hash),
      attempts.map(({ gasLimit }) => gasLimit.toString()),
      attempts.map(({ gasPriceAtoken }) => gasPriceAtoken.toString()),
    ],
  );
  const corrected = attempts.filter(({ n }) => n > 0);
  if (corrected.length === 0) return;
  await tx.query(
    `UPDATE nonce_slot s SET reserved_atoken = greatest(s.reserved_atoken, input.reserved)
       FROM unnest($1::bigint[], $2::numeric[]) AS input (id, reserved)
      WHERE s.id = input.id AND s.outcome IS NULL`,
    [
      corrected.map(({ slotId }) => slotId),
      corrected.map((attempt) =>
        reserveOf({ ...attempt, amountAtoken: attempt.valueAtoken }).toString(),
      ),
    ],
  );
}
