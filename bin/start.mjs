/** `npm start`: installs and builds what is missing, then runs the kit in this same process. */
import { keptByNpm } from "../cli/home/npm-flags.mjs";
import { assertNode, isInPlace, prepare } from "./setup/prepare.mjs";
import { runSetup, SetupError } from "./setup/setup-error.mjs";

await runSetup(assertNode);
// Asked before installing and building: on a fresh clone a slip of the finger would be told minutes later. Where
// all is in place the kit tells it, together with what is wrong with files and environment.
const { KIT_FLAGS, KIT_HELP, readFlags } = await import("../cli/supervisor/kit-flags.mjs");
const { given, faults } = readFlags(process.argv.slice(2));
if (given.has("help")) {
  console.log(KIT_HELP);
  process.exit();
}
const wrong = [...faults, ...keptByNpm(process.env, KIT_FLAGS, "npm start")];
if (wrong.length === 0) {
  console.log("causeway: checking packages and build");
  await runSetup(() =>
    prepare({ isDevWanted: false, say: (text) => console.log(`causeway: ${text}`) }),
  );
} else if (!isInPlace({ isDevWanted: false })) {
  await runSetup(() => refuse(wrong));
}
await import("../dist/cli/kit-main.js");

/** What the kit finds wrong with its settings is told in the same form. */
function refuse(faulty) {
  const lines = faulty.map(
    ({ file, key, value, allowed }) => `\n  ${file}: ${key} = ${value} (allowed: ${allowed})`,
  );
  throw new SetupError(`settings are wrong:${lines.join("")}`);
}
