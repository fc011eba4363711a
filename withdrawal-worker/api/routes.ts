/** The withdrawal API (openapi/withdrawal.yaml): requests in, withdrawals out. */
import { parseStrictAddress, toChecksumAddress } from "../../chain/address.js";
import type { ChainAccounts } from "../../chain/chain-accounts.js";
import { timeMsOf } from "../../chain/encoding/calendar.js";
import { parseAtoken } from "../../chain/units.js";
import { isAssetSymbol, type TokenAsset } from "../../ledger/assets/asset-registry.js";
import {
  type CustomerId,
  NATIVE_ASSET,
  parseCustomerId,
  TREASURY,
} from "../../ledger/journal/accounts.js";
import { amountFields } from "../../ledger/journal/amount-fields.js";
import { commitLost, type LedgerGuard } from "../../ledger/guard/ledger-guard.js";
import { isForbiddenDestination } from "../../ledger/policy/destinations.js";
import { type CancelOutcome, cancelWithdrawal } from "../../ledger/withdrawals/cancellation.js";
import {
  isWithdrawalStatus,
  phaseOf,
  type WithdrawalStatus,
} from "../../ledger/requests/withdrawal-status.js";
import type { KnownNonces } from "../../ledger/requests/signing-freeze.js";
import { toWithdrawalId, type WithdrawalId } from "../../ledger/requests/withdrawal-id.js";
import {
  type AcceptRefusal,
  findWithdrawal,
  listWithdrawals,
  type Withdrawal,
  type WithdrawalPage,
  type WithdrawalRequest,
} from "../../ledger/withdrawals/withdrawals.js";
import type { HttpReply } from "../../runtime/http/http-reply.js";
import type { HttpRequest, KeyedRoute } from "../../runtime/http/http-route.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import type { ChainLook } from "../lane/chain-look.js";
import type { PolicySource } from "../lane/lane-context.js";
import type { AcceptQueue } from "./accept-queue.js";
import { decide, encodeApproval } from "./approval-route.js";
import { invalidField, parseField, readReason } from "./fields.js";
import { ApiError, type ApiErrorCode } from "../errors.js";

/** What the API needs. */
export interface WithdrawalApiParts {
  readonly database: SqlDatabase;
  readonly accept: AcceptQueue;
  /** Tokens that can be withdrawn, and that never receive. */
  readonly tokens: readonly Pick<TokenAsset, "symbol" | "contract">[];
  /** Told after a withdrawal was cancelled, is to be, or has its approvals. */
  readonly onCancelled: () => void;
  readonly policy: PolicySource;
  readonly chainId: bigint;
  /** Next nonces that lanes of this process were shown: behind them nothing is taken back at once. */
  readonly shownNonces?: KnownNonces;
  /** Asks the chain before something is taken back; absent where no chain is known. */
  readonly look?: Pick<ChainLook, "beforeEnding">;
  /** Remembers what is told here; absent where nothing is paid by what was told. */
  readonly guard?: Pick<LedgerGuard, "keep" | "assertStands">;
  /** Accounts that the chain's genesis names. */
  readonly chainAccounts?: () => ChainAccounts;
}

/** Rows on a page without `limit`, as in the API file. */
const DEFAULT_LIMIT = 100;

/** Printable ASCII; HTTP itself takes the blanks around a header's value away. */
const IDEMPOTENCY_KEY_PATTERN = /^[\x20-\x7e]{1,128}$/;

const NEVER_PAID =
  "hot wallets, tokens' contracts, accounts of the chain itself and the zero and the burn address " +
  "are never paid";

const REFUSALS: Readonly<Record<Exclude<AcceptRefusal, "OWN_WALLET">, string>> = {
  UNKNOWN_ASSET: `asset must be ${NATIVE_ASSET} or a token of this exchange`,
  UNKNOWN_CUSTOMER: "the ledger does not know this customer",
  INSUFFICIENT_BALANCE: "the customer's available balance is too small",
  IDEMPOTENCY_KEY_REUSED: "this Idempotency-Key belongs to another request",
  BELOW_MINIMUM: "the amount is below the smallest withdrawal of this asset",
  DEADLINE_PASSED: "expiresAt has passed already",
  ABOVE_MAXIMUM:
    "the amount is above the largest withdrawal of this asset, or above all that is signed of it in a day, " +
    "or paid by a wallet in a window; of one that the policy does not name nothing is paid",
  LIMIT_EXCEEDED: "a limit of the policy is used up; details name it",
  DESTINATION_NOT_LISTED: "the destination is not on the customer's list",
  DESTINATION_TOO_NEW: "the destination was listed too short a time ago",
  WITHDRAWALS_STOPPED: "the exchange takes no withdrawals at the moment",
};

