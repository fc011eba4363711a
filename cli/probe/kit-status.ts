/** What a running kit says about itself, read from outside over the same ports that all clients use. */
import { statSync } from "node:fs";
import { blockAgeSeconds, stallReason } from "../../chain/consensus/block-age.js";
import type { Height } from "../../chain/hex.js";
import { readBlockInterval } from "../../rpc-client/readiness/block-interval.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import { routeOf } from "../../runtime/http/outgoing/route-url.js";
import type { Clock } from "../../runtime/process/clock.js";
import { CliError, sentenceOf } from "../errors.js";
import { httpRequest } from "./http-request.js";
import { type KitEndpoints, shownUrl, type TreasuryWord } from "../home/kit-config.js";

/** Readiness of one part; a node whose newest block is too old is not ready, whatever it answers. */
export interface PartStatus {
  readonly part: string;
  /** "" where it listens on nothing. */
  readonly url: string;
  readonly ready: boolean;
  /** Why not, one sentence; "" when ready. */
  readonly reason: string;
  /** True where the kit is well without it. */
  readonly isDispensable?: boolean;
}

/** A snapshot of the whole kit; a part that does not answer leaves its figures undefined. */
export interface KitStatus {
  readonly height: Height | undefined;
  /** Age of the newest block in seconds, below zero where its time is ahead; the sign of a live chain. */
  readonly blockAgeSeconds: number | undefined;
  /** Time between blocks of the chain, by which that age is judged; undefined where nothing tells it. */
  readonly blockIntervalMs: number | undefined;
  readonly watcherLagBlocks: number | undefined;
  /** Deposits credited since the watcher started. */
  readonly creditedDeposits: number | undefined;
  /** Withdrawals whose nonce is taken and that are not booked yet. */
  readonly withdrawalsInFlight: number | undefined;
  /** Hot wallets as their worker sees them; none while it does not answer. */
  readonly wallets: readonly WalletFigures[];
  readonly parts: readonly PartStatus[];
}

/** A hot wallet on the worker's page of metrics. */
export interface WalletFigures {
  readonly address: string;
  readonly status: string;
  /** Nonces that are taken and not booked. */
  readonly inFlight: number;
  readonly isFrozen: boolean;
  /** False where no keystore of the worker's home opens it. */
  readonly hasKey: boolean;
}

/** Names of the figures on the metrics pages of watcher and worker. */
const LAG_METRIC = "causeway_watcher_lag_blocks";
const CREDITED_METRIC = "causeway_watcher_deposits_credited_total";
const IN_FLIGHT_METRIC = "causeway_withdrawals_in_flight";

/** A part that does not answer within this time counts as not answering. */
const PROBE_TIMEOUT_MS = 3_000;

/** What is needed to look at a kit. */
export interface KitProbe {
  readonly endpoints: KitEndpoints;
  readonly treasury: TreasuryWord | undefined;
  readonly evm: EvmClient;
  /** As the home's genesis has it; undefined where it has none, on somebody's node: its last blocks tell. */
  readonly blockIntervalMs: number | undefined;
  readonly clock: Clock;
}

interface NodeReading {
  readonly height: Height | undefined;
  readonly blockAgeSeconds: number | undefined;
  readonly blockIntervalMs: number | undefined;
  readonly part: PartStatus;
}

/** Values of a Prometheus page by name; several label sets of one name are summed. */
export function parseMetricsPage(text: string): ReadonlyMap<string, number> {
  const values = new Map<string, number>();
  for (const line of text.split("\n")) {
    const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{[^}]*\})? ([-+0-9.eE]+|NaN|[-+]?Inf)/.exec(line);
    const name = match?.[1];
    if (name === undefined) continue;
    values.set(name, (values.get(name) ?? 0) + Number(match?.[2]));
  }
  return values;
}

