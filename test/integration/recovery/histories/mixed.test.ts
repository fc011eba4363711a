/**
 * Everything that moves money, mixed at random beside a model of who owns what: coins and a token, several
 * hot wallets, two workers, sweeps, lost blocks, older ledgers, deaths, persons. Nothing is paid twice, and
 * in the end everybody has what came for them less what was paid to them.
 */
import { afterEach, expect, it } from "@jest/globals";
import { createRandom } from "../../../helpers/random.js";
import { History, parseWithout } from "./history.js";
import { HouseOfWallets } from "./house-of-wallets.js";

/**
 * CAUSEWAY_HISTORY_SEED takes another one, CAUSEWAY_HISTORY_RUNS and CAUSEWAY_HISTORY_STEPS are longer, and
 * CAUSEWAY_HISTORY_WITHOUT leaves out kinds of happenings (`lose,crash`; `History.actions`).
 */
const SEED = Number(process.env["CAUSEWAY_HISTORY_SEED"] ?? 1);
const RUNS = Number(process.env["CAUSEWAY_HISTORY_RUNS"] ?? 2);
const STEPS = Number(process.env["CAUSEWAY_HISTORY_STEPS"] ?? 20);
const WITHOUT = parseWithout(process.env["CAUSEWAY_HISTORY_WITHOUT"]);

let house: HouseOfWallets | undefined;
afterEach(() => house?.close());

it.each(Array.from({ length: RUNS }, (_, run) => SEED + run))(
  "pays nothing twice, and everybody has what is theirs, with seed %i",
  async (seed) => {
    house = await HouseOfWallets.open();
    const history = new History(house, createRandom(seed), WITHOUT);
    try {
      await history.begin();
      for (let step = 0; step < STEPS; step += 1) await history.step();
      await history.settle();
    } catch (error) {
      console.log(`seed ${seed}:\n${history.said.join("\n")}`);
      throw error;
    }
    // Rounds end with faults where something was done to them: some ten in twenty steps at most were seen.
    expect(house.faultCount).toBeLessThan(2 * STEPS);
  },
);
