/** `npm start`: installs and builds what is missing, then runs the kit in this same process. */
import { prepare } from "./prepare.mjs";
import { runSetup } from "./setup-error.mjs";

console.log("causeway: checking packages and build");
await runSetup(() =>
  prepare({ isDevWanted: false, say: (text) => console.log(`causeway: ${text}`) }),
);
await import("../dist/cli/kit-main.js");
