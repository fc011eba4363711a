/** Pages are kept for good only where all that they show was told: what was not is asked for again. */
import { expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { blockRoutes } from "../../../../explorer/pages/block.js";
import type { PageContext } from "../../../../explorer/pages/context.js";
import { depositRoutes } from "../../../../explorer/pages/deposit.js";
import { transactionRoutes } from "../../../../explorer/pages/transaction.js";
import type { PageRoute } from "../../../../explorer/server/page.js";
import { createPageServer } from "../../../../explorer/server/page-server.js";
import { systemClock } from "../../../../runtime/process/clock.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { createMetrics } from "../../../../runtime/process/metrics.js";
import { loadAssets } from "../../../../web/server/assets.js";
import { openPage } from "../../../helpers/pages/explorer-page.js";

const HASH = `0x${"ab".repeat(32)}`;
const PAYER = parseAddress(`0x${"70".repeat(20)}`);
const HEADER = {
  height: 7,
  hash: HASH,
  parentHash: HASH,
  timestampSeconds: 1,
  stateRoot: HASH,
  transactionsRoot: HASH,
  receiptsRoot: HASH,
  proposer: PAYER,
  gasUsed: 1n,
  gasLimit: 9n,
  transactionCount: 0,
};

/** A node with one block that is final, whose one transaction failed. */
function contextOf(told: {
  readonly validators?: () => Promise<unknown>;
  readonly failure?: string;
  readonly journal?: "pruned";
}): PageContext {
  const answer = (value: unknown) => () => Promise.resolve(value);
  const sent = { hash: HASH, from: PAYER, to: PAYER, input: "0x", valueAtoken: 0n, nonce: 0n };
  const transaction = { ...sent, gasLimit: 1n, place: { height: 7, index: 0 } };
  const receipt = { hash: HASH, isSuccess: false, gasUsed: 1n, gasPriceAtoken: 1n, logs: [] };
  const journaled = { hash: HASH, changes: [], gasUsed: 1n, gasPriceAtoken: 1n };
  const journal = {
    transactions: [journaled],
    blockChanges: [],
    mintedAtoken: 0n,
    burnedAtoken: 0n,
  };
  const votes = [{ validator: PAYER, vote: "commit" }];
  const validators = [{ address: PAYER, publicKey: "", power: 1n }];
  return {
    chain: {
      head: answer({ height: 9 }),
      blocks: answer([HEADER]),
      transaction: answer(transaction),
      transactionsAt: answer([]),
      receipts: answer([receipt]),
      journal: answer(told.journal ?? journal),
      failure: answer(told.failure),
      cosmosHash: answer(HASH),
    },
    consensus: {
      commit: answer({ height: 7, round: 0, consensusHash: HASH, votes, isCanonical: true }),
      validators: told.validators ?? answer(validators),
      transaction: answer({ events: [] }),
    },
    contracts: { store: undefined },
    tokens: new Map(),
    publicUrl: "",
  } as unknown as PageContext;
}

async function isFinal(
  routes: readonly PageRoute[],
  parameter: string,
  query = "",
): Promise<boolean> {
  const page = await openPage(routes[0], { parameter, query });
  return page.isFinal === true;
}

it("keeps no block's page for good that lacks its validators", async () => {
  const validators = () => Promise.reject(new Error("the consensus RPC does not answer"));
  expect(await isFinal(blockRoutes(contextOf({})), "7")).toBe(true);
  expect(await isFinal(blockRoutes(contextOf({ validators })), "7")).toBe(false);
});

it("keeps no page for good whose moves the node has not got", async () => {
  const context = contextOf({ failure: "execution reverted", journal: "pruned" });
  const kept = [
    await isFinal(blockRoutes(context), "7"),
    await isFinal(transactionRoutes(context), HASH),
    await isFinal(depositRoutes(context), "", `tx=${HASH}`),
  ];
  expect(kept).toEqual([false, false, false]);
});

it("keeps no failed transaction's page for good that does not say why it failed", async () => {
  for (const failure of ["execution reverted", undefined]) {
    const context = contextOf(failure === undefined ? {} : { failure });
    const kept = [
      await isFinal(transactionRoutes(context), HASH),
      await isFinal(depositRoutes(context), "", `tx=${HASH}`),
    ];
    expect({ failure, kept }).toEqual({
      failure,
      kept: [failure !== undefined, failure !== undefined],
    });
  }
});

it("lets browsers keep for a day what is of one block for ever, and no transaction's place", async () => {
  const routes = ["/block", "/tx", "/proof/tx", "/deposit"].map((path): PageRoute => {
    const page = { title: path, content: undefined, isFinal: true };
    return {
      path,
      hasParameter: path !== "/deposit",
      query: ["tx"],
      handle: () => Promise.resolve(page),
    };
  });
  const server = createPageServer({
    listen: { host: "127.0.0.1", port: 0 },
    network: "testnet",
    routes,
    assets: loadAssets(),
    cacheBytes: 2 ** 20,
    maxStreams: 1,
    pagesPerMinute: 100,
    limitsLoopback: false,
    concurrentPages: 1,
    head: () => undefined,
    readiness: () => Promise.resolve({ ready: true }),
    accounts: () => undefined,
    generation: () => 0,
    clock: systemClock,
    log: createLogger({ component: "test", level: "silent" }),
    metrics: createMetrics({ processMetrics: false }),
    signal: new AbortController().signal,
  });
  await server.start();
  try {
    // On a chain that has lost blocks a transaction of theirs is in another one, or in none.
    for (const [path, caching] of [
      [`/block/${HASH}`, "public, max-age=86400, immutable"],
      ["/block/7", "public, max-age=60"],
      [`/tx/${HASH}`, "public, max-age=60"],
      [`/proof/tx/${HASH}`, "public, max-age=60"],
      [`/deposit?tx=${HASH}`, "public, max-age=60"],
    ] as const) {
      const { status, headers } = await fetch(`http://127.0.0.1:${server.port}${path}`);
      const found = headers.get("cache-control");
      expect({ path, status, caching: found }).toEqual({ path, status: 200, caching });
    }
  } finally {
    await server.stop();
  }
});
