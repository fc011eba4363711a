/**
 * `npm run bench [-- --quick] [--only ROW[,ROW]] [--out FILE] [--profile DIR]`: how fast this build
 * is, beside peers in the same run on the same machine, the client's own work included.
 */
import { writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { errorMessage } from "../../chain/errors.js";
import { BALANCE_ROWS, runBalanceRows } from "./rows/balance-rows.js";
import { CHAIN_ROWS, type RunLength, runChainRows } from "./rows/chain-rows.js";
import { INDEXER_ROWS, runIndexerRows } from "./rows/indexer-rows.js";
import { LARGE_STATE_ROWS, runLargeStateRows } from "./rows/large-state-rows.js";
import { MODULE_ROWS, runModuleRows } from "./rows/module-rows.js";
import { OLD_BLOCK_ROWS, runOldBlockRows } from "./rows/old-block-rows.js";
import { NETWORK_ROWS, runNetworkRows } from "./rows/network-rows.js";
import { type BenchRow, describeMachine, isMet, ratioOf, renderTable } from "./report.js";
import { runSendRows, SEND_ROWS } from "./rows/send-rows.js";
import { runStackRows, STACK_ROWS } from "./rows/stack-rows.js";
import { runSearchRow, SEARCH_ROWS } from "./commit/search-row.js";
import { runCommitWeightsRow } from "./commit/weights-row.js";
import { COMMIT_STATE_ROWS, runCommitStateRows } from "./commit/state-rows.js";
import { runWeightsRow, WEIGHT_ROWS } from "./weights.js";

/** What every row is run with. */
interface RunOptions {
  readonly length: RunLength;
  readonly profileFolder: string | undefined;
  readonly say: (line: string) => void;
}

/** Rows that are run together. */
interface RowGroup {
  readonly names: readonly string[];
  /** For a message that it failed. */
  readonly title: string;
  /** @param wanted names of rows of any group; those of this one are run, at least one of them */
  readonly run: (wanted: readonly string[], options: RunOptions) => Promise<readonly BenchRow[]>;
}

function group<Name extends string>(
  names: readonly Name[],
  title: string,
  run: (rows: readonly Name[], options: RunOptions) => Promise<readonly BenchRow[]>,
): RowGroup {
  const chosen = (wanted: readonly string[]) => names.filter((name) => wanted.includes(name));
  return { names, title, run: (wanted, options) => run(chosen(wanted), options) };
}

/** All rows, in the order in which they are run. */
const GROUPS: readonly RowGroup[] = [
  group(CHAIN_ROWS, "the chain rows", (rows, options) => runChainRows({ rows, ...options })),
  group(OLD_BLOCK_ROWS, "the rows of old blocks", (_, { length, ...options }) =>
    runOldBlockRows({ ...length, ...options }),
  ),
  group(STACK_ROWS, "the rows of the whole kit", (rows, options) =>
    runStackRows({ rows, ...options }),
  ),
  group(INDEXER_ROWS, "the rows of the indexer", (_, { length, ...options }) =>
    runIndexerRows({ ...length, ...options }),
  ),
  group(NETWORK_ROWS, "the rows of a network", (rows, options) =>
    runNetworkRows({ rows, ...options }),
  ),
  group(MODULE_ROWS, "the rows of the modules", (_, { length, say }) =>
    runModuleRows({ ...length, say }),
  ),
  group(SEND_ROWS, "the row of MsgSend", (_, options) => runSendRows(options)),
  group(BALANCE_ROWS, "the rows of balances", (_, options) => runBalanceRows(options)),
  group(LARGE_STATE_ROWS, "the rows of a large state", (_, options) => runLargeStateRows(options)),
  group(COMMIT_STATE_ROWS, "the rows of its commit", (_, { length, say }) =>
    runCommitStateRows({ ...length, say }),
  ),
  group(WEIGHT_ROWS, "the rows of weights", async (_, { length, say }) => [
    ...runWeightsRow(length),
    ...(await runCommitWeightsRow({ quick: length.quick, say })),
  ]),
  group(SEARCH_ROWS, "the search of dear programs", (_, { length, say }) =>
    runSearchRow({ ...length, say }),
  ),
];

const ALL_ROWS = GROUPS.flatMap(({ names }) => names);

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

interface Arguments extends Pick<RunOptions, "length" | "profileFolder"> {
  /** Names of rows. */
  readonly wanted: readonly string[];
  readonly out: string | undefined;
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
  const wanted = values.only?.split(",") ?? ALL_ROWS;
  const unknown = wanted.filter((name) => !ALL_ROWS.includes(name));
  if (unknown.length > 0) throw new Error(`no row ${unknown.join(", ")}; see --help`);
  return {
    wanted,
    length: values.quick === true ? LENGTHS.quick : LENGTHS.full,
    out: values.out,
    profileFolder: values.profile,
  };
}

async function main(): Promise<void> {
  const { wanted, length, out, profileFolder } = readArguments();
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
  for (const { names, title, run: runRows } of GROUPS) {
    if (!names.some((name) => wanted.includes(name))) continue;
    try {
      rows.push(...(await runRows(wanted, { length, profileFolder, say })));
    } catch (error) {
      faults.push(`${title} failed: ${errorMessage(error)}`);
    }
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
await main().catch((error: unknown) => {
  say(`bench: ${errorMessage(error)}`);
  process.exitCode = 1;
});
process.exit();
