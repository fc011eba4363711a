/** Snapshots from peers that are slow, wrong or gone. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { hashConsensusHeader } from "../../../chain/consensus/consensus-header.js";
import { sha256 } from "../../../chain/hashes.js";
import { bytesToHash32, ZERO_HASH } from "../../../chain/hex.js";
import { verifySignature } from "../../../chain/consensus/ed25519.js";
import { createGenesisBlock } from "../../../node/blocks/genesis-block.js";
import { type NodeId, nodeKeyOf } from "../../../node/p2p/node-key.js";
import { P2pError } from "../../../node/p2p/p2p-error.js";
import type { Offence } from "../../../node/p2p/peers/peer-scores.js";
import {
  encodeManifest,
  type SnapshotManifest,
  snapshotIdOf,
} from "../../../node/statesync/snapshot/snapshot-manifest.js";
import { ChunkFetch, ChunkFolder } from "../../../node/statesync/state-sync-chunks.js";
import { StateSync } from "../../../node/statesync/state-sync.js";
import { StateSyncFolders } from "../../../node/statesync/state-sync-folders.js";
import { SnapshotOffers, type SnapshotPeer } from "../../../node/statesync/state-sync-offers.js";
import type { SnapshotOffer } from "../../../node/statesync/statesync-ports.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { sleep } from "../../../runtime/process/task.js";
import { LIGHT_CHAIN_ID, lightChain, START_NS } from "../../helpers/chains/light-blocks.js";
import { FakeLightServer } from "../../helpers/chains/light-server.js";
import { until } from "../../helpers/until.js";
import { inVirtualTime } from "../../helpers/virtual-time.js";
import { validatorGenesis } from "../../helpers/chains/validator-node.js";

const log = createLogger({ component: "statesync", level: "silent" });

const CHUNKS = Array.from({ length: 12 }, (_, index) => Buffer.from(`chunk ${index}`));
const MANIFEST: SnapshotManifest = {
  format: 1,
  genesisHash: ZERO_HASH,
  height: 7,
  chunkHashes: CHUNKS.map((chunk) => bytesToHash32(sha256(chunk))),
  counts: { accounts: 0, slots: 0, codes: 0 },
  supply: { totalAtoken: 0n, mintedAtoken: 0n, burnedAtoken: 0n },
};
const OFFER: SnapshotOffer = { height: 7, format: 1, chunks: CHUNKS.length, id: ZERO_HASH };

const ALL = { from: 0, to: CHUNKS.length };

type ChunkAnswer = (index: number, signal: AbortSignal) => Promise<Uint8Array | undefined>;

/** Names of peers by their ids. */
const names = new Map<NodeId, string>();

/** A peer that answers as it is told. */
class FakePeer implements SnapshotPeer {
  readonly nodeId: NodeId;
  readonly controller = new AbortController();
  readonly signal = this.controller.signal;
  readonly asked: number[] = [];
  busy = 0;
  mostBusy = 0;
  readonly source = {
    list: async () => this.offers,
    manifest: async (offer: SnapshotOffer) => this.manifestOf(offer),
    chunk: async (_offer: SnapshotOffer, index: number, signal: AbortSignal) => {
      this.asked.push(index);
      this.busy++;
      this.mostBusy = Math.max(this.mostBusy, this.busy);
      try {
        return await this.answer(index, signal);
      } finally {
        this.busy--;
      }
    },
  };

  constructor(
    readonly name: string,
    private readonly answer: ChunkAnswer,
    public offers: readonly SnapshotOffer[] = [OFFER],
    private readonly manifestOf: (offer: SnapshotOffer) => Uint8Array | undefined = () => undefined,
  ) {
    this.nodeId = nodeKeyOf(sha256(Buffer.from(name))).nodeId;
    names.set(this.nodeId, name);
  }
}

const honest: ChunkAnswer = async (index) => CHUNKS[index];
/** No honest peer is taken for a silent one, however busy this machine is. */
const PATIENCE_MS = 60_000;
/** Answers only to the end of the caller's patience. */
const silent: ChunkAnswer = (_index, signal) =>
  new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

