/**
 * `npm run bench [-- --quick] [--only ROW[,ROW]] [--out FILE] [--profile DIR]`: how fast this build
 * is, beside peers in the same run on the same machine, the client's own work included.
 */
import { writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { errorMessage } from "../../chain/errors.js";
import { BALANCE_ROWS, runBalanceRows } from "./rows/balance-rows.js";
import { CHAIN_ROWS, type ChainRowName, type RunLength, runChainRows } from "./rows/chain-rows.js";
import { INDEXER_ROWS, runIndexerRows } from "./rows/indexer-rows.js";
import { LARGE_STATE_ROWS, runLargeStateRows } from "./rows/large-state-rows.js";
import { MODULE_ROWS, runModuleRows } from "./rows/module-rows.js";
import { OLD_BLOCK_ROWS, runOldBlockRows } from "./rows/old-block-rows.js";
import { NETWORK_ROWS, type NetworkRowName, runNetworkRows } from "./rows/network-rows.js";
import { type BenchRow, describeMachine, isMet, ratioOf, renderTable } from "./report.js";
import { runSendRows, SEND_ROWS } from "./rows/send-rows.js";
import { runStackRows, STACK_ROWS, type StackRowName } from "./rows/stack-rows.js";
import { runSearchRow, SEARCH_ROWS } from "./commit/search-row.js";
import { runCommitWeightsRow } from "./commit/weights-row.js";
import { COMMIT_STATE_ROWS, runCommitStateRows } from "./commit/state-rows.js";
import { runWeightsRow, WEIGHT_ROWS } from "./weights.js";

const ALL_ROWS = [
  ...CHAIN_ROWS,
  ...OLD_BLOCK_ROWS,
  ...STACK_ROWS,
  ...INDEXER_ROWS,
  ...NETWORK_ROWS,
  ...WEIGHT_ROWS,
  ...MODULE_ROWS,
  ...SEND_ROWS,
  ...BALANCE_ROWS,
  ...LARGE_STATE_ROWS,
  ...COMMIT_STATE_ROWS,
  ...SEARCH_ROWS,
];

const HELP = `Usage: npm run bench [-- OPTIONS]

Measures this build beside anvil and beside plain ethers loops, one after the other in one run.

  --quick          shorter trials, about a quarter of an hour in all; figures are rougher
  --only ROW,...   only these rows: ${ALL_ROWS.join(", ")}
  --out FILE       also write everything as JSON
  --profile DIR    write V8 CPU profiles of our processes, a folder for each part; they cost time
  --help           show this text`;

/** Load above which figures say more about the neighbours than about this build. */
const BUSY_LOAD_AVERAGE = 3;

const LENGTHS: Readonly<Record<"full" | "quick", RunLength>> = {
  full: { quick: false, trials: 8, blocksPerTrial: 6, readMs: 5_000 },
  quick: { quick: true, trials: 4, blocksPerTrial: 3, readMs: 1_500 },
};

interface Arguments {
  readonly length: RunLength;
  readonly chain: readonly ChainRowName[];
  readonly stack: readonly StackRowName[];
  readonly network: readonly NetworkRowName[];
  readonly wantsOldBlocks: boolean;
  readonly wantsIndexer: boolean;
  readonly wantsWeights: boolean;
  readonly wantsModules: boolean;
  readonly wantsSends: boolean;
  readonly wantsBalances: boolean;
  readonly wantsLargeState: boolean;
  readonly wantsCommitState: boolean;
  readonly wantsSearch: boolean;
  readonly out: string | undefined;
  readonly profileFolder: string | undefined;
}

const say = (line: string) => process.stdout.write(`${line}\n`);

function readArguments(): Arguments {
  const { values } = parseArgs({
    options: {
      quick: { type: "boolean" },
      only: { type: "string" },
      out: { type: "string" },
      profile: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help === true) {
    say(HELP);
    process.exit(0);
  }
  const known: readonly string[] = ALL_ROWS;
  const wanted = values.only?.split(",") ?? known;
  const unknown = wanted.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new Error(`no row ${unknown.join(", ")}; see --help`);
  return {
    length: values.quick === true ? LENGTHS.quick : LENGTHS.full,
    chain: CHAIN_ROWS.filter((name) => wanted.includes(name)),
    stack: STACK_ROWS.filter((name) => wanted.includes(name)),
    network: NETWORK_ROWS.filter((name) => wanted.includes(name)),
    wantsOldBlocks: OLD_BLOCK_ROWS.some((name) => wanted.includes(name)),
    wantsIndexer: INDEXER_ROWS.some((name) => wanted.includes(name)),
    wantsWeights: WEIGHT_ROWS.some((name) => wanted.includes(name)),
    wantsLargeState: LARGE_STATE_ROWS.some((name) => wanted.includes(name)),
    wantsCommitState: COMMIT_STATE_ROWS.some((name) => wanted.includes(name)),
    wantsSearch: SEARCH_ROWS.some((name) => wanted.includes(name)),
    wantsModules: MODULE_ROWS.some((name) => wanted.includes(name)),
    wantsSends: SEND_ROWS.some((name) => wanted.includes(name)),
    wantsBalances: BALANCE_ROWS.some((name) => wanted.includes(name)),
    out: values.out,
    profileFolder: values.profile,
  };
}

async function run(): Promise<void> {
  const {
    length,
    chain,
    stack,
    network,
    wantsOldBlocks,
    wantsIndexer,
    wantsWeights,
    wantsModules,
    wantsSends,
    wantsBalances,
    wantsLargeState,
    wantsCommitState,
    wantsSearch,
    out,
    profileFolder,
  } = readArguments();
  const machine = describeMachine();
  say(
    `${machine.cores} cores (${machine.cpu}), ${machine.memoryGib} GiB, ${machine.platform}, ` +
      `Node ${machine.node}, secp256k1 ${machine.secp256k1}, load ${machine.loadAverage}` +
      (length.quick ? ", quick" : ""),
  );
  if (machine.loadAverage > BUSY_LOAD_AVERAGE) {
    say("the machine is busy: trust the ratios only, and those with care");
  }
  const rows: BenchRow[] = [];
  const faults: string[] = [];
  const collect = async (name: string, work: () => Promise<readonly BenchRow[]>) => {
    try {
      rows.push(...(await work()));
    } catch (error) {
      faults.push(`${name} failed: ${errorMessage(error)}`);
    }
  };
  if (chain.length > 0) {
    const options = { rows: chain, length, profileFolder, say };
    await collect("the chain rows", () => runChainRows(options));
  }
  if (wantsOldBlocks) {
    const options = { ...length, profileFolder, say };
    await collect("the rows of old blocks", () => runOldBlockRows(options));
  }
  if (stack.length > 0) {
    const options = { rows: stack, length, profileFolder, say };
    await collect("the rows of the whole kit", () => runStackRows(options));
  }
  if (wantsIndexer) {
    const options = { ...length, profileFolder, say };
    await collect("the rows of the indexer", () => runIndexerRows(options));
  }
  if (network.length > 0) {
    const options = { rows: network, length, profileFolder, say };
    await collect("the rows of a network", () => runNetworkRows(options));
  }
  if (wantsModules) {
    await collect("the rows of the modules", () => runModuleRows({ ...length, say }));
  }
  if (wantsSends) {
    const options = { length, profileFolder, say };
    await collect("the row of MsgSend", () => runSendRows(options));
  }
  if (wantsBalances) {
    const options = { length, profileFolder, say };
    await collect("the rows of balances", () => runBalanceRows(options));
  }
  if (wantsLargeState) {
    const options = { length, profileFolder, say };
    await collect("the rows of a large state", () => runLargeStateRows(options));
  }
  if (wantsCommitState) {
    await collect("the rows of its commit", () => runCommitStateRows({ ...length, say }));
  }
  if (wantsWeights) {
    await collect("the row of weights", async () => runWeightsRow(length));
    const options = { quick: length.quick, say };
    await collect("the row of weights through commit", () => runCommitWeightsRow(options));
  }
  if (wantsSearch) {
    await collect("the search of dear programs", () => runSearchRow({ ...length, say }));
  }
  say("");
  for (const line of [...renderTable(rows), ...faults]) say(line);
  if (out !== undefined) {
    const judged = rows.map((row) => ({ ...row, ratio: ratioOf(row), met: isMet(row) }));
    const endLoadAverage = loadavg()[0];
    const report = { machine, endLoadAverage, quick: length.quick, rows: judged, faults };
    writeFileSync(out, `${JSON.stringify(report, null, 2)}\n`);
  }
  if (faults.length > 0) process.exitCode = 1;
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => process.exit(1));
}
await run().catch((error: unknown) => {
  say(`bench: ${errorMessage(error)}`);
  process.exitCode = 1;
});
process.exit();
