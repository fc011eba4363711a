/** Snapshots between real hosts: what is asked for comes, and bounds hold on both sides. */
import fs from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { ProtoWriter } from "../../../../chain/protobuf/wire.js";
import { hexToBytes, ZERO_HASH } from "../../../../chain/hex.js";
import type { ProtocolHandler } from "../../../../node/p2p/host.js";
import type { PeerLink } from "../../../../node/p2p/peers/peer-link.js";
import {
  SnapshotFolder,
  type SnapshotLibrary,
} from "../../../../node/statesync/snapshot/snapshot-folder.js";
import {
  snapshotHandler,
  snapshotSource,
} from "../../../../node/statesync/snapshot/snapshot-protocol.js";
import type { SnapshotOffer } from "../../../../node/statesync/statesync-ports.js";
import {
  quietLog,
  readFiles,
  roomyDisk,
  SnapshotChain,
  type SnapshotFiles,
  temporaryFolder,
} from "../../../helpers/chains/snapshot-chain.js";
import { until } from "../../../helpers/until.js";
import { startHost, stopHosts, type TestHost } from "../../p2p/support.js";

const PROTOCOL = "/causeway/snapshots/1";
const signal = () => AbortSignal.timeout(240_000);

let chain: SnapshotChain;
let folder: string;
let library: SnapshotFolder;
let files: SnapshotFiles;
let offer: SnapshotOffer;

beforeAll(async () => {
  chain = await SnapshotChain.open();
  await chain.take([{ to: `0x${"88".repeat(20)}`, value: 1n }]);
  folder = temporaryFolder("snapshots");
  library = await SnapshotFolder.open({
    folder,
    genesisHash: chain.hash(0),
    headHeight: chain.node.height,
    oldestBlock: 0,
    log: quietLog,
    disk: roomyDisk,
  });
  await chain.addTo(library);
  files = await readFiles(library);
  const [first] = library.list();
  if (first === undefined) throw new Error("no snapshot");
  offer = first;
});

afterEach(stopHosts);

