/**
 * Validators as the staking account's storage has them. Layout (every member a word):
 *
 *  0 array of operators, 1 their places | 2 mapping operator -> validator (below)
 *  3 mapping consensus address -> operator | 4 tokens of all bonded validators
 *  5 1 when powers have to be worked out again | 6 array of operators of the consensus set, 7 places
 *
 * A validator: 0 consensus address, 1 ed25519 key, 2 tokens, 3 shares (10^-18), 4 status, 5 jailed,
 * 6 power in consensus, 7 to 9 commission rate, highest rate and highest change (10^-18), 10 time
 * of its last change (ms), 11 least self-delegation, 12 height and 13 time (ms) of the end of
 * unbonding, 14 number of slashes, 15 to 19 texts of the description, 20 entry of its unbonding;
 * from 32 on slashes, each: height and from bit 64 on time (ms) of its block, height of the
 * infraction, fraction.
 */
import type { Address } from "../../../chain/address.js";
import { DECIMAL_ONE } from "../../../chain/encoding/decimal.js";
import { bigintToWord } from "../../../chain/hex.js";
import { ATOKEN_PER_TOKEN, type Atoken } from "../../../chain/units.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { addressWord, mapSlot, StoredSet, SystemStorage, wordAddress } from "../system-storage.js";

/** `cosmos.staking.v1beta1.BondStatus`. */
export const BOND_STATUS = { unbonded: 1, unbonding: 2, bonded: 3 } as const;

/** One of `BOND_STATUS`. */
export type BondStatus = (typeof BOND_STATUS)[keyof typeof BOND_STATUS];

/** Texts that a validator says of itself, in the order of their slots. */
export const DESCRIPTION_FIELDS = [
  "moniker",
  "identity",
  "website",
  "security_contact",
  "details",
] as const;

/** What a validator says of itself. */
export type Description = Readonly<Record<(typeof DESCRIPTION_FIELDS)[number], string>>;

/** Commission: what a validator keeps of the rewards of its delegators, in 10^-18. */
export interface Commission {
  readonly rate: bigint;
  readonly maxRate: bigint;
  /** Most by which the rate may change in a day. */
  readonly maxChangeRate: bigint;
  readonly updateTimeMs: number;
}

/** A slash that entries begun before it have to bear, too, unless they were over. */
export interface SlashEvent {
  readonly height: number;
  /** Of its block, Unix milliseconds; 0 by the first rules: then all have to bear it. */
  readonly timeMs: number;
  readonly infractionHeight: number;
  /** 10^-18. */
  readonly fraction: bigint;
}

const OPERATORS = 0n;
const VALIDATORS = 2n;
const BY_CONSENSUS_ADDRESS = 3n;
const BONDED_TOKENS = 4n;
const IS_DIRTY = 5n;
const CONSENSUS_SET = 6n;
const FIRST_TEXT = 15n;
const FIRST_SLASH = 32n;
const SLASH_WORDS = 3n;
const TIME_UNIT = 1n << 64n;

/** Atoken of one unit of voting power. */
export const ATOKEN_PER_POWER = ATOKEN_PER_TOKEN;

/** Shares of a validator's first atoken: they have 18 decimals. */
export const SHARES_PER_ATOKEN = DECIMAL_ONE;

/** One validator; every read and write is one of its slots. */
export class ValidatorRecord {
  private readonly base: bigint;

  constructor(
    private readonly storage: SystemStorage,
    readonly operator: Address,
  ) {
    this.base = mapSlot(VALIDATORS, addressWord(operator));
  }

  get exists(): boolean {
    return this.word(0) !== 0n;
  }

  get consensusAddress(): Address {
    return wordAddress(this.word(0));
  }

  /** 32-byte ed25519 key. */
  get publicKey(): Uint8Array {
    return bigintToWord(this.word(1));
  }

  /** Atoken of all its delegators. */
  get tokens(): bigint {
    return this.word(2);
  }

