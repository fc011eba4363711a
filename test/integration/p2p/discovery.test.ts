/** Finding peers through a seed, and finding none where that is not wanted. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomBytes } from "node:crypto";
import { pipeline } from "node:stream";
import { nodeKeyOf } from "../../../node/p2p/node-key.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { freePort } from "../../helpers/ports.js";
import { until } from "../../helpers/until.js";
import { FakeChain, hashOf } from "./fakes.js";
import { connected, startNode, stopNode, stopNodes } from "./support.js";

afterEach(stopNodes);

describe("discovery", () => {
  it("connects nodes that know only a seed, which lets both go", async () => {
    const folder = mkdtempSync(join(tmpdir(), "p2p-"));
    const seed = await startNode({ pex: true, seedMode: true, maxOutboundPeers: 0 });
    const seeds = [{ ...seed.address, nodeId: undefined }];
    const first = await startNode({ pex: true, seeds });
    await until(() => first.network.stats().receivedBytes > 0, { timeoutMs: 5_000 });
    const addressBookFile = join(folder, "addrbook.json");
    const second = await startNode({ pex: true, seeds, addressBookFile });
    await until(
      () =>
        first.network.peers().some(({ nodeId }) => nodeId === second.key.nodeId) &&
        second.network.peers().some(({ nodeId }) => nodeId === first.key.nodeId),
      { timeoutMs: 30_000, what: "the two find each other" },
    );
    await until(() => seed.network.peers().length === 0, { timeoutMs: 30_000 });
    await stopNode(second);
    expect(readFileSync(addressBookFile, "utf8")).toContain(first.key.nodeId);
    rmSync(folder, { recursive: true });
  });

  it("joins a network whose nodes look for nobody, by the address of one of them", async () => {
    const first = await startNode();
    const second = await startNode({ persistentPeers: [first.address] });
    const third = await startNode({ persistentPeers: [first.address, second.address] });
    await connected([first, 2], [second, 2], [third, 2]);
    const seeds = [{ ...first.address, nodeId: undefined }];
    const joiner = await startNode({ pex: true, seeds });
    // For a moment the one that it asked may still be there.
    const found = () => new Set(joiner.network.peers().map(({ nodeId }) => nodeId));
    await until(() => [second, third].every(({ key }) => found().has(key.nodeId)), {
      timeoutMs: 20_000,
      what: "the joining node has found the others",
    });
    expect(joiner.network.peers().every(({ isOutbound }) => isOutbound)).toBe(true);
  });

  it("joins a network of one node, and stays with it", async () => {
    const alone = await startNode({ chain: new FakeChain(20) });
    const seeds = [{ ...alone.address, nodeId: undefined }];
    const joiner = await startNode({ pex: true, seeds });
    const { signal } = new AbortController();
    await joiner.network.catchUp({ signal, mayBeFirst: false });
    expect(joiner.chain.height()).toBe(20);
    expect(joiner.network.peers().map(({ nodeId }) => nodeId)).toEqual([alone.key.nodeId]);
  });

  it.each([
    ["does not listen", undefined],
    ["is of another chain", hashOf("another genesis")],
  ])("names a seed that %s, and what to do", async (_, genesisHash) => {
    const written: unknown[] = [];
    const destination = { write: (line: string) => written.push(JSON.parse(line)) };
    const log = createLogger({ component: "p2p", level: "warn", destination });
    const stranger = genesisHash === undefined ? undefined : await startNode({ genesisHash });
    const port = stranger?.address.port ?? (await freePort());
    await startNode({ pex: true, seeds: [{ nodeId: undefined, host: "127.0.0.1", port }], log });
    await until(() => written.length > 0, { timeoutMs: 10_000, what: "a warning" });
    expect(written[0]).toMatchObject({
      seed: `127.0.0.1:${port}`,
      reason: expect.stringMatching(/./),
      msg: expect.stringMatching(/seed gives no addresses.*p2p\.seeds/),
    });
  });

  it("says that seeds are of no use without peer exchange", async () => {
    const written: unknown[] = [];
    const destination = { write: (line: string) => written.push(JSON.parse(line)) };
    const log = createLogger({ component: "p2p", level: "warn", destination });
    const seeds = [{ nodeId: undefined, host: "127.0.0.1", port: await freePort() }];
    await startNode({ seeds, log });
    expect(written).toMatchObject([{ msg: expect.stringMatching(/set p2p\.pex to true/) }]);
  });

  it("dials a node that has no room once, and then not for a while", async () => {
    const full = await startNode({ maxInboundPeers: 0 });
    let dials = 0;
    const door = createServer((socket) => {
      dials++;
      const { host, port } = full.address;
      const behind = connect(port, host);
      for (const end of [socket, behind]) end.on("error", () => undefined);
      pipeline(socket, behind, socket, () => undefined);
    });
    const port = await freePort();
    await new Promise<void>((resolve) => door.listen(port, "127.0.0.1", resolve));
    const folder = mkdtempSync(join(tmpdir(), "p2p-"));
    const addressBookFile = join(folder, "addrbook.json");
    const addr = `${full.key.nodeId}@127.0.0.1:${port}`;
    const addrs = [{ addr, last_success_ms: 0, attempts: 0 }];
    writeFileSync(addressBookFile, JSON.stringify({ addrs }));
    const joiner = await startNode({ pex: true, addressBookFile });
    await until(() => dials > 0, { timeoutMs: 10_000, what: "a dial" });
    // Two looks for peers.
    await new Promise((resolve) => setTimeout(resolve, 4_500));
    expect(dials).toBe(1);
    await stopNode(joiner);
    expect(readFileSync(addressBookFile, "utf8")).toContain('"last_success_ms": 0');
    door.close();
    rmSync(folder, { recursive: true });
  });

  it("has room for an unconditional peer, and tells nobody of a private one", async () => {
    const folder = mkdtempSync(join(tmpdir(), "p2p-"));
    const friend = nodeKeyOf(randomBytes(32));
    const ids = [friend.nodeId];
    const sentry = await startNode({
      pex: true,
      maxInboundPeers: 2,
      unconditionalPeerIds: ids,
      privatePeerIds: ids,
    });
    const persistentPeers = [sentry.address];
    const other = await startNode({ persistentPeers });
    const hidden = await startNode({ key: friend, persistentPeers });
    await connected([sentry, 2]);
    const addressBookFile = join(folder, "addrbook.json");
    const stranger = await startNode({ pex: true, persistentPeers, addressBookFile });
    // With the stranger there are as many as may come in, the unconditional one not counted.
    await connected([sentry, 3]);
    // The stranger asked the sentry: it knows the other one now.
    await until(() => stranger.network.peers().some(({ nodeId }) => nodeId === other.key.nodeId), {
      timeoutMs: 60_000,
      what: "the two find each other",
    });
    expect(hidden.network.peers().map(({ nodeId }) => nodeId)).toEqual([sentry.key.nodeId]);
    await stopNode(stranger);
    const book = readFileSync(addressBookFile, "utf8");
    expect([book.includes(other.key.nodeId), book.includes(friend.nodeId)]).toEqual([true, false]);
    rmSync(folder, { recursive: true });
  });

  it("without peer exchange dials nobody but the persistent peers", async () => {
    const hub = await startNode({ pex: true });
    const hermit = await startNode({ persistentPeers: [hub.address], seeds: [] });
    const other = await startNode({ pex: true, persistentPeers: [hub.address] });
    await connected([hub, 2]);
    // The other one learns of the hermit from the hub and dials it; not the other way round.
    await until(() => hermit.network.peers().length === 2, { timeoutMs: 30_000 });
    const directions = new Map(
      hermit.network.peers().map(({ nodeId, isOutbound }) => [nodeId, isOutbound]),
    );
    expect(directions).toEqual(
      new Map([
        [hub.key.nodeId, true],
        [other.key.nodeId, false],
      ]),
    );
  });
});
