/**
 * Consensus over the network. What the driver says goes to everybody by gossip. Beside that, peers
 * tell each other what they have of the round, and each sends what the other still lacks after a
 * moment: messages that gossip lost, and all of a height that a peer has missed.
 */
import type { Height } from "../../../chain/hex.js";
import type { Clock } from "../../../runtime/process/clock.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { sleep } from "../../../runtime/process/task.js";
import type {
  ConsensusBroadcast,
  ConsensusInbox,
  ConsensusMessage,
  Reception,
  RoundStatus,
} from "../../consensus/consensus-ports.js";
import type { Verdict } from "./gossip.js";
import type { NodeId } from "../node-key.js";
import type { PeerRound } from "../network-port.js";
import {
  decodeConsensusMessage,
  decodeSharedMessage,
  encodeConsensusMessage,
} from "../peers/peer-codec.js";
import type { PeerLoad } from "../peers/peer-load.js";
import type { Offence } from "../peers/peer-scores.js";

/** A peer as the reactor sees it. */
export interface Neighbour {
  readonly nodeId: NodeId;
  /** Bytes that it has not taken yet. */
  readonly unsentBytes: number;
  send(frame: { readonly type: "consensus"; readonly message: Uint8Array }): void;
}

/** What the reactor needs. */
export interface ReactorPorts {
  publish(bytes: Uint8Array): void;
  report(nodeId: NodeId, offence: Offence): void;
  /** What peers cost this node. */
  readonly load: Pick<PeerLoad, "heard" | "mayServe" | "serve">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A status goes out when it has changed, but not more often than this. */
const STATUS_INTERVAL_MS = 50;

/** An unchanged status is repeated, because the other side may have lost what it made of it. */
const STATUS_REPEAT_MS = 500;

/** What a peer lacks for so long is not on its way by gossip. */
const PATIENCE_MS = 100;

/** A peer this many heights behind gets all at once: there is no gossip of old heights. */
const FAR_BEHIND_HEIGHTS = 2;

/** Such a peer is not made to wait for the next tick, but served no more often than this. */
const HASTE_INTERVAL_MS = 20;

/** The same message goes to the same peer again after this time. */
const RESEND_MS = 1_000;

/** A peer that has said nothing for so long takes no part, as while it catches up. */
const STATUS_STALE_MS = 3_000;

/** What consensus does with a message that turns out useless or known: no signature is verified. */
const USELESS_MS = 0.2;

/** Nothing more is repaired while so much waits to be sent. */
const MAX_UNSENT_BYTES = 1024 * 1024;

interface Known {
  /** When the peer was first seen to lack it. */
  readonly sinceMs: number;
  readonly sentAtMs: number | undefined;
}

interface PeerState {
  readonly neighbour: Neighbour;
  status: RoundStatus | undefined;
  statusAtMs: number;
  /** When it was first heard to be at its height, Unix milliseconds. */
  heightSinceMs: number;
  /** What it gave this node. */
  voteCount: number;
  partCount: number;
  isFresh: boolean;
  repairedAtMs: number;
  /** What the peer lacks, by message. Holds no more than one answer of `repair`. */
  lacks: ReadonlyMap<string, Known>;
}

/** Implements the driver's view of the network, and speaks to the driver for the network. */
export class ConsensusReactor implements ConsensusBroadcast {
  private readonly peers = new Map<NodeId, PeerState>();
  /** Hears what peers say. */
  private inbox: ConsensusInbox | undefined;
  /** Has what peers lack: the same, and one that has halted. */
  private helper: ConsensusInbox | undefined;
  private lastStatus: Buffer | undefined;
  private lastStatusAtMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly ports: ReactorPorts) {}

  /** The driver runs: from now on messages go to it. */
  attach(inbox: ConsensusInbox): void {
    this.inbox = inbox;
    this.helper = inbox;
  }

  /** The driver does not run, as while the node catches up. */
  detach(): void {
    this.halt();
    this.helper = undefined;
  }

  /**
   * The driver has halted: it hears nothing more, and nothing is told of it, because there is nothing that
   * it lacks. Peers still get what they lack: the last blocks before an upgrade may be nowhere else.
   */
  halt(): void {
    this.inbox = undefined;
    this.lastStatus = undefined;
  }

  /** See `ConsensusBroadcast`. */
  broadcast(message: ConsensusMessage): void {
    this.ports.publish(encodeConsensusMessage(message));
  }

