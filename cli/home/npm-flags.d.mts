/** Types of `npm-flags.mjs`. */
import type { ConfigFault, Environment } from "../../runtime/config/config.js";

/** A fault for each flag that was typed in front of the `--`. */
export declare function keptByNpm(
  env: Environment,
  names: readonly string[],
  command: string,
): readonly ConfigFault[];
