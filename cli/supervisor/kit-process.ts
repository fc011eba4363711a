/** The life of `npm start`, from the lock of the home to the last process gone. */
import { withEvm } from "../home/evm-choice.js";
import { setMaxListeners } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { toChecksumAddress } from "../../chain/address.js";
import { createEvmClient, type EvmClient } from "../../rpc-client/evm-client.js";
import { createJsonRpcClient } from "../../rpc-client/json-rpc.js";
import { type Clock, systemClock } from "../../runtime/process/clock.js";
import {
  ConfigError,
  type ConfigFault,
  type Environment,
  MAX_PORT_OFFSET,
  readPortOffset,
} from "../../runtime/config/config.js";
import { startGuardian } from "../../runtime/process/guardian.js";
import { createLogger, type Logger } from "../../runtime/process/logger.js";
import type { HeldLock } from "../../runtime/files/lock-file.js";
import { readLogLevel } from "../../runtime/config/log-level.js";
import { readApiKeyFile, readSecretFile } from "../../runtime/config/secret-file.js";
import { EMBEDDED_POSTGRES_PORT } from "../../runtime/config/service-urls.js";
import { sleep } from "../../runtime/process/task.js";
import { CliError, sentenceOf } from "../errors.js";
import { createExchangeClient } from "../probe/exchange-client.js";
import { createHomeFolders, type HomePaths, homePaths, resolveHome } from "../home/home.js";
import { keptByNpm } from "../home/npm-flags.mjs";
import { homeFileFaults } from "../home/file-faults.js";
import { homeLost, lockHome } from "../home/home-lock.js";
import { type ChainPlan, planChain, planEnvironment } from "../home/network/attach.js";
import type { KitNode } from "../home/network/kit-nodes.js";
import { blockIntervalOf, hotWalletAddress, initAttachedHome, initHome } from "../home/init.js";
import { assertNodeOfPlan, type InspectedNode, inspectNode } from "../probe/node-inspection.js";
import { assertClusterCanBeMade } from "../postgres/init-paths.js";
import { createKit, type Kit, usesEmbeddedPostgres } from "./kit.js";
import { type KitArguments, leftOut, parseKitArguments } from "./kit-arguments.js";
import { KIT_FLAGS, KIT_HELP } from "./kit-flags.mjs";
import {
  KIT_CONFIG_FILES,
  KIT_CONFIG_NAMES,
  type KitConfig,
  loadKitConfig,
} from "../home/kit-config.js";
import { strangeVariables, strangeVariableText } from "../home/strange-variables.js";
import { createLogFile } from "./log-file.js";
import { createChildRecord, ORPHAN_WAIT_MS, waitForOrphans } from "./orphans.js";
import { assertServicesAnswer } from "../probe/outside-services.js";
import { assertPortsFree, findBlockedPorts, type WantedPort } from "../home/ports.js";
import { runReconcile } from "../ledger/reconcile.js";
import { createStatusLine, type StatusOutput } from "./status-line.js";
import {
  describeBalances,
  runWalkthrough,
  verifyWalkthrough,
  type WalkthroughOptions,
} from "./walkthrough.js";
import { causewayCommand, whereToLookNext } from "../where-next.js";
import { parseKeyFile } from "../home/keys/wallet-keys.js";

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
    const lost = keptByNpm(context.env, KIT_FLAGS, "npm start");
    const plan = checkSettings(args, [...faults, ...lost], { paths, env: context.env });
    context.print(`Causeway, home ${paths.home}`);
    for (const name of strangeVariables(context.env)) context.print(strangeVariableText(name));
    if (usesEmbeddedPostgres(context.env)) assertClusterCanBeMade(paths.home);
    await createHomeFolders(paths);
    const lock = await lockHome(paths.lock, paths.home);
    const env = withEvm(planEnvironment(plan, context.env), args.evm);
    try {
      return await new KitRun(args, plan, paths, { ...context, env }, lock).run();
    } finally {
      await lock.release();
    }
  } catch (error) {
    context.printError(`causeway: ${sentenceOf(error)}`);
    return EXIT_FAULT;
  }
}

/**
 * Which chain this start is about.
 * @throws ConfigError with the faults of the flags, the environment and all files together
 */
function checkSettings(
  args: KitArguments,
  flagFaults: readonly ConfigFault[],
  sources: { readonly paths: HomePaths; readonly env: Environment },
): ChainPlan {
  const { paths, env } = sources;
  const faults = [...flagFaults];
  const collect = <T>(read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      faults.push(...error.faults);
      return undefined;
    }
  };
  const plan = collect(() => planChain(args.chain, paths, env));
  if (plan !== undefined) faults.push(...planFaults(args, plan));
  const { home } = paths;
  const portOffset = args.portOffset ?? readPortOffset(home, KIT_CONFIG_NAMES);
  const { validators } = args;
  const config = collect(() =>
    loadKitConfig({
      home,
      env: plan === undefined ? env : planEnvironment(plan, env),
      portOffset,
      validators: plan?.kind === "remote" ? 0 : validators,
      without: leftOut(args),
    }),
  );
  if (config !== undefined) faults.push(...offsetFaults(portOffset, config.nodes));
  faults.push(...homeFileFaults(paths));
  if (plan?.kind === "local" && config !== undefined) {
    faults.push(
      ...otherChainFaults("--validators", validators, config.nodes.length),
      ...otherChainFaults("--block-interval-ms", args.blockIntervalMs, blockIntervalOf(paths)),
    );
  }
  if (faults.length > 0 || plan === undefined) throw new ConfigError(faults);
  return plan;
}

