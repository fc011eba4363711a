/** Peers that do what no honest node does: the answer is bounded and the peer is gone. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "@jest/globals";
import { delimited } from "../../../chain/protobuf/wire.js";
import { blockHandler, blockSource } from "../../../node/p2p/blocks/block-protocol.js";
import { Gossip } from "../../../node/p2p/gossip/gossip.js";
import { onPacket } from "../../../node/p2p/gossip/gossip-service.js";
import type { Host } from "../../../node/p2p/host.js";
import { nodeIdOfPeer } from "../../../node/p2p/peers/connection-gate.js";
import { encodeFrame, type Hello } from "../../../node/p2p/peers/peer-codec.js";
import type { PeerLink } from "../../../node/p2p/peers/peer-link.js";
import type { LoadLimits } from "../../../node/p2p/peers/peer-load.js";
import { PeerSessions, type SessionLimits } from "../../../node/p2p/peers/peer-sessions.js";
import { systemClock as clock } from "../../../runtime/process/clock.js";
import { startWatch } from "../../../runtime/process/thread-time.js";
import { until } from "../../helpers/until.js";
import { FakeChain, freeOfCharge, hashOf } from "./fakes.js";
import { startHost, stopHosts, type TestHost, testLog as log } from "./support.js";

const hello: Hello = {
  network: "test-1",
  genesisHash: hashOf("genesis"),
  moniker: "",
  version: "",
  listenAddress: "",
  rpcAddress: "",
};
const PEER_PROTOCOL = "/causeway/peer/1";
const BLOCK_PROTOCOL = "/causeway/blocks/1";
const LARGE = { maxMessageBytes: 64 * 1024 * 1024 };

/** First byte of a message that two send. */
const MARK = 9;

let stopping = new AbortController();

afterEach(async () => {
  stopping.abort(new Error("test over"));
  stopping = new AbortController();
  await stopHosts();
});

interface Scene {
  readonly victim: TestHost;
  readonly sessions: PeerSessions;
  readonly attacker: TestHost;
  /** The attacker's connection. */
  readonly link: PeerLink;
}

const IMPATIENT = { helloMs: 500, silenceMs: 500 };

/** Whoever goes, goes for what it did: here nobody keeps a conversation up with pings. */
const PATIENT = { helloMs: 600_000, silenceMs: 600_000, gossipMs: 600_000 };

/** A victim, and an attacker that is connected with it. */
async function scene(
  limits: Partial<SessionLimits> = {},
  requestMs = 500,
  loadLimits: Partial<LoadLimits> = {},
): Promise<Scene> {
  const [victim, attacker] = [await startHost({ loadLimits }), await startHost()];
  const sessions = await PeerSessions.start({
    host: victim.host,
    hello,
    clock,
    log,
    limits: { ...PATIENT, ...limits },
  });
  const handler = blockHandler(new FakeChain(9), { requestMs });
  await victim.host.handle(handler);
  sessions.watch(stopping.signal).catch(() => undefined);
  const link = await attacker.host.dial(victim.address, { signal: stopping.signal });
  return { victim, sessions, attacker, link };
}

/** Opens the stream of the conversation as the dialler does. */
const openPeerStream = ({ link }: Scene) =>
  link.open(PEER_PROTOCOL, { ...LARGE, signal: stopping.signal });

/** A scene whose conversation is open; where a busy machine was too slow for that, another one. */
async function openedInTime(limits: Partial<SessionLimits>) {
  for (;;) {
    const all = await scene(limits);
    try {
      return { ...all, channel: await openPeerStream(all) };
    } catch (error) {
      if (!all.link.signal.aborted) throw error;
    }
  }
}

/** Connections of another address that never say anything. */
async function idlers(to: TestHost, count: number): Promise<readonly Socket[]> {
  const { host, port } = to.address;
  const sockets = Array.from({ length: count }, () => {
    return connect({ host, port, localAddress: "127.0.0.2" }).on("error", () => undefined);
  });
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  return sockets;
}

