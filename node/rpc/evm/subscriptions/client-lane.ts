/**
 * One client's subscriptions. What they are due is sent in slices, in turn with what other clients
 * are due: however much a block or a burst of transactions means to one client, the thread that
 * decides blocks goes on, and so does everybody else.
 */
import type { Hash32, Height, Hex } from "../../../../chain/hex.js";
import { type BlockOutline, isEvm } from "../../../../chain/block.js";
import { errorCode } from "../../../../chain/errors.js";
import type { Logger } from "../../../../runtime/process/logger.js";
import { breathe } from "../../../../runtime/process/main-thread.js";
import { joinSignals } from "../../../../runtime/process/task.js";
import { OWN_WORK, setOwner, type WorkOwner } from "../../../../runtime/process/work-owner.js";
import type { ChainView } from "../../../view/chain-view.js";
import type { PendingTransaction } from "../../../view/event-bus.js";
import {
  headerJson,
  type MinedReceipt,
  pendingTransactionJson,
  placeOf,
  receiptTexts,
} from "../../../view/evm-json.js";
import type { Asker } from "../json/askers.js";
import type { BlockJson } from "../json/block-json.js";
import { historyPruned, INTERNAL_ERROR, toRpcError } from "../errors.js";
import { LARGE_BYTES, type LargeLane } from "../large-lane.js";
import { type LogCriteria, matches, mayContain } from "../log-filter.js";
import { logsFrom } from "../log-search.js";
import type { Subscriber } from "../method.js";
import { assertBlocks } from "../reads.js";
import type { LiveBlock } from "./live-block.js";
import { type ChainTopic, isOfChain, type Topic } from "./topic.js";

/** One eth_subscribe of a client. */
export interface Subscription {
  readonly id: Hex;
  readonly topic: Topic;
  /** Text of a notification up to its result. */
  readonly prefix: string;
  /** First height that was not sent yet. */
  next: Height;
  /**
   * Where a block is sent in parts, what was sent of that height: so many matching logs, or the receipts of
   * so many transactions, those that are not waited for included.
   */
  given: number;
  /** Nothing of a block above this height is sent. */
  readonly last: Height;
  /**
   * Up to here blocks are read from the chain. At first the newest block when it was made: what others
   * were sent of that knows nothing of it.
   */
  lastPast: Height;
  /** Its id has been answered: only then something is sent. */
  isStarted: boolean;
  /** Ends whatever is being made for it. */
  readonly ending: AbortController;
  /** Gives back the room for addresses and topics that it waits for. */
  readonly giveRoom: (() => void) | undefined;
}

/** What happened at a moment. */
export type Moment =
  | { readonly kind: "syncing"; readonly isCatchingUp: boolean }
  | {
      readonly kind: "newPendingTransactions";
      readonly transactions: readonly PendingTransaction[];
    };

/** What a lane reads. */
export interface LanePorts {
  readonly view: ChainView;
  readonly log: Logger;
  readonly json: Pick<BlockJson, "receipts">;
  /** For what is large and made for one client, of all clients. */
  readonly large: LargeLane;
  /**
   * Whose the lane's work is; that of a subscription is its own signal's. What it is sent of the past is the
   * same client's, as if it had asked for that.
   */
  readonly owner: WorkOwner;
  readonly newest: () => LiveBlock<Subscription> | undefined;
  readonly onEnd: (subscription: Subscription) => void;
}

/** Blocks and logs that a subscription to the past is sent before it is waited for the client. */
const HEIGHTS_AT_ONCE = 1_000;
const PART_BYTES = 4 * 1024 * 1024;
/** What all clients are sent alike is made once, and may be larger: all of them take so much. */
const SHARED_BYTES = 16 * 1024 * 1024;
const PAST_LOGS_AT_ONCE = { maxResults: 1_000, maxBytes: PART_BYTES };

/**
 * Transactions that may wait to be told to one client: as many as a filter of pending ones may be
 * behind. With more its subscriptions are more than what can be sent to it.
 */
const MAX_WAITING_TRANSACTIONS = 65_536;