afterAll(async () => {
  await chain.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

/** A host that serves, and another one's link to it. */
async function connect(
  handler: ProtocolHandler,
): Promise<{ link: PeerLink; server: TestHost; client: TestHost }> {
  const [server, client] = [await startHost(), await startHost()];
  await server.host.handle(handler);
  const link = await client.host.dial(server.address, { signal: signal() });
  return { link, server, client };
}

/** Answers whatever is asked with these bytes. */
function liar(answer: Uint8Array): ProtocolHandler {
  return {
    ...snapshotHandler(library),
    async serve(link, channel) {
      await channel.read(link.signal);
      await channel.write(answer, link.signal);
      await channel.close(link.signal);
    },
  };
}

describe("a peer with snapshots", () => {
  it("gives list, manifest and chunks as they are on disk", async () => {
    const source = snapshotSource((await connect(snapshotHandler(library))).link);
    expect(await source.list(signal())).toEqual([offer]);
    const manifest = await source.manifest(offer, signal());
    expect(Buffer.from(manifest ?? [])).toEqual(Buffer.from(files.manifestBytes));
    for (const [index, chunk] of files.chunks.entries()) {
      const bytes = await source.chunk(offer, index, signal());
      expect(Buffer.from(bytes ?? [])).toEqual(Buffer.from(chunk));
    }
  });

  it("says what it does not have", async () => {
    const source = snapshotSource((await connect(snapshotHandler(library))).link);
    expect(await source.manifest({ ...offer, id: ZERO_HASH }, signal())).toBeUndefined();
    expect(await source.chunk(offer, files.chunks.length, signal())).toBeUndefined();
    expect(await source.chunk({ ...offer, height: 77 }, 0, signal())).toBeUndefined();
    const empty: SnapshotLibrary = {
      list: () => [],
      manifest: async () => undefined,
      chunk: async () => undefined,
    };
    const other = snapshotSource((await connect(snapshotHandler(empty))).link);
    expect(await other.list(signal())).toEqual([]);
  });

  it("carries a chunk and a manifest of the largest size", async () => {
    const chunk = Buffer.alloc(4 * 1024 * 1024, 7);
    const manifest = Buffer.alloc(65_536 * 33 + 1_024, 8);
    const handler = snapshotHandler({
      list: () => [offer],
      manifest: async () => manifest,
      chunk: async () => chunk,
    });
    const source = snapshotSource((await connect(handler)).link);
    expect(Buffer.from((await source.chunk(offer, 0, signal())) ?? []).equals(chunk)).toBe(true);
    const bytes = await source.manifest(offer, signal());
    expect(Buffer.from(bytes ?? []).equals(manifest)).toBe(true);
  });

  it("lets go of who asks what nobody can mean", async () => {
    const { link, server, client } = await connect(snapshotHandler(library));
    const requests = [
      new Uint8Array(0),
      Buffer.alloc(65, 1),
      new ProtoWriter().integer(1, 4).finish(),
      new ProtoWriter().integer(1, 2).integer(2, 1).bytes(3, Buffer.alloc(31, 1)).finish(),
      new ProtoWriter().integer(1, 3).bytes(3, hexToBytes(offer.id)).integer(4, -1).finish(),
    ];
    for (const request of requests) {
      const { signal: closed } = link;
      if (closed.aborted) break;
      const channel = await link
        .open(PROTOCOL, { maxMessageBytes: 1_000, signal: signal() })
        .catch(() => undefined);
      channel?.send(request);
      await channel?.read(signal()).catch(() => undefined);
    }
    const isBanned = () => server.host.scores.isBanned(client.key.nodeId);
    await until(isBanned, { timeoutMs: 10_000, what: "the ban" });
  });
});

describe("a peer that lies", () => {
  const offerOf = (fields: { height?: number; chunks?: number; hashBytes?: number }) =>
    new ProtoWriter()
      .integer(1, fields.height ?? 5)
      .integer(2, 1)
      .integer(3, fields.chunks ?? 1)
      .bytes(4, Buffer.alloc(fields.hashBytes ?? 32, 1))
      .finish();
  const listOf = (...offers: readonly Uint8Array[]) => {
    const writer = new ProtoWriter().integer(1, 1);
    for (const one of offers) writer.message(2, one);
    return writer.finish();
  };

  it("with a list that cannot be is found out at once", async () => {
    const lies = [
      Buffer.from("ff", "hex"),
      listOf(...Array.from({ length: 11 }, () => offerOf({}))),
      listOf(offerOf({ height: 0 })),
      listOf(offerOf({ chunks: 0 })),
      listOf(offerOf({ chunks: 1_000_000_000 })),
      listOf(offerOf({ hashBytes: 31 })),
      Buffer.alloc(2_049, 1),
    ];
    for (const lie of lies) {
      const source = snapshotSource((await connect(liar(lie))).link);
      await expect(source.list(signal())).rejects.toMatchObject({ code: "PEER_PROTOCOL" });
      await stopHosts();
    }
  });

  it("with a chunk or a manifest that is too long is found out before it is read", async () => {
    const { link } = await connect(liar(Buffer.alloc(4 * 1024 * 1024 + 1)));
    const source = snapshotSource(link);
    for (const attempt of [source.chunk(offer, 0, signal()), source.manifest(offer, signal())]) {
      await expect(attempt).rejects.toMatchObject({ code: "PEER_PROTOCOL" });
    }
  });

  it("with silence is left at the caller's time", async () => {
    const silent: ProtocolHandler = { ...snapshotHandler(library), serve: async () => undefined };
    const source = snapshotSource((await connect(silent)).link);
    const attempt = source.chunk(offer, 0, AbortSignal.timeout(50));
    await expect(attempt).rejects.toMatchObject({ name: "TimeoutError" });
  });
});
