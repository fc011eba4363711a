/** What is let through: dials, connections and messages, with stand-ins for libp2p. */
import { generateKeyPairFromSeed } from "@libp2p/crypto/keys";
import type { GossipSub, TopicValidatorFn } from "@libp2p/gossipsub";
import type { MultiaddrConnection, PeerId } from "@libp2p/interface";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { ConnectionGate, type GateLink } from "../../../node/p2p/peers/connection-gate.js";
import { Gossip, type Verdict } from "../../../node/p2p/gossip/gossip.js";
import { type NodeId, nodeIdOf } from "../../../node/p2p/node-key.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { freeOfCharge } from "../../integration/p2p/fakes.js";
import { inVirtualTime } from "../../helpers/virtual-time.js";
import { TestClock } from "./clock.js";

const log = createLogger({ component: "test", level: "silent" });
let peer: PeerId;
let peerId: NodeId;

beforeAll(async () => {
  const { publicKey } = await generateKeyPairFromSeed("Ed25519", Buffer.alloc(32, 5));
  peer = { type: "Ed25519", publicKey } as PeerId;
  peerId = nodeIdOf(publicKey.raw);
});

const LOW = "0".repeat(40) as NodeId;
const HIGH = "f".repeat(40) as NodeId;
const ADDRESS = "/ip4/127.0.0.1/tcp/1";
const connection = {
  remoteAddr: { toString: () => ADDRESS, getComponents: () => [{ name: "ip4", value: "1.2.3.4" }] },
} as unknown as MultiaddrConnection;

function gate(options: {
  readonly ownId?: NodeId;
  readonly link?: GateLink;
  readonly isBanned?: boolean;
  readonly hasRoom?: boolean;
}): ConnectionGate {
  return new ConnectionGate({
    ownId: options.ownId ?? LOW,
    linkTo: () => options.link,
    isBanned: () => options.isBanned ?? false,
    hasInboundRoom: () => options.hasRoom ?? true,
    onUpgraded: () => undefined,
  });
}

class FakeLink implements GateLink {
  isClosed = false;

  constructor(readonly direction: "inbound" | "outbound") {}

  close(): void {
    this.isClosed = true;
  }
}

describe("the gate", () => {
  it("lets only addresses be dialled that are being dialled on purpose", async () => {
    const one = gate({});
    expect(one.denyDialMultiaddr({ toString: () => ADDRESS })).toBe(true);
    expect(one.denyDialPeer()).toBe(true);
    expect(one.filterMultiaddrForPeer()).toBe(false);
    await one.during(ADDRESS, undefined, async () => {
      expect(one.denyDialMultiaddr({ toString: () => ADDRESS })).toBe(false);
      expect(one.denyDialMultiaddr({ toString: () => "/ip4/127.0.0.1/tcp/2" })).toBe(true);
      await expect(one.during(ADDRESS, undefined, async () => undefined)).rejects.toMatchObject({
        code: "PEER_REFUSED",
      });
    });
    expect(one.denyDialMultiaddr({ toString: () => ADDRESS })).toBe(true);
  });

  it("refuses who answers with another key, and keys of another kind", async () => {
    const one = gate({});
    const answer = (expected: NodeId, who: PeerId) =>
      one.during(ADDRESS, expected, async () => {
        if (one.denyOutboundEncryptedConnection(who, connection)) throw new Error("denied");
        return "up";
      });
    expect(await answer(peerId, peer)).toBe("up");
    await expect(answer(HIGH, peer)).rejects.toMatchObject({ code: "WRONG_NODE_ID" });
    const other = { ...peer, type: "secp256k1" } as PeerId;
    await expect(answer(peerId, other)).rejects.toMatchObject({ code: "WRONG_NODE_ID" });
    expect(gate({}).denyInboundEncryptedConnection(other, connection)).toBe(true);
    expect(gate({}).denyInboundEncryptedConnection(peer, connection)).toBe(false);
  });

  it("keeps out who is banned, and strangers when it is full", () => {
    expect(gate({ isBanned: true }).denyInboundEncryptedConnection(peer, connection)).toBe(true);
    expect(gate({ hasRoom: false }).denyInboundEncryptedConnection(peer, connection)).toBe(true);
  });

  it("of two connections keeps the lower id's, or the newer one", () => {
    const inbound = (ownId: NodeId, direction: "inbound" | "outbound") => {
      const link = new FakeLink(direction);
      const isDenied = gate({ ownId, link }).denyInboundEncryptedConnection(peer, connection);
      return { isDenied, isClosed: link.isClosed };
    };
    expect(inbound(LOW, "outbound")).toEqual({ isDenied: true, isClosed: false });
    expect(inbound(HIGH, "outbound")).toEqual({ isDenied: false, isClosed: true });
    expect(inbound(LOW, "inbound")).toEqual({ isDenied: false, isClosed: true });
  });
});

describe("gossip", () => {
  function stage(isReady: boolean, verdict: Verdict = "relay") {
    const topicValidators = new Map<string, TopicValidatorFn>();
    const router = {
      topicValidators,
      subscribe: () => undefined,
      decodeRpc: () => ({ messages: [], subscriptions: [] }),
      handleReceivedRpc: () => Promise.resolve(),
      addEventListener: () => undefined,
    } as unknown as GossipSub;
    const reports: string[] = [];
    const gossip = new Gossip({
      router,
      clock: new TestClock(),
      log,
      isReady: () => isReady,
      report: (_nodeId, offence) => reports.push(offence),
      load: freeOfCharge,
    });
    let looked = 0;
    gossip.subscribe("topic", async () => {
      looked++;
      return verdict;
    });
    const hear = (sizeBytes: number) =>
      topicValidators.get("topic")?.(peer, {
        type: "unsigned",
        topic: "topic",
        data: Buffer.alloc(sizeBytes),
      });
    return { hear, reports, looked: () => looked };
  }

  it("hears nobody who has not said hello", async () => {
    const { hear, looked } = stage(false);
    expect(await hear(10)).toBe("ignore");
    expect(looked()).toBe(0);
  });

  it("relays what is small at once, and what is large after others could announce it", () =>
    inVirtualTime(async () => {
      const { hear } = stage(true);
      const startMs = performance.now();
      expect(await hear(511)).toBe("accept");
      expect(performance.now() - startMs).toBe(0);
      expect(await hear(512)).toBe("accept");
      expect(performance.now() - startMs).toBe(100);
    }));

  it("does not relay what is useless or invalid, and reports only the latter", async () => {
    const useless = stage(true, "drop");
    expect(await useless.hear(10)).toBe("ignore");
    const invalid = stage(true, "invalid");
    expect(await invalid.hear(10)).toBe("reject");
    expect([useless.reports, invalid.reports]).toEqual([[], ["invalidMessage"]]);
  });

  it("bans who sends messages without end", async () => {
    const { hear, reports } = stage(true, "drop");
    for (let count = 0; count < 21_000 && reports.length === 0; count++) await hear(1);
    expect(reports[0]).toBe("flood");
  });
});
