/** Times as the SDK's command line takes them: Go's durations. */
import { CliError } from "./errors.js";

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

const PART = /([0-9]{1,6}(?:\.[0-9]{1,3})?)(ms|s|m|h)/g;

/**
 * Milliseconds of "15s", "1.5m" or "1h30m", at least 0.
 * @throws USAGE
 */
export function durationMs(text: string, flag: string): number {
  const parts = [...text.matchAll(PART)];
  if (parts.length === 0 || text.replace(PART, "") !== "") {
    throw new CliError("USAGE", `${flag} is a time such as 15s, not "${text.slice(0, 50)}".`);
  }
  return parts.reduce(
    (sum, [, count = "", unit = ""]) => sum + Number(count) * (UNITS_MS[unit] ?? 0),
    0,
  );
}