  /** A peer is connected. */
  add(neighbour: Neighbour): void {
    this.peers.set(neighbour.nodeId, {
      neighbour,
      status: undefined,
      statusAtMs: Number.NEGATIVE_INFINITY,
      heightSinceMs: this.ports.clock.nowMs(),
      voteCount: 0,
      partCount: 0,
      isFresh: false,
      repairedAtMs: Number.NEGATIVE_INFINITY,
      lacks: new Map(),
    });
    if (this.lastStatus !== undefined) this.tell(neighbour, this.lastStatus);
  }

  /** A peer is gone. */
  remove(neighbour: Neighbour): void {
    if (this.peers.get(neighbour.nodeId)?.neighbour === neighbour) {
      this.peers.delete(neighbour.nodeId);
    }
  }

  /** A peer is banned. */
  forget(nodeId: NodeId): void {
    this.inbox?.forget(nodeId);
  }

  /** The height that a peer says it is deciding; 0 when it has not said. */
  heightOf(nodeId: NodeId): Height {
    return this.peers.get(nodeId)?.status?.height ?? 0;
  }

  /** What a peer said of its height, and gave of it; nothing of one that is gone. */
  roundOf(nodeId: NodeId): PeerRound {
    const peer = this.peers.get(nodeId);
    const { status, heightSinceMs = this.ports.clock.nowMs() } = peer ?? {};
    const { voteCount = 0, partCount = 0 } = peer ?? {};
    return { status, sinceMs: heightSinceMs, voteCount, partCount };
  }

  /** A message that came by gossip. */
  async onGossip(bytes: Uint8Array, from: NodeId): Promise<Verdict> {
    const message = parse(() => decodeSharedMessage(bytes));
    if (message === undefined) return "invalid";
    const reception = await this.receive(message, from);
    if (reception === "new") return "relay";
    return reception === "invalid" ? "invalid" : "drop";
  }

  /** A message that came from a peer directly: its status, or what this node lacked. */
  async onDirect(bytes: Uint8Array, from: NodeId): Promise<void> {
    const message = parse(() => {
      return decodeConsensusMessage(bytes, (height) => this.helper?.setSizeAt(height));
    });
    if (message === undefined) return this.ports.report(from, "malformed");
    if (message.type === "status") {
      const peer = this.peers.get(from);
      if (peer === undefined) return;
      // Only the newest counts, and it is looked at on the next tick: a flood costs no repairs.
      const isSameHeight = peer.status?.height === message.status.height;
      if (!isSameHeight) peer.heightSinceMs = this.ports.clock.nowMs();
      peer.status = message.status;
      peer.statusAtMs = this.ports.clock.monotonicMs();
      peer.isFresh = true;
      return this.hasten(peer);
    }
    if ((await this.receive(message, from)) === "invalid") {
      this.ports.report(from, "invalidMessage");
    }
  }

  /** Tells peers the status and repairs what they lack, until the signal fires. */
  async run(signal: AbortSignal): Promise<void> {
    for (;;) {
      this.tick();
      await sleep(STATUS_INTERVAL_MS, { signal });
    }
  }

  /** One round of the above. */
  tick(): void {
    const { inbox, helper } = this;
    if (inbox !== undefined) this.tellStatus(inbox);
    if (helper === undefined) return;
    const due = [...this.peers.values()].filter(({ isFresh, lacks }) => isFresh || lacks.size > 0);
    for (const peer of due) {
      if (!this.help(helper, peer)) continue;
      // Who has had something comes last the next time: there may not be time for all.
      const { nodeId } = peer.neighbour;
      this.peers.delete(nodeId);
      this.peers.set(nodeId, peer);
    }
  }

  /**
   * What a peer lacks may be an old block: that is read, encoded and hashed.
   * @returns whether there was time for the peer
   */
  private help(inbox: ConsensusInbox, peer: PeerState): boolean {
    const { load } = this.ports;
    const { nodeId } = peer.neighbour;
    const isServed = load.mayServe(nodeId);
    if (isServed) load.serve(nodeId, () => this.repair(inbox, peer));
    return isServed;
  }

  /** A peer that is far behind catches up by as many heights in a second as it has answers. */
  private hasten(peer: PeerState): void {
    const { helper } = this;
    const sinceMs = this.ports.clock.monotonicMs() - peer.repairedAtMs;
    if (helper === undefined || sinceMs < HASTE_INTERVAL_MS) return;
    if (isFarBehind(peer.status, helper.status())) this.help(helper, peer);
  }

