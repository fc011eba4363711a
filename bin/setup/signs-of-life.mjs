/** Long work says how long it has taken: a setup is never silent for more than 30 s. */

/** Between two lines. */
const REPORT_MS = 8_000;

/**
 * Runs `work`, and meanwhile says from time to time what `words` make of the seconds that it has taken.
 * @param {(text: string) => void} say
 * @param {(seconds: number) => string} words
 * @param {() => Promise<T>} work
 * @template T
 */
export async function withSignsOfLife(say, words, work) {
  const startedMs = performance.now();
  const ticker = setInterval(() => {
    say(words(Math.round((performance.now() - startedMs) / 1_000)));
  }, REPORT_MS);
  try {
    return await work();
  } finally {
    clearInterval(ticker);
  }
}
