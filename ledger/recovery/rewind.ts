/** Lets the watcher go back on a chain that lost blocks; what vanished is reversed, never deleted. */
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import {
  type AccountCode,
  BREAK,
  customerAccount,
  customerOf,
  DEPOSIT_ADDRESSES,
  parseCustomerId,
  SUSPENSE,
} from "../journal/accounts.js";
import { postJournal, type Posting } from "../journal/journal.js";
import { lockSuspense, takenByName } from "../deposits/suspense.js";
import { broughtBack, emptyFilled } from "../deposits/deposit-credit.js";
import { reversedEvent } from "../deposits/deposit-events.js";
import { decisionKey, REMINED_KEY } from "../deposits/undone-decisions.js";
import { lockCursor, type WatchCursor } from "../watch/watch-cursor.js";
import { LedgerError } from "../errors.js";
import { appendEvents, type NewEvent } from "../events.js";
import { resumeCrediting } from "../incidents.js";
import { storedAtoken } from "../stored-values.js";
import { voidGasOf } from "../requests/lost-gas.js";
import { lookAgainAbove } from "../assets/sweep-due.js";
import { emptyRefills, forgetEnoughAbove } from "../treasury/treasury-flows.js";
import { bringForward } from "../watch/lost-heights.js";
import { reopen } from "./lost-openings.js";
import { readReversed, reversalKey, reverseEntry } from "../journal/reversals.js";
import { endBeforeSlotInside } from "../requests/endings.js";
import { toWithdrawalId, type WithdrawalId } from "../requests/withdrawal-id.js";
import { WAITING_STATUSES } from "../requests/withdrawal-status.js";
import type { Step, StepResult } from "../requests/withdrawal-steps.js";
import {
  isChainDoubted,
  readInflows,
  type RewindPlan,
  type VanishedDeposit,
  type VanishedInflow,
} from "./older-chain.js";

/** What the reversed deposits had covered: coins that customers have withdrawn already, and requests. */
export interface RewindResult {
  /**
   * Coins of each asset that customers have withdrawn already: nobody's debt is invented, they are a
   * break.
   */
  readonly short: readonly { readonly asset: string; readonly amountUnits: bigint }[];
  /** Requests that waited without a nonce and that nothing covers any more: they ended. */
  readonly uncovered: readonly WithdrawalId[];
  /** Frozen requests that nothing covers: they end, too, once a person lets them go on. */
  readonly frozen: readonly WithdrawalId[];
}

/**
 * Reverses what vanished and sets the cursor back, with the evidence, in one commit. Deposits that
 * are mined again are found again by the watcher.
 * @throws RECOVERY when the ledger moved since the plan was made, or nothing halts crediting
 */
export function applyRewind(
  database: SqlDatabase,
  plan: RewindPlan,
  operator: string,
): Promise<RewindResult> {
  return database.transaction(async (tx) => {
    const cursor = await lockPlanned(tx, plan);
    await setCursorBack(tx, plan, { cursor, operator });
    await lockRequests(tx, plan);
    await lockSuspense(tx);
    const { short, events, uncovered } = await reverseAll(tx, plan);
    const { height } = plan.to;
    await reopen(tx, plan.openings, { height, rewinds: cursor.rewinds + 1 });
    const undone = plan.inflows.map(({ idemKey }) => idemKey);
    await emptyRefills(tx, undone);
    await forgetEnoughAbove(tx, height);
    await voidGasOf(tx, undone);
    const vanished = plan.inflows.map(({ txHash }) => txHash);
    await lookAgainAbove(tx, height, vanished);
    await resumeCrediting(tx, operator);
    await appendEvents(tx, events);
    return {
      short: [...short].map(([asset, amountUnits]) => ({ asset, amountUnits })),
      uncovered,
      frozen: await readMarked(tx),
    };
  });
}

/**
 * Locks the cursor where it stood when the plan was made.
 * @throws RECOVERY when the ledger moved since then, or nothing halts crediting
 */
