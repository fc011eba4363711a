/**
 * Decisions of operators: proposed by one person with a reason, carried out in the same commit as
 * they are decided. Where two persons are asked for, another one than the proposer decides.
 */
import { SqlError } from "../../runtime/sql/sql-errors.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { LedgerError } from "../errors.js";
import { appendEvents } from "../events.js";
import type { Hash32 } from "../../chain/hex.js";
import { lockCursor, readCursor } from "../watch/watch-cursor.js";
import { readLedgerState } from "../guard/ledger-state.js";
import { refuseInRecovery } from "../guard/recovery-incident.js";
import { listedBehind, listedBy, type ListOrder } from "../list-order.js";
import { storedInteger, storedTime } from "../stored-values.js";
import { findRecovered, type RecoveredPayment } from "../requests/recovered-payments.js";
import { findUnlooked } from "../withdrawals/foreign-transactions.js";
import type { ForeignPayment } from "../requests/possible-payments.js";
import type { ReleaseTerms } from "../withdrawals/release/release-word.js";
import type { ShowPayment } from "../withdrawals/release/outcome.js";
import { readInclusion } from "../withdrawals/recorded-inclusions.js";
import { lockOpenSlot } from "../withdrawals/slot-outcomes.js";
import type { WithdrawalId } from "../requests/withdrawal-id.js";
import {
  type DecisionTerms,
  parseTerms,
  type StoredTerms,
  subjectOf,
  type SweepReleaseTerms,
} from "./decision.js";
import { assertBooked, carryOut } from "./carry-out.js";

/** A decision as stored. */
export interface Decision {
  readonly id: number;
  readonly kind: string;
  readonly key: string;
  readonly terms: StoredTerms | SweepReleaseTerms | ReleaseTerms;
  readonly reason: string;
  readonly needsSecond: boolean;
  readonly status: "proposed" | "done" | "refused";
  readonly proposedBy: string;
  readonly decidedBy: string | undefined;
  /** RFC 3339, UTC. */
  readonly proposedAt: string;
}

/** Who wants what, and why. */
export interface Proposal {
  readonly terms: StoredTerms;
  readonly reason: string;
  readonly operator: string;
  /** True keeps it a proposal until another person approves it. */
  readonly needsSecond: boolean;
}

/** What a decision asks of the chain; other faults than an answer are the node's. */
export interface DecisionChain {
  /**
   * Whether a recovered payment is mined now, in whatever block, and did what it was to do. One of Cosmos
   * has no receipt: the wallet's transactions show it.
   */
  readonly hasDone: (
    payment: Pick<RecoveredPayment, "hash" | "wallet" | "nonce" | "height">,
  ) => Promise<boolean>;
  /** The block in which a transaction is mined now; undefined for none. */
  readonly blockOf: (hash: Hash32) => Promise<Hash32 | undefined>;
  readonly paidBy: ShowPayment;
}

/**
 * Writes a decision down, and carries it out where one person is enough.
 * @throws INVALID_DECISION, DECIDED_ALREADY, RECOVERY; the faults of what is decided, and of the chain
 */
export async function propose(
  database: SqlDatabase,
  proposal: Proposal,
  chain: DecisionChain,
): Promise<Decision> {
  const terms = parseTerms(proposal.terms);
  const { rewinds } = await readCursor(database);
  const shown = await readSeen(database, terms);
  await assertMined(database, chain, terms);
  const paid = await readPaid(database, chain, terms);
  return database.transaction(async (tx) => {
    await holdBlocks(tx, rewinds);
    await refuseInRecovery(tx);
    const seen = await holdSubject(tx, terms);
    if (seen !== shown) throw changedMeanwhile("what it is about changed");
    const { kind, key } = subjectOf(terms, (await readLedgerState(tx)).epoch);
    const rows = await tx
      .query<{ id: string }>(
        `INSERT INTO operator_decision
           (kind, key, terms, reason, needs_second, status, proposed_by, seen)
         VALUES ($1, $2, $3::jsonb, $4, $5, 'proposed', $6, $7) RETURNING id::text`,
        [
          kind,
          key,
          JSON.stringify(proposal.terms),
          proposal.reason,
          proposal.needsSecond,
          proposal.operator,
          seen,
        ],
      )
      .catch((error: unknown) => {
        throw decidedAlready(error, kind, key);
      });
    const id = storedInteger(rows[0]?.id);
    if (proposal.needsSecond) await assertBooked(tx, terms);
    else await finish(tx, { id, terms, paid, operator: proposal.operator });
    return readDecision(tx, id);
  });
}

