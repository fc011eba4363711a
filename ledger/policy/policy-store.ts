/** What the ledger keeps of policies: their texts, when each came into force, what they decided. */
import type { Address } from "../../chain/address.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { LedgerError } from "../errors.js";
import { storedInteger, storedTime } from "../stored-values.js";
import type { WithdrawalId } from "../requests/withdrawal-id.js";
import { type HashedPolicy, hashPolicy, PERMISSIVE_POLICY } from "./policy.js";
import { parsePolicy } from "./policy-parser.js";

/** When a decision was taken. */
export type DecisionStage = "accept" | "change" | "slot";

/** What was decided: pay; wait for persons; reject; wait for something else. */
export type DecisionOutcome = "pay" | "approve" | "reject" | "wait";

/** A decision about one withdrawal. */
export interface PolicyDecision {
  readonly withdrawalId: WithdrawalId;
  readonly outcome: DecisionOutcome;
  /** Each rule that was asked, with what it said. */
  readonly rules: Readonly<Record<string, unknown>>;
}

/** Writes decisions down, with the policy they were taken by. */
export async function recordDecisions(
  tx: Sql,
  { policy, stage }: { readonly policy: HashedPolicy; readonly stage: DecisionStage },
  decisions: readonly PolicyDecision[],
): Promise<void> {
  if (decisions.length === 0) return;
  await tx.query(
    `WITH version AS (
       INSERT INTO policy_version (hash, body) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING)
     INSERT INTO policy_decision (withdrawal_id, policy_hash, stage, outcome, rules)
     SELECT id, $1, $3, outcome, rules
       FROM unnest($4::text[], $5::text[], $6::jsonb[]) AS input (id, outcome, rules)
     ON CONFLICT (withdrawal_id, stage, policy_hash, outcome) DO NOTHING`,
    [
      policy.hash,
      policy.text,
      stage,
      decisions.map(({ withdrawalId }) => withdrawalId),
      decisions.map(({ outcome }) => outcome),
      decisions.map(({ rules }) => JSON.stringify(rules)),
    ],
  );
}

/** The policy that came into force last; undefined before the first. */
export async function activePolicyHash(sql: Sql): Promise<string | undefined> {
  return (await readLatest(sql))?.hash;
}

/**
 * The policy that came into force last, from the text that the ledger keeps; undefined before the first. Who
 * judges by it needs no copy of the file.
 * @throws CORRUPT_ROW where that is not the text of its hash
 */
export async function readActivePolicy(sql: Sql): Promise<HashedPolicy | undefined> {
  const latest = await readLatest(sql);
  if (latest === undefined) return undefined;
  const { hash } = latest;
  const [row] = await sql.query<{ body: string }>(
    `SELECT body FROM policy_version WHERE hash = $1`,
    [hash],
  );
  const { policy, faults } = parsePolicy(row?.body ?? "");
  const hashed = policy && hashPolicy(policy);
  if (hashed?.hash === hash) return hashed;
  const message = `the ledger's text of policy ${hash} is not what this release reads as that one`;
  throw new LedgerError("CORRUPT_ROW", message, { details: { hash, faults } });
}

/** The policy that came into force last, and by which activation. */
export interface LatestPolicy {
  readonly id: number;
  readonly hash: string;
}

async function readLatest(sql: Sql): Promise<LatestPolicy | undefined> {
  const [row] = await sql.query<{ id: string; hash: string }>(
    `SELECT id::text, policy_hash AS hash FROM policy_activation
      ORDER BY policy_activation.id DESC LIMIT 1`,
  );
  return row && { id: storedInteger(row.id), hash: row.hash };
}

/** A policy's coming into force, as the ledger keeps it. */
export interface Activation {
  readonly id: number;
  /** False where it was in force already. */
  readonly isNew: boolean;
}

/** The policy that came into force last; until the transaction ends no other one does. */
async function lockLatest(tx: Sql): Promise<LatestPolicy | undefined> {
  await tx.query(`SELECT pg_advisory_xact_lock(hashtextextended('policy activation', 8083))`);
  return readLatest(tx);
}

/**
 * Brings a policy into force: its text, the time, and which destinations are listed from now on.
 * @param read the policy; asked while no other one can come into force, so that what a home's file said
 *   before never comes behind what it says now; it is given the one that came last
 */
export function activatePolicy(
  database: SqlDatabase,
  read: (latest: LatestPolicy | undefined) => HashedPolicy | Promise<HashedPolicy>,
): Promise<Activation & { readonly policy: HashedPolicy }> {
  return database.transaction(async (tx) => {
    const latest = await lockLatest(tx);
    const policy = await read(latest);
    if (latest?.hash === policy.hash) return { id: latest.id, isNew: false, policy };
    await tx.query(
      `INSERT INTO policy_version (hash, body) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING`,
      [policy.hash, policy.text],
    );
    const [row] = await tx.query<{ id: string }>(
      `INSERT INTO policy_activation (policy_hash) VALUES ($1) RETURNING id::text`,
      [policy.hash],
    );
    await writeListings(tx, policy);
    return { id: storedInteger(row?.id), isNew: true, policy };
  });
}

