/** Addresses of peers that were heard of, kept over restarts in `addrbook.json`; bounded. */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { BlockList, isIP } from "node:net";
import { z } from "zod";
import { errorCode } from "../../chain/errors.js";
import type { Clock } from "../../runtime/clock.js";
import type { Logger } from "../../runtime/logger.js";
import type { NodeId } from "./node-key.js";
import { formatPeerAddress, type KnownPeerAddress, parseKnownPeerAddress } from "./peer-address.js";

/** What the book needs. */
export interface PeerBookOptions {
  /** Undefined keeps it in memory. */
  readonly file: string | undefined;
  /** Never in the book: this node itself, and nodes that are to be kept private. */
  readonly unlistedIds: ReadonlySet<NodeId>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Uniform in [0, 1). */
  random(): number;
}

interface Entry {
  readonly address: KnownPeerAddress;
  /** When a connection to it last came up, milliseconds since 1970; 0 for never. */
  readonly seenAtMs: number;
  /** Dials that failed since then. */
  readonly failures: number;
  readonly triedAtMs: number;
}

/** More than enough to find a network again; 100 kB on disk. */
const MAX_ENTRIES = 1_000;

/** An address that never answered is dropped after so many dials. */
const MAX_FAILURES = 10;

/** Pause before the same address is tried again; doubles with each failure. */
const RETRY_MS = 10_000;
const MAX_RETRY_MS = 3_600_000;

const bookFile = z.object({
  addrs: z.array(
    z.object({
      addr: z.string().max(400),
      last_success_ms: z.number().int().min(0),
      attempts: z.number().int().min(0),
    }),
  ),
});

/** Known addresses, one for each node id. */
export class PeerBook {
  private readonly entries = new Map<NodeId, Entry>();
  private isChanged = false;

  constructor(private readonly options: PeerBookOptions) {
    this.load();
  }

  /** How many addresses there are. */
  get size(): number {
    return this.entries.size;
  }

  /**
   * Notes an address that somebody told. One that has proved good is not overwritten, and a full
   * book makes room only by dropping one that has not.
   * @param source who told; what a private node tells is private too
   */
  add(address: KnownPeerAddress, source: NodeId): void {
    const { nodeId } = address;
    const { unlistedIds } = this.options;
    if (unlistedIds.has(nodeId) || unlistedIds.has(source)) return;
    const known = this.entries.get(nodeId);
    if (known !== undefined && known.seenAtMs > 0) return;
    if (known === undefined && this.entries.size >= MAX_ENTRIES && !this.makeRoom()) return;
    this.set({ seenAtMs: 0, failures: 0, triedAtMs: 0, ...known, address });
  }

  /** A connection to the address came up. */
  markGood(address: KnownPeerAddress): void {
    const nowMs = this.options.clock.nowMs();
    if (!this.entries.has(address.nodeId) && this.entries.size >= MAX_ENTRIES) this.makeRoom();
    this.set({ address, seenAtMs: nowMs, failures: 0, triedAtMs: nowMs });
  }

  /** Nobody answered at the address, or somebody else. */
  markFailed(nodeId: NodeId): void {
    const entry = this.entries.get(nodeId);
    if (entry === undefined) return;
    const failures = entry.failures + 1;
    if (failures >= MAX_FAILURES && entry.seenAtMs === 0) this.entries.delete(nodeId);
    else this.set({ ...entry, failures, triedAtMs: this.options.clock.nowMs() });
    this.isChanged = true;
  }

  /** An address to dial now; undefined when there is none. */
  pick(isWanted: (nodeId: NodeId) => boolean): KnownPeerAddress | undefined {
    const nowMs = this.options.clock.nowMs();
    const candidates = [...this.entries.values()].filter(({ address, failures, triedAtMs }) => {
      const pauseMs = failures === 0 ? 0 : Math.min(RETRY_MS * 2 ** failures, MAX_RETRY_MS);
      return isWanted(address.nodeId) && nowMs - triedAtMs >= pauseMs;
    });
    return candidates[Math.floor(this.options.random() * candidates.length)]?.address;
  }

  /** Addresses to tell others, at most `count`: those that have proved good come first. */
  sample(count: number): readonly KnownPeerAddress[] {
    const shuffled = [...this.entries.values()]
      .map((entry) => ({ entry, order: this.options.random() - (entry.seenAtMs > 0 ? 1 : 0) }))
      .toSorted((left, right) => left.order - right.order);
    return shuffled.slice(0, count).map(({ entry }) => entry.address);
  }

  /** Writes the book to disk if it has changed; a failure is logged, the book is only a help. */
  save(): void {
    const { file, log } = this.options;
    if (file === undefined || !this.isChanged) return;
    const addrs = [...this.entries.values()].map(({ address, seenAtMs, failures }) => ({
      addr: formatPeerAddress(address),
      last_success_ms: seenAtMs,
      attempts: failures,
    }));
    try {
      writeFileSync(`${file}.new`, `${JSON.stringify({ addrs }, undefined, 2)}\n`, { mode: 0o600 });
      renameSync(`${file}.new`, file);
      this.isChanged = false;
    } catch (error) {
      log.warn({ file, err: error }, "the address book cannot be written");
    }
  }

  private set(entry: Entry): void {
    this.entries.set(entry.address.nodeId, entry);
    this.isChanged = true;
  }

  /** Drops the address that looks worst, if there is one that never answered. */
  private makeRoom(): boolean {
    const unproved = [...this.entries.values()].filter(({ seenAtMs }) => seenAtMs === 0);
    const worst = unproved.reduce<Entry | undefined>((found, entry) => {
      return found === undefined || entry.failures > found.failures ? entry : found;
    }, undefined);
    return worst !== undefined && this.entries.delete(worst.address.nodeId);
  }

  private load(): void {
    const { file, log, unlistedIds } = this.options;
    if (file === undefined) return;
    try {
      const { addrs } = bookFile.parse(JSON.parse(readFileSync(file, "utf8")));
      for (const { addr, last_success_ms: seenAtMs, attempts } of addrs.slice(0, MAX_ENTRIES)) {
        const address = parseKnownPeerAddress(addr);
        if (unlistedIds.has(address.nodeId)) continue;
        this.entries.set(address.nodeId, { address, seenAtMs, failures: attempts, triedAtMs: 0 });
      }
    } catch (error) {
      if (errorCode(error) === "ENOENT") return;
      log.warn({ file, err: error }, "the address book cannot be read; a new one is begun");
    }
  }
}

const privateAddresses = new BlockList();
for (const [network, bits] of [
  ["10.0.0.0", 8],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
  ["0.0.0.0", 8],
] as const) {
  privateAddresses.addSubnet(network, bits, "ipv4");
}
privateAddresses.addAddress("::1", "ipv6");
privateAddresses.addSubnet("fc00::", 7, "ipv6");
privateAddresses.addSubnet("fe80::", 10, "ipv6");

/** Whether an IP address means something only within one network; false for names. */
export function isPrivateIp(ip: string): boolean {
  const version = isIP(ip);
  return version !== 0 && privateAddresses.check(ip, version === 6 ? "ipv6" : "ipv4");
}
