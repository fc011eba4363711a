/**
 * Finds transactions and blocks by their events. The most selective condition gives the heights
 * to look at (a hash, an account's own history, an amount, a type of event, else every height in
 * the range); each block's events are then checked against the whole query. A search is complete
 * or an error: it never leaves results out silently.
 */
import {
  blockEvents,
  type ExecutedTransaction,
  mayName,
  transactionEventSteps,
} from "../../../../chain/abci-event.js";
import { type Address, parseAnyAddress } from "../../../../chain/address.js";
import { type Hash32, type Height, parseHash32 } from "../../../../chain/hex.js";
import { sdkTransactionHash } from "../../../../chain/consensus/sdk-transaction.js";
import { BASE_DENOM } from "../../../../chain/units.js";
import type { BlockHeader } from "../../../../chain/block.js";
import { dataIndexOf } from "../../../../chain/cosmos/cosmos-result.js";
import type { ChainView } from "../../../view/chain-view.js";
import type { Steps } from "../../../../chain/steps/steps.js";
import { breathe, doBreathing } from "../../../../runtime/process/main-thread.js";
import { type AccountSequence, isTakenBy, untakenUntil } from "../account-sequence.js";
import {
  assertResults,
  committedOutline,
  executedAt,
  executedPages,
  latestHeight,
} from "../chain-reads.js";
import { upperHex } from "../json/encode.js";
import { refused } from "../errors.js";
import type { CometChain } from "../ports.js";
import type { Condition, EventQuery } from "./query.js";
import { type EventValues, eventValues, searchMatcher, typeOfTag } from "./query-match.js";

/** A mined transaction's place. */
export interface FoundTransaction {
  readonly height: Height;
  readonly index: number;
}

/** Bounds of one search (D16: over the limit is a clear error). */
export interface SearchLimits {
  /** Results; their order and count need all of them at once. */
  readonly results: number;
  /** Blocks that are read; some ten seconds of work, in slices. */
  readonly blocks: number;
  /** Transactions in the blocks that are read: twenty seconds where an account is named, else a minute. */
  readonly transactions: number;
}

/** Limits of the server. */
const DEFAULT_SEARCH_LIMITS: SearchLimits = {
  results: 100_000,
  blocks: 200_000,
  transactions: 1_000_000,
};

const AMOUNT = new RegExp(`^([0-9]{1,78})${BASE_DENOM}$`);
const HASH_TAGS = ["tx.hash", "ethereum_tx.ethereumTxHash", "ethereum_tx.txHash"];
const HEIGHT_TAGS = { transactions: "tx.height", blocks: "block.height" } as const;

/** Transactions whose events satisfy the query, in the order of the chain. Throws INTERNAL. */
export async function searchTransactions(
  chain: CometChain,
  asked: EventQuery,
  signal: AbortSignal,
  limits = DEFAULT_SEARCH_LIMITS,
): Promise<FoundTransaction[]> {
  const found: FoundTransaction[] = [];
  const query = withHashesAsShown(asked);
  const only = locatedBy(chain, query);
  if (only === "none") return found;
  const search = new Search(chain, limits, signal);
  const accounts = query.conditions.flatMap((condition) => accountOf(condition) ?? []);
  const isFound = searchMatcher(query);
  const look = async (height: Height, executed: ExecutedTransaction) => {
    if (accounts.some((account) => !mayName(executed, account))) return;
    const events = await doBreathing(transactionEventSteps(executed), signal);
    if (!isFound({ events, added: addedTo(height, executed) })) return;
    found.push({ height, index: executed.index });
    search.assertRoom(found.length);
  };
  for await (const { height } of search.blocks(query, "transactions", only)) {
    if (only !== undefined) {
      await look(height, await executedAt(chain, only, signal));
      continue;
    }
    for (const page of executedPages(chain.view, height)) {
      for (const executed of page ?? []) await look(height, executed);
      await breathe(signal);
    }
  }
  return found;
}

/** Heights whose block events satisfy the query, ascending. Throws INTERNAL. */
export async function searchBlocks(
  chain: CometChain,
  query: EventQuery,
  signal: AbortSignal,
  limits = DEFAULT_SEARCH_LIMITS,
): Promise<Height[]> {
  const found: Height[] = [];
  const isFound = searchMatcher(query);
  const search = new Search(chain, limits, signal);
  for await (const { height } of search.blocks(query, "blocks", undefined)) {
    const added = { "block.height": height.toString(), "tm.event": "NewBlock" };
    if (!isFound({ events: blockEvents(chain.view.blockChanges(height)), added })) continue;
    found.push(height);
    search.assertRoom(found.length);
  }
  return found;
}

/** Values that a transaction is announced by, in steps. */
export function* transactionValueSteps(
  height: Height,
  executed: ExecutedTransaction,
): Steps<EventValues> {
  return eventValues(yield* transactionEventSteps(executed), addedTo(height, executed));
}

/** What a transaction is found and announced by beside its events. */
function addedTo(height: Height, executed: ExecutedTransaction): Readonly<Record<string, string>> {
  return {
    "tm.event": "Tx",
    "tx.hash": upperHex(hashOfExecuted(executed)),
    "tx.height": height.toString(),
  };
}