/** A policy that is to come into force, and the activation behind which it does; 0 where it is the first. */
export interface NextPolicy {
  readonly hash: string;
  readonly after: number;
}

/** The activation by which it came into force; undefined where it did not. */
export async function activationOf(sql: Sql, next: NextPolicy): Promise<number | undefined> {
  const [row] = await sql.query<{ id: string }>(
    `SELECT id::text FROM policy_activation WHERE policy_hash = $1 AND id > $2::bigint
      ORDER BY policy_activation.id LIMIT 1`,
    [next.hash, next.after],
  );
  return row && storedInteger(row.id);
}

/** Whether another policy came into force last; until the transaction ends that stays so. */
export async function isReplaced(tx: Sql, { hash }: Pick<HashedPolicy, "hash">): Promise<boolean> {
  const latest = await lockLatest(tx);
  return latest !== undefined && latest.hash !== hash;
}

/** What has become of a policy that was brought into force, or of one that a home has only a copy of. */
export type PolicyStanding =
  /** By this activation; the same policy may have come again. */
  | { readonly standing: "in-force"; readonly id: number }
  /** Another one came into force since. */
  | { readonly standing: "replaced"; readonly by: string; readonly at: string }
  /** The ledger does not know of it: it is a new one, or a ledger that was put back has lost it. */
  | { readonly standing: "lost" };

/** What every new home has: nobody has decided it. */
const UNDECIDED = hashPolicy(PERMISSIVE_POLICY).hash;

/**
 * The standing of the policy of an activation. Without one a home does not say that a person chose its
 * policy: one that was in force before, or that every new home has, is a copy that stayed behind.
 */
export async function standingOf(
  sql: Sql,
  { hash }: Pick<HashedPolicy, "hash">,
  activation: Pick<Activation, "id"> | undefined,
): Promise<PolicyStanding> {
  const [latest] = await sql.query<{ id: string; hash: string; at: unknown; is_known: boolean }>(
    `SELECT id::text, policy_hash AS hash, at,
            CASE WHEN $1::bigint IS NULL
                 THEN $3 OR EXISTS (SELECT 1 FROM policy_activation own WHERE own.policy_hash = $2)
                 ELSE EXISTS (SELECT 1 FROM policy_activation own
                               WHERE own.id = $1 AND own.policy_hash = $2) END AS is_known
       FROM policy_activation latest ORDER BY latest.id DESC LIMIT 1`,
    [activation?.id ?? null, hash, hash === UNDECIDED],
  );
  if (latest?.hash === hash) return { standing: "in-force", id: storedInteger(latest.id) };
  return latest?.is_known === true
    ? { standing: "replaced", by: latest.hash, at: storedTime(latest.at) }
    : { standing: "lost" };
}

const LATEST_LISTING = `
  SELECT DISTINCT ON (customer_id, destination) customer_id, destination, listed, at
    FROM policy_listing ORDER BY customer_id, destination, id DESC`;

/** What left the list and comes back is new again. */
async function writeListings(tx: Sql, { policy }: HashedPolicy): Promise<void> {
  const pairs = [...policy.allowList.customers].flatMap(([customerId, listed]) =>
    [...listed].map((destination) => ({ customerId, destination })),
  );
  await tx.query(
    `INSERT INTO policy_listing (customer_id, destination, listed)
     SELECT coalesce(wanted.customer_id, known.customer_id),
            coalesce(wanted.destination, known.destination), wanted.customer_id IS NOT NULL
       FROM unnest($1::text[], $2::text[]) AS wanted (customer_id, destination)
       FULL JOIN (SELECT * FROM (${LATEST_LISTING}) AS latest WHERE listed) AS known
         USING (customer_id, destination)
      WHERE (wanted.customer_id IS NULL) <> (known.customer_id IS NULL)`,
    [pairs.map(({ customerId }) => customerId), pairs.map(({ destination }) => destination)],
  );
}

/** A customer and where a payment is to go. */
export interface ListedPair {
  readonly customerId: string;
  readonly destination: Address;
}

/**
 * Those of the pairs that are listed, but not for as long as the policy wants. A customer without a
 * list has nothing to wait for.
 */
export async function tooNewPairs<Pair extends ListedPair>(
  sql: Sql,
  { policy }: HashedPolicy,
  pairs: readonly Pair[],
): Promise<ReadonlySet<Pair>> {
  const { customers, delayHours } = policy.allowList;
  const listed = pairs.filter(({ customerId }) => customers.has(customerId));
  if (listed.length === 0 || delayHours === 0) return new Set();
  const rows = await sql.query<{ place: string }>(
    `SELECT place::text FROM unnest($1::text[], $2::text[]) WITH ORDINALITY
         AS asked (customer_id, destination, place)
      WHERE NOT coalesce((
        SELECT l.listed AND l.at <= now() - $3::integer * interval '1 hour' FROM policy_listing l
         WHERE l.customer_id = asked.customer_id AND l.destination = asked.destination
         ORDER BY l.id DESC LIMIT 1), false)`,
    [
      listed.map(({ customerId }) => customerId),
      listed.map(({ destination }) => destination),
      delayHours,
    ],
  );
  return new Set(rows.flatMap(({ place }) => listed[Number(place) - 1] ?? []));
}
