/** The flag `--evm`: which EVM executes blocks, in place of `[execution] engine` in app.toml. */
import { type Environment, environmentName } from "../../runtime/config/config.js";

/** What the flag takes, as the setting does. */
export const EVM_CHOICES = ["causeway", "ethereumjs"] as const;

/** The environment with the choice in it; a flag goes before everything else. */
export function withEvm(env: Environment, evm: string | undefined): Environment {
  return evm === undefined ? env : { ...env, [environmentName("app", "execution.engine")]: evm };
}
