/**
 * The whole job once, under load: customers get addresses, hundreds of transactions pay them or
 * only look like it, customers withdraw. Collects what was asked for and what the chain did.
 */
import { HDNodeWallet, Wallet } from "ethers";
import { type ApiEvent, FINAL_STATES, followEvents } from "./exchange-api.js";
import { ExchangeChain, Sender, type TestReceipt } from "./exchange-chain.js";
import {
  BEQUEST_ATOKEN,
  createAmounts,
  type DepositCase,
  type DepositParts,
  type Payment,
  planDeposits,
  shuffle,
  type Target,
} from "./exchange-deposits.js";
import { startLoad } from "./exchange-load.js";
import {
  acceptAll,
  type AcceptedIntent,
  type Destinations,
  freshAddress,
  type Intent,
  planWithdrawals,
  raceForBalance,
  type RaceResult,
  repeatKeys,
  type RepeatResult,
} from "./exchange-withdrawals.js";
import { callApi, runCauseway, type RunningKit } from "./kit.js";
import { createRandom, type Random } from "./random.js";
import { type CompiledContract, compileFixture } from "./solidity.js";
import { until } from "./until.js";

const TOKEN = 10n ** 18n;
const CUSTOMERS = 16;
const ADDRESSES_EACH = 3;
const SENDERS = 8;
const SUSPENSE = "suspense";

/** Time for events to come: blocks are 200 ms, the machine may be busy with something else. */
const EVENTS_TIMEOUT_MS = 60_000;

/** What customers of the races own when the race starts. */
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
  readonly chain: ExchangeChain;
  readonly faucet: Sender;
  /** Lower case. */
  readonly hotWallet: string;
  /** Every registered address. */
  readonly targets: readonly Target[];
  /** Derivation of deposit addresses by ethers, from the xpub alone. */
  readonly xpub: HDNodeWallet;
  readonly registrations: readonly { readonly address: string; readonly index: number }[];
  readonly cases: readonly SentCase[];
  readonly deposits: readonly ExpectedDeposit[];
  /** Paid on, relay -> deposit address. */
  readonly relayTargets: ReadonlyMap<string, Target>;
  readonly destinations: Destinations;
  readonly intents: readonly AcceptedIntent[];
  readonly races: readonly RaceResult[];
  readonly repeats: readonly RepeatResult[];
  readonly bodyRaces: readonly RepeatResult[];
  readonly inflowsAtoken: bigint;
  readonly reconcileUnderLoad: { readonly code: number | null; readonly stdout: string };
  readonly load: { readonly sent: number; readonly perSecond: number };
  readonly followed: readonly ApiEvent[];
  readonly steps: readonly string[];
}

/** Plays the run on a fresh kit that was started without its demonstration. */
export async function playExchange(kit: RunningKit, seed: number): Promise<ExchangeRun> {
  const player = new Player(kit, createRandom(seed));
  try {
    return await player.play();
  } catch (error) {
    player.chain.provider.destroy();
    throw error;
  }
}

class Player {
  readonly chain: ExchangeChain;
  readonly faucet: Sender;
  readonly hotWallet: string;
  readonly contracts: Record<string, CompiledContract> = compileFixture("Exchange.sol");
  readonly xpub: HDNodeWallet;
  readonly registrations: { address: string; index: number }[] = [];
  readonly targets: Target[] = [];
  readonly cases: SentCase[] = [];
  readonly deposits: ExpectedDeposit[] = [];
  readonly steps: string[] = [];
  readonly #startMs = performance.now();

  constructor(
    readonly kit: RunningKit,
    readonly random: Random,
  ) {
    this.chain = new ExchangeChain(kit);
    this.faucet = new Sender(new Wallet(kit.key("faucet.key")), this.chain);
    const keystore: { address: string } = JSON.parse(kit.key("hot-wallet.json"));
    this.hotWallet = `0x${keystore.address.replace(/^0x/, "").toLowerCase()}`;
    this.xpub = HDNodeWallet.fromExtendedKey(kit.key("deposit.xpub")) as HDNodeWallet;
  }

