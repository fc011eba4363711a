/** The checks of `causeway doctor` for what can be read and contradicts itself: told, and not refused. */
import { existsSync } from "node:fs";
import type { HashedPolicy } from "../../ledger/policy/policy.js";
import { unreachableRules } from "../../ledger/policy/out-of-reach.js";
import { loadPolicyFile } from "../../ledger/policy/policy-file.js";
import { watcherConfigFile } from "../../deposit-watcher/config.js";
import { sharedHost, type TwoNodes } from "../../runtime/config/second-node.js";
import { loadConfig } from "../../runtime/config/config.js";
import { oddSettings, workerConfigFile } from "../../withdrawal-worker/config.js";
import { type DoctorContext, type Finding, finding } from "./doctor-checks.js";

/**
 * Contradictions in settings and in the policy; each is right by itself.
 * @param inForce the policy that the ledger has in force; undefined where it does not say: then the home's
 *   file is looked at. A home apart from the worker's may have an older copy.
 */
export function checkMeaning(
  { paths, env, portOffset }: Pick<DoctorContext, "paths" | "env" | "portOffset">,
  inForce: HashedPolicy | undefined,
): readonly Finding[] {
  const sources = { home: paths.home, env, portOffset };
  const worker = loadConfig(sources, workerConfigFile);
  const odd = oddSettings(worker).map(({ code, key, value }) =>
    finding("settings", "warn", `${code}: worker.toml: ${key} = ${value}`, "lower it to the cap"),
  );
  const watcher = loadConfig(sources, watcherConfigFile);
  const files = { "watcher.toml": watcher, "worker.toml": worker };
  const settings = [
    ...odd,
    ...Object.entries(files).flatMap(([file, { node }]) => checkSecondNode(file, node)),
  ];
  if (inForce === undefined && !existsSync(paths.policy)) return settings;
  const { policy } = inForce ?? loadPolicyFile(paths.policy);
  const place = inForce === undefined ? paths.policy : "the policy in force";
  const rules = unreachableRules(policy).map(({ code, key, value }) => {
    const remedy = "name more approvers, or ask for fewer: nothing that needs these can be paid";
    return finding("policy", "warn", `${code}: ${place}: ${key} = ${value}`, remedy);
  });
  return [...settings, ...rules];
}

/** Two nodes of one machine are lost, and changed, together. */
function checkSecondNode(file: string, node: TwoNodes): readonly Finding[] {
  const host = sharedHost(node);
  if (host === undefined) return [];
  const value = `${file}: both nodes are on ${host}`;
  const remedy = "name one of another machine in node.second-json-rpc-url, best run by other hands";
  return [finding("second-node", "warn", value, remedy)];
}