/** Answers to a wish to cancel that cannot be granted. */
const CANCEL_REFUSALS: Readonly<
  Record<Exclude<CancelOutcome, "done">, readonly [404 | 409, ApiErrorCode, string]>
> = {
  unknown: [404, "NOT_FOUND", "no withdrawal has this id"],
  mined: [409, "ALREADY_MINED", "the payment is mined"],
  ended: [409, "ALREADY_ENDED", "the withdrawal has ended without payment"],
};

/** The first moment that the ledger can keep: there is no year 0, and RFC 3339 says none before it. */
const YEAR_1_MS = Date.parse("0001-01-01T00:00:00Z");

/** Behind the last moment that RFC 3339 can say in UTC, which is how it is kept and shown. */
const YEAR_10000_MS = Date.UTC(10_000, 0);

/** Routes of `openapi/withdrawal.yaml`. */
export function createWithdrawalRoutes(parts: WithdrawalApiParts): readonly KeyedRoute[] {
  return [
    {
      method: "post",
      path: "/v1/withdrawals",
      direct: true,
      scope: "withdrawals:write",
      checkHead: readIdempotencyKey,
      handler: (request) => createWithdrawal(parts, request),
    },
    {
      method: "get",
      path: "/v1/withdrawals",
      scope: "withdrawals:read",
      handler: (request) => getPage(parts, request),
    },
    {
      method: "get",
      path: "/v1/withdrawals/{id}",
      scope: "withdrawals:read",
      handler: (request) => getOne(parts, request),
    },
    {
      method: "post",
      path: "/v1/withdrawals/{id}/cancel",
      scope: "withdrawals:write",
      handler: (request) => cancelOne(parts, request),
    },
    {
      method: "post",
      path: "/v1/withdrawals/{id}/approvals",
      scope: "approvals:write",
      handler: (request) => approveOne(parts, request),
    },
  ];
}

/**
 * Parses a request to withdraw. What may have changed since it was accepted is noted, not refused.
 * @throws ApiError INVALID_IDEMPOTENCY_KEY (400), INVALID_FIELD, UNKNOWN_ASSET (422)
 */
function parseWithdrawalRequest(
  request: Pick<HttpRequest, "headers" | "body" | "caller">,
  { tokens, chainAccounts }: Pick<WithdrawalApiParts, "tokens" | "chainAccounts">,
): WithdrawalRequest {
  const idempotencyKey = readIdempotencyKey(request.headers);
  const body = typeof request.body === "object" && request.body !== null ? request.body : {};
  const read = (name: string): unknown => Reflect.get(body, name);
  const { asset, isUnlisted } = readAsset(read, tokens);
  const destination = parseField("to", () => parseStrictAddress(read("to")));
  // Which wallets are ours the ledger knows itself.
  const own = {
    wallets: [],
    tokenContracts: tokens.map(({ contract }) => contract),
    chainAccounts: Object.values(chainAccounts?.() ?? {}),
  };
  return {
    idempotencyKey,
    customerId: readPayer(read("customerId")),
    asset,
    isUnlisted,
    destination,
    destinationText: String(read("to")),
    isForbidden: isForbiddenDestination(destination, own),
    amountUnits: readAmount(asset, read),
    expiresAtMs: readTime("expiresAt", read("expiresAt")),
    requestedBy: request.caller?.keyId,
  };
}

/** A withdrawal as the API shows it. */
function encodeWithdrawal(withdrawal: Withdrawal) {
  return {
    id: withdrawal.id,
    customerId: withdrawal.customerId,
    asset: withdrawal.asset,
    to: withdrawal.destinationText,
    ...amountFields(withdrawal.asset, withdrawal.amountUnits),
    status: withdrawal.status,
    reason: withdrawal.reason ?? null,
    expiresAt: withdrawal.expiresAt ?? null,
    wallet: withdrawal.wallet === undefined ? null : toChecksumAddress(withdrawal.wallet),
    nonce: withdrawal.nonce === undefined ? null : Number(withdrawal.nonce),
    hashes: withdrawal.hashes,
    txHash: withdrawal.txHash ?? null,
    blockNumber: withdrawal.blockNumber ?? null,
    history: withdrawal.history,
    ...encodeApproval(withdrawal),
  };
}