async function lockPlanned(tx: Sql, plan: RewindPlan): Promise<WatchCursor> {
  const cursor = await lockCursor(tx);
  const { height, blockHash, rewinds } = plan.cursor;
  const isSame = cursor.height === height && cursor.rewinds === rewinds;
  if (!isSame || cursor.blockHash !== blockHash || !(await isChainDoubted(tx))) {
    throw new LedgerError(
      "RECOVERY",
      "the watcher has not halted at the blocks that are missing, or moved: run it again",
    );
  }
  const inflows = await readInflows(tx, plan.to.height, plan.inflows.length + 1);
  const keysOf = (rows: readonly VanishedInflow[]) => rows.map(({ idemKey }) => idemKey).join();
  if (keysOf(inflows) !== keysOf(plan.inflows)) throw changedMeanwhile("what came to our wallets");
  return cursor;
}

/** Sets it back, and writes the loss down with its evidence. */
async function setCursorBack(
  tx: Sql,
  plan: RewindPlan,
  { cursor, operator }: { readonly cursor: WatchCursor; readonly operator: string },
): Promise<void> {
  const { height, blockHash, rewinds, nextAddressIndex } = cursor;
  await tx.query(
    // Of this moment, behind the locks: what was booked while they were waited for is of before.
    `INSERT INTO chain_rewind (id, from_height, from_hash, to_height, to_hash, evidence, operator, at)
     VALUES ($1, $2, $3, $4, $5, $6::jsonb, $7, clock_timestamp())`,
    [
      rewinds + 1,
      height,
      blockHash ?? null,
      plan.to.height,
      plan.to.hash ?? null,
      JSON.stringify({ ...evidenceOf(plan), nextAddressIndex }),
      operator,
    ],
  );
  await tx.query(`UPDATE watch_cursor SET height = $1, block_hash = $2, rewinds = rewinds + 1`, [
    plan.to.height,
    plan.to.hash ?? null,
  ]);
  // Below the first block there is no past to look for.
  if (plan.to.height < 0) {
    await tx.query(`UPDATE deposit_address SET backfilled = true WHERE NOT backfilled`);
  }
  await bringForward(tx, { height: plan.to.height, rewinds: rewinds + 1 });
}

/** What reversing all that vanished came to. */
interface ReversedAll {
  /** Coins of each asset that customers have withdrawn already. */
  readonly short: ReadonlyMap<string, bigint>;
  readonly uncovered: readonly WithdrawalId[];
  /** Appended at the end of the transaction. */
  readonly events: readonly NewEvent[];
}

async function reverseAll(tx: Sql, plan: RewindPlan): Promise<ReversedAll> {
  const short = new Map<string, bigint>();
  const shortages: Shortages = new Map();
  const events: NewEvent[] = [];
  const uncovered: WithdrawalId[] = [];
  // Decisions first: what is short of a deposit then is brought back when it is mined again.
  for (const inflow of plan.inflows) {
    const undone = await undoDecision(tx, inflow, shortages);
    // Behind it: a hold that comes back for it fills what is missing of others, and is taken for it.
    await reverseEntry(tx, inflow);
    uncovered.push(...undone.ended.flatMap(({ moved }) => [...moved.keys()]));
    events.push(...undone.ended.flatMap((ended) => ended.events));
    for (const { asset, missingUnits } of undone.missing) {
      short.set(asset, (short.get(asset) ?? 0n) + missingUnits);
    }
  }
  for (const deposit of plan.deposits) {
    const { takenUnits, missingUnits, ended } = await reverseDeposit(tx, deposit, shortages);
    uncovered.push(...ended.moved.keys());
    events.push(...ended.events, reversedEvent(deposit, takenUnits));
    if (missingUnits === 0n) continue;
    short.set(deposit.asset, (short.get(deposit.asset) ?? 0n) + missingUnits);
  }
  for (const shortage of shortages.values()) await letNoneGoOn(tx, shortage);
  return { short, uncovered, events };
}