/** What any field of a gossip packet costs its sender at least. */
const LEAST_FIELD_MS = 0.001;

/** A field of protobuf that holds bytes. */
const field = (number: number, content: Uint8Array) =>
  Buffer.concat([Buffer.from([number * 8 + 2]), delimited(content)]);

/** A victim that hears gossip, and a way to say anything to its router. */
async function rawGossip() {
  const [victim, attacker] = [await startHost(), await startHost()];
  const faults: string[] = [];
  let heardMs = 0;
  const load = { ...freeOfCharge, heard: (_id: string, ms: number) => void (heardMs += ms) };
  const report = (_id: string, offence: string) => void faults.push(offence);
  const gossip = new Gossip({
    router: victim.host.gossip,
    clock,
    log,
    isReady: () => true,
    load,
    report,
  });
  gossip.subscribe("a", async () => "drop");
  await attacker.host.dial(victim.address, { signal: stopping.signal });
  const router = attacker.host.gossip as unknown as {
    streamsOutbound: Map<string, { push(packet: Uint8Array): void }>;
  };
  await until(() => router.streamsOutbound.size > 0, { timeoutMs: 5_000 });
  const push = (packet: Uint8Array) => {
    for (const stream of router.streamsOutbound.values()) stream.push(packet);
  };
  return { faults, push, heardMs: () => heardMs };
}

const isGone = (host: Host) => host.peers().length === 0;

/** Whether the victim has counted a fault: one more of the gravest kind is then a ban. */
const hasPoints = ({ victim, attacker }: Scene) =>
  victim.host.scores.report(attacker.key.nodeId, "malformed");

describe("connections that never prove a key", () => {
  it("keep nobody of another address out", async () => {
    const [victim, honest] = [await startHost(), await startHost()];
    const sockets = await idlers(victim, 40);
    const { signal } = stopping;
    expect((await honest.host.dial(victim.address, { signal })).nodeId).toBe(victim.key.nodeId);
    await until(() => victim.host.linkTo(honest.key.nodeId) !== undefined, { timeoutMs: 5_000 });
    // Of one address few are waited for.
    await until(() => sockets.filter(({ closed }) => !closed).length <= 16, { timeoutMs: 5_000 });
    for (const socket of sockets) socket.destroy();
  });

  it("are forgotten once they have proved one, so that the next ones have their places", async () => {
    const [victim, honest] = [await startHost(), await startHost({ listen: undefined })];
    for (let count = 0; count < 18; count++) {
      const { signal } = new AbortController();
      (await honest.host.dial(victim.address, { signal })).close("again");
    }
  });
});

