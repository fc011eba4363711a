/**
 * The ledger's database is put back from an older copy. Persons recover it, say whose the payments are that
 * only the chain remembers, and let go on what nobody was told the end of; clients ask again.
 */
import { expect } from "@jest/globals";
import { decodeTransaction, recoverSender } from "../../../../chain/transaction.js";
import { parseHexBytes } from "../../../../chain/hex.js";
import { errorCode, present } from "../../../../chain/errors.js";
import { readOpenMatters } from "../../../../ledger/decisions/open-matters.js";
import { listEvents } from "../../../helpers/events.js";
import { openIncident } from "../../../../ledger/incidents.js";
import type { RecoveredPayment } from "../../../../ledger/requests/recovered-payments.js";
import { toWithdrawalId, type WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { chance } from "../../../helpers/random.js";
import { PLAIN } from "./house-of-wallets.js";
import type { Asked } from "./money-model.js";
import { CUSTOMERS, REASON, type Books } from "./scene.js";
import { Traffic } from "./traffic.js";

/** Copies that are kept at once. */
const MAX_COPIES = 2;

/** Ends of requests of which nothing is paid. */
const UNPAID = ["cancelled", "rejected", "failed"];

/** What the books of an empty ledger hold beside the chain. */
const NOTHING: Books = { given: new Map(), assigned: [], writtenOff: new Map() };

interface Copy {
  readonly url: string;
  readonly books: Books;
}

/** See the head of the file. */
export abstract class Restores extends Traffic {
  #copies: readonly Copy[] = [];
  #isRestored = false;
  /** An older copy is in use, and nobody has recovered it. */
  #isUnnoticed = false;

  /** A further address of a customer: copies of before do not know it. */
  protected async newAddress(): Promise<boolean> {
    if ((await openIncident(this.desk.database)) !== undefined) return false;
    const customer = this.random.pick(CUSTOMERS);
    const { address } = await this.desk.register(customer);
    this.owners.set(address, customer);
    this.say(`${address} is ${customer}'s, too`);
    return true;
  }

  protected async copy(): Promise<boolean> {
    if (this.isStopped || (await openIncident(this.desk.database)) !== undefined) return false;
    const url = await this.desk.backup();
    this.#copies = [...this.#copies, { url, books: this.booksNow() }].slice(-MAX_COPIES);
    this.say("the ledger is copied");
    return true;
  }

  protected async restore(): Promise<boolean> {
    const isEmpty = chance(this.random, 0.15);
    if ((this.#copies.length === 0 && !isEmpty) || this.#isPaymentOnTheWay()) return false;
    if (this.isStopped) await this.throwSwitch();
    const place = isEmpty ? -1 : this.random.integer(this.#copies.length);
    for (const asked of this.asked) {
      const status = (await this.#findRow(asked.key))?.status;
      if (status !== undefined && UNPAID.includes(status)) this.told.add(asked.key);
    }
    const isFollowed = chance(this.random, 0.5);
    if (isFollowed) await this.#follow();
    const { url, books } = this.#copies[place] ?? { url: undefined, books: NOTHING };
    const from = url === undefined ? "and is empty" : "from a copy";
    this.say(`the ledger is put back ${from}${isFollowed ? ", and the home knows it" : ""}`);
    await (url === undefined ? this.desk.useEmptyDatabase() : this.desk.useDatabase(url));
    this.#copies = this.#copies.slice(0, Math.max(0, place));
    this.#isRestored = true;
    this.takeBooks(books);
    await this.house.startAgain();
    // The bytes of what was paid behind the copy are lost with it: what the chain loses now, nobody sends again.
    this.floor = this.chain.head;
    this.#isUnnoticed = chance(this.random, 0.3);
    if (this.#isUnnoticed) return true;
    if (chance(this.random, 0.5)) await this.desk.watch();
    await this.#recover();
    return true;
  }

  async #recover(): Promise<void> {
    const { code, text } = await this.typed("recover", "--declare", "an older copy", "--apply");
    this.say(text);
    expect([code, text]).toEqual([0, text]);
    this.#isUnnoticed = false;
    this.chain.mine();
    await this.desk.watch();
  }

  protected override async attend(isPatient = false): Promise<void> {
    if (this.#isUnnoticed) {
      const isNoticed = await this.#isHalted();
      this.say(`an older copy is in use, which is ${isNoticed ? "noticed" : "not noticed"}`);
      if (isNoticed && !this.isStopped && (isPatient || chance(this.random, 0.5))) {
        await this.#recover();
      }
      if (isNoticed) return;
    }
    await this.unlessClosed(async () => {
      await super.attend(isPatient);
      if (!this.#isRestored || !(isPatient || chance(this.random, 0.5))) return true;
      if ((await openIncident(this.desk.database)) === undefined) await this.#decide(isPatient);
      return true;
    });
  }

  /** An older ledger that nobody has noticed yet decides nothing, and gives no address a second time. */
  protected async unlessClosed(work: () => Promise<boolean>): Promise<boolean> {
    try {
      return await work();
    } catch (error) {
      if (!this.#isUnnoticed || errorCode(error) !== "RECOVERY") throw error;
      this.say(`refused: ${String(error)}`);
      return true;
    }
  }

  /** The kit has found out: by what the home remembers, or by what the chain has of a wallet. */
  async #isHalted(): Promise<boolean> {
    const frozen = await this.desk.database.query(`SELECT 1 FROM signing_freeze WHERE frozen`);
    return frozen.length > 0 || (await openIncident(this.desk.database)) !== undefined;
  }

  /** What a recovery has left to persons and clients. */
  async #decide(isPatient: boolean): Promise<void> {
    const matters = await readOpenMatters(this.desk.database, 100);
    const { payments, addresses, frozen, outflows } = matters;
    // A sweep that the ledger has lost: its coins lie in a hot wallet, in suspense.
    for (const { hash, wallet, amountUnits } of outflows) {
      if (!this.owners.has(wallet)) continue;
      const account = amountUnits > 0n ? "liability:suspense" : "expense:network_fee";
      await this.typed("ledger", "accept-outflow", hash, "--account", account, ...REASON);
    }
    const unassigned = addresses.filter(({ isAssigned }) => !isAssigned);
    for (const address of new Set(unassigned.map((one) => one.address))) {
      const customer = present(this.owners.get(address), "an owner");
      const whose = ["--customer", customer, "--with-deposits"];
      await this.typed("ledger", "assign-address", address, ...whose, ...REASON);
    }
    for (const payment of payments) await this.#decidePayment(payment, isPatient);
    for (const { id, reason } of frozen) await this.#decideFrozen(id, reason);
    for (const asked of this.asked) {
      if (isPatient || chance(this.random, 0.3)) await this.#askAgain(asked);
    }
  }

  async #decidePayment(payment: RecoveredPayment, isPatient: boolean): Promise<void> {
    const { hash } = payment;
    const asked = this.asked.find((one) => isOf(one, payment));
    if (asked === undefined) {
      await this.typed("ledger", "write-off-payment", hash, ...REASON);
      return;
    }
    if (chance(this.random, 0.4)) await this.#askAgain(asked);
    const row = await this.#findRow(asked.key);
    const claim = ["--customer", asked.customer, "--idempotency-key", asked.key];
    const whose = row === undefined ? claim : ["--withdrawal", row.id];
    try {
      await this.typed("ledger", "link-payment", hash, ...whose, ...REASON);
    } catch (error) {
      this.say(`refused: ${String(error)}`);
      if (row !== undefined || !isPatient) return;
      await this.typed("ledger", "write-off-payment", hash, ...REASON);
      this.told.add(asked.key);
      this.give(asked.customer, asked.asset, asked.amountUnits);
      return;
    }
    this.#rename(asked, present(await this.#findRow(asked.key), "the linked request").id);
  }

  async #decideFrozen(id: string, reason: string): Promise<void> {
    if (!reason.includes("comes from a backup")) return;
    const asked = this.asked.find((one) => one.id === id);
    if (asked !== undefined && this.told.has(asked.key)) {
      await this.typed("withdrawals", "cancel", id, ...REASON);
    }
    const { text } = await this.typed("withdrawals", "release", id, "--not-paid");
    this.say(text);
  }

  /** A client that finds its request lost repeats it, unless it was told that it has ended unpaid. */
  async #askAgain(asked: Asked): Promise<void> {
    if (this.told.has(asked.key) || (await this.#findRow(asked.key)) !== undefined) return;
    const { key, customer, asset, to, amountUnits } = asked;
    try {
      const wanted = { key, customer, to, amountAtoken: amountUnits, asset };
      const { id, status } = await this.desk.request(wanted);
      this.say(`${key} is asked for again: ${id}, ${status}`);
      this.#rename(asked, id);
    } catch (error) {
      this.say(`${key} is asked for again: ${String(error)}`);
    }
  }

  #rename(asked: Asked, id: WithdrawalId): void {
    this.asked[this.asked.indexOf(asked)] = { ...asked, id };
  }

  /** Signed bytes that may still be mined: a ledger of before would know nothing of them. */
  #isPaymentOnTheWay(): boolean {
    return this.chain.arrived.some((raw) => {
      const tx = decodeTransaction(parseHexBytes(raw));
      return tx.nonce >= (this.chain.nonces.get(recoverSender(tx)) ?? 0n);
    });
  }

  async #findRow(key: string): Promise<{ id: WithdrawalId; status: string } | undefined> {
    const rows = await this.desk.database.query<{ id: string; status: string }>(
      `SELECT id, status FROM withdrawal WHERE idempotency_key = $1`,
      [key],
    );
    return rows.map(({ id, status }) => ({ id: toWithdrawalId(id), status }))[0];
  }

  /** All events are told, and the home remembers it. */
  async #follow(): Promise<void> {
    const rows = await listEvents(this.desk.database, { afterSeq: 0, limit: 100_000 });
    await (await this.desk.guard()).beforeTelling({ eventSeq: rows.at(-1)?.seq ?? 0 });
  }
}

function isOf(asked: Asked, { destination, amountUnits, contract }: RecoveredPayment): boolean {
  const isToken = contract !== undefined;
  const isSame = asked.to === destination && asked.amountUnits === amountUnits;
  return isSame && isToken === (asked.asset === PLAIN);
}
