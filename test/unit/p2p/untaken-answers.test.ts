/** What peers that ask for blocks hold of this node's memory is little, whether they read them or not. */
import { describe, expect, it } from "@jest/globals";
import { getEventListeners } from "node:events";
import { ProtoWriter } from "../../../chain/protobuf/wire.js";
import { blockHandler } from "../../../node/p2p/blocks/block-protocol.js";
import type { Channel } from "../../../node/p2p/channel.js";
import type { NodeId } from "../../../node/p2p/node-key.js";
import type { PeerLink } from "../../../node/p2p/peers/peer-link.js";
import { PeerLoad } from "../../../node/p2p/peers/peer-load.js";
import type { SnapshotLibrary } from "../../../node/statesync/snapshot/snapshot-folder.js";
import { snapshotHandler } from "../../../node/statesync/snapshot/snapshot-protocol.js";
import { until } from "../../helpers/until.js";
import { FakeChain, trueBlock } from "../../integration/p2p/fakes.js";
import { TestClock } from "./clock.js";

/** With three of them a peer holds more than it may. */
const BLOCK_BYTES = 1_500_000;
const STREAMS = 8;

/** Time for answers is not what these tests are about. */
const FREE = {
  servedMsPerSecond: 1e9,
  servedBurstMs: 1e9,
  allServedMsPerSecond: 1e9,
  allServedBurstMs: 1e9,
};

class LargeChain extends FakeChain {
  override load(height: number) {
    super.load(height);
    return trueBlock(height, BLOCK_BYTES);
  }
}

function stage() {
  const chain = new LargeChain(30);
  const handler = blockHandler(chain);
  const load = new PeerLoad({
    clock: new TestClock(),
    reservedIds: new Set(),
    onHoldUp: () => undefined,
    onOverload: () => undefined,
    limits: FREE,
  });
  const { signal } = new AbortController();
  const linkOf = (name: string) =>
    ({ nodeId: name as NodeId, load, signal }) as unknown as PeerLink;
  /** Asks for some blocks; `taken` is called with each and says when it is read. */
  const ask = (
    link: PeerLink,
    from: number,
    taken: (bytes: Uint8Array) => Promise<void>,
    count = 2,
  ) => {
    const request = new ProtoWriter().integer(1, from).integer(2, count).finish();
    const channel = {
      readRequest: async () => request,
      write: taken,
      send: () => undefined,
      close: async () => undefined,
      unsentBytes: 0,
      signal,
    };
    return handler.serve(link, channel as unknown as Channel);
  };
  const servedFrom = (from: number) => chain.served.filter((height) => height >= from).length;
  return { chain, linkOf, ask, servedFrom };
}

describe("answers that a peer does not take", () => {
  it("are few, whatever it asks for, and hold up nobody else", async () => {
    const { chain, linkOf, ask, servedFrom } = stage();
    const reads: (() => void)[] = [];
    const liar = linkOf("liar");
    const unread = () => new Promise<void>((resolve) => reads.push(resolve));
    const answers = Array.from({ length: STREAMS }, () => ask(liar, 1, unread));
    await until(() => reads.length >= 3, { timeoutMs: 5_000 });
    let readBytes = 0;
    await ask(linkOf("honest"), 20, async ({ length }) => void (readBytes += length));
    expect(readBytes).toBeGreaterThan(2 * BLOCK_BYTES);
    expect(servedFrom(20)).toBe(2);
    expect(chain.served.length - servedFrom(20)).toBe(3);
    // Whoever reads gets all of it.
    const reading = setInterval(() => reads.splice(0).forEach((read) => read()), 1);
    await Promise.all(answers);
    clearInterval(reading);
    expect(chain.served.length - servedFrom(20)).toBe(2 * STREAMS);
  });

  it("are waited for by a single block in front of ranges: it may be the proof of a height", async () => {
    const { chain, linkOf, ask } = stage();
    const reads: (() => void)[] = [];
    const link = linkOf("behind");
    const read = () => new Promise<void>((resolve) => reads.push(resolve));
    const ranges = Array.from({ length: STREAMS - 1 }, () => ask(link, 1, read));
    await until(() => reads.length >= 3, { timeoutMs: 5_000 });
    const proof = ask(link, 30, read, 1);
    reads.shift()?.();
    await until(() => chain.served.length === 4, { timeoutMs: 5_000 });
    expect(chain.served.at(-1)).toBe(30);
    const reading = setInterval(() => reads.splice(0).forEach((one) => one()), 1);
    await Promise.all([...ranges, proof]);
    clearInterval(reading);
    expect(chain.served.length).toBe(2 * (STREAMS - 1) + 1);
  });

  it("are forgotten when the stream breaks", async () => {
    const { chain, linkOf, ask } = stage();
    const link = linkOf("leaving");
    for (let count = 0; count < 2 * STREAMS; count++) {
      const breaks = () => Promise.reject(new Error("broken"));
      await expect(ask(link, 1, breaks)).rejects.toThrow("broken");
    }
    expect(chain.served).toHaveLength(2 * STREAMS);
  });
});

