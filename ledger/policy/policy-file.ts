/** `<home>/config/policy.json`: read whole, again whenever it changes, and never half believed. */
import { readFileSync, statSync } from "node:fs";
import { errorCode } from "../../chain/errors.js";
import { ConfigError } from "../../runtime/config/config.js";
import { type HashedPolicy, hashPolicy } from "./policy.js";
import { parsePolicy } from "./policy-parser.js";

/**
 * The policy of a file.
 * @throws ConfigError with every fault; also where there is no file
 */
export function loadPolicyFile(file: string): HashedPolicy {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    const allowed = "a policy that this process can read: `causeway init` writes one";
    throw new ConfigError([{ file, key: "(whole file)", value: errorCode(error), allowed }]);
  }
  const { policy, faults } = parsePolicy(text);
  if (policy === undefined) throw new ConfigError(faults.map((fault) => ({ file, ...fault })));
  return hashPolicy(policy);
}

/**
 * A policy file that is looked at before each use. One that became wrong is a fault each time: the
 * looser rules of before must not stay in force because the stricter ones have a mistake.
 */
export class PolicyFile {
  readonly #file: string;
  #known: { readonly version: string; readonly policy: HashedPolicy } | undefined;

  constructor(file: string) {
    this.#file = file;
  }

  /** The policy as the file says it now. @throws ConfigError */
  read(): HashedPolicy {
    const version = versionOf(this.#file);
    if (this.#known === undefined || this.#known.version !== version) {
      this.#known = { version, policy: loadPolicyFile(this.#file) };
    }
    return this.#known.policy;
  }
}

/** Changes with every replacement or edit; "absent" for a file that cannot be looked at. */
function versionOf(file: string): string {
  try {
    const { ino, size, mtimeNs, ctimeNs } = statSync(file, { bigint: true });
    return `${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch {
    return "absent";
  }
}
