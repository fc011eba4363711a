/** Awaiting a condition with a deadline, instead of sleeping and hoping. */

/** Pause between the first two looks. */
const FIRST_PAUSE_MS = 5;

/** Longest pause: many conditions ask a database, which others wait for. */
const MAX_PAUSE_MS = 100;

/** How much longer each pause is than the one before. */
const GROWTH = 1.25;

/** No deadline is shorter: on a machine that is busy otherwise slow is not broken. */
export const PATIENCE_MS = 240_000;

/** Resolves when the condition holds; rejects with its description at the deadline. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  options: { readonly timeoutMs: number; readonly what?: string },
): Promise<void> {
  const timeoutMs = Math.max(options.timeoutMs, PATIENCE_MS);
  const deadlineMs = performance.now() + timeoutMs;
  for (let pauseMs = FIRST_PAUSE_MS; !(await condition()); pauseMs *= GROWTH) {
    if (performance.now() > deadlineMs) {
      throw new Error(`${options.what ?? String(condition)} did not hold within ${timeoutMs} ms`);
    }
    await new Promise((resolve) => setTimeout(resolve, Math.min(pauseMs, MAX_PAUSE_MS)));
  }
}
