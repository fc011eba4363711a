/** Client of the deposit API (8082) and the withdrawal API (8083), as the contract describes them. */
import { z } from "zod";
import { type Address, parseAddress } from "../../chain/address.js";
import { type Hash32, parseHash32 } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import { DEPOSIT_STATUSES } from "../../ledger/deposits/deposit-queries.js";
import { routeOf } from "../../runtime/http/outgoing/route-url.js";
import { CliError } from "../errors.js";
import type { HttpAnswer } from "../../runtime/http/outgoing/http-exchange.js";
import { httpRequest } from "./http-request.js";

const address = z.string().transform((text): Address => parseAddress(text));
const hash = z.string().transform((text): Hash32 => parseHash32(text));
const units = z
  .string()
  .regex(/^(0|[1-9][0-9]{0,77})$/)
  .transform((text) => BigInt(text));

const addressAnswer = z.object({ address, bech32: z.string(), customerId: z.string() });

const deposit = z.object({
  id: z.union([z.string(), z.number()]).transform(String),
  address,
  asset: z.string(),
  amountUnits: units,
  status: z.enum(DEPOSIT_STATUSES),
  blockNumber: z.number(),
  blockHash: hash,
  txHash: hash,
  confirmations: z.number(),
});

const depositPage = z.object({
  deposits: z.array(deposit),
  /** Value of `after` for the next page. */
  next: z.string().nullable(),
});

const withdrawal = z.object({
  id: z.union([z.string(), z.number()]).transform(String),
  status: z.string(),
  amountUnits: units,
  /** What the policy asks beside the amount. */
  feeUnits: units,
  nonce: z.union([z.number(), z.string()]).nullish(),
  txHash: hash.nullish(),
  blockNumber: z.number().nullish(),
});

const balanceAnswer = z.object({
  balances: z.array(
    z.object({
      asset: z.string(),
      availableUnits: units,
      heldUnits: units,
      pendingUnits: units,
    }),
  ),
});

type DepositPage = z.output<typeof depositPage>;

/** The most rows that the API has on a page. */
const PAGE_ROWS = "1000";

/** A deposit as the deposit API shows it; the fields that the kit reads. */
export type DepositView = z.output<typeof deposit>;

/** A withdrawal as the withdrawal API shows it; the fields that the kit reads. */
export type WithdrawalView = z.output<typeof withdrawal>;

/** One asset of a customer, in its smallest unit. */
export type BalanceView = z.output<typeof balanceAnswer>["balances"][number];

/** Where the APIs are, and the key that opens them. */
export interface ExchangeClientOptions {
  readonly depositUrl: string;
  readonly withdrawalUrl: string;
  readonly apiKey: string;
}

/** What a withdrawal request says. */
export interface WithdrawalRequest {
  readonly customerId: string;
  readonly to: Address;
  readonly amountAtoken: Atoken;
  readonly idempotencyKey: string;
}

/** The calls that the walk-through makes. All throw CLIENT_FAILED. */
export interface ExchangeClient {
  createAddress(customerId: string, signal: AbortSignal): Promise<Address>;
  /** All of them, oldest first. */
  depositsTo(address: Address, signal: AbortSignal): Promise<readonly DepositView[]>;
  /** Undefined for a customer that does not exist. */
  balances(customerId: string, signal: AbortSignal): Promise<readonly BalanceView[] | undefined>;
  requestWithdrawal(request: WithdrawalRequest, signal: AbortSignal): Promise<WithdrawalView>;
  withdrawal(id: string, signal: AbortSignal): Promise<WithdrawalView>;
}

/** Creates the client; nothing is sent before the first call. */
export function createExchangeClient(options: ExchangeClientOptions): ExchangeClient {
  async function call<T>(
    request: { readonly method: string; readonly url: URL; readonly body?: unknown },
    schema: z.ZodType<T>,
    extra: { readonly signal: AbortSignal; readonly headers?: Readonly<Record<string, string>> },
  ): Promise<T | undefined> {
    const headers = {
      authorization: `Bearer ${options.apiKey}`,
      ...(request.body === undefined ? {} : { "content-type": "application/json" }),
      ...extra.headers,
    };
    const body = request.body === undefined ? undefined : JSON.stringify(request.body);
    const init = { method: request.method, headers, body };
    const answer = await httpRequest(request.url, init, { signal: extra.signal });
    const what = `${request.method} ${request.url.pathname}`;
    if (answer.status === 404) return undefined;
    if (answer.status < 200 || answer.status > 299) {
      throw new CliError("CLIENT_FAILED", `${what} answered ${describeRefusal(answer)}`, {
        details: { status: answer.status },
        retriable: answer.status >= 500,
      });
    }
    return parseBody(schema, answer, what);
  }

  return {
    async createAddress(customerId, signal) {
      const url = routeOf(options.depositUrl, "/v1/addresses");
      const answer = await call({ method: "POST", url, body: { customerId } }, addressAnswer, {
        signal,
      });
      return found(answer, "POST /v1/addresses").address;
    },
    async depositsTo(watched, signal) {
      const deposits: DepositView[] = [];
      let after: string | null = null;
      do {
        const url = routeOf(options.depositUrl, "/v1/deposits");
        url.searchParams.set("address", watched);
        url.searchParams.set("limit", PAGE_ROWS);
        if (after !== null) url.searchParams.set("after", after);
        const page: DepositPage | undefined = await call({ method: "GET", url }, depositPage, {
          signal,
        });
        deposits.push(...(page?.deposits ?? []));
        after = page?.next ?? null;
      } while (after !== null);
      return deposits;
    },
    async balances(customerId, signal) {
      const path = `/v1/customers/${encodeURIComponent(customerId)}/balances`;
      const url = routeOf(options.depositUrl, path);
      return (await call({ method: "GET", url }, balanceAnswer, { signal }))?.balances;
    },
    async requestWithdrawal({ customerId, to, amountAtoken, idempotencyKey }, signal) {
      const url = routeOf(options.withdrawalUrl, "/v1/withdrawals");
      const body = { customerId, asset: "TOKEN", to, amountAtoken: amountAtoken.toString() };
      const headers = { "idempotency-key": idempotencyKey };
      const answer = await call({ method: "POST", url, body }, withdrawal, { signal, headers });
      return found(answer, "POST /v1/withdrawals");
    },
    async withdrawal(id, signal) {
      const path = `/v1/withdrawals/${encodeURIComponent(id)}`;
      const url = routeOf(options.withdrawalUrl, path);
      return found(await call({ method: "GET", url }, withdrawal, { signal }), `GET ${path}`);
    },
  };
}

function parseBody<T>(schema: z.ZodType<T>, answer: HttpAnswer, what: string): T {
  try {
    return schema.parse(JSON.parse(answer.body));
  } catch (cause) {
    throw new CliError("CLIENT_FAILED", `${what} answered in an unknown shape.`, { cause });
  }
}

/** Code and message of an error answer, both from the contract's error shape. */
function describeRefusal(answer: HttpAnswer): string {
  const shape = z.object({ code: z.string(), message: z.string() });
  try {
    const { code, message } = shape.parse(JSON.parse(answer.body));
    return `${answer.status} ${code}: ${message}`;
  } catch {
    return String(answer.status); // Not the contract's error shape: the status has to do.
  }
}

function found<T>(value: T | undefined, what: string): T {
  if (value !== undefined) return value;
  throw new CliError("CLIENT_FAILED", `${what} answered 404.`);
}
