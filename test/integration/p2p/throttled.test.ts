/** A server that has too much to do: it says so, and nobody holds that against it. */
import { afterEach, describe, expect, it } from "@jest/globals";
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

/** A server whose time for this one peer is all spent, for the next seven tenths of a second. */
async function throttled() {
  const loadLimits = { servedMsPerSecond: 1_000, servedBurstMs: 10_000 };
  const [server, joiner] = [await startHost({ loadLimits }), await startHost()];
  await server.host.handle(blockHandler(new FakeChain(HEIGHT), { laterMs: 10 }));
  const link = await joiner.host.dial(server.address, { signal });
  await until(() => server.host.linkTo(joiner.key.nodeId) !== undefined, { timeoutMs: 10_000 });
  const spend = () => server.host.load.served(joiner.key.nodeId, 60_000);
  spend();
  return { server, joiner, link, spend };
}

describe("a server without time", () => {
  it("says later for as long as the peer waits for its turn, then gives", async () => {
    const { link } = await throttled();
    const came: (DecidedBlock | "later")[] = [];
    const count = await blockSource(link).blocks(
      { from: 1, count: 3 },
      {
        signal,
        onBlock: (received) => came.push(readBlock(received)),
        onLater: () => came.push("later"),
      },
    );
    expect(count).toBe(3);
    expect(came[0]).toBe("later");
    expect(came.filter((one) => one !== "later")).toEqual([1, 2, 3].map((one) => trueBlock(one)));
  });

  it("serves a node that catches up without a point against it, however often it is late", async () => {
    const { joiner, server, link, spend } = await throttled();
    const reports: string[] = [];
    // Time passes with what the server says, however fast this machine is.
    const clock = new TestClock();
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
