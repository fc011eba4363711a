/** What a round of the soak may do to an exchange; each strike ends with everything back. */
import { WATCHER_FAILPOINTS } from "../../deposit-watcher/watcher.js";
import { WORKER_FAILPOINTS } from "../../withdrawal-worker/failpoints.js";
import { TREASURY_FAILPOINTS } from "../../withdrawal-worker/treasury/treasury-context.js";
import { pause } from "../helpers/faults/bench.js";
import type { LabExchange, Member } from "../helpers/faults/lab/lab-exchange.js";
import { WIRE_FAULTS, sometimes } from "../helpers/faults/proxy/rules.js";
import type { Direction } from "../helpers/faults/proxy/tcp-proxy.js";
import { failOver, meetStalePrimary } from "./failover.js";
import { loseBlocks } from "./older-chain.js";
import { failOverBehind, restoreLedger } from "./restore.js";

/** Share of all requests to node and Data API that go wrong in every round. */
const WIRE_FAULT_SHARE = 0.05;

/** One in so many commits is cut in the middle. */
const COMMITS_PER_CUT = 60;

/** Longer than a lease of the hot wallet. */
const MAX_FREEZE_MS = 2_500;

const MAX_DOWN_MS = 1_500;

/** Needs an incident, which a chain of ours does not have. */
const NOT_ARMED = "watcher.after-incident";

/** Faults that lie under a whole round. */
export function unsettle(lab: LabExchange): void {
  const { random } = lab;
  const rule = sometimes(WIRE_FAULT_SHARE, ...WIRE_FAULTS);
  for (const { node, blocks, database } of lab.members) {
    node.rules = [rule];
    blocks.rules = [rule];
    database.cutCommits(() =>
      random.integer(COMMITS_PER_CUT) === 0 ? random.pick(["before", "after"] as const) : undefined,
    );
  }
}

/** One kind of strike. */
export interface Strike {
  readonly name: string;
  /** True where it needs a Redis. */
  readonly isOfRedis?: boolean;
  /** True where it needs a treasury. */
  readonly isOfTreasury?: boolean;
  readonly run: (lab: LabExchange) => Promise<void>;
}

/** Those of a round of its own in which the ledger, or what is taken for it, gets behind. */
export const LEDGER_LOSSES: readonly Strike[] = [
  { name: "older database", run: restoreLedger },
  { name: "asynchronous failover", run: failOverBehind },
  { name: "stale primary", run: meetStalePrimary },
];

/** The one of a round of its own in which the chain gets behind; nobody else may be on it. */
export const CHAIN_LOSS: Strike = { name: "older chain", run: loseBlocks };

/** All that strike while customers are at work. */
export const STRIKES: readonly Strike[] = [
  { name: "kill worker", run: async ({ worker }) => worker.process.kill() },
  { name: "kill watcher", run: async ({ watcher }) => watcher.process.kill() },
  {
    name: "worker failpoint",
    run: (lab) => arm(lab, lab.worker, lab.random.pick(Object.values(WORKER_FAILPOINTS))),
  },
  {
    name: "watcher failpoint",
    run: (lab) =>
      arm(
        lab,
        lab.watcher,
        lab.random.pick(WATCHER_FAILPOINTS.filter((name) => name !== NOT_ARMED)),
      ),
  },
  {
    name: "kill treasury",
    isOfTreasury: true,
    run: async ({ treasury }) => treasury.process.kill(),
  },
  {
    name: "treasury failpoint",
    isOfTreasury: true,
    run: (lab) => arm(lab, lab.treasury, lab.random.pick(Object.values(TREASURY_FAILPOINTS))),
  },
  { name: "freeze worker", run: (lab) => freeze(lab, lab.worker) },
  { name: "freeze watcher", run: (lab) => freeze(lab, lab.watcher) },
  { name: "kill node", run: async ({ options }) => options.chain.node.kill() },
  { name: "kill sidecar", run: async ({ options }) => options.chain.sidecar.kill() },
  {
    name: "kill postgres",
    async run({ postgres, random }) {
      await postgres?.kill();
      await pause(random.integer(MAX_DOWN_MS));
      await postgres?.start();
    },
  },
  { name: "postgres failover", run: failOver },
  {
    name: "flush redis",
    isOfRedis: true,
    async run({ redis }) {
      await redis?.send("FLUSHALL");
    },
  },
  {
    name: "kill redis",
    isOfRedis: true,
    async run({ redis, random }) {
      await redis?.kill();
      await pause(random.integer(MAX_DOWN_MS));
      await redis?.start();
    },
  },
  {
    name: "cut off",
    async run({ members, random }) {
      const cuts: readonly (readonly Direction[])[] = [["up"], ["down"], ["up", "down"]];
      const directions = random.pick(cuts);
      const member = random.pick(members);
      member.database.hold(...directions);
      member.redis?.hold(...directions);
      await pause(random.integer(MAX_FREEZE_MS));
      member.database.release();
      member.redis?.release();
    },
  },
];

/** Starts the process again with a failpoint; whether work meets it in this round is chance. */
async function arm(lab: LabExchange, { process }: Member, failpoint: string): Promise<void> {
  const hits = 1 + lab.random.integer(3);
  await process.stop();
  await process.begin({ CAUSEWAY_FAILPOINT: `${failpoint}:${hits}` });
}

async function freeze({ random }: LabExchange, { process }: Member): Promise<void> {
  process.freeze();
  await pause(random.integer(MAX_FREEZE_MS));
  process.thaw();
}
