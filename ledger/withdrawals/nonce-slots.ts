/**
 * Nonce slots and signed attempts. Taking a slot and changing the withdrawal's state is one
 * commit; a nonce is never recycled; the bytes are stored before they leave.
 */
import type { Address } from "../../chain/address.js";
import type { Hash32, Hex } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { SqlError } from "../../runtime/sql/sql-errors.js";
import { appendEvents, type NewEvent } from "../events.js";
import type { HashedPolicy } from "../policy/policy.js";
import { activePolicyHash } from "../policy/policy-store.js";
import { judgeAtSlot, type SlotDecisions, writeAtSlot } from "../policy/stored-judgement.js";
import { freezeRecovered } from "../requests/recovered-payments.js";
import { NATIVE_ASSET } from "../journal/accounts.js";
import { valueOf } from "../requests/payment-terms.js";
import { type KnownNonces, lockFreeze, lostNonces } from "../requests/signing-freeze.js";
import { storedAddress, storedAtoken, storedInteger } from "../stored-values.js";
import {
  chooseSlots,
  feeOf,
  type OpenSlots,
  type SlotBudget,
  type SlotCandidate,
  type SlotChoice,
  type SlotLimit,
} from "./slot-choice.js";
import {
  feesOfDay,
  type HotWalletState,
  lockFeeBudget,
  lockWallet,
  type WalletLease,
} from "../wallets/wallet-lease.js";
import { walletStatus } from "../wallets/wallet.js";
import { stepWithdrawals } from "../requests/withdrawal-steps.js";
import {
  ADDRESS_INDEX,
  type AttemptKind,
  isReserving,
  type LiveSlot,
  SELECT_LIVE_SLOT,
  type SlotRow,
  toLiveSlot,
} from "./slot-rows.js";
import type { WithdrawalStatus } from "../requests/withdrawal-status.js";
import { toWithdrawalId, type WithdrawalId } from "../requests/withdrawal-id.js";

/** Result of taking slots: who got one, and who waits for what. */
export interface TakenSlots extends Omit<SlotChoice, "chosen" | "feesLeftAtoken"> {
  readonly taken: readonly WithdrawalId[];
  /** Absent where nobody has looked at fees. */
  readonly feesLeftAtoken?: Atoken;
  /** The wallet's next nonce behind them, in the ledger's epoch; absent where none could be taken. */
  readonly behind?: Pick<HotWalletState, "nextNonce" | "epoch" | "released">;
  /** Wait because the policy says so, each with the reason. */
  readonly held: SlotDecisions["waiting"];
}

/** What slots are taken by. */
interface SlotRules {
  readonly budget: SlotBudget;
  readonly policy: HashedPolicy;
  readonly shown?: KnownNonces;
  /** Throws where this is not the ledger that was told of: what was told to have ended is paid by none. */
  readonly assertStands?: (tx: Sql) => Promise<void>;
}

/** A signed transaction to be stored for a slot. */
export interface NewAttempt {
  readonly slotId: string;
  readonly withdrawalId: WithdrawalId;
  /** 0 for the first; one more for each that follows. */
  readonly n: number;
  readonly kind: AttemptKind;
  readonly raw: Hex;
  readonly hash: Hash32;
  readonly gasLimit: bigint;
  readonly gasPriceAtoken: Atoken;
  /** What it sends; zero for a cancelling transfer. */
  readonly valueAtoken: Atoken;
}

/** Which open slots to read, in nonce order. */
export interface SlotQuery {
  readonly wallet: Address;
  readonly statuses: readonly WithdrawalStatus[];
  /** Only nonces from here on. */
  readonly fromNonce?: bigint;
  /** Only nonces below this one. */
  readonly belowNonce?: bigint;
  /** Of those that were broadcast below this nonce, only the ones with more than one attempt. */
  readonly missingFrom?: bigint;
  readonly limit: number;
}

/**
 * Gives nonces to candidates, plain payments first, each kind in the order of its requests, as many
 * as the policy, the reserve, the window, the budget of fees and the switch allow. A candidate that
 * the reserve does not cover waits; a smaller one behind it may go first.
 * @param rules.shown next nonces of wallets that the caller was shown: one that is lower now was lost with
 *   its commit, and nobody gets any before the wallet has been looked at
 * @throws LEASE_LOST; RECOVERY by `assertStands`
 */