describe("a block that takes long to make", () => {
  it("is made in slices, one at a time", async () => {
    const { chain, linkOf, ask } = stage();
    const events: string[] = [];
    const busy = () => {
      const endMs = performance.now() + 2;
      while (performance.now() < endMs);
    };
    chain.loadSteps = function* (height) {
      events.push(`${height} begins`);
      for (let step = 0; step < 10; step++) {
        busy();
        yield;
      }
      events.push(`${height} ends`);
      return trueBlock(height);
    };
    let turns = 0;
    const turning = setInterval(() => turns++, 0);
    const read = () => Promise.resolve();
    // The first one is given at once; what it costs is not known before.
    const first = ask(linkOf("one"), 1, read);
    await until(() => events.length > 0, { timeoutMs: 5_000 });
    const turnsBefore = turns;
    await Promise.all([first, ask(linkOf("other"), 20, read)]);
    clearInterval(turning);
    expect(turns - turnsBefore).toBeGreaterThan(2);
    const open = events.map((event) => (event.endsWith("begins") ? 1 : -1));
    let most = 0;
    open.reduce((sum, one) => {
      most = Math.max(most, sum + one);
      return sum + one;
    }, 0);
    expect([events.length, most]).toEqual([8, 1]);
  });
});

describe("what is served", () => {
  it.each(["blocks", "snapshots"])("leaves nothing behind on its connection: %s", async (kind) => {
    const noSnapshots = { list: () => [] } as unknown as SnapshotLibrary;
    const handler =
      kind === "blocks" ? blockHandler(new FakeChain(1)) : snapshotHandler(noSnapshots);
    const request = kind === "blocks" ? [] : new ProtoWriter().integer(1, 1).finish();
    const { signal } = new AbortController();
    const load = { turn: async () => undefined, served: () => undefined };
    const link = { nodeId: "peer", load, signal } as unknown as PeerLink;
    let writtenCount = 0;
    for (let count = 0; count < 1_000; count++) {
      const channel = {
        readRequest: async () => Uint8Array.from(request),
        write: async () => void writtenCount++,
        close: async () => undefined,
        signal: new AbortController().signal,
      };
      await handler.serve(link, channel as unknown as Channel);
    }
    expect(writtenCount).toBe(1_000);
    expect(dependantsOf(signal)).toBeLessThan(50);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

/** Signals that Node keeps to be fired with this one, also those that nobody knows any more. */
function dependantsOf(signal: AbortSignal): number {
  const keys = Object.getOwnPropertySymbols(signal).filter(({ description }) => {
    return description === "kDependantSignals";
  });
  return keys.reduce((sum, key) => sum + (Object(signal)[key]?.size ?? 0), 0);
}