/**
 * Carries a proposal out.
 * @throws NO_PROPOSAL, SECOND_PERSON_NEEDED, RECOVERY; the faults of what is decided, and of the chain
 */
export async function approve(
  database: SqlDatabase,
  approval: { readonly id: number; readonly operator: string },
  chain: DecisionChain,
): Promise<Decision> {
  const { id, operator } = approval;
  const terms = parseTerms((await database.transaction((tx) => lockProposal(tx, id))).terms);
  const { rewinds } = await readCursor(database);
  await assertMined(database, chain, terms);
  const paid = await readPaid(database, chain, terms);
  return database.transaction(async (tx) => {
    await holdBlocks(tx, rewinds);
    await refuseInRecovery(tx);
    const proposal = await lockProposal(tx, id);
    await assertUnchanged(tx, proposal, terms);
    await finish(tx, { id, terms, paid, operator });
    return readDecision(tx, id);
  });
}

/**
 * What a decision is about is as its proposer saw it: a second person says that the word is right, and not
 * what it would have been on another chain, or about more than was known then. Nothing is carried out that
 * was proposed before the last recovery: it may have been carried out or refused since by words that the
 * ledger has lost, and payments were found of which its proposer knew nothing.
 * @throws INVALID_DECISION
 */
async function assertUnchanged(tx: Sql, { id }: Decision, terms: DecisionTerms): Promise<void> {
  const [row] = await tx.query<{ seen: string | null }>(
    `SELECT seen FROM operator_decision WHERE id = $1`,
    [id],
  );
  const now = await holdSubject(tx, terms);
  if (row?.seen === now) return;
  const epochOf = (seen: string) => /^e[0-9]+ /.exec(seen)?.[0];
  const seenEpoch = epochOf(row?.seen ?? "");
  const what =
    seenEpoch === undefined
      ? "this release, which keeps more of what a proposer saw"
      : seenEpoch !== epochOf(now)
        ? "the last recovery, which may have found further payments, and has forgotten whether it was " +
          "carried out or refused"
        : "what it is about changed: the chain lost blocks, or more is known by now";
  throw new LedgerError(
    "INVALID_DECISION",
    `decision ${id} was proposed before ${what}: refuse it, look at causeway ledger open, and ` +
      "propose it anew",
  );
}

/**
 * What a decision rests on and may be otherwise later: the ledger's epoch, as each recovery finds more and
 * forgets what was decided behind the backup; blocks, all of which a loss puts in doubt; the block in which a
 * token's payment was found; why a request is frozen, with each transaction that may have paid it.
 */
async function readSeen(tx: Sql, terms: DecisionTerms): Promise<string> {
  const { epoch } = await readLedgerState(tx);
  const ledger = `e${epoch} r${(await readCursor(tx)).rewinds}`;
  if (terms.action === "decide-transfer") {
    const found = await readInclusion(tx, terms.withdrawalId);
    return found === undefined ? ledger : `${ledger} ${found.hash} ${found.blockHash}`;
  }
  const id = requestOf(terms);
  if (id === undefined) return ledger;
  const [row] = await tx.query<{ cause: string }>(
    `SELECT encode(sha256(convert_to(coalesce(reason, ''), 'UTF8')), 'hex') AS cause
       FROM withdrawal WHERE id = $1`,
    [id],
  );
  return row === undefined ? ledger : `${ledger} ${row.cause}`;
}

