/**
 * The whole job once, under load: customers get addresses, hundreds of transactions pay them or
 * only look like it, customers withdraw. Collects what was asked for and what the chain did.
 */
import { type ApiEvent, type EventFollower, FINAL_STATES, followEvents } from "./api.js";
import { Sender, type TestReceipt } from "./chain.js";
import {
  createAmounts,
  type DepositCase,
  forwardRequest,
  type Payment,
  planDeposits,
  shuffle,
  type Target,
} from "./deposits.js";
import { startLoad } from "./load.js";
import { type Contracts, ExchangeStage, TOKEN } from "./stage.js";
import {
  acceptAll,
  type AcceptedIntent,
  freshAddress,
  type Intent,
  planWithdrawals,
  raceBodies,
  raceForBalance,
  type RaceResult,
  repeatKeys,
  type RepeatResult,
} from "./withdrawals.js";
import { runCauseway, type RunningKit } from "../kit.js";
import { createRandom } from "../random.js";
import { until } from "../until.js";

const CUSTOMERS = 16;
const ADDRESSES_EACH = 3;
const SENDERS = 8;

/** Time for events to come: blocks are 500 ms, the machine may be busy with something else. */
const EVENTS_TIMEOUT_MS = 60_000;

/** Blocks in which what must not be credited could still be credited wrongly. */
const LAST_BLOCKS = 4;

/** What each customer of the races owns when the races start. */
export const RACE_BALANCE_ATOKEN = 7n * TOKEN;

/** A deposit row that must appear. */
export interface ExpectedDeposit extends Payment {
  readonly receipt: TestReceipt;
  readonly status: "credited" | "suspense";
}

/** A case with its fate on the chain. */
export interface SentCase extends DepositCase {
  readonly receipt: TestReceipt;
}

/** Everything that happened. */
export interface ExchangeRun {
  readonly stage: ExchangeStage;
  readonly contracts: Contracts;
  readonly cases: readonly SentCase[];
  /** Rows that follow from what the test sent; withdrawals to own addresses add theirs. */
  readonly deposits: readonly ExpectedDeposit[];
  readonly intents: readonly AcceptedIntent[];
  readonly races: readonly RaceResult[];
  readonly repeats: readonly RepeatResult[];
  readonly bodyRaces: readonly RepeatResult[];
  /** Coins that came to the hot wallet and that nobody announced. */
  readonly inflowsAtoken: bigint;
  readonly reconcileUnderLoad: Awaited<ReturnType<typeof runCauseway>>;
  readonly load: { readonly sent: number; readonly perSecond: number };
  readonly followed: readonly ApiEvent[];
  readonly steps: readonly string[];
}

/** Plays the run on a fresh kit that was started without its demonstration. */
export async function playExchange(stage: ExchangeStage): Promise<ExchangeRun> {
  return new Player(stage).play();
}

/** Opens the stage of a run; the seed decides amounts, order and destinations. */
export function openStage(kit: RunningKit, seed: number): ExchangeStage {
  return new ExchangeStage(kit, createRandom(seed));
}

type LatePayment = Omit<ExpectedDeposit, "status">;

class Player {
  readonly cases: SentCase[] = [];
  readonly deposits: ExpectedDeposit[] = [];
  readonly steps: string[] = [];
  readonly #startMs = performance.now();

  constructor(readonly stage: ExchangeStage) {}

