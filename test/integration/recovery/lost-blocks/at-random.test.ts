/**
 * A chain that loses its newest blocks again and again, while coins come, are asked for, cancelled, paid,
 * found in suspense and given to somebody: at random, beside a model of who owns what. In the end all
 * that was lost is mined again, and everybody has what came for them less what was paid to them.
 */
import { afterEach, expect, it } from "@jest/globals";
import { present } from "../../../../chain/errors.js";
import { cancelWithdrawal } from "../../../../ledger/withdrawals/cancellation.js";
import type { Withdrawal } from "../../../../ledger/withdrawals/withdrawals.js";
import type { FakeTransaction } from "../../../helpers/chains/fake-chain.js";
import { chance, createRandom, type Random } from "../../../helpers/random.js";
import { derivation, Desk, destination, STRANGER, TOKEN } from "../desk.js";

/** CAUSEWAY_LOSS_SEED takes another one, CAUSEWAY_LOSS_RUNS and CAUSEWAY_LOSS_STEPS are longer. */
const SEED = Number(process.env["CAUSEWAY_LOSS_SEED"] ?? 1);
const RUNS = Number(process.env["CAUSEWAY_LOSS_RUNS"] ?? 2);
const STEPS = Number(process.env["CAUSEWAY_LOSS_STEPS"] ?? 15);

const CUSTOMERS = ["bob", "carol"];

/** Addresses that may be given out on the way. */
const MAX_ADDRESSES = 12;

/** Payments of one history: with more of them few are lost twice. */
const MAX_PAYMENTS = 6;

/** Blocks that one loss takes at most. */
const MAX_LOST_BLOCKS = 30;

const OPEN = ["accepted", "slotted", "signed", "broadcast", "cancelling", "included", "frozen"];

interface Payment {
  readonly transaction: FakeTransaction;
  readonly amountAtoken: bigint;
  /** Who has its address, or will have. */
  readonly receiver: string;
  /** Whom a person gives it to, where it lies in suspense. */
  readonly owner: string;
  isDecided: boolean;
  height: number | undefined;
  takenAtoken: bigint;
}

interface Asked {
  readonly customer: string;
  readonly withdrawal: Withdrawal;
}

let desk: Desk | undefined;
afterEach(() => desk?.close());

/** One history, and what is known of it. */
class History {
  readonly said: string[] = [];
  readonly #payments: Payment[] = [];
  readonly #asked: Asked[] = [];
  #given = 0;
  #number = 0;

  constructor(
    private readonly at: Desk,
    private readonly random: Random,
  ) {}

