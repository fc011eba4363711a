/** Withdrawal requests: accepted once per idempotency key together with their hold, and read back. */
import type { Address } from "../../chain/address.js";
import type { Atoken } from "../../chain/units.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { NATIVE_ASSET } from "../journal/accounts.js";
import { appendEvents } from "../events.js";
import { listedBehind, listedBy, type ListOrder } from "../list-order.js";
import { AcceptJudge, type AcceptTerms, type PolicyRefusal } from "../policy/accept-judge.js";
import { type ApprovalRow, toApproval } from "../policy/approval-rows.js";
import type { HashedPolicy } from "../policy/policy.js";
import { refuseInRecovery } from "../guard/recovery-incident.js";
import { freezeRecovered, matchRecovered } from "../requests/recovered-payments.js";
import {
  storedAddress,
  storedAtoken,
  storedHash,
  storedInteger,
  storedTime,
} from "../stored-values.js";
import { type DecidedRequest, writeAccepted } from "./accepted-rows.js";
import { newWithdrawalId, toWithdrawalId, type WithdrawalId } from "../requests/withdrawal-id.js";
import { hashRequest, type Withdrawal, type WithdrawalRequest } from "./withdrawal-request.js";
import {
  isWithdrawalStatus,
  phaseOf,
  type WithdrawalStatus,
} from "../requests/withdrawal-status.js";

/** What a client asks for. */
export type { WithdrawalRequest } from "./withdrawal-request.js";

/** What the ledger holds. */
export type { Withdrawal } from "./withdrawal-request.js";

/** Rules that only new requests are held against: a repeat of an accepted one is answered. */
export interface AcceptRules {
  /** Smallest amount of the coin; 0 takes any. */
  readonly minimumAtoken: Atoken;
  /** Now, milliseconds since 1970 UTC: a deadline before it is refused. */
  readonly nowMs: number;
  readonly policy: HashedPolicy;
  /** The home's own kill switch stops new requests; the ledger's is read besides. */
  readonly isStopped: boolean;
}

/** Why a request was refused; a refusal leaves no trace and does not bind its key. */
export type AcceptRefusal =
  | "UNKNOWN_ASSET"
  | "UNKNOWN_CUSTOMER"
  | "INSUFFICIENT_BALANCE"
  | "IDEMPOTENCY_KEY_REUSED"
  | "DEADLINE_PASSED"
  /** The destination is a hot wallet of the exchange, a token's contract, or forbidden otherwise. */
  | "OWN_WALLET"
  | PolicyRefusal;

/** What became of a request: accepted now, a repeat of an accepted one, or refused. */
export type AcceptOutcome =
  | { readonly outcome: "accepted" | "repeated"; readonly withdrawal: Withdrawal }
  | {
      readonly outcome: "refused";
      readonly refusal: AcceptRefusal;
      /** Which limit it is, of LIMIT_EXCEEDED. */
      readonly rule?: string | undefined;
    };

/** A page of the list of withdrawals. */
export interface WithdrawalPage {
  readonly customerId?: string;
  readonly status?: WithdrawalStatus;
  /** Only rows behind this position; 0 for all. */
  readonly afterPosition: number;
  readonly limit: number;
  /** Oldest first where nothing else is said. */
  readonly order?: ListOrder;
}

/**
 * Accepts many requests in one transaction; each gets an answer of its own, in order. The hold,
 * the row, its history and its event commit together.
 * @throws RECOVERY
 */
export function acceptWithdrawals(
  database: Pick<SqlDatabase, "transaction">,
  requests: readonly WithdrawalRequest[],
  rules: AcceptRules,
): Promise<AcceptOutcome[]> {
  return database.transaction((tx) => acceptInside(tx, requests, rules));
}

/**
 * Answers, in order, those requests whose keys are bound; undefined for new ones. For a time in which nothing
 * can be accepted: whoever was told of an acceptance is told so again.
 * @throws RECOVERY
 */
