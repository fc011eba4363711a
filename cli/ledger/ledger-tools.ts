/** What the commands about the ledger share: the node, the database and the hot wallets of a home. */
import { existsSync } from "node:fs";
import { AppError, errorMessage } from "../../chain/errors.js";
import { type WatcherConfig, watcherConfigFile } from "../../deposit-watcher/config.js";
import { listKnownWallets } from "../../ledger/wallets/home-wallets.js";
import type { HotWallet } from "../../ledger/wallets/wallet.js";
import {
  type ChainIdentity,
  type LedgerDatabase,
  type OlderTables,
  openLedger,
} from "../../ledger/database.js";
import { findIdentity } from "../../ledger/find-identity.js";
import { createEvmClient, type EvmClient } from "../../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../../rpc-client/json-rpc.js";
import { type Environment, loadConfig } from "../../runtime/config/config.js";
import { createLogger } from "../../runtime/process/logger.js";
import { databaseUrl } from "../../runtime/config/service-urls.js";
import { CliError, sentenceOf } from "../errors.js";
import { homePaths, isKitHome, isNodeHome } from "../home/home.js";
import { assertDatabaseAnswers } from "../probe/outside-services.js";

/** Where a command looks, and how it answers. */
export interface LedgerCommand {
  readonly home: string;
  readonly portOffset: number;
  /** True prints one JSON document for programs, false text for people. */
  readonly json: boolean;
  readonly env: Environment;
  readonly signal: AbortSignal;
  /** Prints one line or document. */
  readonly print: (text: string) => void;
}

/**
 * A home that is not there, or a node's own, is mostly a slip in its name: what is missing in it
 * would say nothing of that.
 * With a database of one's own there need be none.
 * @throws HOME_INCOMPLETE
 */
export function assertHome({ home, env }: Pick<LedgerCommand, "home" | "env">): void {
  if ((env["DATABASE_URL"] ?? "") !== "") return;
  const paths = homePaths(home);
  if (!existsSync(paths.config)) {
    throw new CliError(
      "HOME_INCOMPLETE",
      `There is no home in ${home}: --home names another one, npm start makes one.`,
    );
  }
  if (!isNodeHome(paths) || isKitHome(paths)) return;
  throw new CliError(
    "HOME_INCOMPLETE",
    `${home} is the home of a node alone and has no ledger: --home names a kit's home.`,
  );
}

/** An opened ledger with its node. */
export interface OpenedLedger {
  readonly database: LedgerDatabase;
  readonly node: EvmClient;
  /** All hot wallets, retired ones included, the first registered first; never none. */
  readonly wallets: readonly HotWallet[];
  /** Time between two looks of the watcher at the head. */
  readonly pollIntervalMs: number;
  /** Index from which on addresses are of the home's deposit key. */
  readonly keyFromIndex: number;
}

/** How `withLedger` opens it. */
export interface WithLedgerOptions {
  /** Default "refuse"; who only looks must not have migrated. */
  readonly olderTables?: OlderTables;
  /** For work that asks nothing of the node: a ledger says whose it is, and for an empty one it is waited. */
  readonly mayLackNode?: boolean;
}

/**
 * Opens the ledger of a home, runs the work and closes everything.
 * @throws HOME_INCOMPLETE, FOREIGN_LEDGER, NEWER_LEDGER, MIGRATION_NEEDED, settings and connection faults
 */
export async function withLedger<T>(
  command: LedgerCommand,
  work: (opened: OpenedLedger) => Promise<T>,
  { olderTables = "refuse", mayLackNode = false }: WithLedgerOptions = {},
): Promise<T> {
  const { home, env, portOffset, signal } = command;
  assertHome(command);
  return withNode(command, async (node, config) => {
    const url = databaseUrl({ home, env, portOffset });
    const log = createLogger({ component: "cli", level: "silent" });
    const ask = () => askIdentity(node, command);
    // A person is waiting: what asking again cannot cure is told at once.
    const isHopeless = (error: unknown) => error instanceof AppError && !error.retriable;
    if (mayLackNode) await tellOfDatabase(command, url);
    const identity = mayLackNode
      ? await findIdentity({
          ask,
          onWait: tellingOnce(command),
          isFinal: () => false,
          isHopeless,
          url,
          log,
          signal,
        })
      : await ask();
    const database = await openLedger({
      url,
      log,
      signal,
      identity,
      applicationName: "causeway-cli",
      olderTables,
    });
    try {
      const wallets = await listKnownWallets(database, home);
      const pollIntervalMs = config.watcher["poll-interval-ms"];
      const keyFromIndex = config.api["deposit-key-from-index"];
      return await work({ database, node, wallets, pollIntervalMs, keyFromIndex });
    } finally {
      await database.close();
    }
  });
}

/** Asks the node that the watcher's settings name, and ends its connections. @throws settings' faults */
export async function withNode<T>(
  { home, env, portOffset }: Pick<LedgerCommand, "home" | "env" | "portOffset">,
  work: (node: EvmClient, config: WatcherConfig) => Promise<T>,
): Promise<T> {
  const config = loadConfig({ home, env, portOffset }, watcherConfigFile);
  const rpc = createJsonRpcClient({
    url: config.node["json-rpc-url"],
    timeoutMs: config.node["request-timeout-ms"],
  });
  try {
    return await work(createEvmClient(rpc), config);
  } finally {
    rpc.close();
  }
}

/** Which chain a node is of. */
export async function askIdentity(
  node: Pick<EvmClient, "chainId" | "genesisHash">,
  { signal }: Pick<LedgerCommand, "signal">,
): Promise<ChainIdentity> {
  const [chainId, genesisHash] = await Promise.all([
    node.chainId({ signal }),
    node.genesisHash({ signal }),
  ]);
  return { chainId, genesisHash };
}

/** Says at once that the database is waited for: without a node it is, for as long as it takes. */
async function tellOfDatabase(
  { json, print }: Pick<LedgerCommand, "json" | "print">,
  url: string,
): Promise<void> {
  if (json) return;
  try {
    await assertDatabaseAnswers(url, "start the kit, or the server that DATABASE_URL names");
  } catch (error) {
    print(`Waiting: ${sentenceOf(error)}`);
  }
}

/** Says once for what is waited. */
function tellingOnce({
  json,
  print,
}: Pick<LedgerCommand, "json" | "print">): (error: unknown) => void {
  let isTold = json;
  return (error) => {
    if (isTold) return;
    isTold = true;
    print(`The node does not answer yet (${errorMessage(error)}): an empty ledger waits for it.`);
  };
}
