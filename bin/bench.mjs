/**
 * `npm run bench`: builds the product with its benchmarks and runs them. Some rows run the node's code
 * in this process: package.json starts it with the node's own flags (`NODE_FLAGS`).
 */
import { BENCH } from "./setup/compile.mjs";
import { prepare } from "./setup/prepare.mjs";
import { runSetup } from "./setup/setup-error.mjs";
import { leaveOutSettings } from "./testing/environment.mjs";
import { temporaryFolder } from "./testing/test-folder.mjs";

const say = (text) => console.log(`causeway: ${text}`);
await runSetup(() => (process.env.TMPDIR = temporaryFolder({ say })));
say("checking packages and build");
await runSetup(() => prepare({ isDevWanted: true, target: BENCH, say }));
leaveOutSettings();
await import("../.cache/bench/test/bench/main.js");
