/** `--param`: parameters of the modules in the genesis of a new chain. */
import { errorMessage } from "../../chain/errors.js";
import { type ModuleParams, parseModuleParams } from "../../node/settings/module-params.js";
import { CliError } from "../errors.js";

/**
 * The first values of the parameters with those of `--param <module>.<name>=<value>`.
 * @throws USAGE with every fault
 */
export function parseParamFlags(texts: readonly string[]): ModuleParams {
  const values = new Map<string, string>();
  const faults: string[] = [];
  for (const text of texts) {
    const [, name, value] = /^([a-z_.]{1,60})=(.{1,100})$/.exec(text) ?? [];
    if (name === undefined || value === undefined) {
      faults.push(`--param must be <module>.<name>=<value>, not "${text.slice(0, 100)}"`);
      continue;
    }
    // The last one would count, in a genesis that cannot be changed any more.
    const isOther = (values.get(name) ?? value) !== value;
    if (isOther) faults.push(`--param ${name} is given twice, with different values`);
    values.set(name, value);
  }
  let params: ModuleParams | undefined;
  try {
    params = parseModuleParams(Object.fromEntries(values));
  } catch (error) {
    faults.push(errorMessage(error));
  }
  if (params !== undefined && faults.length === 0) return params;
  throw new CliError("USAGE", `${faults.join("; ")}.`);
}
