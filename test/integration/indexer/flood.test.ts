/** A block that holds and logs more than any answer of the node may: the index has all of it. */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { JsonRpcProvider, Wallet } from "ethers";
import { hexToBytes } from "../../../chain/hex.js";
import { IndexerStage } from "../../helpers/indexer/indexer.js";
import { freePort } from "../../helpers/ports.js";

let stage: IndexerStage;
let provider: JsonRpcProvider;

beforeAll(async () => {
  stage = await IndexerStage.open();
  const port = await freePort();
  stage.url = `http://127.0.0.1:${port}`;
  provider = new JsonRpcProvider(stage.chain.url, undefined, { cacheTimeout: -1 });
  stage.launch(port);
});
afterAll(async () => {
  provider?.destroy();
  await stage.close();
});

/** Logs 256 KiB, thirteen times, while it is created: all that its gas can pay. */
const FLOOD = { data: "0x600d5b620400006000a0600190038060025700", gasLimit: 30_000_000n };

const bob = new Wallet(`0x${"22".repeat(32)}`);

it("is indexed whole, and so is what comes behind it", async () => {
  const call = { to: bob.address, data: `0x${"ab".repeat(60_000)}`, gasLimit: 2_000_000n };
  const floods = Array.from({ length: 11 }, () => FLOOD);
  await stage.mine({ to: bob.address, value: 1n }, ...floods, call);
  const { height } = stage;
  const refused = provider.send("eth_getBlockReceipts", [`0x${height.toString(16)}`]);
  // Nobody is told all of it at once: that is what this is about.
  await expect(refused).rejects.toThrow();
  await stage.mine({ to: bob.address, value: 2n });
  await stage.indexed();
  const told: string[] = [];
  const block = await provider.send("eth_getBlockByNumber", [`0x${height.toString(16)}`, false]);
  for (const hash of block.transactions) {
    const { logs } = await provider.send("eth_getTransactionReceipt", [hash]);
    for (const { logIndex, data } of logs) told.push(`${Number(logIndex)} ${md5(data)}`);
  }
  const rows = await stage.sql.query(
    `SELECT log_index || ' ' || md5(data) AS line FROM indexer.log WHERE height = $1 ORDER BY log_index`,
    [height],
  );
  expect(told.length).toBeGreaterThan(100);
  expect(rows.rows.map(({ line }) => line)).toEqual(told);
  const inputs = await stage.sql.query(
    `SELECT md5(input) AS sum FROM indexer.transaction WHERE height = $1 AND recipient = $2
     ORDER BY tx_index DESC LIMIT 1`,
    [height, hexToBytes(bob.address)],
  );
  expect(inputs.rows).toEqual([{ sum: md5(call.data) }]);
});

function md5(hex: string): string {
  return createHash("md5").update(hexToBytes(hex)).digest("hex");
}