/** Sends one client what its subscriptions are due. */
export class ClientLane {
  /** Whose turn it is next comes first. */
  private readonly own = new Map<Hex, Subscription>();
  /** Own subscriptions to moments; nothing is kept for a client that has none. */
  private readonly listening = { newPendingTransactions: 0, syncing: 0 };
  private readonly moments: Moment[] = [];
  private waitingTransactions = 0;
  private isRunning = false;

  constructor(
    private readonly subscriber: Subscriber,
    private readonly ports: LanePorts,
  ) {}

  get size(): number {
    return this.own.size;
  }

  get(id: Hex): Subscription | undefined {
    return this.own.get(id);
  }

  add(subscription: Subscription): void {
    const { id, topic } = subscription;
    this.own.set(id, subscription);
    if (!isOfChain(topic)) this.listening[topic.kind] += 1;
  }

  /** To be called when the answer with the subscription's id has left. */
  start(subscription: Subscription): void {
    subscription.isStarted = true;
    this.wake();
  }

  end(subscription: Subscription): void {
    const { id, topic, ending } = subscription;
    if (!this.own.delete(id)) return;
    if (!isOfChain(topic)) this.listening[topic.kind] -= 1;
    ending.abort();
    this.ports.onEnd(subscription);
  }

  endAll(): void {
    for (const subscription of this.own.values()) this.end(subscription);
    this.moments.length = 0;
  }

  /** There is a new block. */
  wake(): void {
    if (!this.isRunning) void this.run();
  }

  /** Something happened that a subscription of the client may want to know. */
  tell(moment: Moment): void {
    if (this.listening[moment.kind] === 0) return;
    this.waitingTransactions += weightOf(moment);
    if (this.waitingTransactions > MAX_WAITING_TRANSACTIONS && this.moments.length > 0) {
      this.subscriber.tooSlow();
      return;
    }
    this.moments.push(moment);
    this.wake();
  }

  private async run(): Promise<void> {
    this.isRunning = true;
    for (;;) {
      await breathe(undefined, this.ports.owner);
      // No await from the look that finds nothing to the end: what comes then wakes it again.
      const [moment] = this.moments;
      const subscription = moment === undefined ? this.firstDue() : undefined;
      if (moment !== undefined) await this.sendMoment(moment);
      else if (subscription !== undefined) await this.sendNext(subscription);
      else break;
    }
    this.isRunning = false;
  }

  /** The first one with a block to be sent; it goes to the end of the row. */
  private firstDue(): Subscription | undefined {
    const head = this.ports.view.head().height;
    for (const subscription of this.own.values()) {
      const { id, topic, next, last, isStarted } = subscription;
      if (!isStarted || next > Math.min(head, last) || !isOfChain(topic)) continue;
      this.own.delete(id);
      this.own.set(id, subscription);
      return subscription;
    }
    return undefined;
  }

  private async sendMoment(moment: Moment): Promise<void> {
    for (const subscription of this.own.values()) {
      const { topic, isStarted, ending } = subscription;
      if (!isStarted || topic.kind !== moment.kind) continue;
      try {
        for (const text of textsOf(moment, topic)) {
          this.send(subscription, text);
          await breathe(ending.signal);
        }
      } catch (error) {
        this.failed(subscription, error);
      }
    }
    this.waitingTransactions -= weightOf(moment);
    this.moments.shift();
  }

  /** Sends a block, or some blocks of the past. */
  private async sendNext(subscription: Subscription): Promise<void> {
    const { topic, next, lastPast } = subscription;
    if (!isOfChain(topic)) return;
    const live = this.ports.newest();
    try {
      if (live?.height === next && next > lastPast) {
        subscription.next += 1;
        await this.sendLive(subscription, topic, live);
      } else {
        await this.sendFromPast(subscription, topic);
        await this.subscriber.drained();
      }
    } catch (error) {
      this.failed(subscription, error);
    }
  }

  /**
   * What was to be sent could not be made. A client that is told nothing believes that nothing
   * happens: its connection is ended, and with it all of its subscriptions.
   */
  private failed({ ending, topic }: Subscription, error: unknown): void {
    // The client has ended it, or is gone.
    if (ending.signal.aborted) return;
    const known = toRpcError(error);
    const fields = { topic: topic.kind, code: errorCode(error), err: error };
    const { log } = this.ports;
    if (known === undefined) log.error(fields, "subscription failed");
    else log.warn(fields, "subscription cannot go on");
    this.subscriber.failed((known ?? INTERNAL_ERROR).message);
    this.endAll();
  }

