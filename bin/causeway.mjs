#!/usr/bin/env node
/** `npm run causeway -- COMMAND`: the operator's command; quiet unless something is missing. */
import { prepare } from "./setup/prepare.mjs";
import { runSetup } from "./setup/setup-error.mjs";

await runSetup(() =>
  prepare({
    isDevWanted: false,
    say: (text) => console.error(`causeway: ${text}`),
    words: process.argv.slice(2),
  }),
);
await import("../dist/cli/main.js");
