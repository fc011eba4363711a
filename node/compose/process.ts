/** The node's process: what `node/main.ts` and `causeway start` run. */
import path from "node:path";
import type { ProcessDefinition } from "../../runtime/process/lifecycle.js";
import { loadNodeSettings } from "../settings/config.js";
import { loadGenesis } from "../settings/genesis.js";
import { startJoiningNode } from "./state-sync.js";

/** A full node on the settings, keys and genesis of its home. */
export const NODE_PROCESS: ProcessDefinition = {
  name: "node",
  settings: loadNodeSettings,
  start({ home, portOffset, env, log, signal, fatal, finish }) {
    const onWarning = (message: string) => log.warn({ message }, "setting without effect");
    const { config, app } = loadNodeSettings({ home, env, portOffset, onWarning });
    const genesis = loadGenesis(path.join(home, "config", "genesis.json"));
    return startJoiningNode({ home, genesis, config, app, log, signal, fatal, finish });
  },
};
