/** Withdrawal requests: accepted once per idempotency key together with their hold, and read back. */
import { randomUUID } from "node:crypto";
import type { Address } from "../../chain/address.js";
import { sha256 } from "../../chain/hashes.js";
import { bytesToHex, type Hash32, type Height } from "../../chain/hex.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { type CustomerId, customerAccount, heldAccount, NATIVE_ASSET } from "../books/accounts.js";
import { appendEvents } from "../events.js";
import { amountFields } from "../books/amount-fields.js";
import { postJournals } from "../books/journal.js";
import { refuseInRecovery } from "../recovery/ledger-guard.js";
import { ownWallets } from "../wallets/wallet.js";
import { freezeRecovered, matchRecovered } from "../recovery/recovered-payments.js";
import {
  storedAddress,
  storedAtoken,
  storedHash,
  storedInteger,
  storedTime,
} from "../stored-values.js";
import { toWithdrawalId, type WithdrawalId } from "./withdrawal-id.js";
import { isWithdrawalStatus, type WithdrawalStatus } from "./withdrawal-status.js";

/** What a client asks for, parsed. */
export interface WithdrawalRequest {
  /** 1-128 printable ASCII characters; one accepted request each, for ever. */
  readonly idempotencyKey: string;
  readonly customerId: CustomerId;
  readonly asset: string;
  readonly destination: Address;
  /** The destination as the client wrote it; shown in answers. */
  readonly destinationText: string;
  /** Greater than zero, below 2^256. */
  readonly amountUnits: bigint;
  /** Deadline, milliseconds since 1970 UTC: not paid by then, it is cancelled; none without it. */
  readonly expiresAtMs?: number | undefined;
}

/** Rules that only new requests are held against: a repeat of an accepted one is answered. */
export interface AcceptRules {
  /** Smallest amount of the coin; 0 takes any. */
  readonly minimumAtoken: bigint;
  /** Now, milliseconds since 1970 UTC: a deadline before it is refused. */
  readonly nowMs: number;
}

/** Why a request was refused; a refusal leaves no trace and does not bind its key. */
export type AcceptRefusal =
  | "UNKNOWN_CUSTOMER"
  | "INSUFFICIENT_BALANCE"
  | "IDEMPOTENCY_KEY_REUSED"
  | "BELOW_MINIMUM"
  | "DEADLINE_PASSED"
  /** The destination is a hot wallet of the exchange. */
  | "OWN_WALLET";

/** What became of a request: accepted now, a repeat of an accepted one, or refused. */
export type AcceptOutcome =
  | { readonly outcome: "accepted" | "repeated"; readonly withdrawal: Withdrawal }
  | { readonly outcome: "refused"; readonly refusal: AcceptRefusal };

/** A withdrawal as stored. */
export interface Withdrawal {
  readonly id: WithdrawalId;
  /** Place in the list of all withdrawals; commit order. */
  readonly position: number;
  readonly customerId: string;
  readonly asset: string;
  /** The hot wallet whose nonce it has; undefined before it has one. */
  readonly wallet: Address | undefined;
  readonly destination: Address;
  readonly destinationText: string;
  readonly amountUnits: bigint;
  readonly status: WithdrawalStatus;
  /** Why it ended without payment, froze or waits; undefined on the usual way. */
  readonly reason: string | undefined;
  /** Deadline in RFC 3339 UTC; undefined without one. */
  readonly expiresAt: string | undefined;
  /** Nonce of its latest slot. */
  readonly nonce: bigint | undefined;
  /** Hashes of every transaction signed for it, oldest first. */
  readonly hashes: readonly Hash32[];
  /** The mined transaction; before that the latest signed one. */
  readonly txHash: Hash32 | undefined;
  readonly blockNumber: Height | undefined;
  /** Every state it was in, `at` in RFC 3339 UTC. */
  readonly history: readonly { readonly status: WithdrawalStatus; readonly at: string }[];
}

