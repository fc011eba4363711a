/** A verification of an index that is written to meanwhile. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { Wallet } from "ethers";
import { Client } from "pg";
import { verifyIndex } from "../../../indexer/maintenance/commands.js";
import { IndexerStage } from "../../helpers/indexer/indexer.js";
import { nodeBehind } from "../../helpers/indexer/node-behind.js";
import { freePort } from "../../helpers/ports.js";
import { until } from "../../helpers/until.js";

const bob = new Wallet(`0x${"22".repeat(32)}`);

let stage: IndexerStage;
let writer: Client;

beforeAll(async () => {
  stage = await IndexerStage.open();
  const port = await freePort();
  stage.url = `http://127.0.0.1:${port}`;
  stage.launch(port);
  await stage.mine({ to: bob.address, value: 5n });
  await stage.indexed();
  await stage.stopIndexers();
  writer = new Client({ connectionString: stage.databaseUrl });
  await writer.connect();
});

afterAll(async () => {
  await writer.end();
  await stage.close();
});

it("waits for the batch that is being written, and neither of the two is ended for it", async () => {
  const { rows } = await stage.sql.query<{ address: Buffer }>(
    "SELECT address FROM indexer.balance ORDER BY ctid",
  );
  const [first, last] = [rows[0]?.address, rows.at(-1)?.address];
  expect(first).not.toEqual(last);
  const change = (address: Buffer | undefined) =>
    writer.query("UPDATE indexer.balance SET amount = amount WHERE address = $1", [address]);
  // A batch: its progress first, then the balances in an order of its own.
  await writer.query("BEGIN");
  await writer.query("SELECT height FROM indexer.progress FOR UPDATE");
  await change(last);
  const verified = verifyIndex(stage.commandOptions());
  verified.catch(() => undefined);
  await until(
    async () => {
      const waiting = await stage.sql.query(
        `SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
           AND application_name = 'causeway-indexer-verify' AND wait_event_type = 'Lock'`,
      );
      return waiting.rows.length === 1;
    },
    { timeoutMs: 30_000, what: "the verification waits" },
  );
  await change(first);
  await writer.query("COMMIT");
  expect(await verified).toMatchObject({ height: stage.height, corrected: 0 });
});

/** As a batch does, but that the state which the node is asked for stays the same. */
const moveOn = () => writer.query("UPDATE indexer.progress SET height = height + 1");

it("asks for less at a time where the index moves on before the answer is there", async () => {
  const asked: number[] = [];
  let mostInTime = 1;
  const slow = await nodeBehind(stage.chain.url, async (request) => {
    const count = request.split("eth_getBalance").length - 1;
    if (count === 0) return;
    asked.push(count);
    if (count > mostInTime) await moveOn();
  });
  try {
    const first = stage.height;
    const report = await verifyIndex(stage.commandOptions(slow.url));
    expect(report.height).toBeGreaterThanOrEqual(first);
    expect(Math.max(...asked)).toBeGreaterThan(1);
    mostInTime = 0;
    await expect(verifyIndex(stage.commandOptions(slow.url))).rejects.toMatchObject({
      code: "INDEX_MOVED",
      message: expect.stringContaining("100 times"),
    });
  } finally {
    await slow.close();
  }
});
