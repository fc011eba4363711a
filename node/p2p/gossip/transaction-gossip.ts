/**
 * Transactions over the network. What becomes executable here goes out in batches; what comes in
 * goes to the pool first and is relayed only if the pool took something of it, can execute all that
 * it took, and judged all of it; else what can be executed goes out alone. What waits behind a nonce
 * that is missing costs its sender nothing: it goes out from here once it is executable. A new peer
 * gets what is pending, so that nothing is lost that was sent while the two were apart. What clients
 * sent here and no block holds goes out again and again: others may have had no room for it, or an
 * older head, when they heard of it.
 */
import { LRUCache } from "lru-cache";
import { hashOfRaw, isCosmosBytes } from "../../../chain/cosmos/cosmos-transaction.js";
import { SDK_CODE } from "../../../chain/cosmos/sdk-fault.js";
import type { Hash32 } from "../../../chain/hex.js";
import { AppError, errorCode } from "../../../chain/errors.js";
import type { Clock } from "../../../runtime/process/clock.js";
import { breathe } from "../../../runtime/process/main-thread.js";
import { createWakeup, joinSignals, sleep } from "../../../runtime/process/task.js";
import { OWN_WORK } from "../../../runtime/process/work-owner.js";
import type { PendingTransaction } from "../../view/event-bus.js";
import type { NetworkPool, PoolErrorCode } from "../../mempool/pool-port.js";
import type { Verdict } from "./gossip.js";
import type { NodeId } from "../node-key.js";
import { decodeTransactions, encodeTransactions, MAX_BATCH_COUNT } from "../peers/peer-codec.js";
import { MS_PER_BYTE, type PeerLoad } from "../peers/peer-load.js";
import type { Offence } from "../peers/peer-scores.js";
import { isUnseen, PeerSubmissions } from "./peer-submissions.js";

/** A peer as this part sees it. */
export interface TransactionNeighbour {
  readonly nodeId: NodeId;
  readonly unsentBytes: number;
  send(frame: { readonly type: "transactions"; readonly raws: readonly Uint8Array[] }): void;
}

/** What this part needs. */
export interface TransactionGossipPorts {
  readonly pool: NetworkPool;
  publish(bytes: Uint8Array): void;
  report(nodeId: NodeId, offence: Offence): void;
  /** What peers cost this node. */
  readonly load: Pick<PeerLoad, "mayServe" | "serve" | "served">;
  readonly clock: Clock;
}

/** How long a batch is filled. */
const BATCH_MS = 50;

/** A batch of this size goes out at once. */
const BATCH_BYTES = 64 * 1024;

/** What a new peer gets of the pool: some 25,000 transfers. */
const GREETING_BYTES = 4 * 1024 * 1024;

/**
 * A newcomer is greeted when gossip surely reaches it (the router joins it to its mesh within a
 * heartbeat of a second): what comes in before is in the greeting, what comes later is gossiped.
 */
const GREETING_DELAY_MS = 2_000;

/** A peer that comes and goes is greeted no more often than this; the greeting waits. */
const GREETING_INTERVAL_MS = 5_000;

/** How often it is looked whether a greeting is due. */
const GREETING_CHECK_MS = 250;

/**
 * What clients sent here that long ago is told again, and so often: routers take the same batch for one
 * that they have had for a minute.
 */
const AGAIN_INTERVAL_MS = 90_000;

/** Of it so much at once, some 3,000 transfers; the next time it goes on from there. */
const AGAIN_BYTES = 512 * 1024;

/** Peers whose last greeting is remembered. */
const MAX_GREETED = 1_000;

/** Refusals that no state can explain: nobody who looked at it would have relayed it. */
const SENDERS_FAULT: ReadonlySet<string> = new Set<PoolErrorCode>([
  "INTRINSIC_GAS_TOO_LOW",
  "GAS_LIMIT_EXCEEDED",
  "TIP_ABOVE_FEE_CAP",
  "INVALID_CHAIN_ID",
  "UNPROTECTED",
  "TYPE_NOT_SUPPORTED",
  "INVALID_SENDER",
  "TRANSACTION_TOO_LARGE",
  "INITCODE_TOO_LARGE",
  "INVALID_TRANSACTION",
]);

/**
 * Codes of the SDK that depend on a node's head or settings, or on its release where the chain is of
 * version 1 of the rules: whoever passed it on had another one.
 */