let folder: string;
let reports: [string, Offence][];

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "chunks-"));
  reports = [];
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const report = (nodeId: NodeId, offence: Offence) => {
  reports.push([names.get(nodeId) ?? nodeId, offence]);
};

/** Offers that are what the peers say now. */
function offersOf(peers: readonly FakePeer[]) {
  const forgotten = new Set<SnapshotPeer>();
  return {
    holders: () => peers.filter((peer) => !forgotten.has(peer) && !peer.signal.aborted),
    forget: (peer: SnapshotPeer) => void forgotten.add(peer),
  };
}

async function fetchAll(peers: readonly FakePeer[], clock = systemClock): Promise<void> {
  const chunks = new ChunkFolder(folder, MANIFEST);
  const limits = { timeoutMs: PATIENCE_MS, fetchers: 4, passedOver: new Map() };
  const ports = { offers: offersOf(peers), report, check: () => undefined, ...limits, clock, log };
  await new ChunkFetch(OFFER, chunks, ports).run(ALL, new AbortController().signal);
  for (const [index, chunk] of CHUNKS.entries()) {
    expect([index, Buffer.from((await chunks.read(index)) ?? [])]).toEqual([index, chunk]);
  }
}

describe("chunks", () => {
  it("come from all who have them", async () => {
    const peers = ["a", "b", "c"].map((name) => new FakePeer(name, honest));
    await fetchAll(peers);
    expect(peers.map(({ asked }) => asked.length > 0)).toEqual([true, true, true]);
    expect(peers.flatMap(({ asked }) => asked)).toHaveLength(CHUNKS.length);
    expect(reports).toEqual([]);
  });

  it("that are false ban their sender, and are asked elsewhere", async () => {
    const liar = new FakePeer("liar", async () => Buffer.from("another"));
    await fetchAll([liar, new FakePeer("honest", honest)]);
    expect(liar.asked.length).toBeLessThanOrEqual(4);
    expect(reports.length).toBeGreaterThan(0);
    expect(reports.every(([id, offence]) => id === "liar" && offence === "falseSnapshot")).toBe(
      true,
    );
  });

  it("are not waited for where a peer is slow, gone or without them", () =>
    inVirtualTime(async () => {
      const slow = new FakePeer("slow", silent);
      const gone = new FakePeer("gone", async () => {
        gone.controller.abort(new Error("gone"));
        throw new P2pError("PEER_GONE", "gone");
      });
      const without = new FakePeer("without", async () => undefined);
      const malformed = new FakePeer("malformed", async () => {
        throw new P2pError("PEER_PROTOCOL", "unreadable");
      });
      // To wait until a peer is asked again is to wait for ever: this clock stands still.
      const clock = { nowMs: () => 0, monotonicMs: () => 0 };
      await fetchAll([slow, gone, without, malformed, new FakePeer("honest", honest)], clock);
      expect(new Set(reports.map((one) => one.join(" ")))).toEqual(
        new Set(["slow unanswered", "malformed malformed"]),
      );
      expect(slow.asked.length).toBeLessThanOrEqual(4);
    }));

  it("come, the first one too, from the one of many peers that does not keep silent", () =>
    inVirtualTime(async () => {
      const peers = ["a", "b", "c"].map((name) => new FakePeer(name, silent));
      const asked = [...peers, new FakePeer("honest", honest)];
      const chunks = new ChunkFolder(folder, MANIFEST);
      const limits = { timeoutMs: 10_000, fetchers: 4, passedOver: new Map() };
      const ports = { offers: offersOf(asked), report, check: () => undefined, ...limits };
      const fetching = new ChunkFetch(OFFER, chunks, { ...ports, clock: systemClock, log });
      await fetching.run({ from: 0, to: 1 }, new AbortController().signal);
      expect(asked.map((peer) => peer.asked)).toEqual([[0], [0], [0], [0]]);
    }));

  it("of one peer are asked a few at a time", async () => {
    const peer = new FakePeer("peer", honest);
    const chunks = new ChunkFolder(folder, MANIFEST);
    const check = () => undefined;
    const limits = { timeoutMs: PATIENCE_MS, fetchers: 30, passedOver: new Map() };
    const parts = { offers: offersOf([peer]), report, check, ...limits };
    const fetching = new ChunkFetch(OFFER, chunks, { ...parts, clock: systemClock, log });
    await fetching.run(ALL, new AbortController().signal);
    expect(peer.mostBusy).toBe(4);
  });

  it("that cannot be written are told of with folder and cause", async () => {
    // Of a write that fails the system says nothing but why.
    for (const index of CHUNKS.keys()) {
      symlinkSync("/dev/full", path.join(folder, `chunk-${index}.new`));
    }
    await expect(fetchAll([new FakePeer("peer", honest)])).rejects.toMatchObject({
      code: "CHUNK_WRITE_FAILED",
      message: expect.stringMatching(new RegExp(`${folder}.*ENOSPC`)),
    });
  });

  it("that are on disk are not fetched again, damaged ones are", async () => {
    await fetchAll([new FakePeer("first", honest)]);
    const files = readdirSync(folder).toSorted();
    writeFileSync(path.join(folder, files[3] ?? ""), "damaged");
    rmSync(path.join(folder, files[5] ?? ""));
    const second = new FakePeer("second", honest);
    await fetchAll([second]);
    expect(second.asked).toHaveLength(2);
  });

  it("that nobody has any more end the fetching", async () => {
    let nowMs = 0;
    const clock = { nowMs: () => nowMs, monotonicMs: () => (nowMs += 10_000) };
    const fetching = fetchAll([new FakePeer("without", async () => undefined)], clock);
    await expect(fetching).rejects.toMatchObject({ code: "SNAPSHOT_UNAVAILABLE" });
  });
});

