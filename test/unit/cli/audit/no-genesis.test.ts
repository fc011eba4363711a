/** A home on somebody's node has no genesis of its own: audits say how the chain's is named. */
import { expect, it } from "@jest/globals";
import { runAuditExecution } from "../../../../cli/commands/audit.js";
import { runVerifyBalance } from "../../../../cli/commands/balance-proof.js";
import type { CommandContext } from "../../../../cli/command-context.js";

const context: CommandContext = {
  home: "/nowhere/causeway",
  portOffset: 0,
  json: false,
  env: {},
  signal: new AbortController().signal,
  print: () => undefined,
};

it.each<[string, (warn: (line: string) => void) => Promise<number>]>([
  [
    "audit",
    (warn) => {
      const options = { from: "1", to: "head", node: "http://127.0.0.1:1" };
      return runAuditExecution(context, options, warn);
    },
  ],
  ["verify", (warn) => runVerifyBalance(context, { file: "proof.json" }, warn)],
])("%s of a home without a genesis asks for --genesis", async (command, run) => {
  const lines: string[] = [];
  expect(await run((line) => lines.push(line))).toBe(2);
  expect(lines).toEqual([
    `${command}: There is no genesis in /nowhere/causeway: name the chain's with --genesis FILE.`,
  ]);
});
