/** A node that is asked beside the first: it is another one, or what both say is one opinion twice. */
import type { ConfigFault } from "./config.js";
import { isSamePlace, whereIs } from "./config-values.js";
import { showValue } from "./config-toml.js";

/** Settings `node.*` of a file that names two nodes. */
export interface TwoNodes {
  readonly "json-rpc-url": string;
  /** Empty where there is none. */
  readonly "second-json-rpc-url": string;
}

/** Refuses a second node that is the first one again. */
export function secondNodeFaults(node: TwoNodes): readonly Omit<ConfigFault, "file">[] {
  const second = node["second-json-rpc-url"];
  if (second === "" || !isSamePlace(node["json-rpc-url"], second)) return [];
  const allowed = "the URL of another node than node.json-rpc-url, or empty";
  return [{ key: "node.second-json-rpc-url", value: showValue(second), allowed }];
}

/** The machine on which both nodes are; undefined where it is not one, or there is no second one. */
export function sharedHost(node: TwoNodes): string | undefined {
  const second = node["second-json-rpc-url"];
  if (second === "") return undefined;
  const [one, other] = [node["json-rpc-url"], second].map((url) => whereIs(url).hostname);
  return one === other ? one : undefined;
}