describe("offers", () => {
  const offer = (height: number, id: number, format = 1): SnapshotOffer => ({
    height,
    format,
    chunks: 1,
    id: bytesToHash32(Buffer.alloc(32, id)),
  });

  it("are ordered by height, then by the number of peers that have them", () =>
    inVirtualTime(async () => {
      const peers = [
        new FakePeer("a", honest, [offer(10, 1), offer(20, 2)]),
        new FakePeer("b", honest, [offer(20, 3), offer(30, 9, 2)]),
        new FakePeer("c", honest, [offer(20, 3), offer(40, 4)]),
        new FakePeer("d", silent),
      ];
      peers[3]?.controller.abort();
      const offers = new SnapshotOffers({ peers: () => peers, report, clock: systemClock, log });
      const ending = new AbortController();
      const watching = offers.watch(ending.signal).catch(() => undefined);
      await until(async () => offers.candidates(() => false, 0).length === 5, {
        timeoutMs: 10_000,
      });
      const rejected = new Set([offer(40, 4).id, OFFER.id]);
      const found = offers
        .candidates((id) => rejected.has(id), 0)
        .map(({ height, id }) => [height, id.slice(2, 4)]);
      expect(found).toEqual([
        [20, "03"],
        [20, "02"],
        [10, "01"],
      ]);
      expect(offers.holders(offer(20, 3)).map(({ nodeId }) => names.get(nodeId))).toEqual([
        "b",
        "c",
      ]);
      peers.splice(1, 1);
      await until(async () => offers.holders(offer(20, 3)).length === 1, { timeoutMs: 10_000 });
      ending.abort();
      await watching;
    }));

  it("from far below the trusted height come last, whoever makes them: all headers lead there", () =>
    inVirtualTime(async () => {
      const trustHeight = 100_000;
      // Two that agree come first else, and cost nothing to him who runs both.
      const liars = ["a", "b"].map(
        (name) => new FakePeer(name, honest, [offer(1, 1), offer(2, 2)]),
      );
      const near = [offer(95_000, 5), offer(120_000, 7)];
      const peers = [
        ...liars,
        new FakePeer("c", honest, [...near, offer(89_999, 4)]),
        new FakePeer("d", honest, near.slice(0, 1)),
      ];
      const offers = new SnapshotOffers({ peers: () => peers, report, clock: systemClock, log });
      const ending = new AbortController();
      const watching = offers.watch(ending.signal).catch(() => undefined);
      const found = () => offers.candidates(() => false, trustHeight).map(({ height }) => height);
      await until(async () => found().length === 5, { timeoutMs: 10_000 });
      expect(found()).toEqual([95_000, 120_000, 89_999, 2, 1]);
      ending.abort();
      await watching;
    }));
});