export function takeSlots(
  database: SqlDatabase,
  lease: WalletLease,
  candidates: readonly SlotCandidate[],
  rules: SlotRules,
): Promise<TakenSlots> {
  return database.transaction(async (tx) => {
    try {
      return await takeInside(tx, lease, { candidates, ...rules });
    } catch (error) {
      throw isRefusedByRule(error) ? readAnew(error) : error;
    }
  });
}

/** SQLSTATE of what a rule of the tables refuses. */
const RESTRICT_VIOLATION = "23001";

function isRefusedByRule(error: unknown): error is SqlError {
  return error instanceof SqlError && error.details["sqlState"] === RESTRICT_VIOLATION;
}

/**
 * The tables have the last word on each slot. What they refuse was read otherwise a moment before, where a
 * token was stopped in between, or an address became a wallet of ours: read again, such a request gets none.
 */
function readAnew(refusal: SqlError): SqlError {
  const { details, message } = refusal;
  return new SqlError("CONFLICT", message, { details, retriable: true, cause: refusal });
}

async function takeInside(
  tx: Sql,
  lease: WalletLease,
  wanted: { readonly candidates: readonly SlotCandidate[] } & SlotRules,
): Promise<TakenSlots> {
  const { candidates, budget, policy, shown = new Map(), assertStands } = wanted;
  const wallet = await lockWallet(tx, lease);
  const { frozen, behindElsewhere } = await lockFreeze(tx, lease.wallet);
  // What another wallet has paid behind this ledger's back may be asked for again.
  if (frozen || behindElsewhere !== undefined) return noSlots("frozen");
  if ((await lostNonces(tx, shown)) !== undefined) return noSlots("frozen");
  await assertStands?.(tx);
  // Behind the wallet's lock: who drains it holds that lock, too.
  if ((await walletStatus(tx, lease.wallet)) !== "active") return noSlots("not-active");
  if (budget.balanceHeight < wallet.settledHeight) return noSlots("stale-balance");
  if (await isOtherPolicy(tx, policy.hash)) return noSlots("other-policy");
  await lockFeeBudget(tx);
  const hasTokens = candidates.some(({ contract }) => contract !== undefined);
  const { nonce } = budget;
  const tokenUnits = hasTokens ? await sumOpenTokens(tx, lease.wallet, nonce) : undefined;
  const open = { ...(await sumOpenSlots(tx, lease.wallet, nonce)), tokenUnits };
  const repeats = await freezeRecovered(
    tx,
    candidates.map(({ id }) => id),
  );
  const present = await lockAccepted(tx, candidates);
  const ids = present.map(({ id }) => id);
  const judged = await judgeAtSlot(tx, { policy, wallet: lease.wallet }, ids);
  const allowed = present.filter(({ id }) => judged.allowed.has(id));
  const choice = chooseSlots(allowed, open, budget, await feesOfDay(tx), judged.room);
  const { events, waiting: held } = await writeAtSlot(tx, policy, judged);
  const earlier = [...repeats.events, ...events];
  await writeSlots(tx, lease, choice.chosen, wallet.nextNonce, earlier);
  const { chosen, ...rest } = choice;
  const taken = chosen.map(({ id }) => id);
  const nextNonce = wallet.nextNonce + BigInt(taken.length);
  const behind = { nextNonce, epoch: wallet.epoch, released: wallet.released };
  return { taken, behind, ...rest, held };
}

/** Since this worker asked which one is in force: what another one forbids by now is not paid here. */
async function isOtherPolicy(tx: Sql, askedHash: string): Promise<boolean> {
  const hash = await activePolicyHash(tx);
  return hash !== undefined && hash !== askedHash;
}

/** What signed transactions are stored by. */
export interface StoreRules extends Pick<SlotBudget, "feePerDayAtoken"> {
  /** The policy that was in force when they were asked for. */
  readonly policyHash: string;
}

/**
 * Stores signed transactions; the first one of a slot moves its withdrawal to `signed`. A payment
 * whose withdrawal is to be cancelled by now is dropped, and a dearer one that the day's budget of
 * fees does not cover any more.
 * @returns false where nothing was stored because signing is frozen or the wallet is retired, or no payment
 *   because another policy has come into force since they were asked for
 * @throws LEASE_LOST
 */
