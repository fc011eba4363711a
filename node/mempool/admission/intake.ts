/**
 * What is done on the ways into the pool: each decodes, checks what needs no state, and has the sender
 * recovered, once. Recovery of several calls may be under way together; they are
 * handed on one after the other, so that the order of receipt holds, and numbered in that order.
 */
import { setImmediate as nextTurn, setTimeout as rest } from "node:timers/promises";
import type { Address } from "../../../chain/address.js";
import {
  type SignatureCheck,
  senderOf,
  signatureFault,
  usualSignatureCheck,
} from "../../../chain/cosmos/ante.js";
import {
  type AnyTransaction,
  type CosmosTransaction,
  isCosmosBytes,
} from "../../../chain/cosmos/cosmos-transaction.js";
import { decodedBytes } from "../../../chain/cosmos/decoded-bytes.js";
import { ChainError } from "../../../chain/errors.js";
import type { Hash32 } from "../../../chain/hex.js";
import {
  decodeTransaction,
  effectiveGasPriceAtoken,
  signerMissing,
  type SignedTransaction,
} from "../../../chain/transaction.js";
import type { Atoken } from "../../../chain/units.js";
import type { Clock } from "../../../runtime/process/clock.js";
import { RestingLane } from "../../../runtime/turns/resting-lane.js";
import { ownFault, type PoolRules, sizeRefusal } from "./admission.js";
import { ownCosmosFault, readCosmos, sdkRefusal } from "./cosmos-admission.js";
import { DecodedRoom, type RoomShare } from "./decoded-room.js";
import { originOf, type Way } from "./ways.js";
import { createPoolEntry, type NewEntry, type PoolEntry } from "../order/pool-entry.js";
import { fromChainError, PoolError, refusalOf, underpriced } from "../pool-error.js";
import type { TransactionOrigin } from "../pool-port.js";
import type { SenderRecovery } from "../recovery/sender-recovery.js";

/** What the intake needs from its pool. */
export interface IntakePorts {
  readonly clock: Clock;
  readonly rules: PoolRules;
  /**
   * True for transactions that the pool has, and has journalled where the origin asks for that:
   * the answer is known before the costly recovery.
   */
  isKnown(hash: Hash32, origin: TransactionOrigin): boolean;
  /** Lowest effective price that can get in now, atoken per gas. */
  priceToReachAtoken(): Atoken;
  readonly recovery: SenderRecovery;
  /** The next number of an entry: above all others, whichever way they came. */
  nextSequence(): number;
  /** Where signatures of Cosmos transactions are looked at on this thread, whichever way they came. */
  readonly checking: RestingLane;
}

/** Plain transactions that are decoded before other work gets its turn: about 1 ms. */
const DECODED_PER_TURN = 256;
const DECODED_PER_MS = 256;

/** Entries that are made before other work gets its turn: about 1 ms, most of it their SDK hashes. */
const MADE_PER_TURN = 64;

/** The number of an entry that is not handed on yet. */
const UNNUMBERED = -1;

/** Signatures of plain Cosmos transactions before other work gets its turn: about 1.5 ms. */
const VERIFIED_PER_TURN = 16;
const VERIFIED_PER_MS = 10;

/** What is on its way in is judged, whoever has gone. */
const NEVER = new AbortController().signal;

/**
 * Bytes for which a transaction counts as one more plain one. The largest take a thousand times as long
 * as those: each of them is all that is done in a turn.
 */
const BYTES_OF_ONE = 512;

/**
 * Transactions that may be decoded and not yet handed on: twice what the recovery thread has at
 * once. Further calls wait as bytes.
 */
const MAX_DECODED_AHEAD = 8_192;

/** A decoded transaction with its sender. */
interface Recovered {
  readonly tx: AnyTransaction;
  readonly from: Address;
}

/** A transaction that the pool had when it came. */
export interface KnownTransaction {
  readonly knownHash: Hash32;
}

/** What became of one transaction on its way in. */
export type Prepared = PoolEntry | KnownTransaction | PoolError;

