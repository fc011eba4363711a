/** Validators register and change what they say of themselves (x/staking `keeper/msg_server.go`). */
import { type Address, operatorText } from "../../../chain/address.js";
import { accountText, amountText } from "../../../chain/abci-event.js";
import { isAnybodysKey } from "../../../chain/consensus/ed25519.js";
import { validatorAddress } from "../../../chain/consensus/validator-set.js";
import { SDK_CODE, sdkFault } from "../../../chain/cosmos/sdk-fault.js";
import { DECIMAL_ONE, decimalText } from "../../../chain/encoding/decimal.js";
import type { Atoken } from "../../../chain/units.js";
import { SDK_REFUSALS_VERSION } from "../../settings/app-version.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { bookRewards } from "../distribution/rewards.js";
import { MessageFailure, type ModuleContext } from "../module-context.js";
import { moduleParam } from "../module-params.js";
import { delegate } from "./delegating.js";
import { Delegations } from "./delegation-record.js";
import { noLeastStakeFailure, stakingFailure } from "./staking-failure.js";
import {
  type Commission,
  type Description,
  DESCRIPTION_FIELDS,
  type ValidatorRecord,
  Validators,
} from "./validator-record.js";
import { tokensOf } from "./shares.js";

/** Longest texts, bytes: those of x/staking. */
const MOST_BYTES: Readonly<Record<(typeof DESCRIPTION_FIELDS)[number], number>> = {
  moniker: 70,
  identity: 3_000,
  website: 140,
  security_contact: 140,
  details: 280,
};

/** All validators: each is looked at when stake has moved. Beyond the SDK, which has no bound. */
const MAX_VALIDATORS = 1_000;

const DAY_MS = 86_400_000;

/** Text of a description's field that is to stay as it is. */
const DO_NOT_MODIFY = "[do-not-modify]";

/** What a validator registers with. */
export interface Registration {
  readonly operator: Address;
  /** 32-byte ed25519 key of consensus. */
  readonly publicKey: Uint8Array;
  readonly description: Description;
  readonly commission: Omit<Commission, "updateTimeMs">;
  readonly minSelfDelegation: bigint;
  readonly selfDelegationAtoken: Atoken;
}

/**
 * Registers a validator: its fee is burned and its stake delegated (D15).
 * Throws `MessageFailure`.
 */
export function registerValidator(context: ModuleContext, registration: Registration): void {
  const { operator, selfDelegationAtoken } = registration;
  assertRegistrable(context, registration);
  const burnAtoken = moduleParam(context.state, "staking", "burn_amount");
  if (burnAtoken > 0n) context.moveCoins("REGISTER_BURN", operator, undefined, burnAtoken);
  const validator = createValidator(context, registration);
  context.emit("register_validator", {
    validator: operatorText(operator),
    burn_amount: amountText(burnAtoken),
    self_delegation: amountText(selfDelegationAtoken),
  });
  context.emit("create_validator", {
    validator: operatorText(operator),
    amount: amountText(selfDelegationAtoken),
  });
  delegate(context, operator, validator, selfDelegationAtoken);
}

/** Looks at what registers in the order of x/staking; what only we ask for comes last. */
function assertRegistrable(context: ModuleContext, registration: Registration): void {
  const { state, appVersion } = context;
  if (appVersion < SDK_REFUSALS_VERSION) {
    assertRegistrableFirst(state, registration);
    return;
  }
  const { publicKey, commission, description } = registration;
  assertDescribed(description);
  assertCommission(commission);
  if (registration.minSelfDelegation === 0n) throw noLeastStakeFailure();
  assertSelfDelegation(registration);
  const least = leastCommission(state);
  if (commission.rate < least) {
    const words = "cannot set validator commission to less than minimum rate of";
    throw stakingFailure("commissionLeast", `${words} ${decimalText(least)}`);
  }
  assertNew(state, registration);
  assertLengths(description);
  // Whoever likes would have it slashed, and all that is delegated to it.
  if (isAnybodysKey(publicKey)) throw stakingFailure("keyKind");
  assertRoom(state);
}

/** By the first rules, in an order of their own. */
function assertRegistrableFirst(state: JournaledState, registration: Registration): void {
  const { commission, minSelfDelegation, description } = registration;
  assertNew(state, registration);
  assertRoom(state);
  // Read before anything is refused for it: what a refused call of a contract has read is in its gas.
  const least = leastCommission(state);
  assertCommission(commission);
  if (commission.rate < least) throw stakingFailure("commissionLeast");
  if (minSelfDelegation === 0n) throw stakingFailure("selfDelegation");
  assertSelfDelegation(registration);
  assertNamedFirst(description);
  assertLengths(description);
}

function assertNew(state: JournaledState, { operator, publicKey }: Registration): void {
  const validators = new Validators(state);
  if (validators.of(operator).exists) throw stakingFailure("operatorExists");
  if (validators.byConsensusAddress(validatorAddress(publicKey)) !== undefined) {
    throw stakingFailure("keyExists");
  }
}

function assertRoom(state: JournaledState): void {
  if (new Validators(state).count < MAX_VALIDATORS) return;
  throw requestFailure(`there are ${MAX_VALIDATORS} validators already, which is the most`);
}

function assertSelfDelegation({ minSelfDelegation, selfDelegationAtoken }: Registration): void {
  if (selfDelegationAtoken < minSelfDelegation) throw stakingFailure("selfDelegation");
}

function leastCommission(state: JournaledState): bigint {
  return moduleParam(state, "staking", "min_commission_rate");
}

