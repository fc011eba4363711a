/** What everybody in a history knows: the house, what has happened, and who was given what. */
import type { Address } from "../../../../chain/address.js";
import { NATIVE_ASSET } from "../../../../ledger/journal/accounts.js";
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

/** What operators gave and decided beside the chain: a copy of the ledger holds it as it was then. */
export interface Books {
  readonly given: ReadonlyMap<string, bigint>;
  readonly assigned: readonly Assigned[];
  readonly writtenOff: ReadonlyMap<string, WrittenOff>;
}

interface Assigned {
  readonly customer: string;
  readonly units: bigint;
  readonly height: number;
}

interface WrittenOff {
  readonly customer: string;
  readonly asset: string;
  readonly units: bigint;
}

/** See the head of the file. */
export abstract class Scene {
  /** Told when a history fails. */
  readonly said: string[] = [];
  protected readonly owners = new Map<Address, string>();
  protected readonly asked: Asked[] = [];
  /** What operators gave beside the chain, by customer and asset. */
  protected given = new Map<string, bigint>();
  /** Coins that blocks brought: no other block can bring them again. */
  protected assigned: Assigned[] = [];
  /** What the exchange bears, because its customer had not so much any more; by the matter's name. */
  protected writtenOff = new Map<string, WrittenOff>();
  /** Keys of requests whose clients were told that nothing is paid: nobody asks for them again. */
  protected readonly told = new Set<string>();
  /** No block at or below this height is lost. */
  protected floor = 3;
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

  protected booksNow(): Books {
    const { given, assigned, writtenOff } = this;
    return {
      given: new Map(given),
      assigned: [...assigned],
      writtenOff: new Map(writtenOff),
    };
  }

  protected takeBooks({ given, assigned, writtenOff }: Books): void {
    this.given = new Map(given);
    this.assigned = [...assigned];
    this.writtenOff = new Map(writtenOff);
  }

  protected give(customer: string, asset: string, units: bigint): void {
    const key = `${customer} ${asset}`;
    this.given.set(key, (this.given.get(key) ?? 0n) + units);
  }
}
