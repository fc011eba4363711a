/**
 * Validators with their power and proposer priority, and who proposes: CometBFT's weighted round
 * robin. A set is immutable; each step gives a new one.
 */
import { present, ChainError } from "../errors.js";
import { type Address, bytesToAddress } from "../address.js";
import { sha256 } from "../hashes.js";
import { bytesToHash32, type Hash32 } from "../hex.js";
import { merkleRootOf } from "./merkle.js";
import { ProtoWriter } from "../protobuf/wire.js";

/** One validator. */
export interface Validator {
  /** First 20 bytes of SHA-256 of the key. */
  readonly address: Address;
  /** 32-byte ed25519 key. */
  readonly publicKey: Uint8Array;
  /** Greater than zero. */
  readonly power: bigint;
  readonly priority: bigint;
}

/** A change of the set: power zero removes. */
export interface ValidatorUpdate {
  readonly publicKey: Uint8Array;
  readonly power: bigint;
}

/** Total power is at most 2^63 / 8, so that priorities never overflow an int64. */
export const MAX_TOTAL_POWER = (1n << 60n) - 1n;

/** Priorities stay within a window of this many times the total power. */
const PRIORITY_WINDOW_FACTOR = 2n;

const INT64_MAX = (1n << 63n) - 1n;
const INT64_MIN = -(1n << 63n);

/** Address of a validator's key: first 20 bytes of SHA-256; in hex, a node's id of its own key. */
export function validatorAddress(publicKey: Uint8Array): Address {
  return bytesToAddress(sha256(publicKey).subarray(0, 20));
}

/** The validators of one height, by falling power, then by address. */
export class ValidatorSet {
  readonly totalPower: bigint;
  private readonly indexes: ReadonlyMap<Address, number>;

  private constructor(
    readonly validators: readonly Validator[],
    private readonly chosen?: Address,
  ) {
    this.totalPower = validators.reduce((sum, { power }) => sum + power, 0n);
    this.indexes = new Map(validators.map(({ address }, index) => [address, index]));
  }

  /** A set as it was stored: order, priorities and proposer are kept. Throws INVALID_VALIDATORS. */
  static restore(validators: readonly Validator[], proposer: Address): ValidatorSet {
    const set = new ValidatorSet(validators, proposer);
    assertUsable(set);
    if (set.indexOf(proposer) < 0) throw invalid("the proposer is not in it");
    return set;
  }

  /** The first set of a chain, its first proposer chosen. Throws INVALID_VALIDATORS. */
  static genesis(updates: readonly ValidatorUpdate[]): ValidatorSet {
    if (updates.length === 0) throw invalid("the set would be empty");
    return new ValidatorSet([]).update(updates).advance(1);
  }

  get size(): number {
    return this.validators.length;
  }

  /** Strictly more than two thirds of the power. */
  isQuorum(power: bigint): boolean {
    return power * 3n > this.totalPower * 2n;
  }

  /** Strictly more than one third of the power. */
  isMoreThanThird(power: bigint): boolean {
    return power * 3n > this.totalPower;
  }

  /** The validator at a position; undefined outside of the set. */
  at(index: number): Validator | undefined {
    return this.validators[index];
  }

  /** Position of an address, -1 when it is not in the set. */
  indexOf(address: Address): number {
    return this.indexes.get(address) ?? -1;
  }

  /** Whose turn it is: the one that the last `advance` chose; after `update` whoever leads. */
  get proposer(): Validator {
    const chosen = this.chosen === undefined ? undefined : this.at(this.indexOf(this.chosen));
    return chosen ?? leaderOf(this.validators);
  }

  /** Merkle root over keys and powers: `validators_hash`. */
  hash(): Hash32 {
    return bytesToHash32(merkleRootOf(this.validators.map(encodeSimpleValidator)));
  }

  /** The set `times` rounds later: all gain their power, the one that then leads pays the total. */
  advance(times: number): ValidatorSet {
    if (times < 1) throw new RangeError("a set advances by at least one round");
    let validators = shiftByAverage(rescale(this.validators, this.totalPower));
    let chosen: Address | undefined;
    for (let turn = 0; turn < times; turn++) {
      const raised = validators.map((one) => ({
        ...one,
        priority: clip(one.priority + one.power),
      }));
      const leader = leaderOf(raised);
      chosen = leader.address;
      validators = raised.map((one) =>
        one === leader ? { ...one, priority: clip(one.priority - this.totalPower) } : one,
      );
    }
    return new ValidatorSet(validators, chosen);
  }