export function answerRepeats(
  database: Pick<SqlDatabase, "transaction">,
  requests: readonly WithdrawalRequest[],
): Promise<(AcceptOutcome | undefined)[]> {
  return database.transaction(async (tx) => {
    await refuseInRecovery(tx);
    const { bound } = await readKnown(tx, requests);
    const decisions = requests.map((request) => decideBound(request, bound));
    const ids = decisions.flatMap((each) => (each?.kind === "repeat" ? [each.id] : []));
    const stored = await findWithdrawals(tx, ids);
    return decisions.map((decision) => decision && toOutcome(decision, stored));
  });
}

/** The withdrawal of an identifier, if there is one. */
export async function findWithdrawal(sql: Sql, id: WithdrawalId): Promise<Withdrawal | undefined> {
  return (await findWithdrawals(sql, [id])).get(id);
}

/** Withdrawals behind a position, at most `limit`. */
export async function listWithdrawals(sql: Sql, page: WithdrawalPage): Promise<Withdrawal[]> {
  const rows = await sql.query<WithdrawalRow>(
    `${SELECT_WITHDRAWAL}
      WHERE ${listedBehind("w.position", page.order)} AND ($2::text IS NULL OR w.customer_id = $2)
        AND ($3::text IS NULL OR w.phase = $5 AND w.status = $3)
      ORDER BY ${listedBy("w.position", page.order)} LIMIT $4`,
    [
      page.afterPosition,
      page.customerId ?? null,
      page.status ?? null,
      page.limit,
      page.status === undefined ? null : phaseOf(page.status),
    ],
  );
  return rows.map(toWithdrawal);
}

type Decision =
  | { readonly kind: "repeat"; readonly id: WithdrawalId }
  | {
      readonly kind: "new";
      readonly id: WithdrawalId;
      readonly requestHash: string;
      readonly terms: AcceptTerms;
      readonly refused: DecidedRequest["refused"];
    }
  | { readonly kind: "refused"; readonly refusal: AcceptRefusal; readonly rule?: string };

/**
 * The same inside the caller's transaction, which holds no lock of withdrawals yet.
 * @throws RECOVERY
 */
export async function acceptInside(
  tx: Sql,
  requests: readonly WithdrawalRequest[],
  rules: AcceptRules,
): Promise<AcceptOutcome[]> {
  // Balances of a ledger that lost debits say nothing about what a customer has.
  await refuseInRecovery(tx);
  await lockKeys(tx, requests);
  // Before the balances: the kill switch comes before them in the order of locks.
  const judge = await AcceptJudge.open(tx, requests, rules);
  const { bound, customers, own, contracts, hasRecovered } = await readKnown(tx, requests);
  const available = await lockBalances(tx, requests, customers);
  // A repeat of a request that the ledger lost after it was paid: refused, it would look unpaid.
  const paid = new Set(hasRecovered ? await matchRecovered(tx, requests) : []);
  const decisions = requests.map((request) =>
    decide(request, {
      bound,
      available,
      rules,
      own,
      contracts,
      judge,
      mayBePaid: paid.has(request),
    }),
  );
  const accepted: DecidedRequest[] = [];
  const doubtful: WithdrawalId[] = [];
  decisions.forEach((decision, index) => {
    const request = requests[index];
    if (decision.kind === "new" && request !== undefined) {
      const { id, requestHash, terms, refused } = decision;
      accepted.push({ request, id, requestHash, terms, refused });
      if (refused !== undefined) doubtful.push(id);
    }
  });
  const written = await writeAccepted(tx, accepted, rules.policy);
  await appendEvents(tx, (await freezeRecovered(tx, doubtful)).events);
  // A new one is what was just written; what may have been frozen, and repeats, are read.
  const repeated = decisions.flatMap((each) => (each.kind === "repeat" ? [each.id] : []));
  const stored = new Map([...written, ...(await findWithdrawals(tx, [...repeated, ...doubtful]))]);
  return decisions.map((decision) => toOutcome(decision, stored));
}

function toOutcome(
  decision: Decision,
  stored: ReadonlyMap<WithdrawalId, Withdrawal>,
): AcceptOutcome {
  if (decision.kind === "refused") {
    return { outcome: "refused", refusal: decision.refusal, rule: decision.rule };
  }
  const withdrawal = stored.get(decision.id);
  if (withdrawal === undefined) throw new Error("an accepted withdrawal cannot be read back");
  return { outcome: decision.kind === "new" ? "accepted" : "repeated", withdrawal };
}

