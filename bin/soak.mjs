/**
 * `npm run test:soak`: rounds of random faults over real processes, each judged.
 *   --rounds N    how many (3)
 *   --seed S      the decisions of an earlier run again
 *   --at-once N   exchanges at a time (3)
 * The last line says how many payouts were paid once, doubled, missing or stuck; exits 1 for any.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { prepare } from "./prepare.mjs";
import { runSetup } from "./setup-error.mjs";

const ROOT = fileURLToPath(new URL("../", import.meta.url));

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
const child = spawn(
  process.execPath,
  [
    "--experimental-vm-modules",
    "--no-warnings",
    join(ROOT, "node_modules", "jest", "bin", "jest.js"),
    // One file: its lines are shown as they come.
    "--runInBand",
    // All is judged by then; a socket of a process that was killed may still be waited for.
    "--forceExit",
    "test/soak/",
  ],
  {
    cwd: ROOT,
    stdio: "inherit",
    env: {
      ...process.env,
      CAUSEWAY_SOAK_ROUNDS: values.rounds,
      CAUSEWAY_SOAK_SEED: values.seed,
      CAUSEWAY_SOAK_AT_ONCE: values["at-once"],
    },
  },
);
process.on("SIGTERM", () => child.kill("SIGTERM"));
process.on("SIGINT", () => child.kill("SIGINT"));
process.exitCode = await new Promise((resolve) => {
  child.once("error", () => resolve(1));
  child.once("close", (status) => resolve(status ?? 1));
});
