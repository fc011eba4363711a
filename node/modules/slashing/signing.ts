/**
 * Who signs blocks and who does not (x/slashing and x/evidence). A validator that missed too many of
 * the last blocks is slashed and jailed until it asks to come back; one that signed twice is slashed
 * and never comes back. Only what changes is written: a block that all have signed writes nothing.
 * Layout of the slashing account's storage:
 *
 *  0 mapping consensus address -> record: 0 height from which it is watched, 1 jailed until (ms),
 *    2 1 when it is out for ever, 3 blocks of the window that it missed, 4 length of that window
 *  1 mapping consensus address -> mapping number of a word -> 256 blocks, 1 for a missed one; the
 *    place of a height is its remainder by the window
 */
import { type Address, consensusText, operatorText } from "../../../chain/address.js";
import { amountText } from "../../../chain/abci-event.js";
import { SDK_CODE, sdkFault } from "../../../chain/cosmos/sdk-fault.js";
import { DECIMAL_ONE } from "../../../chain/encoding/decimal.js";
import { SDK_REFUSALS_VERSION } from "../../settings/app-version.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { MessageFailure, type ModuleContext, moduleFailure } from "../module-context.js";
import { moduleParam } from "../module-params.js";
import { slashValidator } from "../staking/delegating.js";
import { Delegations } from "../staking/delegation-record.js";
import {
  ATOKEN_PER_POWER,
  BOND_STATUS,
  type ValidatorRecord,
  Validators,
} from "../staking/validator-record.js";
import { tokensOf } from "../staking/shares.js";
import { addressWord, hasModules, mapSlot, SystemStorage } from "../system-storage.js";

const RECORDS = 0n;
const MISSED = 1n;

/** Heights between a change of the set and the first block that it signs. */
const UPDATE_DELAY = 1;

/** The SDK's end of time: 9999-12-31. */
const FOR_EVER_MS = 253_402_300_799_000;

/** What a validator did about the block before. */
export interface CommitVote {
  readonly consensusAddress: Address;
  readonly power: bigint;
  /** False when its signature is missing; a vote for nothing counts as signed. */
  readonly isSigned: boolean;
}

/** A proven double signing. */
export interface Misbehavior {
  readonly consensusAddress: Address;
  readonly height: number;
  /** Power of the validator at that height. */
  readonly power: bigint;
}

/** What is known of a validator's signing. */
export interface SigningInfo {
  readonly startHeight: number;
  readonly jailedUntilMs: number;
  readonly isTombstoned: boolean;
  readonly missedBlocks: number;
}

/** The signing of one key of consensus. */
class SigningRecord {
  private readonly storage: SystemStorage;
  private readonly base: bigint;
  private readonly words: bigint;

  constructor(state: JournaledState, consensusAddress: Address) {
    this.storage = new SystemStorage(state, "slashing");
    this.base = mapSlot(RECORDS, addressWord(consensusAddress));
    this.words = mapSlot(MISSED, addressWord(consensusAddress));
  }

  word(place: number): bigint {
    return this.storage.word(this.base + BigInt(place));
  }

  setWord(place: number, value: bigint): void {
    this.storage.setWord(this.base + BigInt(place), value);
  }

  /** Notes whether the block at a place of the window was missed. @returns missed blocks of it */
  note(place: bigint, isMissed: boolean): bigint {
    const slot = mapSlot(this.words, place / 256n);
    const bit = 1n << (place % 256n);
    const word = this.storage.word(slot);
    const wasMissed = (word & bit) !== 0n;
    const missed = this.word(3);
    if (wasMissed === isMissed) return missed;
    this.storage.setWord(slot, word ^ bit);
    const next = isMissed ? missed + 1n : missed - 1n;
    this.setWord(3, next);
    return next;
  }

  /** Forgets what was missed, and begins with a window of this length. */
  restart(window: bigint): void {
    if (this.word(3) > 0n) {
      const words = (this.word(4) + 255n) / 256n;
      for (let index = 0n; index < words; index++) {
        this.storage.setWord(mapSlot(this.words, index), 0n);
      }
      this.setWord(3, 0n);
    }
    this.setWord(4, window);
  }
}

/** Signing of a validator; undefined where it was never in a set. */
export function signingInfo(
  state: JournaledState,
  consensusAddress: Address,
): SigningInfo | undefined {
  const record = new SigningRecord(state, consensusAddress);
  const isOut = record.word(2) === 1n;
  if (record.word(0) === 0n && !isOut) return undefined;
  return {
    startHeight: Number(record.word(0)),
    jailedUntilMs: Number(record.word(1)),
    isTombstoned: isOut,
    missedBlocks: Number(record.word(3)),
  };
}

/**
 * A validator comes into the set again: a whole window passes before it can be jailed, and what it
 * missed before it left is forgotten (x/slashing `AfterValidatorBonded`). By the first rules it counted.
 */
export function watchAnew(
  { state, height, appVersion }: ModuleContext,
  { consensusAddress }: ValidatorRecord,
): void {
  if (appVersion < SDK_REFUSALS_VERSION) return;
  const record = new SigningRecord(state, consensusAddress);
  if (record.word(0) === 0n) return;
  record.restart(moduleParam(state, "slashing", "signed_blocks_window"));
  record.setWord(0, BigInt(height));
}

