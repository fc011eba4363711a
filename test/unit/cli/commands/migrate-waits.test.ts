/** `causeway migrate` where neither node nor database answers, as beside a kit that is stopped. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "@jest/globals";
import { createProgram } from "../../../../cli/program/program.js";
import { freePort } from "../../../helpers/ports.js";

it("says for what it waits, and ends when it is stopped", async () => {
  const home = mkdtempSync(join(tmpdir(), "causeway-migrate-"));
  const database = await freePort();
  const stopping = new AbortController();
  const lines: string[] = [];
  // The node is asked behind what is said.
  const node = createServer(() => stopping.abort(new Error("stopped")));
  await new Promise<void>((resolve) => node.listen(0, "127.0.0.1", resolve));
  const { port } = node.address() as AddressInfo;
  const program = createProgram({
    version: "0",
    env: {
      DATABASE_URL: `postgres://causeway@127.0.0.1:${database}/causeway`,
      CAUSEWAY_WATCHER_NODE_JSON_RPC_URL: `http://127.0.0.1:${port}`,
    },
    signal: stopping.signal,
    print: (line) => lines.push(line),
    warn: () => undefined,
    setExitCode: () => undefined,
  });
  try {
    const words = ["node", "causeway", "migrate", "--home", home];
    await expect(program.parseAsync(words)).rejects.toThrow("stopped");
    expect(lines).toEqual([
      `Waiting: No database answers at 127.0.0.1:${database} (ECONNREFUSED): start the kit, or the ` +
        "server that DATABASE_URL names.",
    ]);
  } finally {
    node.closeAllConnections();
    node.close();
    rmSync(home, { recursive: true, force: true });
  }
}, 30_000);
