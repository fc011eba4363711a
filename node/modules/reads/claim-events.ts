/**
 * Pure: what the modules' events of one transaction, or of a block's end, say of claims. Amounts of
 * atoken are in them exactly; shares mostly are not, and what slashes took from single accounts is
 * not at all: that is what the state before and after the block is for (claim-changes.ts).
 */
import { type Address, parseBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import type { Claim, ClaimMove, ClaimReason } from "../../../chain/staking/claims.js";
import type { AbciEvent } from "../../../chain/consensus/abci-types.js";
import { VOTE_NAMES } from "../../../chain/staking/calls.js";
import { BASE_DENOM } from "../../../chain/units.js";
import { MODULE_ACCOUNTS } from "../system-storage.js";

/** Whose claims a block may have changed. */
export interface Touched {
  /**
   * Accounts whose leaving stake may have changed. Reading it is reading all that an account has under
   * way, up to a hundred entries: who undelegates has paid for that, who delegates or withdraws has not.
   */
  readonly leaving: Set<Address>;
  /** Operator -> accounts whose delegation may have changed. */
  readonly delegators: Map<Address, Set<Address>>;
}

/** What events say. */
export interface ToldClaims {
  readonly moves: ClaimMove[];
  readonly touched: Touched;
}

/** Nobody. */
export function noneTouched(): Touched {
  return { leaving: new Set(), delegators: new Map() };
}

/** Notes that an account's delegation with a validator may have changed. */
function touch(touched: Touched, account: Address, operator: Address): void {
  const known = touched.delegators.get(operator) ?? new Set();
  touched.delegators.set(operator, known.add(account));
}

/** Adds what one list of events touched to another. */
export function touchAll(into: Touched, { leaving, delegators }: Touched): void {
  for (const account of leaving) into.leaving.add(account);
  for (const [operator, all] of delegators) {
    for (const account of all) touch(into, account, operator);
  }
}

/** An effect without its relation, which is always to the first one of its event. */
type Effect = Omit<ClaimMove, "relatedIndex" | "details"> & {
  readonly details?: ClaimMove["details"];
};

/**
 * Reads the events of a transaction that succeeded, or of a block's end, in order.
 * @param validatorsPool account that rewards lie on
 */
export function claimsOfEvents(events: readonly AbciEvent[], validatorsPool: Address): ToldClaims {
  const moves: ClaimMove[] = [];
  const touched = noneTouched();
  for (const { type, attributes } of events) {
    const reader = READERS.get(type);
    if (reader === undefined) continue;
    const values = new Map(attributes.map(({ key, value }) => [key, value]));
    const first = moves.length;
    for (const one of reader({ values, touched, validatorsPool })) {
      const relatedIndex = moves.length === first ? undefined : first;
      moves.push({ ...one, relatedIndex, details: one.details });
    }
  }
  return { moves, touched };
}

interface EventReading {
  readonly values: ReadonlyMap<string, string>;
  readonly touched: Touched;
  readonly validatorsPool: Address;
}

const READERS: ReadonlyMap<string, (reading: EventReading) => Effect[]> = new Map([
  [
    "delegate",
    (reading: EventReading) => {
      const { delegator, validator } = pairOf(reading);
      const shares = decimalsOf(text(reading, "new_shares"));
      return [
        effect("DELEGATE", stakeOf(validator), amountOf(reading)),
        effect("DELEGATE", stakedOf(delegator, validator), shares),
      ];
    },
  ],
  [
    "unbond",
    (reading: EventReading) => {
      const { delegator, validator } = leavingOf(reading);
      const amountAtoken = amountOf(reading);
      return [
        effect("UNDELEGATE", stakeOf(validator), -amountAtoken),
        effect("UNDELEGATE", unbondingOf(delegator), amountAtoken),
      ];
    },
  ],
  [
    "redelegate",
    (reading: EventReading) => {
      const source = leavingOf(reading, "source_validator");
      const destination = pairOf(reading, "destination_validator");
      const amountAtoken = amountOf(reading);
      return [
        effect("REDELEGATE", ownOf(source.delegator), 0n),
        effect("REDELEGATE", stakeOf(source.validator), -amountAtoken),
        effect("REDELEGATE", stakeOf(destination.validator), amountAtoken),
      ];
    },
  ],
  [
    "cancel_unbonding_delegation",
    (reading: EventReading) => {
      const { delegator, validator } = leavingOf(reading);
      const amountAtoken = amountOf(reading);
      const details = { creation_height: text(reading, "creation_height") };
      return [
        { ...effect("CANCEL_UNBONDING", unbondingOf(delegator), -amountAtoken), details },
        effect("CANCEL_UNBONDING", stakeOf(validator), amountAtoken),
      ];
    },
  ],
  [
    "complete_unbonding",
    (reading: EventReading) => {
      const { delegator } = leavingOf(reading);
      return moved(effect("UNBOND_COMPLETE", unbondingOf(delegator), -amountOf(reading)));
    },
  ],
  [
    "complete_redelegation",
    (reading: EventReading) => {
      // It may have borne a slash, of which no event tells.
      leavingOf(reading, "destination_validator");
      return [];
    },
  ],
  [
    "withdraw_rewards",
    (reading: EventReading) => {
      const { delegator, validator } = pairOf(reading);
      const rewards = restOf(reading.validatorsPool);
      return [
        effect("CLAIM", stakedOf(delegator, validator), 0n),
        ...moved(effect("CLAIM", rewards, -amountOf(reading))),
      ];
    },
  ],
  [
    "withdraw_commission",
    (reading: EventReading) => {
      // Blocks of before name no validator here; the state tells what was withdrawn.
      if (!reading.values.has("validator")) return [];
      return [effect("CLAIM", commissionOf(operatorIn(reading, "validator")), 0n)];
    },
  ],
  [
    "proposal_vote",
    (reading: EventReading) => {
      const voter = parseBech32(text(reading, "voter"));
      const details = {
        proposal_id: text(reading, "proposal_id"),
        ...voteOf(text(reading, "option")),
      };
      return [{ ...effect("VOTE", ownOf(voter), 0n), details }];
    },
  ],
]);

function effect(reason: ClaimReason, claim: Claim, delta: bigint): Effect {
  return { reason, claim, delta };
}

function moved(one: Effect): Effect[] {
  return one.delta === 0n ? [] : [one];
}

function ownOf(account: Address): Claim {
  return { kind: "own", account, validator: undefined };
}

/** Part of an account in a validator's stake. */
export function stakedOf(account: Address, validator: Address): Claim {
  return { kind: "staked", account, validator };
}

/** What of an account is leaving. */
export function unbondingOf(account: Address): Claim {
  return { kind: "unbonding", account, validator: undefined };
}

/** Booked commission of an operator. */
export function commissionOf(account: Address): Claim {
  return { kind: "commission", account, validator: undefined };
}

/** What the staking account holds for the stake of a validator. */
export function stakeOf(validator: Address): Claim {
  return { kind: "stake", account: MODULE_ACCOUNTS.staking, validator };
}

/** What of the pool is neither the community's nor booked commission. */
export function restOf(validatorsPool: Address): Claim {
  return { kind: "rewards", account: validatorsPool, validator: undefined };
}

/** What of the pool governance may spend. */
export function communityOf(validatorsPool: Address): Claim {
  return { kind: "community", account: validatorsPool, validator: undefined };
}

/** The account and a validator that an event names; its delegation there is touched. */
function pairOf(reading: EventReading, key = "validator") {
  const delegator = parseBech32(text(reading, "delegator"));
  const validator = operatorIn(reading, key);
  touch(reading.touched, delegator, validator);
  return { delegator, validator };
}

/** The same of an event behind which the account's leaving stake may be another one, too. */
function leavingOf(reading: EventReading, key?: string) {
  const pair = pairOf(reading, key);
  reading.touched.leaving.add(pair.delegator);
  return pair;
}

function operatorIn(reading: EventReading, key: string): Address {
  return parseBech32(text(reading, key), VALIDATOR_PREFIX);
}

/** A vote that is not split by its option's name; any other one as the event has it. */
function voteOf(options: string): Record<string, string> {
  const plain = /^\[\{"option":([1-4]),"weight":"1\.0+"\}\]$/.exec(options)?.[1];
  const name = plain === undefined ? undefined : VOTE_NAMES[Number(plain) - 1];
  return name === undefined ? { options } : { option: name };
}

function amountOf(reading: EventReading): bigint {
  const amount = text(reading, "amount");
  const digits = amount.endsWith(BASE_DENOM) ? amount.slice(0, -BASE_DENOM.length) : "";
  if (!/^[0-9]{1,78}$/.test(digits)) throw new RangeError(`an event has the amount ${amount}`);
  return BigInt(digits);
}

/** A number with 18 decimals, in 10^-18. */
function decimalsOf(number: string): bigint {
  const [, whole, decimals] = /^([0-9]{1,60})\.([0-9]{18})$/.exec(number) ?? [];
  if (whole === undefined) throw new RangeError(`an event has the shares ${number}`);
  return BigInt(`${whole}${decimals}`);
}

function text({ values }: EventReading, key: string): string {
  const value = values.get(key);
  if (value === undefined) throw new RangeError(`an event of a module has no ${key}`);
  return value;
}
