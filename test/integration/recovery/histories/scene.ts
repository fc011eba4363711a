/** What everybody in a history knows: the house, what has happened, and who was given what. */
import type { Address } from "../../../../chain/address.js";
import { NATIVE_ASSET } from "../../../../ledger/books/accounts.js";
import type { Random } from "../../../helpers/random.js";
import { TOKEN } from "../desk.js";
import { type HouseOfWallets, PLAIN } from "./house-of-wallets.js";
import type { Asked } from "./money-model.js";

/** Who has addresses. */
export const CUSTOMERS = ["alice", "bob", "carol"];

/** What is deposited and withdrawn. */
export const ASSETS = [NATIVE_ASSET, PLAIN];

/** Of every command that wants one. */
export const REASON = ["--reason", "looked at the chain"];

/** See the head of the file. */
export abstract class Scene {
  /** Told when a history fails. */
  readonly said: string[] = [];
  protected readonly owners = new Map<Address, string>();
  protected readonly asked: Asked[] = [];
  /** What operators gave beside the chain, by customer and asset. */
  protected readonly given = new Map<string, bigint>();
  /** Coins that blocks brought: no other block can bring them again. */
  protected assigned: {
    readonly customer: string;
    readonly units: bigint;
    readonly height: number;
  }[] = [];
  /** Those of them that are lost, by customer. */
  protected readonly gone = new Map<string, bigint>();
  protected number = 0;
  protected isStopped = false;

  constructor(
    protected readonly house: HouseOfWallets,
    protected readonly random: Random,
    /** Kinds of happenings that are left out, for shrinking. */
    protected readonly without: ReadonlySet<string>,
  ) {}

  protected get desk() {
    return this.house.desk;
  }

  protected get chain() {
    return this.house.desk.chain;
  }

  protected say(text: string): void {
    this.said.push(`${this.chain.head}: ${text}`);
  }

  protected async typed(...words: readonly string[]): Promise<{ code: number; text: string }> {
    this.say(`causeway ${words.join(" ")}`);
    return this.desk.causeway(...words);
  }

  protected amount(): bigint {
    this.number += 1;
    return BigInt(1 + this.random.integer(9)) * TOKEN + BigInt(this.number);
  }

  protected async available(customer: string, asset: string): Promise<bigint> {
    const [row] = await this.desk.database.query<{ units: string }>(
      `SELECT available_units::text AS units FROM customer_balance
        WHERE customer_id = $1 AND asset = $2`,
      [customer, asset],
    );
    return BigInt(row?.units ?? "0");
  }

  protected give(customer: string, asset: string, units: bigint): void {
    const key = `${customer} ${asset}`;
    this.given.set(key, (this.given.get(key) ?? 0n) + units);
  }
}
