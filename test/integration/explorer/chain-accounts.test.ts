/** An explorer over a node whose chain has a treasury of its own. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { USUAL_ACCOUNTS } from "../../../chain/chain-accounts.js";
import type { Explorer } from "../../../explorer/app.js";
import { testGenesis } from "../../helpers/chains/execution-chain.js";
import { ServedChain } from "../../helpers/chains/served-chain.js";
import { openExplorer } from "../../helpers/pages/explorer.js";
import { until } from "../../helpers/until.js";

const OWN = parseAddress(`0x${"7e".repeat(20)}`);
const home = mkdtempSync(path.join(tmpdir(), "causeway-explorer-"));
const stopping = new AbortController();
let chain: ServedChain;
let explorer: Explorer;

beforeAll(async () => {
  const { params, ...genesis } = testGenesis(`0x${"11".repeat(20)}`);
  chain = await ServedChain.open({ ...genesis, params: { ...params, treasury: OWN } });
  const nowhere = "http://127.0.0.1:1";
  explorer = await openExplorer(home, 0, stopping.signal, {
    CAUSEWAY_EXPLORER_NODE_URL: chain.url,
    CAUSEWAY_EXPLORER_NODE_WS_URL: "ws://127.0.0.1:1",
    CAUSEWAY_EXPLORER_NODE_CONSENSUS_URL: nowhere,
    CAUSEWAY_EXPLORER_NODE_REST_URL: nowhere,
    CAUSEWAY_EXPLORER_INDEXER_URL: nowhere,
  });
});

afterAll(async () => {
  stopping.abort();
  for (const service of explorer.services.toReversed()) await service.stop();
  await chain.close();
  rmSync(home, { recursive: true, force: true });
});

async function pageOf(account: string): Promise<string> {
  const reply = await fetch(`http://127.0.0.1:${explorer.server.port}/address/${account}`);
  return reply.text();
}

it("names that one on its page, and nobody at the usual address", async () => {
  const isNamed = async () => (await pageOf(OWN)).includes("<dd>treasury</dd>");
  await until(isNamed, { timeoutMs: 30_000, what: "the chain's accounts are told" });
  expect(await pageOf(USUAL_ACCOUNTS.treasury)).not.toContain("<dd>treasury</dd>");
  expect(await pageOf(USUAL_ACCOUNTS.feeCollector)).toContain("<dd>fee collector</dd>");
});