/** What a key is bound to: a withdrawal and the hash of the request that made it. */
interface BoundKey {
  readonly id: WithdrawalId;
  readonly requestHash: string;
  /** Booked for a payment that only the chain remembered: it says nothing of a deadline. */
  readonly isRecovered: boolean;
}

/** Makes requests with the same key wait for each other. */
async function lockKeys(tx: Sql, requests: readonly WithdrawalRequest[]): Promise<void> {
  const keys = [...new Set(requests.map((request) => request.idempotencyKey))];
  await tx.query(
    `SELECT pg_advisory_xact_lock(place) FROM (
       SELECT DISTINCT hashtextextended(key, 8083) AS place FROM unnest($1::text[]) AS key
        ORDER BY 1) AS ordered`,
    [keys],
  );
}

/** What the ledger knows of requests, beside balances. */
interface Known {
  /** What their keys are bound to. */
  readonly bound: Map<string, BoundKey>;
  /** Those of their customers that there are. */
  readonly customers: readonly string[];
  /** Destinations that are hot wallets of the exchange. */
  readonly own: ReadonlySet<Address>;
  /** Destinations that are contracts of its tokens: this process' list may be older. */
  readonly contracts: ReadonlySet<Address>;
  /** Some recovered payment waits for a person: it may be one of these requests'. */
  readonly hasRecovered: boolean;
}

/** Reads it in one round trip, behind the keys' locks. */
async function readKnown(tx: Sql, requests: readonly WithdrawalRequest[]): Promise<Known> {
  const [row] = await tx.query<{
    bound: readonly (readonly [string, string, string, boolean])[] | null;
    customers: readonly string[] | null;
    own: readonly string[] | null;
    contracts: readonly string[] | null;
    has_recovered: boolean;
  }>(
    `SELECT (SELECT jsonb_agg(jsonb_build_array(idempotency_key, id, request_hash,
                      EXISTS (SELECT 1 FROM recovered_payment WHERE withdrawal_id = withdrawal.id)))
               FROM withdrawal WHERE idempotency_key = ANY ($1::text[])) AS bound,
            (SELECT array_agg(id) FROM customer WHERE id = ANY ($2::text[])) AS customers,
            (SELECT array_agg(address) FROM wallet WHERE address = ANY ($3::text[])) AS own,
            (SELECT array_agg(contract) FROM asset WHERE contract = ANY ($3::text[])) AS contracts,
            EXISTS (SELECT 1 FROM recovered_payment WHERE decision IS NULL) AS has_recovered`,
    [
      [...new Set(requests.map(({ idempotencyKey }) => idempotencyKey))],
      [...new Set(requests.map(({ customerId }) => customerId))],
      [...new Set(requests.map(({ destination }) => destination))],
    ],
  );
  return {
    bound: new Map(
      (row?.bound ?? []).map(([key, id, requestHash, isRecovered]) => [
        key,
        { id: toWithdrawalId(id), requestHash, isRecovered },
      ]),
    ),
    customers: row?.customers ?? [],
    own: new Set((row?.own ?? []).map(storedAddress)),
    contracts: new Set((row?.contracts ?? []).map(storedAddress)),
    hasRecovered: row?.has_recovered ?? true,
  };
}

/** Key of one balance. Neither part can hold a space. */
function balanceKey(customerId: string, asset: string): string {
  return `${customerId} ${asset}`;
}

/** Available balances of known customers, locked in id order; a known one without a row has 0. */
async function lockBalances(
  tx: Sql,
  requests: readonly WithdrawalRequest[],
  customers: readonly string[],
): Promise<Map<string, bigint>> {
  const rows = await tx.query<{ customer_id: string; asset: string; available_units: string }>(
    `SELECT customer_id, asset, available_units::text FROM customer_balance
      WHERE customer_id = ANY ($1::text[]) ORDER BY customer_id, asset FOR UPDATE`,
    [customers],
  );
  const available = new Map<string, bigint>();
  for (const { asset } of requests) {
    for (const id of customers) available.set(balanceKey(id, asset), 0n);
  }
  for (const row of rows) {
    available.set(balanceKey(row.customer_id, row.asset), storedAtoken(row.available_units));
  }
  return available;
}