const START_MS = Number(START_NS / 1_000_000n);

const chain = lightChain(9, { validators: 3, change: 0 });

/** State sync of a chain of nine blocks, with peers that offer what they like. */
function syncFrom(
  peers: readonly FakePeer[],
  maxSnapshotBytes: number,
  nowMs: () => number = () => START_MS + 600_000,
  providers = [new FakeLightServer("one", chain), new FakeLightServer("two", chain)],
): StateSync {
  const { genesis } = validatorGenesis(1);
  const trusted = chain.get(2);
  if (trusted === undefined) throw new Error("no chain");
  return new StateSync({
    settings: {
      servers: [],
      trustHeight: 2,
      trustHash: hashConsensusHeader(trusted.header),
      trustPeriodMs: 3_600_000,
      discoveryMs: 600,
      chunkTimeoutMs: 1_000,
      chunkFetchers: 2,
      maxSnapshotBytes,
    },
    folders: new StateSyncFolders(folder),
    providers,
    verifySignature,
    chainId: LIGHT_CHAIN_ID,
    genesisBlock: createGenesisBlock(genesis),
    window: { maxAgeBlocks: 1, maxAgeNs: 1n },
    peers: () => peers,
    report,
    clock: { ...systemClock, nowMs },
    log,
  });
}

describe("a snapshot that is larger than the operator allows", () => {
  it("is not begun with; a smaller one is", () =>
    inVirtualTime(async () => {
      const asked: number[] = [];
      const offer = (height: number, chunks: number): SnapshotOffer => {
        return { height, format: 1, chunks, id: bytesToHash32(Buffer.alloc(32, height)) };
      };
      const boaster = new FakePeer("boaster", honest, [offer(6, 65_536), offer(5, 9)], (one) => {
        asked.push(one.height);
        return undefined;
      });
      const ending = new AbortController();
      const running = syncFrom([boaster], 10 * 1024 ** 2)
        .run(ending.signal)
        .catch(() => undefined);
      try {
        await until(() => asked.length >= 2, { timeoutMs: 20_000 });
      } finally {
        ending.abort(new Error("enough"));
        await running;
      }
      expect(new Set(asked)).toEqual(new Set([5]));
    }));
});

describe("a snapshot that nobody shows", () => {
  it("costs none of the headers before it", () =>
    inVirtualTime(async () => {
      const tried: number[] = [];
      // Two that agree come first, and cost nothing to him who runs both.
      const offered = [5, 6].map((height) => ({ height, format: 1, chunks: 1, id: ZERO_HASH }));
      const liars = ["a", "b"].map((name) => {
        return new FakePeer(name, honest, offered, ({ height }) => {
          tried.push(height);
          return undefined;
        });
      });
      const servers = ["one", "two"].map((name) => new FakeLightServer(name, chain));
      const ending = new AbortController();
      const running = syncFrom(liars, 2 ** 30, undefined, servers)
        .run(ending.signal)
        .catch(() => undefined);
      try {
        await until(() => tried.length >= 4, { timeoutMs: 20_000 });
      } finally {
        ending.abort(new Error("enough"));
        await running;
      }
      expect(new Set(tried)).toEqual(new Set([5, 6]));
      expect(servers.map(({ pages }) => pages)).toEqual([[], []]);
    }));
});

describe("a clock that is behind", () => {
  it("is waited for: put right, the node goes on by itself", () =>
    inVirtualTime(async () => {
      const tried: number[] = [];
      const offered = [{ height: 6, format: 1, chunks: 1, id: ZERO_HASH }];
      const holder = new FakePeer("holder", honest, offered, ({ height }) => {
        tried.push(height);
        return undefined;
      });
      const ending = new AbortController();
      let fault: unknown;
      // Blocks are a minute apart.
      let nowMs = START_MS + 120_000;
      const running = syncFrom([holder], 2 ** 30, () => nowMs)
        .run(ending.signal)
        .catch((error: unknown) => (fault ??= error));
      try {
        await sleep(5_000, { signal: ending.signal });
        expect([tried, fault]).toEqual([[], undefined]);
        nowMs += 480_000;
        await until(() => tried.length > 0, { timeoutMs: 20_000 });
      } finally {
        ending.abort(new Error("enough"));
        await running;
      }
    }));
});