/** What is made of one call's transactions. */
export interface Judging {
  /** Settles when they are judged: in the pool, or nothing holds them any more. */
  readonly committed: Promise<unknown>;
}

/**
 * All ways in: what peers send is free and may take long to verify, and no client is to wait for it; nor
 * is anybody's of the EVM for what takes long of Cosmos'.
 */
export class Intakes {
  private readonly ways: Readonly<Record<Way, Intake>>;
  private nextSequence = 0;

  constructor(ports: Omit<IntakePorts, "nextSequence" | "checking">) {
    const checking = new RestingLane({
      monotonicMs: () => ports.clock.monotonicMs(),
      rest: (ms) => rest(ms, undefined, { ref: false }),
    });
    const all = { ...ports, checking, nextSequence: () => this.nextSequence++ };
    this.ways = {
      evm: new Intake(all),
      cosmos: new Intake(all),
      "peer-evm": new Intake(all),
      "peer-cosmos": new Intake(all),
    };
  }

  /** Later entries are numbered above this one, which came out of the journal. */
  startAfter(sequence: number): void {
    this.nextSequence = Math.max(this.nextSequence, sequence + 1);
  }

  /**
   * See `Intake`; calls that go another way are not waited for. Only Cosmos' come behind all that clients
   * sent before: one whose sequence follows would else be refused for it.
   */
  take<Result extends Judging>(
    raws: readonly Uint8Array[],
    way: Way,
    use: (prepared: readonly Prepared[]) => Result,
  ): Promise<Result> {
    const { evm } = this.ways;
    const others = way === "cosmos" ? evm.idle() : undefined;
    return this.ways[way].take(raws, originOf(way), { use, others });
  }

  /** Resolves when no call is being prepared. */
  async idle(): Promise<void> {
    await Promise.all(Object.values(this.ways).map((way) => way.idle()));
  }
}

/** What is done with a call's transactions, and what comes before. */
interface Handing<Result> {
  readonly use: (prepared: readonly Prepared[]) => Result;
  /** Calls that go another way; never rejected. */
  readonly others: Promise<void> | undefined;
}

/** Turns raw transactions into entries, numbered in the order of receipt. */
class Intake {
  private decoded = 0;
  private made = 0;
  private verified = 0;
  private decodedAhead = 0;
  private readonly room = new DecodedRoom();
  /** Calls are decoded one after the other, looked at on this thread, and handed on. */
  private decoding: Promise<unknown> = Promise.resolve();
  private checking: Promise<unknown> = Promise.resolve();
  private last: Promise<unknown> = Promise.resolve();

  constructor(private readonly ports: IntakePorts) {}

  /**
   * Prepares one call's transactions and hands them to `use`, after those of all earlier calls
   * and before those of the next; where it is given, also after `others`.
   */
  take<Result extends Judging>(
    raws: readonly Uint8Array[],
    origin: TransactionOrigin,
    { use, others }: Handing<Result>,
  ): Promise<Result> {
    const { clock } = this.ports;
    const receipt = { receivedAtMs: clock.nowMs(), heldSinceMs: clock.monotonicMs() };
    const before = this.last;
    const share = this.room.share();
    const decoded = this.decoding.then(() => this.decodeAll(raws, { origin, before, share }));
    const recovered = decoded.then((items) => this.recoverAll(items));
    // Each fault is thrown in its call's own turn; until then it must not count as unhandled.
    this.decoding = decoded.catch(() => undefined);
    recovered.catch(() => undefined);
    const turn = before.then(async () => {
      try {
        if (others !== undefined) await others;
        const made = await this.make(await recovered, receipt, origin);
        const judging = use(this.numbered(made));
        const leave = () => share.leave();
        judging.committed.then(leave, leave);
        return judging;
      } catch (error) {
        share.leave();
        throw error;
      } finally {
        this.decodedAhead -= raws.length;
      }
    });
    this.last = turn.catch(() => undefined);
    return turn;
  }

