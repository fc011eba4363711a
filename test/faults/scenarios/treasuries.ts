/** 59 to 61: `kill -9` around what the exchange moves for itself: sweeps, their gas, cold storage. */
import { WORKER_FAILPOINTS } from "../../../withdrawal-worker/failpoints.js";
import { TREASURY_FAILPOINTS } from "../../../withdrawal-worker/treasury/treasury-context.js";
import { pause } from "../../helpers/faults/bench.js";
import type { LabExchange, Member } from "../../helpers/faults/lab/lab-exchange.js";
import { BELOW_FUNDS, LabTreasury } from "../../helpers/faults/lab/lab-treasury.js";
import type { Scenario } from "./scenario.js";

const ONE = 10n ** 18n;

/** What the hot wallet has behind some of it is below this. */
const ABOVE_FUNDS = { lowUnits: 980n * ONE, targetUnits: 980n * ONE, highUnits: 2_000n * ONE };

const setup = { hasToken: true, hasTreasury: true };

const RANDOM_KILLS = 8;
const MAX_GAP_MS = 900;

/** Kills a process at one of its steps while there is work, and lets its next life go on. */
async function strike(
  lab: LabExchange,
  { process }: Member,
  { failpoint, treasury }: { readonly failpoint: string; readonly treasury: LabTreasury },
): Promise<void> {
  const kills = process.kills + 1;
  await process.stop();
  await treasury.leaseEnds();
  await process.begin({ CAUSEWAY_FAILPOINT: failpoint });
  const working = lab.work();
  await process.untilKilled(kills);
  await treasury.leaseEnds();
  await working;
}

// Needs a node that wants a better price: scenario 8.
const { afterCorrectionCommit: _elsewhere, ...workerSteps } = WORKER_FAILPOINTS;

const WATCHER_STEPS = [
  "after-read",
  "in-block-commit",
  "before-block-commit",
  "after-block-commit",
];

/** The three. */
export const TREASURIES: readonly Scenario[] = [
  {
    number: 59,
    name: "kill -9 of the treasury at each durable step of a sweep, its gas, cold storage, a refill",
    setup,
    async run(lab) {
      const treasury = new LabTreasury(lab);
      treasury.allow();
      for (const failpoint of Object.values(TREASURY_FAILPOINTS)) {
        if (failpoint === TREASURY_FAILPOINTS.afterCold) treasury.allow(BELOW_FUNDS);
        await strike(lab, lab.treasury, { failpoint, treasury });
      }
      await treasury.prove();
      treasury.allow(ABOVE_FUNDS);
      const refilled = treasury.refill();
      for (const { process } of [lab.treasury, lab.watcher]) {
        await pause(lab.random.integer(MAX_GAP_MS));
        process.kill();
        await process.untilReady();
        await treasury.leaseEnds();
      }
      await refilled;
      await treasury.prove();
    },
  },
  {
    number: 60,
    name: "kill -9 of worker and watcher at each durable step while the treasury sweeps",
    setup,
    async run(lab) {
      const treasury = new LabTreasury(lab);
      treasury.allow(BELOW_FUNDS);
      for (const failpoint of Object.values(workerSteps)) {
        await strike(lab, lab.worker, { failpoint, treasury });
      }
      for (const step of WATCHER_STEPS) {
        await strike(lab, lab.watcher, { failpoint: `watcher.${step}:2`, treasury });
      }
      await treasury.prove();
    },
  },
  {
    number: 61,
    name: "kill -9 of treasury, worker and watcher at random times",
    setup,
    async run(lab) {
      const treasury = new LabTreasury(lab);
      treasury.allow(BELOW_FUNDS);
      const victims = [lab.treasury.process, lab.worker.process, lab.watcher.process];
      for (let round = 0; round < RANDOM_KILLS; round += 1) {
        const victim = lab.random.pick(victims);
        const working = lab.work();
        await pause(lab.random.integer(MAX_GAP_MS));
        victim.kill();
        await victim.untilReady();
        await treasury.leaseEnds();
        await working;
      }
      await treasury.prove();
    },
  },
];
