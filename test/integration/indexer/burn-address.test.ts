/** The supply of a chain whose genesis lets coins be burned at an address of its own, and a node that is away. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { TcpProxy } from "../../helpers/faults/proxy/tcp-proxy.js";
import { IndexerStage } from "../../helpers/indexer/indexer.js";
import { freePort } from "../../helpers/ports.js";
import { until } from "../../helpers/until.js";

const OWN = parseAddress(`0x${"b0".repeat(20)}`);
const NOWHERE = "http://127.0.0.1:1";

let stage: IndexerStage;
let port = 0;

beforeAll(async () => {
  stage = await IndexerStage.open(({ params, ...genesis }) => ({
    ...genesis,
    params: { ...params, burnAddress: OWN },
  }));
  port = await freePort();
  stage.url = `http://127.0.0.1:${port}`;
  stage.launch(port);
  await stage.mine({ to: OWN, value: 7n });
  await stage.indexed();
});

afterAll(async () => {
  await stage.close();
});

/** What is told of the supply by an indexer that is started anew. */
async function toldAnew(nodeUrl?: string) {
  await stage.stopIndexers();
  stage.launch(port, nodeUrl === undefined ? {} : { nodeUrl });
  const isThere = () => fetch(`${stage.url}/health`).then(Boolean, () => false);
  await until(isThere, { timeoutMs: 30_000, what: "the indexer answers" });
  const { status, body } = await stage.refusal("/supply");
  return { status, burnAddress: body.supply?.burnAddress, code: body.code };
}

const follows = async () => (await stage.get("/status")).status.state === "following";

it("tells what lies there, also where the node is away from the start on", async () => {
  expect((await stage.get("/supply")).supply).toMatchObject({ burnAddress: "7" });
  expect(await toldAnew(NOWHERE)).toMatchObject({ status: 200, burnAddress: "7" });
});

it("tells nothing as long as the address is not known, and learns it for an index that was there before", async () => {
  await stage.stopIndexers();
  await stage.sql.query("DROP TABLE indexer.chain_account");
  expect(await toldAnew(NOWHERE)).toMatchObject({ status: 503, code: "BURN_ADDRESS_UNKNOWN" });
  expect(await toldAnew()).toMatchObject({ status: 200, burnAddress: "7" });
  await until(follows, { timeoutMs: 30_000, what: "the writer has its tables" });
  expect(await toldAnew(NOWHERE)).toMatchObject({ status: 200, burnAddress: "7" });
});

it("keeps what a node tells that comes after the indexer", async () => {
  await stage.stopIndexers();
  await stage.sql.query("DROP TABLE indexer.chain_account");
  const { nodeUrl } = stage.commandOptions();
  const { hostname: host, port: nodePort } = new URL(nodeUrl);
  const proxy = await TcpProxy.start({ host, port: Number(nodePort) });
  await proxy.refuse();
  try {
    expect(await toldAnew(proxy.through(nodeUrl))).toMatchObject({ status: 503 });
    await proxy.listen();
    await until(follows, { timeoutMs: 30_000, what: "the writer goes on" });
    expect(await toldAnew(NOWHERE)).toMatchObject({ status: 200, burnAddress: "7" });
  } finally {
    await stage.stopIndexers();
    await proxy.refuse();
  }
});
