/**
 * `npm run bench`: builds the product with its benchmarks and runs them. Some rows run the node's code
 * in this process: package.json starts it with the node's own flags (`NODE_FLAGS`).
 */
import { BENCH } from "./setup/compile.mjs";
import { prepare } from "./setup/prepare.mjs";
import { runSetup } from "./setup/setup-error.mjs";
import { leaveOutSettings } from "./testing/environment.mjs";

console.log("causeway: checking packages and build");
await runSetup(() =>
  prepare({
    isDevWanted: true,
    target: BENCH,
    say: (text) => console.log(`causeway: ${text}`),
  }),
);
leaveOutSettings();
await import("../.cache/bench/test/bench/main.js");
