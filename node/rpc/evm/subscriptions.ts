/**
 * eth_subscribe: newHeads, logs, newPendingTransactions, syncing. A subscription starts after its
 * id has been answered, and goes through every block from its first height on without a gap; with
 * `fromBlock` it begins in the past, so a client that reconnects misses nothing.
 */
import { randomBytes } from "node:crypto";
import { bytesToHex, type Height, type Hex } from "../../../chain/hex.js";
import type { ChainView } from "../../chain-view.js";
import type { CommittedBlock, EventBus, PendingTransaction } from "../../event-bus.js";
import type { BlockJson } from "./block-json.js";
import { headerJson, pendingTransactionJson } from "./encode.js";
import { invalidParams, RpcFault } from "./errors.js";
import { type LogCriteria, matches, mayContain, parseLogFilter } from "./log-filter.js";
import { type CallContext, type MethodEntries, method, type Subscriber } from "./method.js";
import type { EvmRpcLimits } from "./options.js";
import {
  type BlockRef,
  optionalField,
  ParamError,
  type Params,
  parseBlockNumberOrTag,
  parseBoolean,
  parseObject,
} from "./params.js";
import { assertBlocks } from "./reads.js";

/** What is sent: `chain` kinds follow the heights, the others are events of the moment. */
type Topic =
  | { readonly kind: "newHeads" }
  | { readonly kind: "logs"; readonly criteria: LogCriteria }
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
}

/** What the hub reads. */
export interface SubscriptionPorts {
  readonly view: ChainView;
  readonly json: BlockJson;
  readonly bus: EventBus;
  readonly isCatchingUp: () => boolean;
  readonly limits: Pick<EvmRpcLimits, "subscriptionsPerConnection" | "logBlocks">;
}

/** All subscriptions of all connections. */
export class SubscriptionHub {
  private readonly bySubscriber = new Map<Subscriber, Map<Hex, Subscription>>();
  private readonly all = new Set<Subscription>();
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
    const subscription = { id, subscriber, topic, prefix, next, live: false, active: true };
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
    this.all.delete(subscription);
    this.bySubscriber.get(subscription.subscriber)?.delete(subscription.id);
  }

  /** Sends what lies between the first height and the head, then follows the event bus. */
  private async start(subscription: Subscription): Promise<void> {
    if (!subscription.active) return;
    this.all.add(subscription);
    try {
      while (subscription.active && subscription.next <= this.ports.view.head().height) {
        const committed = this.ports.view.block(subscription.next);
        if (committed === undefined) break;
        this.sendBlock(subscription, committed, headerJson);
        await subscription.subscriber.drained();
      }
      // No await since the head was read: the next block comes through the event bus.
      subscription.live = true;
    } catch {
      this.end(subscription); // The connection is gone; nobody is left to be told.
    }
  }

  private onBlock(committed: CommittedBlock): void {
    const catchingUp = this.ports.isCatchingUp();
    const changed = catchingUp !== this.wasCatchingUp;
    this.wasCatchingUp = catchingUp;
    let header: string | undefined;
    const headerOnce = () => (header ??= headerJson(committed.block));
    for (const subscription of this.all) {
      if (subscription.topic.kind === "syncing") {
        if (changed) send(subscription, String(catchingUp));
      } else if (subscription.live && subscription.next <= committed.block.header.height) {
        this.sendBlock(subscription, committed, headerOnce);
      }
    }
  }

  private sendBlock(
    subscription: Subscription,
    committed: CommittedBlock,
    header: (block: CommittedBlock["block"]) => string,
  ): void {
    const { block } = committed;
    const { topic } = subscription;
    subscription.next = block.header.height + 1;
    if (topic.kind === "newHeads") {
      send(subscription, header(block));
    } else if (topic.kind === "logs" && mayContain(topic.criteria, block.header.logsBloom)) {
      for (const { log, json } of this.ports.json.logs(block.header.height)) {
        if (matches(topic.criteria, log)) send(subscription, json);
      }
    }
  }

  private onPending(transactions: readonly PendingTransaction[]): void {
    for (const subscription of this.all) {
      const { topic } = subscription;
      if (topic.kind !== "newPendingTransactions") continue;
      for (const pending of transactions) {
        send(subscription, topic.full ? pendingTransactionJson(pending) : `"${pending.tx.hash}"`);
      }
    }
  }
}

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
    case "newPendingTransactions":
      return { topic: { kind, full: params.optional(1, parseBoolean) ?? false }, from: undefined };
    case "syncing":
      return { topic: { kind }, from: undefined };
    default:
      throw new RpcFault("METHOD_NOT_FOUND", `no "${kind}" subscription in eth namespace`);
  }
}