/** A page of the list of withdrawals. */
export interface WithdrawalPage {
  readonly customerId?: string;
  readonly status?: WithdrawalStatus;
  /** Only rows behind this position; 0 for all. */
  readonly afterPosition: number;
  readonly limit: number;
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

/** The withdrawal of an identifier, if there is one. */
export async function findWithdrawal(sql: Sql, id: WithdrawalId): Promise<Withdrawal | undefined> {
  return (await findWithdrawals(sql, [id])).get(id);
}

/** Withdrawals oldest first, at most `limit`. */
export async function listWithdrawals(sql: Sql, page: WithdrawalPage): Promise<Withdrawal[]> {
  const rows = await sql.query<WithdrawalRow>(
    `${SELECT_WITHDRAWAL}
      WHERE w.position > $1 AND ($2::text IS NULL OR w.customer_id = $2)
        AND ($3::text IS NULL OR w.status = $3)
      ORDER BY w.position LIMIT $4`,
    [page.afterPosition, page.customerId ?? null, page.status ?? null, page.limit],
  );
  return rows.map(toWithdrawal);
}

interface DecidedRequest {
  readonly request: WithdrawalRequest;
  readonly id: WithdrawalId;
}

type Decision =
  | { readonly kind: "new" | "repeat"; readonly id: WithdrawalId }
  | { readonly kind: "refused"; readonly refusal: AcceptRefusal };

async function acceptInside(
  tx: Sql,
  requests: readonly WithdrawalRequest[],
  rules: AcceptRules,
): Promise<AcceptOutcome[]> {
  // Balances of a ledger that lost debits say nothing about what a customer has.
  await refuseInRecovery(tx);
  const bound = await lockKeys(tx, requests);
  const available = await lockBalances(tx, requests);
  const late = requests.filter((request) => isLate(request, rules));
  // A repeat of a request that the ledger lost after it was paid: refused, it would look unpaid.
  const paid = new Set(await matchRecovered(tx, late));
  const own = await ownWallets(
    tx,
    requests.map(({ destination }) => destination),
  );
  const decisions = requests.map((request) =>
    decide(request, { bound, available, rules, own, mayBePaid: paid.has(request) }),
  );
  const accepted: DecidedRequest[] = [];
  decisions.forEach((decision, index) => {
    const request = requests[index];
    if (decision.kind === "new" && request !== undefined) {
      accepted.push({ request, id: decision.id });
    }
  });
  await writeAccepted(tx, accepted);
  const frozen = accepted.filter(({ request }) => paid.has(request)).map(({ id }) => id);
  await appendEvents(tx, (await freezeRecovered(tx, frozen)).events);
  const ids = decisions.flatMap((decision) => (decision.kind === "refused" ? [] : [decision.id]));
  const stored = await findWithdrawals(tx, ids);
  return decisions.map((decision): AcceptOutcome => {
    if (decision.kind === "refused") return { outcome: "refused", refusal: decision.refusal };
    const withdrawal = stored.get(decision.id);
    if (withdrawal === undefined) throw new Error("an accepted withdrawal cannot be read back");
    return { outcome: decision.kind === "new" ? "accepted" : "repeated", withdrawal };
  });
}

/** What a key is bound to: a withdrawal and the hash of the request that made it. */
interface BoundKey {
  readonly id: WithdrawalId;
  readonly requestHash: string;
}

/** Makes requests with the same key wait for each other, then reads what the keys are bound to. */
async function lockKeys(
  tx: Sql,
  requests: readonly WithdrawalRequest[],
): Promise<Map<string, BoundKey>> {
  const keys = [...new Set(requests.map((request) => request.idempotencyKey))];
  await tx.query(
    `SELECT pg_advisory_xact_lock(place) FROM (
       SELECT DISTINCT hashtextextended(key, 8083) AS place FROM unnest($1::text[]) AS key
        ORDER BY 1) AS ordered`,
    [keys],
  );
  const rows = await tx.query<{ id: string; idempotency_key: string; request_hash: string }>(
    `SELECT id, idempotency_key, request_hash FROM withdrawal
      WHERE idempotency_key = ANY ($1::text[])`,
    [keys],
  );
  return new Map(
    rows.map((row) => [
      row.idempotency_key,
      { id: toWithdrawalId(row.id), requestHash: row.request_hash },
    ]),
  );
}

/** Key of one balance. Neither part can hold a space. */
function balanceKey(customerId: string, asset: string): string {
  return `${customerId} ${asset}`;
}

/** Available balances of known customers, locked in id order; a known one without a row has 0. */
async function lockBalances(
  tx: Sql,
  requests: readonly WithdrawalRequest[],
): Promise<Map<string, bigint>> {
  const customerIds = [...new Set(requests.map((request) => request.customerId))];
  const known = await tx.query<{ id: string }>(
    `SELECT id FROM customer WHERE id = ANY ($1::text[])`,
    [customerIds],
  );
  const rows = await tx.query<{ customer_id: string; asset: string; available_units: string }>(
    `SELECT customer_id, asset, available_units::text FROM customer_balance
      WHERE customer_id = ANY ($1::text[]) ORDER BY customer_id, asset FOR UPDATE`,
    [customerIds],
  );
  const available = new Map<string, bigint>();
  for (const { asset } of requests) {
    for (const { id } of known) available.set(balanceKey(id, asset), 0n);
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
    /** A recovered payment may be this request's. */
    readonly mayBePaid: boolean;
  },
): Decision {
  const { bound, available, rules, own, mayBePaid } = known;
  const requestHash = hashRequest(request);
  const before = bound.get(request.idempotencyKey);
  if (before !== undefined) {
    return before.requestHash === requestHash
      ? { kind: "repeat", id: before.id }
      : { kind: "refused", refusal: "IDEMPOTENCY_KEY_REUSED" };
  }
  if (own.has(request.destination)) return { kind: "refused", refusal: "OWN_WALLET" };
  const key = balanceKey(request.customerId, request.asset);
  const availableAtoken = available.get(key);
  if (availableAtoken === undefined) return { kind: "refused", refusal: "UNKNOWN_CUSTOMER" };
  if (request.asset === NATIVE_ASSET && request.amountUnits < rules.minimumAtoken) {
    return { kind: "refused", refusal: "BELOW_MINIMUM" };
  }
  if (isLate(request, rules) && !mayBePaid) {
    return { kind: "refused", refusal: "DEADLINE_PASSED" };
  }
  if (availableAtoken < request.amountUnits) {
    return { kind: "refused", refusal: "INSUFFICIENT_BALANCE" };
  }
  const id = toWithdrawalId(`wd_${randomUUID()}`);
  available.set(key, availableAtoken - request.amountUnits);
  bound.set(request.idempotencyKey, { id, requestHash });
  return { kind: "new", id };
}

function isLate({ expiresAtMs }: WithdrawalRequest, { nowMs }: AcceptRules): boolean {
  return expiresAtMs !== undefined && expiresAtMs <= nowMs;
}

/** Hash of what the request means: another spelling of the same request is the same request. */
function hashRequest(request: WithdrawalRequest): string {
  const { customerId, asset, destination, amountUnits, expiresAtMs } = request;
  const terms = [customerId, asset, destination, amountUnits.toString()];
  // Without a deadline the hash is what it was before there were any.
  const meaning = JSON.stringify(expiresAtMs === undefined ? terms : [...terms, expiresAtMs]);
  return bytesToHex(sha256(Buffer.from(meaning, "utf8")));
}

async function writeAccepted(tx: Sql, accepted: readonly DecidedRequest[]): Promise<void> {
  if (accepted.length === 0) return;
  await postJournals(
    tx,
    accepted.map(({ id, request }) => ({
      kind: "withdrawal.hold",
      idemKey: `withdrawal:${id}:hold`,
      effectiveHeight: null,
      postings: [
        {
          asset: request.asset,
          debit: customerAccount(request.customerId),
          credit: heldAccount(request.customerId),
          amountUnits: request.amountUnits,
        },
      ],
    })),
  );
  await appendEvents(
    tx,
    accepted.map(({ id, request }) => ({
      type: "withdrawal.accepted",
      data: {
        withdrawalId: id,
        customerId: request.customerId,
        asset: request.asset,
        to: request.destinationText,
        ...amountFields(request.asset, request.amountUnits),
      },
    })),
  );
  // Behind the event counter's lock, so that positions appear in the order of commits. Nobody can
  // make this insert wait: its key is locked above.
  const column = (read: (entry: DecidedRequest) => string) => accepted.map(read);
  await tx.query(
    `WITH written AS (
       INSERT INTO withdrawal (id, idempotency_key, request_hash, customer_id, asset,
         destination, destination_text, amount_units, expires_at, status)
       SELECT id, key, request_hash, customer_id, asset, destination, destination_text,
              amount, expires_at, 'accepted'
         FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[],
                     $6::text[], $7::text[], $8::numeric[], $9::timestamptz[])
              WITH ORDINALITY AS input (id, key, request_hash, customer_id, asset,
                destination, destination_text, amount, expires_at, place)
        ORDER BY place
       RETURNING id)
     INSERT INTO withdrawal_history (withdrawal_id, seq, status)
     SELECT id, 1, 'accepted' FROM written`,
    [
      column(({ id }) => id),
      column(({ request }) => request.idempotencyKey),
      column(({ request }) => hashRequest(request)),
      column(({ request }) => request.customerId),
      column(({ request }) => request.asset),
      column(({ request }) => request.destination),
      column(({ request }) => request.destinationText),
      column(({ request }) => request.amountUnits.toString()),
      accepted.map(({ request: { expiresAtMs } }) =>
        expiresAtMs === undefined ? null : new Date(expiresAtMs).toISOString(),
      ),
    ],
  );
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
  readonly status: string;
  readonly reason: string | null;
  readonly expires_at: unknown;
  readonly nonce: string | null;
  readonly mined_hash: string | null;
  readonly block_number: string | null;
  readonly hashes: readonly string[] | null;
  readonly history: readonly { readonly status: string; readonly at: string }[];
}

/** A slot whose nonce a foreign transaction consumed shows no mined transaction of ours. */
const SELECT_WITHDRAWAL = `
  SELECT w.id, w.position::text, w.customer_id, w.asset, slot.wallet, w.destination,
         w.destination_text, w.amount_units::text, w.status, w.reason, w.expires_at, slot.nonce::text,
         slot.mined_hash, slot.block_number::text,
         (SELECT array_agg(a.hash ORDER BY s.id, a.n)
            FROM nonce_slot s JOIN withdrawal_attempt a ON a.slot_id = s.id
           WHERE s.withdrawal_id = w.id) AS hashes,
         (SELECT jsonb_agg(jsonb_build_object('status', h.status, 'at', h.at) ORDER BY h.seq)
            FROM withdrawal_history h WHERE h.withdrawal_id = w.id) AS history
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
  };
}

/** Status column to a state; throws on a value that no version of the table allows. */
export function storedStatus(text: string): WithdrawalStatus {
  if (!isWithdrawalStatus(text)) throw new Error(`the ledger holds an unknown status: ${text}`);
  return text;
}
