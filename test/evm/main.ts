/** `npm run test:evm`: Ethereum's state tests (Cancun) on one of the node's engines. */
import { existsSync } from "node:fs";
import { relative } from "node:path";
import { parseArgs } from "node:util";
import { ENGINES } from "./engines.js";
import { failureOf } from "./state-case.js";
import { fixtureFiles, readCases } from "./state-fixture.js";

const FAILURES_SHOWN = 40;
const PROGRESS_MS = 10_000;

const { values } = parseArgs({
  options: {
    fixtures: { type: "string" },
    engine: { type: "string", default: "causeway" },
    only: { type: "string", default: "" },
  },
});
const run = ENGINES[values.engine];
const folder = values.fixtures ?? "";
if (run === undefined || !existsSync(folder)) {
  console.error("usage: npm run test:evm -- --fixtures DIR [--engine causeway|ethereumjs]");
  process.exit(2);
}
let passed = 0;
let failed = 0;
let shownAt = Date.now();
for (const file of fixtureFiles(folder)) {
  const label = relative(folder, file);
  if (!label.includes(values.only)) continue;
  for (const test of readCases(file, label)) {
    let failure: string | undefined;
    const t0 = performance.now();
    try {
      failure = await failureOf(test, run);
    } catch (error) {
      failure = error instanceof Error ? (error.stack ?? error.message) : String(error);
    }
    const ms = performance.now() - t0;
    if (ms > 1000) console.log("SLOW", Math.round(ms), test.name);
    if (failure === undefined) passed++;
    else {
      failed++;
      if (failed <= FAILURES_SHOWN)
        console.log(`${test.name} gas ${test.transaction.gasLimit}: ${failure}`);
    }
  }
  if (Date.now() - shownAt > PROGRESS_MS) {
    shownAt = Date.now();
    console.log(`causeway: ${passed} passed so far, at ${label}`);
  }
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
