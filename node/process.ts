/** The node's process: what `node/main.ts` and `causeway start` run. */
import path from "node:path";
import { loadConfig } from "../runtime/config.js";
import type { ProcessDefinition } from "../runtime/lifecycle.js";
import { APP_FILE, CONFIG_FILE } from "./config.js";
import { loadGenesis } from "./genesis.js";
import { startNode } from "./node.js";

/** A full node on the settings, keys and genesis of its home. */
export const NODE_PROCESS: ProcessDefinition = {
  name: "node",
  start({ home, portOffset, env, log, signal, fatal }) {
    const onWarning = (message: string) => log.warn({ message }, "setting without effect");
    const sources = { home, env, portOffset, onWarning };
    const config = loadConfig(sources, CONFIG_FILE);
    const app = loadConfig(sources, APP_FILE);
    const genesis = loadGenesis(path.join(home, "config", "genesis.json"));
    return startNode({ home, genesis, config, app, log, signal, fatal });
  },
};
