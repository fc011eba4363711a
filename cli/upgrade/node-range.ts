/** Whether a version of Node will do for a release, by `engines.node` of its package.json. */

/** The forms that releases of Causeway use: `^20.19`, `>=22.12`. */
const ALTERNATIVE = /^(\^|>=) *([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?$/;

/**
 * Why a version will not do; undefined where it will. By words that this program does not know none will.
 * @param range alternatives between `||`
 * @param version as Node tells its own
 */
export function nodeFault(range: string, version: string): string | undefined {
  const verdicts = range.split("||").map((one) => isWithin(one.trim(), version));
  if (verdicts.includes(true)) return undefined;
  if (verdicts.every((verdict) => verdict === false)) {
    return `needs Node ${range}, and this is ${version}`;
  }
  return `needs Node ${JSON.stringify(range)}, which this program does not understand`;
}

/** Undefined where the words are not known. */
function isWithin(alternative: string, version: string): boolean | undefined {
  const match = ALTERNATIVE.exec(alternative);
  if (match === null) return undefined;
  const [, sign, ...parts] = match;
  const lowest = parts.map((part) => Number(part ?? 0));
  const found = version.split(".").map((part) => Number.parseInt(part, 10));
  if (sign === "^" && found[0] !== lowest[0]) return false;
  const at = lowest.findIndex((part, index) => part !== found[index]);
  return at === -1 || (found[at] ?? 0) > (lowest[at] ?? 0);
}
