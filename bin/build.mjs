/** `npm run build`: installs and builds what is missing, and starts nothing. */
import { prepare } from "./prepare.mjs";
import { runSetup } from "./setup-error.mjs";

await runSetup(() => prepare({ isDevWanted: false, say: (text) => console.log(text) }));