  async play(): Promise<ExchangeRun> {
    const { stage } = this;
    const { kit, chain, random } = stage;
    const names = Array.from({ length: CUSTOMERS }, (_, n) => `customer-${n}`);
    const own = names.flatMap((name) => Array.from({ length: ADDRESSES_EACH }, () => name));
    const targets = await Promise.all(own.map((name) => stage.register(name)));
    const racers = await Promise.all([0, 1, 2].map((n) => stage.register(`race-${n}`)));
    const [loader, ...wallets] = await stage.fund(SENDERS + 2, 500n * TOKEN);
    const [deployer, ...senders] = wallets.map((wallet) => new Sender(wallet, chain));
    if (loader === undefined || deployer === undefined) throw new Error("no accounts");
    const contracts = await stage.deploy(deployer);
    this.#step(`${stage.targets.length} addresses, ${SENDERS} senders and the contracts are there`);

    const load = startLoad(kit.url("jsonRpc"), chain, loader);
    const follower = followEvents(kit);
    const strangers = stage.strangers();
    const { router, bequests } = contracts;
    const parts = { random, contracts: stage.compiled, targets, router, bequests, strangers };
    const planned = shuffle(random, planDeposits(parts));
    const half = Math.floor(planned.length / 2);
    const late = await this.#payBeforeRegistration(router, deployer);
    await this.#send(racers.map(racerDeposit), [deployer]);
    await this.#send(planned.slice(0, half), senders);
    await eventsOf(follower, "deposit.credited", this.deposits.length);
    this.#step(`the first ${this.deposits.length} deposits are credited`);

    await this.#registerLate(late);
    const [withdrawals, inflowsAtoken, reconcileUnderLoad] = await Promise.all([
      this.#withdraw(contracts, { names, racers, targets }),
      this.#payHotWallet(router, deployer),
      runCauseway(kit, ["reconcile", "--json"]),
      this.#send(planned.slice(half), senders),
    ]);
    this.#step("everything is sent and accepted, and was reconciled meanwhile");

    await this.#settled(follower, withdrawals.intents, contracts);
    const loadResult = await load.stop();
    await chain.blocksPass(LAST_BLOCKS);
    const followed = await follower.stop();
    this.#step("the load is mined");
    const { cases, deposits, steps } = this;
    const collected = { stage, contracts, cases, deposits, steps, ...withdrawals };
    return { ...collected, inflowsAtoken, reconcileUnderLoad, load: loadResult, followed };
  }

