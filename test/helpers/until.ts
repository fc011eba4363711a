/** Awaiting a condition with a deadline, instead of sleeping and hoping. */

/** Pause between two looks. */
const POLL_MS = 10;

/** Resolves when the condition holds; rejects with its description at the deadline. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  options: { readonly timeoutMs: number; readonly what?: string },
): Promise<void> {
  const deadlineMs = performance.now() + options.timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadlineMs) {
      throw new Error(
        `${options.what ?? String(condition)} did not hold within ${options.timeoutMs} ms`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