/**
 * Holds what may have to end before any balance is held, as where requests end: what somebody is at work
 * on at this moment is waited for. Passed by, it would be paid out of coins that are gone.
 */
async function lockRequests(tx: Sql, { deposits, inflows }: RewindPlan): Promise<void> {
  const customers = new Set<string>(deposits.map(({ customerId }) => customerId));
  for (const { idemKey } of inflows.filter((each) => each.idemKey.startsWith(REMINED_KEY))) {
    for (const { debit } of await readReversed(tx, decidedOf(idemKey))) {
      customers.add(customerOf(debit) ?? "");
    }
  }
  await tx.query(
    `SELECT 1 FROM withdrawal
      WHERE phase IN ('waiting', 'open') AND status = ANY ($2::text[])
        AND customer_id = ANY ($1::text[])
      ORDER BY position FOR UPDATE`,
    [[...customers], [...WAITING_STATUSES, "frozen"]],
  );
}

/** Key of what a person decided about a payment that was mined with another outcome. */
function decidedOf(idemKey: string): string {
  return decisionKey(idemKey.slice(REMINED_KEY.length));
}

function changedMeanwhile(what: string): LedgerError {
  return new LedgerError(
    "RECOVERY",
    `${what} was booked otherwise since the plan was made: run it again`,
  );
}

function evidenceOf({ headHeight, deposits, inflows, payments }: RewindPlan) {
  return {
    headHeight,
    deposits: deposits.map(({ id, txHash, amountUnits }) => [id, txHash, `${amountUnits}`]),
    inflows: inflows.map(({ idemKey, txHash }) => [idemKey, txHash]),
    payments: payments.map(({ withdrawalId, hash }) => [withdrawalId ?? null, hash]),
  };
}

/** What a reversal came to. */
interface Reversal {
  /** What the customer's balance fell by. */
  readonly takenUnits: bigint;
  /** What is no longer there to take. */
  readonly missingUnits: bigint;
  /** Requests that had to end for it. */
  readonly ended: StepResult;
}

/** What a customer is short of an asset after all that vanished was taken, as far as it was there. */
interface Shortage {
  readonly customerId: string;
  readonly asset: string;
  readonly units: bigint;
  /** What vanished last of it. */
  readonly what: string;
}

/** By customer and asset. */
type Shortages = Map<string, Shortage>;

const NOTHING_ENDED: StepResult = { moved: new Map(), events: [] };

async function reverseDeposit(
  tx: Sql,
  deposit: VanishedDeposit,
  shortages: Shortages,
): Promise<Reversal> {
  const { id, status, amountUnits, height, txHash } = deposit;
  const rows = await tx.query(
    `WITH reversed AS (
       UPDATE deposit SET status = 'reversed' WHERE id = $1 AND status = $2 RETURNING 1)
     SELECT 1 FROM reversed`,
    [id, status],
  );
  // Whom a person has given it to since would keep it.
  if (rows.length === 0) throw changedMeanwhile(`the deposit ${id}`);
  let takenUnits = 0n;
  let ended = NOTHING_ENDED;
  if (status !== "credited" && status !== "suspense")
    return { takenUnits, missingUnits: 0n, ended };
  // What had only filled a break was given to nobody.
  const backUnits = await broughtBack(tx, id);
  const givenUnits = amountUnits - backUnits;
  const parts: { debit: AccountCode; amountUnits: bigint }[] = [];
  if (status === "suspense") {
    parts.push({ debit: SUSPENSE, amountUnits: givenUnits });
    parts.push({ debit: BREAK, amountUnits: amountUnits - givenUnits });
  } else {
    const what = `the deposit ${id} (${txHash})`;
    // What a person had taken of it before went to somebody else, who has to give it back by a decision.
    const namedUnits = await takenByName(tx, id);
    const elsewhereUnits = namedUnits < givenUnits ? namedUnits : givenUnits;
    const wanted = { wantedUnits: givenUnits - elsewhereUnits, what, shortages };
    ({ takenUnits, ended } = await takeBack(tx, deposit, wanted));
    const customer = customerAccount(parseCustomerId(deposit.customerId));
    parts.push({ debit: customer, amountUnits: takenUnits });
    parts.push({ debit: SUSPENSE, amountUnits: elsewhereUnits });
    parts.push({ debit: BREAK, amountUnits: amountUnits - takenUnits - elsewhereUnits });
  }
  await postJournal(tx, {
    kind: "deposit.reversal",
    idemKey: reversalKey(`deposit:${id}`),
    effectiveHeight: height,
    memo: txHash,
    postings: parts
      .filter((part) => part.amountUnits > 0n)
      .map((part) => ({ ...part, asset: deposit.asset, credit: DEPOSIT_ADDRESSES })),
  });
  const missingUnits = parts.reduce(
    (sum, part) => sum + (part.debit === BREAK ? part.amountUnits : 0n),
    0n,
  );
  return { takenUnits, missingUnits, ended };
}

