/** Options in front of the command: a person is told where they belong, with the line to type. */
import { expect, it } from "@jest/globals";
import { createProgram } from "../../../../cli/program/program.js";
import { refuseEarly } from "../../../../cli/program/early-flags.js";

const program = createProgram({
  version: "0",
  env: {},
  signal: new AbortController().signal,
  print: () => undefined,
  warn: () => undefined,
  setExitCode: () => undefined,
});

function refusalOf(...words: readonly string[]): unknown {
  const codes: number[] = [];
  try {
    refuseEarly(program, words, (code) => codes.push(code));
  } catch (error) {
    return [(error as Error).message, ...codes];
  }
  return undefined;
}

it.each([
  ["--port-offset 100 doctor", "--port-offset", "doctor --port-offset 100", 2],
  ["--port-offset=100 doctor --strict", "--port-offset", "doctor --strict --port-offset=100", 2],
  ["--json --home /srv/kit status", "--json", "status --json --home /srv/kit", 2],
  ["--home /srv/kit keys list", "--home", "keys list --home /srv/kit", 1],
  ["keys --home /srv/kit list", "--home", "keys list --home /srv/kit", 1],
  ["audit --from 1 execution --json", "--from", "audit execution --json --from 1", 2],
  ["-o json query block 7", "-o", "query block 7 -o json", 1],
  ["--home /srv/kit tx bank send a b 1atoken", "--home", "", 1],
  ["--json --port-offset", "--json", "COMMAND --json --port-offset", 1],
  ["--home /srv/kit", "--home", "COMMAND --home /srv/kit", 1],
  ["keys --json", "--json", "keys COMMAND --json", 1],
  ["--home /srv/kit nonsense", "--home", "nonsense --home /srv/kit", 1],
  ["--home /srv/kit query tx -- a/-1", "--home", "query tx --home /srv/kit -- a/-1", 1],
])("%s is refused with the line that says it", (text, flag, line, code) => {
  const right = line === "" ? "tx bank send a b 1atoken --home /srv/kit" : line;
  expect(refusalOf(...text.split(" "))).toEqual([
    `options come behind the command, ${flag} too: npm run causeway -- ${right}`,
    code,
  ]);
});

it("shows a value with spaces as a shell takes it", () => {
  expect(refusalOf("--home", "/my kit's", "doctor")).toEqual([
    "options come behind the command, --home too: npm run causeway -- doctor --home '/my kit'\\''s'",
    2,
  ]);
});

it.each([
  "doctor --port-offset 100",
  "tokens add --symbol GOLD --decimals 2 --address 0x1",
  "query staking validator addrvaloper1x --node http://127.0.0.1:26657",
  "query evidence --height 7",
  "query evidence -o json list",
  "--version",
  "-V",
  "--help",
  "keys --help",
  "help keys",
  "--prot-offset 100 doctor",
  "",
])("%s is left to the command line's own rules", (text) => {
  expect(refusalOf(...text.split(" ").filter((word) => word !== ""))).toBeUndefined();
});
