/**
 * eth_subscribe: newHeads, logs, transactionReceipts, newPendingTransactions, syncing. A
 * subscription starts after its
 * id has been answered, and goes through every block from its first height on without a gap; with
 * `fromBlock` it begins in the past, so a client that reconnects misses nothing.
 */
import { randomBytes } from "node:crypto";
import { bytesToHex, type Hash32, type Height, type Hex } from "../../../chain/hex.js";
import type { Log } from "../../../chain/receipt.js";
import { breathe } from "../../../runtime/process/main-thread.js";
import { type BlockOutline, placedReceipt } from "../../view/block-pages.js";
import type { ChainView } from "../../view/chain-view.js";
import { isEvm } from "../../../chain/block.js";
import type { CommittedBlock, EventBus, PendingTransaction } from "../../view/event-bus.js";
import type { BlockJson } from "./block-json.js";
import { headerJson, logJson, pendingTransactionJson, placeOf, receiptJson } from "./encode.js";
import { invalidParams, RpcFault } from "./errors.js";
import { type LogCriteria, matches, mayContain, parseLogFilter } from "./log-filter.js";
import { searchLogs } from "./log-search.js";
import { type CallContext, type MethodEntries, method, type Subscriber } from "./method.js";
import type { EvmRpcLimits } from "./options.js";
import {
  type BlockRef,
  field,
  optionalField,
  ParamError,
  type Params,
  parseBlockNumberOrTag,
  parseBoolean,
  parseHashParam,
  parseObject,
} from "./params.js";
import { assertBlocks } from "./reads.js";
import { WaitingHashes } from "./waiting-hashes.js";

/** What is sent: `chain` kinds follow the heights, the others are events of the moment. */
type Topic =
  | { readonly kind: "newHeads" }
  | { readonly kind: "logs"; readonly criteria: LogCriteria }
  /** Without hashes: the receipts of every transaction. */
  | { readonly kind: "transactionReceipts"; readonly hashes: ReadonlySet<Hash32> }
  | { readonly kind: "newPendingTransactions"; readonly full: boolean }
  | { readonly kind: "syncing" };

interface Subscription {
  readonly id: Hex;
  readonly subscriber: Subscriber;
  readonly topic: Topic;
  /** Text of a notification up to its result. */
  readonly prefix: string;
  /** First height that was not sent yet. */
  next: Height;
  /** Caught up with the head: sent to from the event bus. */
  live: boolean;
  active: boolean;
  /** Ends the search for its past logs. */
  readonly ending: AbortController;
}

/** Transactions that one subscription waits for, as in go-ethereum. */
const MAX_RECEIPT_HASHES = 200;

/** Transactions that all subscriptions wait for together: a full pool. */
const MAX_WAITING_HASHES = 200_000;

/** A log of a new block; its text is made when the first subscriber wants it. */
interface LiveLog {
  readonly log: Log;
  readonly text: () => string;
}

/** What of a new block is sent, made when the first subscription wants it. */
interface LiveBlock {
  readonly height: Height;
  readonly logsBloom: Uint8Array;
  readonly transactionCount: number;
  readonly header: () => string;
  readonly logs: () => readonly LiveLog[];
  /** Receipts of the block that a subscription waits for, in order. */
  readonly receipts: (subscription: Subscription) => readonly string[];
}

/** Blocks and logs that a subscription to the past is sent before it is waited for the client. */
const HEIGHTS_AT_ONCE = 1_000;
const PAST_LOGS_AT_ONCE = { maxResults: 1_000, maxBytes: 4 * 1024 * 1024 };

/** What the hub reads. */
export interface SubscriptionPorts {
  readonly view: ChainView;
  readonly json: Pick<BlockJson, "receipts">;
  readonly bus: EventBus;
  readonly isCatchingUp: () => boolean;
  readonly limits: Pick<EvmRpcLimits, "subscriptionsPerConnection" | "logBlocks">;
}