/** Notes who signed the block before this one, and jails those who missed too many. */
export function noteVotes(context: ModuleContext, votes: readonly CommitVote[]): void {
  const window = moduleParam(context.state, "slashing", "signed_blocks_window");
  const least = moduleParam(context.state, "slashing", "min_signed_per_window");
  const mostMissed = window - (window * least) / DECIMAL_ONE;
  for (const vote of votes) noteVote(context, vote, { window, mostMissed });
}

function noteVote(
  context: ModuleContext,
  { consensusAddress, power, isSigned }: CommitVote,
  { window, mostMissed }: { readonly window: bigint; readonly mostMissed: bigint },
): void {
  const { state, height } = context;
  const validator = new Validators(state).byConsensusAddress(consensusAddress);
  if (validator === undefined || validator.isJailed) return;
  const record = new SigningRecord(state, consensusAddress);
  if (record.word(0) === 0n) record.setWord(0, BigInt(height));
  if (record.word(4) !== window) {
    record.restart(window);
    record.setWord(0, BigInt(height));
  }
  const missed = record.note(BigInt(height) % window, !isSigned);
  const address = consensusText(consensusAddress);
  if (!isSigned) {
    const missed_blocks = missed.toString();
    context.emit("liveness", { address, missed_blocks, height: height.toString() });
  }
  const isWatchedLong = BigInt(height) > record.word(0) + window;
  if (!isWatchedLong || missed <= mostMissed) return;
  const fault = {
    infractionHeight: height - 1 - UPDATE_DELAY,
    stakeAtoken: power * ATOKEN_PER_POWER,
  };
  const fraction = moduleParam(state, "slashing", "slash_fraction_downtime");
  const burned = slashValidator(context, validator, fault, fraction);
  validator.setJailed(true);
  context.emit("slash", {
    address,
    power: power.toString(),
    reason: "missing_signature",
    jailed: address,
    burned_coins: amountText(burned),
  });
  const jailMs = Number(moduleParam(state, "slashing", "downtime_jail_duration"));
  record.setWord(1, BigInt(context.timeMs + jailMs));
  record.restart(window);
  record.setWord(0, BigInt(height));
}

/** Punishes double signing: each key once and for ever. */
export function punish(context: ModuleContext, misbehavior: readonly Misbehavior[]): void {
  for (const { consensusAddress, height, power } of misbehavior) {
    const { state } = context;
    const validator = new Validators(state).byConsensusAddress(consensusAddress);
    const record = new SigningRecord(state, consensusAddress);
    if (validator === undefined || record.word(2) === 1n) continue;
    const fault = {
      infractionHeight: height - UPDATE_DELAY,
      stakeAtoken: power * ATOKEN_PER_POWER,
    };
    const fraction = moduleParam(state, "slashing", "slash_fraction_double_sign");
    const burned = slashValidator(context, validator, fault, fraction);
    const address = consensusText(consensusAddress);
    context.emit("slash", {
      address,
      power: power.toString(),
      reason: "double_sign",
      burned_coins: amountText(burned),
    });
    if (!validator.isJailed) {
      validator.setJailed(true);
      context.emit("slash", { jailed: address });
    }
    record.setWord(1, BigInt(FOR_EVER_MS));
    record.setWord(2, 1n);
  }
}

/** Whether a key of consensus is out for ever. */
function isTombstoned(state: JournaledState, consensusAddress: Address): boolean {
  return signingInfo(state, consensusAddress)?.isTombstoned === true;
}

/**
 * Whether evidence against a key has an effect: its stake, or what leaves it, can still be slashed.
 * @returns undefined on a chain without stake
 */
export function isPunishable(
  state: JournaledState,
  consensusAddress: Address,
): boolean | undefined {
  if (!hasModules(state)) return undefined;
  const validator = new Validators(state).byConsensusAddress(consensusAddress);
  if (validator === undefined || validator.status === BOND_STATUS.unbonded) return false;
  return !isTombstoned(state, consensusAddress);
}

/** A jailed validator comes back. Throws `MessageFailure`. */
export function unjail(context: ModuleContext, validator: ValidatorRecord): void {
  const { state } = context;
  const { operator } = validator;
  const own = new Delegations(state).shares(operator, operator);
  if (own === 0n) {
    throw moduleFailure("slashing", 6, "validator has no self-delegation; cannot be unjailed");
  }
  if (tokensOf(validator, own) < validator.minSelfDelegation) {
    const text = "validator's self delegation less than minimum; cannot be unjailed";
    throw moduleFailure("slashing", 7, text);
  }
  if (!validator.isJailed) {
    throw moduleFailure("slashing", 5, "validator not jailed; cannot be unjailed");
  }
  const info = signingInfo(state, validator.consensusAddress);
  if (info?.isTombstoned === true || (info?.jailedUntilMs ?? 0) > context.timeMs) {
    throw moduleFailure("slashing", 4, "validator still jailed; cannot be unjailed");
  }
  validator.setJailed(false);
  context.emit("unjail", { validator: operatorText(operator) });
}

/** The root codespace's refusal of a key that is out for ever. */
export function assertNotTombstoned(state: JournaledState, consensusAddress: Address): void {
  if (!isTombstoned(state, consensusAddress)) return;
  const text = "a key that signed twice never comes back";
  throw new MessageFailure(sdkFault(SDK_CODE.unauthorized, text));
}
