/**
 * Who asks for a text while it is made. Each client has a place in its own line, and the text is made for all
 * when the first of them has its turn: nobody waits for what another client has asked for besides.
 */
import { joinSignals } from "../../../../runtime/process/task.js";
import { Wanted } from "../../../../runtime/turns/wanted.js";
import type { LargeLane } from "../large-lane.js";
import type { CallContext } from "../method.js";

/** Somebody who asks. */
export type Asker = Pick<CallContext, "signal" | "client">;

/** The askers of one text. */
export class Askers {
  private readonly all: Asker[] = [];
  private race: Race | undefined;

  constructor(first: Asker) {
    this.add(first);
  }

  add(asker: Asker): void {
    this.all.push(asker);
    this.race?.add(asker);
  }

  /**
   * Waits for the first turn of a client. @returns gives it back
   * @param onLeft told that nobody is there any more, before another can ask
   * @throws as `LargeLane.enter` where no client is in line any more
   */
  async enter(lane: LargeLane, onLeft: () => void): Promise<() => void> {
    const everybody = new Wanted(this.all.map(({ signal }) => signal));
    if (everybody.signal.aborted) onLeft();
    everybody.signal.addEventListener("abort", onLeft);
    try {
      return await this.first(new Race(lane, everybody));
    } finally {
      everybody.release();
    }
  }

  /** The same, also where nobody is there any more. */
  enterAnyway(lane: LargeLane): Promise<() => void> {
    return this.first(new Race(lane, undefined));
  }

  private async first(race: Race): Promise<() => void> {
    this.race = race;
    for (const asker of this.all) race.add(asker);
    try {
      return await race.first;
    } finally {
      this.race = undefined;
    }
  }
}

/**
 * Lines that a text waits in: however many ask for it, there is room for others. They are those of the
 * clients that wait for least besides.
 */
const MAX_LINES = 8;

/** A client that waits. */
interface WaitingClient {
  readonly client: string;
  readonly wanted: Wanted;
}

/** A place in the lane. */
interface Line {
  /** What its client waited for already when it came. */
  readonly ahead: number;
  readonly leave: () => void;
}

/** The lines of clients that wait for the same. */
class Race {
  /** The first turn of a client. */
  readonly first: Promise<() => void>;
  private readonly clients = new Map<string, WaitingClient>();
  /** Those for whom there was no line yet, in order. */
  private readonly behind: WaitingClient[] = [];
  /** Those who have one. */
  private readonly lines = new Map<WaitingClient, Line>();
  private win: (giveBack: () => void) => void = () => undefined;
  private lose: (reason: unknown) => void = () => undefined;
  private isOver = false;
  /** Why a client has no place, which counts before another's going. */
  private refusal: unknown;
  /** The end of who is waited for anyway. */
  private readonly never = new AbortController().signal;

  /** @param everybody who is there at all; without it a line is left by nobody who goes */
  constructor(
    private readonly lane: LargeLane,
    private readonly everybody: Wanted | undefined,
  ) {
    this.first = new Promise((resolve, reject) => {
      [this.win, this.lose] = [resolve, reject];
    });
  }

  add({ client, signal }: Asker): void {
    if (this.isOver) return;
    const until = this.everybody === undefined ? this.never : signal;
    this.everybody?.add(until);
    const known = this.clients.get(client);
    if (known?.wanted.signal.aborted === false) {
      known.wanted.add(until);
      return;
    }
    const one = { client, wanted: new Wanted([until]) };
    this.clients.set(client, one);
    this.behind.push(one);
    this.fill();
    if (this.behind.at(-1) === one) this.takeLine(one);
  }

  /** Gives the last behind the line of who waits for most besides, if that is more than it does itself. */
  private takeLine(last: WaitingClient): void {
    const [longest] = [...this.lines].toSorted(([, one], [, other]) => other.ahead - one.ahead);
    if (longest === undefined) return;
    const [other, { ahead, leave }] = longest;
    if (ahead <= this.lane.waitingOf(last.client)) return;
    this.behind.pop();
    this.lines.delete(other);
    this.behind.push(other);
    leave();
    void this.enter(last);
  }

  /** Has as many in line as there may be. */
  private fill(): void {
    while (this.lines.size < MAX_LINES) {
      const next = this.behind.shift();
      if (next === undefined) return;
      void this.enter(next);
    }
  }

  private async enter(one: WaitingClient): Promise<void> {
    const joined = joinSignals([one.wanted.signal]);
    const ahead = this.lane.waitingOf(one.client);
    const line: Line = { ahead, leave: () => joined.abort() };
    this.lines.set(one, line);
    try {
      this.begin(one, await this.lane.enter(joined.signal, one.client));
    } catch (error) {
      // Another has its line, and it is behind.
      if (this.lines.get(one) !== line) return;
      if (!joined.signal.aborted) this.refusal ??= error;
      this.left(one, error);
    } finally {
      joined.release();
    }
  }

  private begin(one: WaitingClient, giveBack: () => void): void {
    if (this.isOver) {
      giveBack();
      return;
    }
    this.win(giveBack);
    this.end();
    for (const [other, { leave }] of this.lines) {
      if (other !== one) leave();
    }
  }

  private left(one: WaitingClient, reason: unknown): void {
    this.lines.delete(one);
    one.wanted.release();
    if (this.clients.get(one.client) === one) this.clients.delete(one.client);
    if (this.isOver) return;
    this.fill();
    if (this.lines.size > 0) return;
    this.lose(this.refusal ?? reason);
    this.end();
  }

  private end(): void {
    this.isOver = true;
    for (const { wanted } of [...this.clients.values(), ...this.behind]) wanted.release();
  }
}