describe("a snapshot that is not valid", () => {
  it("is never tried again, and whoever offers it is reported; older ones come next", () =>
    inVirtualTime(async () => {
      const garbage = (height: number) => Buffer.from(`no manifest of ${height}`);
      const offered = [5, 6].map((height) => ({
        height,
        format: 1,
        chunks: 1,
        id: bytesToHash32(sha256(garbage(height))),
      }));
      const tried: number[] = [];
      const manifestOf = ({ height }: SnapshotOffer) => {
        tried.push(height);
        return garbage(height);
      };
      const peers = ["a", "b"].map((name) => new FakePeer(name, honest, offered, manifestOf));
      const liar = new FakePeer("liar", honest, offered.slice(1), () => Buffer.from("another"));
      const ending = new AbortController();
      const sync = syncFrom([liar, ...peers], 2 ** 30);
      const running = sync.run(ending.signal).catch(() => undefined);
      try {
        await until(async () => tried.includes(5) && reports.length >= 4, { timeoutMs: 20_000 });
      } finally {
        ending.abort(new Error("enough"));
        await running;
      }
      expect(tried).toEqual([6, 5]);
      expect(reports.every(([, offence]) => offence === "falseSnapshot")).toBe(true);
      expect(new Set(reports.map(([id]) => id))).toEqual(new Set(["liar", "a", "b"]));
    }));
});

describe("a snapshot whose chunks nobody gives", () => {
  /** Heights of the first four snapshots that are begun with; the one peer has two of them. */
  const begun = (answer: ChunkAnswer) =>
    inVirtualTime(async () => {
      const manifests = [5, 6].map((height) => encodeManifest({ ...MANIFEST, height }));
      const offered = manifests.map((bytes, index) => {
        return { height: 5 + index, format: 1, chunks: CHUNKS.length, id: snapshotIdOf(bytes) };
      });
      const tried: number[] = [];
      const holder = new FakePeer("holder", answer, offered, ({ height }) => {
        tried.push(height);
        return manifests[height - 5];
      });
      const ending = new AbortController();
      const running = syncFrom([holder], 2 ** 30)
        .run(ending.signal)
        .catch(() => undefined);
      try {
        await until(() => tried.length >= 4, { timeoutMs: 20_000 });
      } finally {
        ending.abort(new Error("enough"));
        await running;
      }
      return tried.slice(0, 4);
    });

  it("is not waited for again before another one of the same peer is tried", async () => {
    // As where a file of each is damaged: the peer says that it does not have the chunk.
    const damaged = async () => undefined;
    expect(await begun(damaged)).toEqual([6, 5, 6, 5]);
    expect(reports).toEqual([]);
  });

  it("is asked of everybody, however many keep silent in turns", () =>
    inVirtualTime(async () => {
      const manifest = encodeManifest({ ...MANIFEST, height: 6 });
      const offered = [{ height: 6, format: 1, chunks: CHUNKS.length, id: snapshotIdOf(manifest) }];
      // More than can be asked before the snapshot is given up for another one.
      const labels = Array.from({ length: 40 }, (_, index) => `silent ${index}`);
      const peers = labels.map((name) => new FakePeer(name, silent, offered, () => manifest));
      const last = new FakePeer("honest", honest, offered, () => manifest);
      const ending = new AbortController();
      const running = syncFrom([...peers, last], 2 ** 30)
        .run(ending.signal)
        .catch(() => undefined);
      try {
        await until(() => last.asked.length > 0, { timeoutMs: 200_000 });
      } finally {
        ending.abort(new Error("enough"));
        await running;
      }
    }));

  it("is given up where those who have it keep silent", async () => {
    expect(await begun(silent)).toEqual([6, 5, 6, 5]);
    expect(new Set(reports.map((one) => one.join(" ")))).toEqual(new Set(["holder unanswered"]));
  });
});
