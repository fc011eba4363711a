/** Connections between real hosts: who may connect to whom, and which connection stays. */
import { afterEach, describe, expect, it } from "@jest/globals";
import type { Libp2p } from "@libp2p/interface";
import { randomBytes } from "node:crypto";
import { errorMessage } from "../../../chain/errors.js";
import type { Channel } from "../../../node/p2p/channel.js";
import { nodeKeyOf } from "../../../node/p2p/node-key.js";
import type { PeerLink } from "../../../node/p2p/peers/peer-link.js";
import { until } from "../../helpers/until.js";
import { startHost, stopHost, stopHosts, type TestHost } from "./support.js";

const { signal } = new AbortController();

afterEach(stopHosts);

/** Dials until it is told more than that this machine was too slow; who is refused is not asked again. */
async function dialInTime(from: TestHost, to: TestHost): Promise<PeerLink> {
  try {
    return await from.host.dial(to.address, { signal });
  } catch (error) {
    if (!/timeout/.test(errorMessage(error))) throw error;
    return dialInTime(from, to);
  }
}

/** libp2p's own book of peers. */
function bookOf({ host }: TestHost): Libp2p["peerStore"] {
  return (host as unknown as { readonly libp2p: Libp2p }).libp2p.peerStore;
}

/** Of whom the gossip router has a score. */
function ratingsIn({ host }: TestHost): readonly string[] {
  const router = host.gossip as unknown as { dumpPeerScoreStats(): object };
  return Object.keys(router.dumpPeerScoreStats());
}

