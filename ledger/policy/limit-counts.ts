/**
 * What limits have seen so far, counted in SQL under locks: requests that arrive at once are counted
 * one after the other, also by several processes. What a recovery has found and nobody has decided about
 * counts besides, for all but its customer, who is not known.
 */
import type { Sql } from "../../runtime/sql/sql.js";
import { TREASURY } from "../journal/accounts.js";
import { storedAtoken, storedInteger } from "../stored-values.js";
import {
  type HashedPolicy,
  type JudgedRequest,
  type Limit,
  type LimitSubject,
  nameLimit,
  rulesOf,
} from "./policy.js";

/** What was asked for in a window. */
interface Count {
  units: bigint;
  count: number;
}

/** A limit with whom it counts for. */
interface Counted {
  readonly key: string;
  readonly limit: Limit;
  readonly asset: string;
  readonly subject: string;
}

/** Subjects that are known when a request comes; its wallet is known when it gets a nonce. */
const REQUEST_SUBJECTS: readonly LimitSubject[] = ["customer", "asset", "destination"];

const ENDED_UNPAID = `('failed', 'rejected', 'cancelled')`;

/**
 * SQL: whether a withdrawal `w` counts. Requests that failed, were rejected or were cancelled do not, with
 * one exception. Where `signerDayMaxUnits` bounds the asset, the signer adds an amount to its total before it
 * signs and takes nothing back. There a request that its customer or its destination ended still counts, if
 * it had a nonce and a payment was signed for it, or the customer or the deadline cancelled it: otherwise one
 * customer could use up the total of all by asking and cancelling. A nonce that somebody else's transaction
 * took is none.
 * @param signerBound SQL of the assets that the signer counts
 */
const countsCondition = (signerBound: string) => `(w.status NOT IN ${ENDED_UNPAID} OR
  w.asset = ANY (${signerBound}::text[]) AND ${IS_ENDED_BY_OTHERS} AND EXISTS (
    SELECT 1 FROM nonce_slot used
     WHERE used.withdrawal_id = w.id AND used.outcome IS DISTINCT FROM 'foreign'
       AND (w.cancel_cause IN ('request', 'deadline') OR EXISTS (
         SELECT 1 FROM withdrawal_attempt a WHERE a.slot_id = used.id AND a.kind = 'payment'))))`;

/** Those of the assets of which the signer has a total of 24 hours for all customers. */
function countedBySigner(
  { policy }: HashedPolicy,
  asked: readonly Pick<Counted, "asset">[],
): string[] {
  const assets = new Set(asked.map(({ asset }) => asset));
  return [...assets].filter((asset) => rulesOf(policy, asset).signerDayMaxUnits !== undefined);
}

/**
 * SQL: whether a withdrawal `w` that ended without payment did so by its customer or its destination. What we
 * gave up, forbade or did not find paid may be asked for again.
 */
const IS_ENDED_BY_OTHERS = `(w.cancel_cause IN ('request', 'deadline', 'refused')
  -- Mined and failed, unless a person had to say so of what a token's contract did.
  OR w.cancel_cause IS NULL AND NOT EXISTS (
    SELECT 1 FROM operator_decision d
     WHERE d.kind = 'transfer' AND d.key = w.id AND d.status = 'done'))`;

/** The row's own columns. */
const COUNTS: Readonly<Record<"customer" | "asset" | "destination", string>> = {
  customer: "w.customer_id = asked.subject",
  destination: "w.destination = asked.subject",
  asset: "true",
};

/** What a recovered payment took from its wallet, by what is booked of it. */
const RECOVERED_UNITS = `(
  SELECT r.tx_hash, r.wallet, r.decision, p.asset, p.amount_units, NULL AS destination
    FROM recovered_payment r
    JOIN journal_entry b ON b.idem_key = 'recovered-payment:' || r.tx_hash
    JOIN posting p ON p.journal_id = b.id AND p.debit = 'asset:recovered_payments') r`;

/** What it moved to each address: of several movements the sum is the largest. */
const RECOVERED_TO = `(
  SELECT r.tx_hash, r.wallet, r.decision, a.symbol AS asset, max(r.amount_units) AS amount_units,
         r.destination
    FROM recovered_terms r JOIN asset a ON a.contract IS NOT DISTINCT FROM r.contract
   GROUP BY r.tx_hash, r.wallet, r.decision, a.symbol, r.destination) r`;

