/** The node's process: what `node/main.ts` and `causeway start` run. */
import path from "node:path";
import type { ProcessContext, ProcessDefinition } from "../../runtime/process/lifecycle.js";
import { loadNodeSettings } from "../settings/config.js";
import { loadGenesis } from "../settings/genesis.js";
import { startJoiningNode } from "./state-sync.js";
import type { MetUpgrade } from "./upgrades.js";

/** What the node's process is started with. */
export interface NodeContext extends Omit<ProcessContext, "busy" | "handOver"> {
  /** Told of a planned upgrade that this program does not know and that stops the node; maybe repeatedly. */
  readonly onUpgradeNeeded?: (plan: MetUpgrade) => void;
}

/** A full node on the settings, keys and genesis of its home. */
export const NODE_PROCESS = {
  name: "node",
  settings: loadNodeSettings,
  start({ home, portOffset, env, log, signal, fatal, finish, onUpgradeNeeded }: NodeContext) {
    const onWarning = (message: string) => log.warn({ message }, "setting without effect");
    const { config, app } = loadNodeSettings({ home, env, portOffset, onWarning });
    const genesis = loadGenesis(path.join(home, "config", "genesis.json"));
    const ending = { signal, fatal, finish };
    return startJoiningNode({ home, genesis, config, app, log, onUpgradeNeeded, ...ending });
  },
} satisfies ProcessDefinition;
