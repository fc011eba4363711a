/** What happens by itself: coins come and are asked for, processes work and die, the chain loses blocks. */
import type { Address } from "../../../../chain/address.js";
import { cancelWithdrawal } from "../../../../ledger/withdrawals/cancellation.js";
import { change, type FakeTransaction } from "../../../helpers/chains/fake-chain.js";
import { chance } from "../../../helpers/random.js";
import { STRANGER, TOKEN } from "../desk.js";
import { COLD, payee, WALLETS } from "./house-of-wallets.js";
import { movesOn } from "./money-model.js";
import { Persons } from "./persons.js";
import { ASSETS, CUSTOMERS } from "./scene.js";

/** Blocks that one loss takes at most. */
const MAX_LOST_BLOCKS = 25;

/** Bytes that others still have. */
const MAX_SENT_AGAIN = 100;

/** Coins from outside. */
interface Payment {
  readonly transaction: FakeTransaction;
  height: number | undefined;
}

/** See the head of the file. */
export abstract class Traffic extends Persons {
  protected readonly payments: Payment[] = [];

  protected pay(transaction: FakeTransaction): void {
    const { height } = this.chain.mine([transaction]);
    this.payments.push({ transaction, height });
  }

  protected get someAddress(): Address {
    return this.random.pick([...this.owners.keys()]);
  }

  protected async deposit(): Promise<boolean> {
    const [to, units] = [this.someAddress, this.amount()];
    const chain = this.chain;
    if (chance(this.random, 0.3)) {
      const [other, more] = [this.someAddress, this.amount()];
      this.say(`${units} to ${to} and ${more} to ${other} in one transaction`);
      const second = change({ from: STRANGER, to: other, amountAtoken: more, tracePath: "0" });
      const { hash, changes } = chain.payment(STRANGER, to, units);
      this.pay({ hash, changes: [...changes, second] });
    } else {
      this.say(`${units} to ${to} of ${this.owners.get(to)}`);
      this.pay(chain.payment(STRANGER, to, units));
    }
    return this.maybeWatch();
  }

  protected async tokenDeposit(): Promise<boolean> {
    const move = { from: STRANGER, to: this.someAddress, units: this.amount() };
    this.say(`${move.units} PLAIN to ${move.to} of ${this.owners.get(move.to)}`);
    this.pay(this.chain.tokenPayment(STRANGER, move));
    return this.maybeWatch();
  }

  /** To a hot wallet, from outside or from cold storage. */
  protected async stray(): Promise<boolean> {
    const [to, units] = [this.random.pick(WALLETS), this.amount()];
    const from = chance(this.random, 0.5) ? COLD : STRANGER;
    if ((this.chain.balances.get(from) ?? 0n) < units + 21n) return false;
    this.say(`${units} to the wallet ${to} from ${from}`);
    this.pay(this.chain.payment(from, to, units));
    return this.maybeWatch();
  }

  /** Coins that unbonding brings: a block-level transaction. */
  protected async blockLevel(): Promise<boolean> {
    const [to, amountAtoken] = [this.someAddress, this.amount()];
    this.say(`${amountAtoken} to ${to} by the block`);
    this.chain.mine(
      [],
      [
        change({
          reason: "UNBOND_COMPLETE",
          from: STRANGER,
          to,
          amountAtoken,
          tracePath: undefined,
        }),
      ],
    );
    return this.maybeWatch();
  }

  protected async maybeWatch(): Promise<true> {
    if (chance(this.random, 0.6)) await this.watch();
    return true;
  }

  protected async watch(): Promise<void> {
    if (chance(this.random, 0.5)) {
      this.chain.mine();
      this.chain.mine();
    }
    await Promise.all(
      Array.from({ length: chance(this.random, 0.15) ? 2 : 1 }, () => this.desk.watch()),
    );
  }

  protected async withdraw(): Promise<boolean> {
    for (let left = 1 + this.random.integer(3); left > 0; left -= 1) await this.ask();
    if (chance(this.random, 0.6)) await this.round();
    return true;
  }