const STATE_CODES: ReadonlySet<unknown> = new Set([
  SDK_CODE.insufficientFunds,
  SDK_CODE.insufficientFee,
  SDK_CODE.timeoutHeight,
  SDK_CODE.wrongSequence,
  SDK_CODE.timeout,
  SDK_CODE.memoTooLarge,
]);

/**
 * Refusals that may come before the signature is looked at. Who has another head, other prices or more
 * room looks at it, and holds a false one against whoever passed it on: such a transaction goes no further
 * from here.
 */
const UNJUDGED: ReadonlySet<string> = new Set<PoolErrorCode>([
  "GAS_PRICE_BELOW_MINIMUM",
  "UNDERPRICED",
  "POOL_FULL",
  "NODE_HALTED",
]);

/** The same of Cosmos transactions, codes of the SDK. */
const UNJUDGED_SDK_CODES: ReadonlySet<unknown> = new Set([
  SDK_CODE.insufficientFee,
  SDK_CODE.timeoutHeight,
  SDK_CODE.timeout,
  SDK_CODE.memoTooLarge,
]);

/** A transaction that is to go out. */
interface Pending {
  readonly hash: Hash32;
  readonly raw: Uint8Array;
}

/** Transactions of one kind that go out together: who gets them passes on those of the EVM at once. */
interface Batch {
  items: Pending[];
  sizeBytes: number;
}

interface Newcomer {
  readonly neighbour: TransactionNeighbour;
  readonly dueMs: number;
}

/** A transaction of peers' batches that the pool is looking at. */
interface Judged {
  /** Batches with it. */
  batchCount: number;
  /** Whether one of them goes on with it. */
  isPassedOn: boolean;
  /** Whether it became executable meanwhile: by one of them, or because a client sent it here. */
  isExecutable: boolean;
}

/** The pool's side of gossip. */
export class TransactionGossip {
  /** What goes on with its batch, and is not to be published from here as well. */
  private readonly judged = new Map<Hash32, Judged>();
  private readonly greetedAtMs = new LRUCache<NodeId, number>({ max: MAX_GREETED });
  /** Peers that are to be greeted. */
  private readonly newcomers = new Map<NodeId, Newcomer>();
  private readonly submissions: PeerSubmissions;
  private readonly wakeup = createWakeup();
  private readonly batches: Readonly<Record<"evm" | "cosmos", Batch>> = {
    evm: { items: [], sizeBytes: 0 },
    cosmos: { items: [], sizeBytes: 0 },
  };
  private againDueMs: number;
  /** How many of those that are to be told again have been, in this round. */
  private againCount = 0;
  private isTellingAgain = false;

  constructor(private readonly ports: TransactionGossipPorts) {
    this.submissions = new PeerSubmissions(ports.pool, ports.clock);
    this.againDueMs = ports.clock.monotonicMs() + AGAIN_INTERVAL_MS;
  }

  /** Transactions became executable here; of those of a peer's batch it is known when it is judged. */
  onAdmitted(transactions: readonly PendingTransaction[]): void {
    for (const { tx } of transactions) {
      const judged = this.judged.get(tx.hash);
      if (judged === undefined) this.put(tx);
      else judged.isExecutable = true;
    }
    if (Object.values(this.batches).some(({ items }) => items.length > 0)) this.wakeup.wake();
  }

  /** A batch that came by gossip, from the peer that handed it on. */
  async onGossip(bytes: Uint8Array, from: NodeId): Promise<Verdict> {
    let raws: readonly Uint8Array[];
    try {
      raws = decodeTransactions(bytes);
    } catch {
      return "invalid";
    }
    const hashes = raws.map(hashOfRaw);
    for (const hash of hashes) this.startJudging(hash);
    let answers: readonly unknown[] = [];
    let passedOn: readonly Uint8Array[];
    try {
      answers = await this.submissions.submit(raws, from);
    } finally {
      passedOn = raws.filter((raw, index) => this.isPassedOn(raw, hashes[index], answers[index]));
    }
    const taken = raws.filter((_, index) => !(answers[index] instanceof Error));
    const isInvalid = answers.some(isSendersFault);
    if (passedOn.length === 0) return isInvalid ? "invalid" : "drop";
    const isGapped =
      passedOn.length < taken.length ||
      hashes.some((hash, index) => {
        return answers[index] instanceof Error && this.ports.pool.status(hash).status === "queued";
      });
    if (!isGapped && !isInvalid && !answers.some(isUnjudged)) return "relay";
    // Also of a liar: others' transactions that he sends with a false one would end here.
    this.ports.publish(encodeTransactions(passedOn));
    return isInvalid ? "invalid" : "used";
  }