  private async sendLive(
    subscription: Subscription,
    topic: ChainTopic,
    block: LiveBlock<Subscription>,
  ): Promise<void> {
    if (topic.kind === "newHeads") {
      this.send(subscription, block.header());
    } else if (topic.kind === "logs") {
      await this.sendLiveLogs(subscription, topic.filter.criteria, block);
    } else if (block.transactionCount > 0) {
      const { height } = block;
      const { signal } = subscription.ending;
      const everybody = { client: OWN_WORK.client, signal };
      if (topic.hashes.size > 0) {
        const receipts = block.receipts(subscription);
        await this.sendReceiptList(subscription, { height, receipts, signal });
      } else if (!(await this.sendAllReceipts(subscription, height, everybody))) {
        sendRest(subscription, { height, given: 0 });
      }
    }
  }

  /**
   * Sends logs of the newest block. Where the client is behind the others come in parts, as of the past,
   * and it is waited for in between: at once they may be more than is kept for it, and it would be dropped
   * at this block whenever it comes again.
   */
  private async sendLiveLogs(
    subscription: Subscription,
    criteria: LogCriteria,
    block: LiveBlock<Subscription>,
  ): Promise<void> {
    const { height, logsBloom } = block;
    if (!mayContain(criteria, logsBloom)) return;
    let given = 0;
    for (const { log, text } of await block.logs()) {
      if (matches(criteria, log)) {
        if (this.subscriber.isBehind) return sendRest(subscription, { height, given });
        this.send(subscription, text());
        given += 1;
      }
      await breathe(subscription.ending.signal);
    }
  }

  /** Sends some of the blocks from the subscription's next one on that are published already. */
  private async sendFromPast(subscription: Subscription, topic: ChainTopic): Promise<void> {
    const { client } = this.ports.owner;
    const looking = joinSignals([subscription.ending.signal]);
    setOwner(looking.signal, { client });
    try {
      await this.sendPast(subscription, topic, looking.signal);
    } finally {
      looking.release();
    }
  }

  private async sendPast(
    subscription: Subscription,
    topic: ChainTopic,
    signal: AbortSignal,
  ): Promise<void> {
    const { view } = this.ports;
    const { next, given, last } = subscription;
    assertBlocks(view, { from: next, to: next });
    if (topic.kind !== "logs") {
      const outline = view.outline(next);
      if (outline === undefined) throw historyPruned();
      Object.assign(subscription, { next: next + 1, given: 0 });
      if (topic.kind === "newHeads") this.send(subscription, headerJson(outline));
      else if (outline.transactionCount > 0) {
        const wanted = { hashes: topic.hashes, given };
        await this.sendPastReceipts(subscription, outline, wanted, signal);
      }
      return;
    }
    const to = Math.min(view.head().height, last, next + HEIGHTS_AT_ONCE - 1);
    const { large, owner } = this.ports;
    let leave: (() => void) | undefined;
    const becameLarge = async () => {
      leave ??= await large.enter(signal, owner.client);
    };
    try {
      const bounds = { ...PAST_LOGS_AT_ONCE, signal, becameLarge };
      const from = { height: next, given };
      const found = await logsFrom(view, topic.filter.criteria, { from, to }, bounds);
      for (const text of found.logs) {
        this.send(subscription, text);
        await breathe(signal);
      }
      subscription.next = found.next.height;
      subscription.given = found.next.given;
    } finally {
      leave?.();
    }
  }

  private async sendPastReceipts(
    subscription: Subscription,
    outline: BlockOutline,
    wanted: WantedReceipts,
    signal: AbortSignal,
  ): Promise<void> {
    const { height } = outline.header;
    const { client } = this.ports.owner;
    const isWhole = wanted.hashes.size === 0 && wanted.given === 0;
    if (isWhole && (await this.sendAllReceipts(subscription, height, { client, signal }))) return;
    const receipts = receiptsIn(this.ports.view, outline, wanted);
    await this.sendReceiptList(subscription, { height, receipts, signal });
  }