  protected async ask(): Promise<boolean> {
    const { random } = this;
    const [customer, asset] = [random.pick(CUSTOMERS), random.pick(ASSETS)];
    const available = await this.available(customer, asset);
    const isAll = chance(random, 0.3);
    this.number += 1;
    const part = BigInt(1 + random.integer(5)) * TOKEN;
    const amountUnits = (isAll ? available - 1_000_000n : part) - BigInt(this.number);
    if (amountUnits <= 0n || amountUnits > available) return false;
    const isOurs = chance(random, 0.15);
    const to = isOurs ? this.someAddress : payee(this.number);
    const { chain } = this.desk;
    const kind = isOurs ? "plain" : random.pick(["plain", "plain", "unmined", "fails", "refuses"]);
    if (kind === "unmined") chain.unmined.add(to);
    if (kind === "fails") chain.revertingOnChain.add(to);
    if (kind === "refuses") chain.reverting.add(to);
    if (kind !== "plain" && chance(random, 0.5)) chain.withCode.add(to);
    const key = `w${this.number}`;
    try {
      const { id, status } = await this.desk.request({
        key,
        customer,
        to,
        amountAtoken: amountUnits,
        asset,
      });
      this.say(
        `${key} ${id}: ${customer} asks ${amountUnits} ${asset} to ${to} (${kind}, ${status})`,
      );
      this.asked.push({ id, key, customer, asset, to, amountUnits });
    } catch (error) {
      this.say(`${key}: ${customer} asks ${amountUnits} ${asset}: ${String(error)}`);
    }
    return true;
  }

  protected async cancel(): Promise<boolean> {
    if (this.asked.length === 0) return false;
    const { id, key } = this.random.pick(this.asked);
    const outcome = await cancelWithdrawal(this.desk.database, id, "not wanted");
    this.say(`cancel ${key}: ${outcome}`);
    return true;
  }

  protected async round(): Promise<void> {
    const how = chance(this.random, 0.3) ? "both" : "one";
    this.say(`a round of ${how}`);
    await this.house.hurry();
    await this.house.workers(how);
  }

  protected async work(): Promise<boolean> {
    for (let left = 1 + this.random.integer(3); left > 0; left -= 1) {
      await this.round();
      if (chance(this.random, 0.8)) this.chain.mine();
    }
    return this.maybeWatch();
  }

  protected async sweep(): Promise<boolean> {
    for (let left = 1 + this.random.integer(3); left > 0; left -= 1) {
      this.say("a round of the treasury");
      await this.house.treasury();
      if (chance(this.random, 0.6)) await this.round();
      if (chance(this.random, 0.8)) this.chain.mine();
      if (chance(this.random, 0.5)) await this.watch();
    }
    return true;
  }

  protected async crash(): Promise<boolean> {
    const killedAfter = 1 + this.random.integer(25);
    await this.house.hurry();
    if (chance(this.random, 0.7)) {
      this.say(`a worker dies at its call ${killedAfter}`);
      await this.house.workers({ killedAfter });
    } else {
      this.say(`the treasury dies at its call ${killedAfter}`);
      await this.house.treasury(killedAfter);
    }
    if (chance(this.random, 0.5)) this.chain.mine();
    return this.maybeWatch();
  }

  protected async restart(): Promise<boolean> {
    this.say("everything starts again");
    await this.house.startAgain();
    if (chance(this.random, 0.3)) this.chain.clearPool();
    return true;
  }

  protected async mine(): Promise<boolean> {
    for (let left = 1 + this.random.integer(3); left > 0; left -= 1) this.chain.mine();
    return this.maybeWatch();
  }

  protected async passTime(): Promise<boolean> {
    const ms = this.random.pick([31_000, 61_000, 601_000]);
    this.say(`${ms} ms pass`);
    this.house.clock.ms += ms;
    for (let left = ms / 30_000; left > 0; left -= 1) this.chain.mine();
    if (chance(this.random, 0.5)) this.chain.unmined.clear();
    await this.round();
    return true;
  }

  protected async changePrice(): Promise<boolean> {
    this.chain.gasPriceAtoken = BigInt(this.random.pick([20_000_000, 25_000_000, 40_000_000]));
    this.say(`price ${this.chain.gasPriceAtoken}`);
    return true;
  }

