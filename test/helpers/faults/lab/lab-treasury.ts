/**
 * The treasury of an exchange of the lab under a test's hand: what its policy allows, a cold wallet,
 * and the judgement over what it moved, from the chain first and from the books second.
 */
import fs from "node:fs";
import path from "node:path";
import { expect } from "@jest/globals";
import { Transaction, Wallet } from "ethers";
import { parseAddress } from "../../../../chain/address.js";
import {
  BREAK,
  COLD_STORAGE,
  customerAccount,
  IN_TRANSIT,
  NATIVE_ASSET,
  SUSPENSE,
  TREASURY,
} from "../../../../ledger/journal/accounts.js";
import {
  PERMISSIVE_POLICY,
  policyFileText,
  type TreasuryAsset,
  type TreasuryBand,
} from "../../../../ledger/policy/policy.js";
import { until } from "../../until.js";
import type { ChainTransaction } from "../chain.js";
import { balanceCall, movementOf } from "../movements.js";
import { LAB_TOKEN, type Movement } from "../promises.js";
import { HOT_UNITS, type LabExchange } from "./lab-exchange.js";

const CHAIN_ID = 6940;
const TRANSFER_GAS = 21_000n;
const GAS_PRICE_ATOKEN = 100_000_000n;

/** Less than any payment of the customers, and more than what gas leaves behind. */
const MINIMUM_ATOKEN = 10n ** 14n;

const MOST_ATOKEN = 10n ** 15n;

const ONE = 10n ** 18n;

/** More than those of all rounds of an exchange. */
const MAX_SWEEPS = "1000";

/** The hot wallet begins with 1,000 coins: above it, and cold storage gets some. */
export const BELOW_FUNDS: TreasuryBand = {
  lowUnits: 0n,
  targetUnits: 900n * ONE,
  highUnits: 950n * ONE,
};

/** One exchange's. */
export class LabTreasury {
  readonly #cold: Wallet;

  constructor(private readonly lab: LabExchange) {
    this.#cold = new Wallet(`0x${Buffer.from(lab.random.bytes(32)).toString("hex")}`);
  }

