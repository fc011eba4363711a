/**
 * `npm run test:evm`: Ethereum's state tests (Cancun) on one of the node's engines, or random programs
 * on both. Deviations by decision are named and count as passed; the last line is "N passed, N failed".
 */
import { statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { relative } from "node:path";
import { parseArgs } from "node:util";
import { errorMessage } from "../../chain/errors.js";
import { deviationOf } from "./deviations.js";
import { ENGINES } from "./engines.js";
import { PROGRAM_KINDS, runPrograms } from "./programs.js";
import { failureOf } from "./state-case.js";
import { fixtureFiles, readCases } from "./state-fixture.js";

const FAILURES_SHOWN = 100;
const PROGRESS_MS = 10_000;
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
  process.exitCode = (await runAll(create)) ? 0 : 1;
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

async function runAll(engine: NonNullable<typeof create>): Promise<boolean> {
  const counts = { passed: 0, failed: 0, deviating: 0 };
  let shownAt = performance.now();
  for (const file of fixtureFiles(values.fixtures)) {
    const label = relative(values.fixtures, file);
    if (!label.includes(values.only)) continue;
    for (const test of readCases(file, label)) {
      const deviation = deviationOf(test);
      if (deviation !== undefined) {
        console.log(`${test.name}: left out by ${deviation.decision}: ${deviation.reason}`);
        counts.deviating++;
        continue;
      }
      const failure = await failureOf(test, engine).catch(errorMessage);
      if (failure === undefined) counts.passed++;
      else if (++counts.failed <= FAILURES_SHOWN) console.log(`${test.name}: ${failure}`);
    }
    if (performance.now() - shownAt > PROGRESS_MS) {
      shownAt = performance.now();
      console.log(`causeway: ${counts.passed} passed, ${counts.failed} failed, at ${label}`);
    }
  }
  console.log(`causeway: ${counts.deviating} left out by decision, named above`);
  console.log(`${counts.passed + counts.deviating} passed, ${counts.failed} failed`);
  return counts.failed === 0 && counts.passed > 0;
}