  /**
   * The set after changes: newcomers start at -1.125 times the new total power, then priorities
   * are rescaled and centred.
   * @throws INVALID_VALIDATORS for a repeated key, a negative power, the removal of a stranger,
   * an empty set, or too much power
   */
  update(updates: readonly ValidatorUpdate[]): ValidatorSet {
    if (updates.length === 0) return this;
    const changes = new Map(updates.map((update) => [validatorAddress(update.publicKey), update]));
    if (changes.size < updates.length) throw invalid("a key occurs twice");
    for (const [address, { power }] of changes) {
      if (power < 0n) throw invalid("a power is negative");
      const isStranger = power === 0n && this.indexOf(address) < 0;
      if (isStranger) throw invalid("an unknown validator cannot be removed");
    }
    const removedPower = [...changes]
      .filter(([, { power }]) => power === 0n)
      .reduce(
        (sum, [address]) =>
          sum + present(this.at(this.indexOf(address)), "removed validator").power,
        0n,
      );
    const kept = this.validators.flatMap((validator) => changed(validator, changes));
    const added = [...changes].filter(([address, { power }]) => {
      return power > 0n && this.indexOf(address) < 0;
    });
    const totalPower =
      kept.reduce((sum, { power }) => sum + power, 0n) +
      added.reduce((sum, [, { power }]) => sum + power, 0n);
    // As CometBFT: a newcomer's start counts what is removed only afterwards.
    const priority = newcomerPriority(totalPower + removedPower);
    const newcomers = added.map(([address, { publicKey, power }]) => ({
      address,
      publicKey,
      power,
      priority,
    }));
    const next = new ValidatorSet([...kept, ...newcomers].toSorted(byPowerThenAddress));
    assertUsable(next);
    return new ValidatorSet(shiftByAverage(rescale(next.validators, next.totalPower)));
  }
}

/** `SimpleValidator`: what the hash of the set covers. */
function encodeSimpleValidator({ publicKey, power }: Validator): Buffer {
  const key = new ProtoWriter().bytes(1, publicKey).finish();
  return new ProtoWriter().message(1, key).integer(2, power).finish();
}

function changed(
  validator: Validator,
  changes: ReadonlyMap<Address, ValidatorUpdate>,
): Validator[] {
  const update = changes.get(validator.address);
  if (update === undefined) return [validator];
  return update.power === 0n ? [] : [{ ...validator, power: update.power }];
}

function newcomerPriority(totalPower: bigint): bigint {
  return -(totalPower + (totalPower >> 3n));
}

function byPowerThenAddress(left: Validator, right: Validator): number {
  if (left.power !== right.power) return left.power > right.power ? -1 : 1;
  return left.address < right.address ? -1 : 1;
}

function isBefore(left: Validator, right: Validator): boolean {
  if (left.priority !== right.priority) return left.priority > right.priority;
  return left.address < right.address;
}

/** Divides all priorities when they spread over more than the window. */
function rescale(validators: readonly Validator[], totalPower: bigint): readonly Validator[] {
  const window = PRIORITY_WINDOW_FACTOR * totalPower;
  const priorities = validators.map(({ priority }) => priority);
  const spread = max(priorities) - min(priorities);
  if (window <= 0n || spread <= window) return validators;
  const ratio = (spread + window - 1n) / window;
  // Division truncates towards zero, in Go as here.
  return validators.map((one) => ({ ...one, priority: one.priority / ratio }));
}

/** Centres the priorities around zero. */
function shiftByAverage(validators: readonly Validator[]): readonly Validator[] {
  const sum = validators.reduce((total, { priority }) => total + priority, 0n);
  const average = floorDivide(sum, BigInt(validators.length));
  if (average === 0n) return validators;
  return validators.map((one) => ({ ...one, priority: clip(one.priority - average) }));
}

/** Go's big.Int.Div is Euclidean: for a positive divisor it rounds down. */
function floorDivide(value: bigint, by: bigint): bigint {
  const quotient = value / by;
  return value % by < 0n ? quotient - 1n : quotient;
}

/** Highest priority, ties to the lower address. */
function leaderOf(validators: readonly Validator[]): Validator {
  const [first, ...others] = validators;
  if (first === undefined) throw invalid("the set is empty");
  return others.reduce((best, next) => (isBefore(next, best) ? next : best), first);
}

function clip(value: bigint): bigint {
  if (value > INT64_MAX) return INT64_MAX;
  return value < INT64_MIN ? INT64_MIN : value;
}

function max(values: readonly bigint[]): bigint {
  return values.reduce((best, next) => (next > best ? next : best));
}

function min(values: readonly bigint[]): bigint {
  return values.reduce((best, next) => (next < best ? next : best));
}

function assertUsable(set: ValidatorSet): void {
  if (set.size === 0) throw invalid("the set would be empty");
  if (set.totalPower > MAX_TOTAL_POWER) throw invalid("the total power is too large");
  for (const { publicKey, power } of set.validators) {
    if (publicKey.length !== 32) throw invalid("a key is not 32 bytes");
    if (power <= 0n) throw invalid("a power is not positive");
  }
}

function invalid(reason: string): ChainError {
  return new ChainError("INVALID_VALIDATORS", `validator set refused: ${reason}`);
}
