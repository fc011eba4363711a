/** What is told of the pool costs as little as CometBFT's answers, whatever the pool holds. */
import { describe, expect, it } from "@jest/globals";
import { allAtOnce } from "../../../../chain/steps/steps.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import type { Mempool } from "../../../../node/mempool/mempool.js";
import { bytesOf } from "../../../../node/rpc/comet/chain-reads.js";
import type { CometChain } from "../../../../node/rpc/comet/ports.js";
import { urlArguments } from "../../../../node/rpc/comet/arguments.js";
import { broadcastRoutes } from "../../../../node/rpc/comet/routes/broadcast-routes.js";
import { account, createFixture, drain, evmOnly, submit, transfer } from "../../mempool/support.js";

const SENDERS = [1, 2, 3, 4].map(account);
const OF_EACH = 50;
const log = createLogger({ component: "test", level: "silent" });

/** A pool of executable transactions and a queued one, and how many entries anybody was given of it. */
async function filledPool() {
  const fixture = await createFixture();
  const all = SENDERS.flatMap((sender) =>
    Array.from({ length: OF_EACH }, (_, nonce) => transfer(sender, nonce)),
  );
  await submit(fixture.pool, ...all, transfer(account(5), 7));
  return { ...fixture, all };
}

/** The routes over a pool, which notes what is read of it entry by entry. */
function routesOver(pool: Mempool) {
  let given = 0;
  const counted: Pick<CometChain["pool"], "senders" | "executables" | "carriedBytes" | "counts"> = {
    counts: () => pool.counts(),
    carriedBytes: () => pool.carriedBytes(),
    *senders() {
      for (const item of pool.senders()) {
        given += item[1].pending.length + item[1].queued.length;
        yield item;
      }
    },
    *executables() {
      for (const item of pool.executables()) {
        given += 1;
        yield item;
      }
    },
  };
  const routes = new Map(broadcastRoutes({ pool: counted } as CometChain, log));
  const { signal } = new AbortController();
  const ask = async (name: string, query = ""): Promise<Record<string, unknown>> => {
    const route = routes.get(name);
    if (route === undefined) throw new Error(`no route ${name}`);
    const context = { signal, clientAddress: "", client: undefined };
    const result = await route.run(urlArguments(query, route.parameters), context);
    return JSON.parse(name === "unconfirmed_txs" ? String(result) : JSON.stringify(result));
  };
  return { ask, given: () => given };
}

describe("what is told of the pool", () => {
  it("is counts and bytes that nobody walks through the pool for", async () => {
    const { pool, all } = await filledPool();
    const { ask, given } = routesOver(pool);
    const bytes = evmOnly(drain(pool)).reduce((sum, item) => sum + bytesOf(item).length, 0);
    const total = all.length.toString();
    const asked = await Promise.all(Array.from({ length: 100 }, () => ask("num_unconfirmed_txs")));
    expect(asked[0]).toEqual({ n_txs: total, total, total_bytes: bytes.toString(), txs: null });
    expect(given()).toBe(0);
  });

  it("is no more transactions than are asked for", async () => {
    const { pool, all } = await filledPool();
    const { ask, given } = routesOver(pool);
    const { txs, ...sizes } = await ask("unconfirmed_txs", "limit=2");
    const [sender] = pool.senders();
    expect(txs).toEqual(sender?.[1].pending.slice(0, 2).map(base64Of));
    expect(sizes).toMatchObject({ n_txs: "2", total: all.length.toString() });
    expect(given()).toBeLessThanOrEqual(3);
  });

  it("leaves out what the head's block has, whatever step the pool is at", async () => {
    const fixture = await filledPool();
    const { pool } = fixture;
    const taken = evmOnly(drain(pool)).filter(({ tx }) => tx.nonce < 10n);
    const left = evmOnly(drain(pool)).filter(({ tx }) => tx.nonce >= 10n);
    const { ask } = routesOver(pool);
    const bytes = left.reduce((sum, item) => sum + bytesOf(item).length, 0);
    const total = left.length.toString();
    const steps = fixture.mineInSteps(taken);
    do {
      const told = await ask("num_unconfirmed_txs");
      expect(told).toMatchObject({ total, total_bytes: bytes.toString() });
      const { txs } = await ask("unconfirmed_txs", "limit=1");
      const [sender] = pool.senders();
      expect(txs).toEqual(sender?.[1].pending.slice(0, 1).map(base64Of));
    } while (steps.next().done !== true);
    allAtOnce(steps);
    expect(await ask("num_unconfirmed_txs")).toMatchObject({ total });
  });
});

function base64Of(item: Parameters<typeof bytesOf>[0]): string {
  return Buffer.from(bytesOf(item)).toString("base64");
}
