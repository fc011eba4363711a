/** What is asked of staking: validators, delegations and what is on its way out, as plain values. */
import type { Address } from "../../../chain/address.js";
import type { Atoken } from "../../../chain/units.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { moduleParam } from "../module-params.js";
import { unbondingLeft } from "../staking/delegating.js";
import { Delegations, ENTRY_KIND, type QueueEntry } from "../staking/delegation-record.js";
import {
  BOND_STATUS,
  type BondStatus,
  type Commission,
  type Description,
  type SlashEvent,
  type ValidatorRecord,
  Validators,
} from "../staking/validator-record.js";
import { tokensOf } from "../staking/shares.js";
import { type ListPart, MODULE_ACCOUNTS, wordAddress } from "../system-storage.js";

export { BOND_STATUS, type BondStatus, ENTRY_KIND, type ListPart, type QueueEntry };

/** A validator. Amounts are atoken, shares and fractions 10^-18. */
export interface ValidatorRead {
  readonly operator: Address;
  readonly consensusAddress: Address;
  /** 32-byte ed25519 key. */
  readonly publicKey: Uint8Array;
  readonly status: BondStatus;
  readonly isJailed: boolean;
  readonly tokens: bigint;
  readonly shares: bigint;
  readonly description: Description;
  readonly commission: Commission;
  readonly minSelfDelegation: bigint;
  /** 0 for validators that are not on their way out. */
  readonly unbondingHeight: number;
  readonly unbondingTimeMs: number;
  readonly unbondingEntry: bigint;
}

/** A validator without what needs more than a word. */
export type ValidatorLine = Pick<ValidatorRead, "operator" | "status" | "consensusAddress">;

/** All validators, by operator. */
export function listValidators(state: JournaledState): ValidatorLine[] {
  return new Validators(state)
    .all()
    .map(({ operator, status, consensusAddress }) => ({ operator, status, consensusAddress }))
    .toSorted((one, other) => (one.operator < other.operator ? -1 : 1));
}

/** Operators of the set of consensus, in its order: most power first, ties by the key's address. */
export function operatorsInConsensus(state: JournaledState): Address[] {
  return new Validators(state)
    .inConsensus()
    .map(({ operator, consensusPower, consensusAddress }) => {
      return { operator, power: consensusPower, consensusAddress };
    })
    .toSorted((one, other) => {
      if (one.power !== other.power) return one.power > other.power ? -1 : 1;
      return one.consensusAddress < other.consensusAddress ? -1 : 1;
    })
    .map(({ operator }) => operator);
}

/** A validator; undefined for an operator without one. */
export function readValidator(state: JournaledState, operator: Address): ValidatorRead | undefined {
  const record = new Validators(state).of(operator);
  return record.exists ? valuesOf(record) : undefined;
}

function valuesOf(record: ValidatorRecord): ValidatorRead {
  return {
    operator: record.operator,
    consensusAddress: record.consensusAddress,
    publicKey: record.publicKey,
    status: record.status,
    isJailed: record.isJailed,
    tokens: record.tokens,
    shares: record.shares,
    description: record.description,
    commission: record.commission,
    minSelfDelegation: record.minSelfDelegation,
    unbondingHeight: record.unbondingHeight,
    unbondingTimeMs: record.unbondingTimeMs,
    unbondingEntry: record.unbondingEntry,
  };
}

/** The slashes of a validator, oldest first; those of one that left are kept, too. */
export function readSlashes(state: JournaledState, operator: Address): SlashEvent[] {
  const record = new Validators(state).of(operator);
  return Array.from({ length: record.slashCount }, (_, index) => record.slashAt(index));
}

/** A delegation. */
export interface DelegationRead {
  readonly operator: Address;
  readonly delegator: Address;
  /** 10^-18. */
  readonly shares: bigint;
  /** What they are worth, rounded down. */
  readonly amountAtoken: Atoken;
}

/** A delegation; undefined where there is none. */
export function readDelegation(
  state: JournaledState,
  operator: Address,
  delegator: Address,
): DelegationRead | undefined {
  const shares = new Delegations(state).shares(operator, delegator);
  if (shares === 0n) return undefined;
  const amountAtoken = tokensOf(new Validators(state).of(operator), shares);
  return { operator, delegator, shares, amountAtoken };
}

/** Validators of an account, by operator: those it has a delegation with. */
export function operatorsOf(state: JournaledState, delegator: Address): Address[] {
  return new Delegations(state).operatorsOf(delegator).toSorted();
}

