/**
 * subscribe, unsubscribe, unsubscribe_all. A subscription gets every matching event of the heights
 * after the one it was made at, in order. Equal queries of many clients are decided once.
 */
import { setImmediate as yieldToLoop } from "node:timers/promises";
import type { Height } from "../../../chain/hex.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { breathe } from "../../../runtime/process/main-thread.js";
import { endlessSignal, OWN_WORK } from "../../../runtime/process/work-owner.js";
import { refused } from "./errors.js";
import {
  BLOCK_KINDS,
  blockPublications,
  momentPublication,
  type PublishedEvent,
  votePublication,
} from "./json/event-data.js";
import { bytesInTurn, type JsonPieces } from "./json/json-pieces.js";
import { errorText, type RequestId } from "./json-rpc.js";
import type { CometChain } from "./ports.js";
import { type EventQuery, parseQuery } from "./search/query.js";
import type { ResultTexts } from "./json/result-texts.js";
import { matchesQuery } from "./search/query-match.js";
import type { EventReceiver, Route, RouteClient } from "./route.js";

/** One for each connection that is promised; CometBFT's default `max_subscription_clients` is 100. */
const MAX_CLIENTS = 500;
/** CometBFT's default `max_subscriptions_per_client`. */
const MAX_PER_CLIENT = 5;

interface Subscription {
  readonly id: RequestId;
  readonly receiver: EventReceiver;
  /** What its messages begin with: its id, and the query as the client wrote it. */
  readonly head: Buffer;
  /** Its query's, see `EventQuery`. */
  readonly spelling: string;
  readonly group: QueryGroup;
  /** Heights up to this one were there before. */
  readonly after: Height;
}

/** All subscriptions with equal queries. */
interface QueryGroup {
  readonly query: EventQuery;
  /** The only kind of event that can match; undefined for any. */
  readonly kind: string | undefined;
  readonly members: Set<Subscription>;
}

/** All subscriptions of all clients. */
export class SubscriptionHub {
  private readonly clients = new Map<EventReceiver, Map<string, Subscription>>();
  /** Those whose end is told here, subscribed now or not: each may come and go any number of times. */
  private readonly heard = new WeakSet<EventReceiver>();
  private readonly groups = new Map<string, QueryGroup>();
  private readonly endings: (() => void)[];
  /** First height that was not told yet. */
  private next: Height;
  private isTelling = false;
  private isClosed = false;
  /** Of all that is told: nobody's end stops it for the others. */
  private readonly telling = endlessSignal(OWN_WORK);

  constructor(
    private readonly chain: CometChain,
    private readonly texts: ResultTexts,
    private readonly log: Logger,
  ) {
    this.next = chain.view.head().height + 1;
    const { bus, consensusEvents } = chain;
    this.endings = [bus.on("block", () => void this.tellBlocks())];
    if (consensusEvents !== undefined) {
      this.endings.push(
        consensusEvents.onMoment((moment) => this.tellNow(() => momentPublication(chain, moment))),
        consensusEvents.onVote((vote) => this.tellNow(() => votePublication(vote))),
      );
    }
  }

  /** The three routes. */
  routes(): readonly (readonly [string, Route])[] {
    const socketRoute = (
      name: string,
      parameters: readonly string[],
      run: (query: string, client: RouteClient) => void,
    ): readonly [string, Route] => [
      name,
      {
        parameters,
        isSocketOnly: true,
        run: (values, { client }) => {
          if (client === undefined) throw refused("subscriptions need a WebSocket");
          run(values.text("query"), client);
          return {};
        },
      },
    ];
    return [
      socketRoute("subscribe", ["query"], (query, client) => this.subscribe(query, client)),
      socketRoute("unsubscribe", ["query"], (query, client) => this.unsubscribe(query, client)),
      socketRoute("unsubscribe_all", [], (_query, { connection }) => {
        if (!this.clients.has(connection)) throw refused("subscription not found");
        this.forget(connection);
      }),
    ];
  }

  /** Stops listening to the node. */
  close(): void {
    this.isClosed = true;
    for (const end of this.endings) end();
  }

  private subscribe(text: string, { connection, requestId }: RouteClient): void {
    const own = this.clients.get(connection) ?? new Map<string, Subscription>();
    if (own.size === 0 && this.clients.size >= MAX_CLIENTS) {
      throw refused(`max_subscription_clients ${MAX_CLIENTS} reached`);
    }
    if (own.size >= MAX_PER_CLIENT) {
      throw refused(`max_subscriptions_per_client ${MAX_PER_CLIENT} reached`);
    }
    const query = parseQuery(text);
    const { canonical, spelling } = query;
    // By the spelling: who asks with `&` and with AND wants to be told under both.
    if (own.has(spelling)) throw refused("already subscribed");
    const group = this.groups.get(canonical) ?? { query, kind: kindOf(query), members: new Set() };
    const after = this.chain.view.head().height;
    const head = Buffer.from(
      `{"jsonrpc":"2.0","id":${JSON.stringify(requestId)},"result":{"query":${JSON.stringify(text)},`,
    );
    const subscription = { id: requestId, receiver: connection, head, spelling, group, after };
    group.members.add(subscription);
    this.groups.set(canonical, group);
    own.set(spelling, subscription);
    this.clients.set(connection, own);
    if (this.heard.has(connection)) return;
    this.heard.add(connection);
    connection.onClose(() => this.forget(connection));
  }