  /** Shares of all its delegators, 10^-18. */
  get shares(): bigint {
    return this.word(3);
  }

  get status(): BondStatus {
    const status = Number(this.word(4));
    if (status === BOND_STATUS.bonded || status === BOND_STATUS.unbonding) return status;
    return BOND_STATUS.unbonded;
  }

  get isBonded(): boolean {
    return this.status === BOND_STATUS.bonded;
  }

  get isJailed(): boolean {
    return this.word(5) === 1n;
  }

  /** Power that consensus was last told; 0 outside of the set. */
  get consensusPower(): bigint {
    return this.word(6);
  }

  set consensusPower(power: bigint) {
    this.setWord(6, power);
  }

  get commission(): Commission {
    return {
      rate: this.word(7),
      maxRate: this.word(8),
      maxChangeRate: this.word(9),
      updateTimeMs: Number(this.word(10)),
    };
  }

  set commission({ rate, maxRate, maxChangeRate, updateTimeMs }: Commission) {
    this.setWord(7, rate);
    this.setWord(8, maxRate);
    this.setWord(9, maxChangeRate);
    this.setWord(10, BigInt(updateTimeMs));
  }

  get minSelfDelegation(): bigint {
    return this.word(11);
  }

  set minSelfDelegation(amountAtoken: Atoken) {
    this.setWord(11, amountAtoken);
  }

  get unbondingHeight(): number {
    return Number(this.word(12));
  }

  get unbondingTimeMs(): number {
    return Number(this.word(13));
  }

  /** Id of the queue's entry that ends its unbonding; 0 where there is none. */
  get unbondingEntry(): bigint {
    return this.word(20);
  }

  get description(): Description {
    const texts = DESCRIPTION_FIELDS.map((name, index) => {
      return [name, this.storage.text(this.base + FIRST_TEXT + BigInt(index))] as const;
    });
    return Object.fromEntries(texts) as Description;
  }

  set description(description: Description) {
    for (const [index, name] of DESCRIPTION_FIELDS.entries()) {
      this.storage.setText(this.base + FIRST_TEXT + BigInt(index), description[name]);
    }
  }

  /** Writes what a new validator is. */
  create(consensusAddress: Address, publicKey: Uint8Array): void {
    this.setWord(0, addressWord(consensusAddress));
    this.setWord(1, BigInt(`0x${Buffer.from(publicKey).toString("hex")}`));
    this.setWord(4, BigInt(BOND_STATUS.unbonded));
    const { storage, operator } = this;
    new StoredSet(storage, OPERATORS).add(addressWord(operator));
    storage.setWord(
      mapSlot(BY_CONSENSUS_ADDRESS, addressWord(consensusAddress)),
      addressWord(operator),
    );
  }

  /** Forgets a validator that nobody delegates to. */
  remove(): void {
    const { storage, operator, consensusAddress } = this;
    storage.setWord(mapSlot(BY_CONSENSUS_ADDRESS, addressWord(consensusAddress)), 0n);
    new StoredSet(storage, OPERATORS).remove(addressWord(operator));
    const empty = { moniker: "", identity: "", website: "", security_contact: "", details: "" };
    this.description = empty;
    // Slashes stay: entries that were begun before them may still have to bear them.
    for (let place = 0; place <= 13; place++) this.setWord(place, 0n);
    this.setWord(20, 0n);
  }

  /** Sets tokens and shares; a bonded validator's count in the sum of all. */
  setStake(tokens: bigint, shares: bigint): void {
    if (this.isBonded) addBondedTokens(this.storage, tokens - this.tokens);
    this.setWord(2, tokens);
    this.setWord(3, shares);
    this.storage.setWord(IS_DIRTY, 1n);
  }