/** Some items of a long list. */
export interface ReadPart<Item> {
  readonly items: readonly Item[];
  /** What the next part begins with. */
  readonly next: bigint | undefined;
  readonly size: number;
}

/** Some delegations of a validator; undefined for a beginning that is none of them. */
export function delegationsTo(
  state: JournaledState,
  operator: Address,
  part: ListPart,
): ReadPart<DelegationRead> | undefined {
  const found = new Delegations(state).delegatorsPart(operator, part);
  if (found === undefined) return undefined;
  const { members, ...rest } = found;
  const items = members.flatMap((word) => {
    const delegation = readDelegation(state, operator, wordAddress(word));
    return delegation === undefined ? [] : [delegation];
  });
  return { items, ...rest };
}

/** Something on its way out, with what slashes have left of it. */
export interface EntryRead extends QueueEntry {
  /** What its end pays, or what of a redelegation is there, atoken. */
  readonly leftAtoken: Atoken;
}

/** Entries of one kind of an account, oldest first. */
export function entriesOf(
  state: JournaledState,
  delegator: Address,
  kind: keyof typeof ENTRY_KIND,
): EntryRead[] {
  return new Delegations(state)
    .entriesOf(delegator)
    .filter((entry) => entry.kind === ENTRY_KIND[kind])
    .toSorted((one, other) => (one.id < other.id ? -1 : 1))
    .map((entry) => entryOf(state, entry));
}

/** Entries of one kind, one account and one way, oldest first: there is at least one. */
export type LeavingGroup = readonly [EntryRead, ...EntryRead[]];

/**
 * Looks at some entries that leave a validator: of one kind, each group is told at its oldest entry, and
 * nowhere else. Undefined for a beginning that is none of them.
 */
export function leavingFrom(
  state: JournaledState,
  operator: Address,
  kind: keyof typeof ENTRY_KIND,
  part: ListPart,
): ReadPart<LeavingGroup> | undefined {
  const delegations = new Delegations(state);
  const found = delegations.entriesPart(operator, part);
  if (found === undefined) return undefined;
  const { members, ...rest } = found;
  const known = new Map<Address, ReadonlyMap<bigint, LeavingGroup>>();
  const items = members.flatMap((id) => {
    const { delegator, kind: own } = delegations.entry(id);
    if (own !== ENTRY_KIND[kind]) return [];
    const groups = known.get(delegator) ?? groupsOf(state, { delegator, operator }, kind);
    known.set(delegator, groups);
    const group = groups.get(id);
    return group === undefined ? [] : [group];
  });
  return { items, ...rest };
}

/** What of an account leaves a validator, by the oldest entry of each way. */
function groupsOf(
  state: JournaledState,
  { delegator, operator }: { readonly delegator: Address; readonly operator: Address },
  kind: keyof typeof ENTRY_KIND,
): ReadonlyMap<bigint, LeavingGroup> {
  const ways = new Map<Address, [EntryRead, ...EntryRead[]]>();
  for (const entry of entriesOf(state, delegator, kind)) {
    if (entry.source !== operator) continue;
    const way = ways.get(entry.destination);
    if (way === undefined) ways.set(entry.destination, [entry]);
    else way.push(entry);
  }
  return new Map([...ways.values()].map((way) => [way[0].id, way]));
}

function entryOf(state: JournaledState, entry: QueueEntry): EntryRead {
  const validators = new Validators(state);
  if (entry.kind === ENTRY_KIND.unbonding) {
    return { ...entry, leftAtoken: unbondingLeft(validators.of(entry.source), entry) };
  }
  const { destination, destinationShares } = entry;
  return { ...entry, leftAtoken: tokensOf(validators.of(destination), destinationShares) };
}

/** Coins of all stake, atoken. */
export function readPool(state: JournaledState): {
  readonly bondedAtoken: Atoken;
  readonly notBondedAtoken: Atoken;
} {
  const bondedAtoken = new Validators(state).bondedTokens;
  const held = state.accountNow(MODULE_ACCOUNTS.staking)?.balanceAtoken ?? 0n;
  return { bondedAtoken, notBondedAtoken: held - bondedAtoken };
}

/** Parameters of staking; the time in milliseconds, fractions 10^-18. */
export function readStakingParams(state: JournaledState) {
  return {
    unbondingTimeMs: moduleParam(state, "staking", "unbonding_time"),
    maxValidators: moduleParam(state, "staking", "max_validators"),
    maxEntries: moduleParam(state, "staking", "max_entries"),
    minCommissionRate: moduleParam(state, "staking", "min_commission_rate"),
    burnAtoken: moduleParam(state, "staking", "burn_amount"),
  };
}