/** Hot wallets on the worker's page, in its order. */
function parseWalletFigures(text: string): readonly WalletFigures[] {
  const statuses = new Map<string, string>();
  const values = new Map<string, number>();
  for (const line of text.split("\n")) {
    const match = /^([a-z_]+)\{wallet="(0x[0-9a-f]{40})"(?:,status="([a-z]+)")?\} ([0-9.]+)$/.exec(
      line,
    );
    if (match === null) continue;
    const [, name = "", address = "", status, value] = match;
    if (status === undefined) values.set(`${name} ${address}`, Number(value));
    else statuses.set(address, status);
  }
  return [...statuses].map(([address, status]) => ({
    address,
    status,
    inFlight: values.get(`${IN_FLIGHT_METRIC} ${address}`) ?? 0,
    isFrozen: values.get(`causeway_signing_frozen ${address}`) === 1,
    hasKey: values.get(`causeway_wallet_key_present ${address}`) === 1,
  }));
}

/** Looks at every part once; never throws but for the signal's reason. */
export async function readKitStatus(probe: KitProbe, signal: AbortSignal): Promise<KitStatus> {
  const { endpoints } = probe;
  const [node, others, online, offline, deposit, withdrawal, dispensable, watcher, worker] =
    await Promise.all([
      readNode(probe, signal),
      Promise.all(endpoints.otherNodes.map((other) => probeNode(other, probe, signal))),
      probePart("sidecar-online", endpoints.sidecarOnlineUrl, signal),
      probePart("sidecar-offline", endpoints.sidecarOfflineUrl, signal),
      probePart("deposit-watcher", endpoints.depositUrl, signal),
      probePart("withdrawal-worker", endpoints.withdrawalUrl, signal),
      probeDispensable(endpoints, signal),
      readMetrics(endpoints.depositUrl, signal),
      readMetrics(endpoints.withdrawalUrl, signal),
    ]);
  return {
    height: node.height,
    blockAgeSeconds: node.blockAgeSeconds,
    blockIntervalMs: node.blockIntervalMs,
    watcherLagBlocks: parseMetricsPage(watcher).get(LAG_METRIC),
    creditedDeposits: parseMetricsPage(watcher).get(CREDITED_METRIC),
    withdrawalsInFlight: parseMetricsPage(worker).get(IN_FLIGHT_METRIC),
    wallets: parseWalletFigures(worker),
    parts: [
      node.part,
      ...others,
      online,
      offline,
      deposit,
      withdrawal,
      ...probeTreasury(probe),
      ...dispensable,
    ],
  };
}

/** A further validator: it answers, has caught up, and has a block of now. */
async function probeNode(
  node: KitEndpoints["otherNodes"][number],
  { clock, blockIntervalMs }: KitProbe,
  signal: AbortSignal,
): Promise<PartStatus> {
  const base = { part: node.name, url: node.cometRpcUrl };
  // Loaded here: most kits have one node, and its parser takes longer to load than they to answer.
  const { readNodeStatus } = await import("./node-status.js");
  try {
    const status = await readNodeStatus(node.cometRpcUrl, { clock, signal });
    const reason = status.catching_up
      ? "it is catching up with the others"
      : stallReason(status.blockAgeSeconds, blockIntervalMs);
    return { ...base, ready: reason === "", reason };
  } catch (error) {
    signal.throwIfAborted();
    return { ...base, ready: false, reason: sentenceOf(error) };
  }
}

function readReason(body: string): string {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value === "object" && value !== null && "reason" in value) {
      // Faults of settings come a line each; here they stand in one.
      return String(value.reason).replaceAll(/\s*\n\s*/g, " ");
    }
  } catch {
    // Not JSON: the status alone has to do.
  }
  return "it says that it is not ready";
}