describe("a peer that", () => {
  it("never says hello is let go", async () => {
    const { link } = await scene(IMPATIENT);
    await until(() => link.signal.aborted, { timeoutMs: 5_000 });
  });

  it("opens the conversation and says half a hello is let go", async () => {
    const { channel, ...all } = await openedInTime(IMPATIENT);
    const bytes = encodeFrame({ type: "hello", hello });
    channel.send(bytes.subarray(0, 10));
    await until(() => isGone(all.victim.host), { timeoutMs: 5_000 });
    expect(all.sessions.all()).toEqual([]);
  });

  it("falls silent after its hello is let go", async () => {
    const all = await scene({ silenceMs: IMPATIENT.silenceMs });
    let hellos = 0;
    all.sessions.onReady(() => hellos++);
    const channel = await openPeerStream(all);
    channel.send(encodeFrame({ type: "hello", hello }));
    await until(() => hellos === 1, { timeoutMs: 5_000 });
    await until(() => isGone(all.victim.host), { timeoutMs: 5_000 });
  });

  it("has lost its gossip stream gets a new connection, with new streams", async () => {
    const [one, other] = [await startHost(), await startHost()];
    const limits = { gossipMs: 500 };
    const sessions = await PeerSessions.start({ host: one.host, hello, clock, log, limits });
    await PeerSessions.start({ host: other.host, hello, clock, log });
    const link = await other.host.dial(one.address, { signal: stopping.signal });
    await until(() => sessions.all().length === 1, { timeoutMs: 5_000 });
    await until(() => one.host.peers()[0]?.hasGossip === true, { timeoutMs: 5_000 });
    sessions.watch(stopping.signal).catch(() => undefined);
    let reason = "";
    one.host.peers()[0]?.onClose((why) => (reason = why));
    // The router aborts a stream by itself when a peer does not read.
    const router = one.host.gossip as unknown as {
      streamsOutbound: Map<string, { rawStream: { abort(error: Error): void } }>;
    };
    for (const { rawStream } of router.streamsOutbound.values()) rawStream.abort(new Error("full"));
    await until(() => link.signal.aborted, { timeoutMs: 5_000 });
    expect(reason).toBe("lost its gossip stream");
  });

  it("announces a frame of 20 MB is let go before it has sent it", async () => {
    const all = await scene();
    const channel = await openPeerStream(all);
    channel.send(encodeFrame({ type: "hello", hello }));
    await until(() => all.sessions.all().length === 1, { timeoutMs: 5_000 });
    channel.send(Buffer.alloc(20_000_000));
    await until(() => isGone(all.victim.host), { timeoutMs: 5_000 });
    expect(all.victim.host.traffic().receivedBytes).toBeLessThan(6_000_000);
    expect(hasPoints(all)).toBe(true);
  });

  it("says something unreadable is let go and pays for it", async () => {
    const all = await scene();
    const channel = await openPeerStream(all);
    channel.send(encodeFrame({ type: "hello", hello }));
    await until(() => all.sessions.all().length === 1, { timeoutMs: 5_000 });
    channel.send(Buffer.from("ff00ff00", "hex"));
    await until(() => isGone(all.victim.host), { timeoutMs: 5_000 });
    expect(hasPoints(all)).toBe(true);
  });

  it("sends pings without end is banned", async () => {
    const all = await scene({ framesPerSecond: 10, frameBurst: 200 });
    const channel = await openPeerStream(all);
    channel.send(encodeFrame({ type: "hello", hello }));
    const ping = encodeFrame({ type: "ping" });
    for (let count = 0; count < 2_000; count++) channel.send(ping);
    await until(() => all.victim.host.scores.isBanned(all.attacker.key.nodeId), {
      timeoutMs: 10_000,
    });
    await until(() => isGone(all.victim.host), { timeoutMs: 5_000 });
  });

  it("makes the victim work all the time is held up, then banned; others are heard", async () => {
    // Little enough that this thread has more for it, also on a machine that is busy.
    const small = { heardMsPerSecond: 20, heardBurstMs: 100, heldUpBurstMs: 1_000 };
    const all = await scene({}, 500, small);
    const { victim, sessions, attacker } = all;
    const heard = new Map<string, number>();
    // Each frame takes five milliseconds of this thread, also on a machine that is busy.
    sessions.onFrame((_frame, { nodeId }) => {
      heard.set(nodeId, (heard.get(nodeId) ?? 0) + 1);
      for (const workedMs = startWatch(); workedMs() < 5; );
    });
    const honest = await startHost();
    const guests = await PeerSessions.start({ host: honest.host, hello, clock, log });
    // It pings, as nodes do: on a busy machine the ban may take longer than silence may last.
    guests.watch(stopping.signal).catch(() => undefined);
    const peers = await PeerSessions.start({ host: attacker.host, hello, clock, log });
    all.link.close("dials again, with a conversation");
    await until(() => isGone(victim.host), { timeoutMs: 5_000 });
    await attacker.host.dial(victim.address, { signal: stopping.signal });
    const link = await honest.host.dial(victim.address, { signal: stopping.signal });
    await until(() => sessions.all().length === 2, { timeoutMs: 5_000 });
    await until(() => peers.all().length === 1, { timeoutMs: 5_000 });
    const frame = { type: "consensus" as const, message: Buffer.alloc(50) };
    const startMs = performance.now();
    const attack = setInterval(() => {
      for (const session of peers.all()) if (session.unsentBytes < 100_000) session.send(frame);
    }, 10);
    await until(() => victim.host.scores.isBanned(attacker.key.nodeId), {
      timeoutMs: 30_000,
    }).finally(() => {
      clearInterval(attack);
    });
    const seconds = (performance.now() - startMs) / 1_000;
    expect((heard.get(attacker.key.nodeId) ?? 0) * 5).toBeLessThan(100 + seconds * 20 + 900);
    await until(() => sessions.get(attacker.key.nodeId) === undefined, { timeoutMs: 5_000 });
    expect(link.signal.aborted).toBe(false);
    expect(sessions.all().map(({ nodeId }) => nodeId)).toEqual([honest.key.nodeId]);
  });

  it("sends far more than it may is held up for as long as it takes, not cut off", async () => {
    const small = { heardMsPerSecond: 60, heardBurstMs: 20, heldUpBurstMs: 600_000 };
    const all = await scene({ framesPerSecond: 1_000_000, frameBurst: 1_000_000 }, 500, small);
    let heard = 0;
    all.sessions.onFrame(() => {
      heard++;
      for (const endMs = performance.now() + 2; performance.now() < endMs; );
    });
    const channel = await openPeerStream(all);
    channel.send(encodeFrame({ type: "hello", hello }));
    await until(() => all.sessions.all().length === 1, { timeoutMs: 5_000 });
    // Eight megabytes: more than any buffer on the way holds.
    const frame = encodeFrame({ type: "consensus", message: Buffer.alloc(100_000) });
    for (let count = 0; count < 80; count++) channel.send(frame);
    await until(() => heard === 80, { timeoutMs: 30_000 });
    expect(all.link.signal.aborted).toBe(false);
  });

  it("opens a request and does not say what it wants loses the stream", async () => {
    const { link } = await scene();
    const { signal } = stopping;
    const opened = link.open(BLOCK_PROTOCOL, { ...LARGE, signal });
    const answer = opened.then((channel) => channel.read(signal));
    await expect(answer).rejects.toMatchObject({ code: "PEER_GONE" });
  });

  it("goes on after its request loses the stream, and nothing of it is kept", async () => {
    const { link } = await scene({}, 60_000);
    const channel = await link.open(BLOCK_PROTOCOL, { ...LARGE, signal: stopping.signal });
    channel.send(new Uint8Array(0));
    expect((await channel.read(stopping.signal))?.length).toBeGreaterThan(0);
    for (let count = 0; count < 10; count++) channel.send(Buffer.alloc(10_000));
    await until(() => channel.signal.aborted, { timeoutMs: 5_000 });
    expect(link.signal.aborted).toBe(false);
  });

  it("asks for a million blocks gets none and pays for it", async () => {
    const all = await scene({}, 60_000);
    const source = blockSource(all.link);
    const request = source.blocks(
      { from: 1, count: 1_000_000 },
      { signal: stopping.signal, onBlock: () => undefined },
    );
    await expect(request).rejects.toMatchObject({ code: "PEER_GONE" });
    expect(hasPoints(all)).toBe(true);
  });

  it("keeps eight requests open gets no ninth, and is heard again after", async () => {
    const { link } = await scene({}, 60_000);
    const source = blockSource(link);
    const options = { ...LARGE, signal: stopping.signal };
    const held = [];
    for (let count = 0; count < 8; count++) held.push(await link.open(BLOCK_PROTOCOL, options));
    await expect(source.range(stopping.signal)).rejects.toMatchObject({ code: "PEER_GONE" });
    for (const channel of held) channel.abort(new Error("enough"));
    await until(
      () =>
        source.range(stopping.signal).then(
          (range) => range.height === 9,
          () => false,
        ),
      { timeoutMs: 5_000 },
    );
  });

  it("gossips what is too large is not heard and pays for it", async () => {
    const [victim, attacker] = [await startHost(), await startHost()];
    const heard: number[] = [];
    const faults: string[] = [];
    const options = { clock, log, isReady: () => true, load: freeOfCharge };
    const gossip = new Gossip({
      ...options,
      router: victim.host.gossip,
      report: (_nodeId, offence) => faults.push(offence),
    });
    gossip.subscribe("a", async (bytes) => {
      heard.push(bytes.length);
      return "relay";
    });
    const router = attacker.host.gossip;
    const other = new Gossip({ ...options, router, report: () => undefined });
    await attacker.host.dial(victim.address, { signal: stopping.signal });
    let size = 300_000;
    await until(
      () => {
        other.publish("a", Buffer.alloc(size++));
        return faults.length > 0;
      },
      { timeoutMs: 10_000 },
    );
    expect(faults[0]).toBe("malformed");
    expect(heard).toEqual([]);
  });

  it("says a field of a gossip packet again and again is not read, and pays for it", async () => {
    const { faults, heardMs, push } = await rawGossip();
    const announcements = field(1, Buffer.alloc(10_000, "1200", "hex"));
    const control = field(3, Buffer.concat(Array.from({ length: 4 }, () => announcements)));
    // The last one wins, and each is read: of these twenty thousand ids nothing is left.
    push(Buffer.concat([control, field(3, Buffer.alloc(0))]));
    const isPaid = () => heardMs() > 20_000 * LEAST_FIELD_MS;
    await until(isPaid, { timeoutMs: 10_000, what: "what was read is paid for" });
    expect(faults).toEqual([]);
    push(Buffer.concat([control, control]));
    await until(() => faults.length > 0, { timeoutMs: 10_000 });
    expect(faults).toEqual(["malformed"]);
  });

  it.each(["has said no hello", "is not heard"])(
    "%s keeps nobody from what it is first with",
    async (which) => {
      const isMuted = which === "is not heard";
      const victim = await startHost();
      const speakers = [await startHost(), await startHost()];
      const [attackerId, honestId] = speakers.map(({ key }) => key.nodeId);
      const isNoLiar = (nodeId: string) => nodeId !== attackerId;
      const options = { clock, log, load: freeOfCharge, report: () => undefined };
      const router = victim.host.gossip;
      const gossip = new Gossip({ ...options, router, isReady: isMuted ? () => true : isNoLiar });
      const heard: string[] = [];
      const validate = async (bytes: Uint8Array, from: string) => {
        heard.push(`${from} ${bytes[0] ?? 0}`);
        return isNoLiar(from) ? ("relay" as const) : ("drop" as const);
      };
      gossip.subscribe("a", validate, isMuted ? isNoLiar : undefined);
      /** Sizes of what has come from the attacker, whether it was looked at or not. */
      const arrived = new Set<number>();
      onPacket(router, (from, { packet }) => {
        for (const message of packet.messages) {
          const data = "data" in message && message.data instanceof Uint8Array ? message.data : [];
          if (nodeIdOfPeer(from) === attackerId) arrived.add(data.length);
        }
        return packet;
      });
      for (const { host } of speakers) {
        await host.dial(victim.address, { signal: stopping.signal });
      }
      const say = (one: TestHost | undefined, size: number) => {
        one?.host.gossip.publish("a", Buffer.alloc(size, MARK)).catch(() => undefined);
      };
      const [attacker, honest] = speakers;
      let size = 1_000;
      // The routers learn of each other a moment after the connection.
      const isHeard = () => {
        for (const known of arrived) say(honest, known);
        say(attacker, size++);
        return heard.includes(`${honestId} ${MARK}`);
      };
      await until(isHeard, { timeoutMs: 10_000, what: "the honest one" });
      expect(heard.filter((one) => one.startsWith(`${attackerId}`))).toEqual([]);
    },
  );
});