/** SHA-256 of the transaction as `data.txs` has it. */
function hashOfExecuted({ tx, from }: ExecutedTransaction): Hash32 {
  return tx.type === "cosmos" ? tx.hash : sdkTransactionHash(tx, from);
}

/** One search with its budget. */
class Search {
  private blockCount = 0;
  private transactionCount = 0;

  constructor(
    private readonly chain: CometChain,
    private readonly limits: SearchLimits,
    private readonly signal: AbortSignal,
  ) {}

  /** Blocks that can hold a match, ascending. */
  async *blocks(
    query: EventQuery,
    kind: keyof typeof HEIGHT_TAGS,
    only: FoundTransaction | undefined,
  ): AsyncGenerator<BlockHeader> {
    const range = heightRange(query, HEIGHT_TAGS[kind], latestHeight(this.chain));
    const asked = Math.max(range.from, only?.height ?? 0);
    const to = Math.min(range.to, only?.height ?? range.to);
    const from = asked > to ? asked : await this.beginningFor(signedIn(query, kind), asked);
    // Whoever asks for a range that is not all here has to say so: nothing is left out silently.
    if (from <= to) assertResults(this.chain, from);
    for await (const height of this.heights(query, kind, from, to)) {
      await breathe(this.signal);
      const { header, transactionCount, cosmosPlaces } = committedOutline(this.chain, height);
      this.blockCount += 1;
      if (kind === "transactions") {
        this.transactionCount += transactionCount + cosmosPlaces.length;
      }
      const { blocks, transactions } = this.limits;
      if (this.blockCount > blocks || this.transactionCount > transactions) {
        throw refused(
          `the query looks at more than ${blocks} blocks or ${transactions} transactions: ` +
            `narrow it by ${HEIGHT_TAGS[kind]}`,
        );
      }
      yield header;
    }
  }

  assertRoom(count: number): void {
    if (count <= this.limits.results) return;
    throw refused(`the query has more than ${this.limits.results} results: narrow it by height`);
  }

  private heights(
    query: EventQuery,
    kind: keyof typeof HEIGHT_TAGS,
    from: Height,
    to: Height,
  ): AsyncIterable<Height> | Iterable<Height> {
    const { view, events } = this.chain;
    if (from >= to) return from === to ? [from] : [];
    const signed = signedIn(query, kind);
    if (signed !== undefined) return this.heightsOfSequence(signed, from, to);
    for (const condition of query.conditions) {
      const account = accountOf(condition);
      const isIndexed = account !== undefined && from >= view.oldest().state;
      if (isIndexed) return view.accountHeights(account, from, to);
    }
    for (const condition of query.conditions) {
      const amountAtoken = amountOf(condition);
      if (amountAtoken !== undefined) return events.heightsOfAmount(amountAtoken, from, to);
    }
    for (const { tag } of query.conditions) {
      // What the server adds by itself is no event of the block.
      const isOurs = tag === HEIGHT_TAGS[kind] || tag === "tm.event" || tag === "tx.hash";
      if (!isOurs) return events.heightsOfType(typeOfTag(tag), from, to);
    }
    return kind === "transactions" ? events.heightsOfType("tx", from, to) : everyHeight(from, to);
  }

  /**
   * Where to begin to look: at the height that is asked for, or above it, where that is not here any more,
   * whoever took a sequence is looked for, and the oldest states say that nobody had by then.
   */
  private async beginningFor(signed: AccountSequence | undefined, asked: Height): Promise<Height> {
    const { view } = this.chain;
    const { journal } = view.oldest();
    if (signed === undefined || asked >= journal) return asked;
    const untaken = await untakenUntil(view, signed, journal);
    return untaken === undefined ? asked : untaken + 1;
  }

  /**
   * The block that took a sequence: the first behind which the account's next one is higher. Blocks whose
   * state is pruned are looked through one by one.
   */
  private async *heightsOfSequence(
    signed: AccountSequence,
    from: Height,
    to: Height,
  ): AsyncGenerator<Height> {
    const { view, events } = this.chain;
    const isTaken = (height: Height) => isTakenBy(view, signed, height);
    let first = Math.max(from, view.oldest().state);
    if (first > from && (first > to || (await isTaken(first)))) {
      // Blocks may have been pruned while the account was read; what is read from here on is of one moment.
      assertResults(this.chain, from);
      yield* events.heightsOfType("tx", from, Math.min(first, to));
      return;
    }
    if (!(await isTaken(to))) return;
    for (let last = to; ; ) {
      if (first === last) {
        yield last;
        return;
      }
      await breathe(this.signal);
      const middle = Math.floor((first + last) / 2);
      if (await isTaken(middle)) last = middle;
      else first = middle + 1;
    }
  }
}

function* everyHeight(from: Height, to: Height): Generator<Height> {
  for (let height = from; height <= to; height++) yield height;
}

