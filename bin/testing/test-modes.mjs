/** Which tests each mode of `npm test` runs. */
import { availableParallelism, totalmem } from "node:os";
import { inClone } from "./clone-paths.mjs";

/** Folders that are run when they are asked for. */
const APART = ["browser/", "faults/", "mesh/", "network/", "soak/"];

/** Test files that run at once, at most: whole kits have ports for so many (`test/helpers/kit.ts`). */
export const MOST_WORKERS = 8;

/**
 * Test files at a time where they mostly wait, for the database and for blocks: two for each core, which
 * a single one leaves idle for half of its time, and 4 GiB for each with the processes that it starts.
 */
export const waitingWorkers = ({ cores, memoryBytes }) =>
  Math.max(2, Math.min(2 * cores, Math.floor(memoryBytes / (4 * 2 ** 30)), MOST_WORKERS));

const WAITING_WORKERS = waitingWorkers({
  cores: availableParallelism(),
  memoryBytes: totalmem(),
});

/** Patterns for these places below `test/` and for packages; jest holds them against whole paths. */
export const ignoring = (places = []) =>
  ["/.*node_modules/", ...places.map((place) => `/test/${place}`)].map(inClone);

/** Which tests each mode runs: patterns of paths as they are from the clone on, and of whole ones. */
export const MODES = {
  usual: { paths: [], ignored: ignoring(APART) },
  unit: {
    paths: ["^test/(unit|architecture|sim)/"],
    ignored: ignoring(),
  },
  // What touches SQL or the queue; tests of nodes, sidecars and whole kits, which bring services of their
  // own, would only run a second time.
  services: {
    paths: [
      "^test/integration/(audit|compose|console|deposit-watcher|indexer|ledger|policy|recovery)/",
      "^test/integration/(runtime|tokens|treasury|wallets|webhooks|withdrawal-worker)/",
      "^test/integration/cli/(database-refuses|embedded-postgres|ledger-commands|older-tables)",
      "^test/faults/redis",
    ],
    ignored: ignoring(),
  },
  mesh: { paths: ["^test/mesh/"], ignored: ignoring() },
  // One after the other: each network has the cores for itself.
  network: { paths: ["^test/network/"], ignored: ignoring(), flags: ["--runInBand"] },
  browser: { paths: ["^test/browser/"], ignored: ignoring() },
  fuzz: {
    paths: ["^test/integration/sidecar/fuzz", "^test/unit/sidecar/construction-api/bytes"],
    ignored: ignoring(),
    environment: { CAUSEWAY_FUZZ_REQUESTS: "100000", CAUSEWAY_INTENTS: "3000" },
  },
  sim: {
    paths: ["^test/sim/"],
    ignored: ignoring(),
    environment: { CAUSEWAY_SIM_BLOCKS: "10000", CAUSEWAY_SIM_RUNS: "6000" },
  },
};

/**
 * The usual run in two: whole kits keep two cores busy with two files at a time, everything else
 * leaves half of them idle.
 */
export const HALVES = [
  { paths: ["^test/e2e/"], ignored: MODES.usual.ignored },
  {
    paths: [],
    ignored: ignoring([...APART, "e2e/"]),
    flags: [`--maxWorkers=${WAITING_WORKERS}`],
  },
];
