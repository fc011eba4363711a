/** The life of `npm start`, from the lock of the home to the last process gone. */
import { setMaxListeners } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { toChecksumAddress } from "../chain/address.js";
import { createEvmClient, type EvmClient } from "../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../rpc-client/json-rpc.js";
import { type Clock, systemClock } from "../runtime/clock.js";
import {
  ConfigError,
  type ConfigFault,
  type Environment,
  readPortOffset,
} from "../runtime/config.js";
import { startGuardian } from "../runtime/guardian.js";
import { createLogger, type Logger } from "../runtime/logger.js";
import { readSecretFile } from "../runtime/secret-file.js";
import { EMBEDDED_POSTGRES_PORT } from "../runtime/service-urls.js";
import { sleep } from "../runtime/task.js";
import { CliError, sentenceOf } from "./errors.js";
import { createExchangeClient } from "./exchange-client.js";
import { createHomeFolders, type HomePaths, homePaths, resolveHome } from "./home.js";
import { lockHome } from "./home-lock.js";
import { initHome } from "./init.js";
import { createKit, type Kit, usesEmbeddedPostgres } from "./kit.js";
import { KIT_HELP, type KitArguments, parseKitArguments } from "./kit-arguments.js";
import { KIT_CONFIG_FILES, KIT_CONFIG_NAMES, type KitConfig, loadKitConfig } from "./kit-config.js";
import { createLogFile } from "./log-file.js";
import { createChildRecord, ORPHAN_WAIT_MS, waitForOrphans } from "./orphans.js";
import { assertServicesAnswer } from "./outside-services.js";
import { assertPortsFree, type WantedPort } from "./ports.js";
import { runReconcile } from "./reconcile.js";
import { createStatusLine, type StatusOutput } from "./status-line.js";
import {
  describeBalances,
  runWalkthrough,
  verifyWalkthrough,
  type WalkthroughOptions,
} from "./walkthrough.js";
import { whereToLookNext } from "./where-next.js";
import { parseKeyFile } from "./wallet-keys.js";

/** What the entry gives: everything of the process that the kit may touch. */
export interface KitProcessContext {
  readonly env: Environment;
  readonly print: (line: string) => void;
  readonly printError: (line: string) => void;
  readonly output: StatusOutput;
  /** Fires at SIGINT, SIGTERM and SIGHUP. */
  readonly signal: AbortSignal;
}

/** Exit code of a run that did what was asked. */
const EXIT_OK = 0;

/** Exit code of a run that could not; the reason was printed. */
const EXIT_FAULT = 1;

/** Pause between looks at ports that orphans still hold. */
const PORT_POLL_MS = 200;

/**
 * Runs the kit from its arguments and returns the exit code; never throws.
 */
export async function runKitProcess(
  argv: readonly string[],
  context: KitProcessContext,
): Promise<number> {
  try {
    const { args, faults } = parseKitArguments(argv);
    if (args.help) {
      context.print(KIT_HELP);
      return EXIT_OK;
    }
    const paths = homePaths(resolveHome(args.home, context.env));
    // Nothing is created and no lock is needed to say what is wrong.
    checkSettings(args, faults, { home: paths.home, env: context.env });
    context.print(`Causeway, home ${paths.home}`);
    await createHomeFolders(paths);
    const lock = await lockHome(paths.lock, paths.home);
    try {
      return await new KitRun(args, paths, context, lock.tookOver).run();
    } finally {
      await lock.release();
    }
  } catch (error) {
    if (context.signal.aborted && error === context.signal.reason) return EXIT_OK;
    context.printError(`causeway: ${sentenceOf(error)}`);
    return EXIT_FAULT;
  }
}

