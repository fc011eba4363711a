/** `npm run build`: installs and builds what is missing, and starts nothing. */
import { prepare } from "./setup/prepare.mjs";
import { runSetup } from "./setup/setup-error.mjs";

await runSetup(() => prepare({ isDevWanted: false, say: (text) => console.log(text) }));
