/**
 * What the signers of a home have signed within the last 24 hours, and for which nonces persons' approvals
 * were used, in a file of its own: a ledger that lies cannot make it forget. Read, judged and written under
 * the lock `<file>.lock`, and before a signature leaves, where the policy bounds the asset or wants signed
 * approvals; where it does not, written a little later, so that a bound that comes counts what was signed
 * before it.
 */
import { readFileSync } from "node:fs";
import { AppError, errorCode } from "../../chain/errors.js";
import { replaceFile, SECRET_MODE } from "../../runtime/files/durable-file.js";
import { awaitLockFile, type HeldLock, LockHeldError } from "../../runtime/files/lock-file.js";
import type { Clock } from "../../runtime/process/clock.js";
import { limitedSignal } from "../../runtime/process/task.js";

/** A payment to be counted. */
export interface CountedPayment {
  /** The wallet and its nonce: the same payment on it again is the same payment. */
  readonly slot: string;
  readonly asset: string;
  readonly amountUnits: bigint;
  /** What is paid to whom, so that another payment on the nonce counts by itself. */
  readonly meaning: string;
  /** The withdrawal, where persons have signed for it: they did so for one payment. */
  readonly approvedId?: string | undefined;
  /** It is counted already, by whoever signed it first: only what persons have signed for is kept of it. */
  readonly isSignedBefore?: boolean;
}

/**
 * SIGNER_TOTALS_UNREADABLE: the file says what none of ours says, or cannot be read at a start.
 * SIGNER_TOTALS_BUSY: another process keeps the lock; nothing was counted, and asking again may help.
 */
export class SignerTotalsError extends AppError<
  "SIGNER_TOTALS_UNREADABLE" | "SIGNER_TOTALS_BUSY"
> {}

const HOUR_MS = 3_600_000;

/** The present hour and the 24 before it: never less than a day. */
const WINDOW_HOURS = 25;

/**
 * Hours of an asset that are kept, the latest that something was signed in. By their number, not by the
 * clock: one that runs ahead for a moment would have the day forgotten.
 */
const MAX_HOURS = 200;

/**
 * Payments that are known one by one, the latest of all wallets: as many as one of them can have open at
 * once. Of what is signed anew behind them the former bytes say that it was, or it counts again.
 */
const MAX_KNOWN = 8_192;

/**
 * Withdrawals whose approvals were used, the latest: some 5 MB of the file. Persons sign for so many in
 * years, and what they signed counts only until the policy changes.
 */
const MAX_APPROVED = 50_000;

/** How long what no bound asks for may be in memory alone. */
const FLUSH_MS = 5_000;

/** The lock is held for some milliseconds: whoever keeps it for longer hangs. */
const PATIENCE_MS = 5_000;

/** Units by asset and hour since 1970. */
type Sums = Map<string, Map<number, bigint>>;

/** What the file says: sums, the latest payments, the slots of approved withdrawals, hours to come. */
interface Content {
  readonly sums: Sums;
  readonly known: Set<string>;
  readonly approved: ReadonlyMap<string, string>;
  /**
   * Hours that were still to come when they were looked at, with the hour of that look: the clock had run
   * ahead, or is late now.
   */
  readonly ahead: Map<number, number>;
}

/** A payment with the hour that it was signed in. */
interface Noted {
  readonly payment: CountedPayment;
  readonly hour: number;
}

/**
 * The counter of one process, for all its wallets. Other processes of the home count in the same file, at
 * the same time: what stands there is read anew under the lock before anything is judged by it.
 */