/** The digits of `tx.hash` may be of either case: CometBFT reads them as bytes. */
function withHashesAsShown(query: EventQuery): EventQuery {
  const conditions = query.conditions.map((condition) => {
    const { tag, argument } = condition;
    const hash = tag === "tx.hash" ? hashOf(argument?.text ?? "") : undefined;
    if (hash === undefined || argument === undefined) return condition;
    return { ...condition, argument: { ...argument, text: upperHex(hash) } };
  });
  return { ...query, conditions };
}

/** Whether a query can match one transaction alone, which is read without a search. */
export function namesHash({ conditions }: EventQuery): boolean {
  return conditions.some(isHash);
}

function isHash({ tag, operator }: Condition): boolean {
  return HASH_TAGS.includes(tag) && operator === "=";
}

/** The one transaction that the query can match, when it names a hash; "none" for an unknown. */
function locatedBy(chain: CometChain, query: EventQuery): FoundTransaction | "none" | undefined {
  const condition = query.conditions.find(isHash);
  if (condition === undefined) return undefined;
  const hash = hashOf(condition.argument?.text ?? "");
  if (hash === undefined) return "none";
  const { view } = chain;
  const isEvmHash = condition.tag === "ethereum_tx.ethereumTxHash";
  return (isEvmHash ? placeOfEvm(view, hash) : view.locateBySdkHash(hash)) ?? "none";
}

/** The EVM's own index counts its transactions only. */
function placeOfEvm(view: ChainView, hash: Hash32): FoundTransaction | undefined {
  const found = view.locate(hash);
  if (found === undefined) return undefined;
  const { height } = found;
  const places = view.outline(height)?.cosmosPlaces ?? [];
  return { height, index: dataIndexOf(found.index, places) };
}

function hashOf(text: string): Hash32 | undefined {
  const digits = text.replace(/^0x/, "");
  return /^[0-9a-fA-F]{64}$/.test(digits) ? parseHash32(`0x${digits}`) : undefined;
}

/** Heights that the query allows: those of its height conditions with a whole number. */
function heightRange(query: EventQuery, tag: string, latest: Height) {
  let [from, to] = [1, latest];
  for (const condition of query.conditions) {
    const { argument, operator } = condition;
    if (condition.tag !== tag || argument === undefined) continue;
    // A quoted number is compared as a text, which means the same for a height.
    const height = Number(argument.text);
    if (!/^[0-9]{1,15}$/.test(argument.text)) continue;
    if (operator === "=" || operator === ">=") from = Math.max(from, height);
    if (operator === "=" || operator === "<=") to = Math.min(to, height);
    if (operator === ">") from = Math.max(from, height + 1);
    if (operator === "<") to = Math.min(to, height - 1);
  }
  return { from, to };
}

/**
 * Events that name an account only where its balance or its nonce changed, or where the block puts it
 * into its history all the same (`BlockExecution.named`): whom a transaction is sent to, who called
 * a module. Others may name one that stayed as it was: the address that rewards are to go to.
 */
const CHANGING_TYPES: ReadonlySet<string> = new Set([
  "coin_spent",
  "coin_received",
  "transfer",
  "coinbase",
  "burn",
  "message",
  "tx",
  "ethereum_tx",
  "delegate",
]);

/** The account that a condition compares with, in either of its spellings. */
function accountOf({ tag, operator, argument }: Condition): Address | undefined {
  if (operator !== "=" || argument?.kind !== "string") return undefined;
  return CHANGING_TYPES.has(typeOfTag(tag)) ? accountIn(argument.text) : undefined;
}

function accountIn(text: string): Address | undefined {
  try {
    return parseAnyAddress(text);
  } catch {
    // A text that is no account's, as values of events may be.
    return undefined;
  }
}

const SEQUENCE_TAG = "tx.acc_seq";

/** The sequence that every transaction which a query can match has taken; blocks take none. */
function signedIn(
  { conditions }: EventQuery,
  kind: keyof typeof HEIGHT_TAGS,
): AccountSequence | undefined {
  for (const condition of kind === "transactions" ? conditions : []) {
    const signed = sequenceOf(condition);
    if (signed !== undefined) return signed;
  }
  return undefined;
}

/** The sequence that a condition compares with: `'addr1.../5'`. */
function sequenceOf({ tag, operator, argument }: Condition): AccountSequence | undefined {
  if (tag !== SEQUENCE_TAG || operator !== "=" || argument?.kind !== "string") return undefined;
  const [, text = "", digits = ""] = /^([^/]+)\/([0-9]{1,20})$/.exec(argument.text) ?? [];
  const account = accountIn(text);
  return account === undefined ? undefined : { account, sequence: BigInt(digits) };
}

/** The amount that a condition compares with: `'5atoken'` or 5, greater than zero. */
function amountOf({ tag, operator, argument }: Condition): bigint | undefined {
  if (operator !== "=" || argument === undefined || tag.startsWith("ethereum_tx."))
    return undefined;
  const digits = AMOUNT.exec(argument.text)?.[1];
  const amountAtoken = argument.kind === "string" && digits !== undefined ? BigInt(digits) : 0n;
  return amountAtoken > 0n && `${amountAtoken}` === digits ? amountAtoken : undefined;
}