/** The same of a recovered payment: whose request it was nobody knows yet. */
const RECOVERED: Readonly<
  Record<"asset" | "destination" | "wallet", { readonly from: string; readonly where: string }>
> = {
  destination: { from: RECOVERED_TO, where: "r.destination = asked.subject" },
  asset: { from: RECOVERED_UNITS, where: "true" },
  wallet: { from: RECOVERED_UNITS, where: "r.wallet = asked.subject" },
};

/** Limits are about what customers take; what the treasury moves stays ours. */
export function isLimited({ customerId }: Pick<JudgedRequest, "customerId">): boolean {
  return customerId !== TREASURY;
}

/** SQL: the same of a withdrawal `w`. */
const OF_CUSTOMERS = `w.customer_id <> '${TREASURY}'`;

/** SQL: when a window begins that ends with a moment. @param seconds NULL for the UTC day */
const windowBefore = (moment: string, seconds: string) => `CASE WHEN ${seconds} IS NULL
  THEN date_trunc('day', ${moment} AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'
  ELSE ${moment} - ${seconds} * interval '1 second' END`;

const WINDOW = windowBefore("now()", "asked.seconds");

/** Sums of one transaction; requests that it takes are added as they are taken. */
export class LimitCounts {
  readonly #policy: HashedPolicy;
  readonly #counts: Map<string, Count>;

  private constructor(policy: HashedPolicy, counts: Map<string, Count>) {
    this.#policy = policy;
    this.#counts = counts;
  }

  /** Locks what the limits of these requests are counted by, and counts. */
  static async lock(
    tx: Sql,
    policy: HashedPolicy,
    requests: readonly JudgedRequest[],
  ): Promise<LimitCounts> {
    const counted = distinct(requests.flatMap((request) => countedFor(policy, request)));
    if (counted.length === 0) return new LimitCounts(policy, new Map());
    await tx.query(
      `SELECT pg_advisory_xact_lock(place) FROM (
         SELECT DISTINCT hashtextextended(key, 8084) AS place FROM unnest($1::text[]) AS key
          ORDER BY 1) AS ordered`,
      [counted.map(({ asset, subject, limit }) => `${limit.by} ${asset} ${subject}`)],
    );
    // Before what they may become by a decision: counted between the two, one would count nowhere.
    const counts = new Map<string, Count>();
    for (const by of ["asset", "destination"] as const) {
      const asked = counted.filter(({ limit }) => limit.by === by);
      for (const [key, count] of await countRecovered(tx, by, asked)) counts.set(key, count);
    }
    for (const by of ["customer", "asset", "destination"] as const) {
      const asked = counted.filter(({ limit }) => limit.by === by);
      await countInto(tx, counts, asked, { condition: COUNTS[by], policy });
    }
    return new LimitCounts(policy, counts);
  }