  /** A destination's code does otherwise from now on. */
  protected async changeOutcome(): Promise<boolean> {
    if (this.asked.length === 0) return false;
    const { to, key } = this.random.pick(this.asked);
    if (this.owners.has(to)) return false;
    const { revertingOnChain: failing, reverting } = this.chain;
    reverting.delete(to);
    const isFailing = failing.has(to);
    if (isFailing) failing.delete(to);
    else failing.add(to);
    this.say(`the destination of ${key} ${isFailing ? "takes" : "refuses"} from now on`);
    return true;
  }

  protected async lose(): Promise<boolean> {
    const { random } = this;
    const chain = this.chain;
    const lowest = Math.max(this.floor, chain.head - MAX_LOST_BLOCKS);
    if (lowest >= chain.head) return false;
    await this.desk.watch();
    // Mostly just below something that moved.
    const busy = movesOn(chain).flatMap(({ height }) => (height > lowest ? [height - 1] : []));
    const kept =
      busy.length > 0 && chance(random, 0.7)
        ? random.pick(busy)
        : lowest + random.integer(chain.head - lowest);
    const former = chain.head;
    const raws = chain.blocks
      .slice(kept + 1)
      .flatMap(({ transactions }) => transactions.filter(({ signed }) => signed !== undefined));
    for (const payment of this.payments) {
      if (payment.height !== undefined && payment.height > kept) payment.height = undefined;
    }
    for (const { customer, units, height } of this.assigned) {
      if (height > kept) this.gone.set(customer, (this.gone.get(customer) ?? 0n) + units);
    }
    this.assigned = this.assigned.filter(({ height }) => height <= kept);
    chain.rollBack(kept);
    // Somebody else has the bytes as well, or some of them.
    const sentBy = random.pick(["nobody", "nobody", "some", "all"]);
    this.say(`lost above ${kept} of ${former}; bytes sent again by ${sentBy} of the others`);
    if (chance(random, 0.4)) await this.changeOutcome();
    const hashes = new Set(raws.map(({ hash }) => hash));
    for (const raw of chain.arrived.slice(-MAX_SENT_AGAIN)) {
      if (sentBy === "nobody" || (sentBy === "some" && chance(random, 0.5))) continue;
      try {
        hashes.add(chain.submit(raw));
      } catch {
        // A former one, or its nonce is used.
      }
    }
    if (chance(random, 0.3)) this.remine();
    const least = chance(random, 0.2) ? chain.head : former;
    do chain.mine();
    while (chain.head <= least);
    if (chance(random, 0.3)) await this.round();
    await this.desk.watch();
    return true;
  }

  protected remine(): boolean {
    const lost = this.payments.filter(
      (payment) => payment.height === undefined && this.#mayPay(payment),
    );
    if (lost.length === 0) return false;
    const { random } = this;
    const some = lost.filter(() => chance(random, 0.6));
    const meant = some.length === 0 ? [random.pick(lost)] : some;
    const shuffled = meant
      .map((payment) => ({ payment, place: random.integer(1_000) }))
      .toSorted((left, right) => left.place - right.place)
      .map(({ payment }) => payment);
    const groups = chance(random, 0.5) ? [shuffled] : shuffled.map((one) => [one]);
    for (const all of groups) {
      const group = all.filter((payment) => this.#mayPay(payment));
      const { height } = this.chain.mine(group.map(({ transaction }) => transaction));
      for (const payment of group) payment.height = height;
    }
    this.say(`${meant.length} of ${lost.length} payments mined again`);
    return true;
  }

  /** What came out of cold storage may have been lost with what had come there. */
  #mayPay({ transaction }: Payment): boolean {
    const coldAtoken = transaction.changes.reduce(
      (sum, { from, amountAtoken }) => sum + (from === COLD ? amountAtoken : 0n),
      0n,
    );
    return coldAtoken <= (this.chain.balances.get(COLD) ?? 0n);
  }

  protected async mineAgain(): Promise<boolean> {
    if (!this.remine()) return false;
    return this.maybeWatch();
  }
}
