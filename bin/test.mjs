/** `npm test`: installs and builds what is missing, then runs the tests. */
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  buildJudge,
  buildLightClient,
  buildGrpcurl,
  buildRpcClient,
  hasGo,
} from "./testing/judge.mjs";
import { findChromium } from "./testing/chromium.mjs";
import { runJest, untilStopped } from "./testing/jest.mjs";
import { prepare } from "./setup/prepare.mjs";
import { runSetup } from "./setup/setup-error.mjs";
import { startPrivateServices } from "./testing/private-services.mjs";
import { openTestFolder } from "./testing/test-folder.mjs";
import { HALVES, ignoring, MODES } from "./testing/test-modes.mjs";

const USAGE = `Usage: npm test [-- OPTIONS]

Installs and builds what is missing, then runs the tests. The last line is "N passed, N failed".

  (no flag)    everything below test/ except test/browser, test/faults, test/soak, test/mesh
               and test/network
  --unit       test/unit, test/architecture and test/sim: no database, no process of the kit
  --services   what touches SQL or the queue, on a private PostgreSQL and Redis
  --mesh       test/mesh: rosetta-cli judges a kit; needs Go. With --long, much more traffic
  --network    test/network: networks of processes, followed by CometBFT's light client and asked
               by its Go client where Go is there to build them. With --long, also 500 blocks
               at 200 ms, 100 at 2 s, nodes that are killed, frozen, cut off, run twice or come
               back, what outsiders ask of a network, and a chain of 10,000 mixed transactions
               (CAUSEWAY_RECORDED) that the other engine executes again
  --browser    test/browser: explorer and console in a real Chromium, with axe-core
  --fuzz       100,000 requests that go wrong, against the sidecar (5,000 in the usual run), and
               3,000 transactions built as other clients build them (300)
  --sim        the simulations at length: an economy of 10,000 blocks, 6,000 interleavings of the
               worker (1,000 and 600 in the usual run)
  --help       show this text

Further arguments go to jest.`;

/** Progress lines; the longest files alone take minutes on a busy machine. */
const REPORT_MS = 25_000;

/** Words that are for this program; all others are jest's. */
const FLAGS = [...Object.keys(MODES).map((name) => `--${name}`), "--long"];

const say = (text) => console.log(`causeway: ${text}`);
const given = process.argv.slice(2);
if (given.some((word) => word === "--help" || word === "-h")) {
  console.log(USAGE);
  process.exit(0);
}
const jestArguments = given.filter((word) => !FLAGS.includes(word));
const hasOwnPaths = jestArguments.some((word) => !word.startsWith("-") && /[/.]/.test(word));
const modes = Object.keys(MODES).filter((name) => given.includes(`--${name}`));

// Asked for first: without it all that is installed and built would be for nothing.
let folder;
await runSetup(() => (folder = openTestFolder({ say })));
process.once("exit", folder.remove);
say("checking packages and build");
await runSetup(() => prepare({ isDevWanted: true, say }));
process.env.TMPDIR = folder.path;
say(`the tests' files lie ${folder.isInMemory ? "in memory" : "on the disk"}, in ${folder.path}`);

const totals = { passed: 0, failed: 0, exitCode: 0 };
await untilStopped(async () => {
  for (const mode of modes.length === 0 ? ["usual"] : modes) await runMode(mode);
});
console.log(`${totals.passed} passed, ${totals.failed} failed`);
process.exitCode = totals.exitCode;

/** Runs all of a mode, beside what it needs. */
async function runMode(mode) {
  const services = mode === "services" ? await startOrExit() : undefined;
  const judge = mode === "mesh" ? await judgeOrExit() : undefined;
  const comet = mode === "network" ? await cometOrExit() : undefined;
  const chromium = mode === "browser" ? await chromiumOrExit() : undefined;
  try {
    for (const run of runsOf(mode, comet)) {
      await runTests(run, {
        ...run.environment,
        ...services?.environment,
        ...judge,
        ...comet,
        ...chromium,
      });
    }
  } finally {
    await services?.stop();
  }
}

async function startOrExit() {
  let services;
  await runSetup(async () => {
    services = await startPrivateServices({ say });
  });
  return services;
}

/** What the tests with the judge are told. */
async function judgeOrExit() {
  let program;
  await runSetup(async () => {
    program = await buildJudge({ say });
  });
  return { ROSETTA_CLI: program, MESH_FORM: given.includes("--long") ? "long" : "short" };
}

/** What the tests with CometBFT's programs are told; undefined where nothing can build them. */
async function cometOrExit() {
  if (!hasGo()) {
    say(
      "NOT RUN: tests with CometBFT's programs and grpcurl, which need Go from https://go.dev/dl",
    );
    return undefined;
  }
  const programs = {};
  await runSetup(async () => {
    programs.COMETBFT = await buildLightClient({ say });
    programs.RPC_CLIENT = await buildRpcClient({ say });
    programs.GRPCURL = await buildGrpcurl({ say });
  });
  return programs;
}

/** Which browser the tests with one use. */
async function chromiumOrExit() {
  let path;
  await runSetup(async () => {
    path = findChromium();
  });
  return { CAUSEWAY_TEST_CHROMIUM: path };
}

/** One after the other; files that are named are one run. */
function runsOf(mode, comet) {
  if (mode === "network") return [networkMode(comet)];
  return mode === "usual" && !hasOwnPaths ? HALVES : [MODES[mode]];
}

/** The tests of networks that are asked for and possible. */
function networkMode(comet) {
  const long = given.includes("--long") ? [] : ["network/long/"];
  const judged =
    comet === undefined ? ["network/light", "network/rpc-client", "network/grpcurl"] : [];
  return { ...MODES.network, ignored: ignoring([...long, ...judged]) };
}

/** Runs the tests of a mode and adds their figures to the totals. */
async function runTests(mode, environment) {
  const resultPath = join(folder.path, "result.json");
  // A run that writes none must not be counted as the one before it.
  rmSync(resultPath, { force: true });
  const words = [
    "--json",
    `--outputFile=${resultPath}`,
    ...(mode.flags ?? []),
    ...(hasOwnPaths ? [] : mode.paths),
    ...jestArguments,
    // Last, because jest takes every plain word after it for a further pattern.
    ...mode.ignored.map((pattern) => `--testPathIgnorePatterns=${pattern}`),
  ];
  const startedMs = performance.now();
  const ticker = setInterval(() => {
    say(`the tests have been running for ${Math.round((performance.now() - startedMs) / 1_000)} s`);
  }, REPORT_MS);
  const code = await runJest(words, { environment }).finally(() => clearInterval(ticker));
  addFigures(resultPath, code);
}

function addFigures(resultPath, code) {
  totals.exitCode ||= code;
  try {
    const result = JSON.parse(readFileSync(resultPath, "utf8"));
    totals.passed += result.numPassedTests;
    // A file that cannot even be loaded has no failed tests, yet it has failed.
    totals.failed += result.numFailedTests + result.numRuntimeErrorTestSuites;
  } catch {
    totals.failed += 1;
    totals.exitCode ||= 1;
  }
}
