/**
 * What a signer has signed within the last 24 hours, in a file of its own: a ledger that lies cannot
 * make it forget. Written before a signature leaves where the policy bounds the asset; where it does
 * not, written a little later, so that a bound that comes counts what was signed before it.
 */
import { readFileSync, statSync } from "node:fs";
import { AppError, errorCode } from "../../chain/errors.js";
import { replaceFile, SECRET_MODE } from "../../runtime/files/durable-file.js";
import type { Clock } from "../../runtime/process/clock.js";

/** A payment to be counted. */
export interface CountedPayment {
  /** The wallet and its nonce: the same payment on it again is the same payment. */
  readonly slot: string;
  readonly asset: string;
  readonly amountUnits: bigint;
  /** What is paid to whom, so that another payment on the nonce counts by itself. */
  readonly meaning: string;
}

/** The file cannot be read, or says what none of ours says. */
export class SignerTotalsError extends AppError<"SIGNER_TOTALS_UNREADABLE"> {}

const HOUR_MS = 3_600_000;

/** The present hour and the 24 before it: never less than a day. */
const WINDOW_HOURS = 25;

/**
 * Hours of an asset that are kept, the latest that something was signed in. By their number, not by the
 * clock: one that runs ahead for a moment would have the day forgotten.
 */
const MAX_HOURS = 200;

/**
 * Payments that are known one by one, the latest: as many as can be open at once. What is signed
 * anew behind them counts again.
 */
const MAX_KNOWN = 8_192;

/** How long what no bound asks for may be in memory alone. */
const FLUSH_MS = 5_000;

/** Sums by asset and hour since 1970, and the latest payments. */
interface Content {
  readonly sums: Map<string, Map<number, bigint>>;
  readonly known: Set<string>;
}

/**
 * The counter of one process, for all its wallets. Other processes of the home may write the file, too:
 * one that stood by and takes over counts on from what the one before it has signed.
 */
export class SignerTotals {
  readonly #file: string;
  readonly #clock: Clock;
  #content: Content;
  /** Which file it was read from, or written to. */
  #seen: string | undefined;
  /** Counted, and not written, with their hours. */
  #unwritten: { readonly payment: CountedPayment; readonly hour: number }[] = [];
  #last: Promise<unknown> = Promise.resolve();
  /** Set while something is counted that is not on disk. */
  #flushing: NodeJS.Timeout | undefined;

  /** @throws SIGNER_TOTALS_UNREADABLE; a missing file has counted nothing */
  constructor(file: string, clock: Clock) {
    this.#file = file;
    this.#clock = clock;
    this.#seen = versionOf(file);
    this.#content = readContent(file);
  }

