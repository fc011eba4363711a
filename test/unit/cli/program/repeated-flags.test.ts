/**
 * Words of a command line that would be forgotten without a word: of a flag that is typed twice one value, of
 * two that say different things one. And a folder that is named by nothing.
 */
import { tmpdir } from "node:os";
import type { Command } from "commander";
import { expect, it } from "@jest/globals";
import { createProgram } from "../../../../cli/program/program.js";

/** Commands that throw where they would end the process, with all that they say. */
async function run(
  words: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const said: string[] = [];
  const program = createProgram({
    version: "0",
    env,
    signal: new AbortController().signal,
    print: (line) => said.push(line),
    warn: (line) => said.push(line),
    setExitCode: () => undefined,
  });
  const all = (command: Command): readonly Command[] => [command, ...command.commands.flatMap(all)];
  for (const command of all(program)) {
    command.exitOverride().configureOutput({ writeErr: (text) => said.push(text) });
  }
  await program.parseAsync(["node", "causeway", ...words]).catch((error: unknown) => {
    said.push(String(error));
  });
  return said.join("\n");
}

it.each([
  ["keys create --scope deposits:read --scope withdrawals:read", "--scope"],
  ["webhooks add https://a.example/ --events deposit.credited --events=token.*", "--events"],
  ["withdrawals freeze --wallet 0x1 --reason a --reason b", "--reason"],
])("%s is refused, naming the flag", async (text, flag) => {
  const said = await run([...text.split(" "), "--home", tmpdir()]);
  expect(said).toContain(`${flag} is given twice`);
  expect(said).toContain("separated by commas");
});

it("takes the same value twice, another home, and what gathers its values", async () => {
  const twice = ["--rate", "0", "--rate", "0", "--scope", "deposits:read"];
  const homes = ["--home", "/nowhere", "--home", tmpdir()];
  expect(await run(["keys", "create", ...twice, ...homes])).toContain("--rate takes");
  const several = ["--acknowledge", "0x1", "--acknowledge", "0x2"];
  expect(await run(["withdrawals", "release", ...several, ...homes])).not.toContain("twice");
});

it.each([
  ["withdrawals release wd_1 --paid-by 0x1 --not-paid", "say --paid-by or --not-paid"],
  ["withdrawals release wd_1 --paid-by 0x1 --acknowledge 0x1 --reason a", "one after the other"],
  ["withdrawals release wd_1 --not-paid --accept-foreign", "one after the other"],
  ["withdrawals release wd_1 --wallet 0x1", "one after the other"],
  ["ledger link-payment 0x1 --withdrawal wd_1 --customer bob --reason a", "say --withdrawal, or"],
  [
    "ledger link-payment 0x1 --withdrawal wd_1 --idempotency-key k --reason a",
    "say --withdrawal, or",
  ],
])("%s is refused: one of two words would not be heard", async (text, said) => {
  expect(await run([...text.split(" "), "--home", tmpdir()])).toContain(said);
});

it.each([
  ["console user list --console-home=", "--console-home is empty"],
  ["init --role-homes=", "--role-homes is empty"],
  ["audit reserves --out a --customers=", "--customers is empty"],
  ["tx sign a.json --output-document=", "--output-document is empty"],
])(
  "%s is refused: nothing is looked for or written wherever somebody stands",
  async (text, said) => {
    expect(await run([...text.split(" "), "--home", "/nowhere/of/a/kit"])).toContain(said);
  },
);

it.each([
  ["tx broadcast a.json", "broadcast_mode", "block", "--broadcast-mode"],
  ["tx bank send a b 1atoken --yes", "generate_only", "true", "--generate-only"],
])("%s is refused where npm has kept a flag of it", async (text, name, value, flag) => {
  const said = await run(text.split(" "), { [`npm_config_${name}`]: value });
  expect(said).toContain(`flag: ${flag} = kept by npm (allowed: behind two dashes:`);
});