/** Each node of a network has an offset of its own, above the kit's. */
function offsetFaults(portOffset: number, nodes: readonly KitNode[]): readonly ConfigFault[] {
  const highest = MAX_PORT_OFFSET - Math.max(0, ...nodes.map(({ portStep }) => portStep));
  if (portOffset <= highest) return [];
  const value = JSON.stringify(String(portOffset));
  const allowed = `a whole number from 0 to ${highest} with ${nodes.length} validators`;
  return [{ file: "flag", key: "--port-offset", value, allowed }];
}

/** A flag that says of a chain what is decided when it is made. */
function otherChainFaults(
  key: string,
  wanted: number | undefined,
  made: number | undefined,
): readonly ConfigFault[] {
  if (wanted === undefined || made === undefined || wanted === made) return [];
  const allowed =
    `${made}, as this home's chain was made, or no such flag; a chain with ${wanted} needs another ` +
    "--home";
  return [{ file: "flag", key, value: JSON.stringify(String(wanted)), allowed }];
}

/** Flags that have no sense on a chain that exists. */
function planFaults(args: KitArguments, plan: ChainPlan): readonly ConfigFault[] {
  if (plan.kind === "local") return [];
  const ofNewChain = "no such flag: the chain of this home exists already";
  const { once, validators, blockIntervalMs } = args;
  const given: readonly (readonly [string, string | undefined, string])[] = [
    [
      "--once",
      once ? "given" : undefined,
      "no such flag: the main job needs the faucet of a chain that was made here",
    ],
    ["--validators", validators?.toString(), ofNewChain],
    ["--block-interval-ms", blockIntervalMs?.toString(), ofNewChain],
  ];
  return given.flatMap(([key, value, allowed]) =>
    value === undefined ? [] : [{ file: "flag", key, value: JSON.stringify(value), allowed }],
  );
}

