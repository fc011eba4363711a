/** Types of `kit-flags.mjs`. */
import type { ConfigFault } from "../../runtime/config/config.js";

/** Text of `npm start -- --help`. */
export declare const KIT_HELP: string;

/** Names of the kit's flags. */
export declare const KIT_FLAGS: readonly string[];

/** Values by flag, "" for flags without one; whatever is no flag of the kit is a fault. */
export declare function readFlags(argv: readonly string[]): {
  readonly given: ReadonlyMap<string, string>;
  readonly faults: readonly ConfigFault[];
};

/** What is wrong with a flag. */
export declare function flagFault(key: string, value: string, allowed: string): ConfigFault;