  /** One thing that happens, and often what makes it matter; whatever cannot happen now is passed over. */
  async step(): Promise<void> {
    const { random } = this;
    const actions: readonly (readonly [number, () => Promise<boolean>])[] = [
      [3, () => this.#deposit()],
      [5, () => this.#withdraw()],
      [2, () => this.#cancel()],
      [1, () => this.#work()],
      [2, () => this.#lose()],
      [3, () => this.#mineAgain()],
      [2, () => this.#giveAddress()],
      [5, () => this.#assign()],
      [1, () => this.#take()],
    ];
    const drawn = actions.flatMap(([weight, action]) => Array<typeof action>(weight).fill(action));
    while (!(await random.pick(drawn)())) continue;
  }

  async #often(next: () => Promise<boolean>): Promise<true> {
    if (chance(this.random, 0.5)) await next();
    return true;
  }

  /** Nothing is on its way, and all that was lost is there. */
  async settle(): Promise<void> {
    const { at } = this;
    while (this.#given < MAX_ADDRESSES) await this.#giveAddress();
    await this.#bounded();
    for (const payment of this.#payments.filter(({ height }) => height === undefined)) {
      this.#mine(payment);
    }
    at.chain.unmined.clear();
    await this.#confirm();
    for (let row = await this.#suspended(); row !== undefined; row = await this.#suspended()) {
      await this.#assignRow(row);
    }
    await at.causeway("withdrawals", "release");
    await at.work(6);
    await this.#confirm();
    expect(await this.#open()).toEqual([]);
    expect(await at.breaks()).toBe("");
    expect(await this.#untold()).toEqual([]);
    const found = await this.#balances();
    expect({ ...found, break: await at.breakAtoken() }).toEqual({ ...this.#owned(), break: 0n });
  }

  /** What is on the chain for each customer. */
  #come(): Record<string, bigint> {
    const come: Record<string, bigint> = {};
    for (const customer of CUSTOMERS) come[customer] = 0n;
    for (const payment of this.#payments) {
      const { owner, receiver, isDecided, amountAtoken, takenAtoken, height } = payment;
      const whose = isDecided ? owner : receiver;
      if (height !== undefined) come[whose] = (come[whose] ?? 0n) + amountAtoken - takenAtoken;
    }
    return come;
  }

  #owned(): Record<string, bigint> {
    const owned = this.#come();
    for (const customer of CUSTOMERS) {
      owned[customer] = (owned[customer] ?? 0n) - this.at.paidAtoken(payee(customer));
    }
    return owned;
  }

  async #balances(): Promise<Record<string, bigint>> {
    const found: Record<string, bigint> = {};
    for (const customer of CUSTOMERS) {
      found[customer] = (await this.at.availableAtoken(customer)) ?? 0n;
    }
    return found;
  }

  /** Nobody has more than is on the chain, and no more is missing than was paid, or may still be. */
  async #bounded(): Promise<void> {
    const missing = await this.at.breakAtoken();
    let withdrawn = 0n;
    for (const { withdrawal } of this.#asked) {
      const { status, amountUnits } = await this.at.read(withdrawal.id);
      if (status === "settled" || OPEN.includes(status)) withdrawn += amountUnits;
    }
    expect([missing >= 0n, missing <= withdrawn, missing, withdrawn]).toEqual([
      true,
      true,
      missing,
      withdrawn,
    ]);
    const come = this.#come();
    for (const [customer, available] of Object.entries(await this.#balances())) {
      const most = come[customer] ?? 0n;
      expect([customer, available <= most, available, most]).toEqual([
        customer,
        true,
        available,
        most,
      ]);
    }
  }

  /**
   * Withdrawals and deposits in another state than the last event about them says: `verify ledger` names
   * such.
   */
  async #untold(): Promise<readonly string[]> {
    const rows = await this.at.database.query<{ id: string }>(
      `SELECT w.id FROM withdrawal w
        WHERE 'withdrawal.' || w.status IS DISTINCT FROM (
          SELECT e.type FROM event e
           WHERE e.data ->> 'withdrawalId' = w.id AND e.type LIKE 'withdrawal.%'
           ORDER BY e.seq DESC LIMIT 1)
       UNION ALL
       SELECT d.id FROM deposit d
        WHERE ROW('deposit.' || d.status, d.customer_id) IS DISTINCT FROM (
          SELECT ROW(e.type, e.data ->> 'customerId') FROM event e
           WHERE e.data ->> 'depositId' = d.id AND e.type LIKE 'deposit.%'
           ORDER BY e.seq DESC LIMIT 1)`,
    );
    return rows.map(({ id }) => id);
  }

  async #confirm(): Promise<void> {
    this.at.chain.mine();
    this.at.chain.mine();
    await this.at.watch();
  }

  #say(text: string): void {
    this.said.push(text);
  }

  async #giveAddress(): Promise<boolean> {
    if (this.#given === MAX_ADDRESSES) return false;
    const customer = present(CUSTOMERS[this.#given % 2], "a customer");
    this.#given += 1;
    this.#say(`address ${this.#given - 1} to ${customer}`);
    await this.at.register(customer);
    await this.at.watch();
    return this.#often(() => this.#assign());
  }

  async #deposit(): Promise<boolean> {
    const { random, at } = this;
    if (this.#payments.length === MAX_PAYMENTS) return false;
    // Mostly where nobody has an address yet: what came before it is given out lies in suspense.
    const last = Math.min(MAX_ADDRESSES, this.#given + 2);
    const index = chance(random, 0.85) ? last - 1 : random.integer(last);
    const amountAtoken = BigInt(1 + random.integer(5)) * TOKEN;
    const isEarly = index >= this.#given;
    const own = present(CUSTOMERS[index % 2], "a customer");
    const payment: Payment = {
      transaction: at.chain.payment(STRANGER, derivation.addressAt(index), amountAtoken),
      amountAtoken,
      // Whoever has the address gets what comes from then on: only what came before is asked about.
      receiver: own,
      owner: isEarly ? random.pick(CUSTOMERS) : own,
      isDecided: false,
      height: undefined,
      takenAtoken: 0n,
    };
    this.#payments.push(payment);
    this.#say(
      `${amountAtoken / TOKEN} to address ${index}${isEarly ? ` for ${payment.owner}` : ""}`,
    );
    this.#mine(payment);
    await this.#confirm();
    return true;
  }

  #mine(payment: Payment): void {
    payment.height = this.at.chain.mine([payment.transaction]).height;
  }

  async #withdraw(): Promise<boolean> {
    const { random, at } = this;
    const customer = random.pick(CUSTOMERS);
    const available = ((await at.availableAtoken(customer)) ?? 0n) / TOKEN;
    if (available === 0n) return false;
    const isAll = chance(random, 0.7);
    const amountAtoken =
      (isAll ? available : BigInt(1 + random.integer(Number(available)))) * TOKEN;
    if (chance(random, 0.8)) at.chain.unmined.add(payee(customer));
    else at.chain.unmined.delete(payee(customer));
    this.#number += 1;
    const key = `w${this.#number}`;
    const withdrawal = await at.request({ key, customer, to: payee(customer), amountAtoken });
    this.#asked.push({ customer, withdrawal });
    const isSent = chance(random, 0.7);
    this.#say(`${key}: ${customer} asks for ${amountAtoken / TOKEN}${isSent ? ", sent" : ""}`);
    if (isSent) await at.lane().runRound(at.signal);
    return this.#often(() => this.#lose());
  }

  async #open(): Promise<Asked[]> {
    const open: Asked[] = [];
    for (const asked of this.#asked) {
      if (OPEN.includes((await this.at.read(asked.withdrawal.id)).status)) open.push(asked);
    }
    return open;
  }

  async #cancel(): Promise<boolean> {
    const { random, at } = this;
    const open = await this.#open();
    if (open.length === 0) return false;
    const { customer, withdrawal } = random.pick(open);
    this.#say(`${withdrawal.amountUnits / TOKEN} of ${customer} cancelled`);
    await cancelWithdrawal(at.database, withdrawal.id, "not wanted");
    await at.work(4);
    await at.watch();
    return this.#often(() => this.#lose());
  }

  async #work(): Promise<boolean> {
    this.#say("work");
    await this.at.work(3);
    await this.at.watch();
    return true;
  }

  async #lose(): Promise<boolean> {
    const { random, at } = this;
    await at.watch();
    const oldest = at.chain.head - MAX_LOST_BLOCKS;
    const there = this.#payments.flatMap(({ height }) =>
      height !== undefined && height > oldest ? [height] : [],
    );
    if (there.length === 0) return false;
    const kept = random.pick(there) - 1;
    for (const payment of this.#payments) {
      if (payment.height !== undefined && payment.height > kept) payment.height = undefined;
    }
    this.#say(`lost above ${kept} of ${at.chain.head}`);
    await at.loseAbove(kept);
    const { code, text } = await at.causeway("recover", "--apply");
    expect([code, code === 0 ? "" : text]).toEqual([0, ""]);
    at.chain.mine();
    await at.watch();
    await at.causeway("withdrawals", "release");
    await this.#bounded();
    return this.#often(() => this.#mineAgain());
  }

  async #mineAgain(): Promise<boolean> {
    const lost = this.#payments.filter(({ height }) => height === undefined);
    if (lost.length === 0) return false;
    for (const payment of chance(this.random, 0.5) ? lost : [this.random.pick(lost)]) {
      this.#say(`${payment.amountAtoken / TOKEN} of ${payment.owner} mined again`);
      this.#mine(payment);
    }
    await this.#confirm();
    return this.#often(() => this.#cancel());
  }

  async #suspended(): Promise<string | undefined> {
    const rows = await this.at.database.query<{ id: string; tx_hash: string }>(
      `SELECT id, tx_hash FROM deposit WHERE status = 'suspense' ORDER BY seq`,
    );
    return rows.length === 0 ? undefined : this.random.pick(rows).id;
  }