  /** The first limit that a request would exceed; undefined for none. */
  exceeded(request: JudgedRequest): string | undefined {
    return countedFor(this.#policy, request).find(({ key, limit }) => {
      const { units, count } = this.#counts.get(key) ?? { units: 0n, count: 0 };
      return isExceeded(limit, { units: units + request.amountUnits, count: count + 1 });
    })?.key;
  }

  /** Counts a request that was taken. */
  add(request: JudgedRequest): void {
    // Once each: an amount and a number may be bound for the same window by a limit of its own.
    for (const { key } of distinct(countedFor(this.#policy, request))) {
      const count = this.#counts.get(key) ?? { units: 0n, count: 0 };
      count.units += request.amountUnits;
      count.count += 1;
      this.#counts.set(key, count);
    }
  }
}

/** Whether a policy has limits that count requests with those before them. */
export function limitsRequests({ policy }: HashedPolicy): boolean {
  return [...policy.assets.values()].some(({ limits }) =>
    limits.some(({ by }) => REQUEST_SUBJECTS.includes(by)),
  );
}

/** Whether a limit of the policy counts by wallets for any of these assets. */
export function walletLimits(policy: HashedPolicy, asset: string): readonly Limit[] {
  return rulesOf(policy.policy, asset).limits.filter(({ by }) => by === "wallet");
}

/** Whether a sum is above a limit. */
export function isExceeded(limit: Limit, { units, count }: Count): boolean {
  return (
    (limit.maxUnits !== undefined && units > limit.maxUnits) ||
    (limit.maxCount !== undefined && count > limit.maxCount)
  );
}

/** What a wallet was given to pay to customers in a limit's window. */
export async function countWallet(
  tx: Sql,
  { wallet, asset, limit }: { wallet: string; asset: string; limit: Limit },
): Promise<Count> {
  const asked = { key: "", asset, subject: wallet, limit };
  const recovered = (await countRecovered(tx, "wallet", [asked])).get(asked.key);
  const rows = await tx.query<{ units: string; count: string }>(
    `SELECT coalesce(sum(w.amount_units), 0)::text AS units, count(*)::text AS count
       FROM (SELECT $3::bigint AS seconds) AS asked
       JOIN nonce_slot s ON s.wallet = $1 AND s.taken_at >= ${WINDOW}
        -- A foreign transaction used it: the payment is made from another one, or from none.
        AND s.outcome IS DISTINCT FROM 'foreign'
       JOIN withdrawal w ON w.id = s.withdrawal_id AND w.asset = $2 AND ${OF_CUSTOMERS}
        AND w.status NOT IN ${ENDED_UNPAID}`,
    [wallet, asset, limit.window === "day" ? null : limit.window],
  );
  return sum(recovered, rows[0]);
}

/** A withdrawal that is stored. */
type StoredRequest = JudgedRequest & { readonly id: string };

/** By what a limit counts for, the most that any of some withdrawals can have before it. */
export type MostBefore = ReadonlyMap<string, Count>;

/**
 * What limits can have seen at most before any of these stored withdrawals: all up to the last of them, in
 * the windows of all. Where that is within a limit nobody has to add up a whole day for each of them. Nothing
 * is said while a payment counts that a recovery has found.
 */
export async function mostBefore(
  tx: Sql,
  policy: HashedPolicy,
  requests: readonly StoredRequest[],
): Promise<MostBefore> {
  const counted = requests.flatMap((request) =>
    countedFor(policy, request).map((entry) => ({ ...entry, id: request.id })),
  );
  const most = new Map<string, Count>();
  for (const by of ["customer", "asset", "destination"] as const) {
    const asked = counted.filter(({ limit }) => limit.by === by);
    if (asked.length === 0) continue;
    const rows = await tx.query<CountRow>(
      `WITH asked AS MATERIALIZED (
         SELECT a.key, a.asset, a.subject, max(own.position) AS position,
                min(${windowBefore("own.created_at", "a.seconds")}) AS since
           FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])
                AS a (key, asset, subject, seconds, id)
           JOIN withdrawal own ON own.id = a.id
          WHERE NOT EXISTS (SELECT 1 FROM recovered_payment WHERE decision IS NULL)
          GROUP BY a.key, a.asset, a.subject)
       SELECT asked.key, coalesce(sum(w.amount_units), 0)::text AS units, count(w.id)::text AS count
         FROM asked
         LEFT JOIN withdrawal w ON ${COUNTS[by]} AND ${OF_CUSTOMERS} AND w.asset = asked.asset
          AND w.position <= asked.position AND w.created_at >= asked.since
          AND ${countsCondition("$6")}
        GROUP BY asked.key`,
      [...columnsOf(asked), asked.map(({ id }) => id), countedBySigner(policy, asked)],
    );
    for (const { key, ...row } of rows) most.set(key, sum(undefined, row));
  }
  return most;
}

/**
 * The limit that a stored withdrawal exceeds by those that were accepted before it, in the window
 * that ends with it; undefined for none. For policies that came after it.
 * @param rejected those that end in the same commit: they have no nonce, and count no more
 * @param most of this one among others: a limit that it does not exceed by that is not asked about
 */
export async function exceededBefore(
  tx: Sql,
  policy: HashedPolicy,
  request: StoredRequest,
  { rejected, most }: { readonly rejected: readonly string[]; readonly most: MostBefore },
): Promise<string | undefined> {
  for (const { key, limit, asset, subject } of countedFor(policy, request)) {
    const { by, window } = limit;
    if (by === "wallet") continue;
    const bound = most.get(key);
    if (bound !== undefined && !isExceeded(limit, bound)) continue;
    const asked = { key, limit, asset, subject };
    const recovered =
      by === "customer" ? undefined : (await countRecovered(tx, by, [asked], request.id)).get(key);
    const rows = await tx.query<{ units: string; count: string }>(
      `SELECT coalesce(sum(w.amount_units), 0)::text AS units, count(*)::text AS count
         FROM withdrawal own
         JOIN (SELECT $2::text AS subject) AS asked ON true
         JOIN withdrawal w ON w.asset = $3 AND ${COUNTS[by]}
          AND ${OF_CUSTOMERS} AND w.position <= own.position
          AND w.created_at >= ${windowBefore("own.created_at", "$4::bigint")}
          AND ${countsCondition("$6")} AND w.id <> ALL ($5::text[])
        WHERE own.id = $1`,
      [
        request.id,
        subject,
        asset,
        window === "day" ? null : window,
        rejected,
        countedBySigner(policy, [asked]),
      ],
    );
    if (isExceeded(limit, sum(recovered, rows[0]))) return key;
  }
  return undefined;
}

function countedFor(policy: HashedPolicy, request: JudgedRequest): Counted[] {
  const { asset } = request;
  if (!isLimited(request)) return [];
  return rulesOf(policy.policy, asset)
    .limits.filter(({ by }) => REQUEST_SUBJECTS.includes(by))
    .map((limit) => {
      const subject = subjectOf(limit.by, request);
      return { key: `${asset} ${nameLimit(limit)} ${subject}`, limit, asset, subject };
    });
}

function subjectOf(by: LimitSubject, request: JudgedRequest): string {
  if (by === "customer") return request.customerId;
  return by === "destination" ? request.destination : request.asset;
}

function distinct(counted: readonly Counted[]): readonly Counted[] {
  return [...new Map(counted.map((entry) => [entry.key, entry])).values()];
}

/** Keys, assets, subjects and windows in seconds, NULL for the UTC day. */
function columnsOf(asked: readonly Counted[]): readonly (readonly unknown[])[] {
  return [
    asked.map(({ key }) => key),
    asked.map(({ asset }) => asset),
    asked.map(({ subject }) => subject),
    asked.map(({ limit }) => (limit.window === "day" ? null : limit.window)),
  ];
}

interface CountRow {
  readonly key: string;
  readonly units: string;
  readonly count: string;
}

async function countInto(
  tx: Sql,
  counts: Map<string, Count>,
  asked: readonly Counted[],
  { condition, policy }: { readonly condition: string; readonly policy: HashedPolicy },
): Promise<void> {
  if (asked.length === 0) return;
  const rows = await tx.query<CountRow>(
    `SELECT asked.key, coalesce(sum(w.amount_units), 0)::text AS units, count(w.id)::text AS count
       FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
            AS asked (key, asset, subject, seconds)
       LEFT JOIN withdrawal w ON ${condition} AND ${OF_CUSTOMERS} AND w.asset = asked.asset
        AND w.created_at >= ${WINDOW} AND ${countsCondition("$5")}
      GROUP BY asked.key`,
    [...columnsOf(asked), countedBySigner(policy, asked)],
  );
  for (const { key, ...row } of rows) counts.set(key, sum(counts.get(key), row));
}

/**
 * Payments that only the chain remembered and that nobody has decided about, as of when they were
 * recovered: they were made before, at a time that the ledger has lost.
 * @param until only what was recovered before this withdrawal was asked for, in the window that ends with it
 */
async function countRecovered(
  tx: Sql,
  by: keyof typeof RECOVERED,
  asked: readonly Counted[],
  until?: string,
): Promise<ReadonlyMap<string, Count>> {
  if (asked.length === 0) return new Map();
  const rows = await tx.query<CountRow>(
    `SELECT asked.key, sum(r.amount_units)::text AS units, count(*)::text AS count
       FROM ${RECOVERED[by].from}
       JOIN journal_entry e ON e.idem_key = 'recovered-payment:' || r.tx_hash
       JOIN unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
            AS asked (key, asset, subject, seconds) ON asked.asset = r.asset AND ${RECOVERED[by].where}
       LEFT JOIN withdrawal own ON own.id = $5
      WHERE r.decision IS NULL AND (own.id IS NULL OR e.posted_at <= own.created_at)
        AND e.posted_at >= ${windowBefore("coalesce(own.created_at, now())", "asked.seconds")}
      GROUP BY asked.key`,
    [...columnsOf(asked), until ?? null],
  );
  return new Map(rows.map(({ key, ...row }) => [key, sum(undefined, row)]));
}

function sum(
  before: Count | undefined,
  row: { readonly units: string; readonly count: string } | undefined,
): Count {
  return {
    units: (before?.units ?? 0n) + storedAtoken(row?.units),
    count: (before?.count ?? 0) + storedInteger(row?.count),
  };
}
