/** Tests that only root can make: what they set up needs rights over others' files. */
import { it } from "@jest/globals";

/**
 * `it` for root. For everybody else a test that is skipped and says so in its own name, whichever
 * reporter shows it.
 */
export function itForRoot(): (name: string, run: () => Promise<void>, timeoutMs?: number) => void {
  if (process.getuid?.() === 0) return it;
  return (name, run, timeoutMs) => {
    process.stderr.write(`SKIPPED, needs root (run the tests as root to have it): ${name}\n`);
    it.skip(`${name} [SKIPPED: needs root]`, run, timeoutMs);
  };
}
