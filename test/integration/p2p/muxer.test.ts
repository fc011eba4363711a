/** Frames of the multiplexer as no other program of ours sends them: what a peer may make this node keep. */
import { afterEach, describe, expect, it } from "@jest/globals";
import type { Libp2p, MessageStream } from "@libp2p/interface";
import { noise } from "@libp2p/noise";
import { tcp } from "@libp2p/tcp";
import { yamux } from "@libp2p/yamux";
import { multiaddr } from "@multiformats/multiaddr";
import { createLibp2p } from "libp2p";
import { multiaddrTextOf } from "../../../node/p2p/peers/peer-address.js";
import { until } from "../../helpers/until.js";
import { startHost, stopHosts, type TestHost } from "./support.js";

/** Types and flags of yamux's specification. */
const TYPE = { data: 0, ping: 2 } as const;
const SYN = 1;

const PING_BATCH = 2_000;
const MAX_BATCHES = 1_500;
const TIMEOUT_MS = 10_000;

/** The peer's work is not what is tested. */
const WITHOUT_END = { heardMsPerSecond: 1e6, heardBurstMs: 1e9, strangersMsPerSecond: 1e6 };
const PATIENT = { ...WITHOUT_END, strangersBurstMs: 1e9 };

const peers = new Set<Libp2p>();

afterEach(async () => {
  for (const peer of peers) await peer.stop();
  peers.clear();
  await stopHosts();
});

/**
 * A peer that is connected with the victim, and the stream below its multiplexer.
 * @param onStream sees that stream before the multiplexer does
 * @returns the stream, and the reason for which the victim ends the connection
 */
async function rawPeer(victim: TestHost, onStream: (stream: MessageStream) => void = () => {}) {
  const below: MessageStream[] = [];
  const factory = yamux()();
  const peer = await createLibp2p({
    transports: [tcp()],
    connectionEncrypters: [noise()],
    streamMuxers: [
      () => ({
        protocol: factory.protocol,
        createStreamMuxer: (stream) => {
          below.push(stream);
          onStream(stream);
          return factory.createStreamMuxer(stream);
        },
      }),
    ],
    connectionGater: { denyDialMultiaddr: () => false },
  });
  peers.add(peer);
  const connection = await peer.dial(multiaddr(multiaddrTextOf(victim.address)));
  const [stream] = below;
  if (stream === undefined) throw new Error("no multiplexer");
  await until(() => victim.host.peers().length === 1, { timeoutMs: TIMEOUT_MS });
  const goneWith = new Promise<string>((resolve) => victim.host.peers()[0]?.onClose(resolve));
  return { connection, stream, goneWith };
}

function header(type: number, flags: number, streamId: number, length: number): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt8(type, 1);
  bytes.writeUInt16BE(flags, 2);
  bytes.writeUInt32BE(streamId, 4);
  bytes.writeUInt32BE(length, 8);
  return bytes;
}

const isGone = ({ host }: TestHost) => host.peers().length === 0;

describe("a peer that", () => {
  it("announces a frame of four gigabytes is let go before it has sent it", async () => {
    const victim = await startHost();
    const { stream, goneWith } = await rawPeer(victim);
    stream.send(header(TYPE.data, SYN, 9_001, 0xffff_ffff));
    expect(await goneWith).toBe("too long a frame");
  });

  it("does not read the answers that it causes is let go", async () => {
    const victim = await startHost({ loadLimits: PATIENT });
    const { stream, goneWith } = await rawPeer(victim);
    stream.pause();
    const pings = Buffer.concat(
      Array.from({ length: PING_BATCH }, (_, id) => header(TYPE.ping, SYN, 0, id)),
    );
    for (let count = 0; count < MAX_BATCHES && !isGone(victim); count++) {
      await until(() => stream.writeBufferLength === 0 || isGone(victim), {
        timeoutMs: TIMEOUT_MS,
      });
      if (!isGone(victim)) stream.send(pings);
    }
    expect(await goneWith).toBe("does not read");
  });

  it("sends its frames byte by byte is heard", async () => {
    const victim = await startHost();
    await victim.host.handle({
      protocol: "/echo/1",
      maxMessageBytes: 100,
      maxInboundStreams: 1,
      async serve({ signal }, channel) {
        channel.send((await channel.read(signal)) ?? new Uint8Array(0));
        await channel.close(signal);
      },
    });
    const { connection } = await rawPeer(victim, (stream) => {
      const send = stream.send.bind(stream);
      stream.send = (data) => {
        const bytes = data.subarray();
        return [...bytes.keys()].map((at) => send(bytes.subarray(at, at + 1))).every(Boolean);
      };
    });
    const echo = await connection.newStream("/echo/1");
    echo.send(Buffer.from("03616263", "hex"));
    const heard: Uint8Array[] = [];
    for await (const data of echo) heard.push(data.subarray());
    expect(Buffer.concat(heard).toString("hex")).toBe("03616263");
  });
});