/** `<home>/logs/kit.log`, as talkative as the environment says of every process. */
export function createKitLog({ logs }: Pick<HomePaths, "logs">, env: Environment): Logger {
  const destination = createLogFile(logs, "kit");
  return createLogger({
    component: "kit",
    level: readLogLevel(env),
    destination: { write: (line) => destination.write(Buffer.from(line)) },
  });
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
    private readonly plan: ChainPlan,
    private readonly paths: HomePaths,
    private readonly context: KitProcessContext,
    private readonly lock: HeldLock,
  ) {
    this.say = context.print;
    // Every request of the live line hangs on this one signal; Node warns at eleven by default.
    setMaxListeners(0, this.ending.signal);
    this.portOffset = args.portOffset ?? readPortOffset(paths.home, KIT_CONFIG_NAMES);
    this.log = createKitLog(paths, context.env);
  }

  async run(): Promise<number> {
    const { signal } = this.context;
    const onStop = (): void => this.ending.abort(signal.reason);
    const onLost = (): void => this.ending.abort(homeLost(this.paths.home));
    signal.addEventListener("abort", onStop, { once: true });
    this.lock.lost.addEventListener("abort", onLost, { once: true });
    if (signal.aborted) onStop();
    try {
      return await this.runPrepared(await this.prepare());
    } catch (error) {
      // A person who pressed Ctrl-C got what was asked for; with --once the job is undone.
      if (signal.aborted && !this.args.once) return EXIT_OK;
      if (signal.aborted) throw new CliError("STEP_FAILED", "Stopped before the job was done.");
      throw this.ending.signal.aborted ? this.ending.signal.reason : error;
    } finally {
      signal.removeEventListener("abort", onStop);
    }
  }

  /** From the first process to the last one gone. */
  private async runPrepared(config: KitConfig): Promise<number> {
    const guardian = startGuardian({ log: this.log });
    const { lost } = this.lock;
    const children = createChildRecord(this.paths.children, lost);
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
      lost,
      isPatient: this.plan.kind !== "local",
      without: new Set([
        ...leftOut(this.args),
        ...(config.treasury !== undefined ? [] : (["treasury"] as const)),
      ]),
      print: (line) => this.say(line),
      onFatal: (error) => this.ending.abort(error),
    });
    try {
      return await this.runStarted(kit, config);
    } finally {
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
    const validators = this.plan.kind === "remote" ? 0 : this.args.validators;
    const config = loadKitConfig({
      home: paths.home,
      env: context.env,
      portOffset,
      validators,
      without: leftOut(this.args),
    });
    let hadOrphans = this.lock.tookOver;
    const onWait = (orphans: readonly { name: string }[]): void => {
      hadOrphans = true;
      this.say(`Waiting for the former kit's ${orphans.map(({ name }) => name).join(", ")} ...`);
    };
    await waitForOrphans(paths.children, { signal, onWait });
    await this.waitForPorts(config, hadOrphans ? ORPHAN_WAIT_MS : 0);
    for (const { part, port } of findBlockedPorts(config.wantedPorts)) {
      this.say(`Browsers and fetch() refuse port ${port} (${part}): choose another --port-offset.`);
    }
    await assertServicesAnswer(context.env, { signal, notice: this.say });
    if (this.plan.kind === "local") await this.prepareLocalHome();
    else await this.prepareAttachedHome(this.plan, config);
    return config;
  }

  private async prepareLocalHome(): Promise<void> {
    const { paths, portOffset } = this;
    const home = await initHome({
      paths,
      portOffset,
      network: "testnet",
      blockIntervalMs: this.args.blockIntervalMs,
      validators: this.args.validators,
      configFiles: KIT_CONFIG_FILES,
      clock: this.clock,
    });
    if (!home.created) return;
    this.say("A new home: keys, settings and the genesis of a local chain are written.");
    this.say(`  faucet ${toChecksumAddress(home.faucetAddress)}`);
    // The contract allows this one secret to be shown, once: it owns play money only.
    this.say(`  faucet key (shown only now) ${readSecretFile(paths.faucetKey)}`);
  }

  private async prepareAttachedHome(
    plan: Exclude<ChainPlan, { readonly kind: "local" }>,
    config: KitConfig,
  ): Promise<void> {
    const { paths, portOffset } = this;
    const node = plan.kind === "remote" ? await this.meetNodes(plan, config) : undefined;
    const home = await initAttachedHome({ paths, portOffset, plan, node });
    if (!home.created) return;
    const network = node?.network ?? plan.network;
    this.say(`A new home on ${network}: keys and settings are written. There is no faucet.`);
    this.say(`  hot wallet ${toChecksumAddress(home.hotWalletAddress)}, empty until you fund it`);
  }

  /**
   * Holds every node that the settings name against the chain of the home. A home that knows its
   * chain starts while its node is down: the processes wait for it, and their APIs answer.
   */
  private async meetNodes(
    plan: Extract<ChainPlan, { readonly kind: "remote" }>,
    config: KitConfig,
  ): Promise<InspectedNode | undefined> {
    let first: InspectedNode | undefined;
    for (const url of config.nodeUrls) {
      try {
        const node = await inspectNode(url, this.ending.signal);
        const genesisHash = plan.genesisHash ?? first?.genesisHash;
        assertNodeOfPlan(node, { ...plan, genesisHash }, url);
        first ??= node;
      } catch (error) {
        const isDown = error instanceof CliError && error.code === "SERVICE_UNREACHABLE";
        if (!isDown || plan.genesisHash === undefined) throw error;
        this.say(`${error.message} The kit starts and waits for it.`);
      }
    }
    return first;
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
      const isLocal = this.plan.kind === "local";
      if (isLocal && !this.args.noDemo) await this.demonstrate(evm, config);
      if (this.args.once) return EXIT_OK;
      if (!this.args.noConsole) await this.firstConsoleLogin();
      const hotWallet = isLocal ? undefined : await hotWalletAddress(this.paths);
      const { portOffset } = this;
      const lines = whereToLookNext(this.paths, config.endpoints, { hotWallet, portOffset });
      for (const line of lines) this.say(line);
      await this.stayUp(evm, config);
      return EXIT_OK;
    } finally {
      rpc.close();
    }
  }

  /** The console's first user; without one the kit goes on, and the command line makes it. */
  private async firstConsoleLogin(): Promise<void> {
    const { home } = this.paths;
    const { env } = this.context;
    try {
      const { createFirstConsoleUser } = await import("../commands/console-users.js");
      const { portOffset } = this;
      const { signal } = this.ending;
      const made = await createFirstConsoleUser({ home, env, portOffset, signal });
      if (made === undefined) return;
      // Kept nowhere, and good for one login: its user has to choose another one there.
      this.say(`Console login (shown only now): user ${made.user}, password ${made.password}`);
    } catch (error) {
      if (this.ending.signal.aborted) throw error;
      const words = "console user add admin --role admin";
      const how = causewayCommand(words, home, this.portOffset);
      this.context.printError(`The console has no user yet: ${sentenceOf(error)} Make one: ${how}`);
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
    const apiKey = readApiKeyFile(paths.apiKey);
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
    const { endpoints, treasury } = config;
    const blockIntervalMs = blockIntervalOf(this.paths);
    const probe = { endpoints, treasury, evm, blockIntervalMs, clock: this.clock };
    const line = createStatusLine(probe, this.context.output);
    this.say = (message) => line.interrupt(message);
    await line.run(this.ending.signal);
    this.say = this.context.print;
    if (!this.context.signal.aborted) throw this.ending.signal.reason;
  }
}
