/** All state tests below a folder on one engine: every file is counted, whatever it holds. */
import { relative } from "node:path";
import { errorMessage } from "../../chain/errors.js";
import { deviationOf } from "./deviations.js";
import type { CreateEngine } from "./engines.js";
import { failureOf } from "./state-case.js";
import { fixtureFiles, readCases, type StateCase } from "./state-fixture.js";

const FAILURES_SHOWN = 100;
const PROGRESS_MS = 10_000;

/**
 * Runs them in the order of their files. What is said last is "N passed, N failed", with what is left out
 * by decision among the passed.
 * @returns whether some passed and none failed
 */
export async function runStateTests(options: {
  readonly folder: string;
  /** Files whose path below the folder contains it. */
  readonly only: string;
  readonly engine: CreateEngine;
  readonly say: (line: string) => void;
}): Promise<boolean> {
  const { folder, only, engine, say } = options;
  const counts = { passed: 0, failed: 0, deviating: 0 };
  let shownAt = performance.now();
  const fail = (name: string, reason: string) => {
    if (++counts.failed <= FAILURES_SHOWN) say(`${name}: ${reason}`);
  };
  for (const file of fixtureFiles(folder)) {
    const label = relative(folder, file);
    if (!label.includes(only)) continue;
    for (const test of casesOf(file, label)) {
      if ("fault" in test) {
        fail(label, test.fault);
        continue;
      }
      const deviation = deviationOf(test);
      if (deviation !== undefined) {
        say(`${test.name}: left out by ${deviation.decision}: ${deviation.reason}`);
        counts.deviating++;
        continue;
      }
      const failure = await failureOf(test, engine).catch(errorMessage);
      if (failure === undefined) counts.passed++;
      else fail(test.name, failure);
    }
    if (performance.now() - shownAt > PROGRESS_MS) {
      shownAt = performance.now();
      say(`causeway: ${counts.passed} passed, ${counts.failed} failed, at ${label}`);
    }
  }
  say(`causeway: ${counts.deviating} left out by decision, named above`);
  say(`${counts.passed + counts.deviating} passed, ${counts.failed} failed`);
  return counts.failed === 0 && counts.passed > 0;
}

/** What cannot be read is one that failed: after an hour nobody gets a stack trace for a result. */
function casesOf(file: string, label: string): readonly (StateCase | { readonly fault: string })[] {
  try {
    return readCases(file, label);
  } catch (error) {
    return [{ fault: `cannot be read: ${errorMessage(error)}` }];
  }
}
