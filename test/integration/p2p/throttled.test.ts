/** A server that has too much to do: it says so, and nobody holds that against it. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { encodeVarint } from "../../../chain/protobuf/wire.js";
import type { DecidedBlock } from "../../../node/consensus/consensus-ports.js";
import { blockHandler, blockSource } from "../../../node/p2p/blocks/block-protocol.js";
import { BlockSync } from "../../../node/p2p/blocks/block-sync.js";
import { until } from "../../helpers/until.js";
import { TestClock } from "../../unit/p2p/clock.js";
import { FakeChain, readBlock, trueBlock } from "./fakes.js";
import { startHost, stopHosts, testLog as log } from "./support.js";

afterEach(stopHosts);

const HEIGHT = 40;
const { signal } = new AbortController();

/** A server whose time for this one peer is all spent, until its clock goes on by some tenths of a second. */
async function throttled() {
  const loadLimits = { servedMsPerSecond: 1_000, servedBurstMs: 10_000 };
  const clock = new TestClock();
  const [server, joiner] = [await startHost({ loadLimits, clock }), await startHost()];
  const handler = blockHandler(new FakeChain(HEIGHT), { laterMs: 10 });
  const answers = { waiting: 0, most: 0 };
  await server.host.handle({
    ...handler,
    async serve(link, channel) {
      answers.most = Math.max(answers.most, ++answers.waiting);
      await handler.serve(link, channel).finally(() => answers.waiting--);
    },
  });
  const link = await joiner.host.dial(server.address, { signal });
  await until(() => server.host.linkTo(joiner.key.nodeId) !== undefined, { timeoutMs: 10_000 });
  const spend = () => server.host.load.served(joiner.key.nodeId, 60_000);
  spend();
  return { server, joiner, link, spend, answers, clock };
}

describe("a server without time", () => {
  it("says later for as long as the peer waits for its turn, then gives", async () => {
    const { link, clock } = await throttled();
    const came: (DecidedBlock | "later")[] = [];
    const bytes = { told: 0, ofBlocks: 0 };
    const count = await blockSource(link).blocks(
      { from: 1, count: 3 },
      {
        signal,
        onBlock: (received, sizeBytes) => {
          bytes.ofBlocks += sizeBytes + encodeVarint(sizeBytes).length;
          came.push(readBlock(received));
        },
        onBytes: (sizeBytes) => {
          bytes.told += sizeBytes;
        },
        onLater: () => {
          came.push("later");
          clock.timeMs += 100;
        },
      },
    );
    expect(count).toBe(3);
    expect(came[0]).toBe("later");
    expect(came.filter((one) => one !== "later")).toEqual([1, 2, 3].map((one) => trueBlock(one)));
    // What it says instead of a block is nothing of one.
    expect([bytes.told <= bytes.ofBlocks, bytes.told > 0.9 * bytes.ofBlocks]).toEqual([true, true]);
  });

  it("lets go of what a peer asked for and has given up, however often it does so", async () => {
    const { link, spend, answers } = await throttled();
    for (let count = 0; count < 40; count++) {
      const giving = new AbortController();
      const asked = blockSource(link).blocks(
        { from: 1, count: 1 },
        {
          signal: giving.signal,
          onBlock: () => undefined,
          onLater: () => giving.abort(new Error("given up")),
        },
      );
      await expect(asked).rejects.toThrow("given up");
      spend();
    }
    // As many as it may have open, and those of which the server has not heard yet that they are over.
    expect(answers.most).toBeLessThan(20);
    await until(() => answers.waiting === 0, { timeoutMs: 5_000, what: "nothing is waited for" });
  });

  it("serves a node that catches up without a point against it, however often it is late", async () => {
    // Time passes with what the server says, for both of them, however fast or slow this machine is.
    const { joiner, server, link, spend, clock } = await throttled();
    const reports: string[] = [];
    const chain = new FakeChain(0);
    const source = blockSource(link);
    const peer = {
      nodeId: server.key.nodeId,
      source: {
        ...source,
        blocks: (...[request, options]: Parameters<typeof source.blocks>) => {
          spend();
          const onLater = () => {
            clock.timeMs += 20;
            options.onLater?.();
          };
          return source.blocks(request, { ...options, onLater });
        },
      },
      signal: link.signal,
      isHeldUp: () => link.isHeldUp,
    };
    const sync = new BlockSync({
      target: chain,
      peers: () => [peer],
      report: (nodeId, offence) => {
        reports.push(offence);
        joiner.host.scores.report(nodeId, offence);
      },
      clock,
      log,
      // Much less than what each request waits for its turn.
      limits: { settleMs: 0, stallMs: 50, laterMs: 600_000, strangersMs: 600_000, nearMs: 600_000 },
    });
    const startMs = clock.timeMs;
    await sync.run({ signal, mayBeFirst: false });
    expect([chain.height(), reports]).toEqual([HEIGHT, []]);
    expect(clock.timeMs - startMs).toBeGreaterThan(100);
    expect(joiner.host.scores.isBanned(server.key.nodeId)).toBe(false);
  });
});