  private async receive(message: ConsensusMessage, from: NodeId): Promise<Reception> {
    const { inbox } = this;
    if (inbox === undefined) return "useless";
    let isAnswered = false;
    const reception = await inbox.receive(message, from, (spentMs) => {
      this.ports.load.heard(from, spentMs);
      // It came early and was kept: whoever brought it has got another answer.
      if (isAnswered) this.ports.report(from, "invalidMessage");
    });
    isAnswered = true;
    const peer = this.peers.get(from);
    if (reception === "new" && peer !== undefined) {
      if (message.type === "vote") peer.voteCount++;
      else if (message.type === "part") peer.partCount++;
    }
    if (reception === "known" || reception === "useless") this.ports.load.heard(from, USELESS_MS);
    return reception;
  }

  private tellStatus(inbox: ConsensusInbox): void {
    const nowMs = this.ports.clock.monotonicMs();
    const status = encodeConsensusMessage({ type: "status", status: inbox.status() });
    const isKnown = this.lastStatus?.equals(status) === true;
    if (isKnown && nowMs - this.lastStatusAtMs < STATUS_REPEAT_MS) return;
    this.lastStatus = status;
    this.lastStatusAtMs = nowMs;
    for (const { neighbour } of this.peers.values()) this.tell(neighbour, status);
  }

  private tell(neighbour: Neighbour, message: Uint8Array): void {
    if (neighbour.unsentBytes < MAX_UNSENT_BYTES) neighbour.send({ type: "consensus", message });
  }

  private repair(inbox: ConsensusInbox, peer: PeerState): void {
    const { status } = peer;
    if (status === undefined) return;
    const nowMs = this.ports.clock.monotonicMs();
    if (nowMs - peer.statusAtMs > STATUS_STALE_MS) {
      peer.lacks = new Map();
      return;
    }
    peer.isFresh = false;
    peer.repairedAtMs = nowMs;
    const isUrgent = isFarBehind(status, inbox.status());
    const messages = isUrgent ? wholeHeight(inbox, status) : inbox.repair(status);
    const lacks = new Map<string, Known>();
    for (const message of messages) {
      const key = keyOf(message);
      const known = peer.lacks.get(key) ?? { sinceMs: nowMs, sentAtMs: undefined };
      const isDue = isUrgent || nowMs - known.sinceMs >= PATIENCE_MS;
      const wasSent = known.sentAtMs !== undefined && nowMs - known.sentAtMs < RESEND_MS;
      const hasRoom = peer.neighbour.unsentBytes < MAX_UNSENT_BYTES;
      const isSent = isDue && !wasSent && hasRoom;
      if (isSent) {
        const bytes = encodeConsensusMessage(message);
        peer.neighbour.send({ type: "consensus", message: bytes });
      }
      lacks.set(key, isSent ? { ...known, sentAtMs: nowMs } : known);
    }
    peer.lacks = lacks;
  }
}

function isFarBehind(peer: RoundStatus | undefined, own: RoundStatus): boolean {
  return peer !== undefined && peer.height + FAR_BEHIND_HEIGHTS <= own.height;
}

/**
 * What a peer needs to decide an old height: the votes, and with them the parts that it will ask
 * for once it has the votes.
 */
function wholeHeight(inbox: ConsensusInbox, status: RoundStatus): readonly ConsensusMessage[] {
  const messages = inbox.repair(status);
  const wanted = messages
    .map((message) => (message.type === "vote" ? message.vote.blockId?.parts : undefined))
    .find((parts) => parts !== undefined);
  if (wanted === undefined || status.parts?.header.hash === wanted.hash) return messages;
  const have = Array.from({ length: wanted.total }, () => false);
  const next = inbox.repair({ ...status, parts: { header: wanted, have } });
  return [...messages, ...next.filter(({ type }) => type === "part")];
}

function parse<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch {
    return undefined; // The caller holds it against the sender.
  }
}

/** A name of what the message is about; two with one name are worth the same to a peer. */
function keyOf(message: ConsensusMessage): string {
  switch (message.type) {
    case "proposal":
      return `proposal:${message.proposal.height}:${message.proposal.round}`;
    case "part":
      return `part:${message.header.hash}:${message.part.index}:${message.round}`;
    case "vote": {
      const { type, height, round, validatorIndex } = message.vote;
      return `vote:${type}:${height}:${round}:${validatorIndex}`;
    }
    case "evidence":
      return encodeConsensusMessage(message).toString("base64");
    default:
      return "status";
  }
}