  /** Lets it sweep coins and the token; with a band also keep the hot wallet within it. */
  allow(band?: TreasuryBand): void {
    const common = { sweepFeeMaxAtoken: MOST_ATOKEN, coldAddress: undefined, band: undefined };
    const coldAddress = parseAddress(this.#cold.address.toLowerCase());
    const coins = { ...common, sweepMinimumUnits: MINIMUM_ATOKEN, coldAddress, band };
    const tokens = { ...common, sweepMinimumUnits: 1n };
    const assets = new Map<string, TreasuryAsset>([
      [NATIVE_ASSET, coins],
      [LAB_TOKEN, tokens],
    ]);
    const treasury = { topUpMaxAtoken: MOST_ATOKEN, assets };
    const file = path.join(this.lab.home, "config", "policy.json");
    // In one step: a reader finds the former or this one.
    fs.writeFileSync(`${file}.new`, policyFileText({ ...PERMISSIVE_POLICY, treasury }), {
      mode: 0o600,
    });
    fs.renameSync(`${file}.new`, file);
  }

  /** The minute is over for which a treasury that was killed keeps others from its work. */
  async leaseEnds(): Promise<void> {
    await this.lab.query(
      `UPDATE task_lease SET expires_at = clock_timestamp() WHERE task = 'treasury'`,
    );
  }

  /** A person sends what the treasury asks for; resolves when it is booked. */
  async refill(): Promise<void> {
    const { customers } = this.lab;
    let wantedAtoken = 0n;
    const isAsked = async (): Promise<boolean> => {
      const [row] = await this.lab.query<{ amount: string }>(
        `SELECT amount_units::text AS amount FROM refill_request WHERE state = 'open'`,
      );
      wantedAtoken = BigInt(row?.amount ?? "0");
      return row !== undefined;
    };
    await until(isAsked, { timeoutMs: 60_000, what: "a refill is asked for" });
    const transaction = Transaction.from({
      type: 0,
      chainId: CHAIN_ID,
      nonce: 0,
      to: customers.hotWallet,
      value: wantedAtoken,
      gasPrice: GAS_PRICE_ATOKEN,
      gasLimit: TRANSFER_GAS,
    });
    transaction.signature = this.#cold.signingKey.sign(transaction.unsignedHash);
    await customers.chain.call("eth_sendRawTransaction", transaction.serialized);
    // The treasury may see the coins before the watcher books them, and take its request back.
    const isBooked = async (): Promise<boolean> => {
      const rows = await this.lab.query(
        `SELECT 1 FROM journal_entry e JOIN posting p ON p.journal_id = e.id
          WHERE e.kind = 'treasury.return' AND p.credit = $1 AND p.amount_units = $2::numeric
            AND NOT EXISTS (SELECT 1 FROM refill_request
                             WHERE state = 'open' AND amount_units = $2::numeric)`,
        [COLD_STORAGE, wantedAtoken.toString()],
      );
      return rows.length === 1;
    };
    await until(isBooked, {
      timeoutMs: 60_000,
      what: "the refill is booked, and asked for no more",
    });
  }

  /** Nothing is left behind or under way, and nothing was moved twice. */
  async prove(): Promise<void> {
    await this.lab.customers.settled();
    await this.#sendCoins();
    await until(async () => (await this.#left()).length === 0, {
      timeoutMs: 240_000,
      what: "all is swept",
    }).catch(async (error: unknown) => {
      throw new Error(`${String(error)}: ${JSON.stringify(await this.#left())}`);
    });
    await this.#assertMoves();
    await this.#assertSweeps();
    await this.#assertAccounts();
  }

  /**
   * Tokens lie behind a nonce that a chain has lost the coins of, or have lost their gas: a person sends some
   * (docs/treasury.md).
   */
  async #sendCoins(): Promise<void> {
    const { customers } = this.lab;
    const { chain } = customers;
    const rows = await this.lab.query<{ address: string; next: string }>(
      `SELECT address, (max(nonce) + 1)::text AS next FROM sweep
        WHERE nonce IS NOT NULL AND EXISTS (SELECT 1 FROM chain_rewind) GROUP BY address`,
    );
    const waiting: string[] = [];
    for (const { address, next } of rows.filter((row) => customers.addresses.has(row.address))) {
      const [balance, used] = await chain.results([
        ["eth_getBalance", [address, "latest"]],
        ["eth_getTransactionCount", [address, "latest"]],
      ]);
      const isPoor =
        BigInt(String(balance)) < MINIMUM_ATOKEN && BigInt(String(used)) < BigInt(next);
      if (isPoor && (await this.#unitsOf(address)) > 0n) waiting.push(address);
    }
    await customers.payTo(waiting);
    await customers.settled();
  }

  /**
   * Addresses with more than what is left where it is, and what has not ended. Sweeps of coins that a chain
   * has lost, and that nobody sent again, wait for others (docs/treasury.md).
   */
  async #left(): Promise<string[]> {
    const { chain, addresses, tokenAddresses } = this.lab.customers;
    const all = [...addresses.keys(), ...tokenAddresses.keys()];
    const balances = await chain.results(all.map((to) => ["eth_getBalance", [to, "latest"]]));
    const units = await Promise.all(all.map((to) => this.#unitsOf(to)));
    const full = [
      ...all.filter((_, index) => BigInt(String(balances[index])) >= MINIMUM_ATOKEN),
      ...all.filter((_, index) => units[index] !== 0n),
    ];
    // Behind the balances: what has left an address has used its nonce by then.
    const used = await chain.results(all.map((to) => ["eth_getTransactionCount", [to, "latest"]]));
    const empty = all.flatMap((address, index) =>
      full.includes(address) ? [] : [{ address, nonce: BigInt(String(used[index])) }],
    );
    const open = await this.lab.query<{ what: string }>(
      `SELECT concat_ws(' ', 'sweep', id, state, amount_units, asset, 'of', address, 'nonce', nonce,
                        reason) AS what
         FROM sweep s
        WHERE state NOT IN ('settled', 'void', 'foreign')
          AND NOT (state IN ('ready', 'signed', 'sent') AND EXISTS (
                SELECT 1 FROM unnest($1::text[], $2::numeric[]) AS empty (address, nonce)
                 WHERE empty.address = s.address AND empty.nonce <= s.nonce))
          AND NOT (state = 'failed' AND address = ANY ($3::text[]))
       UNION ALL SELECT 'move ' || id FROM treasury_move WHERE state = 'open'`,
      [
        empty.map(({ address }) => address),
        empty.map(({ nonce }) => nonce.toString()),
        this.#unpaid(),
      ],
    );
    return [...full, ...open.map(({ what }) => what)];
  }

  /** Addresses whose only payment a chain has lost, and nobody sent again: its sweep moves nothing. */
  #unpaid(): readonly string[] {
    const { payments, tokenAddresses } = this.lab.customers;
    const paid = new Set(payments.map(({ to }) => to));
    return [...tokenAddresses.keys()].filter((address) => !paid.has(address));
  }

  async #unitsOf(address: string): Promise<bigint> {
    const { chain, token } = this.lab.customers;
    const [units] = await chain.results([balanceCall({ asset: LAB_TOKEN, address }, token)]);
    return BigInt(String(units));
  }

  /** Every transaction of a deposit address went to the hot wallet and is one sweep of the books. */
  async #assertSweeps(): Promise<void> {
    const { hotWallet, payments, token } = this.lab.customers;
    const isOwn = (address: string) => this.lab.customers.ownerOf(address) !== undefined;
    const transactions = await this.#transactions();
    const sent = transactions.filter(({ from }) => isOwn(from));
    const receivers = sent.map((transaction) => movementOf(transaction, token).to);
    expect(receivers.filter((to) => to !== hotWallet)).toEqual([]);
    const booked = [...(await this.#minedHashes()), ...this.lab.lostSweeps];
    expect(sent.map(({ hash }) => hash).toSorted()).toEqual(booked.toSorted());
    const inToken = (movements: readonly Movement[]) =>
      movements
        .filter(({ asset }) => asset === LAB_TOKEN)
        .reduce((sum, { amountUnits }) => sum + amountUnits, 0n);
    const paidOut = transactions
      .filter(({ from }) => from === hotWallet)
      .map((transaction) => movementOf(transaction, token))
      .filter(({ to }) => !isOwn(to));
    const paidIn = inToken(payments);
    expect(await this.#unitsOf(hotWallet)).toBe(HOT_UNITS + paidIn - inToken(paidOut));
    expect(paidIn).toBeGreaterThan(0n);
  }

  /** What the list of sweeps says is in a block: where they had ended first may be in none any more. */
  async #minedHashes(): Promise<readonly string[]> {
    const words = ["sweeps", "list", "--json", "--limit", MAX_SWEEPS];
    const { stdout, stderr } = await this.lab.command(...words);
    if (stdout === "") throw new Error(`no sweeps are listed: ${stderr}`);
    const { sweeps } = JSON.parse(stdout) as { sweeps: readonly { minedHash?: string }[] };
    return sweeps.flatMap(({ minedHash }) => minedHash ?? []);
  }

  /** Gas came at most once for each sweep of tokens; cold storage has what left for it. */
  async #assertMoves(): Promise<void> {
    const { customers, options } = this.lab;
    const sent = await this.#transactions();
    const { hotWallet, tokenAddresses } = customers;
    // Gas may be left where the tokens that it was for are lost.
    const unpaid = new Set(this.#unpaid());
    for (const address of [...tokenAddresses.keys()].filter((each) => !unpaid.has(each))) {
      const gifts = sent.filter(({ from, to }) => from === hotWallet && to === address);
      const moved = sent.filter(({ from, to }) => from === address && to === options.chain.token);
      expect({ address, gifts: gifts.length }).toEqual({ address, gifts: moved.length });
    }
    const [cold] = await this.lab.query<{ held: string }>(
      `SELECT (coalesce(sum(amount_units) FILTER (WHERE debit = $1), 0)
               - coalesce(sum(amount_units) FILTER (WHERE credit = $1), 0))::text AS held
         FROM posting`,
      [COLD_STORAGE],
    );
    const address = this.#cold.address.toLowerCase();
    const balance = await customers.chain.call("eth_getBalance", address, "latest");
    const sentBack = sent.filter(({ from }) => from === address);
    // The fee of what a person sends is no business of the ledger's.
    const feesAtoken = BigInt(sentBack.length) * TRANSFER_GAS * GAS_PRICE_ATOKEN;
    expect(BigInt(cold?.held ?? "0")).toBe(BigInt(String(balance)) + feesAtoken);
  }

  /** Nothing is on its way, and the treasury owes and is owed nothing. */
  async #assertAccounts(): Promise<void> {
    const rows = await this.lab.query(
      `SELECT asset, account, sum(units)::text AS units FROM (
         SELECT asset, debit AS account, amount_units AS units FROM posting
         UNION ALL SELECT asset, credit, -amount_units FROM posting) AS sides
        WHERE account = ANY ($1::text[])
        GROUP BY asset, account HAVING sum(units) <> 0`,
      [[IN_TRANSIT, customerAccount(TREASURY), BREAK, SUSPENSE]],
    );
    expect(rows).toEqual([]);
    expect(await this.lab.query(`SELECT 1 FROM foreign_outflow`)).toEqual([]);
  }

  async #transactions(): Promise<ChainTransaction[]> {
    const { chain } = this.lab.customers;
    const blocks = await chain.blocks(this.lab.startHeight, await chain.height());
    return blocks.flatMap(({ transactions }) => transactions);
  }
}