export class SignerTotals {
  readonly #file: string;
  readonly #clock: Clock;
  /** What the file said when it was read or written last, and its bytes. */
  #content: Content = {
    sums: new Map(),
    known: new Set(),
    approved: new Map(),
    ahead: new Map(),
  };
  #bytes: Uint8Array | undefined;
  /** Counted in memory alone, by `keyOf`, the oldest first. */
  readonly #noted = new Map<string, Noted>();
  /** The sums of those that were too many to be known one by one. */
  readonly #unnamed: Sums = new Map();
  #last: Promise<unknown> = Promise.resolve();
  /** Set while this process holds the lock, or could not let go of it. */
  #lock: HeldLock | undefined;
  /** Set while something noted waits to be written. */
  #flushing: NodeJS.Timeout | undefined;

  /** @throws SIGNER_TOTALS_UNREADABLE; a missing file has counted nothing */
  constructor(file: string, clock: Clock) {
    this.#file = file;
    this.#clock = clock;
    try {
      this.#readAnew();
    } catch (cause) {
      throw cause instanceof SignerTotalsError ? cause : unreadable(file, cause);
    }
  }

  /**
   * Runs one judgement with its counting after the other, over all processes of the home: two wallets
   * share what a day allows. Throws the system's fault where the disk does not take the lock.
   * @throws SIGNER_TOTALS_BUSY where another process keeps the lock; SIGNER_TOTALS_UNREADABLE where one
   *   has left a file that says nothing; the signal's reason
   */
  exclusively<T>(work: () => Promise<T>, { signal }: { readonly signal: AbortSignal }): Promise<T> {
    // From here on: who stands behind others that wait for the lock waits no longer than they do.
    const patience = limitedSignal([], PATIENCE_MS);
    const result = this.#last.then(async () => {
      await this.#takeLock({ patience, signal });
      try {
        this.#readAnew();
        return await work();
      } finally {
        await this.#dropLock();
      }
    });
    this.#last = result.catch(() => undefined);
    return result;
  }

  /**
   * Reads what other processes have counted, for a judgement that is made again before a signature.
   * @throws SIGNER_TOTALS_UNREADABLE
   */
  look(): void {
    try {
      this.#readAnew();
    } catch (error) {
      // A disk that does not answer: whoever is to be signed for hears of it.
      if (error instanceof SignerTotalsError) throw error;
    }
  }

  /**
   * What was signed of an asset within the last 24 hours, or an hour more; by a clock that ran ahead, within
   * as long behind the first look since.
   */
  signedUnits(asset: string): bigint {
    const now = this.#hour();
    let sum = 0n;
    for (const { sums } of [this.#content, { sums: this.#unnamed }]) {
      for (const [hour, units] of sums.get(asset) ?? []) {
        if (this.#isOfDay(hour, now)) sum += units;
      }
    }
    for (const { payment, hour } of this.#noted.values()) {
      if (payment.asset === asset && this.#isOfDay(hour, now)) sum += payment.amountUnits;
    }
    return sum;
  }

  /**
   * Which clock was wrong nobody knows: an hour to come stays what it is, and counts by itself once the clock
   * says so; until then by the first look at it, which may have been ahead itself.
   */
  #isOfDay(hour: number, now: number): boolean {
    const { ahead } = this.#content;
    if (hour <= now) {
      ahead.delete(hour);
      return hour > now - WINDOW_HOURS;
    }
    const seen = ahead.get(hour);
    if (seen === undefined) ahead.set(hour, now);
    return seen === undefined || this.#isOfDay(seen, now);
  }

  /** Whether this very payment was counted. */
  isKnown(payment: CountedPayment): boolean {
    const key = keyOf(payment);
    return this.#content.known.has(key) || this.#noted.has(key);
  }

  /** The slot for which a withdrawal's approvals were used; undefined where they were not. */
  slotOf(approvedId: string): string | undefined {
    return this.#content.approved.get(approvedId);
  }

  /**
   * Counts payments that are about to be signed; resolves when that is on disk. Called within
   * `exclusively`. Throws the system's fault, with nothing counted.
   */
  async count(payments: readonly CountedPayment[]): Promise<void> {
    const fresh = payments.filter(
      (payment) => payment.isSignedBefore !== true && !this.isKnown(payment),
    );
    const approved = payments.flatMap(({ approvedId, slot }) =>
      approvedId === undefined || this.slotOf(approvedId) !== undefined
        ? []
        : [[approvedId, slot] as const],
    );
    if (fresh.length + approved.length === 0) return;
    await this.#write(fresh, approved);
  }

  /** Counts payments of assets without a bound; on disk within `FLUSH_MS`, or with the next `count`. */
  note(payments: readonly CountedPayment[]): void {
    const fresh = payments.filter((payment) => !this.isKnown(payment));
    if (fresh.length === 0) return;
    const hour = this.#hour();
    for (const payment of fresh) this.#noted.set(keyOf(payment), { payment, hour });
    // On a disk that is full for long; what is not known by its name is still in the sums.
    for (const [key, oldest] of this.#noted) {
      if (this.#noted.size <= MAX_KNOWN) break;
      this.#noted.delete(key);
      addTo(this.#unnamed, oldest);
    }
    this.#flushing ??= setTimeout(() => {
      // A disk that is full takes it later; what has a bound is not signed meanwhile.
      this.flush().catch(() => undefined);
    }, FLUSH_MS).unref();
  }

  /**
   * Writes what is in memory alone. Throws the system's fault.
   * @throws SIGNER_TOTALS_BUSY, SIGNER_TOTALS_UNREADABLE
   */
  async flush(): Promise<void> {
    clearTimeout(this.#flushing);
    this.#flushing = undefined;
    const isWritten = () => this.#noted.size === 0 && this.#unnamed.size === 0;
    if (isWritten()) return;
    // Nobody may end it before its time: what is not written now is forgotten with the process.
    const { signal } = new AbortController();
    await this.exclusively(
      async () => {
        if (!isWritten()) await this.#write([]);
      },
      { signal },
    );
  }

  /** Under the lock, and behind `#readAnew`: what others have counted is kept. */
  async #write(
    payments: readonly CountedPayment[],
    approved: readonly (readonly [string, string])[] = [],
  ): Promise<void> {
    const hour = this.#hour();
    const added = [...this.#noted.values(), ...payments.map((payment) => ({ payment, hour }))];
    const unnamed = entriesOf(this.#unnamed);
    const next = {
      ...grown(this.#withoutPast(hour), added, unnamed),
      approved: this.#approvedWith(approved),
      ahead: new Map([...this.#content.ahead].slice(-MAX_HOURS)),
    };
    const bytes = encode(next);
    await replaceFile(this.#file, bytes, SECRET_MODE);
    this.#content = next;
    this.#bytes = bytes;
    for (const { payment } of added) this.#noted.delete(keyOf(payment));
    // More may have come to them meanwhile.
    for (const { asset, hour: then, units } of unnamed) {
      addUnits(this.#unnamed, { asset, hour: then, units: -units });
    }
  }

  /** The content without hours to come whose day is over: they would have another one once they come. */
  #withoutPast(now: number): Content {
    const sums: Sums = new Map();
    for (const { asset, hour, units } of entriesOf(this.#content.sums)) {
      if (hour <= now || this.#isOfDay(hour, now)) addUnits(sums, { asset, hour, units });
    }
    return { ...this.#content, sums };
  }

  #approvedWith(more: readonly (readonly [string, string])[]): ReadonlyMap<string, string> {
    const { approved } = this.#content;
    return more.length === 0 ? approved : new Map([...approved, ...more].slice(-MAX_APPROVED));
  }

  /**
   * Takes over what other processes of the home have written. A file that is gone says nothing, and one that
   * somebody has put there from a backup nothing less: what was signed by this process's knowledge stays.
   */
  #readAnew(): void {
    let bytes: Uint8Array;
    try {
      bytes = readFileSync(this.#file);
    } catch (error) {
      if (errorCode(error) === "ENOENT") return;
      throw error;
    }
    if (this.#bytes !== undefined && Buffer.compare(this.#bytes, bytes) === 0) return;
    this.#content = joined(this.#content, decode(this.#file, bytes));
    this.#bytes = bytes;
    // Whoever took a wallet over has signed the same payment on the same nonce.
    for (const key of this.#noted.keys()) {
      if (this.#content.known.has(key)) this.#noted.delete(key);
    }
  }

  async #takeLock(options: {
    readonly patience: AbortSignal;
    readonly signal: AbortSignal;
  }): Promise<void> {
    // A lock whose release failed earlier is released first.
    await this.#dropLock();
    try {
      this.#lock = await awaitLockFile(`${this.#file}.lock`, options);
    } catch (cause) {
      if (!(cause instanceof LockHeldError)) throw cause;
      const message = `for ${PATIENCE_MS / 1_000} s ${cause.message}`;
      throw new SignerTotalsError("SIGNER_TOTALS_BUSY", message, {
        details: cause.details,
        retriable: true,
        cause,
      });
    }
  }

  async #dropLock(): Promise<void> {
    await this.#lock?.release();
    this.#lock = undefined;
  }

  #hour(): number {
    return Math.floor(this.#clock.nowMs() / HOUR_MS);
  }
}

/**
 * Two contents of one home: what either knows of. What the second one has not is older than what it has, and
 * is the first to be forgotten where there is too much.
 */
function joined(before: Content, read: Content): Content {
  const sums: Sums = new Map();
  for (const asset of new Set([...before.sums.keys(), ...read.sums.keys()])) {
    const [own, hours] = [before.sums.get(asset) ?? NONE, read.sums.get(asset) ?? NONE];
    const all = [...missingFrom(hours, own), ...hours];
    sums.set(asset, new Map(all.map(([hour, units]) => [hour, most(units, own.get(hour))])));
  }
  const forgotten = [...before.known].filter((key) => !read.known.has(key));
  return {
    sums,
    known: new Set([...forgotten, ...read.known].slice(-MAX_KNOWN)),
    approved: new Map(
      [...missingFrom(read.approved, before.approved), ...read.approved].slice(-MAX_APPROVED),
    ),
    ahead: new Map([...missingFrom(read.ahead, before.ahead), ...read.ahead].slice(-MAX_HOURS)),
  };
}

const NONE: ReadonlyMap<number, bigint> = new Map();

function missingFrom<Key, Value>(
  read: ReadonlyMap<Key, Value>,
  before: ReadonlyMap<Key, Value>,
): [Key, Value][] {
  return [...before].filter(([key]) => !read.has(key));
}

function most(units: bigint, others = 0n): bigint {
  return others > units ? others : units;
}

/** The content with more payments, and with sums whose payments are not known any more. */
function grown(
  content: Content,
  added: readonly Noted[],
  unnamed: readonly HourSum[],
): Pick<Content, "sums" | "known"> {
  const sums: Sums = new Map(
    [...content.sums].map(([asset, hours]) => {
      return [asset, new Map([...hours].slice(-MAX_HOURS))] as const;
    }),
  );
  for (const sum of unnamed) addUnits(sums, sum);
  for (const entry of added) addTo(sums, entry);
  const known = [...content.known, ...added.map(({ payment }) => keyOf(payment))];
  return { sums, known: new Set(known.slice(-MAX_KNOWN)) };
}

/** One cell of the sums. */
interface HourSum {
  readonly asset: string;
  readonly hour: number;
  readonly units: bigint;
}

function entriesOf(sums: Sums): readonly HourSum[] {
  return [...sums].flatMap(([asset, hours]) =>
    [...hours].map(([hour, units]) => ({ asset, hour, units })),
  );
}

function addTo(sums: Sums, { payment, hour }: Noted): void {
  addUnits(sums, { asset: payment.asset, hour, units: payment.amountUnits });
}

/** Adds units to an hour; what comes to nothing is not there. */
function addUnits(sums: Sums, { asset, hour, units }: HourSum): void {
  const hours = sums.get(asset) ?? new Map<number, bigint>();
  const sum = (hours.get(hour) ?? 0n) + units;
  if (sum === 0n) hours.delete(hour);
  else hours.set(hour, sum);
  if (hours.size === 0) sums.delete(asset);
  else sums.set(asset, hours);
}

function keyOf({ slot, meaning }: CountedPayment): string {
  return `${slot} ${meaning}`;
}

function encode({ sums, known, approved, ahead }: Content): Uint8Array {
  const plain = [...sums].map(([asset, hours]) => [
    asset,
    [...hours].map(([hour, units]) => [hour, units.toString()]),
  ]);
  // Left out where there are none, as in files from before.
  const used = approved.size === 0 ? undefined : [...approved];
  const toCome = ahead.size === 0 ? undefined : [...ahead];
  const value = { format: 1, sums: plain, known: [...known], approved: used, ahead: toCome };
  return Buffer.from(`${JSON.stringify(value)}\n`);
}

function decode(file: string, bytes: Uint8Array): Content {
  try {
    return parse(JSON.parse(Buffer.from(bytes).toString("utf8")));
  } catch (cause) {
    throw unreadable(file, cause);
  }
}

function parse(value: unknown): Content {
  const read = (name: string): unknown => Reflect.get(Object(value), name);
  const list = (item: unknown): readonly unknown[] => {
    if (!Array.isArray(item)) throw new TypeError("a list is missing");
    return item;
  };
  const text = (item: unknown): string => {
    if (typeof item !== "string") throw new TypeError("a text is missing");
    return item;
  };
  if (read("format") !== 1) throw new TypeError("another format");
  const number = (item: unknown): number => {
    if (typeof item !== "number") throw new TypeError("an hour is missing");
    return item;
  };
  const sums = list(read("sums")).map((entry) => {
    const [asset, hours] = list(entry);
    const byHour = list(hours).map((pair) => {
      const [hour, units] = list(pair);
      return [number(hour), BigInt(text(units))] as const;
    });
    return [text(asset), new Map(byHour)] as const;
  });
  const approved = list(read("approved") ?? []).map((entry) => {
    const [id, slot] = list(entry);
    return [text(id), text(slot)] as const;
  });
  const ahead = list(read("ahead") ?? []).map((entry) => {
    const [hour, seen] = list(entry).map(number);
    if (seen === undefined || !(Number(hour) > seen)) throw new TypeError("not seen ahead");
    return [Number(hour), seen] as const;
  });
  const known = new Set(list(read("known")).map(text));
  return { sums: new Map(sums), known, approved: new Map(approved), ahead: new Map(ahead) };
}

function unreadable(file: string, cause: unknown): SignerTotalsError {
  return new SignerTotalsError(
    "SIGNER_TOTALS_UNREADABLE",
    `${file} is damaged, and with it what was signed today: look at what was paid, then delete it`,
    { details: { file }, cause },
  );
}