/**
 * Holds what `readSeen` goes by until the commit: what comes between the look and the deed would be decided
 * about by a word of before.
 * @returns what it says behind that
 */
async function holdSubject(tx: Sql, terms: DecisionTerms): Promise<string> {
  const id = terms.action === "decide-transfer" ? terms.withdrawalId : requestOf(terms);
  if (id !== undefined) await lockOpenSlot(tx, id);
  return readSeen(tx, terms);
}

/** The frozen request that a decision lets go on, or ends. */
function requestOf(terms: DecisionTerms): WithdrawalId | undefined {
  const isAbout = terms.action === "pay-withdrawal" || terms.action === "adjust";
  return isAbout ? terms.withdrawalId : undefined;
}

/**
 * Until the commit no block is booked and none is gone back behind: what is decided counts from a block,
 * and a watcher that goes back takes what counts above with it, as far as it is there.
 * @param rewinds losses of blocks before the chain was asked: what it said is of the blocks of then
 */
async function holdBlocks(tx: Sql, rewinds: number): Promise<void> {
  if ((await lockCursor(tx)).rewinds === rewinds) return;
  throw changedMeanwhile("the watcher went back on a chain that lost blocks");
}

function changedMeanwhile(what: string): LedgerError {
  return new LedgerError(
    "INVALID_DECISION",
    `${what} while this was looked at: look, and type it again`,
  );
}

/**
 * What a decision takes for mined is on the chain now. Blocks may be lost behind the recovery of a payment,
 * or behind the freeze of a token's, and whether they are mined again the chain alone knows.
 */
async function assertMined(sql: Sql, chain: DecisionChain, terms: DecisionTerms): Promise<void> {
  if (terms.action === "decide-transfer") return assertStands(sql, chain, terms.withdrawalId);
  if (terms.action !== "link-payment" && terms.action !== "claim-payment") return;
  const payment = await findRecovered(sql, terms.hash);
  // If it is no recovered payment, `carryOut` refuses it with the reason.
  if (payment === undefined || (await chain.hasDone(payment))) return;
  throw new LedgerError(
    "INVALID_DECISION",
    `${terms.hash} is not on the chain as a payment now: it settles nothing before it is mined again`,
  );
}

/** A token's payment is booked in the block in which it was found. */
async function assertStands(sql: Sql, chain: DecisionChain, id: WithdrawalId): Promise<void> {
  const found = await readInclusion(sql, id);
  if (found === undefined || (await chain.blockOf(found.hash)) === found.blockHash) return;
  throw new LedgerError(
    "INVALID_DECISION",
    `${found.hash} is not in block ${found.blockNumber} any more, in which it was found: causeway ` +
      `withdrawals release ${id}`,
  );
}

/**
 * What an outflow may have paid that is accepted before anybody has acknowledged it, as far as the chain
 * shows it: requests that it may have paid wait for a person.
 */
async function readPaid(
  sql: Sql,
  chain: DecisionChain,
  terms: DecisionTerms,
): Promise<ForeignPayment | undefined> {
  if (terms.action !== "accept-outflow") return undefined;
  const outflow = await findUnlooked(sql, terms.hash);
  if (outflow === undefined) return undefined;
  return chain.paidBy(outflow);
}

/**
 * Refuses a proposal; what it was about may be proposed again.
 * @throws NO_PROPOSAL
 */
export function refuse(
  database: SqlDatabase,
  { id, operator }: { readonly id: number; readonly operator: string },
): Promise<Decision> {
  return database.transaction(async (tx) => {
    await lockProposal(tx, id);
    await decide(tx, id, { status: "refused", operator });
    return readDecision(tx, id);
  });
}

