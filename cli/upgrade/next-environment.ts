/** What a release is started with where it goes on at the height of a planned upgrade. */
import { CONFIG_FILE } from "../../node/settings/config.js";
import { type Environment, environmentName } from "../../runtime/config/config.js";

/** A planned upgrade that was met. */
export interface MetPlan {
  readonly name: string;
  readonly height: number;
  /** The node has taken part: the key's signatures in the last blocks are its own. */
  readonly hasSignedHere: boolean;
}

const CHECK = environmentName(CONFIG_FILE.name, "consensus.double_sign_check_height");

/** What `CHECK` was before it was set for one start; "" where it was not set, which is no value of it. */
export const FORMER_CHECK = "CAUSEWAY_FORMER_DOUBLE_SIGN_CHECK_HEIGHT";

/**
 * The environment of a release, by that of the program before it. Where this very node has signed the last
 * blocks they say nothing of another process, and on a chain that waits none come without its own signatures.
 * One that only followed, as a copy of a validator's home does, has to look, although the program before it
 * may have been started without.
 */
export function environmentAt({ hasSignedHere }: MetPlan, env: Environment): Environment {
  const { [FORMER_CHECK]: handed, ...others } = env;
  const former = handed ?? env[CHECK] ?? "";
  if (hasSignedHere) return { ...others, [CHECK]: "0", [FORMER_CHECK]: former };
  if (handed === undefined) return env;
  const { [CHECK]: _left, ...rest } = others;
  return former === "" ? rest : { ...rest, [CHECK]: former };
}