  private unsubscribe(text: string, { connection }: RouteClient): void {
    const { canonical, spelling } = parseQuery(text);
    const own = this.clients.get(connection);
    const isEqual = ({ group }: Subscription) => group.query.canonical === canonical;
    const subscription = own?.get(spelling) ?? [...(own?.values() ?? [])].find(isEqual);
    if (subscription === undefined) throw refused("subscription not found");
    this.end(subscription);
  }

  private forget(receiver: EventReceiver): void {
    for (const subscription of this.clients.get(receiver)?.values() ?? []) this.end(subscription);
  }

  private end(subscription: Subscription): void {
    const { receiver, group, spelling } = subscription;
    const { canonical } = group.query;
    group.members.delete(subscription);
    if (group.members.size === 0) this.groups.delete(canonical);
    const own = this.clients.get(receiver);
    own?.delete(spelling);
    if (own?.size === 0) this.clients.delete(receiver);
  }

  /** Tells all heights up to the head; one run at a time, so that their order is kept. */
  private async tellBlocks(): Promise<void> {
    if (this.isTelling) return;
    this.isTelling = true;
    try {
      while (!this.isClosed && this.next <= this.chain.view.head().height) {
        const height = this.next++;
        if (this.groups.size > 0) await this.tellOrCancel(height);
      }
    } finally {
      this.isTelling = false;
    }
  }

  /** Who would miss a height's events without a word is told, and may come back. */
  private async tellOrCancel(height: Height): Promise<void> {
    try {
      await this.tellBlock(height);
    } catch (err) {
      this.log.error({ err, height }, "subscribers could not be told of a block");
      for (const [receiver, own] of this.clients) {
        const missing = [...own.values()].filter(({ after, group: { kind } }) => {
          return after < height && (kind === undefined || BLOCK_KINDS.has(kind));
        });
        if (missing.length === 0) continue;
        this.forget(receiver);
        receiver.cutOff(
          missing.map(({ id }) => canceled(id, `events of height ${height} cannot be read`)),
          "failed",
        );
      }
    }
  }

  private async tellBlock(height: Height): Promise<void> {
    // Whoever subscribed a moment ago has its answer before its first event.
    await yieldToLoop();
    const committed = await this.chain.view.load(height, this.telling);
    if (committed === undefined) throw new RangeError(`block ${height} is missing`);
    const { chain, texts, telling } = this;
    for (const event of blockPublications(chain, texts, committed, telling)) {
      await this.tell(event, height);
      await breathe(telling);
      if (this.isClosed) return;
    }
  }

  private tellNow(publication: () => PublishedEvent): void {
    // Moments and votes are frequent: nothing is made for nobody.
    if (this.groups.size === 0) return;
    const event = publication();
    setImmediate(() => {
      this.tell(event, Number.POSITIVE_INFINITY).catch((err: unknown) => {
        this.log.error({ err }, "subscribers could not be told of a moment");
      });
    });
  }

  private async tell(event: PublishedEvent, height: Height): Promise<void> {
    const groups = [...this.groups.values()].filter(
      ({ kind, members }) =>
        (kind === undefined || kind === event.kind) &&
        [...members].some(({ after }) => after < height),
    );
    if (groups.length === 0) return;
    const values = await event.values();
    // Moments are small, and in order because nothing comes between them.
    const isMoment = !Number.isFinite(height);
    let rest: Buffer | undefined;
    for (const group of groups) {
      const turn = isMoment ? undefined : breathe(this.telling);
      if (turn !== undefined) await turn;
      if (!matchesQuery(group.query, values)) continue;
      if (rest === undefined) {
        const pieces = restPieces(await event.data(), values);
        rest = isMoment
          ? Buffer.from([...pieces].join(""))
          : await bytesInTurn(pieces, this.telling);
      }
      for (const member of group.members) {
        if (member.after < height) this.push(member, rest);
        // Each has bytes of its own, tens of megabytes of a large one.
        const pause = isMoment ? undefined : breathe(this.telling);
        if (pause !== undefined) await pause;
      }
    }
  }

  private push(subscription: Subscription, rest: Buffer): void {
    const { id, receiver, head } = subscription;
    if (receiver.push(Buffer.concat([head, rest])) !== "slow") return;
    this.forget(receiver);
    receiver.cutOff([canceled(id, "slow client")], "slow");
  }
}

/** The last that a subscription is told. */
function canceled(id: RequestId, reason: string): string {
  return errorText(id, "SERVER_ERROR", `subscription was canceled (reason: ${reason})`);
}

/** Values of one key that are written at a stretch. */
const VALUES_AT_ONCE = 64;

/** What stands behind the query, which is each client's own: the other members and the ends of all. */
function* restPieces(
  data: JsonPieces,
  values: ReadonlyMap<string, readonly string[]>,
): Generator<string | Buffer> {
  yield '"data":';
  yield* data.pieces;
  let lead = ',"events":{';
  for (const [key, list] of values) {
    yield `${lead}${JSON.stringify(key)}:[`;
    for (let from = 0; from < list.length; from += VALUES_AT_ONCE) {
      const some = JSON.stringify(list.slice(from, from + VALUES_AT_ONCE));
      yield `${from === 0 ? "" : ","}${some.slice(1, -1)}`;
    }
    yield "]";
    lead = ",";
  }
  yield "}}}";
}

function kindOf(query: EventQuery): string | undefined {
  const condition = query.conditions.find(
    ({ tag, operator }) => tag === "tm.event" && operator === "=",
  );
  return condition?.argument?.kind === "string" ? condition.argument.text : undefined;
}