describe("a host", () => {
  it("connects to a node id and shows who is connected", async () => {
    const [a, b] = [await startHost(), await startHost()];
    const link = await a.host.dial(b.address, { signal });
    expect(link.nodeId).toBe(b.key.nodeId);
    expect([link.direction, link.remoteIp]).toEqual(["outbound", "127.0.0.1"]);
    await until(() => b.host.peers().length === 1, { timeoutMs: 5_000 });
    expect(b.host.peers()[0]?.nodeId).toBe(a.key.nodeId);
    expect(b.host.peers()[0]?.direction).toBe("inbound");
  });

  it("refuses whoever answers with another key, and dials a seed without one", async () => {
    const [a, b] = [await startHost(), await startHost()];
    const wrong = { ...b.address, nodeId: nodeKeyOf(randomBytes(32)).nodeId };
    await expect(a.host.dial(wrong, { signal })).rejects.toMatchObject({ code: "WRONG_NODE_ID" });
    expect(a.host.peers()).toEqual([]);
    await until(() => b.host.peers().length === 0, { timeoutMs: 5_000 });
    const link = await a.host.dial({ ...b.address, nodeId: undefined }, { signal });
    expect(link.nodeId).toBe(b.key.nodeId);
  });

  it("names the address that it cannot listen on", async () => {
    const { address } = await startHost();
    const listen = { host: "127.0.0.1", port: address.port };
    await expect(startHost({ listen })).rejects.toMatchObject({
      code: "PORT_TAKEN",
      message: `cannot listen: 127.0.0.1:${address.port} is taken`,
    });
    // An address for documentation: no machine has it.
    await expect(startHost({ listen: { ...listen, host: "192.0.2.1" } })).rejects.toMatchObject({
      code: "LISTEN_FAILED",
      message: `cannot listen on 192.0.2.1:${address.port}`,
    });
  });

  it("says so when nobody answers", async () => {
    const [a, b] = [await startHost(), await startHost()];
    await stopHost(b);
    await expect(a.host.dial(b.address, { signal })).rejects.toMatchObject({
      code: "PEER_UNREACHABLE",
    });
  });

  it("takes many peers from one address at once", async () => {
    const hub = await startHost();
    const others = await Promise.all(Array.from({ length: 12 }, () => startHost()));
    await Promise.all(others.map((one) => dialInTime(one, hub)));
    await until(() => hub.host.peers().length === 12, { timeoutMs: 5_000 });
    const ids = new Set(hub.host.peers().map(({ nodeId }) => nodeId));
    expect(ids).toEqual(new Set(others.map(({ key }) => key.nodeId)));
  });

  it("keeps one connection, the lower id's, when two dial each other", async () => {
    const pair = [await startHost(), await startHost()];
    pair.sort((left, right) => (left.key.nodeId < right.key.nodeId ? -1 : 1));
    const [low, high] = pair;
    if (low === undefined || high === undefined) throw new Error("two hosts");
    await Promise.allSettled([
      low.host.dial(high.address, { signal }),
      high.host.dial(low.address, { signal }),
    ]);
    await until(() => low.host.peers().length === 1 && high.host.peers().length === 1, {
      timeoutMs: 5_000,
    });
    const directions = () => [low, high].map(({ host }) => host.peers()[0]?.direction).join();
    await until(() => directions() === "outbound,inbound", { timeoutMs: 5_000 });
    await expect(high.host.dial(low.address, { signal })).rejects.toMatchObject({
      code: "PEER_REFUSED",
    });
    expect(low.host.peers()).toHaveLength(1);
  });

  it("leaves no more room than it was given, but always for its own", async () => {
    const friend = nodeKeyOf(randomBytes(32));
    const hub = await startHost({ maxInboundPeers: 1, reservedIds: new Set([friend.nodeId]) });
    const [first, second] = [await startHost(), await startHost()];
    const third = await startHost({ key: friend });
    await first.host.dial(hub.address, { signal });
    await until(() => hub.host.peers().length === 1, { timeoutMs: 5_000 });
    await second.host.dial(hub.address, { signal }).catch(() => undefined);
    await third.host.dial(hub.address, { signal });
    await until(() => hub.host.peers().length === 2, { timeoutMs: 5_000 });
    const ids = new Set(hub.host.peers().map(({ nodeId }) => nodeId));
    expect(ids).toEqual(new Set([first.key.nodeId, friend.nodeId]));
    await until(() => second.host.peers().length === 0, { timeoutMs: 5_000 });
  });

  it("hangs up on a banned peer and lets it in no more", async () => {
    const [a, b] = [await startHost(), await startHost()];
    await a.host.dial(b.address, { signal });
    await until(() => b.host.peers().length === 1, { timeoutMs: 5_000 });
    expect(b.host.scores.report(a.key.nodeId, "falseBlock")).toBe(true);
    await until(() => b.host.peers().length === 0 && a.host.peers().length === 0, {
      timeoutMs: 5_000,
    });
    await a.host.dial(b.address, { signal }).catch(() => undefined);
    await until(() => a.host.peers().length === 0, { timeoutMs: 5_000 });
    expect(b.host.peers()).toEqual([]);
    await expect(b.host.dial(a.address, { signal })).rejects.toMatchObject({
      code: "PEER_REFUSED",
    });
  });

  it("keeps nothing of a peer that has left, not even what is written of it later", async () => {
    const [a, b] = [await startHost(), await startHost()];
    const link = await dialInTime(a, b);
    const book = bookOf(b);
    await until(async () => (await book.all()).length === 1, { timeoutMs: 5_000 });
    await until(() => ratingsIn(b).length === 1, { timeoutMs: 5_000 });
    const [peer] = await book.all();
    if (peer === undefined) throw new Error("nobody is known");
    link.close("leaves");
    await until(async () => (await book.all()).length === 0, { timeoutMs: 5_000 });
    // As when it left while its answer to identify was being judged.
    await book.patch(peer.id, { protocols: ["/some/thing"] });
    await until(async () => (await book.all()).length === 0, { timeoutMs: 5_000 });
    await until(() => ratingsIn(b).length === 0, { timeoutMs: 5_000 });
  });

  it.each(["own", "other"])("ends what is served when its %s side hangs up", async (side) => {
    const [server, client] = [await startHost(), await startHost()];
    const served: Channel[] = [];
    await server.host.handle({
      protocol: "/causeway/waiting/1",
      maxMessageBytes: 64,
      maxInboundStreams: 1,
      serve: async (_link, channel) => void served.push(channel),
    });
    const link = await client.host.dial(server.address, { signal });
    await link.open("/causeway/waiting/1", { maxMessageBytes: 64, signal });
    await until(() => served.length === 1, { timeoutMs: 5_000 });
    expect(served[0]?.signal.aborted).toBe(false);
    const own = server.host.peers()[0];
    (side === "own" ? own : link)?.close("enough");
    await until(() => served[0]?.signal.aborted === true, { timeoutMs: 5_000 });
    await until(() => own?.signal.aborted === true, { timeoutMs: 5_000 });
  });

  it("is found again under the same id after a restart on another port", async () => {
    const [a, b] = [await startHost(), await startHost()];
    await a.host.dial(b.address, { signal });
    await stopHost(b);
    await until(() => a.host.peers().length === 0, { timeoutMs: 5_000 });
    const again = await startHost({ key: b.key });
    expect((await a.host.dial(again.address, { signal })).nodeId).toBe(b.key.nodeId);
  });
});
