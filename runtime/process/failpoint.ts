/** Named places where a test can make the process die as by `kill -9`; free when none is armed. */
import { processEnvironment } from "../config/config.js";

/** Variable that arms one failpoint: `"name"`, or `"name:3"` for its third hit. */
const VARIABLE = "CAUSEWAY_FAILPOINT";

/** The armed failpoint and how many more hits it survives. */
interface ArmedFailpoint {
  readonly name: string;
  remainingHits: number;
}

let armed: ArmedFailpoint | undefined;
let isRead = false;

/**
 * Kills the own process with SIGKILL when `CAUSEWAY_FAILPOINT` names this place (and, for
 * `"name:n"`, at its n-th hit). Call it right after each durable step.
 * @param name stable name such as "watcher.after-block-commit"
 */
export function failpoint(name: string): void {
  if (!isRead) {
    armed = parseFailpoint(processEnvironment()[VARIABLE]);
    isRead = true;
  }
  if (armed === undefined || armed.name !== name) {
    return;
  }
  armed.remainingHits -= 1;
  if (armed.remainingHits <= 0) {
    process.kill(process.pid, "SIGKILL");
  }
}

/** Reads `"name"` or `"name:n"`; anything else arms nothing. */
function parseFailpoint(text: string | undefined): ArmedFailpoint | undefined {
  const match = /^([a-z0-9.-]+?)(?::([1-9][0-9]{0,6}))?$/.exec(text ?? "");
  return match === null
    ? undefined
    : { name: match[1] ?? "", remainingHits: Number(match[2] ?? "1") };
}
