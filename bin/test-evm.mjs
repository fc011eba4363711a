/** `npm run test:evm`: builds the product with its state tests and runs Ethereum's fixtures. */
import { BENCH } from "./compile.mjs";
import { prepare } from "./prepare.mjs";
import { runSetup } from "./setup-error.mjs";

console.log("causeway: checking packages and build");
await runSetup(() =>
  prepare({
    isDevWanted: true,
    target: BENCH,
    say: (text) => console.log(`causeway: ${text}`),
  }),
);
await import("../.cache/bench/test/evm/main.js");
