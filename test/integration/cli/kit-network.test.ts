import { afterEach, describe, expect, it } from "@jest/globals";
import fs from "node:fs";
import path from "node:path";
import { PORT_STEP } from "../../../cli/home/ports.js";
import { parseGenesis } from "../../../node/settings/genesis.js";
import { kitOffset, LEAN, readyStatus, type RunningKit, startKit } from "../../helpers/kit.js";
import { nodeReport } from "../../helpers/processes/node-process.js";
import { until } from "../../helpers/until.js";

/** Kits lie 20 apart: 13 beside them the further nodes' ports meet no other kit. */
const OFFSET = kitOffset(0) + 13;
const MOVED_OFFSET = OFFSET + 1;
const TIMEOUT_MS = 600_000;

let kit: RunningKit | undefined;

afterEach(async () => {
  await kit?.stop();
  kit?.remove();
}, TIMEOUT_MS);

async function untilHeight(running: RunningKit, node: number, height: number): Promise<void> {
  const port = running.port("cometRpc") + PORT_STEP * node;
  await until(async () => ((await nodeReport(port))?.height ?? 0) >= height, {
    timeoutMs: 60_000,
    what: `node${node} has height ${height}\n${running.output()}`,
  });
}

function pidOf(running: RunningKit, name: string): number | undefined {
  const file = path.join(running.home, "data", "children.json");
  const children = JSON.parse(fs.readFileSync(file, "utf8")) as { name: string; pid: number }[];
  return children.find((child) => child.name === name)?.pid;
}

describe("npm start -- --validators N", () => {
  it(
    "runs the kit on a network of its own, whose nodes come back after SIGKILL and a new offset",
    async () => {
      kit = await startKit({ portOffset: OFFSET, args: [...LEAN, "--validators", "2"] });
      const { home } = kit;
      const text = fs.readFileSync(path.join(home, "config", "genesis.json"), "utf8");
      expect(parseGenesis(text).validators).toHaveLength(2);
      for (const name of ["node0", "node1"]) {
        const own = path.join(home, "nodes", name, "config", "genesis.json");
        expect(fs.readFileSync(own, "utf8")).toBe(text);
      }
      await untilHeight(kit, 1, 2);
      const status = JSON.parse((await readyStatus(kit)).stdout) as {
        ready: boolean;
        parts: { part: string; ready: boolean }[];
      };
      expect(status.parts.slice(0, 2).map(({ part }) => part)).toEqual(["node0", "node1"]);
      expect(status.ready).toBe(true);

      // Without one of two the chain stands: that it goes on shows that the node is back.
      const formerPid = pidOf(kit, "node1");
      expect(formerPid).toBeDefined();
      if (formerPid !== undefined) process.kill(formerPid, "SIGKILL");
      const before = (await nodeReport(kit.port("cometRpc")))?.height ?? 0;
      await untilHeight(kit, 0, before + 3);
      expect(pidOf(kit, "node1")).not.toBe(formerPid);
      expect(kit.output()).toContain("node1: it was ended by SIGKILL; starting it again");
      expect(await kit.stop()).toBe(0);

      // Another number is refused; without the flag the chain goes on, also on other ports.
      await expect(
        startKit({ home, portOffset: OFFSET, args: [...LEAN, "--validators", "3"] }),
      ).rejects.toThrow(/--validators = "3" \(allowed: 2, as this home's chain was made/);
      kit = await startKit({ home, portOffset: MOVED_OFFSET });
      await untilHeight(kit, 0, before + 4);
      await untilHeight(kit, 1, before + 4);
    },
    TIMEOUT_MS,
  );
});