  /** Resolves when no call is being prepared. */
  async idle(): Promise<void> {
    await this.last;
  }

  private async decodeAll(
    raws: readonly Uint8Array[],
    call: {
      readonly origin: TransactionOrigin;
      readonly before: Promise<unknown>;
      readonly share: RoomShare;
    },
  ): Promise<Decoded[]> {
    const { origin, before, share } = call;
    if (this.decodedAhead + raws.length > MAX_DECODED_AHEAD) await before;
    this.decodedAhead += raws.length;
    const decoded: Decoded[] = [];
    for (const raw of raws) {
      await share.enter();
      const startMs = isPlain(raw) ? undefined : this.ports.clock.monotonicMs();
      const item = this.decode(ownBytes(raw), origin);
      if (!isSettled(item)) share.hold(decodedBytes(item));
      decoded.push(item);
      // Counted over all calls: many small ones would hold up the process like one large one.
      this.decoded += weightOf(raw);
      // Bytes say little of lists in lists.
      if (startMs !== undefined) this.decoded += this.msSince(startMs) * DECODED_PER_MS;
      if (this.decoded < DECODED_PER_TURN) continue;
      this.decoded = 0;
      await nextTurn();
    }
    return decoded;
  }

  private decode(raw: Uint8Array, origin: TransactionOrigin): Decoded {
    const oversized = sizeRefusal(raw, this.ports.rules);
    if (oversized !== undefined) return oversized;
    if (isCosmosBytes(raw)) return this.decodeCosmos(raw, origin);
    try {
      const tx = decodeTransaction(raw);
      if (this.ports.isKnown(tx.hash, origin)) return { knownHash: tx.hash };
      const fault = ownFault(tx, this.ports.rules);
      if (fault !== undefined) return refusalOf(fault);
      const priceAtoken = this.ports.priceToReachAtoken();
      return effectiveGasPriceAtoken(tx) < priceAtoken ? underpriced(priceAtoken + 1n) : tx;
    } catch (error) {
      if (error instanceof ChainError) return fromChainError(error);
      throw error;
    }
  }

  /** All but the signature, which is verified with the others' when its turn comes. */
  private decodeCosmos(raw: Uint8Array, origin: TransactionOrigin): Decoded {
    const tx = readCosmos(raw);
    if (tx instanceof PoolError) return tx;
    if (this.ports.isKnown(tx.hash, origin)) return { knownHash: tx.hash };
    const fault = ownCosmosFault(tx, this.ports.rules);
    if (fault !== undefined) return sdkRefusal(fault);
    const priceAtoken = this.ports.priceToReachAtoken();
    return tx.feeAtoken / tx.gasLimit < priceAtoken ? underpriced(priceAtoken + 1n) : tx;
  }

  /** Refusals of Cosmos transactions whose signatures are wrong. */
  private async verify(decoded: readonly Decoded[]): Promise<ReadonlyMap<Decoded, PoolError>> {
    const refused = new Map<Decoded, PoolError>();
    const { recovery, rules } = this.ports;
    const asked: CosmosTransaction[] = [];
    const checks: SignatureCheck[] = [];
    const doubtful: CosmosTransaction[] = [];
    const all = decoded.filter((item): item is CosmosTransaction => {
      return !isSettled(item) && item.type === "cosmos";
    });
    await this.eachPaced(all, (item) => {
      const check = usualSignatureCheck(item, rules);
      if (check === undefined) {
        doubtful.push(item);
      } else {
        asked.push(item);
        checks.push(check);
      }
    });
    const isRight = checks.length > 0 ? await recovery.verify(checks) : [];
    doubtful.push(...asked.filter((_, index) => isRight[index] !== true));
    // Of another form, or nobody's: these are looked at as a whole.
    await this.eachPaced(doubtful, (item) => {
      const fault = signatureFault(item, rules);
      if (fault !== undefined) refused.set(item, sdkRefusal(fault));
    });
    return refused;
  }