  /** A batch with this transaction goes to the pool. */
  private startJudging(hash: Hash32): void {
    const judged = this.judged.get(hash);
    if (judged !== undefined) judged.batchCount++;
    else this.judged.set(hash, { batchCount: 1, isPassedOn: false, isExecutable: false });
  }

  /** Whether a transaction goes on with its batch; where it goes on with none, it may have to from here. */
  private isPassedOn(raw: Uint8Array, hash: Hash32 | undefined, answer: unknown): boolean {
    const judged = hash === undefined ? undefined : this.judged.get(hash);
    if (hash === undefined || judged === undefined) return false;
    const isPassedOn = !(answer instanceof Error) && this.isForBlocks(hash);
    if (isPassedOn) judged.isPassedOn = true;
    judged.batchCount--;
    if (judged.batchCount > 0) return isPassedOn;
    this.judged.delete(hash);
    // A client sent it here at the same time, and peers' copies were refused because the pool had it.
    if (judged.isExecutable && !judged.isPassedOn && this.isForBlocks(hash)) {
      this.put({ hash, raw });
      this.wakeup.wake();
    }
    return isPassedOn;
  }

  /** Whether a peer's batch is looked at now. */
  isHeard(from: NodeId, batch: Uint8Array): boolean {
    return this.submissions.isHeard(from, batch);
  }

  /** A peer was banned. */
  forget(from: NodeId): void {
    this.submissions.forget(from);
  }

  /**
   * A batch that a peer sent to this node alone. What is new in it is published from here: others
   * may have been apart from that peer, too.
   */
  async onDirect(raws: readonly Uint8Array[], from: NodeId): Promise<void> {
    const answers = await this.submissions.submit(raws, from);
    if (answers.some(isSendersFault)) this.ports.report(from, "invalidMessage");
  }

  /**
   * Whether blocks may take it, or have. What waits for another nonce, or has left the pool again without
   * a dearer one in its place, costs its sender nothing: it would go through the network without end.
   */
  private isForBlocks(hash: Hash32): boolean {
    const { status } = this.ports.pool.status(hash);
    return status === "pending" || status === "included" || status === "replaced";
  }

  /** A peer has joined: it is sent what is pending. */
  add(neighbour: TransactionNeighbour): void {
    const { nodeId } = neighbour;
    const lastMs = this.greetedAtMs.get(nodeId) ?? Number.NEGATIVE_INFINITY;
    const soonestMs = this.ports.clock.monotonicMs() + GREETING_DELAY_MS;
    const dueMs = Math.max(soonestMs, lastMs + GREETING_INTERVAL_MS);
    this.newcomers.set(nodeId, { neighbour, dueMs });
    this.wakeup.wake();
  }

  /** A peer is gone. */
  remove(neighbour: TransactionNeighbour): void {
    if (this.newcomers.get(neighbour.nodeId)?.neighbour === neighbour) {
      this.newcomers.delete(neighbour.nodeId);
    }
  }

  /** Sends out batches until the signal fires. */
  async run(outer: AbortSignal): Promise<void> {
    const joined = joinSignals([outer]);
    const { signal } = joined;
    try {
      for (;;) {
        await this.wakeup.wait({ signal, timeoutMs: this.restMs() });
        await sleep(BATCH_MS, { signal });
        this.flushAll();
        this.greetNewcomers();
        // Beside the batches: it looks through the whole pool, a slice at a time. Its fault ends them, too.
        this.tellAgain(signal).catch((error: unknown) => joined.abort(error));
      }
    } finally {
      joined.abort();
    }
  }

  /** How long there may be nothing to do. */
  private restMs(): number {
    if (this.newcomers.size > 0) return GREETING_CHECK_MS;
    return Math.max(0, this.againDueMs - this.ports.clock.monotonicMs());
  }

  /** Publishes once more what clients sent here and no block holds, as far as it is due. */
  private async tellAgain(signal: AbortSignal): Promise<void> {
    const { clock } = this.ports;
    if (clock.monotonicMs() < this.againDueMs) return;
    this.againDueMs = clock.monotonicMs() + AGAIN_INTERVAL_MS;
    // The round that is under way takes the place of this one.
    if (this.isTellingAgain) return;
    this.isTellingAgain = true;
    try {
      await this.tellNextPart(signal);
    } finally {
      this.isTellingAgain = false;
    }
  }