  /** Sets the status; `unbonding` is where a validator stands that leaves the set. */
  setStatus(
    status: BondStatus,
    unbonding?: { readonly height: number; readonly timeMs: number; readonly entry: bigint },
  ): void {
    const was = this.isBonded;
    this.setWord(4, BigInt(status));
    if (was !== this.isBonded) addBondedTokens(this.storage, was ? -this.tokens : this.tokens);
    this.setWord(12, BigInt(unbonding?.height ?? 0));
    this.setWord(13, BigInt(unbonding?.timeMs ?? 0));
    this.setWord(20, unbonding?.entry ?? 0n);
  }

  setJailed(isJailed: boolean): void {
    this.setWord(5, isJailed ? 1n : 0n);
    this.storage.setWord(IS_DIRTY, 1n);
  }

  get slashCount(): number {
    return Number(this.word(14));
  }

  slashAt(index: number): SlashEvent {
    const first = this.slashSlot(index);
    const place = this.storage.word(first);
    return {
      height: Number(place % TIME_UNIT),
      timeMs: Number(place / TIME_UNIT),
      infractionHeight: Number(this.storage.word(first + 1n)),
      fraction: this.storage.word(first + 2n),
    };
  }

  addSlash({ height, timeMs, infractionHeight, fraction }: SlashEvent): void {
    const index = this.slashCount;
    const first = this.slashSlot(index);
    this.storage.setWord(first, BigInt(height) + BigInt(timeMs) * TIME_UNIT);
    this.storage.setWord(first + 1n, BigInt(infractionHeight));
    this.storage.setWord(first + 2n, fraction);
    this.setWord(14, BigInt(index + 1));
  }

  private slashSlot(index: number): bigint {
    return this.base + FIRST_SLASH + BigInt(index) * SLASH_WORDS;
  }

  private word(place: number): bigint {
    return this.storage.word(this.base + BigInt(place));
  }

  private setWord(place: number, value: bigint): void {
    this.storage.setWord(this.base + BigInt(place), value);
  }
}

function addBondedTokens(storage: SystemStorage, delta: bigint): void {
  storage.setWord(BONDED_TOKENS, storage.word(BONDED_TOKENS) + delta);
}

/** All validators of a state. */
export class Validators {
  readonly storage: SystemStorage;

  constructor(state: JournaledState) {
    this.storage = new SystemStorage(state, "staking");
  }

  /** The record of an operator; look at `exists`. */
  of(operator: Address): ValidatorRecord {
    return new ValidatorRecord(this.storage, operator);
  }

  /** The validator with a key of consensus; undefined for a stranger's. */
  byConsensusAddress(address: Address): ValidatorRecord | undefined {
    const operator = this.storage.word(mapSlot(BY_CONSENSUS_ADDRESS, addressWord(address)));
    return operator === 0n ? undefined : this.of(wordAddress(operator));
  }

  get count(): number {
    return new StoredSet(this.storage, OPERATORS).size;
  }

  /** All of them, those outside of the set too. */
  all(): ValidatorRecord[] {
    return this.listed(OPERATORS);
  }

  /** Those whose power consensus was told. */
  inConsensus(): ValidatorRecord[] {
    return this.listed(CONSENSUS_SET);
  }

  /** Tells who is in the set of consensus from now on. */
  setInConsensus(validator: ValidatorRecord, power: bigint): void {
    const set = new StoredSet(this.storage, CONSENSUS_SET);
    if (power > 0n) set.add(addressWord(validator.operator));
    else set.remove(addressWord(validator.operator));
    validator.consensusPower = power;
  }

  /** Tokens of all bonded validators, atoken. */
  get bondedTokens(): bigint {
    return this.storage.word(BONDED_TOKENS);
  }

  /** Whether stake or jail changed since the powers were worked out. */
  get isDirty(): boolean {
    return this.storage.word(IS_DIRTY) === 1n;
  }

  set isDirty(isDirty: boolean) {
    this.storage.setWord(IS_DIRTY, isDirty ? 1n : 0n);
  }

  private listed(slot: bigint): ValidatorRecord[] {
    return new StoredSet(this.storage, slot).members().map((word) => this.of(wordAddress(word)));
  }
}
