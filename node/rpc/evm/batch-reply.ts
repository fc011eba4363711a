/**
 * The answers of a batch, which its client gets together, with the last of them. What waits for a
 * slow call is bounded: a few hundred bytes ask for an answer of megabytes.
 */
import { LARGE_BYTES } from "./large-lane.js";
import type { CallContext } from "./method.js";

/** One answer to a request: pieces in order; undefined where nothing is to be answered. */
export type Reply = readonly (string | Buffer)[] | undefined;

/** Pieces of one call's answer; undefined for a notification. */
export type Answer = string | readonly (string | Buffer)[] | undefined;

/** Why a batch has no room for an answer. */
export type NoRoom = "RESPONSE_TOO_LARGE" | "LIMIT_EXCEEDED";

/** What a batch knows of its calls. */
export interface BatchRules {
  /** Its answer is kept however much there is: what was sent is sent. */
  isSent(entry: unknown): boolean;
  /** What its answer gives, nobody is given again. */
  isTaken(entry: unknown): boolean;
  refused(entry: unknown, why: NoRoom): Answer;
}

/** Largest batches for which there is room at once; others have a megabyte each. */
const BATCHES_HELD = 10;

/** A call as far as its batch ends it. */
export interface BatchedCall {
  /** There is no room for its answer. */
  refuse(): void;
  /** Its answer is made, and counted. */
  settled(): void;
}

/** What the batches of all clients hold of answers that were not handed over. */
export class BatchRoom {
  heldBytes = 0;

  /** @param batchBytes after so many bytes the rest of a batch is refused */
  constructor(readonly batchBytes: number) {}
}

/** A call that runs, or has its answer. */
interface Running {
  readonly entry: unknown;
  /** Undefined for a call that was never begun. */
  readonly call: BatchedCall | undefined;
  isMade: boolean;
  answer: Answer;
  ending: Promise<void> | undefined;
}

/** The answers of one batch in the order of its calls, from their start until they are handed over. */
export class BatchReply {
  private readonly running: Running[] = [];
  private readonly joined = new JoinedReply();
  private heldBytes = 0;

  constructor(
    private readonly room: BatchRoom,
    private readonly rules: BatchRules,
    context: Pick<CallContext, "afterReply">,
  ) {
    context.afterReply(() => {
      room.heldBytes -= this.heldBytes;
    });
  }

  /** Calls that were not joined. */
  get runningCount(): number {
    return this.running.length;
  }

  /** The rest of the batch is refused. */
  get isFull(): boolean {
    return this.heldBytes > this.room.batchBytes;
  }

  /** It goes on when few others do. */
  get isLarge(): boolean {
    return this.heldBytes > LARGE_BYTES;
  }

  /** Adds the next call. Its promise is never rejected: a fault is in its answer. */
  add(entry: unknown, answer: Answer | Promise<Answer>, call?: BatchedCall): void {
    const one: Running = { entry, call, isMade: false, answer: undefined, ending: undefined };
    this.running.push(one);
    if (!(answer instanceof Promise)) this.made(one, answer);
    else one.ending = answer.then((made) => this.made(one, made));
  }

  /** Waits for all that run. */
  async join(): Promise<void> {
    for (let [one] = this.running; one !== undefined; [one] = this.running) {
      if (!one.isMade) await one.ending;
      this.joined.add(one.answer);
      this.running.shift();
    }
  }

  /** All of them as one answer; undefined where there were notifications alone. */
  finish(): Reply {
    return this.joined.finish();
  }

  private made(one: Running, answer: Answer): void {
    one.isMade = true;
    const { room, rules } = this;
    const sizeBytes = sizeOf(answer);
    const isLarge = this.heldBytes + sizeBytes > LARGE_BYTES;
    const hasRoom = room.heldBytes + sizeBytes <= BATCHES_HELD * room.batchBytes;
    const isKept = hasRoom || !isLarge || rules.isSent(one.entry) || rules.isTaken(one.entry);
    this.keep(one, isKept ? answer : rules.refused(one.entry, "LIMIT_EXCEEDED"));
    if (this.isFull) this.dropRest();
    one.call?.settled();
  }

  /** Refuses what is behind the answers that fill the batch, made or not, as soon as these are made. */
  private dropRest(): void {
    const { rules, room } = this;
    let sizeBytes = this.joined.sizeBytes;
    for (const one of this.running) {
      const isBehind = sizeBytes > room.batchBytes && !rules.isSent(one.entry);
      if (isBehind && one.isMade) this.keep(one, rules.refused(one.entry, "RESPONSE_TOO_LARGE"));
      else if (isBehind) one.call?.refuse();
      sizeBytes += sizeOf(one.answer);
    }
  }

  private keep(one: Running, answer: Answer): void {
    const moreBytes = sizeOf(answer) - sizeOf(one.answer);
    one.answer = answer;
    this.heldBytes += moreBytes;
    this.room.heldBytes += moreBytes;
  }
}

function sizeOf(answer: Answer = ""): number {
  if (typeof answer === "string") return answer.length;
  return answer.reduce((sum, piece) => sum + piece.length, 0);
}

/** Joins answers, merging text so that few pieces are left. */
class JoinedReply {
  sizeBytes = 0;
  private readonly pieces: (string | Buffer)[] = [];
  private text = "";
  private count = 0;

  /** Adds the next answer; a notification has none. */
  add(answer: Answer): void {
    if (answer === undefined) return;
    this.text += this.count === 0 ? "[" : ",";
    this.count += 1;
    for (const piece of typeof answer === "string" ? [answer] : answer) {
      this.sizeBytes += piece.length;
      if (typeof piece === "string") {
        this.text += piece;
      } else {
        this.pieces.push(this.text, piece);
        this.text = "";
      }
    }
  }

  finish(): Reply {
    if (this.count === 0) return undefined;
    return [...this.pieces, `${this.text}]`];
  }
}