/** All subscriptions of all connections. */
export class SubscriptionHub {
  private readonly bySubscriber = new Map<Subscriber, Map<Hex, Subscription>>();
  private readonly all = new Set<Subscription>();
  private readonly waiting = new WaitingHashes<Subscription>(MAX_WAITING_HASHES);
  /** Receipts of whole blocks that are being sent, one block after the other. */
  private allReceipts: Promise<void> = Promise.resolve();
  private readonly endings: (() => void)[];
  private wasCatchingUp: boolean;

  constructor(private readonly ports: SubscriptionPorts) {
    this.wasCatchingUp = ports.isCatchingUp();
    this.endings = [
      ports.bus.on("block", (block) => this.onBlock(block)),
      ports.bus.on("pendingTransactions", (list) => this.onPending(list)),
    ];
  }

  /** eth_subscribe and eth_unsubscribe. */
  methods(): MethodEntries {
    return [
      method("eth_subscribe", 2, (params, context) => this.subscribe(params, context)),
      method("eth_unsubscribe", 1, (params, context) => {
        const id = params.required(0, parseId);
        const subscription =
          context.subscriber && this.bySubscriber.get(context.subscriber)?.get(id);
        if (subscription === undefined)
          throw new RpcFault("SERVER_ERROR", "subscription not found");
        this.end(subscription);
        return true;
      }),
    ];
  }

  /** Count of subscriptions, for metrics. */
  size(): number {
    return this.all.size;
  }

  /** Stops listening to the node. */
  close(): void {
    for (const end of this.endings) end();
  }

  private subscribe(params: Params, context: CallContext): Hex {
    const { subscriber } = context;
    if (subscriber === undefined) {
      throw new RpcFault("METHOD_NOT_FOUND", "notifications not supported");
    }
    const { topic, from } = parseTopic(params);
    const next = this.firstHeight(from);
    const own = this.subscriptionsOf(subscriber);
    if (own.size >= this.ports.limits.subscriptionsPerConnection) {
      throw new RpcFault("LIMIT_EXCEEDED", "too many subscriptions");
    }
    const id = bytesToHex(randomBytes(16));
    const prefix =
      '{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":' +
      `"${id}","result":`;
    const ending = new AbortController();
    const subscription = { id, subscriber, topic, prefix, next, live: false, active: true, ending };
    if (topic.kind === "transactionReceipts") this.waiting.add(subscription, topic.hashes);
    own.set(id, subscription);
    context.afterReply(() => void this.start(subscription));
    return id;
  }

  private firstHeight(from: BlockRef | undefined): Height {
    const head = this.ports.view.head().height;
    if (from?.kind !== "height") return head + 1;
    const maxBlocks = this.ports.limits.logBlocks;
    if (head - from.height + 1 > maxBlocks) {
      throw invalidParams(`exceed maximum block range: ${maxBlocks}`);
    }
    if (from.height <= head) assertBlocks(this.ports.view, { from: from.height, to: head });
    return from.height;
  }

  private subscriptionsOf(subscriber: Subscriber): Map<Hex, Subscription> {
    const known = this.bySubscriber.get(subscriber);
    if (known !== undefined) return known;
    const own = new Map<Hex, Subscription>();
    this.bySubscriber.set(subscriber, own);
    subscriber.onClose(() => {
      for (const subscription of own.values()) this.end(subscription);
      this.bySubscriber.delete(subscriber);
    });
    return own;
  }

  private end(subscription: Subscription): void {
    subscription.active = false;
    subscription.ending.abort();
    this.all.delete(subscription);
    const { topic } = subscription;
    if (topic.kind === "transactionReceipts") this.waiting.remove(subscription, topic.hashes);
    this.bySubscriber.get(subscription.subscriber)?.delete(subscription.id);
  }

  /** Sends what lies between the first height and the head, then follows the event bus. */
  private async start(subscription: Subscription): Promise<void> {
    if (!subscription.active) return;
    this.all.add(subscription);
    try {
      while (subscription.active && subscription.next <= this.ports.view.head().height) {
        await this.sendPast(subscription);
        await subscription.subscriber.drained();
      }
      // No await since the head was read: the next block comes through the event bus.
      subscription.live = true;
    } catch {
      this.end(subscription); // The connection is gone; nobody is left to be told.
    }
  }

