/**
 * Work on signatures in a thread of its own: two thirds of what a transfer costs, beside the block
 * producer and the servers instead of before them. The thread is a help, never a need: what it
 * does not answer is found out here.
 */
import { Worker } from "node:worker_threads";
import type { Address } from "../../../chain/address.js";
import type { SignatureCheck } from "../../../chain/cosmos/ante.js";
import type { SignedTransaction } from "../../../chain/transaction.js";
import type { Logger } from "../../../runtime/process/logger.js";
import {
  packChecks,
  packQuestion,
  type RecoveryAnswer,
  type RecoveryKind,
  unpackAnswer,
  unpackChecks,
} from "./protocol.js";
import { InlineRecovery, type SenderRecovery } from "./sender-recovery.js";

/** Heap of the thread; it keeps nothing between two calls. */
const THREAD_HEAP_MEGABYTES = 64;

/** Its young generation: what it makes dies at once, and it need not be as large as the node's. */
const THREAD_YOUNG_MEGABYTES = 12;

/** Calls with fewer transactions are done here when the thread would only be woken for them. */
const LEAST_WORTH_WAKING = 4;

/** Signatures that the thread has at once, some 0.2 s of work; further calls wait their turn. */
const MAX_SENT_COUNT = 4_096;

/** What the recovery thread is started with. */
export interface RecoveryThreadOptions {
  readonly log: Logger;
  /** Entry of the thread, where it does not lie compiled beside this file. */
  readonly workerUrl?: URL;
}

type Senders = readonly (Address | undefined)[];

/** A question of either kind. */
interface Call {
  readonly kind: RecoveryKind;
  readonly count: number;
  /** The records of the question. */
  readonly pack: () => Uint8Array<ArrayBuffer>;
  readonly answered: (records: Uint8Array) => void;
  /** Answers it without the thread. */
  readonly answerHere: () => void;
}

interface Thread {
  readonly worker: Worker;
  isReady: boolean;
  /** Why it ended, if it said so. */
  fault: unknown;
}

/** One recovery thread after the other. */
export class RecoveryThread implements SenderRecovery {
  private readonly inline = new InlineRecovery();
  private readonly sent = new Map<number, Call>();
  private waiting: Call[] = [];
  private sentCount = 0;
  private nextId = 1;
  private thread: Thread | undefined;
  /** False when it is closed, or when a thread never came up: the next would not either. */
  private mayStart = true;

  constructor(private readonly options: RecoveryThreadOptions) {
    this.start();
  }

  /** See `SenderRecovery`; never rejects. */
  recover(transactions: readonly SignedTransaction[]): Promise<Senders> {
    const here = () => this.inline.recover(transactions);
    if (this.isInline(transactions.length)) return here();
    return this.ask("senders", transactions.length, {
      pack: () => packQuestion(transactions),
      unpack: unpackAnswer,
      here,
    });
  }

  /** See `SenderRecovery`; never rejects. */
  verify(checks: readonly SignatureCheck[]): Promise<readonly boolean[]> {
    const here = () => this.inline.verify(checks);
    if (this.isInline(checks.length)) return here();
    return this.ask("checks", checks.length, {
      pack: () => packChecks(checks),
      unpack: unpackChecks,
      here,
    });
  }

  private isInline(count: number): boolean {
    if (this.thread === undefined && this.mayStart) this.start();
    const isTooSmall = count < LEAST_WORTH_WAKING && this.sentCount === 0;
    return isTooSmall || this.thread?.isReady !== true;
  }

  private ask<Answer>(
    kind: RecoveryKind,
    count: number,
    parts: {
      readonly pack: () => Uint8Array<ArrayBuffer>;
      readonly unpack: (records: Uint8Array) => Answer;
      readonly here: () => Promise<Answer>;
    },
  ): Promise<Answer> {
    return new Promise((resolve) => {
      const { pack, unpack, here } = parts;
      const answered = (records: Uint8Array) => resolve(unpack(records));
      this.waiting.push({ kind, count, pack, answered, answerHere: () => resolve(here()) });
      this.send();
    });
  }

  /** Ends the thread; what it has not answered is recovered here. */
  async close(): Promise<void> {
    this.mayStart = false;
    const { thread } = this;
    this.lost();
    await thread?.worker.terminate();
  }

  private start(): void {
    const url = this.options.workerUrl ?? new URL("./recovery-worker.js", import.meta.url);
    let worker: Worker;
    try {
      worker = new Worker(url, {
        resourceLimits: {
          maxOldGenerationSizeMb: THREAD_HEAP_MEGABYTES,
          maxYoungGenerationSizeMb: THREAD_YOUNG_MEGABYTES,
        },
      });
    } catch (error) {
      // The system gives no more threads.
      this.mayStart = false;
      this.options.log.error({ err: error }, "the sender recovery thread cannot be made");
      return;
    }
    const thread: Thread = { worker, isReady: false, fault: undefined };
    this.thread = thread;
    worker.on("message", (answer: RecoveryAnswer) => this.received(thread, answer));
    worker.on("error", (error) => {
      thread.fault = error;
    });
    worker.on("exit", () => this.exited(thread));
  }

  /** Hands over what waits, as far as there is room; a call alone may be larger than that. */
  private send(): void {
    const { thread } = this;
    for (let call = this.waiting[0]; call !== undefined; call = this.waiting[0]) {
      const { kind, count } = call;
      if (this.sentCount > 0 && this.sentCount + count > MAX_SENT_COUNT) return;
      this.waiting.shift();
      const id = this.nextId++;
      this.sent.set(id, call);
      this.sentCount += count;
      const records = call.pack();
      thread?.worker.postMessage({ id, kind, records }, [records.buffer]);
    }
  }

  private received(thread: Thread, answer: RecoveryAnswer): void {
    if (thread !== this.thread) return;
    if (answer === "ready") {
      thread.isReady = true;
      return;
    }
    const call = this.sent.get(answer.id);
    if (call === undefined) return;
    this.sent.delete(answer.id);
    this.sentCount -= call.count;
    this.send();
    call.answered(answer.records);
  }

  private exited(thread: Thread): void {
    if (thread !== this.thread) return;
    const { isReady, fault } = thread;
    if (!isReady) this.mayStart = false;
    this.options.log.error({ err: fault, isReady }, "the sender recovery thread died");
    this.lost();
  }

  /** The thread is gone: everything that it had or would have got is done here, in order. */
  private lost(): void {
    this.thread = undefined;
    const calls = [...this.sent.values(), ...this.waiting];
    this.sent.clear();
    this.waiting = [];
    this.sentCount = 0;
    for (const call of calls) call.answerHere();
  }
}
