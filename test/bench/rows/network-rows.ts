/**
 * Four validators as four processes on this machine: the rates of transfers and of token transfers
 * that they hold with their own 2 s blocks, sent to all of them, while single reads are timed at
 * every node.
 */
import { tokenTransfer } from "../bench-token.js";
import { deployToken, mint } from "../contracts.js";
import { callRpc } from "../json-rpc.js";
import type { RunLength } from "./chain-rows.js";
import { type NetworkTarget, startNetworkTarget } from "../targets/network-target.js";
import { type ProbeFigures, ReadProbe } from "../read-probe.js";
import { type BenchRow, formatFigure } from "../report.js";
import { createRecipients, createSenders, type Payment, type Sender } from "../senders.js";
import { findHeldRate, type HeldResult, maxTrials, senderGroups } from "../transfer-trial.js";
import { Turns } from "../turns.js";

/** Names of the rows here, for `--only`. */
export const NETWORK_ROWS = ["network", "network-erc20"] as const;

/** A row of a network of validators. */
export type NetworkRowName = (typeof NETWORK_ROWS)[number];

/** What the rows are run with. */
export interface NetworkRowsOptions {
  readonly rows: readonly NetworkRowName[];
  readonly length: RunLength;
  readonly profileFolder: string | undefined;
  readonly say: (line: string) => void;
}

const VALIDATORS = 4;

/**
 * What a user might take instead, evmd of cosmos/evm with four validators, is a Go program that no
 * package brings. Measured in 2026 on 2 cores like this row (200 senders, batches to all nodes,
 * client included) it held 300/s, with blocks stretched to 2.4 s and 4,455 us of processor time
 * per transfer. A published figure near it: CometBFT's own tests, "QA results v1", 300 to 400 tx/s.
 */
const YARDSTICK = { perSecond: 300, name: "evmd, 4 validators, measured before" };

/** The same program with one node and token transfers. */
const TOKEN_YARDSTICK = { perSecond: 787, name: "evmd, 1 node, measured before" };

/** What is sent, and the rates of the search for what is held of it. */
interface Load {
  /** What the network is wanted to hold: there the search begins. */
  readonly aimPerSecond: number;
  /** Where it begins for one validator, far below its best. */
  readonly alonePerSecond: number;
  /** What a network does before it is measured. */
  readonly warmUpPerSecond: number;
  /** Makes the chain ready; what the transaction of an index does. */
  readonly prepare: (url: string, accounts: Accounts) => Promise<(index: number) => Payment>;
}

/** Accounts with coins: who deploys, and the senders of each trial. */
interface Accounts {
  readonly owner: Sender;
  readonly groups: readonly (readonly Sender[])[];
}

const TRANSFERS: Load = {
  aimPerSecond: 1_500,
  alonePerSecond: 4_000,
  warmUpPerSecond: 1_200,
  prepare: async () => {
    const recipients = createRecipients(RECIPIENT_COUNT);
    return (index) => ({ to: recipients[index % recipients.length] });
  },
};

const TOKEN_TRANSFERS: Load = {
  aimPerSecond: 1_200,
  alonePerSecond: 2_000,
  warmUpPerSecond: 600,
  prepare: async (url, { owner, groups }) => {
    const token = await deployToken(url, owner);
    await mint(url, owner, token, groups);
    const holders = groups.flat();
    return (index) => tokenTransfer(token, (holders[index % holders.length] ?? owner).address);
  },
};

/** Blocks of a trial: enough that a backlog which grows shows itself. */
const BLOCKS_PER_TRIAL = 10;

/** Trials of a search; the steps from one rate to the next are large. */
const TRIALS = { quick: 2, full: 6 };

/** Accounts that receive the transfers. */
const RECIPIENT_COUNT = 10_000;

/** Figures of one network. */
interface NetworkFigures {
  readonly held: HeldResult;
  readonly probe: readonly ProbeFigures[];
  /** Differences of the block times that the validators signed, at the rate that held. */
  readonly intervalsMs: readonly number[];
  readonly memoryMib: number | undefined;
}

/** Runs the rows: the network, then one validator by the same method. */
export async function runNetworkRows(options: NetworkRowsOptions): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  if (options.rows.includes("network")) {
    rows.push(await runRow("transfers", TRANSFERS, YARDSTICK, options));
  }
  if (options.rows.includes("network-erc20")) {
    rows.push(await runRow("ERC-20 transfers", TOKEN_TRANSFERS, TOKEN_YARDSTICK, options));
  }
  return rows;
}

