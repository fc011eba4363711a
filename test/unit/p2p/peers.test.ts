/** The address book, and the loop that keeps a persistent peer connected. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import {
  lstatSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { NodeId } from "../../../node/p2p/node-key.js";
import { P2pError } from "../../../node/p2p/p2p-error.js";
import { groupOf, isPrivateIp, siteOf } from "../../../node/p2p/peers/address-group.js";
import { AddressStrikes } from "../../../node/p2p/peers/address-strikes.js";
import { placeFor } from "../../../node/p2p/peers/inbound-places.js";
import { PeerBook } from "../../../node/p2p/peers/peer-book.js";
import { listenAddressOf } from "../../../node/p2p/peers/peer-exchange.js";
import type { PeerLink } from "../../../node/p2p/peers/peer-link.js";
import { type DialledLink, keepConnected } from "../../../node/p2p/peers/persistent-dialer.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { until } from "../../helpers/until.js";
import { inVirtualTime } from "../../helpers/virtual-time.js";
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
const SOURCE = { nodeId: idOf(9_999), remoteIp: "10.0.0.9" };
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

  it("does not take the place of a file that cannot be read now", () => {
    const file = join(folder, "addrbook.json");
    const aside = join(folder, "aside");
    const before = open(file);
    before.markGood(addressOf(1));
    before.save();
    renameSync(file, aside);
    // As with too many open files, or on a bad disk.
    symlinkSync(file, file);
    const book = open(file);
    book.markGood(addressOf(2));
    book.save();
    expect(lstatSync(file).isSymbolicLink()).toBe(true);
    renameSync(aside, file);
    expect(open(file).sample(10)).toEqual([addressOf(1)]);
  });

  it("lets nobody overwrite an address that has proved good", () => {
    const book = open();
    book.markGood(addressOf(1, 1));
    book.add(addressOf(1, 2), SOURCE);
    expect(book.sample(1)).toEqual([addressOf(1, 1)]);
  });

  it("follows a node that has moved, once it does not answer where it was", () => {
    const book = open();
    const own = { nodeId: idOf(1), remoteIp: "10.0.0.1" };
    book.markGood(addressOf(1, 1));
    book.add(addressOf(1, 2), own);
    expect(book.sample(1)).toEqual([addressOf(1, 1)]);
    book.markFailed(idOf(1));
    // Nobody else tells where it is, and what it says again is nothing new.
    book.add(addressOf(1, 3), SOURCE);
    book.add(addressOf(1, 1), own);
    expect(book.sample(1)).toEqual([addressOf(1, 1)]);
    expect(pickAny(book)).toBeUndefined();
    book.add(addressOf(1, 2), own);
    expect(pickAny(book)).toEqual(addressOf(1, 2));
  });

  it("lets nobody hide others at an address of his own, unless theirs has failed", () => {
    const book = open();
    const own = { nodeId: idOf(1), remoteIp: "10.0.0.1" };
    book.add(addressOf(1, 1), own);
    book.add(addressOf(1, 2), SOURCE);
    expect(book.sample(1)).toEqual([addressOf(1, 1)]);
    // What it says of itself counts, as when it has moved.
    book.add(addressOf(1, 3), own);
    expect(book.sample(1)).toEqual([addressOf(1, 3)]);
    book.markFailed(idOf(1));
    book.add(addressOf(1, 4), SOURCE);
    expect(book.sample(1)).toEqual([addressOf(1, 4)]);
  });

  it("holds no private node, nor what a private node tells, nor one from the file", () => {
    const file = join(folder, "addrbook.json");
    const before = open(file);
    before.markGood(addressOf(7));
    before.markGood(addressOf(8));
    before.save();
    const book = open(file, [idOf(7)]);
    book.add(addressOf(7), SOURCE);
    book.add(addressOf(5), { nodeId: idOf(7), remoteIp: "10.0.0.7" });
    book.add(addressOf(6), SOURCE);
    expect(new Set(book.sample(10))).toEqual(new Set([addressOf(8), addressOf(6)]));
  });

  it("is bounded, and a flood of strangers drives out no good address", () => {
    const book = open();
    for (let index = 1; index <= 900; index++) book.markGood(addressOf(index));
    for (let index = 1_001; index <= 5_000; index++) {
      const remoteIp = `10.0.0.${index % 200}`;
      book.add(addressOf(index), { nodeId: SOURCE.nodeId, remoteIp });
    }
    expect(book.size).toBe(1_000);
    const known = new Set(book.sample(1_000).map(({ nodeId }) => nodeId));
    for (let index = 1; index <= 900; index++) expect(known.has(idOf(index))).toBe(true);
  });

  it("takes no more than a share from one group of sources, nor of one group of addresses", () => {
    const book = open();
    const told = (index: number, remoteIp: string, host: string) =>
      book.add({ nodeId: idOf(index), host, port: 1 }, { nodeId: SOURCE.nodeId, remoteIp });
    // One provider that tells of addresses everywhere.
    for (let index = 1; index <= 900; index++) {
      told(index, `5.5.${index % 250}.1`, `${20 + (index % 200)}.${index % 250}.1.1`);
    }
    expect(book.size).toBe(64);
    // Sources everywhere that tell of one provider's addresses.
    for (let index = 1_001; index <= 1_900; index++) {
      told(index, `${20 + (index % 200)}.${index % 250}.1.1`, `6.6.${index % 250}.1`);
    }
    expect(book.size).toBe(64 + 32);
    // Nor do those that once answered crowd out all others.
    for (let index = 2_001; index <= 2_900; index++) {
      book.markGood({ nodeId: idOf(index), host: `7.7.${index % 250}.1`, port: 1 });
    }
    expect(book.size).toBe(64 + 32 + 32);
  });

  it("stays bounded when all that it knows has proved good", () => {
    const book = open();
    for (let index = 1; index <= 1_500; index++) book.markGood(addressOf(index));
    expect(book.size).toBe(1_000);
  });

  it("picks a group first, and one that is not connected yet before all others", () => {
    let turn = 0;
    const random = () => (turn = (turn * 16_807 + 11) % 2_147_483_647) / 2_147_483_647;
    const book = new PeerBook({ file: undefined, unlistedIds: new Set(), clock, log, random });
    for (let index = 1; index <= 30; index++) {
      book.add({ nodeId: idOf(index), host: `6.6.1.${index}`, port: 1 }, SOURCE);
    }
    book.add({ nodeId: idOf(50), host: "7.7.1.1", port: 1 }, SOURCE);
    const picks = Array.from({ length: 400 }, () => pickAny(book)?.host);
    const rare = picks.filter((host) => host === "7.7.1.1").length;
    expect(rare).toBeGreaterThan(120);
    expect(book.pick(() => true, new Set(["6.6"]))?.host).toBe("7.7.1.1");
    expect(book.pick((nodeId) => nodeId !== idOf(50), new Set(["6.6"]))?.host).toContain("6.6.1.");
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

  it("dials again what it knows when the clock of the day was put back", () => {
    let dayMs = 1_700_000_000_000;
    const nowMs = () => dayMs;
    const ofDay = { nowMs, monotonicMs: () => clock.monotonicMs() };
    const unlistedIds = new Set<NodeId>();
    const random = () => 0;
    const book = new PeerBook({ file: undefined, unlistedIds, clock: ofDay, log, random });
    book.markGood(addressOf(1));
    dayMs -= 86_400_000;
    expect(pickAny(book)).toEqual(addressOf(1));
  });

  it("tells private addresses from public ones", () => {
    const isPrivate = ["127.0.0.1", "10.1.2.3", "192.168.0.1", "172.31.0.1", "::1", "fd00::1"];
    const isPublic = ["8.8.8.8", "172.32.0.1", "2001:4860:4860::8888", "example.org"];
    expect(isPrivate.map(isPrivateIp)).toEqual(isPrivate.map(() => true));
    expect(isPublic.map(isPrivateIp)).toEqual(isPublic.map(() => false));
  });
});

describe("where a peer takes connections", () => {
  const at = (remoteIp: string, told: string) => {
    const found = listenAddressOf({ nodeId: idOf(1), remoteIp } as unknown as PeerLink, told);
    return found === undefined ? undefined : `${found.host}:${found.port}`;
  };

  it("is where it says, at the address that it comes from where that means nothing here", () => {
    expect(at("8.8.8.8", "tcp://9.9.9.9:1")).toBe("9.9.9.9:1");
    expect(at("8.8.8.8", "tcp://0.0.0.0:2")).toBe("8.8.8.8:2");
    expect(at("8.8.8.8", "tcp://10.0.0.5:3")).toBe("8.8.8.8:3");
    expect(at("8.8.8.8", "node.example.org:4")).toBe("8.8.8.8:4");
    expect(at("8.8.8.8", "")).toBeUndefined();
  });

  it("is nowhere for others where it listens to its own machine alone", () => {
    expect(at("127.0.0.1", "tcp://127.0.0.1:5")).toBe("127.0.0.1:5");
    expect(at("8.8.8.8", "tcp://127.0.0.1:5")).toBeUndefined();
    expect(at("10.0.0.7", "tcp://127.0.0.1:5")).toBeUndefined();
  });
});

describe("addresses", () => {
  it("are grouped by who is likely to have them", () => {
    expect(["1.2.3.4", "1.2.200.1", "1.3.3.4"].map(groupOf)).toEqual(["1.2", "1.2", "1.3"]);
    expect(groupOf("2001:db8:1::1")).toBe(groupOf("2001:0DB8:ffff:2::9"));
    expect(groupOf("2001:db8::1")).not.toBe(groupOf("2001:db9::1"));
    expect(siteOf("2001:db8:0:7::1")).toBe(siteOf("2001:db8:0:7:ffff::2"));
    expect(siteOf("2001:db8:0:7::1")).not.toBe(siteOf("2001:db8:0:8::1"));
    expect(["127.0.0.1", "10.0.0.2", "example.org"].map(groupOf)).toEqual([
      "127.0.0.1",
      "10.0.0.2",
      "example.org",
    ]);
    expect(siteOf("1.2.3.4")).toBe("1.2.3.4");
  });

  it("share the places of a full house; while there is room one may have them all", () => {
    const holder = (remoteIp: string, connectedAtMs: number) => ({ remoteIp, connectedAtMs });
    const crowd = Array.from({ length: 40 }, (_, index) => holder(`6.6.0.${index}`, index));
    expect(placeFor("7.7.0.1", crowd)).toEqual(holder("6.6.0.39", 39));
    expect(placeFor("6.6.9.9", crowd)).toBeUndefined();
    const local = Array.from({ length: 40 }, (_, index) => holder("127.0.0.1", index));
    expect(placeFor("127.0.0.1", local)).toBeUndefined();
    const shared = [holder("1.1.0.1", 1), holder("1.1.0.2", 2), holder("2.2.0.1", 3)];
    expect(placeFor("2.2.0.2", shared)).toBeUndefined();
    expect(placeFor("3.3.0.1", shared)).toEqual(holder("1.1.0.2", 2));
  });

  it("wait after the second ban, longer each time, but not those who were good company", () => {
    const strikes = new AddressStrikes(clock);
    strikes.left(idOf(1), 61_000);
    strikes.left(idOf(2), 5_000);
    const refused = (index: number, ip = "6.6.6.6") => strikes.refuses(idOf(index), ip);
    strikes.strike(idOf(11), "6.6.6.6");
    expect(refused(3)).toBe(false);
    strikes.strike(idOf(12), "6.6.6.6");
    expect([refused(1), refused(2), refused(3)]).toEqual([false, true, true]);
    expect(refused(3, "6.6.6.7")).toBe(false);
    clock.timeMs += 10_001;
    expect(refused(3)).toBe(false);
    for (let count = 0; count < 9; count++) strikes.strike(idOf(20 + count), "6.6.6.6");
    clock.timeMs += 300_000;
    expect(refused(3)).toBe(true);
    clock.timeMs += 301_000;
    expect(refused(3)).toBe(false);
    // Who is banned loses what it had.
    strikes.strike(idOf(1), "6.6.6.6");
    expect(refused(1)).toBe(true);
    clock.timeMs += 12 * 600_000;
    strikes.strike(idOf(30), "6.6.6.6");
    expect(refused(3)).toBe(false);
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
  it("is dialled again and again, and again after each loss, until the node stops", () =>
    inVirtualTime(async () => {
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
      // Half of 100, 200, 400 ms and so on, the lower end of the jitter; no pause is forgotten.
      expect(pauses.slice(0, 2)).toEqual([50, 100]);
      expect(pauses.slice(3)).toEqual([400, 800]);
      stopping.abort(new Error("stop"));
      await expect(run).rejects.toThrow("stop");
    }));

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
