/** Runs rosetta-cli against a kit and reads what it really found: its exit code says too little. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import type { RunningKit } from "../helpers/kit.js";
import { freePort } from "../helpers/ports.js";

/** Statistics of check:data. */
export interface DataStats {
  readonly blocks: number;
  readonly orphans: number;
  readonly transactions: number;
  readonly operations: number;
  readonly accounts: number;
  readonly active_reconciliations: number;
  readonly inactive_reconciliations: number;
  readonly exempt_reconciliations: number;
  readonly failed_reconciliations: number;
  readonly skipped_reconciliations: number;
  readonly reconciliation_coverage: number;
}

/** Result file of check:data. */
export interface DataResults {
  readonly error: string;
  readonly end_condition: { readonly type: string; readonly detail: string } | null;
  readonly tests: Readonly<Record<string, boolean>>;
  readonly stats: DataStats;
}

/** Result file of check:construction. */
export interface ConstructionResults {
  readonly error: string;
  readonly end_conditions: Readonly<Record<string, number>>;
  readonly stats: {
    readonly transactions_confirmed: number;
    readonly transactions_created: number;
    readonly stale_broadcasts: number;
    readonly failed_broadcasts: number;
    readonly addresses_created: number;
    readonly workflows_completed: Readonly<Record<string, number>>;
  };
}

/** One line of check:spec's table. */
export interface SpecLine {
  readonly endpoint: string;
  readonly requirement: string;
  readonly status: string;
}

/** An account that check:construction pays from, in one currency. */
export interface PrefundedAccount {
  readonly privateKey: string;
  readonly address: string;
  readonly currency: object;
}

/** The judge over one kit. */
export interface Judge {
  /** `check:spec --all`, as its table has it: it exits with 0 even when checks fail. */
  spec(): Promise<SpecLine[]>;
  /** `check:data` from genesis until every account is reconciled at the tip. */
  data(): Promise<DataResults>;
  /** `check:construction` until each workflow ran so often. */
  construction(run: {
    readonly dslFile: string;
    readonly workflows: Readonly<Record<string, number>>;
    readonly prefunded: readonly PrefundedAccount[];
    /** What stands in the file for what only the chain knows, by the words that it has there. */
    readonly values?: Readonly<Record<string, string>>;
  }): Promise<ConstructionResults>;
  /** Deletes its folder. */
  remove(): void;
}

/** A wrong parent hash makes it loop for ever; nothing else takes so long. */
const TIME_LIMIT_MS = 300_000;

/** Lines of its output that a failure shows. */
const LAST_WORDS = 40;

/** Opens a judge; each run has a data folder of its own. */
export function openJudge(kit: RunningKit): Judge {
  const program = process.env["ROSETTA_CLI"];
  if (program === undefined) {
    throw new Error("rosetta-cli is not built: run `npm run test:mesh`, which needs Go");
  }
  const folder = fs.mkdtempSync(path.join(path.dirname(kit.home), "causeway-judge-"));
  let runs = 0;
  const run = async (command: readonly string[], parts: object): Promise<JudgeRun> => {
    runs += 1;
    const own = path.join(folder, String(runs));
    fs.mkdirSync(own);
    const results = path.join(own, "results.json");
    const config = await writeConfig(kit, { own, results }, parts);
    const { code, output } = await execute(program, [...command, "--configuration-file", config]);
    return { code, output, results };
  };
  return {
    async spec() {
      // Its configuration wants workflows, although none runs.
      const part = await constructionPart({ dslFile: "native.ros", workflows: { transfer: 1 } });
      const { code, output } = await run(["check:spec", "--all"], part);
      if (code !== 0) throw new Error(`check:spec ended with ${code}:\n${lastWords(output)}`);
      return parseSpecTable(output);
    },
    async data() {
      const results: DataResults = JSON.parse(
        readResults(await run(["check:data"], await dataPart())),
      );
      return results;
    },
    async construction(asked) {
      const part = await constructionPart(asked);
      const results: ConstructionResults = JSON.parse(
        readResults(await run(["check:construction"], part)),
      );
      return results;
    },
    remove: () => fs.rmSync(folder, { recursive: true, force: true }),
  };
}

interface JudgeRun {
  readonly code: number | null;
  readonly output: string;
  readonly results: string;
}

interface ConfigParts {
  readonly data?: object;
  /** Text of the workflows, and how they are run. */
  readonly construction?: { readonly workflows: string; readonly config: object };
}

