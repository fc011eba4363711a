/** `causeway start`, before the node: what is said of folders that are no node's home. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { runStart } from "../../../../cli/commands/start.js";
import { runCommand } from "../../../helpers/processes/command-line.js";

const folder = mkdtempSync(join(tmpdir(), "causeway-start-home-"));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("a folder that `causeway start` is given", () => {
  it("may be the one that `testnet` wrote: the homes in it are named", async () => {
    const net = join(folder, "net");
    for (const name of ["node0", "node1", "full0"]) {
      mkdirSync(join(net, name, "config"), { recursive: true });
      writeFileSync(join(net, name, "config", "genesis.json"), "{}");
    }
    const { code, err } = await runCommand(net, ["start"]);
    const homes = ["full0", "node0", "node1"].map((name) => join(net, name)).join(", ");
    expect([code, err]).toEqual([1, expect.stringContaining(`name one of them: ${homes}.`)]);
  });

  it("is told how a node's home is made where there is none", async () => {
    for (const home of [join(folder, "missing"), folder]) {
      const { code, err } = await runCommand(home, ["start"]);
      expect([code, err]).toEqual([1, expect.stringContaining("make one with `causeway init")]);
    }
  });
});

it("names a variable of its environment that is no setting, before there is a node", async () => {
  const home = join(folder, "kit");
  mkdirSync(join(home, "config"), { recursive: true });
  // A kit's, so that there is a warning without the variable, too.
  for (const name of ["genesis.json", "sidecar.toml"]) {
    writeFileSync(join(home, "config", name), "");
  }
  const env = { CAUSEWAY_CONSENSUS_DOUBLE_SIGN_CHECK_HEIGHT: "10" };
  const { signal } = new AbortController();
  const warn = (line: string) => {
    throw new Error(line);
  };
  const started = { home, portOffset: undefined, evm: undefined, skipUpgrades: [], env };
  await expect(runStart({ ...started, signal, warn })).rejects.toThrow(
    "The variable CAUSEWAY_CONSENSUS_DOUBLE_SIGN_CHECK_HEIGHT is no setting of Causeway",
  );
});