/** Throws ConfigError with the faults of the flags, the environment and all files together. */
function checkSettings(
  args: KitArguments,
  flagFaults: readonly ConfigFault[],
  sources: { readonly home: string; readonly env: Environment },
): void {
  const { validators } = args;
  const faults = [...flagFaults];
  try {
    const portOffset = args.portOffset ?? readPortOffset(sources.home, KIT_CONFIG_NAMES);
    const { nodes } = loadKitConfig({ ...sources, portOffset, validators });
    if (validators !== undefined && nodes.length !== validators) {
      const allowed =
        `${nodes.length}, as this home's chain was made, or no such flag; a chain with ` +
        `${validators} needs another --home`;
      const value = JSON.stringify(String(validators));
      faults.push({ file: "flag", key: "--validators", value, allowed });
    }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    faults.push(...error.faults);
  }
  if (faults.length > 0) throw new ConfigError(faults);
}

/** One run on a locked home. */
class KitRun {
  private readonly clock: Clock = systemClock;
  private readonly log: Logger;
  private readonly portOffset: number;
  /** Fires with the outer signal, or with the fault that ends the kit. */
  private readonly ending = new AbortController();
  private say: (line: string) => void;

  constructor(
    private readonly args: KitArguments,
    private readonly paths: HomePaths,
    private readonly context: KitProcessContext,
    private readonly tookOver: boolean,
  ) {
    this.say = context.print;
    // Every request of the live line hangs on this one signal; Node warns at eleven by default.
    setMaxListeners(0, this.ending.signal);
    this.portOffset = args.portOffset ?? readPortOffset(paths.home, KIT_CONFIG_NAMES);
    const destination = createLogFile(paths.logs, "kit");
    this.log = createLogger({
      component: "kit",
      destination: { write: (line) => destination.write(Buffer.from(line)) },
    });
  }

  async run(): Promise<number> {
    const { signal } = this.context;
    const onStop = (): void => this.ending.abort(signal.reason);
    signal.addEventListener("abort", onStop, { once: true });
    if (signal.aborted) onStop();
    const config = await this.prepare();
    const guardian = startGuardian({ log: this.log });
    const children = createChildRecord(this.paths.children);
    const kit = createKit({
      paths: this.paths,
      nodes: config.nodes,
      portOffset: this.portOffset,
      env: this.context.env,
      guardian,
      children,
      clock: this.clock,
      log: this.log,
      signal: this.ending.signal,
      print: (line) => this.say(line),
      onFatal: (error) => this.ending.abort(error),
    });
    try {
      return await this.runStarted(kit, config);
    } catch (error) {
      // A person who pressed Ctrl-C got what was asked for; with --once the job is undone.
      if (signal.aborted && !this.args.once) return EXIT_OK;
      if (signal.aborted) throw new CliError("STEP_FAILED", "Stopped before the job was done.");
      throw this.ending.signal.aborted ? this.ending.signal.reason : error;
    } finally {
      signal.removeEventListener("abort", onStop);
      this.context.print("Stopping ...");
      await kit.stop();
      guardian.close();
      this.context.print("All processes are gone.");
    }
  }

  /** Everything that can fail before a process is started. */
  private async prepare(): Promise<KitConfig> {
    const { paths, portOffset, context } = this;
    const { signal } = this.ending;
    const { validators } = this.args;
    const config = loadKitConfig({ home: paths.home, env: context.env, portOffset, validators });
    let hadOrphans = this.tookOver;
    const onWait = (orphans: readonly { name: string }[]): void => {
      hadOrphans = true;
      this.say(`Waiting for the former kit's ${orphans.map(({ name }) => name).join(", ")} ...`);
    };
    await waitForOrphans(paths.children, { signal, onWait });
    await this.waitForPorts(config, hadOrphans ? ORPHAN_WAIT_MS : 0);
    await assertServicesAnswer(context.env, { signal, notice: this.say });
    const home = await initHome({
      paths,
      portOffset,
      network: "testnet",
      blockIntervalMs: this.args.blockIntervalMs,
      validators,
      configFiles: KIT_CONFIG_FILES,
      clock: this.clock,
    });
    if (home.created) {
      this.say("A new home: keys, settings and the genesis of a local chain are written.");
      this.say(`  faucet ${toChecksumAddress(home.faucetAddress)}`);
      // The contract allows this one secret to be shown, once: it owns play money only.
      this.say(`  faucet key (shown only now) ${readSecretFile(paths.faucetKey)}`);
    }
    return config;
  }

