/** `--param`: parameters of the modules in the genesis of a new chain. */
import { type ModuleParams, parseModuleParams } from "../../node/settings/module-params.js";
import { CliError } from "../errors.js";

/**
 * The first values of the parameters with those of `--param <module>.<name>=<value>`.
 * @throws MODULE_PARAM_INVALID, USAGE
 */
export function parseParamFlags(texts: readonly string[]): ModuleParams {
  const values: Record<string, string> = {};
  for (const text of texts) {
    const [, name, value] = /^([a-z_.]{1,60})=(.{1,100})$/.exec(text) ?? [];
    if (name === undefined || value === undefined) {
      const message = `--param must be <module>.<name>=<value>, not "${text.slice(0, 100)}".`;
      throw new CliError("USAGE", message);
    }
    values[name] = value;
  }
  return parseModuleParams(values);
}