/** Genesis has operations, so nothing is fetched, listed, exempt or bootstrapped. */
async function dataPart(): Promise<ConfigParts> {
  return {
    data: {
      active_reconciliation_concurrency: 8,
      inactive_reconciliation_concurrency: 4,
      inactive_reconciliation_frequency: 10,
      initial_balance_fetch_disabled: true,
      coin_tracking_disabled: true,
      // Its default is 9090 on all interfaces.
      status_port: await freePort(),
      end_conditions: {
        reconciliation_coverage: { coverage: 1, from_tip: true, tip: true },
      },
    },
  };
}

async function constructionPart(run: {
  readonly dslFile: string;
  readonly workflows: Readonly<Record<string, number>>;
  readonly prefunded?: readonly PrefundedAccount[];
  readonly values?: Readonly<Record<string, string>>;
}): Promise<ConfigParts> {
  const file = path.join(process.cwd(), "test", "mesh", run.dslFile);
  const workflows = Object.entries(run.values ?? {}).reduce(
    (text, [word, value]) => text.replaceAll(`"${word}"`, `"${value}"`),
    fs.readFileSync(file, "utf8"),
  );
  return {
    construction: {
      workflows,
      config: {
        max_offline_connections: 4,
        stale_depth: 50,
        broadcast_limit: 3,
        status_port: await freePort(),
        end_conditions: run.workflows,
        prefunded_accounts: (run.prefunded ?? []).map((account) => ({
          privkey: account.privateKey.replace(/^0x/, ""),
          account_identifier: { address: account.address },
          curve_type: "secp256k1",
          currency: account.currency,
        })),
      },
    },
  };
}

/** Writes the configuration; paths in it are relative to its folder. */
async function writeConfig(
  kit: RunningKit,
  paths: { readonly own: string; readonly results: string },
  { data, construction }: ConfigParts,
): Promise<string> {
  const { own, results } = paths;
  if (construction !== undefined) {
    fs.writeFileSync(path.join(own, "workflows.ros"), construction.workflows);
  }
  const config = {
    network: { blockchain: "token", network: "testnet" },
    online_url: kit.url("sidecarOnline"),
    data_directory: path.join(own, "data"),
    http_timeout: 60,
    max_retries: 5,
    max_online_connections: 64,
    max_sync_concurrency: 16,
    tip_delay: 30,
    ...(data === undefined ? {} : { data: { ...data, results_output_file: results } }),
    ...(construction === undefined
      ? {}
      : {
          construction: {
            ...construction.config,
            offline_url: kit.url("sidecarOffline"),
            results_output_file: results,
            constructor_dsl_file: "workflows.ros",
          },
        }),
  };
  const file = path.join(own, "config.json");
  fs.writeFileSync(file, JSON.stringify(config, null, 1));
  return file;
}

function execute(
  program: string,
  words: readonly string[],
): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, words, {
      stdio: ["ignore", "pipe", "pipe"],
      timeout: TIME_LIMIT_MS,
      killSignal: "SIGKILL",
    });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, output }));
  });
}

/** Text of the result file of a run without error. */
function readResults({ code, output, results }: JudgeRun): string {
  if (code !== 0 && !fs.existsSync(results)) {
    const end = code === null ? `was ended after ${TIME_LIMIT_MS} ms` : `ended with ${code}`;
    throw new Error(`rosetta-cli ${end}:\n${lastWords(output)}`);
  }
  const text = fs.readFileSync(results, "utf8");
  const { error }: { error: string } = JSON.parse(text);
  if (code !== 0 || error !== "") throw new Error(`${text}\n${lastWords(output)}`);
  return text;
}

/** Rows look like "|  /block  |  same hash ...  |  Success  |  false  |". */
function parseSpecTable(output: string): SpecLine[] {
  return output.split("\n").flatMap((line) => {
    const cells = line.split("|").map((cell) => cell.trim());
    const [, endpoint, requirement, status] = cells;
    if (cells.length !== 6 || endpoint === undefined || requirement === undefined) return [];
    if (status === undefined || endpoint === "API") return [];
    return [{ endpoint, requirement, status }];
  });
}

/** What it said last; its database talks about other things. */
function lastWords(output: string): string {
  const lines = output.split("\n").filter((line) => !/badger|to cache$/.test(line));
  return lines.slice(-LAST_WORDS).join("\n");
}
