/** Parameters of the modules as the state has them: from slot 1,000 on, in the order of their rules. */
import { MODULE_PARAM_RULES, type ModuleParams } from "../settings/module-params.js";
import type { JournaledState } from "../state/journaled-state.js";
import { SystemStorage } from "./system-storage.js";

const FIRST_SLOT = 1_000n;

type Rules = typeof MODULE_PARAM_RULES;

/** One parameter's value. */
export function moduleParam<Module extends keyof Rules>(
  state: JournaledState,
  module: Module,
  name: keyof Rules[Module] & string,
): bigint {
  return new SystemStorage(state, module).word(paramSlot(module, name));
}

/** Changes a parameter; the value keeps to its rule. */
export function setModuleParam(
  state: JournaledState,
  module: keyof Rules,
  name: string,
  value: bigint,
): void {
  new SystemStorage(state, module).setWord(paramSlot(module, name), value);
}

/** Puts the values of a genesis into the state. */
export function putModuleParams(state: JournaledState, params: ModuleParams): void {
  for (const module of Object.keys(params) as (keyof Rules)[]) {
    for (const [name, value] of Object.entries(params[module])) {
      setModuleParam(state, module, name, value);
    }
  }
}

function paramSlot(module: keyof Rules, name: string): bigint {
  const place = Object.keys(MODULE_PARAM_RULES[module]).indexOf(name);
  if (place < 0) throw new RangeError(`there is no parameter ${module}.${name}`);
  return FIRST_SLOT + BigInt(place);
}