/** Decisions, newest last, at most `limit`; those that wait for a second person with `status`. */
export async function listDecisions(
  sql: Sql,
  page: { readonly status?: Decision["status"]; readonly limit: number },
): Promise<Decision[]> {
  const rows = await sql.query<DecisionRow>(
    `SELECT * FROM (${SELECT_DECISION} WHERE ($1::text IS NULL OR status = $1)
                     ORDER BY id DESC LIMIT $2) AS newest ORDER BY id`,
    [page.status ?? null, page.limit],
  );
  return rows.map(toDecision);
}

/** Decisions behind a position. */
export async function listDecisionPage(
  sql: Sql,
  page: { readonly afterId: number; readonly limit: number; readonly order: ListOrder },
): Promise<readonly Decision[]> {
  const rows = await sql.query<DecisionRow>(
    `${SELECT_DECISION} WHERE ${listedBehind("id", page.order)}
      ORDER BY ${listedBy("id", page.order)} LIMIT $2`,
    [page.afterId, page.limit],
  );
  return rows.map(toDecision);
}

async function finish(
  tx: Sql,
  done: {
    readonly id: number;
    readonly terms: DecisionTerms;
    readonly paid: ForeignPayment | undefined;
    readonly operator: string;
  },
): Promise<void> {
  await decide(tx, done.id, { status: "done", operator: done.operator });
  const events = await carryOut(tx, done.terms, done.paid);
  await appendEvents(tx, events);
}

async function decide(
  tx: Sql,
  id: number,
  to: { readonly status: "done" | "refused"; readonly operator: string },
): Promise<void> {
  try {
    await tx.query(
      `UPDATE operator_decision SET status = $2, decided_by = $3, decided_at = now()
        WHERE id = $1`,
      [id, to.status, to.operator],
    );
  } catch (error) {
    const isOwn = error instanceof SqlError && error.constraint === "operator_decision_two_persons";
    if (!isOwn) throw error;
    throw new LedgerError(
      "SECOND_PERSON_NEEDED",
      `decision ${id} is ${to.operator}'s own proposal: another person has to approve it`,
      { cause: error },
    );
  }
}

async function lockProposal(tx: Sql, id: number): Promise<Decision> {
  const rows = await tx.query<DecisionRow>(`${SELECT_DECISION} WHERE id = $1 FOR UPDATE`, [id]);
  const row = rows[0];
  if (row?.status === "proposed") return toDecision(row);
  throw new LedgerError("NO_PROPOSAL", `${id} is no decision that waits for a second person`);
}

async function readDecision(tx: Sql, id: number): Promise<Decision> {
  const rows = await tx.query<DecisionRow>(`${SELECT_DECISION} WHERE id = $1`, [id]);
  const row = rows[0];
  if (row === undefined) throw new LedgerError("CORRUPT_ROW", "a decision cannot be read back");
  return toDecision(row);
}

interface DecisionRow {
  readonly id: string;
  readonly kind: string;
  readonly key: string;
  readonly terms: Decision["terms"];
  readonly reason: string;
  readonly needs_second: boolean;
  readonly status: Decision["status"];
  readonly proposed_by: string;
  readonly decided_by: string | null;
  readonly proposed_at: unknown;
}

const SELECT_DECISION = `
  SELECT id, kind, key, terms, reason, needs_second, status, proposed_by, decided_by, proposed_at
    FROM operator_decision`;

function toDecision(row: DecisionRow): Decision {
  return {
    id: storedInteger(row.id),
    kind: row.kind,
    key: row.key,
    terms: row.terms,
    reason: row.reason,
    needsSecond: row.needs_second,
    status: row.status,
    proposedBy: row.proposed_by,
    decidedBy: row.decided_by ?? undefined,
    proposedAt: storedTime(row.proposed_at),
  };
}

function decidedAlready(error: unknown, kind: string, key: string): unknown {
  const isRepeat = error instanceof SqlError && error.constraint === "operator_decision_once";
  if (!isRepeat) return error;
  return new LedgerError(
    "DECIDED_ALREADY",
    `about the ${kind} ${key} there is a decision already`,
    {
      details: { kind, key },
      cause: error,
    },
  );
}