/** Decides one request and, when it is new, books it in the two maps for those behind it. */
function decide(
  request: WithdrawalRequest,
  known: {
    readonly bound: Map<string, BoundKey>;
    readonly available: Map<string, bigint>;
    readonly rules: AcceptRules;
    /** Hot wallets of the exchange among the destinations. */
    readonly own: ReadonlySet<Address>;
    readonly contracts: ReadonlySet<Address>;
    readonly judge: AcceptJudge;
    /** A recovered payment may be this request's. */
    readonly mayBePaid: boolean;
  },
): Decision {
  const { bound, available, rules, own, judge, mayBePaid } = known;
  const before = decideBound(request, bound);
  if (before !== undefined) return before;
  const isForbidden = request.isForbidden === true || own.has(request.destination);
  if (isForbidden) return { kind: "refused", refusal: "OWN_WALLET" };
  const key = balanceKey(request.customerId, request.asset);
  const availableAtoken = available.get(key);
  if (availableAtoken === undefined) return { kind: "refused", refusal: "UNKNOWN_CUSTOMER" };
  if (request.asset === NATIVE_ASSET && request.amountUnits < rules.minimumAtoken) {
    return { kind: "refused", refusal: "BELOW_MINIMUM" };
  }
  const refused = refusalNow(request, known);
  if (refused !== undefined && !mayBePaid) return { kind: "refused", ...refused };
  const terms = judge.termsOf(request);
  const heldUnits = request.amountUnits + terms.feeUnits;
  if (availableAtoken < heldUnits) {
    return { kind: "refused", refusal: "INSUFFICIENT_BALANCE" };
  }
  judge.add(request);
  const id = newWithdrawalId(rules.nowMs);
  const requestHash = hashRequest(request);
  available.set(key, availableAtoken - heldUnits);
  bound.set(request.idempotencyKey, { id, requestHash, isRecovered: false });
  return { kind: "new", id, requestHash, terms, refused };
}

/** What a request comes to whose key is bound; undefined for a new one. */
function decideBound(
  request: WithdrawalRequest,
  bound: ReadonlyMap<string, BoundKey>,
): Decision | undefined {
  const before = bound.get(request.idempotencyKey);
  if (before === undefined) return undefined;
  return isRepeat(request, before)
    ? { kind: "repeat", id: before.id }
    : { kind: "refused", refusal: "IDEMPOTENCY_KEY_REUSED" };
}

function isRepeat(request: WithdrawalRequest, { requestHash, isRecovered }: BoundKey): boolean {
  if (requestHash === hashRequest(request)) return true;
  return isRecovered && requestHash === hashRequest({ ...request, expiresAtMs: undefined });
}

/** By what may have been otherwise when a request was accepted that was paid and lost. */
function refusalNow(
  request: WithdrawalRequest,
  known: {
    readonly contracts: ReadonlySet<Address>;
    readonly rules: AcceptRules;
    readonly judge: AcceptJudge;
  },
): { readonly refusal: AcceptRefusal; readonly rule?: string } | undefined {
  const { contracts, rules, judge } = known;
  const { isUnlisted, destination, expiresAtMs } = request;
  if (isUnlisted === true) return { refusal: "UNKNOWN_ASSET" };
  if (contracts.has(destination)) return { refusal: "OWN_WALLET" };
  if (expiresAtMs !== undefined && expiresAtMs <= rules.nowMs)
    return { refusal: "DEADLINE_PASSED" };
  return judge.refusalOf(request);
}

async function findWithdrawals(
  sql: Sql,
  ids: readonly WithdrawalId[],
): Promise<Map<WithdrawalId, Withdrawal>> {
  if (ids.length === 0) return new Map();
  const rows = await sql.query<WithdrawalRow>(
    `${SELECT_WITHDRAWAL} WHERE w.id = ANY ($1::text[])`,
    [ids],
  );
  return new Map(rows.map(toWithdrawal).map((withdrawal) => [withdrawal.id, withdrawal]));
}

