/**
 * A node's home: two settings files, two keys, the genesis, and `data/`; nothing outside it. A
 * kit's home is one of these and more: the exchange side's keys, settings and database.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { DEFAULT_PORTS } from "../../chain/networks.js";
import { APP_FILE, CONFIG_FILE } from "../../node/settings/config.js";
import { type ConfigFile, type ConfigOverrides, renderToml } from "../../runtime/config/config.js";
import { createFileOnce, PLAIN_MODE, SECRET_MODE } from "./home-file.js";
import { CliError } from "../errors.js";
import { createNodeFolders, type HomePaths } from "./home.js";
import { createValidatorStateFile } from "./keys/validator-keys.js";

/** Settings files of a node. */
export const NODE_CONFIG_FILES: readonly ConfigFile[] = [CONFIG_FILE, APP_FILE];

/** What a new home is written from. */
export interface NodeHomeContents {
  /** Texts of the files. */
  readonly genesis: string;
  readonly nodeKey: string;
  readonly validatorKey: string;
  /** Key of the operator's account; of a validator with stake alone. */
  readonly operatorKey?: string;
  /** Added to every port. */
  readonly portOffset: number;
  readonly moniker: string;
  readonly p2p: NonNullable<ConfigOverrides<typeof CONFIG_FILE>["p2p"]>;
}

/** Ports that a node listens on. */
export interface NodePorts {
  readonly p2p: number;
  readonly cometRpc: number;
  readonly metrics: number;
  readonly jsonRpc: number;
  readonly webSocket: number;
  readonly rest: number;
  readonly grpc: number;
}

/** Ports of a node that was written with an offset. */
export function nodePorts(portOffset: number): NodePorts {
  const { p2p, cometRpc, metrics, jsonRpc, webSocket, rest, grpc } = DEFAULT_PORTS;
  return {
    p2p: p2p + portOffset,
    cometRpc: cometRpc + portOffset,
    metrics: metrics + portOffset,
    jsonRpc: jsonRpc + portOffset,
    webSocket: webSocket + portOffset,
    rest: rest + portOffset,
    grpc: grpc + portOffset,
  };
}

/**
 * Refuses a folder that holds a home, or a chain whose genesis was lost.
 * @throws HOME_EXISTS
 */
export function assertNoHome(paths: HomePaths): void {
  const found = [paths.genesis, paths.store].find((path) => existsSync(path));
  if (found === undefined) return;
  throw new CliError(
    "HOME_EXISTS",
    `${paths.home} is a home already (${found} is there): choose another folder, or delete this ` +
      "one where nothing in it is needed any more.",
    { details: { found } },
  );
}

/**
 * Writes a complete home. The genesis comes last: a home that has one has everything, and a write
 * that was cut off is completed by the next, with the keys that are there.
 * @throws HOME_UNUSABLE naming folder and cause
 */
export async function writeNodeHome(paths: HomePaths, contents: NodeHomeContents): Promise<void> {
  const { portOffset, moniker, p2p } = contents;
  await createNodeFolders(paths);
  const config = renderToml(CONFIG_FILE, { "": { moniker }, p2p }, { portOffset });
  const app = renderToml(APP_FILE, {}, { portOffset });
  const files: readonly (readonly [string, string, number])[] = [
    [paths.validatorKey, contents.validatorKey, SECRET_MODE],
    ...validatorStateFile(paths),
    [paths.nodeKey, contents.nodeKey, SECRET_MODE],
    ...operatorFile(paths, contents.operatorKey),
    [join(paths.config, "config.toml"), config, SECRET_MODE],
    [join(paths.config, "app.toml"), app, SECRET_MODE],
    [paths.genesis, contents.genesis, PLAIN_MODE],
  ];
  for (const [path, text, mode] of files) await createFileOnce(path, text, mode);
}

function validatorStateFile({
  store,
  validatorState,
}: HomePaths): readonly (readonly [string, string, number])[] {
  return existsSync(store) ? [] : [[validatorState, createValidatorStateFile(), SECRET_MODE]];
}

function operatorFile(
  { operatorKey }: HomePaths,
  text: string | undefined,
): readonly (readonly [string, string, number])[] {
  return text === undefined ? [] : [[operatorKey, text, SECRET_MODE]];
}
