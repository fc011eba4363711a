/**
 * `npm run test:evm`: Ethereum's state tests (Cancun) on one of the node's engines, or random programs
 * on both. Deviations by decision are named and count as passed; the last line is "N passed, N failed".
 */
import { statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { errorMessage } from "../../chain/errors.js";
import { ENGINES } from "./engines.js";
import { PROGRAM_KINDS, runPrograms } from "./programs.js";
import { runStateTests } from "./state-run.js";

const USAGE = `Usage: npm run test:evm -- [OPTIONS]

Runs Ethereum's state tests (ethereum/tests, GeneralStateTests) for the fork Cancun, or with
--programs random programs on both engines, which must come to the same.

  --fixtures DIR   where the JSON files are; default: the small set in test/evm/fixtures
  --engine NAME    ${Object.keys(ENGINES).join(" or ")}; default: causeway
  --only TEXT      files whose path contains it
  --programs N     random programs, and sequences of transactions, instead of state
                   tests; some 300 a second on one core
  --kind KIND      program (some 2,000 a second on one core), sequence or both;
                   default: both
  --seed N         seed of the first of them; default: 1
  --threads N      threads for them; default: one for each core
  --help           show this text`;

const OPTIONS = {
  fixtures: { type: "string", default: "test/evm/fixtures" },
  engine: { type: "string", default: "causeway" },
  only: { type: "string", default: "" },
  programs: { type: "string" },
  kind: { type: "string", default: "both" },
  seed: { type: "string", default: "1" },
  threads: { type: "string", default: String(availableParallelism()) },
  help: { type: "boolean", default: false },
} as const;

const values = readFlags();
const create = ENGINES[values.engine];
const [count, firstSeed, threads] = [values.programs ?? "1", values.seed, values.threads].map(
  (text) => (/^[1-9][0-9]{0,9}$/.test(text) ? Number(text) : 0),
);
const kind = PROGRAM_KINDS.find((one) => one === values.kind);
if (values.help) {
  console.log(USAGE);
} else if (!count || !firstSeed || !threads) {
  console.error(
    `causeway: --programs, --seed and --threads are whole numbers from 1 on\n\n${USAGE}`,
  );
  process.exitCode = 2;
} else if (kind === undefined) {
  console.error(`causeway: --kind is one of ${PROGRAM_KINDS.join(", ")}\n\n${USAGE}`);
  process.exitCode = 2;
} else if (values.programs !== undefined) {
  const isPassed = await runPrograms({ count, kind, firstSeed, threads, say: console.log });
  process.exitCode = isPassed ? 0 : 1;
} else if (create === undefined || !isFolder(values.fixtures)) {
  const what = create === undefined ? `engine ${values.engine}` : `folder ${values.fixtures}`;
  console.error(`causeway: there is no ${what}\n\n${USAGE}`);
  process.exitCode = 2;
} else {
  const { fixtures: folder, only } = values;
  const isPassed = await runStateTests({ folder, only, engine: create, say: console.log });
  process.exitCode = isPassed ? 0 : 1;
}

/** What it does not know is told with what there is. */
function readFlags() {
  try {
    return parseArgs({ options: OPTIONS }).values;
  } catch (error) {
    console.error(`causeway: ${errorMessage(error)}\n\n${USAGE}`);
    return process.exit(2);
  }
}

/** An archive has to be unpacked first. */
function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
