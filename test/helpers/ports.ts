/** Free ports for tests, and how many workers share them. */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

interface TestPorts {
  readonly freePort: () => Promise<number>;
  readonly MOST_WORKERS: number;
  readonly RUNS: number;
}

// From the clone's folder: benchmarks are compiled to another one. Both in one import: of two at a time
// that lead to one module jest may hand out the second before it is evaluated.
const { href } = pathToFileURL(resolve("bin", "testing", "test-ports.mjs"));
const ports: TestPorts = await import(href);

/** A port of 127.0.0.1 that is free, and that no other file or call of this run is given soon. */
export const { freePort } = ports;

/** Test files that run at once, at most. */
export const { MOST_WORKERS } = ports;

/** Runs of the tests on one machine that have places of their own. */
export const { RUNS } = ports;