  async play(): Promise<ExchangeRun> {
    const names = Array.from({ length: CUSTOMERS }, (_, n) => `customer-${n}`);
    const own = names.flatMap((name) => Array.from({ length: ADDRESSES_EACH }, () => name));
    const targets = await Promise.all(own.map((name) => this.#register(name)));
    const racers = await Promise.all([0, 1, 2].map((n) => this.#register(`race-${n}`)));
    const senders = await this.chain.fund(this.faucet, SENDERS, 300n * TOKEN);
    const stage = await this.#deploy(targets);
    this.#step("addresses, senders and contracts");
    const loader = Wallet.createRandom();
    const gift = { to: loader.address, valueAtoken: 1_000n * TOKEN };
    await this.chain.mined(await this.faucet.send([gift]));
    const load = startLoad(this.kit.url("jsonRpc"), this.chain, loader);
    const follower = followEvents(this.kit);
    const count = (type: string) => follower.seen.filter((event) => event.type === type).length;
    const events = (type: string, wanted: number) => this.#events(type, wanted, () => count(type));

    const planned = shuffle(this.random, planDeposits({ ...stage.parts, targets }));
    const half = Math.floor(planned.length / 2);
    const late = await this.#payBeforeRegistration(stage.parts.router, senders[0]);
    await this.#payRacers(racers, senders[1]);
    await this.#send(planned.slice(0, half), senders);
    await events("deposit.credited", this.deposits.length);
    this.#step(`first ${this.deposits.length} deposits credited`);
    await this.#registerLate(late);
    await events("deposit.suspense", late.length);

    const [, withdrawals, inflowsAtoken, reconcileUnderLoad] = await Promise.all([
      this.#send(planned.slice(half), senders),
      this.#withdraw(names, stage.destinations, { racers, targets }),
      this.#payHotWallet(stage.parts.router, stage.deployer),
      runCauseway(this.kit, ["reconcile", "--json"]),
    ]);
    this.#step("all is sent and accepted, reconciled meanwhile");
    const credits = this.deposits.filter(({ status }) => status === "credited").length;
    const { intents } = withdrawals;
    const toOurs = intents.filter(({ body }) => this.#isOurs(body.to, stage.relayTargets)).length;
    const finals = () => follower.seen.filter(isFinal).length;
    await this.#events("final withdrawals", intents.length, finals);
    await events("deposit.credited", credits + toOurs);
    this.#step("all is settled and credited");
    const loadResult = await load.stop();
    // What must not be credited gets time to be credited wrongly.
    await this.chain.blocksPass(4);
    const followed = await follower.stop();
    this.#step("load is mined");
    return {
      ...stage,
      ...withdrawals,
      ...this.#collected(),
      inflowsAtoken,
      reconcileUnderLoad,
      load: loadResult,
      followed,
    };
  }

  #collected() {
    const { chain, faucet, hotWallet, xpub, registrations, targets, cases, deposits } = this;
    const { steps } = this;
    return { chain, faucet, hotWallet, xpub, registrations, targets, cases, deposits, steps };
  }

  async #register(customerId: string): Promise<Target> {
    const body = { customerId };
    const answer = await callApi(this.kit, "depositApi", { path: "/v1/addresses", body });
    if (answer.status !== 201) throw new Error(`an address: ${JSON.stringify(answer)}`);
    const address = String(answer.body["address"]);
    this.registrations.push({ address, index: Number(answer.body["index"]) });
    const target = { address: address.toLowerCase(), customerId };
    this.targets.push(target);
    return target;
  }

  /** Routers, bequests and destinations; one account deploys all of them. */
  async #deploy(targets: readonly Target[]) {
    const [deployer] = await this.chain.fund(this.faucet, 1, 1_000n * TOKEN);
    if (deployer === undefined) throw new Error("no deployer");
    const { contracts, random } = this;
    const deploy = (name: string, args: readonly unknown[] = [], valueAtoken = 0n) =>
      deployer.deploy(contracts[name], args, valueAtoken);
    const several = async (count: number, make: () => Promise<string>) => {
      const made: string[] = [];
      for (let n = 0; n < count; n += 1) made.push(await make());
      return made;
    };
    let router = `0x${"00".repeat(20)}`;
    for (let n = 0; n < 4; n += 1) router = await deploy("Router", [router]);
    const bequests = await several(8, () => deploy("Bequest", [], BEQUEST_ATOKEN));
    const relayTargets = new Map<string, Target>();
    for (const target of targets.slice(0, 2)) {
      relayTargets.set(await deploy("Relay", [target.address]), target);
    }
    const destinations = {
      bookkeepers: await several(5, () => deploy("Bookkeeper")),
      refusers: [...(await several(2, () => deploy("Refuser"))), await deploy("Deaf")],
      burner: await deploy("Burner"),
      once: await several(2, () => deploy("Once")),
      relays: [...relayTargets.keys()],
      boomerang: await deploy("Boomerang"),
    };
    const last = { to: this.hotWallet, valueAtoken: 0n };
    await this.chain.mined(await deployer.send([last]));
    const neverGiven = this.xpub.deriveChild(1_000).address.toLowerCase();
    const others = Array.from({ length: 5 }, () => freshAddress(random).toLowerCase());
    const strangers = [neverGiven, ...others];
    const parts: Omit<DepositParts, "targets"> = {
      random,
      contracts,
      router,
      bequests,
      strangers,
    };
    return { deployer, parts, relayTargets, destinations };
  }

  /** Each sender sends its part in order; expected rows follow from the receipts' places. */
  async #send(cases: readonly DepositCase[], senders: readonly Sender[]): Promise<void> {
    const lanes = senders.map(async (sender, lane) => {
      const own = cases.filter((_, index) => index % senders.length === lane);
      const hashes = await sender.send(own.map(({ request }) => request));
      const receipts = await this.chain.mined(hashes);
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

  async #payRacers(racers: readonly Target[], sender: Sender | undefined): Promise<void> {
    const cases = racers.map((target) => {
      const paid = { ...target, amountAtoken: RACE_BALANCE_ATOKEN };
      const request = { to: target.address, valueAtoken: RACE_BALANCE_ATOKEN };
      return { kind: "plain", request, succeeds: true, pays: [paid] };
    });
    if (sender !== undefined) await this.#send(cases, [sender]);
  }

  /** Pays the next four addresses, which nobody has been given yet, directly and through a call. */
  async #payBeforeRegistration(router: string, sender: Sender | undefined) {
    const amount = createAmounts(this.random);
    const first = this.registrations.length;
    const next = [0, 1, 2, 3].map((n) => ({
      address: this.xpub.deriveChild(first + n).address.toLowerCase(),
      customerId: `late-${n % 2}`,
      amountAtoken: amount(),
    }));
    const [one, two, ...forwarded] = next;
    if (one === undefined || two === undefined || sender === undefined) throw new Error("too few");
    const { CaseMaker } = await import("./exchange-deposits.js");
    const targets = this.targets;
    const maker = new CaseMaker(
      { random: this.random, contracts: this.contracts, targets, router, bequests: [], strangers: [] },
      amount,
    );
    const call = maker.forward(3, forwarded);
    const plain = [one, two].map(({ address: to, amountAtoken: valueAtoken }) => ({ to, valueAtoken }));
    const receipts = await this.chain.mined(await sender.send([...plain, call.request]));
    return next.map((paid, index) => {
      const receipt = receipts[Math.min(index, 2)];
      if (receipt === undefined || !receipt.isSuccess) throw new Error("not paid");
      return { ...paid, receipt };
    });
  }

  /** Their first coins are in suspense; what comes from now on is theirs. */
  async #registerLate(late: readonly Omit<ExpectedDeposit, "status">[]): Promise<void> {
    for (const paid of late) {
      const target = await this.#register(paid.customerId);
      if (target.address !== paid.address) throw new Error("not the address that was paid");
      this.deposits.push({ ...paid, status: SUSPENSE });
    }
    const amountAtoken = 3n * 10n ** 17n;
    const cases = late.map(({ address, customerId }) => ({
      kind: "plain after late registration",
      request: { to: address, valueAtoken: amountAtoken },
      succeeds: true,
      pays: [{ address, customerId, amountAtoken }],
    }));
    await this.#send(cases, [this.faucet]);
  }

  /** Coins for the hot wallet that nobody announced, one payment of them from within a call. */
  async #payHotWallet(router: string, sender: Sender): Promise<bigint> {
    const { CaseMaker } = await import("./exchange-deposits.js");
    const amount = createAmounts(this.random);
    const maker = new CaseMaker(
      { random: this.random, contracts: this.contracts, targets: [], router, bequests: [], strangers: [] },
      amount,
    );
    const target = { address: this.hotWallet, customerId: "" };
    const inner = [amount(), amount()].map((amountAtoken) => ({ ...target, amountAtoken }));
    const plainAtoken = 5n * TOKEN;
    const requests = [
      { to: this.hotWallet, valueAtoken: plainAtoken },
      maker.forward(2, inner).request,
    ];
    await this.chain.mined(await sender.send(requests));
    return inner.reduce((sum, { amountAtoken }) => sum + amountAtoken, plainAtoken);
  }

