/**
 * Who decides blocks: the validators with the most stake that are not jailed (x/staking
 * `keeper/val_state_change.go`). Worked out again only in blocks that changed stake or jail;
 * consensus uses what a block says two heights later.
 */
import type { ValidatorUpdate } from "../../../chain/consensus/validator-set.js";
import { bookRewards } from "../distribution/rewards.js";
import type { ModuleContext } from "../module-context.js";
import { moduleParam } from "../module-params.js";
import { watchAnew } from "../slashing/signing.js";
import { unbondingTimeMs } from "./delegating.js";
import { Delegations, ENTRY_KIND } from "./delegation-record.js";
import {
  ATOKEN_PER_POWER,
  BOND_STATUS,
  type ValidatorRecord,
  Validators,
} from "./validator-record.js";

/**
 * Changes of the set after a block; power 0 removes. A set without anybody would end the chain: then
 * the present one stays until somebody can take its place.
 */
export function updateConsensusSet(context: ModuleContext): ValidatorUpdate[] {
  const validators = new Validators(context.state);
  if (!validators.isDirty) return [];
  const chosen = choose(context, validators);
  if (chosen.length === 0) return [];
  validators.isDirty = false;
  const staying = new Set(chosen.map(({ validator }) => validator.operator));
  const leaving = validators.inConsensus().filter(({ operator }) => !staying.has(operator));
  const updates: ValidatorUpdate[] = [];
  for (const validator of leaving) {
    updates.push({ publicKey: validator.publicKey, power: 0n });
    validators.setInConsensus(validator, 0n);
    beginUnbonding(context, validator);
  }
  for (const { validator, power } of chosen) {
    if (!validator.isBonded) bond(context, validator);
    if (validator.consensusPower === power) continue;
    validators.setInConsensus(validator, power);
    updates.push({ publicKey: validator.publicKey, power });
  }
  return updates;
}

interface Chosen {
  readonly validator: ValidatorRecord;
  readonly power: bigint;
}

/** Most power first, ties to the lower operator. */
function choose({ state }: ModuleContext, validators: Validators): Chosen[] {
  const most = Number(moduleParam(state, "staking", "max_validators"));
  return validators
    .all()
    .filter(({ isJailed }) => !isJailed)
    .map((validator) => ({ validator, power: validator.tokens / ATOKEN_PER_POWER }))
    .filter(({ power }) => power > 0n)
    .toSorted(byPower)
    .slice(0, most);
}

function byPower(left: Chosen, right: Chosen): number {
  if (left.power !== right.power) return left.power > right.power ? -1 : 1;
  return left.validator.operator < right.validator.operator ? -1 : 1;
}

function bond(context: ModuleContext, validator: ValidatorRecord): void {
  const { unbondingEntry } = validator;
  if (unbondingEntry !== 0n) {
    const delegations = new Delegations(context.state);
    delegations.remove(delegations.entry(unbondingEntry));
  }
  // What it earns counts from here on.
  bookRewards(context.state, validator);
  validator.setStatus(BOND_STATUS.bonded);
  watchAnew(context, validator);
}

function beginUnbonding(context: ModuleContext, validator: ValidatorRecord): void {
  bookRewards(context.state, validator);
  const { operator } = validator;
  const begun = {
    kind: ENTRY_KIND.validator,
    delegator: operator,
    source: operator,
    destination: operator,
    amountAtoken: 0n,
    initialAtoken: 0n,
    destinationShares: 0n,
    height: context.height,
    endMs: context.timeMs + unbondingTimeMs(context),
    borneSlashes: 0,
  };
  const entry = new Delegations(context.state).add(begun, context.appVersion);
  const unbonding = { height: context.height, timeMs: entry.endMs, entry: entry.id };
  validator.setStatus(BOND_STATUS.unbonding, unbonding);
}