/**
 * What a customer has of coins that are gone. What only waits is not withdrawn, and would be paid out of
 * nothing: requests without a nonce end, the newest first, until their holds are enough.
 */
async function takeBack(
  tx: Sql,
  owner: Pick<VanishedDeposit, "customerId" | "asset">,
  options: {
    readonly wantedUnits: bigint;
    readonly what: string;
    readonly shortages: Shortages;
  },
): Promise<Pick<Reversal, "takenUnits" | "ended">> {
  const { wantedUnits, what, shortages } = options;
  const available = await lockAvailable(tx, owner);
  if (available >= wantedUnits) return { takenUnits: wantedUnits, ended: NOTHING_ENDED };
  const { customerId, asset } = owner;
  const rows = await tx.query<{ id: string }>(
    `SELECT id FROM withdrawal
      WHERE phase = 'waiting' AND status = ANY ($3::text[]) AND customer_id = $1 AND asset = $2
      ORDER BY position DESC FOR UPDATE`,
    [customerId, asset, WAITING_STATUSES],
  );
  const ended = { moved: new Map(NOTHING_ENDED.moved), events: [...NOTHING_ENDED.events] };
  let found = available;
  for (const row of rows) {
    if (found >= wantedUnits) break;
    const step: Step = {
      id: toWithdrawalId(row.id),
      reason: reasonOf(what),
      data: { rule: "DEPOSIT_LOST" },
    };
    const { moved, events } = await endBeforeSlotInside(tx, "rejected", [step]);
    for (const [id, withdrawal] of moved) ended.moved.set(id, withdrawal);
    ended.events.push(...events);
    // One that froze keeps its hold, and one may owe it for an earlier loss: what came back counts.
    found = await lockAvailable(tx, owner);
  }
  if (found >= wantedUnits) return { takenUnits: wantedUnits, ended };
  const key = `${customerId} ${asset}`;
  const units = (shortages.get(key)?.units ?? 0n) + wantedUnits - found;
  shortages.set(key, { customerId, asset, units, what });
  return { takenUnits: found, ended };
}

const DEPOSIT_LOST = "rule DEPOSIT_LOST";

function reasonOf(what: string): string {
  return `${DEPOSIT_LOST}: the chain came back without ${what}`;
}

/**
 * What is frozen without a nonce may have been paid, and keeps its hold until a person has looked. Where it
 * was not, it ends instead of being paid out of coins that are not there: the newest first, until their
 * holds are what is short. A hold that an earlier loss is waiting for covers no other.
 */
