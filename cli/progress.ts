/** Progress of long work: no command of the kit is silent for longer than 30 s. */
import { type Clock, systemClock } from "../runtime/process/clock.js";

const PROGRESS_MS = 5_000;

/** Says where work is, in the words that it has by then, at most once per interval. */
export function progressLines(
  say: (line: string) => void,
  clock: Pick<Clock, "monotonicMs"> = systemClock,
): (line: () => string) => void {
  let saidMs = clock.monotonicMs();
  return (line) => {
    const nowMs = clock.monotonicMs();
    if (nowMs - saidMs < PROGRESS_MS) return;
    saidMs = nowMs;
    say(line());
  };
}

/**
 * Says where work is for as long as it takes: for work whose single steps may take minutes.
 * @returns what the work resolves with; its error is thrown
 */
export async function withProgress<T>(
  say: (line: string) => void,
  line: () => string,
  work: () => Promise<T>,
): Promise<T> {
  const timer = setInterval(() => say(line()), PROGRESS_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}