export function storeAttempts(
  database: SqlDatabase,
  lease: WalletLease,
  attempts: readonly NewAttempt[],
  rules: StoreRules,
): Promise<boolean> {
  return database.transaction(async (tx) => {
    await lockWallet(tx, lease);
    if ((await lockFreeze(tx, lease.wallet)).frozen) return false;
    // Behind the wallet's lock: a round may have begun before it was retired.
    if ((await walletStatus(tx, lease.wallet)) === "retired") return false;
    const isForbidden = await isOtherPolicy(tx, rules.policyHash);
    const kept = isForbidden ? attempts.filter(({ kind }) => kind === "cancel") : attempts;
    await insertAttempts(tx, await withinBudget(tx, lease.wallet, kept, rules));
    const first = kept.filter(({ n, kind }) => n === 0 && kind === "payment");
    const { events } = await stepWithdrawals(
      tx,
      "signed",
      first.map(({ withdrawalId, hash }) => ({ id: withdrawalId, data: { txHash: hash } })),
      ["slotted"],
    );
    await appendEvents(tx, events);
    return kept.length === attempts.length;
  });
}

/**
 * Without those replacing payments that would go beyond the day's budget: another wallet may have
 * spent what was left when their prices were chosen. A cancelling transfer gives a nonce up, and has
 * to be paid.
 */
async function withinBudget(
  tx: Sql,
  wallet: Address,
  attempts: readonly NewAttempt[],
  { feePerDayAtoken }: Pick<SlotBudget, "feePerDayAtoken">,
): Promise<readonly NewAttempt[]> {
  const isReplacing = ({ n, kind }: NewAttempt) => n > 0 && kind === "payment";
  const replacing = attempts.filter(isReplacing);
  if (replacing.length === 0) return attempts;
  await lockFeeBudget(tx);
  const rows = await tx.query<{ id: string; fee: string }>(
    `SELECT id::text, fee_reserved_atoken::text AS fee FROM nonce_slot
      WHERE id = ANY ($1::bigint[])`,
    [replacing.map(({ slotId }) => slotId)],
  );
  const reserved = new Map(rows.map(({ id, fee }) => [id, storedAtoken(fee)]));
  const { feesAtoken } = await sumOpenSlots(tx, wallet);
  let leftAtoken = feePerDayAtoken - feesAtoken - (await feesOfDay(tx));
  return attempts.filter((attempt) => {
    if (!isReplacing(attempt)) return true;
    const moreAtoken = feeOf(attempt) - (reserved.get(attempt.slotId) ?? 0n);
    if (moreAtoken <= 0n) return true;
    if (moreAtoken > leftAtoken) return false;
    leftAtoken -= moreAtoken;
    return true;
  });
}

/** Open slots with their attempts, in nonce order. */
export async function readLiveSlots(sql: Sql, query: SlotQuery): Promise<LiveSlot[]> {
  const rows = await sql.query<SlotRow>(
    `${SELECT_LIVE_SLOT}
      WHERE s.outcome IS NULL AND s.wallet = $1 AND w.status = ANY ($2::text[])
        AND s.nonce >= $3::numeric AND ($4::numeric IS NULL OR s.nonce < $4)
        AND (s.mined_hash IS NOT NULL OR $2::text[] <> '{included}')
        AND ($6::numeric IS NULL OR w.status <> 'broadcast' OR s.replaced OR s.nonce >= $6)
      ORDER BY s.nonce LIMIT $5`,
    [
      query.wallet,
      query.statuses,
      (query.fromNonce ?? 0n).toString(),
      query.belowNonce?.toString() ?? null,
      query.limit,
      query.missingFrom?.toString() ?? null,
    ],
  );
  return rows.map(toLiveSlot);
}

/**
 * Sums the open slots of a wallet; their fees with those of all others, as a day has one budget. Retired
 * ones have no part in it: nothing is signed for them, and what is mined all the same counts by its booking.
 * @param nonce the wallet's at the block of the balance that they are held against; without one all reserve
 */
export async function sumOpenSlots(sql: Sql, wallet: Address, nonce?: bigint): Promise<OpenSlots> {
  const isHeld = `wallet = $1 AND ${isReserving("$2::numeric")}`;
  const rows = await sql.query<Record<"count" | "reserved" | "fees" | "code", string>>(
    `SELECT count(*) FILTER (WHERE wallet = $1)::text AS count,
            coalesce(sum(reserved_atoken) FILTER (WHERE ${isHeld}), 0)::text AS reserved,
            coalesce(sum(fee_reserved_atoken) FILTER (WHERE wallet NOT IN (
              SELECT address FROM wallet WHERE status = 'retired')), 0)::text AS fees,
            coalesce(sum(gas_limit) FILTER (WHERE enters_code AND ${isHeld}), 0)::text AS code
       FROM nonce_slot s WHERE outcome IS NULL`,
    [wallet, nonce?.toString() ?? null],
  );
  return {
    count: storedInteger(rows[0]?.count),
    reservedAtoken: storedAtoken(rows[0]?.reserved),
    feesAtoken: storedAtoken(rows[0]?.fees),
    codeGas: storedAtoken(rows[0]?.code),
  };
}

