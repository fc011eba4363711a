/** Awaiting a condition with a deadline, instead of sleeping and hoping. */

/** Pause between two looks. */
const POLL_MS = 10;

/** No deadline is shorter: on a machine that is busy otherwise slow is not broken. */
const LEAST_PATIENCE_MS = 240_000;

/** Resolves when the condition holds; rejects with its description at the deadline. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  options: { readonly timeoutMs: number; readonly what?: string },
): Promise<void> {
  const timeoutMs = Math.max(options.timeoutMs, LEAST_PATIENCE_MS);
  const deadlineMs = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadlineMs) {
      throw new Error(`${options.what ?? String(condition)} did not hold within ${timeoutMs} ms`);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
