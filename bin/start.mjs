/** `npm start`: installs and builds what is missing, then runs the kit in this same process. */
import { keptByNpm } from "../cli/home/npm-flags.mjs";
import { assertNode, prepare } from "./prepare.mjs";
import { runSetup, SetupError } from "./setup-error.mjs";

await runSetup(assertNode);
// Asked before installing and building: on a fresh clone a slip of the finger would be told minutes later.
const { KIT_FLAGS, KIT_HELP, readFlags } = await import("../cli/supervisor/kit-flags.mjs");
const { given, faults } = readFlags(process.argv.slice(2));
if (given.has("help")) {
  console.log(KIT_HELP);
  process.exit();
}
await runSetup(() => refuse([...faults, ...keptByNpm(process.env, KIT_FLAGS, "npm start")]));
console.log("causeway: checking packages and build");
await runSetup(() =>
  prepare({ isDevWanted: false, say: (text) => console.log(`causeway: ${text}`) }),
);
await import("../dist/cli/kit-main.js");

/** What the kit finds wrong with its settings later is told in the same form. */
function refuse(wrong) {
  const lines = wrong.map(
    ({ file, key, value, allowed }) => `\n  ${file}: ${key} = ${value} (allowed: ${allowed})`,
  );
  if (lines.length > 0) throw new SetupError(`settings are wrong:${lines.join("")}`);
}
