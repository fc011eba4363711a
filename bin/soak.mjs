/** `npm run test:soak`: rounds of random faults over real processes, each judged. */
import { runJest, untilStopped } from "./testing/jest.mjs";
import { readFlags } from "./testing/program-flags.mjs";
import { temporaryFolder } from "./testing/test-folder.mjs";
import { prepare } from "./setup/prepare.mjs";
import { runSetup } from "./setup/setup-error.mjs";

const USAGE = `Usage: npm run test:soak -- [OPTIONS]

Rounds of random faults over real processes, each judged. The last line says how many payouts were paid
once, doubled, missing or stuck; exits 1 for any of the last three.

  --rounds N    how many; default: 3
  --seed N      the decisions of an earlier run again
  --at-once N   exchanges at a time; default: 3
  --help        show this text`;

const values = readFlags(
  USAGE,
  {
    rounds: { type: "string", default: "3" },
    seed: { type: "string", default: String(Date.now() % 1_000_000_007) },
    "at-once": { type: "string", default: "3" },
  },
  { numbers: ["rounds", "seed", "at-once"] },
);

const say = (text) => console.log(`causeway: ${text}`);
await runSetup(() => (process.env.TMPDIR = temporaryFolder({ say })));
await runSetup(() => prepare({ isDevWanted: true, say }));
// One file, whose lines are shown as they come; a socket of a process that was killed may still be waited
// for when all is judged.
await untilStopped(async () => {
  process.exitCode = await runJest(["--runInBand", "--forceExit", "^test/soak/"], {
    isShown: true,
    environment: {
      CAUSEWAY_SOAK_ROUNDS: values.rounds,
      CAUSEWAY_SOAK_SEED: values.seed,
      CAUSEWAY_SOAK_AT_ONCE: values["at-once"],
    },
  });
});
