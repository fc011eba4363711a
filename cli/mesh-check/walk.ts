/**
 * mesh-check itself: walks the chain from a block to the tip, holds every block against the
 * asserter's rules, adds up all operations, and compares every balance with what is answered.
 *
 * Bounded memory: at most `PREFETCHED_BLOCKS` blocks that wait and `JUDGED_BLOCKS` whose answers are
 * under way, one entry per balance (balance-book.ts) and the faults (faults.ts).
 */
import { toChecksumAddress } from "../../chain/address.js";
import { TOKEN_DECIMALS, TOKEN_SYMBOL } from "../../chain/units.js";
import type { AnswerObject } from "../../rpc-client/answer-fields.js";
import { DataApiError, NodeFault } from "../../rpc-client/errors.js";
import { BalanceBook, type BalanceCheck } from "./balance-book.js";
import { type BlockDelta, checkBlock, type CheckedBlock } from "./block-check.js";
import { FaultList, type MeshFault } from "./faults.js";
import { parseAccountIdentity, parseCurrencyIdentity } from "./identity.js";
import type { MeshClient } from "./mesh-client.js";
import type { NodeWitness, WitnessBlock } from "./node-witness.js";
import { BalanceReader, observe } from "./observe.js";
import type { Allowed } from "./options-check.js";
import { type QuarantinedToken, TokenStatuses } from "./token-status.js";
import { judge } from "./verdict.js";
import { checkAgainstWitness } from "./witness-check.js";

/** What is walked. */
export interface WalkOptions {
  readonly client: MeshClient;
  /** Undefined trusts the server's own balances to be the node's. */
  readonly witness: NodeWitness | undefined;
  readonly allowed: Allowed;
  readonly faults: FaultList;
  readonly from: number;
  readonly to: number;
  /** Uniform random number in [0, 1): which idle balances are looked at. */
  readonly random: () => number;
  readonly onProgress: (progress: WalkProgress) => void;
  readonly signal: AbortSignal;
}

/** How far the walk is. */
export interface WalkProgress {
  readonly index: number;
  readonly to: number;
  readonly balanceCount: number;
  readonly faultCount: number;
}

/** What was looked at, and what was found. */
export interface WalkReport {
  readonly from: number;
  /** The block that was walked last; below the wanted one when the walk could not go on. */
  readonly to: number;
  readonly transactionCount: number;
  readonly operationCount: number;
  /** "TYPE STATUS" -> number of operations. */
  readonly operationKinds: ReadonlyMap<string, number>;
  readonly accountCount: number;
  readonly currencies: readonly string[];
  /** Balances known at the end. */
  readonly balanceCount: number;
  /** Balances that were asked for. */
  readonly answerCount: number;
  /** Blocks whose metadata told minted and burned. */
  readonly supplyBlockCount: number;
  /** Tokens that the server says it does not believe. */
  readonly quarantined: readonly QuarantinedToken[];
  readonly faults: readonly MeshFault[];
}

/** Blocks fetched ahead of the one that is added up. */
const PREFETCHED_BLOCKS = 32;

/** Blocks whose balances are asked for at the same time. */
const JUDGED_BLOCKS = 16;

/** Balances per block that are looked at although no operation names them. */
const IDLE_CHECKS_PER_BLOCK = 2;

/** Balances asked for together at the tip. */
const TIP_CHUNK = 256;

/** The native currency, for accounts that only the node named. */
const NATIVE = parseCurrencyIdentity({ symbol: TOKEN_SYMBOL, decimals: TOKEN_DECIMALS });

/** Walks and judges. Throws NodeFault, RpcError, DataApiError when it cannot go on. */
export async function walk(options: WalkOptions): Promise<WalkReport> {
  return new Walk(options).run();
}

interface FetchedBlock {
  readonly index: number;
  readonly raw: AnswerObject;
  readonly witness: WitnessBlock | undefined;
}

class Walk {
  readonly #book: BalanceBook;
  readonly #reader: BalanceReader;
  readonly #tokens: TokenStatuses;
  readonly #kinds = new Map<string, number>();
  readonly #judging: (() => Promise<void>)[] = [];
  #last: CheckedBlock | undefined;
  #transactionCount = 0;
  #operationCount = 0;
  #supplyBlockCount = 0;

  constructor(private readonly options: WalkOptions) {
    this.#book = new BalanceBook(options.from);
    this.#reader = new BalanceReader(options.client, options.faults);
    this.#tokens = new TokenStatuses(options.client, options.allowed.callMethods);
  }

