/** The address book, and the loop that keeps a persistent peer connected. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NodeId } from "../../../node/p2p/node-key.js";
import { P2pError } from "../../../node/p2p/p2p-error.js";
import { isPrivateIp, PeerBook } from "../../../node/p2p/peer-book.js";
import { type DialledLink, keepConnected } from "../../../node/p2p/persistent-dialer.js";
import { systemClock } from "../../../runtime/clock.js";
import { createLogger } from "../../../runtime/logger.js";
import { until } from "../../helpers/until.js";
import { TestClock } from "./clock.js";

const log = createLogger({ component: "test", level: "silent" });
const idOf = (index: number) => index.toString(16).padStart(40, "0") as NodeId;
const addressOf = (index: number, port = 26_656) => {
  return { nodeId: idOf(index), host: "10.0.0.1", port };
};

let folder: string;
let clock: TestClock;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "p2p-"));
  clock = new TestClock(1_700_000_000_000);
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const open = (file?: string, privateIds: readonly NodeId[] = []) => {
  const unlistedIds = new Set([idOf(0), ...privateIds]);
  return new PeerBook({ file, unlistedIds, clock, log, random: () => 0 });
};
const SOURCE = idOf(9_999);
const pickAny = (book: PeerBook) => book.pick(() => true);

describe("the address book", () => {
  it("keeps what it knows over a restart, and begins anew when the file is damaged", () => {
    const file = join(folder, "addrbook.json");
    const book = open(file);
    book.add(addressOf(1), SOURCE);
    book.markGood(addressOf(2));
    book.add(addressOf(0), SOURCE);
    book.save();
    const again = open(file);
    expect(again.size).toBe(2);
    expect(again.sample(10)).toEqual([addressOf(2), addressOf(1)]);
    expect(readFileSync(file, "utf8")).toContain(`${idOf(1)}@10.0.0.1:26656`);
    writeFileSync(file, '{"addrs": [{"addr": 5}]}');
    expect(open(file).size).toBe(0);
  });

  it("lets nobody overwrite an address that has proved good", () => {
    const book = open();
    book.markGood(addressOf(1, 1));
    book.add(addressOf(1, 2), SOURCE);
    expect(book.sample(1)).toEqual([addressOf(1, 1)]);
  });

  it("holds no private node, nor what a private node tells, nor one from the file", () => {
    const file = join(folder, "addrbook.json");
    const before = open(file);
    before.markGood(addressOf(7));
    before.markGood(addressOf(8));
    before.save();
    const book = open(file, [idOf(7)]);
    book.add(addressOf(7), SOURCE);
    book.add(addressOf(5), idOf(7));
    book.add(addressOf(6), SOURCE);
    expect(new Set(book.sample(10))).toEqual(new Set([addressOf(8), addressOf(6)]));
  });

  it("is bounded, and a flood of strangers drives out no good address", () => {
    const book = open();
    for (let index = 1; index <= 900; index++) book.markGood(addressOf(index));
    for (let index = 1_001; index <= 5_000; index++) book.add(addressOf(index), SOURCE);
    expect(book.size).toBe(1_000);
    const known = new Set(book.sample(1_000).map(({ nodeId }) => nodeId));
    for (let index = 1; index <= 900; index++) expect(known.has(idOf(index))).toBe(true);
  });

  it("waits longer after each failure, and drops what never answers", () => {
    const book = open();
    book.add(addressOf(1), SOURCE);
    for (let failures = 1; failures < 10; failures++) {
      expect(pickAny(book)).toEqual(addressOf(1));
      book.markFailed(idOf(1));
      expect(pickAny(book)).toBeUndefined();
      clock.timeMs += Math.min(10_000 * 2 ** failures, 3_600_000);
    }
    book.markFailed(idOf(1));
    expect(book.size).toBe(0);
  });

  it("tells private addresses from public ones", () => {
    const isPrivate = ["127.0.0.1", "10.1.2.3", "192.168.0.1", "172.31.0.1", "::1", "fd00::1"];
    const isPublic = ["8.8.8.8", "172.32.0.1", "2001:4860:4860::8888", "example.org"];
    expect(isPrivate.map(isPrivateIp)).toEqual(isPrivate.map(() => true));
    expect(isPublic.map(isPrivateIp)).toEqual(isPublic.map(() => false));
  });
});

class FakeLink implements DialledLink {
  private readonly listeners: (() => void)[] = [];

  onClose(listener: () => void): void {
    this.listeners.push(listener);
  }

  close(): void {
    for (const listener of this.listeners) listener();
  }
}

describe("a persistent peer", () => {
  it("is dialled again and again, and again after each loss, until the node stops", async () => {
    const dials: number[] = [];
    const links: FakeLink[] = [];
    const stopping = new AbortController();
    const run = keepConnected(
      addressOf(1),
      {
        clock: systemClock,
        log,
        random: () => 0,
        linkTo: () => undefined,
        dial: (address) => {
          expect(address).toEqual(addressOf(1));
          dials.push(performance.now());
          if (dials.length % 3 !== 0) {
            return Promise.reject(new P2pError("PEER_UNREACHABLE", "nobody"));
          }
          const link = new FakeLink();
          links.push(link);
          return Promise.resolve(link);
        },
      },
      stopping.signal,
    );
    await until(() => links.length === 1, { timeoutMs: 5_000 });
    expect(dials).toHaveLength(3);
    links[0]?.close();
    await until(() => links.length === 2, { timeoutMs: 10_000 });
    const pauses = dials.slice(1).map((atMs, index) => atMs - (dials[index] ?? 0));
    // Half of 100 and 200 ms, the lower end of the jitter; no pause is forgotten.
    expect(pauses[0]).toBeGreaterThan(45);
    expect(pauses[1]).toBeGreaterThan(95);
    expect(pauses.every((pauseMs) => pauseMs > 45)).toBe(true);
    stopping.abort(new Error("stop"));
    await expect(run).rejects.toThrow("stop");
  });

  it("that has dialled this node is not dialled", async () => {
    const link = new FakeLink();
    const stopping = new AbortController();
    let dials = 0;
    const run = keepConnected(
      addressOf(1),
      {
        clock: systemClock,
        log,
        random: () => 0,
        linkTo: () => link,
        dial: () => {
          dials++;
          return Promise.resolve(link);
        },
      },
      stopping.signal,
    );
    await new Promise((resolve) => setImmediate(resolve));
    stopping.abort(new Error("stop"));
    await expect(run).rejects.toThrow("stop");
    expect(dials).toBe(0);
  });
});