  /** Each sender sends its part in order; where the rows must be follows from the receipts. */
  async #send(cases: readonly DepositCase[], senders: readonly Sender[]): Promise<void> {
    const lanes = senders.map(async (sender, lane) => {
      const own = cases.filter((_, index) => index % senders.length === lane);
      const hashes = await sender.send(own.map(({ request }) => request));
      const receipts = await this.stage.chain.mined(hashes);
      own.forEach((entry, index) => {
        const receipt = receipts[index];
        if (receipt === undefined) throw new Error("a receipt is missing");
        this.cases.push({ ...entry, receipt });
        for (const paid of entry.pays) {
          this.deposits.push({ ...paid, receipt, status: "credited" });
        }
      });
    });
    await Promise.all(lanes);
  }

  /** Pays the next four addresses before anybody is given them, two of them through a call. */
  async #payBeforeRegistration(router: string, sender: Sender): Promise<LatePayment[]> {
    const { stage } = this;
    const amount = createAmounts(stage.random);
    const next = [0, 1, 2, 3].map((n) => ({
      address: stage.addressAt(stage.targets.length + n),
      customerId: `late-${n % 2}`,
      amountAtoken: amount(),
    }));
    const requests = [
      ...next.slice(0, 2).map(({ address, amountAtoken }) => ({
        to: address,
        valueAtoken: amountAtoken,
      })),
      forwardRequest({ contracts: stage.compiled, router, depth: 3 }, next.slice(2)),
    ];
    const receipts = await stage.chain.mined(await sender.send(requests));
    return next.map((paid, index) => {
      const receipt = receipts[Math.min(index, 2)];
      if (receipt?.isSuccess !== true) throw new Error("an early payment failed");
      return { ...paid, receipt };
    });
  }

  /** What came before stays in suspense; what comes from now on is the customer's. */
  async #registerLate(late: readonly LatePayment[]): Promise<void> {
    const cases: DepositCase[] = [];
    for (const paid of late) {
      const { address, customerId } = await this.stage.register(paid.customerId);
      if (address !== paid.address) throw new Error(`${address} is not the one that was paid`);
      this.deposits.push({ ...paid, status: "suspense" });
      const again = { address, customerId, amountAtoken: paid.amountAtoken / 2n };
      const request = { to: address, valueAtoken: again.amountAtoken };
      cases.push({ kind: "plain after late registration", request, succeeds: true, pays: [again] });
    }
    await this.#send(cases, [this.stage.faucet]);
  }

  /** Coins for the hot wallet that nobody announced; two payments of them within one call. */
  async #payHotWallet(router: string, sender: Sender): Promise<bigint> {
    const { chain, compiled, hotWallet } = this.stage;
    const inner = [3n, 4n].map((amountAtoken) => ({ address: hotWallet, amountAtoken }));
    const plain = { to: hotWallet, valueAtoken: 5n * TOKEN };
    const call = forwardRequest({ contracts: compiled, router, depth: 2 }, inner);
    const receipts = await chain.mined(await sender.send([plain, call]));
    if (receipts.some(({ isSuccess }) => !isSuccess)) throw new Error("an inflow failed");
    return plain.valueAtoken + 7n;
  }

  /** All requests at once: ordinary ones, races for a balance, repeated keys. */
  async #withdraw(
    { destinations }: Contracts,
    ours: {
      readonly names: readonly string[];
      readonly racers: readonly Target[];
      readonly targets: readonly Target[];
    },
  ) {
    const { kit, random } = this.stage;
    const customers = ours.names.map((customerId) => ({
      customerId,
      availableAtoken: this.deposits
        .filter((row) => row.customerId === customerId && row.status === "credited")
        .reduce((sum, row) => sum + row.amountAtoken, 0n),
    }));
    const plan = { random, customers, targets: ours.targets, destinations };
    const intents = shuffle(random, planWithdrawals(plan));
    const small = (kind: string, n: number): Intent => {
      const customerId = random.pick(ours.names);
      const amountAtoken = String(1_000 + n);
      const body = { customerId, asset: "TOKEN" as const, to: freshAddress(random), amountAtoken };
      return { kind, key: `${kind} ${n}`, body, end: "paid" };
    };
    const balanceAtoken = RACE_BALANCE_ATOKEN;
    const amounts = [
      Array.from({ length: 24 }, () => TOKEN),
      Array.from({ length: 30 }, () => TOKEN / 2n + BigInt(random.integer(2 ** 31)) * 10n ** 9n),
      Array.from({ length: 12 }, () => balanceAtoken),
    ];
    const raced = ours.racers.map(({ customerId }, n) =>
      raceForBalance(kit, { random, customerId, balanceAtoken, amounts: amounts[n] ?? [] }),
    );
    const [accepted, races, repeats, bodyRaces] = await Promise.all([
      acceptAll(kit, intents),
      Promise.all(raced),
      repeatKeys(
        kit,
        [1, 2, 3, 4, 5, 6].map((n) => small("repeat", n)),
        6,
      ),
      raceBodies(
        kit,
        [1, 2].map((n) => small("two bodies", n)),
        6,
      ),
    ]);
    const keyed = [...repeats, ...bodyRaces].map(({ accepted: once }) => once);
    const raceIntents = races.flatMap((race) => race.accepted);
    return { intents: [...accepted, ...raceIntents, ...keyed], races, repeats, bodyRaces };
  }

  /** Waits until everything that was accepted has ended and everything that is due is credited. */
  async #settled(
    follower: EventFollower,
    intents: readonly AcceptedIntent[],
    { relayTargets }: Contracts,
  ): Promise<void> {
    await eventsOf(follower, "final withdrawals", intents.length, isFinal);
    this.#step(`${intents.length} withdrawals have ended`);
    const own = new Set(this.stage.targets.map(({ address }) => address));
    const toOwn = intents.filter(({ body }) => {
      const to = body.to.toLowerCase();
      return own.has(to) || relayTargets.has(to);
    });
    const sent = this.deposits.filter(({ status }) => status === "credited").length;
    await eventsOf(follower, "deposit.credited", sent + toOwn.length);
    this.#step(`${sent + toOwn.length} deposits are credited`);
    const strays = this.deposits.filter(({ status }) => status === "suspense").length;
    await eventsOf(follower, "deposit.suspense", strays);
  }

  #step(what: string): void {
    const seconds = ((performance.now() - this.#startMs) / 1_000).toFixed(1);
    this.steps.push(`${seconds} s: ${what}`);
  }
}

function racerDeposit(target: Target): DepositCase {
  const paid = { ...target, amountAtoken: RACE_BALANCE_ATOKEN };
  const request = { to: target.address, valueAtoken: RACE_BALANCE_ATOKEN };
  return { kind: "plain", request, succeeds: true, pays: [paid] };
}

function isFinal(event: ApiEvent): boolean {
  return event.type.startsWith("withdrawal.") && FINAL_STATES.has(event.type.slice(11));
}

async function eventsOf(
  follower: EventFollower,
  what: string,
  wanted: number,
  matches: (event: ApiEvent) => boolean = ({ type }) => type === what,
): Promise<void> {
  const count = () => follower.seen.filter(matches).length;
  const isOver = () => count() >= wanted || follower.fault !== undefined;
  await until(isOver, { timeoutMs: EVENTS_TIMEOUT_MS }).catch(() => undefined);
  if (count() >= wanted) return;
  const cause = follower.fault;
  throw new Error(`waited for ${wanted} x ${what}, found ${count()}; ${String(cause)}`, { cause });
}