async function runRow(
  name: string,
  load: Load,
  yardstick: typeof YARDSTICK,
  options: NetworkRowsOptions,
): Promise<BenchRow> {
  const say = (line: string) => options.say(`${name}, ${line}`);
  const network = await measure(VALIDATORS, load, { ...options, say });
  const alone = await measure(1, load, { ...options, say });
  const share = network.held.perSecond / Math.max(1, alone.held.perSecond);
  return {
    title: `${name} held by ${VALIDATORS} validators on this machine, 2 s blocks`,
    unit: "tx/s",
    ours: network.held.perSecond,
    peer: yardstick.perSecond,
    peerName: yardstick.name,
    aim: { value: load.aimPerSecond },
    details: [
      ...detailsOf(`${VALIDATORS} validators`, network),
      ...detailsOf("1 validator", alone),
      `the network holds ${formatFigure(share)} of what one validator holds: each transfer is ` +
        `checked and executed ${VALIDATORS} times on the same cores`,
      "the peer's figure is not of this run",
    ],
  };
}

async function measure(
  validators: number,
  load: Load,
  { length, profileFolder, say }: NetworkRowsOptions,
): Promise<NetworkFigures> {
  const trials = length.quick ? TRIALS.quick : TRIALS.full;
  const groups = senderGroups(maxTrials(trials) + 1, "network");
  const [[watched] = []] = groups;
  const [owner] = createSenders(1, "network owner");
  if (watched === undefined || owner === undefined) throw new Error("no senders");
  const funded = [owner, ...groups.flat()].map(({ address }) => address);
  const target = await startNetworkTarget({ validators, funded, profileFolder });
  const probe = new ReadProbe(target.urls, watched.address);
  try {
    const payment = await load.prepare(target.url, { owner, groups });
    const left = [...groups];
    let figures: readonly ProbeFigures[] = [];
    const held = await findHeldRate({
      target,
      turns: new Turns(),
      senders: () => left.shift() ?? [],
      payment,
      blocksPerTrial: BLOCKS_PER_TRIAL,
      trials,
      firstPerSecond: validators === 1 ? load.alonePerSecond : load.aimPerSecond,
      warmUpPerSecond: load.warmUpPerSecond,
      onStart: () => probe.restart(),
      onBest: () => {
        figures = probe.figures();
      },
      say,
    });
    const intervalsMs = await intervalsOf(target, held);
    await assertAgreed(target);
    const memoryMib = target.process.memoryMib();
    await probe.stop();
    return { held, probe: figures, intervalsMs, memoryMib };
  } finally {
    await target.stop();
  }
}

/** Intervals of the blocks that held transactions, by the times in their signed headers. */
async function intervalsOf(target: NetworkTarget, { blocks }: HeldResult): Promise<number[]> {
  const loaded = blocks.filter(({ transactions }) => transactions > 0);
  const times: number[] = [];
  for (const { height } of loaded) {
    const response = await fetch(`${target.cometUrl}/header?height=${height}`);
    const { result } = (await response.json()) as { result: { header: { time: string } } };
    times.push(Date.parse(result.header.time));
  }
  return times.slice(1).map((timeMs, index) => timeMs - (times[index] ?? timeMs));
}

/** All nodes have the same block at the height that every one of them has. */
async function assertAgreed({ urls }: NetworkTarget): Promise<void> {
  const heads = await Promise.all(urls.map((url) => callRpc<string>(url, "eth_blockNumber", [])));
  const height = `0x${Math.min(...heads.map(Number)).toString(16)}`;
  const blocks = await Promise.all(
    urls.map((url) => callRpc<{ hash: string }>(url, "eth_getBlockByNumber", [height, false])),
  );
  const hashes = new Set(blocks.map(({ hash }) => hash));
  if (hashes.size !== 1) throw new Error(`the nodes disagree at height ${height}`);
}

function detailsOf(name: string, figures: NetworkFigures): string[] {
  const { held, probe, intervalsMs, memoryMib } = figures;
  const { verdict, cpuMicroseconds } = held;
  if (verdict === undefined) return [`${name}: no rate was held`];
  const seconds = (ms: number) => (ms / 1_000).toFixed(2);
  const cpu = cpuMicroseconds === undefined ? "?" : formatFigure(cpuMicroseconds);
  const { inclusionP50Ms, inclusionP99Ms, meanIntervalMs } = verdict;
  return [
    `${name}: ${formatFigure(held.perSecond)}/s; inclusion p50 ${seconds(inclusionP50Ms)} s, ` +
      `p99 ${seconds(inclusionP99Ms)} s; blocks every ${seconds(meanIntervalMs)} s, ` +
      `signed times ${seconds(Math.min(...intervalsMs))} to ` +
      `${seconds(Math.max(...intervalsMs))} s apart; ${cpu} us of processor time per transfer in ` +
      `all; ${formatFigure(memoryMib ?? 0)} MiB in all`,
    `    reads at that rate: ${probe
      .map(({ method, p50Ms, p99Ms }) => {
        return `${method} p50 ${formatFigure(p50Ms)} ms, p99 ${formatFigure(p99Ms)} ms`;
      })
      .join("; ")}`,
  ];
}
