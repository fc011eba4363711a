/** One random history: what happens, and what has to be so then. */
import { expect } from "@jest/globals";
import { NATIVE_ASSET } from "../../../../ledger/journal/accounts.js";
import { readOpenMatters } from "../../../../ledger/decisions/open-matters.js";
import type { WithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { chance } from "../../../helpers/random.js";
import { STRANGER } from "../desk.js";
import { PLAIN } from "./house-of-wallets.js";
import { movesOn, ownedBy, paymentsOf } from "./money-model.js";
import { ASSETS, CUSTOMERS } from "./scene.js";
import { Restores } from "./restores.js";

type Action = readonly [weight: number, name: string, act: () => Promise<boolean>];

/** See the head of the file. */
export class History extends Restores {
  protected get actions(): readonly Action[] {
    const all: readonly Action[] = [
      [3, "deposit", () => this.deposit()],
      [2, "token", () => this.tokenDeposit()],
      [1, "stray", () => this.stray()],
      [1, "block", () => this.blockLevel()],
      [2, "assign", () => this.assign()],
      [7, "withdraw", () => this.withdraw()],
      [2, "cancel", () => this.cancel()],
      [4, "work", () => this.work()],
      [3, "crash", () => this.crash()],
      [3, "lose", () => this.lose()],
      [4, "again", () => this.mineAgain()],
      [2, "wallet", () => this.changeWallet()],
      [1, "switch", () => this.throwSwitch()],
      [2, "policy", () => this.changePolicy()],
      [2, "approve", () => this.decide()],
      [1, "adjust", () => this.adjust()],
      [1, "time", () => this.passTime()],
      [1, "price", () => this.changePrice()],
      [1, "revert", () => this.changeOutcome()],
      [2, "sweep", () => this.sweep()],
      [1, "mine", () => this.mine()],
      [1, "address", () => this.newAddress()],
      [2, "copy", () => this.copy()],
      [4, "restore", () => this.restore()],
      [1, "restart", () => this.restart()],
    ];
    return all.filter(([, name]) => !this.without.has(name));
  }

  async begin(): Promise<void> {
    for (const customer of [...CUSTOMERS, ...CUSTOMERS]) {
      const { address } = await this.desk.register(customer);
      this.owners.set(address, customer);
    }
    const { random } = this;
    const chain = this.chain;
    for (const to of this.owners.keys()) {
      if (chance(random, 0.7)) this.pay(chain.payment(STRANGER, to, this.amount()));
      const move = { from: STRANGER, to, units: this.amount() };
      if (chance(random, 0.7)) this.pay(chain.tokenPayment(STRANGER, move));
    }
    chain.mine();
    chain.mine();
    await this.desk.watch();
    await this.changePolicy();
  }

  /** One thing that happens; whatever cannot happen now is passed over. */
  async step(): Promise<void> {
    const drawn = this.actions.flatMap((action) => Array<Action>(action[0]).fill(action));
    for (;;) {
      const [, , act] = this.random.pick(drawn);
      if (await this.unlessClosed(act)) break;
    }
    await this.attend();
    await this.check();
  }

  /** Nothing is paid twice, at any time. */
  protected async check(): Promise<void> {
    const moves = movesOn(this.chain);
    const twice = this.asked.filter((asked) => paymentsOf(asked, moves).length > 1);
    expect(twice).toEqual([]);
    const rows = await this.desk.database.query(
      `SELECT 1 FROM customer_balance WHERE available_units < 0 OR held_units < 0`,
    );
    expect(rows).toEqual([]);
  }

  protected async statusOf(id: WithdrawalId): Promise<string> {
    const rows = await this.desk.database.query<{ status: string }>(
      `SELECT status FROM withdrawal WHERE id = $1`,
      [id],
    );
    return rows[0]?.status ?? "lost";
  }

  /** All that was lost is mined again, nothing is on its way, and everybody has what is theirs. */
  async settle(): Promise<void> {
    const { house } = this;
    const desk = this.desk;
    this.say("--- settle");
    if (this.isStopped) await this.throwSwitch();
    await house.setPolicy({}, this.isSwept() ? this.treasury() : undefined);
    this.chain.unmined.clear();
    this.chain.reverting.clear();
    for (let round = 0; round < 8; round += 1) {
      if (this.payments.some(({ height }) => height === undefined)) this.remine();
      await this.quietRound();
      if (await this.isQuiet()) break;
    }
    for (let round = 0; round < 2; round += 1) await this.quietRound();
    const moves = movesOn(this.chain);
    for (const asked of this.asked) {
      const paid = paymentsOf(asked, moves).map(({ height }) => height);
      this.say(
        `${asked.key} ${asked.customer} ${asked.asset} ${asked.amountUnits}: ` +
          `${await this.statusOf(asked.id)}, paid in [${paid.join()}]`,
      );
    }
    await this.check();
    await this.assertQuiet();
    await this.assertOwned(ownedBy(moves, this.owners, this.asked));
    expect(await desk.breaks()).toBe("");
  }

  protected isSwept(): boolean {
    return !this.without.has("sweep") && chance(this.random, 0.7);
  }

  protected async quietRound(): Promise<void> {
    const { house } = this;
    const desk = this.desk;
    for (let count = 0; count < 3; count += 1) {
      await house.hurry();
      await house.treasury();
      await house.workers("one");
      this.chain.mine();
      await desk.watch();
      await this.attend(true);
    }
    while (await this.assign()) continue;
    for (const { id } of await desk.database.query<{ id: string }>(
      `SELECT id FROM withdrawal WHERE status = 'pending_approval'`,
    )) {
      await this.decideOn(id, true);
    }
    this.chain.mine();
    this.chain.mine();
    await desk.watch();
    await this.attend(true);
  }

  protected async isQuiet(): Promise<boolean> {
    const open = await this.desk.database.query(
      `SELECT 1 FROM withdrawal WHERE phase IN ('waiting', 'open') LIMIT 1`,
    );
    return open.length === 0 && this.payments.every(({ height }) => height !== undefined);
  }

  protected async assertQuiet(): Promise<void> {
    const open = await this.desk.database.query<{ id: string; status: string; reason: string }>(
      `SELECT w.id, w.status, w.customer_id, w.asset, w.amount_units::text AS units,
              coalesce(w.reason, '') AS reason
         FROM withdrawal w WHERE phase IN ('waiting', 'open') ORDER BY position`,
    );
    expect(open).toEqual([]);
    const matters = await readOpenMatters(this.desk.database, 100);
    const { remined, frozen, outflows, payments } = matters;
    expect({ remined, frozen, outflows, payments }).toEqual({
      remined: [],
      frozen: [],
      outflows: [],
      payments: [],
    });
  }

  protected async assertOwned(owned: Map<string, bigint>): Promise<void> {
    const desk = this.desk;
    const expected: Record<string, bigint> = {};
    const found: Record<string, bigint> = {};
    for (const customer of CUSTOMERS) {
      for (const asset of ASSETS) {
        const key = `${customer} ${asset}`;
        expected[key] = (owned.get(key) ?? 0n) + (this.given.get(key) ?? 0n);
        found[key] = await this.available(customer, asset);
      }
    }
    for (const [name, { customer, asset, units }] of this.writtenOff) {
      const stands = await desk.database.query(
        `SELECT 1 FROM journal_entry e WHERE idem_key = 'remined-accepted:' || $1
            AND NOT EXISTS (SELECT 1 FROM journal_entry r
                             WHERE r.idem_key LIKE 'reversal:remined-accepted:' || $1 || '%')`,
        [name],
      );
      if (stands.length === 0) continue;
      expected[`${customer} ${asset}`] = (expected[`${customer} ${asset}`] ?? 0n) + units;
    }
    // Fees: one for each that was paid, and that of a failure.
    const fees = await desk.database.query<Record<"account" | "asset" | "units", string>>(
      `SELECT coalesce(w.customer_id, '') AS account, p.asset, p.amount_units::text AS units
         FROM posting p JOIN journal_entry e ON e.id = p.journal_id
         LEFT JOIN withdrawal w ON e.idem_key LIKE '%' || w.id || '%'
        WHERE p.credit LIKE 'revenue:%'`,
    );
    for (const { account, asset, units } of fees) {
      const key = `${account} ${asset}`;
      expected[key] = (expected[key] ?? 0n) - BigInt(units);
    }
    // What customers had withdrawn of coins that are gone for good is a break, and nobody's debt.
    const breaks = await desk.database.query<Record<"asset" | "units", string>>(
      `SELECT asset, sum(CASE WHEN debit = 'asset:break' THEN amount_units
                              ELSE -amount_units END)::text AS units
         FROM posting WHERE 'asset:break' IN (debit, credit) GROUP BY asset`,
    );
    const broken = Object.fromEntries(breaks.map(({ asset, units }) => [asset, BigInt(units)]));
    const over: Record<string, bigint> = {};
    for (const [key, units] of Object.entries(found)) {
      const [customer = "", asset = ""] = key.split(" ");
      const more = units - (expected[key] ?? 0n);
      const gone = asset === NATIVE_ASSET ? (this.gone.get(customer) ?? 0n) : 0n;
      if (more < 0n || more > gone) expect(found).toEqual(expected);
      over[asset] = (over[asset] ?? 0n) + more;
    }
    expect({ [NATIVE_ASSET]: 0n, [PLAIN]: 0n, ...broken }).toEqual(over);
    const statuses: Record<string, string> = {};
    for (const { id, key } of this.asked) statuses[key] = await this.statusOf(id);
    this.say(JSON.stringify(statuses));
  }
}

/** The names of everything that is left out, separated by commas. */
export function parseWithout(text: string | undefined): ReadonlySet<string> {
  return new Set((text ?? "").split(",").filter((word) => word !== ""));
}
