/** Which tests each mode of `npm test` runs. */
import { availableParallelism, totalmem } from "node:os";

/** Folders that are run when they are asked for. */
const APART = ["browser", "faults", "mesh", "network", "soak"];

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

const ignoring = (folders) => ["/node_modules/", ...folders.map((folder) => `/test/${folder}/`)];

/** Which tests each mode runs, as jest's path patterns. */
export const MODES = {
  usual: { paths: [], ignored: ignoring(APART) },
  unit: {
    paths: ["test/(unit|architecture|sim)/"],
    ignored: ["/node_modules/"],
  },
  // What touches SQL or the queue; tests of nodes, sidecars and whole kits, which bring services of their
  // own, would only run a second time.
  services: {
    paths: [
      "test/integration/(audit|compose|console|deposit-watcher|indexer|ledger|policy|recovery)/",
      "test/integration/(runtime|tokens|treasury|wallets|webhooks|withdrawal-worker)/",
      "test/integration/cli/(database-refuses|embedded-postgres|ledger-commands|older-tables)",
      "test/faults/redis",
    ],
    ignored: ["/node_modules/"],
  },
  mesh: { paths: ["test/mesh/"], ignored: ["/node_modules/"] },
  // One after the other: each network has the cores for itself.
  network: { paths: ["test/network/"], ignored: ["/node_modules/"], flags: ["--runInBand"] },
  browser: { paths: ["test/browser/"], ignored: ["/node_modules/"] },
  fuzz: {
    paths: ["test/integration/sidecar/fuzz", "construction-bytes"],
    ignored: ["/node_modules/"],
    environment: { CAUSEWAY_FUZZ_REQUESTS: "100000", CAUSEWAY_INTENTS: "3000" },
  },
  sim: {
    paths: ["test/sim/"],
    ignored: ["/node_modules/"],
    environment: { CAUSEWAY_SIM_BLOCKS: "10000", CAUSEWAY_SIM_RUNS: "6000" },
  },
};

/**
 * The usual run in two: whole kits keep two cores busy with two files at a time, everything else
 * leaves half of them idle.
 */
export const HALVES = [
  { paths: ["test/e2e/"], ignored: MODES.usual.ignored },
  {
    paths: [],
    ignored: ignoring([...APART, "e2e"]),
    flags: [`--maxWorkers=${WAITING_WORKERS}`],
  },
];
