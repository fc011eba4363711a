/** A node whose store is damaged ends with the reason, when it is read: nothing goes on by it. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { addressToBytes, parseAddress } from "../../../chain/address.js";
import { DEFAULT_PORTS } from "../../../chain/networks.js";
import { createTestnet } from "../../../cli/home/network/testnet.js";
import { storeKey } from "../../../node/store/database.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { endedBy, endOf } from "../../helpers/processes/endings.js";
import { kitOffset } from "../../helpers/kit.js";
import { nodeReport, startNodeProcess } from "../../helpers/processes/node-process.js";
import { putRaw, rawRecords, withFlippedBit } from "../../helpers/raw-level.js";
import { until } from "../../helpers/until.js";

const OFFSET = kitOffset(1) + 9;

function balanceOf(address: string): Promise<unknown> {
  return fetch(`http://127.0.0.1:${DEFAULT_PORTS.jsonRpc + OFFSET}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "eth_getBalance",
      params: [address, "latest"],
    }),
  }).then((response) => response.json());
}

async function untilHeight(height: number): Promise<void> {
  const isThere = async () =>
    ((await nodeReport(DEFAULT_PORTS.cometRpc + OFFSET))?.height ?? 0) >= height;
  await until(isThere, { timeoutMs: 60_000, what: `height ${height}` });
}

it("a node ends when it reads a record with a flipped bit, and says which and what to do", async () => {
  const out = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "causeway-damaged-")), "net");
  const { nodes, faucetKeyFile } = await createTestnet({
    out,
    validators: 1,
    fullNodes: 0,
    portOffset: OFFSET,
    clock: systemClock,
  });
  const home = nodes[0]?.home ?? "";
  const holder = new Wallet(fs.readFileSync(faucetKeyFile, "utf8").trim()).address;
  const first = await startNodeProcess(home);
  await untilHeight(2);
  first.process.kill("SIGTERM");
  expect(await endOf(first)).toEqual(endedBy(0));

  const folder = path.join(home, "data", "chain");
  const key = storeKey("account", addressToBytes(parseAddress(holder)));
  const record = (await rawRecords(folder)).find((one) => one.key.equals(key));
  if (record === undefined) throw new Error("the faucet has no account");
  await putRaw(folder, key, withFlippedBit(record.stored, 12));

  const second = await startNodeProcess(home);
  await untilHeight(3);
  // The answer may be an error, or none at all.
  await balanceOf(holder).catch(() => undefined);
  expect(await second.ended).toBe(1);
  const words = second.output() + second.errors();
  expect(words).toContain("a record of account");
  expect(words).toContain("move this folder away and the node syncs again");
  fs.rmSync(path.dirname(out), { recursive: true });
});
