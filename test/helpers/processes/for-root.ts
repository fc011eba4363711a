/** Tests that only root can make: what they set up needs rights over others' files. */
import { spawnSync } from "node:child_process";
import { it } from "@jest/globals";

/**
 * `it` for root. For everybody else a test that is skipped and says so in its own name, whichever
 * reporter shows it.
 * @param program that the tests start as well, with words by which it does nothing; without it they are
 *   skipped, too
 */
export function itForRoot(
  program?: readonly [name: string, ...words: string[]],
): (name: string, run: () => Promise<void>, timeoutMs?: number) => void {
  const lack =
    process.getuid?.() === 0 ? lackOf(program) : "root (run the tests as root to have it)";
  if (lack === undefined) return it;
  return (name, run, timeoutMs) => {
    process.stderr.write(`SKIPPED, needs ${lack}: ${name}\n`);
    it.skip(`${name} [SKIPPED: needs ${lack}]`, run, timeoutMs);
  };
}

function lackOf(program?: readonly [name: string, ...words: string[]]): string | undefined {
  if (program === undefined) return undefined;
  const [name, ...words] = program;
  return spawnSync(name, words, { stdio: "ignore" }).status === 0 ? undefined : program.join(" ");
}