  /**
   * Work on a call's transactions on this thread, a few at a time. Calls do theirs one after the other:
   * however many there are, no more than one of each way in waits for its turn.
   */
  private async eachPaced(
    items: readonly CosmosTransaction[],
    work: (item: CosmosTransaction) => void,
  ): Promise<void> {
    if (items.length === 0) return;
    const before = this.checking;
    const inTurn = async () => {
      await before;
      for (const item of items) await this.paced(item, work);
    };
    const turn = inTurn();
    this.checking = turn.catch(() => undefined);
    await turn;
  }

  /** Nobody has paid for it yet: behind what takes long the making of blocks gets as much of the thread. */
  private async paced(
    item: CosmosTransaction,
    work: (item: CosmosTransaction) => void,
  ): Promise<void> {
    await this.ports.checking.run(NEVER, () => {
      const startMs = this.ports.clock.monotonicMs();
      work(item);
      this.verified += weightOf(item.raw) + this.msSince(startMs) * VERIFIED_PER_MS;
    });
    if (this.verified < VERIFIED_PER_TURN) return;
    this.verified = 0;
    await nextTurn();
  }

  private msSince(startMs: number): number {
    return this.ports.clock.monotonicMs() - startMs;
  }

  private async recoverAll(
    decoded: readonly Decoded[],
  ): Promise<(Recovered | KnownTransaction | PoolError)[]> {
    const refused = await this.verify(decoded);
    const transactions = decoded.filter((item): item is SignedTransaction => {
      return !isSettled(item) && item.type !== "cosmos";
    });
    const found = transactions.length > 0 ? await this.ports.recovery.recover(transactions) : [];
    const senders = found.values();
    return decoded.map((item) => {
      if (isSettled(item)) return item;
      if (item.type === "cosmos") return refused.get(item) ?? { tx: item, from: senderOf(item) };
      const from = senders.next().value;
      return from === undefined ? fromChainError(signerMissing()) : { tx: item, from };
    });
  }

  private async make(
    recovered: readonly (Recovered | KnownTransaction | PoolError)[],
    receipt: { readonly receivedAtMs: number; readonly heldSinceMs: number },
    origin: TransactionOrigin,
  ): Promise<Made[]> {
    const made: Made[] = [];
    for (const item of recovered) {
      if (isSettled(item)) {
        made.push(item);
        continue;
      }
      const isGapless = origin === "client" && item.tx.type === "cosmos";
      const taken = { ...receipt, sequence: UNNUMBERED, isGapless };
      made.push(createPoolEntry(item.tx, item.from, taken));
      if (++this.made % MADE_PER_TURN === 0) await nextTurn();
    }
    return made;
  }

  /** In the same turn as they are handed on: what goes another way in between would be numbered behind. */
  private numbered(made: readonly Made[]): readonly Prepared[] {
    for (const item of made) if (!isSettled(item)) item.sequence = this.ports.nextSequence();
    return made;
  }
}

/**
 * The same with a buffer of its own: what the pool keeps for hours would otherwise keep what it came
 * in, a peer's batch and what the network read with it.
 */
function ownBytes(raw: Uint8Array): Uint8Array {
  return raw.length === raw.buffer.byteLength ? raw : new Uint8Array(raw);
}

/** Of the EVM and small: reading one takes no longer than another. */
function isPlain(raw: Uint8Array): boolean {
  return raw.length < BYTES_OF_ONE && !isCosmosBytes(raw);
}

/** How many plain transactions one is. */
function weightOf(raw: Uint8Array): number {
  return 1 + Math.floor(raw.length / BYTES_OF_ONE);
}

type Decoded = AnyTransaction | KnownTransaction | PoolError;

/** What is `Prepared`, before the entries are numbered. */
type Made = NewEntry | KnownTransaction | PoolError;

/** Whether nothing more is to be found out about it on the way in. */
function isSettled(item: object): item is KnownTransaction | PoolError {
  return item instanceof PoolError || "knownHash" in item;
}
