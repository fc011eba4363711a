/** Refusals of the staking module, in the SDK's numbers and words (x/staking `types/errors.go`). */
import { SDK_CODE, sdkFault } from "../../../chain/cosmos/sdk-fault.js";
import { SDK_REFUSALS_VERSION } from "../../settings/app-version.js";
import { MessageFailure, type ModuleContext, moduleFailure } from "../module-context.js";

const TEXTS = {
  noValidator: [3, "validator does not exist"],
  operatorExists: [
    4,
    "validator already exist for this operator address; must use new validator operator address",
  ],
  keyExists: [5, "validator already exist for this pubkey; must use new validator pubkey"],
  keyKind: [6, "validator pubkey type is not supported"],
  jailed: [7, "validator for this address is currently jailed"],
  commissionNegative: [9, "commission must be positive"],
  commissionRange: [10, "commission cannot be more than 100%"],
  commissionMost: [11, "commission cannot be more than the max rate"],
  commissionTime: [12, "commission cannot be changed more than once in 24h"],
  commissionChangeNegative: [13, "commission change rate must be positive"],
  commissionChange: [14, "commission change rate cannot be more than the max rate"],
  commissionStep: [15, "commission cannot be changed more than max change rate"],
  selfDelegation: [
    16,
    "validator's self delegation must be greater than their minimum self delegation",
  ],
  selfDelegationLess: [17, "minimum self delegation cannot be decrease"],
  noDelegation: [19, "no delegation for (address, validator) tuple"],
  tooFewShares: [22, "insufficient delegation shares"],
  noUnbonding: [26, "no unbonding delegation found"],
  tooManyUnbondings: [27, "too many unbonding delegation entries for (delegator, validator) tuple"],
  selfRedelegation: [29, "cannot redelegate to the same validator"],
  tinyRedelegation: [30, "too few tokens to redelegate (truncates to zero tokens)"],
  noDestination: [31, "redelegation destination validator not found"],
  transitive: [
    32,
    "redelegation to this validator already in progress; first redelegation to this validator " +
      "must complete before next redelegation",
  ],
  tooManyRedelegations: [
    33,
    "too many redelegation entries for (delegator, src-validator, dst-validator) tuple",
  ],
  exchangeRate: [34, "cannot delegate to validators with invalid (zero) ex-rate"],
  noKey: [39, "empty validator public key"],
  commissionLeast: [40, "commission cannot be less than min rate"],
} as const;

/** The failure of a rule: its words, behind more of them where there are. */
export function stakingFailure(name: keyof typeof TEXTS, what = ""): MessageFailure {
  const [code, words] = TEXTS[name];
  return moduleFailure("staking", code, what === "" ? words : `${what}: ${words}`);
}

/** The failure of a validator that would need no stake of its own. */
export function noLeastStakeFailure(): MessageFailure {
  const text = "minimum self delegation must be a positive integer";
  return new MessageFailure(sdkFault(SDK_CODE.invalidRequest, text));
}

/** The failure of cancelling what does not leave: no unbonding began at a height. */
export function noEntryFailure({ appVersion }: ModuleContext, height: number): MessageFailure {
  const isFirst = appVersion < SDK_REFUSALS_VERSION;
  const text = `unbonding delegation entry is not found at block height ${height}`;
  return new MessageFailure(
    isFirst
      ? sdkFault(SDK_CODE.unknownRequest, `no unbonding entry of height ${height}`)
      : sdkFault(SDK_CODE.notFound, text),
  );
}

/** The failure of stake beyond what consensus can count: with it as votes no block could be decided. */
export function uncountableFailure(): MessageFailure {
  const text = "there would be more stake than votes can be counted for";
  return new MessageFailure(sdkFault(SDK_CODE.invalidRequest, text));
}