  async #paymentOf(id: string): Promise<Payment> {
    const [row] = await this.at.database.query<{ tx_hash: string }>(
      `SELECT tx_hash FROM deposit WHERE id = $1`,
      [id],
    );
    const found = this.#payments.find(({ transaction }) => transaction.hash === row?.tx_hash);
    return present(found, "its payment");
  }

  async #assign(): Promise<boolean> {
    const id = await this.#suspended();
    if (id === undefined) return false;
    await this.#assignRow(id);
    return this.#often(() => this.#withdraw());
  }

  async #assignRow(id: string): Promise<void> {
    const payment = await this.#paymentOf(id);
    const { owner } = payment;
    payment.isDecided = true;
    this.#say(`${id} given to ${owner}`);
    const to = ["--customer", owner, "--reason", "the sender asked"];
    await this.at.causeway("ledger", "assign-deposit", id, ...to);
  }

  async #take(): Promise<boolean> {
    const id = await this.#suspended();
    if (id === undefined) return false;
    const payment = await this.#paymentOf(id);
    if (payment.takenAtoken > 0n || payment.amountAtoken <= TOKEN) return false;
    this.#number += 1;
    const sides = ["--debit", "liability:suspense", "--credit", "expense:write_off"];
    const what = ["--key", `t${this.#number}`, "--deposit", id, "--amount-atoken", `${TOKEN}`];
    this.#say(`1 of ${id} taken`);
    try {
      await this.at.causeway("ledger", "adjust", ...what, ...sides, "--reason", "it was gas");
      payment.takenAtoken = TOKEN;
    } catch (error) {
      // What is left of it may be less.
      expect(error).toMatchObject({ code: "INVALID_DECISION" });
    }
    return true;
  }
}

function payee(customer: string) {
  return destination(CUSTOMERS.indexOf(customer));
}

it.each(Array.from({ length: RUNS }, (_, run) => SEED + run))(
  "gives nobody coins of nobody, and nobody less than is theirs, with seed %i",
  async (seed) => {
    desk = await Desk.open();
    desk.chain.mine();
    const history = new History(desk, createRandom(seed));
    try {
      for (let step = 0; step < STEPS; step += 1) await history.step();
      await history.settle();
    } catch (error) {
      console.log(`seed ${seed}:\n${history.said.join("\n")}`);
      throw error;
    }
  },
);
