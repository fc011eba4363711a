/** `npm run test:evm`: builds the product with its state tests and runs Ethereum's fixtures. */
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
await import("../.cache/bench/test/evm/main.js");