  private async tellNextPart(signal: AbortSignal): Promise<void> {
    const { clock, pool } = this.ports;
    const from = this.againCount;
    let [count, sizeBytes] = [0, 0];
    this.againCount = 0;
    for (const { tx } of pool.promised(clock.monotonicMs() - AGAIN_INTERVAL_MS)) {
      const pause = breathe(signal, OWN_WORK);
      if (pause !== undefined) await pause;
      if (count++ < from) continue;
      if (sizeBytes >= AGAIN_BYTES) {
        this.againCount = count - 1;
        break;
      }
      this.put(tx);
      sizeBytes += tx.raw.length;
    }
    this.flushAll();
  }

  private greetNewcomers(): void {
    const { clock, load } = this.ports;
    const nowMs = clock.monotonicMs();
    for (const [nodeId, { neighbour, dueMs }] of this.newcomers) {
      // Keys are free, and a greeting is megabytes: it is given as what is asked for, in turns.
      if (nowMs < dueMs || !load.mayServe(nodeId)) continue;
      this.newcomers.delete(nodeId);
      this.greetedAtMs.set(nodeId, nowMs);
      const sizeBytes = load.serve(nodeId, () => this.greet(neighbour));
      load.served(nodeId, sizeBytes * MS_PER_BYTE);
    }
  }

  /** @returns bytes that were sent, which are encrypted later */
  private greet(neighbour: TransactionNeighbour): number {
    let sizeBytes = 0;
    for (const raws of greetingOf(this.ports.pool)) {
      neighbour.send({ type: "transactions", raws });
      for (const { length } of raws) sizeBytes += length;
    }
    return sizeBytes;
  }

  private put(item: Pending): void {
    const { raw } = item;
    const batch = this.batches[isCosmosBytes(raw) ? "cosmos" : "evm"];
    if (batch.sizeBytes + raw.length > BATCH_BYTES) this.flush(batch);
    batch.items.push(item);
    batch.sizeBytes += raw.length;
    if (batch.items.length >= MAX_BATCH_COUNT) this.flush(batch);
  }

  private flushAll(): void {
    for (const batch of Object.values(this.batches)) this.flush(batch);
  }

  private flush(batch: Batch): void {
    // While the node catches up, the next block often has what the one before made executable.
    const raws = batch.items.flatMap(({ hash, raw }) => {
      return this.ports.pool.status(hash).status === "pending" ? [raw] : [];
    });
    if (raws.length > 0) this.ports.publish(encodeTransactions(raws));
    batch.items = [];
    batch.sizeBytes = 0;
  }
}

/** The beginning of what is pending, in batches; each sender's transactions in nonce order. */
function greetingOf(pool: Pick<NetworkPool, "senders">): Uint8Array[][] {
  const batches: Uint8Array[][] = [];
  let [batchBytes, totalBytes] = [0, 0];
  for (const [, { pending }] of pool.senders()) {
    for (const { tx } of pending) {
      if (totalBytes + tx.raw.length > GREETING_BYTES) return batches;
      const last = batches.at(-1);
      const isFull = batchBytes + tx.raw.length > BATCH_BYTES || last?.length === MAX_BATCH_COUNT;
      if (last === undefined || isFull) {
        batches.push([tx.raw]);
        batchBytes = 0;
      } else {
        last.push(tx.raw);
      }
      batchBytes += tx.raw.length;
      totalBytes += tx.raw.length;
    }
  }
  return batches;
}

function isUnjudged(answer: unknown): boolean {
  if (isUnseen(answer)) return true;
  if (answer instanceof AppError && answer.code === "SDK_FAULT") {
    return UNJUDGED_SDK_CODES.has(answer.details["sdkCode"]);
  }
  return answer instanceof Error && UNJUDGED.has(errorCode(answer));
}

function isSendersFault(answer: unknown): boolean {
  if (!(answer instanceof Error)) return false;
  if (answer instanceof AppError && answer.code === "SDK_FAULT") {
    return !STATE_CODES.has(answer.details["sdkCode"]);
  }
  return SENDERS_FAULT.has(errorCode(answer));
}
