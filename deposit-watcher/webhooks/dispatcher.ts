/**
 * The loop that sends events to webhooks, in one process at a time. Each webhook has at most
 * `MAX_PER_WEBHOOK` deliveries under way, and the first of each never waits for those of others: a
 * receiver that is slow delays nobody but itself.
 */
import { errorMessage } from "../../chain/errors.js";
import type { LedgerGuard } from "../../ledger/guard/ledger-guard.js";
import { holdLease, releaseLease } from "../../ledger/task-lease.js";
import {
  claimDeliveries,
  type ClaimedDelivery,
  type DeliveryOutcome,
  drawDeliveriesBack,
  fillDeliveries,
  pruneDeliveries,
  recordOutcome,
  webhooksAtWork,
} from "../../ledger/webhooks/deliveries.js";
import { liveSecrets } from "../../ledger/webhooks/subscriptions.js";
import { guardedPost, type ResolveHost } from "../../runtime/http/outgoing/guarded-post.js";
import type { Clock } from "../../runtime/process/clock.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import type { Logger } from "../../runtime/process/logger.js";
import { createWakeup } from "../../runtime/process/task.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { isOwn } from "../watch-faults.js";
import { createMessage, judgeAnswer, judgeFault } from "./delivery.js";
import type { WebhookMetrics } from "./webhook-metrics.js";

/** What the dispatcher is made of. */
export interface DispatcherParts {
  readonly database: SqlDatabase;
  /** What is told to receivers is remembered in the home first; an older ledger tells nothing. */
  readonly guard: Pick<LedgerGuard, "beforeSending">;
  /** Random name of the process' life, for the lease. */
  readonly owner: string;
  readonly settings: DispatcherSettings;
  readonly metrics: WebhookMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  /** Default: the system's DNS servers are asked. */
  readonly resolve?: ResolveHost;
}

/** Settings of section `webhooks`. */
export interface DispatcherSettings {
  readonly allowLocal: boolean;
  readonly pollIntervalMs: number;
  readonly timeoutMs: number;
}

/** Deliveries of one webhook under way: order and speed for a receiver that answers at once. */
const MAX_PER_WEBHOOK = 4;

/** Beyond the first one of each webhook, all webhooks together: connections and memory. */
const MAX_SHARED = 32;

/**
 * Longer than a round and its deliveries take; a process that died is replaced after it, and who gave the
 * lease back leaves it to others for that time, in which each looks some times.
 */
const LEASE_MS = 15_000;

/** Time to write an outcome down, beyond the time-out of the delivery. */
const CLAIM_MARGIN_MS = 5_000;

/** Deliveries that ended long ago are looked for so often. */
const PRUNE_INTERVAL_MS = 600_000;

/** What waits by a clock that has gone back is looked for so often. */
const DRAW_BACK_INTERVAL_MS = 60_000;

/** Pause after a fault of the database, and while the ledger is in recovery. */
const FAULT_PAUSE_MS = 2_000;

