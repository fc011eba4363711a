/**
 * `npm run test:soak`: rounds of random faults over real processes, each judged.
 *   --rounds N    how many (3)
 *   --seed S      the decisions of an earlier run again
 *   --at-once N   exchanges at a time (3)
 * The last line says how many payouts were paid once, doubled, missing or stuck; exits 1 for any.
 */
import { parseArgs } from "node:util";
import { runJest } from "./testing/jest.mjs";
import { prepare } from "./setup/prepare.mjs";
import { runSetup } from "./setup/setup-error.mjs";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    seed: { type: "string", default: String(Date.now() % 1_000_000_007) },
    "at-once": { type: "string", default: "3" },
  },
});

await runSetup(() =>
  prepare({ isDevWanted: true, say: (text) => console.log(`causeway: ${text}`) }),
);
// One file, whose lines are shown as they come; a socket of a process that was killed may still be waited
// for when all is judged.
process.exitCode = await runJest(["--runInBand", "--forceExit", "test/soak/"], {
  isShown: true,
  environment: {
    CAUSEWAY_SOAK_ROUNDS: values.rounds,
    CAUSEWAY_SOAK_SEED: values.seed,
    CAUSEWAY_SOAK_AT_ONCE: values["at-once"],
  },
});
