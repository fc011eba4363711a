/** `causeway start`, before the node: what is said of folders that are no node's home. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { runCommand } from "../../../helpers/command-line.js";

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