/** The record of a new validator without stake; genesis begins with these. */
export function createValidator(
  context: ModuleContext,
  { operator, publicKey, description, ...registration }: Omit<Registration, "selfDelegationAtoken">,
): ValidatorRecord {
  const validator = new Validators(context.state).of(operator);
  validator.create(validatorAddress(publicKey), publicKey);
  validator.description = description;
  validator.commission = { ...registration.commission, updateTimeMs: context.timeMs };
  validator.minSelfDelegation = registration.minSelfDelegation;
  return validator;
}

/** What a validator changes; what is undefined stays. */
export interface ValidatorEdit {
  readonly description: Description;
  readonly rate: bigint | undefined;
  readonly minSelfDelegation: bigint | undefined;
}

/**
 * Throws `MessageFailure` for what no validator can change to: from version 2 of the rules on it is
 * looked at before who it is that asks.
 */
export function assertEdit(
  { state }: Pick<ModuleContext, "state">,
  { description, rate, minSelfDelegation }: ValidatorEdit,
): void {
  assertDescribed(description);
  if (minSelfDelegation === 0n) throw noLeastStakeFailure();
  if (rate === undefined) return;
  if (rate > DECIMAL_ONE) throw noRateFailure();
  const least = leastCommission(state);
  if (rate >= least) return;
  const words = "commission rate cannot be less than the min commission rate";
  throw requestFailure(`${words} ${decimalText(least)}`);
}

/** The failure of changing to a rate that is none. */
export function noRateFailure(): MessageFailure {
  return requestFailure("commission rate must be between 0 and 1 (inclusive)");
}

/** Changes a validator, to what `assertEdit` lets pass. Throws `MessageFailure`. */
export function editValidator(
  context: ModuleContext,
  validator: ValidatorRecord,
  { description, rate, minSelfDelegation }: ValidatorEdit,
): void {
  const { state, timeMs, appVersion } = context;
  const before = validator.description;
  const next = Object.fromEntries(
    DESCRIPTION_FIELDS.map((name) => {
      const text = description[name];
      return [name, text === DO_NOT_MODIFY ? before[name] : text];
    }),
  ) as Description;
  const isFirst = appVersion < SDK_REFUSALS_VERSION;
  if (isFirst) assertNamedFirst(next);
  assertLengths(next);
  if (rate !== undefined) {
    const { commission } = validator;
    const least = isFirst ? leastCommission(state) : 0n;
    assertNewRate(commission, rate, timeMs);
    if (rate < least) throw stakingFailure("commissionLeast");
    bookRewards(state, validator);
    validator.commission = { ...commission, rate, updateTimeMs: timeMs };
  }
  if (minSelfDelegation !== undefined) {
    if (minSelfDelegation <= validator.minSelfDelegation)
      throw stakingFailure("selfDelegationLess");
    const most = isFirst ? ownTokens(state, validator) : validator.tokens;
    if (minSelfDelegation > most) throw stakingFailure("selfDelegation");
    validator.minSelfDelegation = minSelfDelegation;
  }
  validator.description = next;
  context.emit("edit_validator", {
    commission_rate: decimalText(validator.commission.rate),
    min_self_delegation: validator.minSelfDelegation.toString(),
    validator: accountText(validator.operator),
  });
}

/** By the first rules no validator asks for more of its operator than the operator has staked. */
function ownTokens(state: JournaledState, validator: ValidatorRecord): Atoken {
  const { operator } = validator;
  return tokensOf(validator, new Delegations(state).shares(operator, operator));
}

/** Throws `MessageFailure` for rates that no validator can have, in the SDK's order. */
export function assertCommission({
  rate,
  maxRate,
  maxChangeRate,
}: Registration["commission"]): void {
  if (maxRate < 0n) throw stakingFailure("commissionNegative");
  if (maxRate > DECIMAL_ONE) throw stakingFailure("commissionRange");
  if (rate < 0n) throw stakingFailure("commissionNegative");
  if (rate > maxRate) throw stakingFailure("commissionMost");
  if (maxChangeRate < 0n) throw stakingFailure("commissionChangeNegative");
  if (maxChangeRate > maxRate) throw stakingFailure("commissionChange");
}

function assertNewRate(
  { rate: before, maxRate, maxChangeRate, updateTimeMs }: Commission,
  rate: bigint,
  timeMs: number,
): void {
  if (timeMs - updateTimeMs < DAY_MS) throw stakingFailure("commissionTime");
  if (rate > maxRate) throw stakingFailure("commissionMost");
  if (rate - before > maxChangeRate) throw stakingFailure("commissionStep");
}

/** A validator may be without a name, where it says anything else of itself. Throws `MessageFailure`. */
export function assertDescribed(description: Description): void {
  if (DESCRIPTION_FIELDS.every((name) => description[name] === "")) throw emptyFailure();
}

function assertNamedFirst({ moniker }: Description): void {
  if (moniker === "") throw emptyFailure();
}

function emptyFailure(): MessageFailure {
  return requestFailure("empty description");
}

function assertLengths(description: Description): void {
  for (const name of DESCRIPTION_FIELDS) {
    const bytes = Buffer.byteLength(description[name], "utf8");
    if (bytes <= MOST_BYTES[name]) continue;
    throw requestFailure(`invalid ${name} length; got: ${bytes}, max: ${MOST_BYTES[name]}`);
  }
}

function requestFailure(text: string): MessageFailure {
  return new MessageFailure(sdkFault(SDK_CODE.invalidRequest, text));
}