/** What open slots of a wallet may still take of tokens, by asset. @param nonce as of `sumOpenSlots` */
export async function sumOpenTokens(
  sql: Sql,
  wallet: Address,
  nonce?: bigint,
): Promise<ReadonlyMap<string, bigint>> {
  const tokens = await sql.query<{ asset: string; units: string }>(
    `SELECT w.asset, sum(w.amount_units)::text AS units
       FROM nonce_slot s JOIN withdrawal w ON w.id = s.withdrawal_id
      WHERE s.wallet = $1 AND s.outcome IS NULL AND w.asset <> $2
        AND ${isReserving("$3::numeric")} GROUP BY w.asset`,
    [wallet, NATIVE_ASSET, nonce?.toString() ?? null],
  );
  return new Map(tokens.map(({ asset, units }) => [asset, storedAtoken(units)]));
}

/** An accepted withdrawal that is due for a slot. */
export interface QueuedWithdrawal {
  /** How long it has been due, milliseconds. */
  readonly waitedMs: number;
  /** Its destination has become a wallet of ours. */
  readonly isToOwnWallet: boolean;
  readonly id: WithdrawalId;
  readonly customerId: string;
  readonly asset: string;
  /** Contract of the token; undefined for coins. */
  readonly contract: Address | undefined;
  readonly destination: Address;
  /** Index of the deposit address that gets gas from the treasury; undefined for all others. */
  readonly addressIndex?: number | undefined;
  readonly amountUnits: bigint;
}

/**
 * Accepted withdrawals that are due for a slot of whichever wallet, without those of tokens that
 * stand still; those first that have waited longest
 * since they were last put off: what is tried again and again hides nothing that never was.
 */
export async function readSlotQueue(
  sql: Sql,
  options: { readonly limit: number },
): Promise<QueuedWithdrawal[]> {
  const rows = await sql.query<
    Record<"id" | "customer_id" | "asset" | "destination" | "amount_units" | "waited_ms", string> &
      Record<"contract" | "address_index", string | null> & { readonly is_own: boolean }
  >(
    `SELECT id, customer_id, asset, (SELECT contract FROM asset WHERE symbol = w.asset) AS contract,
            destination, amount_units::text, ${ADDRESS_INDEX} AS address_index,
            (extract(epoch FROM now() - next_try_at) * 1000)::bigint::text AS waited_ms,
            EXISTS (SELECT 1 FROM wallet WHERE address = destination) AS is_own
       FROM withdrawal w
      WHERE phase = 'waiting' AND status = 'accepted' AND next_try_at <= now()
        -- A list, not a join: the index gives the first ones without reading all that wait.
        AND asset <> ALL (ARRAY(SELECT t.asset FROM token_state t WHERE t.paused))
      ORDER BY next_try_at, position LIMIT $1`,
    [options.limit],
  );
  return rows.map((row) => ({
    waitedMs: storedInteger(row.waited_ms),
    isToOwnWallet: row.is_own,
    id: toWithdrawalId(row.id),
    customerId: row.customer_id,
    asset: row.asset,
    contract: row.contract === null ? undefined : storedAddress(row.contract),
    destination: storedAddress(row.destination),
    addressIndex: row.address_index === null ? undefined : storedInteger(row.address_index),
    amountUnits: storedAtoken(row.amount_units),
  }));
}

function noSlots(limit: SlotLimit): TakenSlots {
  return { taken: [], limit, uncovered: [], behindCode: [], held: [] };
}

/**
 * Locks the candidates that still wait, are not too late and go to no wallet of ours, in the order of their
 * requests: whoever looked before may have stood still since.
 */
