/** When seeds are asked: those who are connected may be of no help. */
import { describe, expect, it } from "@jest/globals";
import type { Host } from "../../../node/p2p/host.js";
import type { NodeId } from "../../../node/p2p/node-key.js";
import { P2pError } from "../../../node/p2p/p2p-error.js";
import { Discovery } from "../../../node/p2p/peers/discovery.js";
import { PeerBook } from "../../../node/p2p/peers/peer-book.js";
import type { PeerLink } from "../../../node/p2p/peers/peer-link.js";
import type { PeerSessions } from "../../../node/p2p/peers/peer-sessions.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { inVirtualTime } from "../../helpers/virtual-time.js";

const log = createLogger({ component: "test", level: "silent" });
const idOf = (index: number) => index.toString(16).padStart(40, "0") as NodeId;
const SEED = { nodeId: undefined, host: "192.0.2.1", port: 26_656 };
const KNOWN_SEED = { ...SEED, nodeId: idOf(7) };

/** A peer that tells of nobody. */
function linkOf(nodeId: NodeId, direction: "inbound" | "outbound"): PeerLink {
  return { nodeId, direction, remoteIp: "192.0.2.9", connectedAtMs: 0 } as unknown as PeerLink;
}

/** Seconds at which the seed is dialled, which does not answer, within two minutes. */
async function dialsOf(
  links: readonly PeerLink[],
  options: {
    readonly seed?: typeof SEED | typeof KNOWN_SEED;
    readonly maxOutboundPeers?: number;
  } = {},
): Promise<number[]> {
  const { seed = SEED, maxOutboundPeers = 10 } = options;
  const dials: number[] = [];
  const host = {
    peers: () => links,
    linkTo: (nodeId: NodeId) => links.find((link) => link.nodeId === nodeId),
    dial: () => {
      dials.push(Math.round(performance.now() / 1_000));
      return Promise.reject(new P2pError("PEER_UNREACHABLE", "nobody"));
    },
    handle: () => Promise.resolve(),
    scores: { isBanned: () => false },
  } as unknown as Host;
  const sessions = {
    onReady: () => undefined,
    whenReady: () => Promise.reject(new Error("tells of nobody")),
  } as unknown as PeerSessions;
  const random = () => 0;
  const clock = systemClock;
  const book = new PeerBook({ file: undefined, unlistedIds: new Set(), clock, log, random });
  const none = new Set<NodeId>();
  const discovery = await Discovery.start({
    host,
    sessions,
    book,
    seeds: [seed],
    isSeed: false,
    maxOutboundPeers,
    persistentIds: none,
    reservedIds: none,
    clock,
    log,
    random,
  });
  const stopping = new AbortController();
  const startMs = performance.now();
  setTimeout(() => stopping.abort(new Error("stop")), 119_000);
  await expect(discovery.run(stopping.signal)).rejects.toThrow("stop");
  return dials.map((at) => at - Math.round(startMs / 1_000));
}

describe("seeds", () => {
  it("are asked again beside peers that tell of nobody, less often than by a node alone", () =>
    inVirtualTime(async () => {
      expect(await dialsOf([linkOf(idOf(1), "inbound")])).toEqual([0, 30, 60, 90]);
      expect((await dialsOf([])).length).toBeGreaterThan(10);
    }));

  it("are left alone by a node that looks for nobody more, and while they are connected", () =>
    inVirtualTime(async () => {
      const full = [linkOf(idOf(1), "outbound"), linkOf(idOf(2), "inbound")];
      expect(await dialsOf(full, { maxOutboundPeers: 1 })).toEqual([]);
      expect(await dialsOf([linkOf(idOf(7), "outbound")], { seed: KNOWN_SEED })).toEqual([]);
    }));
});
