/** What persons do: decide, change wallets and policy, and mend what is out of order as the documents say. */
import { expect } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { present } from "../../../../chain/errors.js";
import { readOpenMatters } from "../../../../ledger/decisions/open-matters.js";
import { openIncident } from "../../../../ledger/incidents.js";
import { decideWithdrawal } from "../../../../ledger/policy/approvals.js";
import type { TreasuryRules } from "../../../../ledger/policy/policy.js";
import type { ReminedPayment } from "../../../../ledger/blocks/remined-payments.js";
import { toWithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { chance } from "../../../helpers/random.js";
import { TOKEN } from "../desk.js";
import { COLD, PLAIN, WALLETS } from "./house-of-wallets.js";
import { isGas, movesOn } from "./money-model.js";
import { ASSETS, CUSTOMERS, REASON, Scene } from "./scene.js";

/** See the head of the file. */
export abstract class Persons extends Scene {
  /** Somebody says whose coins in suspense are: its address's customer's. */
  protected async assign(): Promise<boolean> {
    const found = await this.desk.database.query<
      Record<"id" | "address" | "asset" | "units" | "height", string>
    >(
      `SELECT id, address, asset, amount_units::text AS units, height::text FROM deposit
        WHERE status = 'suspense' ORDER BY seq`,
    );
    const moves = movesOn(this.chain);
    const rows = found.filter(
      (row) =>
        !moves.some(
          (move) =>
            isGas(move, this.asked) &&
            move.to === row.address &&
            `${move.height} ${move.units}` === `${row.height} ${row.units}`,
        ),
    );
    if (rows.length === 0) return false;
    const { id, address, units, height } = this.random.pick(rows);
    const customer = present(this.owners.get(address as Address), "an owner");
    await this.typed("ledger", "assign-deposit", id, "--customer", customer, ...REASON);
    this.assigned.push({ customer, units: BigInt(units), height: Number(height) });
    return true;
  }

  protected async decide(): Promise<boolean> {
    const rows = await this.desk.database.query<{ id: string }>(
      `SELECT id FROM withdrawal WHERE status = 'pending_approval' ORDER BY position`,
    );
    if (rows.length === 0) return false;
    await this.decideOn(this.random.pick(rows).id, chance(this.random, 0.8));
    return true;
  }

  protected async decideOn(text: string, isApproved: boolean): Promise<void> {
    this.number += 1;
    const decision = isApproved ? "approve" : "reject";
    const outcome = await decideWithdrawal(
      this.desk.workerDatabase,
      { id: toWithdrawalId(text), keyId: `key-${this.number}`, decision, reason: "looked at it" },
      { policy: this.desk.files.policy, chainId: FAKE_CHAIN_ID },
    );
    this.say(`${decision} ${text}: ${outcome}`);
  }

  protected async changeWallet(): Promise<boolean> {
    const wallet = this.random.pick(WALLETS.slice(1));
    const [row] = await this.desk.database.query<{ status: string }>(
      `SELECT status FROM wallet WHERE address = $1`,
      [wallet],
    );
    const word =
      row?.status === "active" ? "drain" : this.random.pick(["activate", "retire", "drain"]);
    try {
      const isLeft =
        word === "retire" && chance(this.random, 0.5) && !(await this.#isPaying(wallet));
      const left = isLeft ? ["--leave-behind"] : [];
      await this.typed("wallets", word, wallet, ...left, ...REASON);
    } catch (error) {
      this.say(`refused: ${String(error)}`);
    }
    return true;
  }

  /** Coins may be left behind; payments that wait for their blocks would wait for ever. */
  async #isPaying(wallet: Address): Promise<boolean> {
    const open = await this.desk.database.query(
      `SELECT 1 FROM nonce_slot WHERE wallet = $1 AND outcome IS NULL LIMIT 1`,
      [wallet],
    );
    return open.length > 0;
  }

  protected async throwSwitch(): Promise<boolean> {
    if (this.isStopped) await this.typed("killswitch", "lift", ...REASON);
    else {
      const level = this.random.pick(["stop-new", "stop-sign", "stop-broadcast"]);
      await this.typed("killswitch", "set", level, ...REASON);
    }
    this.isStopped = !this.isStopped;
    return true;
  }

  protected async changePolicy(): Promise<boolean> {
    const { random } = this;
    const feeUnits = BigInt(random.integer(2) * 1_000);
    const approvals = chance(random, 0.3)
      ? [{ aboveUnits: 3n * TOKEN, needed: 1, signed: false }]
      : [];
    const treasury = chance(random, 0.6) ? this.treasury() : undefined;
    await this.house.setPolicy({ feeUnits, approvals }, treasury);
    const moves = treasury === undefined ? "no treasury" : "a treasury";
    this.say(`policy: fee ${feeUnits}, ${approvals.length} approvals, ${moves}`);
    return true;
  }

  protected treasury(): TreasuryRules {
    const isBanded = chance(this.random, 0.5);
    const band = { lowUnits: 0n, targetUnits: 250n * TOKEN, highUnits: 290n * TOKEN };
    const one = {
      sweepMinimumUnits: 1n,
      sweepFeeMaxAtoken: 10n ** 15n,
      coldAddress: isBanded ? COLD : undefined,
      band: isBanded ? band : undefined,
    };
    return { topUpMaxAtoken: 10n ** 15n, assets: new Map(ASSETS.map((asset) => [asset, one])) };
  }

  protected async adjust(): Promise<boolean> {
    const [customer, asset] = [this.random.pick(CUSTOMERS), this.random.pick(ASSETS)];
    this.number += 1;
    const units = BigInt(this.random.integer(3)) * TOKEN + BigInt(this.number);
    const isGift = chance(this.random, 0.6);
    const [from, to] = ["expense:write_off", `liability:customer:${customer}`];
    const [debit, credit] = isGift ? [from, to] : [to, from];
    const sides = ["--debit", debit, "--credit", credit, "--amount-atoken", `${units}`];
    try {
      const token = asset === PLAIN ? ["--asset", PLAIN] : [];
      const key = `a${this.number}`;
      const words = ["ledger", "adjust", "--key", key, ...sides, ...token, ...REASON];
      await this.typed(...words);
      const signed = isGift ? units : -units;
      this.give(customer, asset, signed);
    } catch (error) {
      this.say(`refused: ${String(error)}`);
    }
    return true;
  }

  /** What a person does when something is out of order, as the documents say. */
  protected async attend(isPatient = false): Promise<void> {
    const desk = this.desk;
    const incident = await openIncident(desk.database);
    const [older] = await desk.database.query(
      `SELECT 1 FROM signing_freeze WHERE frozen AND reason LIKE '%older than the ledger%'`,
    );
    if (incident !== undefined || (older !== undefined && !this.isStopped)) {
      if (!isPatient && chance(this.random, 0.2)) return;
      // It has to halt first.
      await desk.watch();
      const { code, text } = await this.typed("recover", "--apply");
      this.say(text);
      // What a recovery had found has no bytes here: it is mined again by whoever has them.
      const isLacking = text.includes("its bytes are not here: whoever");
      if (!this.isStopped) expect([code, text]).toEqual([isLacking ? 1 : 0, text]);
      this.chain.mine();
      await desk.watch();
    }
    const frozen = await desk.database.query<{ wallet: string; reason: string }>(
      `SELECT wallet, reason FROM signing_freeze WHERE frozen`,
    );
    for (const { wallet, reason } of frozen) this.say(`frozen ${wallet}: ${reason}`);
    if (frozen.length > 0 && (isPatient || chance(this.random, 0.5))) {
      const { remined } = await readOpenMatters(desk.database, 100);
      for (const one of remined) await this.acceptRemined(one);
      const { text } = await this.typed("withdrawals", "release");
      this.say(text);
    }
  }

  protected async acceptRemined({
    name,
    customerId,
    bearer,
    asset,
    takenUnits,
    withdrawalId,
  }: ReminedPayment): Promise<void> {
    const accept = (account: string) =>
      this.typed("ledger", "accept-remined", name, "--account", account, ...REASON);
    this.say(`${withdrawalId} of ${customerId}: the chain took ${takenUnits} ${asset} more`);
    if (customerId === undefined) throw new Error(`${name} has no request`);
    if (customerId.startsWith("causeway:")) {
      // The treasury's: coins of the exchange, in cold storage or not.
      expect(bearer).toBe("asset:cold_storage");
      await accept(bearer);
      return;
    }
    try {
      await accept(`liability:customer:${customerId}`);
    } catch (error) {
      this.say(`refused: ${String(error)}`);
      await accept("expense:write_off");
      this.writtenOff.set(name, { customer: customerId, asset, units: takenUnits });
    }
  }
}