  /** Sends some of the blocks from the subscription's next one on that are published already. */
  private async sendPast(subscription: Subscription): Promise<void> {
    const { view } = this.ports;
    const { topic, next } = subscription;
    if (topic.kind !== "logs") {
      const outline = view.outline(next);
      if (outline === undefined) throw new Error(`block ${next} is missing`);
      if (topic.kind === "newHeads") send(subscription, headerJson(outline));
      if (topic.kind === "transactionReceipts" && outline.transactionCount > 0) {
        await this.sendPastReceipts(subscription, outline, topic.hashes);
      }
      subscription.next = next + 1;
      return;
    }
    const to = Math.min(view.head().height, next + HEIGHTS_AT_ONCE - 1);
    const bounds = { ...PAST_LOGS_AT_ONCE, signal: subscription.ending.signal };
    const found = await searchLogs(view, topic.criteria, { from: next, to }, bounds);
    for (const text of found.logs) send(subscription, text);
    subscription.next = found.next ?? to + 1;
  }

  private async sendPastReceipts(
    subscription: Subscription,
    outline: BlockOutline,
    hashes: ReadonlySet<Hash32>,
  ): Promise<void> {
    const { height } = outline.header;
    if (hashes.size === 0) return this.sendReceipts(subscription, height);
    const place = placeOf(outline);
    const found: string[] = [];
    for (const page of this.ports.view.pages(height)) {
      const wanted = page.hashes().map((hash) => hashes.has(hash));
      if (!wanted.includes(true)) continue;
      const [mined, receipts] = [page.transactions(), page.receipts()];
      for (const [item, isWanted] of wanted.entries()) {
        const [transaction, receipt] = [mined[item], receipts[item]];
        if (!isWanted || transaction === undefined || receipt === undefined) continue;
        found.push(receiptJson(transaction, receipt, { place, index: page.first + item }));
      }
      await breathe(subscription.ending.signal);
    }
    if (found.length > 0) send(subscription, `[${found.join(",")}]`);
  }

  private onBlock(committed: CommittedBlock): void {
    const catchingUp = this.ports.isCatchingUp();
    const changed = catchingUp !== this.wasCatchingUp;
    this.wasCatchingUp = catchingUp;
    const live = this.liveBlock(committed);
    for (const subscription of this.all) {
      if (subscription.topic.kind === "syncing") {
        if (changed) send(subscription, String(catchingUp));
      } else if (subscription.live && subscription.next <= committed.block.header.height) {
        this.sendBlock(subscription, live);
      }
    }
  }

  /** A new block for all live subscriptions: what they share is made once. */
  private liveBlock(committed: CommittedBlock): LiveBlock {
    const { block } = committed;
    const place = placeOf(block);
    let header: string | undefined;
    let logs: readonly LiveLog[] | undefined;
    let found: ReadonlyMap<Subscription, number[]> | undefined;
    const receipt = (index: number): string => {
      const [mined, placed] = [block.transactions[index], placedReceipt(committed, index)];
      if (mined === undefined || placed === undefined) {
        throw new RangeError(`the block has no transaction ${index}`);
      }
      return receiptJson(mined, placed, { place, index });
    };
    return {
      height: block.header.height,
      logsBloom: block.header.logsBloom,
      transactionCount: block.transactions.length,
      header: () => (header ??= headerJson(block)),
      logs: () => (logs ??= liveLogs(committed)),
      receipts: (subscription) => {
        found ??= this.waiting.found(block.transactions.map(({ tx }) => tx.hash));
        return (found.get(subscription) ?? []).map(receipt);
      },
    };
  }

  private sendBlock(subscription: Subscription, block: LiveBlock): void {
    const { topic } = subscription;
    subscription.next = block.height + 1;
    if (topic.kind === "newHeads") {
      send(subscription, block.header());
    } else if (topic.kind === "logs" && mayContain(topic.criteria, block.logsBloom)) {
      for (const { log, text } of block.logs()) {
        if (matches(topic.criteria, log)) send(subscription, text());
      }
    } else if (topic.kind === "transactionReceipts" && block.transactionCount > 0) {
      if (topic.hashes.size === 0) {
        // One block after the other: a large one takes a while to be written.
        this.allReceipts = this.allReceipts.then(() =>
          this.sendReceipts(subscription, block.height),
        );
        return;
      }
      const receipts = block.receipts(subscription);
      if (receipts.length > 0) send(subscription, `[${receipts.join(",")}]`);
    }
  }

