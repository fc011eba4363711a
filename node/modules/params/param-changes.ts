/** How parameters change: all of a message or none, within the bounds of their rules. */
import { SDK_CODE } from "../../../chain/cosmos/sdk-fault.js";
import { MODULE_PARAM_RULES, moduleParamFault } from "../../settings/module-params.js";
import { SDK_REFUSALS_VERSION } from "../../settings/app-version.js";
import { messageFailure } from "../message-fields.js";
import type { ModuleContext } from "../module-context.js";
import { setModuleParam } from "../module-params.js";
import { Validators } from "../staking/validator-record.js";

type Rules = typeof MODULE_PARAM_RULES;

/** Values of some parameters of a module, by name. */
export type ParamValues<Module extends keyof Rules> = {
  readonly [Name in keyof Rules[Module]]?: bigint;
};

/** Modules whose parameters no vote changes, with the reason that is told. */
export const FIXED_PARAMS: ReadonlyMap<string, string> = new Map([
  [
    "mint",
    "x/mint has no parameters that can be changed: inflation follows from the height; an upgrade " +
      "changes it",
  ],
  ["bank", "x/bank has no parameters that can be changed: every account may send"],
  [
    "auth",
    "x/auth has no parameters that can be changed: what transactions pay and hold is a rule of " +
      "the chain; an upgrade changes it",
  ],
]);

/** Why a message cannot be carried out by any vote; undefined for all others. @param name in full */
export function fixedParamsReason(name: string): string | undefined {
  const [, module = ""] = /^cosmos\.([a-z]+)\.v1(?:beta1)?\.MsgUpdateParams$/.exec(name) ?? [];
  return FIXED_PARAMS.get(module);
}

/** Why parameters of a module cannot have these values at any time; undefined where they can. */
export function paramValuesFault(
  { appVersion }: Pick<ModuleContext, "appVersion">,
  module: keyof Rules,
  values: Readonly<Record<string, bigint>>,
): string | undefined {
  for (const [name, value] of Object.entries(values)) {
    const fault = moduleParamFault(module, name, value);
    if (fault !== undefined) return fault;
  }
  return appVersion < SDK_REFUSALS_VERSION ? undefined : nothingFault(module, values);
}

/** Parameters of governance that the SDK does not let be zero: anybody could decide then, or nobody. */
const ABOVE_ZERO: readonly string[] = [
  "min_deposit",
  "expedited_min_deposit",
  "threshold",
  "expedited_threshold",
  "veto_threshold",
];

function nothingFault(module: keyof Rules, values: Readonly<Record<string, bigint>>) {
  if (module !== "gov") return undefined;
  const name = ABOVE_ZERO.find((one) => values[one] === 0n);
  return name === undefined ? undefined : `gov.${name} must be above zero`;
}

/** Sets parameters of a module; all of them, or none where one is out of its bounds. */
export function setModuleParams<Module extends keyof Rules>(
  context: Pick<ModuleContext, "state" | "appVersion">,
  module: Module,
  values: ParamValues<Module>,
): void {
  const { state } = context;
  const given = values as Readonly<Record<string, bigint>>;
  const fault = paramValuesFault(context, module, given);
  if (fault !== undefined) throw messageFailure(SDK_CODE.invalidRequest, fault);
  for (const [name, value] of Object.entries(given)) setModuleParam(state, module, name, value);
  // Another number of validators changes who is in the set.
  if (module === "staking") new Validators(state).isDirty = true;
}