  /**
   * Sends receipts as one list, made in slices; few that have become large are made up at a time. What is
   * more than a part is sent later: clients refuse larger messages, and would come again at this block.
   */
  private async sendReceiptList(
    subscription: Subscription,
    { height, receipts, signal }: ReceiptList,
  ): Promise<void> {
    const { large, owner } = this.ports;
    let text = "";
    let leave: (() => void) | undefined;
    try {
      for (const receipt of receipts) {
        await breathe(signal);
        if (receipt === undefined) continue;
        if (text.length >= PART_BYTES) {
          sendRest(subscription, { height, given: receipt.at.index });
          break;
        }
        if (text !== "") text += ",";
        for (const part of receiptTexts(receipt.mined, receipt.placed, receipt.at)) {
          text += part;
          if (text.length > LARGE_BYTES) leave ??= await large.enter(signal, owner.client);
          await breathe(signal);
        }
      }
      if (text !== "") this.send(subscription, `[${text}]`);
    } finally {
      leave?.();
    }
  }

  /**
   * Sends what all clients share; false where that is more than they take.
   * @param asker in whose turns it is made: what all wait for is the process' own, with one place for all
   */
  private async sendAllReceipts(
    subscription: Subscription,
    height: Height,
    asker: Asker,
  ): Promise<boolean> {
    try {
      const all = await this.ports.json.receipts(height, asker, SHARED_BYTES);
      if (all === undefined) throw historyPruned();
      this.send(subscription, all.content.toString());
      return true;
    } catch (error) {
      if (errorCode(error) !== "RESPONSE_TOO_LARGE") throw error;
      return false;
    }
  }

  private send(subscription: Subscription, result: string): void {
    if (subscription.ending.signal.aborted) return;
    this.subscriber.notify(`${subscription.prefix}${result}}}`);
  }
}

/** Sends the rest of a block later, from the chain. */
function sendRest(
  subscription: Subscription,
  { height, given }: { readonly height: Height; readonly given: number },
): void {
  const lastPast = Math.max(subscription.lastPast, height);
  Object.assign(subscription, { next: height, given, lastPast });
}

/** Receipts that are sent as one list. */
interface ReceiptList {
  readonly height: Height;
  readonly receipts: Iterable<MinedReceipt | undefined>;
  /** Ends the making of it, which is of the signal's owner. */
  readonly signal: AbortSignal;
}

/** Receipts of a block that a subscription is due. */
interface WantedReceipts {
  /** None for those of every transaction. */
  readonly hashes: ReadonlySet<Hash32>;
  /** Transactions that are dealt with. */
  readonly given: number;
}

/** Receipts of a block that are waited for; undefined where others may have their turn. */
function* receiptsIn(
  view: ChainView,
  outline: BlockOutline,
  { hashes, given }: WantedReceipts,
): Generator<MinedReceipt | undefined, void> {
  const place = placeOf(outline);
  for (const page of view.pages(outline.header.height)) {
    yield undefined;
    if (page.first + page.count <= given) continue;
    const isDue = (hash: Hash32, item: number) =>
      page.first + item >= given && (hashes.size === 0 || hashes.has(hash));
    const wanted = page.hashes().map(isDue);
    if (!wanted.includes(true)) continue;
    // Read before the next pause, in which the block may be pruned.
    const transactions = page.transactions();
    const receipts = yield* page.receiptSteps();
    for (const [item, isWanted] of wanted.entries()) {
      const [mined, placed] = [transactions[item], receipts[item]];
      if (!isWanted || mined === undefined || placed === undefined) continue;
      yield { mined, placed, at: { place, index: page.first + item } };
    }
  }
}

/** What a subscription of the moment's kind is told of it. */
function* textsOf(moment: Moment, topic: Topic): Generator<string> {
  if (moment.kind === "syncing") {
    yield String(moment.isCatchingUp);
    return;
  }
  const isFull = topic.kind === "newPendingTransactions" && topic.full;
  for (const pending of moment.transactions) {
    // Ethereum's clients ask for each hash and would be told that there is no such one.
    if (isEvm(pending)) yield isFull ? pendingTransactionJson(pending) : `"${pending.tx.hash}"`;
  }
}

function weightOf(moment: Moment): number {
  return moment.kind === "syncing" ? 1 : moment.transactions.length;
}