  /**
   * Runs one judgement with its counting after the other: two wallets share what a day allows.
   * @throws SIGNER_TOTALS_UNREADABLE where another process has left a file that cannot be read
   */
  exclusively<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(() => {
      this.#readAnew();
      return work();
    });
    this.#last = result.catch(() => undefined);
    return result;
  }

  /** What was signed of an asset within the last 24 hours, or an hour more. */
  signedUnits(asset: string): bigint {
    const since = this.#hour() - WINDOW_HOURS;
    let sum = 0n;
    for (const [hour, units] of this.#content.sums.get(asset) ?? []) {
      if (hour > since) sum += units;
    }
    return sum;
  }

  /** Whether this very payment was counted. */
  isKnown(payment: CountedPayment): boolean {
    return this.#content.known.has(keyOf(payment));
  }

  /**
   * Counts payments that are about to be signed; resolves when that is on disk. Called within
   * `exclusively`. Throws the system's fault, with nothing counted.
   */
  async count(payments: readonly CountedPayment[]): Promise<void> {
    const fresh = payments.filter((payment) => !this.isKnown(payment));
    if (fresh.length === 0) return;
    await this.#write(this.#with(fresh));
  }

  /**
   * Counts payments of assets without a bound; on disk within `FLUSH_MS`, or with the next `count`.
   * Called within `exclusively`.
   */
  note(payments: readonly CountedPayment[]): void {
    const fresh = payments.filter((payment) => !this.isKnown(payment));
    if (fresh.length === 0) return;
    const hour = this.#hour();
    const { sums, known } = this.#content;
    for (const payment of fresh) {
      addTo(sums, payment, hour);
      known.add(keyOf(payment));
      this.#unwritten.push({ payment, hour });
    }
    // On a disk that is full for long; what is dropped here is still in the sums.
    this.#unwritten = this.#unwritten.slice(-MAX_KNOWN);
    for (const oldest of known) {
      if (known.size <= MAX_KNOWN) break;
      known.delete(oldest);
    }
    this.#flushing ??= setTimeout(() => {
      // A disk that is full takes it later; what has a bound is not signed meanwhile.
      this.flush().catch(() => undefined);
    }, FLUSH_MS).unref();
  }

  /** Writes what is in memory alone. Throws the system's fault. */
  flush(): Promise<void> {
    return this.exclusively(async () => {
      if (this.#flushing === undefined) return;
      clearTimeout(this.#flushing);
      this.#flushing = undefined;
      await this.#write(this.#with([]));
    });
  }

  async #write(next: Content): Promise<void> {
    await replaceFile(this.#file, encode(next), SECRET_MODE);
    this.#seen = versionOf(this.#file);
    this.#content = next;
    this.#unwritten = [];
  }

  /** Takes over what another process of the home has written since; a file that is gone says nothing. */
  #readAnew(): void {
    const version = versionOf(this.#file);
    if (version === undefined || version === this.#seen) return;
    this.#content = readContent(this.#file);
    this.#seen = version;
    const { sums, known } = this.#content;
    for (const { payment, hour } of this.#unwritten) {
      if (known.has(keyOf(payment))) continue;
      addTo(sums, payment, hour);
      known.add(keyOf(payment));
    }
  }

  #with(payments: readonly CountedPayment[]): Content {
    const hour = this.#hour();
    const sums = new Map(
      [...this.#content.sums].map(([asset, hours]) => {
        return [asset, new Map([...hours].slice(-MAX_HOURS))] as const;
      }),
    );
    for (const payment of payments) addTo(sums, payment, hour);
    const known = [...this.#content.known, ...payments.map(keyOf)].slice(-MAX_KNOWN);
    return { sums, known: new Set(known) };
  }

  #hour(): number {
    return Math.floor(this.#clock.nowMs() / HOUR_MS);
  }
}

function addTo(sums: Content["sums"], { asset, amountUnits }: CountedPayment, hour: number): void {
  const hours = sums.get(asset) ?? new Map<number, bigint>();
  hours.set(hour, (hours.get(hour) ?? 0n) + amountUnits);
  sums.set(asset, hours);
}

function keyOf({ slot, meaning }: CountedPayment): string {
  return `${slot} ${meaning}`;
}

/** Every write makes another file; undefined where there is none, or it cannot be looked at. */
function versionOf(file: string): string | undefined {
  try {
    const { ino, mtimeNs, size } = statSync(file, { bigint: true });
    return `${ino} ${mtimeNs} ${size}`;
  } catch {
    // Whoever has to write it hears of the fault.
    return undefined;
  }
}

function encode({ sums, known }: Content): string {
  const plain = [...sums].map(([asset, hours]) => [
    asset,
    [...hours].map(([hour, units]) => [hour, units.toString()]),
  ]);
  return `${JSON.stringify({ format: 1, sums: plain, known: [...known] })}\n`;
}

function readContent(file: string): Content {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    if (errorCode(cause) === "ENOENT") return { sums: new Map(), known: new Set() };
    throw unreadable(file, cause);
  }
  try {
    return parse(JSON.parse(text));
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
  const sums = list(read("sums")).map((entry) => {
    const [asset, hours] = list(entry);
    const byHour = list(hours).map((pair) => {
      const [hour, units] = list(pair);
      if (typeof hour !== "number") throw new TypeError("an hour is missing");
      return [hour, BigInt(text(units))] as const;
    });
    return [text(asset), new Map(byHour)] as const;
  });
  return { sums: new Map(sums), known: new Set(list(read("known")).map(text)) };
}

function unreadable(file: string, cause: unknown): SignerTotalsError {
  return new SignerTotalsError(
    "SIGNER_TOTALS_UNREADABLE",
    `${file} is damaged, and with it what was signed today: look at what was paid, then delete it`,
    { details: { file }, cause },
  );
}