  private async waitForPorts(config: KitConfig, patienceMs: number): Promise<void> {
    const deadlineMs = this.clock.monotonicMs() + patienceMs;
    for (;;) {
      try {
        return await assertPortsFree([...config.wantedPorts, ...this.databasePort()]);
      } catch (error) {
        if (this.clock.monotonicMs() >= deadlineMs) throw error;
      }
      await sleep(PORT_POLL_MS, { signal: this.ending.signal });
    }
  }

  /** The database's port, unless a server that survived a kill may hold it: that one is ours. */
  private databasePort(): WantedPort[] {
    const pidFile = join(this.paths.data, "postgres", "postmaster.pid");
    if (!usesEmbeddedPostgres(this.context.env) || existsSync(pidFile)) return [];
    const port = EMBEDDED_POSTGRES_PORT + this.portOffset;
    return [{ part: "the embedded PostgreSQL", host: "127.0.0.1", port }];
  }

  private async runStarted(kit: Kit, config: KitConfig): Promise<number> {
    this.say("Starting:");
    await kit.start();
    const rpc = createJsonRpcClient({ url: config.endpoints.jsonRpcUrl });
    const evm = createEvmClient(rpc);
    try {
      if (!this.args.noDemo) await this.demonstrate(evm, config);
      if (this.args.once) return EXIT_OK;
      for (const line of whereToLookNext(this.paths, config.endpoints)) this.say(line);
      await this.stayUp(evm, config);
      return EXIT_OK;
    } finally {
      rpc.close();
    }
  }

  /** Does the main job. Without --once its failure is told, and the kit stays up to be looked at. */
  private async demonstrate(evm: EvmClient, config: KitConfig): Promise<void> {
    try {
      await this.doMainJob(evm, config);
    } catch (error) {
      if (this.args.once || this.ending.signal.aborted) throw error;
      this.context.printError(`The main job did not succeed: ${sentenceOf(error)}`);
    }
  }

  private async doMainJob(evm: EvmClient, config: KitConfig): Promise<void> {
    const { paths, ending, clock } = this;
    const { depositUrl, withdrawalUrl } = config.endpoints;
    const apiKey = readSecretFile(paths.apiKey);
    const options: WalkthroughOptions = {
      evm,
      exchange: createExchangeClient({ depositUrl, withdrawalUrl, apiKey }),
      faucetKey: parseKeyFile(readFileSync(paths.faucetKey, "utf8"), paths.faucetKey),
      print: this.say,
      clock,
      signal: ending.signal,
    };
    this.say("The main job, once:");
    const result = await runWalkthrough(options);
    const balances = await verifyWalkthrough(result, options);
    for (const line of describeBalances(result.customerId, balances)) this.say(line);
    await this.reconcile();
    this.say("  checked     receipts, chain balances and the ledger were read again: all true");
  }

  /** The ledger against the chain; prints the report only when there is a break. */
  private async reconcile(): Promise<void> {
    const lines: string[] = [];
    const exitCode = await runReconcile({
      home: this.paths.home,
      portOffset: this.portOffset,
      json: false,
      env: this.context.env,
      signal: this.ending.signal,
      print: (line) => lines.push(line),
    });
    if (exitCode === 0) {
      this.say("  reconciled  ledger and chain agree to the last atoken");
      return;
    }
    for (const line of lines) this.say(line);
    throw new CliError("NOT_TRUE", "Ledger and chain do not agree; the report is above.");
  }

  /** The live line until the kit ends; throws the fault that ended it, if it was one. */
  private async stayUp(evm: EvmClient, config: KitConfig): Promise<void> {
    const probe = { endpoints: config.endpoints, evm, clock: this.clock };
    const line = createStatusLine(probe, this.context.output);
    this.say = (message) => line.interrupt(message);
    await line.run(this.ending.signal);
    this.say = this.context.print;
    if (!this.context.signal.aborted) throw this.ending.signal.reason;
  }
}