async function lockAccepted(
  tx: Sql,
  candidates: readonly SlotCandidate[],
): Promise<SlotCandidate[]> {
  const rows = await tx.query<{ id: string }>(
    `SELECT id FROM withdrawal
      WHERE id = ANY ($1::text[]) AND status = 'accepted'
        AND (expires_at IS NULL OR expires_at > now())
        AND NOT EXISTS (SELECT 1 FROM token_state t WHERE t.asset = withdrawal.asset AND t.paused)
        AND NOT EXISTS (SELECT 1 FROM wallet WHERE address = withdrawal.destination)
      ORDER BY position FOR UPDATE`,
    [candidates.map(({ id }) => id)],
  );
  const byId = new Map<string, SlotCandidate>(candidates.map((entry) => [entry.id, entry]));
  return rows.flatMap(({ id }) => byId.get(id) ?? []);
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
       reserved_atoken, fee_reserved_atoken, enters_code)
     SELECT $1, nonce, id, gas_limit, price, reserved, fee, enters_code
       FROM unnest($2::numeric[], $3::text[], $4::numeric[], $5::numeric[], $6::numeric[],
                   $7::numeric[], $8::boolean[])
            AS input (nonce, id, gas_limit, price, reserved, fee, enters_code)
      ORDER BY nonce`,
    [
      lease.wallet,
      nonces,
      chosen.map(({ id }) => id),
      chosen.map(({ gasLimit }) => gasLimit.toString()),
      chosen.map(({ gasPriceAtoken }) => gasPriceAtoken.toString()),
      chosen.map((candidate) => (valueOf(candidate) + feeOf(candidate)).toString()),
      chosen.map((candidate) => feeOf(candidate).toString()),
      chosen.map(({ entersCode }) => entersCode),
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

/**
 * Attempts of slots that have ended, or that are meant otherwise by now, are dropped; a stored
 * attempt is never replaced, and bytes that are stored already are not stored again.
 */
async function insertAttempts(tx: Sql, attempts: readonly NewAttempt[]): Promise<void> {
  if (attempts.length === 0) return;
  const slotIds = attempts.map(({ slotId }) => slotId);
  const [row] = await tx.query<{ is_dearer: boolean }>(
    `WITH present AS (
       SELECT id, status FROM withdrawal WHERE id = ANY ($8::text[]) ORDER BY position FOR UPDATE
     ), meant AS MATERIALIZED (
       SELECT input.*, s.fee_reserved_atoken
         FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::text[], $5::numeric[],
                     $6::numeric[], $7::text[])
              AS input (slot_id, n, raw, hash, gas_limit, price, kind)
         JOIN nonce_slot s ON s.id = input.slot_id AND s.live
         JOIN present w ON w.id = s.withdrawal_id
          AND CASE input.kind WHEN 'cancel' THEN w.status = 'cancelling'
                   ELSE w.status IN ('slotted', 'signed', 'broadcast') END
     ), stored AS (
       INSERT INTO withdrawal_attempt (slot_id, n, kind, raw, hash, gas_limit, gas_price_atoken)
       SELECT slot_id, n, kind, raw, hash, gas_limit, price FROM meant
       ON CONFLICT DO NOTHING
     )
     SELECT coalesce(bool_or(gas_limit * price > fee_reserved_atoken), false) AS is_dearer
       FROM meant`,
    [
      slotIds,
      attempts.map(({ n }) => n),
      attempts.map(({ raw }) => raw),
      attempts.map(({ hash }) => hash),
      attempts.map(({ gasLimit }) => gasLimit.toString()),
      attempts.map(({ gasPriceAtoken }) => gasPriceAtoken.toString()),
      attempts.map(({ kind }) => kind),
      attempts.map(({ withdrawalId }) => withdrawalId),
    ],
  );
  // What a slot reserves from the start covers its first payment.
  const isReplacing = attempts.some(({ n }) => n > 0);
  if (isReplacing || row?.is_dearer === true) await raiseReserves(tx, attempts);
}

/** Slots reserve as much as the dearest of their attempts may take. */
async function raiseReserves(tx: Sql, attempts: readonly NewAttempt[]): Promise<void> {
  await tx.query(
    `UPDATE nonce_slot s
        SET reserved_atoken = greatest(s.reserved_atoken, input.reserved),
            fee_reserved_atoken = greatest(s.fee_reserved_atoken, input.fee),
            replaced = s.replaced OR input.n > 0
       FROM unnest($1::bigint[], $2::numeric[], $3::numeric[], $4::integer[])
            AS input (id, reserved, fee, n)
      WHERE s.id = input.id AND s.live AND (input.n > 0 OR input.fee > s.fee_reserved_atoken)`,
    [
      attempts.map(({ slotId }) => slotId),
      attempts.map((attempt) => (attempt.valueAtoken + feeOf(attempt)).toString()),
      attempts.map((attempt) => feeOf(attempt).toString()),
      attempts.map(({ n }) => n),
    ],
  );
}
