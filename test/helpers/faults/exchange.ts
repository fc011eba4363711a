/**
 * Customers of an exchange during faults: they pay in, withdraw and follow the events, each action
 * repeated until it is answered, and they remember everything that was ever promised to them.
 */
import fs from "node:fs";
import path from "node:path";
import { HDNodeWallet } from "ethers";
import { NATIVE_ASSET } from "../../../ledger/journal/accounts.js";
import { pause } from "./bench.js";
import { FaultChain } from "./chain.js";
import { type ApiAnswer, apiInit, type ApiName, type ApiRequest, askApi } from "./exchange-api.js";
import { describeMovement } from "./movements.js";
import { Payer } from "./payer.js";
import type { RunningKit } from "../kit.js";
import type { Random } from "../random.js";
import { until } from "../until.js";
import {
  type Asset,
  type ExchangeEvent,
  follows,
  LAB_TOKEN,
  type Payment,
  type Request,
  type Row,
  type WithdrawalKind,
} from "./promises.js";

/** Code that refuses every payment: PUSH1 0 PUSH1 0 REVERT, and the code that deploys it. */
const REFUSING_CONTRACT = "0x6460006000fd6000526005601bf3";

const FIRST_FUNDS_ATOKEN = 20n * 10n ** 18n;
const GIFT_ATOKEN = 5n * 10n ** 18n;
const BASE_AMOUNT_ATOKEN = 10n ** 15n;

/** Units of the token that each customer begins with; single payments are of some few. */
const FIRST_FUNDS_UNITS = 10n ** 9n;

/** Longest wait before a customer takes a request back: by then it is mined. */
const MAX_REGRET_MS = 700;

/** Deadlines are so far away at least. */
const FIRST_DEADLINE_MS = 150;

const SETTLED_TIMEOUT_MS = 90_000;
const PAGE = 1_000;

/** Where the customers' exchange is: a kit, or its processes without one. */
export interface ExchangePlace extends Pick<RunningKit, "home" | "url" | "key"> {
  /** Address of the token that it lists; undefined for none. */
  readonly token?: string | undefined;
}

/** What of a plan may be said beforehand. */
type Wish = Partial<Pick<Request, "asset" | "customerId" | "amountUnits" | "expiresAt">>;

/** The customers of one exchange. */
export class FaultExchange {
  readonly requests: Request[] = [];
  readonly events: ExchangeEvent[] = [];
  /** Withdrawals that a person let go on: steps that they had taken before are told once more. */
  readonly released = new Set<string>();
  /** Hashes of gas for sweeps that a ledger lost: rows of it are nobody's deposits, a person has booked them. */
  readonly gasHashes = new Set<string>();
  /** Hashes of payments of the exchange itself that no row names any more, since a ledger lost them. */
  readonly writtenOff = new Set<string>();
  /** Registered deposit addresses in lower case, with their customers. */
  readonly addresses = new Map<string, string>();
  /** Those that were paid in a token and never in coins, likewise. */
  readonly tokenAddresses = new Map<string, string>();
  /** Requests that were ever to be taken back: each may cost a nonce. */
  unwantedCount = 0;
  readonly chain: FaultChain;
  /** Who pays them. */
  readonly payer: Payer;
  /** Where withdrawals are asked for instead of the kit's own API. */
  withdrawalUrl: string | undefined;
  #refusingContract = "";
  #counter = 0;
  #highestIndex = -1;
  #following: Promise<void> | undefined;
  /** Beginning of fresh destinations: exchanges on one chain must not pay the same ones. */
  readonly #salt: string;
  #unregistered: { payment: Payment; index: number; customerId: string } | undefined;
  /** Transactions of deposits that are credited and not reversed, by the deposit's id. */
  readonly #credited = new Map<string, string>();
  readonly #strayed = new Set<string>();
  readonly #ended = new Map<string, string>();

  constructor(
    private readonly kit: () => ExchangePlace,
    private readonly random: Random,
  ) {
    this.chain = new FaultChain(() => this.kit().url("jsonRpc"));
    this.payer = new Payer(this.chain, {
      key: () => this.kit().key("faucet.key"),
      token: () => this.token,
    });
    this.#salt = Buffer.from(this.random.bytes(8)).toString("hex");
  }

  get hotWallet(): string {
    const file = path.join(this.kit().home, "config", "hot-wallet.json");
    const { address } = JSON.parse(fs.readFileSync(file, "utf8")) as { address: string };
    return `0x${address.replace(/^0x/, "").toLowerCase()}`;
  }

  /** Address of the listed token; undefined for none. */
  get token(): string | undefined {
    return this.kit().token;
  }

  /** What customers of it have. */
  get assets(): readonly Asset[] {
    return this.token === undefined ? [NATIVE_ASSET] : [NATIVE_ASSET, LAB_TOKEN];
  }

