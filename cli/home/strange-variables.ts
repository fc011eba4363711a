/** Variables that look like Causeway's and are none: a misspelt one has no effect, and says nothing. */
import { type Environment, environmentName } from "../../runtime/config/config.js";
import { kubernetesVariables } from "../../runtime/config/kubernetes-variables.js";
import { LOG_LEVEL_VARIABLE } from "../../runtime/config/log-level.js";
import { FORMER_CHECK } from "../upgrade/next-environment.js";
import { KIT_CONFIG_NAMES } from "./kit-config.js";
import { OF_TESTS } from "./test-variables.mjs";

/** Those that no settings file has. */
const KNOWN = new Set([
  "CAUSEWAY_HOME",
  LOG_LEVEL_VARIABLE,
  "CAUSEWAY_SUPERVISED",
  "CAUSEWAY_FAILPOINT",
  FORMER_CHECK,
]);

/**
 * Names of such variables. One that begins as those of a settings file do is that file's to refuse;
 * the others are no faults, because systems may set variables of their own. Those that Kubernetes sets for a
 * Service are left out.
 */
export function strangeVariables(env: Environment): readonly string[] {
  const prefixes = KIT_CONFIG_NAMES.map((name) => environmentName(name, ""));
  const ofKubernetes = kubernetesVariables(env);
  return Object.keys(env).filter(
    (name) =>
      name.toUpperCase().startsWith("CAUSEWAY_") &&
      env[name] !== undefined &&
      !KNOWN.has(name) &&
      !ofKubernetes.has(name) &&
      !OF_TESTS.test(name) &&
      !prefixes.some((prefix) => name.startsWith(prefix)),
  );
}

/** What a person is told of one. */
export function strangeVariableText(name: string): string {
  return `The variable ${name} is no setting of Causeway and has no effect: look at its spelling.`;
}
