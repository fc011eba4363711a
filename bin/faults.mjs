/** `npm run test:faults`: shows that no fault loses or doubles money, and prints what was tried. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { escaped } from "./testing/clone-paths.mjs";
import { SHOWN_ELSEWHERE } from "./testing/fault-list.mjs";
import { runJest, untilStopped } from "./testing/jest.mjs";
import { readFlags } from "./testing/program-flags.mjs";
import { temporaryFolder } from "./testing/test-folder.mjs";
import { prepare } from "./setup/prepare.mjs";
import { runSetup } from "./setup/setup-error.mjs";

/** Whole kits under load; the last three take many minutes. */
const ON_KITS = ["^test/faults/watcher-crash"];
const ON_KITS_LONG = ["^test/faults/(failpoints|strikes|redis|consensus-crash)"];

const USAGE = `Usage: npm run test:faults -- [OPTIONS]

Shows that no fault loses or doubles money. Ends in a table of what was tried; exits 1 when any of it failed.

  --only N,...  only these numbers of the list
  --seed N      the decisions of an earlier run again; times are the machine's, and never repeat
  --all         also the long lists on whole kits: every failpoint of every process under load, frozen
                and killed processes, Redis that comes and goes
  --help        show this text`;

const values = readFlags(
  USAGE,
  {
    only: { type: "string" },
    seed: { type: "string" },
    all: { type: "boolean", default: false },
  },
  { numbers: ["seed"], lists: ["only"] },
);
const only = (values.only ?? "").split(",").filter(Boolean).map(Number);
const seed = values.seed ?? String(Date.now() % 1_000_000_007);
const isWanted = (number) => only.length === 0 || only.includes(number);

const say = (text) => console.log(`causeway: ${text}`);
await runSetup(() => (process.env.TMPDIR = temporaryFolder({ say })));
await runSetup(() => prepare({ isDevWanted: true, say }));

const folder = mkdtempSync(join(tmpdir(), "causeway-faults-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
const rows = [];
await untilStopped(addAll);
print();

/** What was tried, into the rows. */
async function addAll() {
  const report = join(folder, "rows");
  await jest(["^test/faults/scenarios"], {
    CAUSEWAY_FAULT_REPORT: report,
    CAUSEWAY_FAULT_SEED: seed,
    CAUSEWAY_FAULT_ONLY: only.join(","),
  });
  rows.push(...readLines(report));
  await addShownElsewhere();
  if (only.length > 0) return;
  const paths = values.all ? [...ON_KITS, ...ON_KITS_LONG] : ON_KITS;
  const tests = await jest(paths, { CAUSEWAY_FAULT_SEED: seed });
  for (const { fullName, status } of tests) {
    rows.push({ number: 0, name: fullName, backend: "kit", result: status });
  }
}

/** Tests that show a fault of the list already: each of those named has to be there and pass. */
async function addShownElsewhere() {
  const wanted = SHOWN_ELSEWHERE.filter(({ number }) => isWanted(number));
  if (wanted.length === 0) return;
  const named = wanted.flatMap(({ tests }) => tests);
  const files = [...new Set(wanted.flatMap(({ files: some }) => some))];
  const paths = files.map((file) => `^${file}`);
  const pattern = named.map(escaped).join("|");
  const found = await jest([...paths, "-t", pattern], {});
  for (const { number, name, tests } of wanted) {
    const results = tests.flatMap((test) => {
      const those = found.filter(
        ({ fullName, status }) => fullName.includes(test) && status !== "pending",
      );
      return those.length === 0 ? [`not found: ${test}`] : those.map(({ status }) => status);
    });
    const result = results.find((each) => each !== "passed") ?? "passed";
    rows.push({ number, name, backend: "-", result, note: `${tests.length} tests` });
  }
}

/** Runs jest and gives its results; what it says itself is shown. */
async function jest(patterns, environment) {
  const output = join(folder, `jest-${Math.random()}.json`);
  const words = ["--json", `--outputFile=${output}`, "--forceExit", ...patterns];
  const code = await runJest(words, { environment });
  if (code !== 0) process.exitCode = 1;
  try {
    return JSON.parse(readFileSync(output, "utf8")).testResults.flatMap(
      ({ assertionResults }) => assertionResults,
    );
  } catch {
    process.exitCode = 1;
    return [];
  }
}

function readLines(file) {
  try {
    return readFileSync(file, "utf8").split("\n").filter(Boolean).map(JSON.parse);
  } catch {
    return []; // No scenario of its own was asked for.
  }
}

function print() {
  console.log(`\nseed ${seed}; to repeat one: npm run test:faults -- --seed ${seed} --only N\n`);
  console.log("  no  backend   result  seconds  fault");
  const sorted = rows.toSorted((left, right) => (left.number || 99) - (right.number || 99));
  for (const { number, name, backend, result, seconds, note } of sorted) {
    const place = (number === 0 ? "" : String(number)).padStart(4);
    const took = (seconds === undefined ? "" : seconds.toFixed(1)).padStart(7);
    const words = note === undefined ? name : `${name} (${note})`;
    console.log(`${place}  ${backend.padEnd(8)}  ${result.padEnd(6)}  ${took}  ${words}`);
  }
  if (only.length === 0 && !rows.some(({ backend }) => backend === "redis")) {
    console.log(
      "\nNOT RUN: what befalls a queue in Redis. There is no redis-server on this machine.",
    );
  }
  const failed = rows.filter(({ result }) => result !== "passed").length;
  if (failed > 0 || rows.length === 0) process.exitCode = 1;
  console.log(`\n${rows.length - failed} passed, ${failed} failed`);
}