  /** All requests at once: ordinary ones, races for a balance, repeated keys. */
  async #withdraw(
    names: readonly string[],
    destinations: Destinations,
    ours: { readonly racers: readonly Target[]; readonly targets: readonly Target[] },
  ) {
    const { kit, random } = this;
    const customers = names.map((customerId) => ({
      customerId,
      availableAtoken: this.deposits
        .filter((row) => row.customerId === customerId && row.status === "credited")
        .reduce((sum, row) => sum + row.amountAtoken, 0n),
    }));
    const plan = { random, customers, targets: ours.targets, destinations };
    const intents = shuffle(random, planWithdrawals(plan));
    const single = (key: string, amountAtoken: bigint): Intent => {
      const customerId = random.pick(names);
      const to = freshAddress(random);
      const body = { customerId, asset: "TOKEN" as const, to, amountAtoken: String(amountAtoken) };
      return { kind: "repeated", key, body, end: "paid" };
    };
    const small = [1, 2, 3, 4, 5, 6].map((n) => single(`repeat ${n}`, 1_000n + BigInt(n)));
    const balanceAtoken = RACE_BALANCE_ATOKEN;
    const amounts = [
      Array.from({ length: 24 }, () => TOKEN),
      Array.from({ length: 30 }, () => TOKEN / 2n + BigInt(random.integer(2 ** 31)) * 10n ** 9n),
      Array.from({ length: 12 }, () => balanceAtoken),
    ];
    const raced = ours.racers.map(({ customerId }, n) =>
      raceForBalance(kit, { random, customerId, balanceAtoken, amounts: amounts[n] ?? [] }),
    );
    const [accepted, races, repeats] = await Promise.all([
      acceptAll(kit, intents),
      Promise.all(raced),
      repeatKeys(kit, small, 6),
    ]);
    const once = repeats.map(({ intent, answers }) => ({
      ...intent,
      id: String(answers[0]?.body["id"]),
    }));
    const all = [...accepted, ...races.flatMap((race) => race.accepted), ...once];
    return { intents: all, races, repeats, bodyRaces: [] };
  }

  #isOurs(to: string, relays: ReadonlyMap<string, Target>): boolean {
    const lower = to.toLowerCase();
    return relays.has(lower) || this.targets.some(({ address }) => address === lower);
  }

  async #events(what: string, wanted: number, count: () => number): Promise<void> {
    const found = () => `${wanted} x ${what}, found ${count()}`;
    await until(() => count() >= wanted, { timeoutMs: EVENTS_TIMEOUT_MS, what }).catch(
      (error: unknown) => {
        throw new Error(`waited for ${found()}: ${String(error)}`);
      },
    );
  }

  #step(what: string): void {
    this.steps.push(`${Math.round((performance.now() - this.#startMs) / 1_000)} s: ${what}`);
  }
}

function isFinal(event: ApiEvent): boolean {
  return event.type.startsWith("withdrawal.") && FINAL_STATES.has(event.type.slice(11));
}