async function createWithdrawal(
  parts: WithdrawalApiParts,
  request: HttpRequest,
): Promise<HttpReply> {
  const outcome = await parts.accept.accept(parseWithdrawalRequest(request, parts));
  if (outcome.outcome === "refused") {
    const { refusal, rule } = outcome;
    if (refusal === "OWN_WALLET") {
      throw new ApiError(422, "FORBIDDEN_DESTINATION", NEVER_PAID, { field: "to" });
    }
    if (refusal === "UNKNOWN_ASSET") throw unknownAsset();
    throw new ApiError(422, refusal, REFUSALS[refusal], rule === undefined ? {} : { rule });
  }
  const { withdrawal } = outcome;
  const body = isUnpaid(withdrawal) ? await readOne(parts, withdrawal.id) : withdrawal;
  return { status: 201, body: encodeWithdrawal(body) };
}

async function getOne(parts: WithdrawalApiParts, request: HttpRequest): Promise<HttpReply> {
  const id = toWithdrawalId(request.params["id"] ?? "");
  return { body: encodeWithdrawal(await readOne(parts, id)) };
}

async function readOne(parts: WithdrawalApiParts, id: WithdrawalId): Promise<Withdrawal> {
  const [withdrawal] = await readTold(parts, async () => {
    return [await findWithdrawal(parts.database, id)].filter((found) => found !== undefined);
  });
  if (withdrawal === undefined) throw new ApiError(404, "NOT_FOUND", "no withdrawal has this id");
  return withdrawal;
}

/** Nothing was paid for it, and nothing will be: its client may give the coins to somebody else. */
function isUnpaid({ status }: Withdrawal): boolean {
  return phaseOf(status) === "unpaid";
}

/**
 * Withdrawals to be told. That one has ended unpaid is remembered first: a standby that takes over without
 * that commit would pay it. Read once more behind it: what was lost until then is told as it stands now.
 */
async function readTold(
  { guard }: WithdrawalApiParts,
  read: () => Promise<readonly Withdrawal[]>,
): Promise<readonly Withdrawal[]> {
  const rows = await read();
  if (guard === undefined || !rows.some(isUnpaid)) return rows;
  await guard.keep();
  return read();
}

/** Answers what has taken a withdrawal back; where it waits as before, the database has lost that since. */
async function tellEnded(parts: WithdrawalApiParts, request: HttpRequest): Promise<HttpReply> {
  const withdrawal = await readOne(parts, toWithdrawalId(request.params["id"] ?? ""));
  if (phaseOf(withdrawal.status) === "waiting") throw commitLost();
  return { body: encodeWithdrawal(withdrawal) };
}

async function isWaiting(database: SqlDatabase, id: WithdrawalId): Promise<boolean> {
  const found = await findWithdrawal(database, id);
  return found !== undefined && phaseOf(found.status) === "waiting";
}

async function cancelOne(parts: WithdrawalApiParts, request: HttpRequest): Promise<HttpReply> {
  const id = toWithdrawalId(request.params["id"] ?? "");
  const { database, shownNonces: shown, guard, look } = parts;
  const reason = readReason(request.body);
  // With a nonce nothing ends by a word: the chain decides.
  if (await isWaiting(database, id)) await look?.beforeEnding();
  const assertStands = async (tx: Sql) => guard?.assertStands(tx);
  const outcome = await cancelWithdrawal(database, id, reason, { shown, assertStands });
  if (outcome !== "done") {
    const [status, code, message] = CANCEL_REFUSALS[outcome];
    throw new ApiError(status, code, message);
  }
  parts.onCancelled();
  return tellEnded(parts, request);
}

async function approveOne(parts: WithdrawalApiParts, request: HttpRequest): Promise<HttpReply> {
  const decision = await decide(parts, request);
  parts.onCancelled();
  return decision === "reject" ? tellEnded(parts, request) : getOne(parts, request);
}

