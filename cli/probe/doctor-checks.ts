/** The checks of `causeway doctor`: each looks at one thing and says what to do about it. */
import {
  existsSync,
  lstatSync,
  readdirSync,
  readlinkSync,
  type Stats,
  statfsSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { blockAgeText, blockAgeVerdict, type Verdict } from "../../chain/consensus/block-age.js";
import { secp256k1 } from "../../chain/crypto.js";
import { NETWORKS } from "../../chain/networks.js";
import { readKillSwitchFile } from "../../ledger/kill-switch/kill-switch-file.js";
import { type KillSwitchState, stricter } from "../../ledger/kill-switch/kill-switch-level.js";
import type { HashedPolicy } from "../../ledger/policy/policy.js";
import { WALLETS_FOLDER } from "../../ledger/wallets/home-wallets.js";
import { loadGenesis } from "../../node/settings/genesis.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { Clock } from "../../runtime/process/clock.js";
import { ConfigError, type Environment } from "../../runtime/config/config.js";
import { sentenceOf, systemCode } from "../errors.js";
import { homeFileFaults } from "../home/file-faults.js";
import { readChainOrigin } from "../home/network/chain-origin.js";
import type { HomePaths } from "../home/home.js";
import { strangeVariables, strangeVariableText } from "../home/strange-variables.js";
import { type KitConfig, loadKitConfig } from "../home/kit-config.js";
import { shellWord } from "../shell-word.js";
import { foreignChain, homeBlockIntervalMs } from "./home-chain.js";
import { type KitStatus, readKitStatus, type WalletFigures } from "./kit-status.js";

/** How bad a finding is. */
export type Severity = Verdict;

/** One finding. */
export interface Finding {
  /** Stable name of the check. */
  readonly id: string;
  readonly severity: Severity;
  /** What was found, for people. */
  readonly value: string;
  /** What to do; "" when all is well. */
  readonly remedy: string;
}

/** What the checks look at. */
export interface DoctorContext {
  readonly paths: HomePaths;
  readonly env: Environment;
  readonly portOffset: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly createEvm: (url: string) => EvmClient;
  /** What the ledger says of the kill switch; undefined where it cannot be asked. */
  readonly readLedgerSwitch: () => Promise<KillSwitchState | undefined>;
  /** The policy in force; undefined where none came into force yet, or the ledger cannot be asked. */
  readonly readLedgerPolicy: () => Promise<HashedPolicy | undefined>;
}

/** Free share of a disk below which the doctor warns, and below which it fails (per cent). */
const DISK_WARN_PERCENT = 20;
const DISK_FAIL_PERCENT = 10;

/** More blocks behind what is followed warn: the watcher's node, a node's network (spec: Limits). */
export const LAG_WARN_BLOCKS = 10;

/** A call of JSON-RPC that takes longer warns (spec: Limits). */
const LATENCY_WARN_MS = 500;

const SECRET_SUFFIXES = [".key", ".seed", ".passphrase", ".password", ".xpub"];
const SECRET_NAMES = new Set([
  "hot-wallet.json",
  "priv_validator_key.json",
  "node_key.json",
  "pgpass",
  "redis.conf",
]);

/** Folders of a home in which every file is a secret. */
const SECRET_FOLDERS = [WALLETS_FOLDER, "config/database-roles", "data/console/users"];

/** Settings of all processes; their faults are findings, and later checks need them right. */
export function checkSettings(context: DoctorContext): {
  readonly findings: readonly Finding[];
  readonly config: KitConfig | undefined;
} {
  const { paths, env, portOffset } = context;
  const strange = checkVariables(env);
  try {
    const config = loadKitConfig({ home: paths.home, env, portOffset });
    const faults = homeFileFaults(paths);
    const fine = [finding("settings", "pass", "all settings are valid")];
    const findings = faults.length === 0 ? fine : settingsFindings({ faults });
    return { findings: [...findings, ...strange], config };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { findings: [...settingsFindings(error), ...strange], config: undefined };
  }
}

/** Variables that somebody meant for a setting, and that are none. */
export function checkVariables(env: Environment): readonly Finding[] {
  return strangeVariables(env).map((name) =>
    finding("settings", "warn", strangeVariableText(name), "rename it, or take it away"),
  );
}

/** One finding for each wrong setting. */
export function settingsFindings({ faults }: Pick<ConfigError, "faults">): readonly Finding[] {
  return faults.map((fault) =>
    finding(
      "settings",
      "fail",
      `${fault.file}: ${fault.key} = ${fault.value}`,
      `allowed: ${fault.allowed}`,
    ),
  );
}

/** Secrets that others than their owner could read. */
export function checkKeyModes(paths: HomePaths): readonly Finding[] {
  let names: string[];
  try {
    names = readdirSync(paths.config);
  } catch (error) {
    return [finding("home", "fail", sentenceOf(error), "run `npm start` or `causeway init` first")];
  }
  const ofNodes = lookInto(join(paths.home, "nodes"), (home) =>
    lookInto(join(home, "config"), lookAtSecret),
  );
  const further = SECRET_FOLDERS.flatMap((name) => lookInto(join(paths.home, name), lookAtMode));
  const own = names.flatMap((name) => lookAtSecret(join(paths.config, name)));
  const found = [...own, ...ofNodes, ...further];
  const fine = finding("key-modes", "pass", "only their owner can read the keys");
  return found.length === 0 ? [fine] : found;
}

/** What there is to say of a folder's entries, by their paths, or of a folder that cannot be read. */
function lookInto(folder: string, look: (path: string) => readonly Finding[]): readonly Finding[] {
  let names: readonly string[];
  try {
    names = existsSync(folder) ? readdirSync(folder) : [];
  } catch (error) {
    const remedy = "it has to be a folder that this user may read";
    return [finding("key-modes", "fail", sentenceOf(error), remedy)];
  }
  return names.flatMap((name) => look(join(folder, name)));
}

/** As `lookAtMode`, for what is a secret by its name. */
function lookAtSecret(path: string): readonly Finding[] {
  const name = basename(path);
  const isSecret = SECRET_NAMES.has(name) || SECRET_SUFFIXES.some((end) => name.endsWith(end));
  return isSecret ? lookAtMode(path) : [];
}

/** Whether others could read a secret; nothing of one that went while the doctor looked, as drafts do. */
function lookAtMode(path: string): readonly Finding[] {
  let stats: Stats;
  try {
    stats = statSync(path);
  } catch (error) {
    const isGone = systemCode(error) === "ENOENT";
    if (!isGone) return [finding("key-modes", "fail", sentenceOf(error), "see what is there")];
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return [];
    const remedy = "bring that file back, or remove the link";
    return [finding("key-modes", "fail", `${path} links to a file that is gone`, remedy)];
  }
  if ((stats.mode & 0o077) === 0) return [];
  const remedy = `chmod ${stats.isDirectory() ? "700" : "600"} ${shellWord(path)}`;
  return [finding("key-modes", "fail", `${path} is open to others`, remedy)];
}

/**
 * What a person has stopped, by the stricter of the home's switch and the ledger's, as for the worker;
 * nothing for a home without one.
 * @param ledger undefined where it could not be asked
 */
export function checkKillSwitch(
  paths: HomePaths,
  ledger: KillSwitchState | undefined,
): readonly Finding[] {
  if (!existsSync(paths.killSwitch)) return [];
  try {
    const home = readKillSwitchFile(paths.killSwitch);
    const { level, reason, at = "ever" } = ledger === undefined ? home : stricter(home, ledger);
    if (level === "none") {
      const unasked = ledger === undefined ? " by this home; the ledger was not asked" : "";
      return [finding("kill-switch", "pass", `nothing is stopped${unasked}`)];
    }
    const remedy = "once its cause is gone: causeway killswitch lift --reason TEXT";
    return [finding("kill-switch", "fail", `${level} since ${at}: ${reason}`, remedy)];
  } catch (error) {
    const remedy =
      "look, then: causeway killswitch set LEVEL --reason TEXT, or causeway killswitch lift --reason TEXT";
    return [finding("kill-switch", "fail", sentenceOf(error), remedy)];
  }
}

/** A disk: which one it is, and its room, as those see it who are not root. */
export interface Disk {
  readonly device: number;
  readonly freeBytes: number;
  /** 0 where it does not tell its room, as some file systems of networks do. */
  readonly totalBytes: number;
}

/** The disk that a folder lies on, or that of the folder it links to. */
function diskOf(folder: string): Disk {
  const { bavail, blocks, bsize } = statfsSync(folder);
  return {
    device: statSync(folder).dev,
    freeBytes: bavail * bsize,
    totalBytes: blocks * bsize,
  };
}

/**
 * Room on each disk that the home lies on: its data, the ledger or the chain may be mounted there from
 * another one, or link to it.
 */
export function checkDisks(
  paths: HomePaths,
  look: (folder: string) => Disk = diskOf,
): readonly Finding[] {
  const { home, data, store, logs } = paths;
  const inData = ["postgres", "sidecar"].map((name) => join(data, name));
  const seen = new Set<number>();
  return [home, data, ...inData, store, logs].flatMap((folder): readonly Finding[] => {
    try {
      const disk = look(folder);
      if (seen.has(disk.device)) return [];
      seen.add(disk.device);
      return [diskFinding(folder, disk)];
    } catch (error) {
      if (folder === home) return [finding("disk", "fail", sentenceOf(error), "check --home")];
      if (systemCode(error) === "ENOENT") return absentDisk(folder);
      const remedy = "it has to be a folder that this user may look at";
      return [finding("disk", "warn", sentenceOf(error), remedy)];
    }
  });
}

/** Of a folder that is not there: nothing where it is not made yet, or of a part that this home has not. */
function absentDisk(folder: string): readonly Finding[] {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (found?.isSymbolicLink() !== true) return [];
  const target = resolve(dirname(folder), readlinkSync(folder));
  const value = `${folder} links to ${target}, which is not there`;
  return [finding("disk", "fail", value, "mount its disk before anything is started")];
}

function diskFinding(folder: string, { freeBytes, totalBytes }: Disk): Finding {
  const freePercent = totalBytes === 0 ? 100 : Math.floor((freeBytes * 100) / totalBytes);
  const freeGib = (freeBytes / 2 ** 30).toFixed(1);
  const value = `${freePercent} % free (${freeGib} GiB) where ${folder} lies`;
  if (freePercent < DISK_FAIL_PERCENT) {
    const remedy =
      "make room: what writes there, node or ledger, stands still when the disk is full";
    return finding("disk", "fail", value, remedy);
  }
  return freePercent < DISK_WARN_PERCENT
    ? finding("disk", "warn", value, "make room soon")
    : finding("disk", "pass", value);
}

/** Which secp256k1 signs and recovers here; the reference is twenty times slower. */
export function checkCrypto(): Finding {
  const { backend } = secp256k1;
  return backend === "native"
    ? finding("crypto", "pass", "secp256k1 runs natively")
    : finding(
        "crypto",
        "warn",
        `secp256k1 runs as ${backend}`,
        "install a platform with the prebuilt binary for full speed",
      );
}

/** Checks that need the processes: who answers, how old the newest block is, how far behind. */
export async function checkParts(
  context: DoctorContext,
  config: KitConfig,
): Promise<readonly Finding[]> {
  const evm = context.createEvm(config.endpoints.jsonRpcUrl);
  const { endpoints, treasury } = config;
  const blockIntervalMs = homeBlockIntervalMs(context.paths.home);
  const probe = { endpoints, treasury, evm, blockIntervalMs, clock: context.clock };
  const status = await readKitStatus(probe, context.signal);
  const findings = status.parts.map(({ part, ready, reason, url, isDispensable }) =>
    ready
      ? finding(part, "pass", url === "" ? "ready; it listens on nothing" : `ready at ${url}`)
      : finding(part, isDispensable === true ? "warn" : "fail", reason, remedyOf(part, config)),
  );
  findings.push(checkBlockAge(status, nodeLogOf(config.nodes)));
  const lag = status.watcherLagBlocks;
  if (lag !== undefined) {
    const severity = lag > LAG_WARN_BLOCKS ? "warn" : "pass";
    const remedy = severity === "warn" ? "it catches up by itself; see its log if it does not" : "";
    findings.push(finding("watcher-lag", severity, `${lag} blocks`, remedy));
  }
  findings.push(...checkWallets(status.wallets));
  if (status.height !== undefined) {
    findings.push(...(await checkJsonRpc(context, evm, "check the home")));
  }
  return findings;
}

/** Hot wallets, each by itself, and whether one of them takes new withdrawals. */
export function checkWallets(wallets: readonly WalletFigures[]): readonly Finding[] {
  const findings = wallets.flatMap(checkWallet);
  if (wallets.length === 0 || wallets.some(({ status }) => status === "active")) return findings;
  const remedy = "causeway wallets activate ADDRESS --reason TEXT, or wallets add";
  const value = "none is active: new withdrawals wait";
  return [...findings, finding("hot-wallet", "warn", value, remedy)];
}

/** A hot wallet that cannot do what its status says. */
function checkWallet(wallet: WalletFigures): readonly Finding[] {
  const { address, status, isFrozen, hasKey, inFlight } = wallet;
  const id = "hot-wallet";
  if (isFrozen) {
    // Its own switch, the kill switch or an incident.
    const remedy =
      "causeway withdrawals list says why; causeway withdrawals release looks again, and names what " +
      "else has to be lifted";
    return [finding(id, "fail", `${address} (${status}) is frozen`, remedy)];
  }
  if (hasKey || status === "retired") {
    return [finding(id, "pass", `${address} is ${status}, ${inFlight} on their way`)];
  }
  const remedy =
    "put its keystore back into config/wallets, or: causeway wallets drain " +
    `${address} --reason TEXT`;
  return [finding(id, "warn", `${address} is ${status} and no keystore here opens it`, remedy)];
}

/** What to do about a part that is not ready; the log of somebody's node is not here. */
function remedyOf(part: string, { nodes }: KitConfig): string {
  return part === "node" && nodes.length === 0
    ? "look after that node, or name another one of its chain in watcher.toml, json-rpc-url"
    : `see logs/${part}.log, or start it with npm start`;
}

/** A finding; without a remedy all is well. */
export function finding(id: string, severity: Severity, value: string, remedy = ""): Finding {
  return { id, severity, value, remedy };
}

/**
 * What a node's JSON-RPC says of its chain, and how long a call of it takes.
 * @param remedy what to do where it does not answer
 */
export async function checkJsonRpc(
  context: DoctorContext,
  evm: EvmClient,
  remedy: string,
): Promise<readonly Finding[]> {
  const { clock, signal } = context;
  try {
    const chain = await checkChain(context, evm);
    // Those before it have connected, and loaded what answers are read by.
    const startMs = clock.monotonicMs();
    await evm.blockNumber({ signal });
    return [chain, latencyFinding(Math.round(clock.monotonicMs() - startMs))];
  } catch (error) {
    signal.throwIfAborted();
    return [finding("chain-id", "fail", sentenceOf(error), remedy)];
  }
}

function latencyFinding(ms: number): Finding {
  if (ms <= LATENCY_WARN_MS) return finding("rpc-latency", "pass", `${ms} ms`);
  const remedy = "look at the machine's load, and at who asks: causeway_jsonrpc_request_seconds";
  return finding("rpc-latency", "warn", `${ms} ms`, remedy);
}

/** Whether the node that answers is the one of this home. */
export async function checkChain(context: DoctorContext, evm: EvmClient): Promise<Finding> {
  const { paths, signal } = context;
  const origin = readChainOrigin(paths);
  const home = origin?.kind === "remote" ? origin : loadGenesis(paths.genesis);
  const expected = NETWORKS[home.network].evmChainId;
  const chainId = await evm.chainId({ signal });
  if (chainId !== expected) {
    const remedy =
      origin?.kind === "remote" ? "connect a node of this home's chain" : "check --port-offset";
    return finding("chain-id", "fail", `${chainId}, expected ${expected}`, remedy);
  }
  const foreign = await foreignChain(paths, evm, signal);
  if (foreign !== undefined) return finding("chain-id", "fail", foreign.value, foreign.remedy);
  return finding("chain-id", "pass", `${chainId} (${home.network})`);
}

/** Where the log is of the node that a kit asks: the first of its own, or somebody's where it has none. */
export function nodeLogOf([first]: KitConfig["nodes"]): string {
  return first === undefined ? "the log of that node" : `logs/${first.name}.log`;
}

/** The age of the newest block: the core signal of a live chain. @param log where the node's is */
export function checkBlockAge(
  { blockAgeSeconds: ageSeconds, blockIntervalMs }: Partial<KitStatus>,
  log: string,
): Finding {
  if (ageSeconds === undefined) {
    return finding("block-age", "fail", "the node does not answer", `start it; see ${log}`);
  }
  const seconds = Math.round(ageSeconds);
  const isAhead = seconds < 0;
  const value = isAhead ? blockAgeText(ageSeconds) : `${seconds} s`;
  const clock = "set this machine's clock, or learn why the chain's time is ahead of it";
  const remedies: Readonly<Record<Verdict, string>> = {
    pass: "",
    warn: isAhead ? clock : "blocks are late; look at the machine's load",
    fail: isAhead ? clock : `the chain stands still; see ${log}`,
  };
  const verdict = blockAgeVerdict(ageSeconds, blockIntervalMs);
  return finding("block-age", verdict, value, remedies[verdict]);
}