  /** Whose an address is; undefined for nobody's. */
  ownerOf(address: string): string | undefined {
    return this.addresses.get(address) ?? this.tokenAddresses.get(address);
  }

  /** All that they were paid, in the order of the payer's nonces. */
  get payments(): readonly Payment[] {
    return this.payer.payments;
  }

  get customers(): string[] {
    return [...new Set(this.addresses.values())];
  }

  /** Gives each customer an address and coins to withdraw, and deploys the refusing contract. */
  async open(customerIds: readonly string[]): Promise<void> {
    this.#refusingContract = await this.payer.open(REFUSING_CONTRACT);
    for (const customerId of customerIds) await this.register(customerId);
    const funds = Array.from(this.addresses.keys(), (to) =>
      this.#payment({ to, amountUnits: FIRST_FUNDS_ATOKEN, isEarly: false }),
    );
    await this.payer.send(funds);
    if (this.token !== undefined) {
      for (const customerId of customerIds) await this.payToken(customerId, FIRST_FUNDS_UNITS);
    }
    await this.settled();
  }

  /** Registers a new address for a customer. */
  async register(customerId: string): Promise<string> {
    const address = await this.#issue(customerId);
    this.addresses.set(address, customerId);
    return address;
  }

  async #issue(customerId: string): Promise<string> {
    const answer = await this.#api("depositApi", "/v1/addresses", { body: { customerId } });
    if (answer.status !== 201) throw new Error(`no address: ${JSON.stringify(answer)}`);
    const { address, index } = answer.body as { address: string; index: number };
    this.#highestIndex = Math.max(this.#highestIndex, index);
    return address.toLowerCase();
  }

  /** Pays the token to a new address of a customer, by its contract, which mints for everybody. */
  async payToken(customerId: string, amountUnits?: bigint): Promise<void> {
    const to = await this.#issue(customerId);
    this.tokenAddresses.set(to, customerId);
    await this.payer.send([this.#payment({ asset: LAB_TOKEN, to, amountUnits, isEarly: false })]);
  }

  /** Pays some customers; resolves when the node has answered with every hash. */
  async pay(count: number): Promise<void> {
    const addresses = [...this.addresses.keys()];
    await this.payTo(Array.from({ length: count }, () => this.random.pick(addresses)));
  }

  /** The same of these addresses. */
  async payTo(addresses: readonly string[]): Promise<void> {
    await this.payer.send(addresses.map((to) => this.#payment({ to, isEarly: false })));
  }

  /** Pays one customer much more than usual; resolves when the node has answered. */
  async payMuch(): Promise<Payment> {
    const to = this.random.pick([...this.addresses.keys()]);
    const gift = this.#payment({ to, amountUnits: GIFT_ATOKEN, isEarly: false });
    await this.payer.send([gift]);
    return gift;
  }

  /** Pays an address that nobody has registered yet; `registerPaid` does it later. */
  async payBeforeRegistration(customerId: string): Promise<void> {
    // One at a time: the next index is known only when this one is registered.
    if (this.#unregistered !== undefined) return;
    const account = HDNodeWallet.fromExtendedKey(this.kit().key("deposit.xpub"));
    const index = this.#highestIndex + 1;
    const to = account.deriveChild(index).address.toLowerCase();
    const payment = this.#payment({ to, isEarly: true });
    await this.payer.send([payment]);
    this.#unregistered = { payment, index, customerId };
  }

  /** Registers the address that was paid too early, once that payment is mined. */
  async registerPaid(): Promise<void> {
    const waiting = this.#unregistered;
    if (waiting === undefined) return;
    const { payment, index, customerId } = waiting;
    await this.payer.receipt(payment.hash);
    while (this.#highestIndex < index) await this.register(customerId);
    // The answer that named this address may be one that was lost with its process.
    this.addresses.set(payment.to, this.addresses.get(payment.to) ?? customerId);
    this.#unregistered = undefined;
  }

  /** Asks for a withdrawal; resolves when it is accepted. */
  async withdraw(kind: WithdrawalKind, asset: Asset = NATIVE_ASSET): Promise<void> {
    const request = this.plan(kind, { asset });
    request.id = await this.ask(request);
  }

  /** Asks for a withdrawal, and takes it back a moment later, or has said by when it has to be paid. */
  async withdrawUnwanted(asset: Asset = NATIVE_ASSET): Promise<void> {
    const waitMs = this.random.integer(MAX_REGRET_MS);
    const isLimited = this.random.integer(2) === 0;
    const expiresAt = new Date(Date.now() + FIRST_DEADLINE_MS + waitMs).toISOString();
    const request = this.plan("unwanted", isLimited ? { asset, expiresAt } : { asset });
    if (!(await this.askInTime(request)) || isLimited) return;
    await pause(waitMs);
    await this.cancel(request);
  }

  /** Asks for a request that may be too late by now: then it is none. @returns false for such a one */
  async askInTime(request: Request): Promise<boolean> {
    const answer = await this.#post(request);
    const { id, code } = answer.body as { id?: string; code?: string };
    const isLate = request.expiresAt !== undefined && code === "DEADLINE_PASSED";
    if (isLate) this.requests.splice(this.requests.indexOf(request), 1);
    else if (answer.status !== 201) throw new Error(`${request.key}: ${JSON.stringify(answer)}`);
    else request.id = id;
    return !isLate;
  }

  /** Takes a request back, as far as it is not too late; what is answered is held against what comes. */
  async cancel(request: Request): Promise<void> {
    const body = { reason: "the customer does not want it any more" };
    const answer = await this.#api("withdrawalApi", `/v1/withdrawals/${request.id}/cancel`, {
      body,
    });
    const { status } = answer.body as { status?: string };
    if (answer.status !== 200 && answer.status !== 409) {
      throw new Error(`cancelling ${request.id}: ${JSON.stringify(answer)}`);
    }
    if (status === "cancelled") request.isToldCancelled = true;
  }

  /** Asks for more than a customer had before a gift, and for less than it has with it. */
  async withdrawOf({ to, amountUnits }: Payment, kind: "fresh" | "uncovered"): Promise<void> {
    const customerId = this.addresses.get(to) ?? "nobody";
    const { availableAtoken } = await this.balance(customerId, NATIVE_ASSET);
    const wanted = BigInt(availableAtoken ?? 0) - amountUnits / 2n;
    const request = this.plan(kind, { customerId, amountUnits: wanted });
    request.id = await this.ask(request);
  }

  /** A withdrawal that somebody is going to ask for; it has to end like all others. */
  plan(kind: WithdrawalKind, wish: Wish = {}): Request {
    this.#counter += 1;
    const asset = wish.asset ?? NATIVE_ASSET;
    const fresh = `0x${this.#salt}${this.#counter.toString(16).padStart(24, "0")}`;
    const own = this.random.pick([...this.addresses.keys()]);
    const request: Request = {
      key: `request-${this.#counter}`,
      customerId: this.random.pick(this.customers),
      to: kind === "own" ? own : kind === "refusing" ? this.#refusingContract : fresh,
      amountUnits: this.#amountOf(asset),
      ...wish,
      asset,
      kind,
      id: undefined,
    };
    this.requests.push(request);
    if (kind === "unwanted") this.unwantedCount += 1;
    return request;
  }

  /** Sends a request, maybe again; the same key must always give the same id. */
  async ask(request: Request): Promise<string> {
    const answer = await this.#post(request);
    if (answer.status !== 201) throw new Error(`${request.key}: ${JSON.stringify(answer)}`);
    return (answer.body as { id: string }).id;
  }

  #post(request: Request) {
    return this.#api("withdrawalApi", "/v1/withdrawals", wordsOf(request));
  }

  /** Sends a request one single time, whatever becomes of it. */
  async askOnce(request: Request): Promise<void> {
    const url = `${this.withdrawalUrl ?? this.kit().url("withdrawalApi")}/v1/withdrawals`;
    const init = apiInit(this.kit().key("api.key"), wordsOf(request));
    await fetch(url, init).catch(() => undefined);
  }

  /** Reads all events that are new; each must be the next number. Callers share one reading. */
  follow(): Promise<void> {
    this.#following ??= this.#readEvents().finally(() => {
      this.#following = undefined;
    });
    return this.#following;
  }

  async #readEvents(): Promise<void> {
    for (;;) {
      const after = this.events.at(-1)?.seq ?? 0;
      const page = await this.#get("depositApi", `/v1/events?limit=${PAGE}&after=${after}`);
      const { events } = page as { events: ExchangeEvent[] };
      for (const event of events) {
        if (!follows(this.events.at(-1), event)) {
          throw new Error(`event ${event.seq} came after event ${this.events.at(-1)?.seq}`);
        }
        this.events.push(event);
        this.#note(event);
      }
      if (events.length < PAGE) return;
    }
  }

  /** After a recovery of the ledger everything that still stands is read again. */
  forgetEvents(): void {
    this.events.length = 0;
    this.#credited.clear();
    this.#strayed.clear();
    this.#ended.clear();
  }

  /** Every event from the first one on, as somebody reads them who comes later. */
  async eventsAgain(): Promise<ExchangeEvent[]> {
    const all: ExchangeEvent[] = [];
    for (;;) {
      const after = all.at(-1)?.seq ?? 0;
      const page = await this.#get("depositApi", `/v1/events?limit=${PAGE}&after=${after}`);
      const { events } = page as { events: ExchangeEvent[] };
      all.push(...events);
      if (events.length < PAGE) return all.slice(0, this.events.length);
    }
  }

  /** Resolves when every payment is credited and every withdrawal has ended. */
  async settled(): Promise<void> {
    await until(
      async () => {
        await this.follow();
        return this.openWork().length === 0;
      },
      { timeoutMs: SETTLED_TIMEOUT_MS, what: "everything is credited or paid" },
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}; open are ${this.openWork().slice(0, 5).join("; ")}`);
    });
  }

  /** Resolves when the first `count` withdrawals have ended. */
  async untilEnded(count: number): Promise<void> {
    const first = this.requests.slice(0, count);
    await until(
      async () => {
        await this.follow();
        return first.every(({ id }) => id !== undefined && this.#ended.has(id));
      },
      { timeoutMs: SETTLED_TIMEOUT_MS, what: `the first ${count} withdrawals end` },
    );
  }

  /** What is neither credited nor ended, as far as the events tell. */
  openWork(): string[] {
    const credited = new Set(this.#credited.values());
    const payments = this.payments.filter(
      ({ hash, isEarly }) => !credited.has(hash) && !(isEarly && this.#strayed.has(hash)),
    );
    const requests = this.requests.filter(({ id }) => id === undefined || !this.#ended.has(id));
    const payouts = this.requests.filter(({ kind, id }) => {
      const hash = this.#ended.get(id ?? "");
      return kind === "own" && hash !== undefined && !credited.has(hash);
    });
    return [
      ...payments.map((payment) => `deposit ${payment.hash} of ${describeMovement(payment)}`),
      ...requests.map(({ key, id }) => `withdrawal ${key} ${id}`),
      ...payouts.map(({ key }) => `credit of withdrawal ${key}`),
    ];
  }

  /** All rows of a list of one of the APIs. */
  async list(name: "deposits" | "withdrawals"): Promise<Row[]> {
    const api = name === "deposits" ? "depositApi" : "withdrawalApi";
    const rows: Row[] = [];
    for (let after: string | null = "0"; after !== null; ) {
      const page = await this.#get(api, `/v1/${name}?limit=${PAGE}&after=${after}`);
      const { next, [name]: found } = page as { next: string | null } & Record<string, unknown>;
      for (const row of found as Record<string, unknown>[]) {
        rows.push(Object.fromEntries(Object.entries(row).map(([key, v]) => [key, String(v)])));
      }
      after = next;
    }
    return rows;
  }

  /** What a customer has of an asset. */
  async balance(customerId: string, asset: Asset): Promise<Record<string, string>> {
    const page = await this.#get("depositApi", `/v1/customers/${customerId}/balances`);
    const { balances } = page as { balances: Record<string, string>[] };
    return balances.find((balance) => balance["asset"] === asset) ?? {};
  }

  #note({ type, data }: ExchangeEvent): void {
    const hash = String(data["txHash"]);
    if (type === "deposit.credited") this.#credited.set(String(data["depositId"]), hash);
    if (type === "deposit.reversed") this.#credited.delete(String(data["depositId"]));
    if (type === "deposit.suspense") this.#strayed.add(hash);
    if (/^withdrawal\.(settled|failed|rejected|cancelled)$/.test(type)) {
      this.#ended.set(String(data["withdrawalId"]), hash);
    }
  }

  #payment(
    fields: Pick<Payment, "to" | "isEarly"> & {
      readonly asset?: Asset;
      readonly amountUnits?: bigint | undefined;
    },
  ): Payment {
    this.#counter += 1;
    const { to, isEarly, asset = NATIVE_ASSET } = fields;
    const movement = { asset, to, amountUnits: fields.amountUnits ?? this.#amountOf(asset) };
    return this.payer.sign(movement, isEarly);
  }

  /** No two are equal. */
  #amountOf(asset: Asset): bigint {
    return (asset === NATIVE_ASSET ? BASE_AMOUNT_ATOKEN : 0n) + BigInt(this.#counter);
  }

  async #get(name: ApiName, place: string): Promise<unknown> {
    const answer = await this.#api(name, place, {});
    if (answer.status !== 200) throw new Error(`${place}: ${JSON.stringify(answer)}`);
    return answer.body;
  }

  #api(name: ApiName, place: string, request: ApiRequest): Promise<ApiAnswer> {
    const base = () =>
      (name === "withdrawalApi" ? this.withdrawalUrl : undefined) ?? this.kit().url(name);
    return askApi(
      () => `${base()}${place}`,
      () => this.kit().key("api.key"),
      request,
    );
  }
}

/** A request in the words of the API. */
function wordsOf({ customerId, asset, to, amountUnits, expiresAt, key }: Request): ApiRequest {
  const amount = { [asset === NATIVE_ASSET ? "amountAtoken" : "amountUnits"]: String(amountUnits) };
  const body = { customerId, asset, to, ...amount, expiresAt };
  return { body, headers: { "Idempotency-Key": key } };
}