async function letNoneGoOn(tx: Sql, { customerId, asset, units, what }: Shortage): Promise<void> {
  const rows = await tx.query<{ id: string; units: string }>(
    `SELECT id, (amount_units + fee_units)::text AS units FROM withdrawal w
      WHERE phase = 'open' AND status = 'frozen' AND customer_id = $1 AND asset = $2
        AND NOT EXISTS (SELECT 1 FROM nonce_slot s
                         WHERE s.withdrawal_id = w.id AND s.outcome IS DISTINCT FROM 'foreign')
        AND NOT (cancel_cause IS NOT DISTINCT FROM 'policy' AND cancel_reason LIKE $3)
      -- Those that somebody has cancelled end anyway.
      ORDER BY cancel_cause IS NULL, position DESC FOR UPDATE`,
    [customerId, asset, `${DEPOSIT_LOST}%`],
  );
  const ids: string[] = [];
  let leftUnits = units;
  for (const row of rows) {
    if (leftUnits <= 0n) break;
    leftUnits -= storedAtoken(row.units);
    ids.push(row.id);
  }
  if (ids.length === 0) return;
  await tx.query(
    `UPDATE withdrawal SET cancel_cause = 'policy', cancel_reason = $2
      WHERE id = ANY ($1::text[]) AND cancel_cause IS NULL`,
    [ids, reasonOf(what)],
  );
}

async function readMarked(tx: Sql): Promise<readonly WithdrawalId[]> {
  const rows = await tx.query<{ id: string }>(
    `SELECT id FROM withdrawal WHERE phase = 'open' AND status = 'frozen'
        AND cancel_cause = 'policy' AND cancel_reason LIKE $1 ORDER BY position`,
    [`${DEPOSIT_LOST}%`],
  );
  return rows.map(({ id }) => toWithdrawalId(id));
}

async function lockAvailable(
  tx: Sql,
  { customerId, asset }: Pick<VanishedDeposit, "customerId" | "asset">,
): Promise<bigint> {
  const rows = await tx.query<{ available: string }>(
    `SELECT available_units::text AS available FROM customer_balance
      WHERE customer_id = $1 AND asset = $2 FOR UPDATE`,
    [customerId, asset],
  );
  return rows[0] === undefined ? 0n : storedAtoken(rows[0].available);
}

/**
 * A person had said who bears a payment that was mined with another outcome, and that block is gone as
 * well: who was given coins for it gives them back, as far as they are there. Left as it was, the payment
 * could be mined as it is booked, and nothing would be said of what was given besides.
 * @returns what is no longer there to take, and stays a break; requests that ended for it
 */
async function undoDecision(
  tx: Sql,
  { idemKey, memo, txHash, height }: VanishedInflow,
  shortages: Shortages,
): Promise<{
  readonly missing: readonly { readonly asset: string; readonly missingUnits: bigint }[];
  readonly ended: readonly StepResult[];
}> {
  const missing: { asset: string; missingUnits: bigint }[] = [];
  const ended: StepResult[] = [];
  if (!idemKey.startsWith(REMINED_KEY)) return { missing, ended };
  const decided = decidedOf(idemKey);
  const postings: Posting[] = [];
  for (const posting of await readReversed(tx, decided)) {
    const { asset, debit, amountUnits: wantedUnits } = posting;
    const customerId = customerOf(debit);
    let amountUnits = wantedUnits;
    if (customerId !== undefined) {
      const what = `what was given for ${txHash}`;
      const options = { wantedUnits, what, shortages };
      const taken = await takeBack(tx, { customerId, asset }, options);
      const missingUnits = wantedUnits - taken.takenUnits;
      // What it had filled is missing of those deposits again.
      const again = { key: decided, asset, wantedUnits: missingUnits };
      amountUnits = taken.takenUnits + (await emptyFilled(tx, again));
      if (missingUnits > 0n) missing.push({ asset, missingUnits });
      ended.push(taken.ended);
    }
    if (amountUnits > 0n) postings.push({ ...posting, amountUnits });
  }
  if (postings.length === 0) return { missing, ended };
  const kind = "wallet.reversal";
  await postJournal(tx, {
    kind,
    idemKey: reversalKey(decided),
    effectiveHeight: height,
    memo,
    postings,
  });
  return { missing, ended };
}
