/**
 * Addresses of peers that were heard of, kept over restarts in `addrbook.json`. Bounded, and
 * bounded for who told them and for where they are: nobody fills the book with his own.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { errorCode } from "../../../chain/errors.js";
import type { Clock } from "../../../runtime/process/clock.js";
import type { Logger } from "../../../runtime/process/logger.js";
import type { NodeId } from "../node-key.js";
import { groupOf, isPrivateIp } from "./address-group.js";
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
  /** Group of networks that the address belongs to. */
  readonly group: string;
  /** When a connection to it last came up, milliseconds since 1970; 0 for never. */
  readonly seenAtMs: number;
  /** Dials that failed since then. */
  readonly failures: number;
  /**
   * When it was dialled last, by the clock that nobody sets: pauses would be days where that of the day is
   * put right by days.
   */
  readonly triedAtMs: number;
  /** Group of the address of who told it; "" for what this node found itself. */
  readonly sourceGroup: string;
}

/** Who told of an address. */
export interface AddressSource {
  readonly nodeId: NodeId;
  /** IP address of its end of the connection. */
  readonly remoteIp: string;
}

/** More than enough to find a network again; 100 kB on disk. */
const MAX_ENTRIES = 1_000;

/** Addresses without proof that one group of sources may have in the book. */
const MAX_PER_SOURCE = 64;

/** Addresses of one group of public addresses, of those without proof and of those with it. */
const MAX_PER_GROUP = 32;

/** How often an address that has proved good is preferred to a new one. */
const PROVED_SHARE = 0.5;

/** An address that never answered is dropped after so many dials. */
const MAX_FAILURES = 10;

/** Pause before the same address is tried again; doubles with each failure. */
const RETRY_MS = 10_000;
const MAX_RETRY_MS = 3_600_000;

/** Not dialled since the start. */
const NEVER_MS = Number.NEGATIVE_INFINITY;

const bookFile = z.object({
  addrs: z.array(
    z.object({
      addr: z.string().max(400),
      last_success_ms: z.number().int().min(0),
      attempts: z.number().int().min(0),
      source_group: z.string().max(253).default(""),
    }),
  ),
});

/** Known addresses, one for each node id. */
export class PeerBook {
  private readonly entries = new Map<NodeId, Entry>();
  private isChanged = false;
  /** False where the file could not be read: what it holds is more than what was learned since. */
  private mayWrite = true;

  constructor(private readonly options: PeerBookOptions) {
    this.load();
  }

  /** How many addresses there are. */
  get size(): number {
    return this.entries.size;
  }

  /**
   * Notes an address that somebody told. One that has proved good is not overwritten, and a full
   * book makes room only by dropping one that has not. Of a node that is in the book others are only
   * believed where its address has failed: else who tells of all nodes at his own address would hide
   * them. The node itself, whose key is proved, may name another one; in the place of one that has
   * proved good, too, where that fails since: the node has moved.
   * @param source who told; what a private node tells is private too
   */
  add(address: KnownPeerAddress, source: AddressSource): void {
    const { nodeId } = address;
    const { unlistedIds } = this.options;
    if (unlistedIds.has(nodeId) || unlistedIds.has(source.nodeId)) return;
    const known = this.entries.get(nodeId);
    const isOwnWord = source.nodeId === nodeId;
    if (known !== undefined && !mayMove(known, address, isOwnWord)) return;
    const sourceGroup = groupOf(source.remoteIp);
    const group = groupOf(address.host);
    const unproved = { seenAtMs: 0, failures: 0, triedAtMs: NEVER_MS, sourceGroup };
    const tried = known !== undefined && known.seenAtMs > 0 ? undefined : known;
    const entry = { ...unproved, ...tried, address, group };
    if (known === undefined && !this.makeRoomFor(entry)) return;
    this.set(entry);
  }

  /** A connection to the address came up. */
  markGood(address: KnownPeerAddress): void {
    const { clock } = this.options;
    const group = groupOf(address.host);
    const [seenAtMs, triedAtMs] = [clock.nowMs(), clock.monotonicMs()];
    const entry = { seenAtMs, failures: 0, triedAtMs, sourceGroup: "", address, group };
    this.entries.delete(address.nodeId);
    if (this.makeRoomFor(entry)) this.set(entry);
  }

  /** Nobody answered at the address, or somebody else. */
  markFailed(nodeId: NodeId): void {
    const entry = this.entries.get(nodeId);
    if (entry === undefined) return;
    const failures = entry.failures + 1;
    if (failures >= MAX_FAILURES && entry.seenAtMs === 0) this.entries.delete(nodeId);
    else this.set({ ...entry, failures, triedAtMs: this.options.clock.monotonicMs() });
    this.isChanged = true;
  }

