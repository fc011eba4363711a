/**
 * eth_subscribe: newHeads, logs, transactionReceipts, newPendingTransactions, syncing. A
 * subscription starts after its id has been answered, and goes through every block from its first
 * height on without a gap; with `fromBlock` it begins in the past, so a client that reconnects
 * misses nothing.
 */
import type { Height, Hex } from "../../../../chain/hex.js";
import type { Logger } from "../../../../runtime/process/logger.js";
import { setOwner, type WorkOwner } from "../../../../runtime/process/work-owner.js";
import type { ChainView } from "../../../view/chain-view.js";
import type { CommittedBlock, EventBus } from "../../../view/event-bus.js";
import type { BlockJson } from "../json/block-json.js";
import { CriteriaRoom } from "../criteria-room.js";
import { invalidParams, RpcFault } from "../errors.js";
import { lastHeight } from "../log-filter.js";
import { LargeLane } from "../large-lane.js";
import { type CallContext, type MethodEntries, method, type Subscriber } from "../method.js";
import type { EvmRpcLimits } from "../options.js";
import { type BlockRef, type Params, parseId } from "../params.js";
import { randomId } from "../random-id.js";
import { assertBlocks } from "../reads.js";
import { ClientLane, type Moment, type Subscription } from "./client-lane.js";
import { LiveBlock } from "./live-block.js";
import { parseTopic, type Topic } from "./topic.js";
import { WaitingHashes } from "./waiting-hashes.js";

/** Transactions that all subscriptions wait for together: a full pool. */
const MAX_WAITING_HASHES = 200_000;

/** What the hub reads. */
export interface SubscriptionPorts {
  readonly view: ChainView;
  readonly json: Pick<BlockJson, "receipts">;
  readonly bus: EventBus;
  readonly log: Logger;
  readonly isCatchingUp: () => boolean;
  readonly limits: Pick<EvmRpcLimits, "subscriptionsPerConnection" | "logBlocks">;
}

/** All subscriptions of all connections. */
export class SubscriptionHub {
  private readonly lanes = new Map<Subscriber, ClientLane>();
  private readonly waiting = new WaitingHashes<Subscription>(MAX_WAITING_HASHES);
  private readonly room = new CriteriaRoom();
  private readonly large = new LargeLane();
  private newest: LiveBlock<Subscription> | undefined;
  private readonly endings: (() => void)[];
  private wasCatchingUp: boolean;

  constructor(private readonly ports: SubscriptionPorts) {
    this.wasCatchingUp = ports.isCatchingUp();
    this.endings = [
      ports.bus.on("block", (block) => this.onBlock(block)),
      ports.bus.on("pendingTransactions", (transactions) =>
        this.tell({ kind: "newPendingTransactions", transactions }),
      ),
    ];
  }

  /** eth_subscribe and eth_unsubscribe. */
  methods(): MethodEntries {
    return [
      method("eth_subscribe", 2, (params, context) => this.subscribe(params, context)),
      method("eth_unsubscribe", 1, (params, { subscriber }) => {
        const id = params.required(0, parseId);
        const lane = subscriber && this.lanes.get(subscriber);
        const subscription = lane?.get(id);
        if (subscription === undefined) {
          throw new RpcFault("SERVER_ERROR", "subscription not found");
        }
        lane?.end(subscription);
        return true;
      }),
    ];
  }

  /** Count of subscriptions, for metrics. */
  size(): number {
    let size = 0;
    for (const lane of this.lanes.values()) size += lane.size;
    return size;
  }

  /** Stops listening to the node. */
  close(): void {
    for (const end of this.endings) end();
  }

  private subscribe(params: Params, context: CallContext): Hex {
    const { subscriber, client } = context;
    if (subscriber === undefined) {
      throw new RpcFault("METHOD_NOT_FOUND", "notifications not supported");
    }
    const { topic, from } = parseTopic(params);
    const { view } = this.ports;
    const last = topic.kind === "logs" ? lastHeight(view, topic.filter) : Number.MAX_SAFE_INTEGER;
    const next = this.firstHeight(topic, from);
    const owner = { client, isOwn: true };
    const lane = this.laneOf(subscriber, owner);
    if (lane.size >= this.ports.limits.subscriptionsPerConnection) {
      throw new RpcFault("LIMIT_EXCEEDED", "too many subscriptions");
    }
    const id = randomId();
    const prefix =
      '{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":' +
      `"${id}","result":`;
    const ending = new AbortController();
    setOwner(ending.signal, owner);
    const { height: lastPast } = view.head();
    const span = { next, given: 0, last, lastPast };
    const giveRoom =
      topic.kind === "logs" ? this.room.take(topic.filter.criteria, client) : undefined;
    const subscription = { id, topic, prefix, ...span, isStarted: false, ending, giveRoom };
    if (topic.kind === "transactionReceipts") this.waiting.add(subscription, topic.hashes, client);
    lane.add(subscription);
    context.afterReply(() => lane.start(subscription));
    return id;
  }

  /**
   * Logs are sent from any block on that is here, as for who asks for one range after the other: the lane
   * looks through some blocks at a time, and waits for the client. Headers and receipts each block has.
   */
  private firstHeight(topic: Topic, from: BlockRef | undefined): Height {
    const head = this.ports.view.head().height;
    if (from?.kind !== "height") return head + 1;
    const maxBlocks = this.ports.limits.logBlocks;
    if (topic.kind !== "logs" && head - from.height + 1 > maxBlocks) {
      throw invalidParams(`exceed maximum block range: ${maxBlocks}`);
    }
    if (from.height <= head) assertBlocks(this.ports.view, { from: from.height, to: head });
    return from.height;
  }

  private laneOf(subscriber: Subscriber, owner: WorkOwner): ClientLane {
    const known = this.lanes.get(subscriber);
    if (known !== undefined) return known;
    const { view, json, log } = this.ports;
    const lane = new ClientLane(subscriber, {
      view,
      log,
      json,
      large: this.large,
      owner,
      newest: () => this.newest,
      onEnd: (subscription) => this.ended(subscription),
    });
    this.lanes.set(subscriber, lane);
    subscriber.onClose(() => {
      lane.endAll();
      this.lanes.delete(subscriber);
    });
    return lane;
  }

  private ended(subscription: Subscription): void {
    const { topic, giveRoom } = subscription;
    if (topic.kind === "transactionReceipts") this.waiting.remove(subscription, topic.hashes);
    giveRoom?.();
  }

  private onBlock(committed: CommittedBlock): void {
    const isCatchingUp = this.ports.isCatchingUp();
    if (isCatchingUp !== this.wasCatchingUp) this.tell({ kind: "syncing", isCatchingUp });
    this.wasCatchingUp = isCatchingUp;
    this.newest = this.lanes.size === 0 ? undefined : new LiveBlock(committed, this.waiting);
    for (const lane of this.lanes.values()) lane.wake();
  }

  private tell(moment: Moment): void {
    for (const lane of this.lanes.values()) lane.tell(moment);
  }
}
