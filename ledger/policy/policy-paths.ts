/** Where a home has what its signer goes by. Apart from their readers: a path loads no parser. */
import { join } from "node:path";

/** Place of the policy in a home. */
export function policyPath(home: string): string {
  return join(home, "config", "policy.json");
}

/** Place of the kill switch in a home. */
export function killSwitchPath(home: string): string {
  return join(home, "config", "kill-switch.json");
}

/** Place of what a home remembers of the policy that it brought into force last. */
export function policyMarkPath(home: string): string {
  return join(home, "data", "policy-mark.json");
}
