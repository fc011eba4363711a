/** Validators register and change what they say of themselves (x/staking `keeper/msg_server.go`). */
import { type Address, operatorText } from "../../../chain/address.js";
import { accountText, amountText } from "../../../chain/abci-event.js";
import { isAnybodysKey } from "../../../chain/consensus/ed25519.js";
import { validatorAddress } from "../../../chain/consensus/validator-set.js";
import { SDK_CODE, sdkFault } from "../../../chain/cosmos/sdk-fault.js";
import { DECIMAL_ONE, decimalText } from "../../../chain/encoding/decimal.js";
import type { Atoken } from "../../../chain/units.js";
import { SDK_REFUSALS_VERSION } from "../../settings/app-version.js";
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

function assertRegistrable(
  { state, appVersion }: ModuleContext,
  { operator, publicKey, ...registration }: Registration,
): void {
  const validators = new Validators(state);
  if (validators.of(operator).exists) throw stakingFailure("operatorExists");
  if (validators.byConsensusAddress(validatorAddress(publicKey)) !== undefined) {
    throw stakingFailure("keyExists");
  }
  // Whoever likes would have it slashed, and all that is delegated to it.
  if (appVersion >= SDK_REFUSALS_VERSION && isAnybodysKey(publicKey)) {
    throw stakingFailure("keyKind");
  }
  if (validators.count >= MAX_VALIDATORS) {
    const text = `there are ${MAX_VALIDATORS} validators already, which is the most`;
    throw new MessageFailure(sdkFault(SDK_CODE.invalidRequest, text));
  }
  const { commission, minSelfDelegation, selfDelegationAtoken, description } = registration;
  assertCommission(commission, moduleParam(state, "staking", "min_commission_rate"));
  if (minSelfDelegation === 0n && appVersion >= SDK_REFUSALS_VERSION) throw noLeastStakeFailure();
  if (minSelfDelegation === 0n || selfDelegationAtoken < minSelfDelegation) {
    throw stakingFailure("selfDelegation");
  }
  assertDescription(description);
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

/** Changes a validator. Throws `MessageFailure`. */
export function editValidator(
  context: ModuleContext,
  validator: ValidatorRecord,
  { description, rate, minSelfDelegation }: ValidatorEdit,
): void {
  const { state, timeMs } = context;
  const before = validator.description;
  const next = Object.fromEntries(
    DESCRIPTION_FIELDS.map((name) => {
      const text = description[name];
      return [name, text === DO_NOT_MODIFY ? before[name] : text];
    }),
  ) as Description;
  assertDescription(next);
  if (rate !== undefined) {
    const { commission } = validator;
    assertNewRate(
      commission,
      { rate, timeMs },
      moduleParam(state, "staking", "min_commission_rate"),
    );
    bookRewards(state, validator);
    validator.commission = { ...commission, rate, updateTimeMs: timeMs };
  }
  if (minSelfDelegation !== undefined) {
    if (minSelfDelegation <= validator.minSelfDelegation)
      throw stakingFailure("selfDelegationLess");
    const { operator } = validator;
    const own = new Delegations(state).shares(operator, operator);
    if (minSelfDelegation > tokensOf(validator, own)) throw stakingFailure("selfDelegation");
    validator.minSelfDelegation = minSelfDelegation;
  }
  validator.description = next;
  context.emit("edit_validator", {
    commission_rate: decimalText(validator.commission.rate),
    min_self_delegation: validator.minSelfDelegation.toString(),
    validator: accountText(validator.operator),
  });
}

function assertCommission(commission: Registration["commission"], least: bigint): void {
  const { rate, maxRate, maxChangeRate } = commission;
  if (maxRate > DECIMAL_ONE) throw stakingFailure("commissionRange");
  if (rate > maxRate) throw stakingFailure("commissionMost");
  if (maxChangeRate > maxRate) throw stakingFailure("commissionChange");
  if (rate < least) throw stakingFailure("commissionLeast");
}

function assertNewRate(
  { rate: before, maxRate, maxChangeRate, updateTimeMs }: Commission,
  { rate, timeMs }: { readonly rate: bigint; readonly timeMs: number },
  least: bigint,
): void {
  if (timeMs - updateTimeMs < DAY_MS) throw stakingFailure("commissionTime");
  if (rate > maxRate) throw stakingFailure("commissionMost");
  if (rate - before > maxChangeRate) throw stakingFailure("commissionStep");
  if (rate < least) throw stakingFailure("commissionLeast");
}

function assertDescription(description: Description): void {
  if (description.moniker === "") {
    throw new MessageFailure(sdkFault(SDK_CODE.invalidRequest, "empty description"));
  }
  for (const name of DESCRIPTION_FIELDS) {
    const bytes = Buffer.byteLength(description[name], "utf8");
    if (bytes <= MOST_BYTES[name]) continue;
    const text = `invalid ${name} length; got: ${bytes}, max: ${MOST_BYTES[name]}`;
    throw new MessageFailure(sdkFault(SDK_CODE.invalidRequest, text));
  }
}
