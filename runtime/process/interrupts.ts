/** Ctrl-C as a person presses it. */
import type { Environment } from "../config/config.js";

/**
 * Calls `pressed` for each Ctrl-C. Beneath npm it comes twice, from the terminal and once more from npm,
 * which passes on what it gets: the second signal there is still the first one's.
 */
export function onCtrlC(env: Environment, pressed: () => void): void {
  const isUnderNpm = env["npm_lifecycle_event"] !== undefined;
  let signals = 0;
  process.on("SIGINT", () => {
    signals += 1;
    if (!isUnderNpm || signals !== 2) pressed();
  });
}