  /**
   * An address to dial now; undefined when there is none. First a group is chosen, then an address
   * of it: many addresses in one place are no more likely than one.
   * @param present groups that this node has dialled already: others come first
   */
  pick(
    isWanted: (nodeId: NodeId) => boolean,
    present: ReadonlySet<string> = new Set(),
  ): KnownPeerAddress | undefined {
    const nowMs = this.options.clock.monotonicMs();
    const due = [...this.entries.values()].filter(({ address, failures, triedAtMs }) => {
      const pauseMs = failures === 0 ? 0 : Math.min(RETRY_MS * 2 ** failures, MAX_RETRY_MS);
      return isWanted(address.nodeId) && nowMs - triedAtMs >= pauseMs;
    });
    const elsewhere = due.filter(({ address, group }) => {
      return isPrivateIp(address.host) || !present.has(group);
    });
    const candidates = elsewhere.length > 0 ? elsewhere : due;
    const wantsProved = this.options.random() < PROVED_SHARE;
    const preferred = candidates.filter(({ seenAtMs }) => seenAtMs > 0 === wantsProved);
    const byGroup = grouped(preferred.length > 0 ? preferred : candidates);
    return this.oneOf(this.oneOf([...byGroup.values()]) ?? [])?.address;
  }

  private oneOf<T>(list: readonly T[]): T | undefined {
    return list[Math.floor(this.options.random() * list.length)];
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
    if (file === undefined || !this.mayWrite || !this.isChanged) return;
    const addrs = [...this.entries.values()].map((entry) => ({
      addr: formatPeerAddress(entry.address),
      last_success_ms: entry.seenAtMs,
      attempts: entry.failures,
      source_group: entry.sourceGroup,
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

  /** Drops what an address may take the place of; false when it may take nobody's. */
  private makeRoomFor(entry: Entry): boolean {
    const isProved = entry.seenAtMs > 0;
    const alike = [...this.entries.values()].filter(({ seenAtMs }) => seenAtMs > 0 === isProved);
    const ofGroup = alike.filter(({ group }) => group === entry.group);
    const ofSource = alike.filter(({ sourceGroup }) => sourceGroup === entry.sourceGroup);
    if (!isPrivateIp(entry.address.host) && ofGroup.length >= MAX_PER_GROUP)
      return this.dropWorst(ofGroup);
    if (!isProved && ofSource.length >= MAX_PER_SOURCE) return this.dropWorst(ofSource);
    if (this.entries.size < MAX_ENTRIES) return true;
    const unproved = [...this.entries.values()].filter(({ seenAtMs }) => seenAtMs === 0);
    return this.dropWorst(unproved) || (isProved && this.dropWorst(alike));
  }

  /** Drops whoever failed most, then whoever was seen longest ago. */
  private dropWorst(entries: readonly Entry[]): boolean {
    const [worst] = entries.toSorted((one, other) => {
      return other.failures - one.failures || one.seenAtMs - other.seenAtMs;
    });
    return worst !== undefined && this.entries.delete(worst.address.nodeId);
  }

  private load(): void {
    const { file, log, unlistedIds } = this.options;
    if (file === undefined) return;
    let text: string;
    try {
      text = readFileSync(file, "utf8");
    } catch (error) {
      if (errorCode(error) === "ENOENT") return;
      this.mayWrite = false;
      log.warn({ file, err: error }, "the address book cannot be read now; it stays as it is");
      return;
    }
    try {
      const { addrs } = bookFile.parse(JSON.parse(text));
      for (const one of addrs.slice(0, MAX_ENTRIES)) {
        const address = parseKnownPeerAddress(one.addr);
        if (unlistedIds.has(address.nodeId)) continue;
        const { last_success_ms: seenAtMs, attempts: failures, source_group: sourceGroup } = one;
        const group = groupOf(address.host);
        const entry = { address, group, seenAtMs, failures, triedAtMs: NEVER_MS, sourceGroup };
        this.entries.set(address.nodeId, entry);
      }
    } catch (error) {
      log.warn({ file, err: error }, "the address book is damaged; a new one is begun");
    }
  }
}

/** Whether another address may take the place of one. */
function mayMove(known: Entry, to: KnownPeerAddress, isOwnWord: boolean): boolean {
  const { host, port } = known.address;
  if (host === to.host && port === to.port) return false;
  if (known.seenAtMs > 0) return isOwnWord && known.failures > 0;
  return isOwnWord || known.failures > 0;
}

function grouped(entries: readonly Entry[]): ReadonlyMap<string, readonly Entry[]> {
  const groups = new Map<string, Entry[]>();
  for (const entry of entries) {
    const list = groups.get(entry.group) ?? [];
    if (list.push(entry) === 1) groups.set(entry.group, list);
  }
  return groups;
}
