/** `npm run mesh-check`: does a Data API explain every balance of its chain? */
import { prepare } from "./setup/prepare.mjs";
import { runSetup } from "./setup/setup-error.mjs";

await runSetup(() =>
  prepare({
    isDevWanted: false,
    say: (text) => console.error(`causeway: ${text}`),
    words: ["mesh-check"],
  }),
);
await import("../dist/cli/mesh-check/main.js");