/** Sends what webhooks wait for. */
export class WebhookDispatcher {
  readonly #parts: DispatcherParts;
  readonly #wakeup = createWakeup();
  /** Deliveries under way by webhook. */
  readonly #underWay = new Map<string, number>();
  readonly #running = new Set<Promise<void>>();
  #prunedMs = Number.NEGATIVE_INFINITY;
  #drawnBackMs = Number.NEGATIVE_INFINITY;
  /** Before that the lease is left to others: what woke this one is theirs to send. */
  #takesFromMs = Number.NEGATIVE_INFINITY;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
  }

  /** Looks at once, for example because a webhook was added. */
  wake(): void {
    this.#wakeup.wake();
  }

  /** Sends until the signal fires; faults are logged and waited out. */
  async run(signal: AbortSignal): Promise<void> {
    const { settings, log } = this.#parts;
    while (!signal.aborted) {
      let pauseMs = settings.pollIntervalMs;
      try {
        if (await this.#holds()) await this.#round(signal);
      } catch (error) {
        if (signal.aborted) break;
        log.warn({ reason: errorMessage(error) }, "webhooks wait");
        pauseMs = FAULT_PAUSE_MS;
        if (isOwn(error)) await this.#standBack();
      }
      await this.#wakeup.wait({ signal, timeoutMs: pauseMs }).catch(() => undefined);
    }
    await Promise.all(this.#running);
    await this.#giveBack();
  }

  async #holds(): Promise<boolean> {
    const { database, owner, clock } = this.#parts;
    if (clock.monotonicMs() < this.#takesFromMs) return false;
    return holdLease(database, { task: "webhooks", owner, leaseMs: LEASE_MS });
  }

  /** This home cannot remember what it would tell: the home of another watcher may. */
  async #standBack(): Promise<void> {
    const { clock } = this.#parts;
    await this.#giveBack();
    this.#takesFromMs = clock.monotonicMs() + LEASE_MS;
  }

  /** Without the database the lease runs out by itself. */
  async #giveBack(): Promise<void> {
    const { database, owner } = this.#parts;
    await releaseLease(database, { task: "webhooks", owner }).catch(() => undefined);
  }

  /** Makes deliveries of new events, and starts those that are due and have room. */
  async #round(signal: AbortSignal): Promise<void> {
    const { database, guard, settings } = this.#parts;
    await this.#drawBack();
    const { webhooks, headSeq } = await webhooksAtWork(database);
    for (const { id, isBehind } of webhooks) {
      if (isBehind && (await fillDeliveries(database, id))) this.wake();
    }
    await this.#prune();
    const rooms = this.#rooms(webhooks.map(({ id }) => id));
    if (rooms.size === 0) return;
    await guard.beforeSending({ eventSeq: headSeq });
    const claimMs = settings.timeoutMs + CLAIM_MARGIN_MS;
    const claimed = await claimDeliveries(database, { rooms, upToSeq: headSeq, claimMs });
    if (claimed.length === 0) return;
    const secrets = await liveSecrets(database, [...rooms.keys()]);
    for (const delivery of claimed) {
      const own = secrets.get(delivery.webhookId);
      // One without a secret was removed since its delivery was claimed: it is sent nothing more.
      if (own !== undefined) this.#start(delivery, own, signal);
    }
  }

  /** What one statement leaves comes with the next round. */
  async #drawBack(): Promise<void> {
    const { database, clock, log } = this.#parts;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#drawnBackMs < DRAW_BACK_INTERVAL_MS) return;
    const { count, isMore } = await drawDeliveriesBack(database);
    if (count > 0) log.warn({ count }, "the database's clock went back: webhooks are due again");
    if (!isMore) this.#drawnBackMs = nowMs;
  }

  /** Some at a time: what is to be sent waits for none of it. */
  async #prune(): Promise<void> {
    const { database, clock } = this.#parts;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#prunedMs < PRUNE_INTERVAL_MS) return;
    if (await pruneDeliveries(database)) return;
    this.#prunedMs = nowMs;
  }

  /** How many deliveries each webhook may start now. */
  #rooms(ids: readonly string[]): ReadonlyMap<string, number> {
    const counts = [...this.#underWay.values()];
    let shared = MAX_SHARED - counts.reduce((sum, count) => sum + count - 1, 0);
    const rooms = new Map<string, number>();
    for (const id of ids) {
      const busy = this.#underWay.get(id) ?? 0;
      const own = busy === 0 ? 1 : 0;
      const more = Math.max(0, Math.min(MAX_PER_WEBHOOK - busy - own, shared));
      shared -= more;
      if (own + more > 0) rooms.set(id, own + more);
    }
    return rooms;
  }

  #start(delivery: ClaimedDelivery, secrets: readonly string[], signal: AbortSignal): void {
    const { webhookId } = delivery;
    this.#underWay.set(webhookId, (this.#underWay.get(webhookId) ?? 0) + 1);
    const work = this.#deliver(delivery, secrets, signal).finally(() => {
      const left = (this.#underWay.get(webhookId) ?? 1) - 1;
      if (left === 0) this.#underWay.delete(webhookId);
      else this.#underWay.set(webhookId, left);
      this.#running.delete(work);
      this.wake();
    });
    this.#running.add(work);
  }

  async #deliver(
    delivery: ClaimedDelivery,
    secrets: readonly string[],
    signal: AbortSignal,
  ): Promise<void> {
    const { database, metrics, log } = this.#parts;
    const outcome = await this.#send(delivery, secrets, signal);
    // The process is stopping: the claim runs out, and the next one sends it again.
    if (outcome === undefined) return;
    failpoint("watcher.after-webhook-sent");
    try {
      if (!(await recordOutcome(database, delivery, outcome))) return;
    } catch (error) {
      log.warn({ reason: errorMessage(error) }, "a webhook's delivery could not be written down");
      return;
    }
    metrics.ended(outcome.kind);
    const { webhookId, seq, tries } = delivery;
    if (outcome.kind !== "dead") return;
    const { error } = outcome;
    log.warn({ webhookId, seq, tries, reason: error }, "a webhook's delivery was given up");
  }

  async #send(
    { url, event, tries }: ClaimedDelivery,
    secrets: readonly string[],
    signal: AbortSignal,
  ): Promise<DeliveryOutcome | undefined> {
    const { settings, clock, resolve } = this.#parts;
    try {
      const answer = await guardedPost({
        url: new URL(url),
        ...createMessage(event, { secrets, nowMs: clock.nowMs() }),
        timeoutMs: settings.timeoutMs,
        allowLoopback: settings.allowLocal,
        signal,
        ...(resolve === undefined ? {} : { resolve }),
      });
      return judgeAnswer(answer, tries, clock.nowMs());
    } catch (error) {
      return signal.aborted ? undefined : judgeFault(error, tries);
    }
  }
}