async function getPage(parts: WithdrawalApiParts, request: HttpRequest): Promise<HttpReply> {
  const { customerId, status, limit: givenLimit, after, order } = request.query;
  const limit = typeof givenLimit === "number" ? givenLimit : DEFAULT_LIMIT;
  const wanted: WithdrawalPage = {
    customerId: customerId === undefined ? undefined : readCustomerId(customerId),
    status: status === undefined ? undefined : readStatus(status),
    afterPosition: typeof after === "string" ? Number(after) : 0,
    limit: limit + 1,
    order: order === "newest" ? "newest" : "oldest",
  };
  const rows = await readTold(parts, () => listWithdrawals(parts.database, wanted));
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  const hasMore = rows.length > limit && last !== undefined;
  return {
    body: {
      withdrawals: page.map(encodeWithdrawal),
      next: hasMore ? String(last.position) : null,
    },
  };
}

/** @throws ApiError INVALID_IDEMPOTENCY_KEY (400) */
function readIdempotencyKey(headers: HttpRequest["headers"]): string {
  const key = headers["idempotency-key"];
  if (typeof key === "string" && IDEMPOTENCY_KEY_PATTERN.test(key)) return key;
  const message = "Idempotency-Key must be 1-128 printable ASCII characters";
  const errors = [{ path: "/headers/idempotency-key", message }];
  throw new ApiError(400, "INVALID_IDEMPOTENCY_KEY", message, { errors });
}

/**
 * The asset, and whether it is on no list here. It may be on that of another process, which has accepted the
 * request: the ledger knows. What no ledger can have, or takes in these words, was accepted nowhere.
 */
function readAsset(
  read: (name: string) => unknown,
  tokens: WithdrawalApiParts["tokens"],
): { readonly asset: string; readonly isUnlisted: boolean } {
  const asset = read("asset");
  if (typeof asset !== "string") throw invalidField("asset", "expected text");
  const isListed = asset === NATIVE_ASSET || tokens.some(({ symbol }) => symbol === asset);
  const canBeRepeat = isAssetSymbol(asset) && read("amountAtoken") === undefined;
  if (!isListed && !canBeRepeat) throw unknownAsset();
  return { asset, isUnlisted: !isListed };
}

function unknownAsset(): ApiError {
  return new ApiError(422, "UNKNOWN_ASSET", REFUSALS.UNKNOWN_ASSET, { field: "asset" });
}

/** Units on every asset; atoken says the same, of the coin alone. */
function readAmount(asset: string, read: (name: string) => unknown): bigint {
  const [units, atoken] = [read("amountUnits"), read("amountAtoken")];
  if (asset !== NATIVE_ASSET && atoken !== undefined) {
    throw invalidField("amountAtoken", `an amount of ${asset} is told in amountUnits`);
  }
  const name = units === undefined && asset === NATIVE_ASSET ? "amountAtoken" : "amountUnits";
  const amountUnits = parseField(name, () => parseAtoken(read(name)));
  if (units !== undefined && atoken !== undefined) {
    const same = parseField("amountAtoken", () => parseAtoken(atoken));
    if (same !== amountUnits) throw invalidField("amountAtoken", "amountUnits says otherwise");
  }
  return amountUnits;
}

function readCustomerId(value: unknown): CustomerId {
  return parseField("customerId", () => parseCustomerId(value));
}

/** @throws ApiError UNKNOWN_CUSTOMER for the name that the exchange's own payments have */
function readPayer(value: unknown): CustomerId {
  const customerId = readCustomerId(value);
  if (customerId !== TREASURY) return customerId;
  throw new ApiError(422, "UNKNOWN_CUSTOMER", REFUSALS.UNKNOWN_CUSTOMER);
}

function readStatus(value: unknown): WithdrawalStatus {
  if (typeof value === "string" && isWithdrawalStatus(value)) return value;
  throw invalidField("status", "not a state of a withdrawal");
}

/** Milliseconds since 1970 of an RFC 3339 time; undefined without one. */
function readTime(field: string, value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  // Of another moment than was written it would be another deadline.
  const timeMs = typeof value === "string" ? timeMsOf(value) : Number.NaN;
  if (Number.isNaN(timeMs) || timeMs < YEAR_1_MS || timeMs >= YEAR_10000_MS) {
    throw invalidField(field, "expected a time as in RFC 3339");
  }
  return timeMs;
}