async function probePart(part: string, url: string, signal: AbortSignal): Promise<PartStatus> {
  try {
    const answer = await httpRequest(routeOf(url, "/ready"), {}, probeOptions(signal));
    const ready = answer.status === 200;
    return { part, url, ready, reason: ready ? "" : readReason(answer.body) };
  } catch (error) {
    signal.throwIfAborted();
    return { part, url, ready: false, reason: sentenceOf(error) };
  }
}

/** The treasury, where the settings have one: its last round tells whether it works. */
function probeTreasury({ treasury, clock }: KitProbe): readonly PartStatus[] {
  if (treasury === undefined) return [];
  const reason = treasuryFault(treasury, clock.nowMs());
  return [{ part: "treasury", url: "", ready: reason === "", reason }];
}

/** Why it does not work; "" where it does. */
function treasuryFault({ roundFile, staleAfterMs }: TreasuryWord, nowMs: number): string {
  try {
    const stats = statSync(roundFile, { throwIfNoEntry: false });
    if (stats === undefined) return "it does not run, or has not come to the end of a round yet";
    const ageMs = nowMs - stats.mtimeMs;
    if (Math.abs(ageMs) <= staleAfterMs) return "";
    const age = Math.round(Math.abs(ageMs) / 1_000);
    if (ageMs < 0) {
      const clock = `its last round ended ${age} s ahead of this machine's clock`;
      return `${clock}: whether it works the next one tells`;
    }
    return `its last round ended ${age} s ago: it does not run, or its rounds fail`;
  } catch (error) {
    return sentenceOf(error);
  }
}

/** Parts that are for front ends and people, and that nothing depends on. */
function probeDispensable(
  { indexerUrl, explorerUrl, consoleUrl }: KitEndpoints,
  signal: AbortSignal,
): Promise<PartStatus[]> {
  const urls = { indexer: indexerUrl, explorer: explorerUrl, console: consoleUrl };
  const probes = Object.entries(urls).map(async ([part, url]) =>
    url === undefined ? [] : [{ ...(await probePart(part, url, signal)), isDispensable: true }],
  );
  return Promise.all(probes).then((parts) => parts.flat());
}

function probeOptions(signal: AbortSignal): { signal: AbortSignal; timeoutMs: number } {
  return { signal, timeoutMs: PROBE_TIMEOUT_MS };
}

/** A part's page of metrics; "" where there is none. */
export async function readMetrics(url: string, signal: AbortSignal): Promise<string> {
  try {
    const answer = await httpRequest(routeOf(url, "/metrics"), {}, probeOptions(signal));
    return answer.status === 200 ? answer.body : "";
  } catch {
    signal.throwIfAborted();
    return ""; // The part's own line already says that it does not answer.
  }
}

async function readNode(probe: KitProbe, signal: AbortSignal): Promise<NodeReading> {
  const { jsonRpcUrl, otherNodes } = probe.endpoints;
  const base = { part: otherNodes.length === 0 ? "node" : "node0", url: shownUrl(jsonRpcUrl) };
  try {
    const [header, isSyncing] = await Promise.all([
      probe.evm.getBlockHeader("latest", { signal }),
      probe.evm.isSyncing({ signal }),
    ]);
    if (header === undefined) throw new CliError("CLIENT_FAILED", "It has no block.");
    const ageSeconds = blockAgeSeconds(header.timestampSeconds * 1_000, probe.clock.nowMs());
    const blockIntervalMs =
      probe.blockIntervalMs ?? (await readBlockInterval(probe.evm, header, { signal }));
    const reason = isSyncing
      ? "it is catching up with its network"
      : stallReason(ageSeconds, blockIntervalMs);
    const part = { ...base, ready: reason === "", reason };
    return { height: header.height, blockAgeSeconds: ageSeconds, blockIntervalMs, part };
  } catch (error) {
    signal.throwIfAborted();
    const part = { ...base, ready: false, reason: sentenceOf(error) };
    const { blockIntervalMs } = probe;
    return { height: undefined, blockAgeSeconds: undefined, blockIntervalMs, part };
  }
}