interface WithdrawalRow {
  readonly id: string;
  readonly position: string;
  readonly customer_id: string;
  readonly asset: string;
  readonly wallet: string | null;
  readonly destination: string;
  readonly destination_text: string;
  readonly amount_units: string;
  readonly fee_units: string;
  readonly status: string;
  readonly reason: string | null;
  readonly expires_at: unknown;
  readonly nonce: string | null;
  readonly mined_hash: string | null;
  readonly block_number: string | null;
  readonly hashes: readonly string[] | null;
  readonly history: readonly { readonly status: string; readonly at: string }[];
  readonly approvals_needed: number;
  readonly approvals_signed: boolean;
  readonly approval_policy: string | null;
  readonly approvals: readonly ApprovalRow[] | null;
}

/** A slot whose nonce a foreign transaction consumed shows no mined transaction of ours. */
const SELECT_WITHDRAWAL = `
  SELECT w.id, w.position::text, w.customer_id, w.asset, slot.wallet, w.destination,
         w.destination_text, w.amount_units::text, w.fee_units::text, w.status, w.reason,
         w.expires_at, slot.nonce::text, slot.mined_hash, slot.block_number::text,
         (SELECT array_agg(a.hash ORDER BY s.id, a.n)
            FROM nonce_slot s JOIN withdrawal_attempt a ON a.slot_id = s.id
           WHERE s.withdrawal_id = w.id) AS hashes,
         (SELECT jsonb_agg(jsonb_build_object('status', h.status, 'at', h.at) ORDER BY h.seq)
            FROM withdrawal_history h WHERE h.withdrawal_id = w.id) AS history,
         w.approvals_needed, w.approvals_signed, w.approval_policy,
         (SELECT jsonb_agg(to_jsonb(a) ORDER BY a.id)
            FROM withdrawal_approval a WHERE a.withdrawal_id = w.id) AS approvals
    FROM withdrawal w
    LEFT JOIN LATERAL (
      SELECT s.wallet, s.nonce,
             CASE WHEN s.outcome IS DISTINCT FROM 'foreign' THEN s.mined_hash END AS mined_hash,
             CASE WHEN s.outcome IS DISTINCT FROM 'foreign' THEN s.block_number END AS block_number
        FROM nonce_slot s WHERE s.withdrawal_id = w.id ORDER BY s.id DESC LIMIT 1
    ) AS slot ON true`;

function toWithdrawal(row: WithdrawalRow): Withdrawal {
  const hashes = (row.hashes ?? []).map(storedHash);
  return {
    id: toWithdrawalId(row.id),
    position: storedInteger(row.position),
    customerId: row.customer_id,
    asset: row.asset,
    wallet: row.wallet === null ? undefined : storedAddress(row.wallet),
    destination: storedAddress(row.destination),
    destinationText: row.destination_text,
    amountUnits: storedAtoken(row.amount_units),
    feeUnits: storedAtoken(row.fee_units),
    status: storedStatus(row.status),
    reason: row.reason ?? undefined,
    expiresAt: row.expires_at === null ? undefined : storedTime(row.expires_at),
    nonce: row.nonce === null ? undefined : storedAtoken(row.nonce),
    hashes,
    txHash: row.mined_hash === null ? hashes.at(-1) : storedHash(row.mined_hash),
    blockNumber: row.block_number === null ? undefined : storedInteger(row.block_number),
    history: row.history.map(({ status, at }) => ({
      status: storedStatus(status),
      at: storedTime(at),
    })),
    approval: {
      needed: row.approvals_needed,
      signed: row.approvals_signed,
      policyHash: row.approval_policy ?? undefined,
      approvals: (row.approvals ?? []).map(toApproval),
    },
  };
}

/** Status column to a state; throws on a value that no version of the table allows. */
export function storedStatus(text: string): WithdrawalStatus {
  if (!isWithdrawalStatus(text)) throw new Error(`the ledger holds an unknown status: ${text}`);
  return text;
}
