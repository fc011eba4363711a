/**
 * Flags that npm kept for itself. `npm start --once` without `--` in between gives the program no flag:
 * npm takes it for a setting of its own, of which the program sees a variable alone. JavaScript, as a
 * fresh clone asks for it before anything is built.
 */

/** Names that are settings of npm, too: theirs say nothing about a mistake. */
const OF_NPM = new Set(
  "description dry-run expires help json key name offline scope tag version yes".split(" "),
);

/**
 * A fault for each flag that was typed in front of the `--`.
 * @param names of the program's flags, without the dashes
 * @param command what is typed, up to the `--`
 */
export function keptByNpm(env, names, command) {
  return names.flatMap((name) => {
    // npm reads --no-demo as demo = false.
    const setting = name.replace(/^no-/, "").replaceAll("-", "_");
    const value = env[`npm_config_${setting}`];
    const isNegated = name.startsWith("no-");
    if (OF_NPM.has(name) || value === undefined || (value === "") !== isNegated) return [];
    const allowed = `behind two dashes: ${command} -- --${name}`;
    return [{ file: "flag", key: `--${name}`, value: "kept by npm", allowed }];
  });
}
