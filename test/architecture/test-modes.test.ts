/** What each `npm run test:…` runs, held against what the tests themselves need. */
import { describe, expect, it } from "@jest/globals";
import { type SourceFile, testSources } from "../helpers/sources/source-tree.js";

interface TestModes {
  readonly MODES: { readonly services: { readonly paths: readonly string[] } };
  readonly MOST_WORKERS: number;
  readonly waitingWorkers: (machine: {
    readonly cores: number;
    readonly memoryBytes: number;
  }) => number;
}

const BIN = "../../bin";
const { MODES, MOST_WORKERS, waitingWorkers }: TestModes = await import(
  `${BIN}/testing/test-modes.mjs`
);

/** Where tests take databases of the run's server. */
const DATABASES = "test/helpers/services/postgres.ts";

const files = new Map(testSources().map((file) => [file.path, file]));

/** Whether a file imports another one, over however many files of the tests. */
function reaches(file: SourceFile, wanted: string, seen = new Set<string>()): boolean {
  return file.imports.some((name) => {
    if (name === wanted) return true;
    const next = files.get(name);
    if (next === undefined || seen.has(name)) return false;
    seen.add(name);
    return reaches(next, wanted, seen);
  });
}

describe("test:services", () => {
  it("runs every integration test with a database of its own", () => {
    const patterns = MODES.services.paths.map((pattern) => new RegExp(pattern));
    const wanted = [...files.values()].filter(
      (file) => /^test\/integration\/.*\.test\.ts$/.test(file.path) && reaches(file, DATABASES),
    );
    const left = wanted
      .map(({ path }) => path)
      .filter((path) => !patterns.some((pattern) => pattern.test(path)));
    expect(wanted.length).toBeGreaterThan(100);
    expect(left).toEqual([]);
  });
});

describe("npm test", () => {
  it.each([
    { cores: 2, gibibytes: 24, workers: 4 },
    { cores: 2, gibibytes: 8, workers: 2 },
    { cores: 1, gibibytes: 2, workers: 2 },
    { cores: 32, gibibytes: 128, workers: MOST_WORKERS },
  ])(
    "runs $workers files at a time on $cores cores with $gibibytes GiB",
    ({ cores, gibibytes, workers }) => {
      expect(waitingWorkers({ cores, memoryBytes: gibibytes * 2 ** 30 })).toBe(workers);
    },
  );
});