  async run(): Promise<WalkReport> {
    const { faults, from, to } = this.options;
    for await (const fetched of this.blocks()) {
      const block = this.accept(fetched);
      if (block === undefined) break;
      await Promise.all(block.leftOut.map((contract) => this.#tokens.ask(contract)));
      await this.openBalances(block, fetched.witness);
      await this.enqueue(block, this.apply(block));
      this.options.onProgress({
        index: block.id.index,
        to,
        balanceCount: this.#book.size,
        faultCount: faults.count,
      });
      if (faults.isFull) break;
    }
    while (this.#judging.length > 0) await this.#judging.shift()?.();
    if (this.#last !== undefined && !faults.isFull) await this.checkTip(this.#last);
    return this.report(from);
  }

  /** Blocks in order, fetched ahead; ends before one that the server refuses, which is a fault. */
  private async *blocks(): AsyncGenerator<FetchedBlock> {
    const { from, to } = this.options;
    const ahead: Promise<FetchedBlock | undefined>[] = [];
    for (let index = from; index <= to || ahead.length > 0; ) {
      for (; index <= to && ahead.length < PREFETCHED_BLOCKS; index += 1) {
        const fetching = this.fetch(index);
        // Awaited in its turn; until then its failure is not unhandled.
        fetching.catch(() => undefined);
        ahead.push(fetching);
      }
      const next = await ahead.shift();
      this.options.signal.throwIfAborted();
      if (next === undefined) return;
      yield next;
    }
  }

  private async fetch(index: number): Promise<FetchedBlock | undefined> {
    const { client, witness, faults } = this.options;
    try {
      const [raw, seen] = await Promise.all([client.block(index), witness?.block(index)]);
      return { index, raw, witness: await this.withCosmos(index, raw, seen) };
    } catch (error) {
      const isRefused = error instanceof DataApiError && !error.retriable;
      if (!isRefused && !isBadAnswer(error)) throw error;
      faults.add({ code: "BLOCK_UNREADABLE", blockIndex: index, message: error.message });
      return undefined;
    }
  }

  /**
   * The node's block shows EVM transactions alone: of what the server has behind them, the node is
   * asked by hash. The last one may be the block-level one, whose id is the block's.
   */
  private async withCosmos(
    index: number,
    raw: unknown,
    seen: WitnessBlock | undefined,
  ): Promise<WitnessBlock | undefined> {
    if (seen === undefined || this.options.witness === undefined) return seen;
    const more = hashesOf(raw).slice(seen.transactionHashes.length);
    const asked = [...new Set(more)].filter((hash) => hash !== seen.hash);
    const found: string[] = [];
    for (let start = 0; start < asked.length; start += ASKED_AT_ONCE) {
      const part = asked.slice(start, start + ASKED_AT_ONCE);
      const included = await this.options.witness.included(part, index);
      for (const hash of included) found.push(hash);
      // Behind one that the node does not have there may be any number of them.
      if (included.length < part.length) break;
    }
    if (found.length === 0) return seen;
    return { ...seen, transactionHashes: [...seen.transactionHashes, ...found] };
  }

  /** The block by the rules and as child of the last one; undefined when it cannot be read. */
  private accept({ index, raw, witness }: FetchedBlock): CheckedBlock | undefined {
    const { allowed, faults } = this.options;
    try {
      const block = checkBlock(raw, { index, allowed, faults });
      this.checkLink(block);
      if (witness !== undefined) checkAgainstWitness(block, witness, faults);
      this.#last = block;
      this.#transactionCount += block.transactionHashes.length;
      this.#operationCount += block.operationCount;
      this.#supplyBlockCount += block.hasSupply ? 1 : 0;
      for (const [kind, count] of block.operationKinds) {
        this.#kinds.set(kind, (this.#kinds.get(kind) ?? 0) + count);
      }
      return block;
    } catch (error) {
      if (!isBadAnswer(error)) throw error;
      faults.add({ code: "BLOCK_MALFORMED", blockIndex: index, message: error.message });
      return undefined;
    }
  }

  private checkLink({ id, parent, timestampMs }: CheckedBlock): void {
    const last = this.#last;
    if (last === undefined) return;
    const { faults } = this.options;
    if (parent.hash !== last.id.hash) {
      const message = `its parent is ${parent.hash}, block ${last.id.index} is ${last.id.hash}`;
      faults.add({ code: "PARENT_BLOCK", blockIndex: id.index, message });
    }
    if (timestampMs < last.timestampMs) {
      const message = `timestamp ${timestampMs} is before its parent's, ${last.timestampMs}`;
      faults.add({ code: "TIMESTAMP", blockIndex: id.index, message });
    }
  }

  /**
   * Opens balances that were never seen. From genesis they start at nothing; later starts ask for
   * the balance before the first block.
   */
  private async openBalances(
    block: CheckedBlock,
    witness: WitnessBlock | undefined,
  ): Promise<void> {
    // The node writes lower case; the server's own spelling is EIP-55, as everywhere in this kit.
    const named = (witness?.addresses ?? []).map((address) => ({
      account: parseAccountIdentity({ address: toChecksumAddress(address) }),
      currency: NATIVE,
    }));
    const fresh = [...block.deltas.values(), ...named].filter(
      ({ account, currency }) => !this.#book.has(account, currency),
    );
    const opened = fresh.map(async (one) => ({ ...one, sum: await this.startingSum(one) }));
    for (const { account, currency, sum } of await Promise.all(opened)) {
      if (!this.#book.has(account, currency)) this.#book.open(account, currency, sum);
    }
  }

  private async startingSum(one: Pick<BlockDelta, "account" | "currency">): Promise<bigint> {
    const index = this.options.from - 1;
    if (index < 0) return 0n;
    const probe = new BalanceBook(index).open(one.account, one.currency, 0n);
    const sums = await this.#reader.read([probe], { index }, index);
    // A refusal is a fault of the report by now; from zero on the walk finds what else is wrong.
    return sums.get(probe) ?? 0n;
  }

  private apply(block: CheckedBlock): BalanceCheck[] {
    const { index } = block.id;
    const checks = [...block.deltas.values()].map((delta) => this.#book.apply(index, delta));
    for (const { entry, after } of checks) {
      if (after >= 0n) continue;
      this.options.faults.add({
        code: "NEGATIVE_BALANCE",
        blockIndex: index,
        account: entry.account.name,
        currency: entry.currency.name,
        message: `the operations add up to ${after}`,
      });
    }
    for (let n = 0; n < IDLE_CHECKS_PER_BLOCK; n += 1) {
      const entry = this.#book.at(Math.floor(this.options.random() * this.#book.size));
      const check = entry === undefined ? undefined : this.#book.idle(entry, index);
      if (check !== undefined) checks.push(check);
    }
    return checks;
  }

  /** Asks at once, judges in order; waits while too many blocks are under way. */
  private async enqueue(block: CheckedBlock, checks: readonly BalanceCheck[]): Promise<void> {
    const asked = Promise.all([
      observe(checks, block.id, this.#reader),
      this.options.witness?.balances(checks),
    ]);
    asked.catch(() => undefined);
    this.#judging.push(async () => {
      const [observations, ofNode] = await asked;
      const known = new Map(checks.map((check, position) => [check, ofNode?.[position]]));
      for (const observation of observations) {
        const { entry, index } = observation.check;
        const isFrozen = await this.#tokens.isQuarantined(entry.currency, index);
        const witnessed = isFrozen ? undefined : known.get(observation.check);
        await judge(observation, witnessed, { faults: this.options.faults, reader: this.#reader });
      }
    });
    while (this.#judging.length > JUDGED_BLOCKS) await this.#judging.shift()?.();
  }

  /** Every balance that the last block left alone, at the last block. */
  private async checkTip(last: CheckedBlock): Promise<void> {
    for (let start = 0; start < this.#book.size; start += TIP_CHUNK) {
      const checks: BalanceCheck[] = [];
      for (let at = start; at < Math.min(start + TIP_CHUNK, this.#book.size); at += 1) {
        const entry = this.#book.at(at);
        const check = entry === undefined ? undefined : this.#book.idle(entry, last.id.index);
        if (check !== undefined) checks.push(check);
      }
      await this.enqueue(last, checks);
    }
    while (this.#judging.length > 0) await this.#judging.shift()?.();
  }

  private report(from: number): WalkReport {
    const accounts = new Set<string>();
    const currencies = new Set<string>();
    for (let at = 0; at < this.#book.size; at += 1) {
      const entry = this.#book.at(at);
      if (entry === undefined) continue;
      accounts.add(entry.account.key);
      currencies.add(entry.currency.name);
    }
    return {
      from,
      to: this.#last?.id.index ?? from,
      transactionCount: this.#transactionCount,
      operationCount: this.#operationCount,
      operationKinds: this.#kinds,
      accountCount: accounts.size,
      currencies: [...currencies].toSorted(),
      balanceCount: this.#book.size,
      answerCount: this.#reader.count,
      supplyBlockCount: this.#supplyBlockCount,
      quarantined: this.#tokens.found(),
      faults: this.options.faults.sorted(),
    };
  }
}

function isBadAnswer(error: unknown): error is NodeFault {
  return error instanceof NodeFault && error.code === "BAD_ANSWER";
}

/** Transactions of one block that the node is asked for by hash in one go. */
const ASKED_AT_ONCE = 1_000;

/** Hashes of an answer that nobody has checked yet, as far as they can be read. */
function hashesOf(raw: unknown): string[] {
  const field = (value: unknown, name: string): unknown =>
    typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
  const block = field(raw, "block") ?? raw;
  const transactions = field(block, "transactions");
  if (!Array.isArray(transactions)) return [];
  return transactions.map((one: unknown) => {
    const hash = field(field(one, "transaction_identifier"), "hash");
    return typeof hash === "string" ? hash : "";
  });
}