  /** Sends all receipts of a block; ends a subscription whose block cannot be read any more. */
  private async sendReceipts(subscription: Subscription, height: Height): Promise<void> {
    try {
      const all = await this.ports.json.receipts(height);
      if (all !== undefined && subscription.active) send(subscription, all.content.toString());
    } catch {
      this.end(subscription);
    }
  }

  private onPending(transactions: readonly PendingTransaction[]): void {
    for (const subscription of this.all) {
      const { topic } = subscription;
      if (topic.kind !== "newPendingTransactions") continue;
      for (const pending of transactions) {
        // Ethereum's clients ask for each hash and would be told that there is no such one.
        if (!isEvm(pending)) continue;
        send(subscription, topic.full ? pendingTransactionJson(pending) : `"${pending.tx.hash}"`);
      }
    }
  }
}

/** Sends one notification. */
function send(subscription: Subscription, result: string): void {
  subscription.subscriber.notify(`${subscription.prefix}${result}}}`);
}

function parseId(value: unknown): Hex {
  if (typeof value !== "string") throw new ParamError("non-string");
  return value as Hex;
}

function parseName(value: unknown): string {
  if (typeof value !== "string") throw new ParamError("non-string");
  return value;
}

function parseTopic(params: Params): { topic: Topic; from: BlockRef | undefined } {
  const kind = params.required(0, parseName);
  switch (kind) {
    case "newHeads": {
      const from = params.optional(1, (value) =>
        optionalField(parseObject(value), "fromBlock", parseBlockNumberOrTag),
      );
      return { topic: { kind }, from };
    }
    case "logs": {
      const filter = params.optional(1, parseLogFilter) ?? parseLogFilter({});
      if (filter.blockHash !== undefined) {
        throw invalidParams("a subscription cannot be made for one block hash");
      }
      return { topic: { kind, criteria: filter.criteria }, from: filter.from };
    }
    case "transactionReceipts":
      return parseReceiptsTopic(params);
    case "newPendingTransactions":
      return { topic: { kind, full: params.optional(1, parseBoolean) ?? false }, from: undefined };
    case "syncing":
      return { topic: { kind }, from: undefined };
    default:
      throw new RpcFault("METHOD_NOT_FOUND", `no "${kind}" subscription in eth namespace`);
  }
}

function parseReceiptsTopic(params: Params): { topic: Topic; from: BlockRef | undefined } {
  const filter = params.optional(1, parseObject) ?? {};
  const wanted = field(filter, "transactionHashes") ?? [];
  if (!Array.isArray(wanted)) throw invalidParams("transactionHashes: expected an array");
  if (wanted.length > MAX_RECEIPT_HASHES) {
    throw new RpcFault(
      "SERVER_ERROR",
      "exceed max number of transaction hashes allowed per transactionReceipts subscription",
    );
  }
  const hashes = new Set(params.optional(1, () => wanted.map(parseHashParam)));
  const from = params.optional(1, () => optionalField(filter, "fromBlock", parseBlockNumberOrTag));
  return { topic: { kind: "transactionReceipts", hashes }, from };
}

/** All logs of a new block, in order. */
function liveLogs({ block, receipts }: CommittedBlock): readonly LiveLog[] {
  const place = placeOf(block);
  const logs: LiveLog[] = [];
  for (const [transactionIndex, receipt] of receipts.entries()) {
    const mined = block.transactions[transactionIndex];
    if (mined === undefined) throw new Error("a receipt has no transaction");
    for (const log of receipt.logs) {
      const at = { transactionHash: mined.tx.hash, transactionIndex, logIndex: logs.length };
      let text: string | undefined;
      logs.push({ log, text: () => (text ??= logJson(log, { ...at, place })) });
    }
  }
  return logs;
}
