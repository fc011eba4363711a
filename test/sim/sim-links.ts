/** The lines between nodes: they lose, delay and part, until the network is stable. */
import type { EventQueue } from "./event-queue.js";
import type { Message, SimOptions } from "./sim-options.js";
import { chance } from "../helpers/random.js";

/** After this the network is perfect, so that every schedule must end. */
const STABLE_AFTER_MS = 6_000;

/** Longest delay of the perfect network. */
const STABLE_DELAY_MS = 20;

/** Decides what arrives, and when. */
export class SimLinks {
  private groups: readonly number[] = [];
  private readonly deaf = new Map<string, boolean>();

  constructor(
    private readonly options: SimOptions,
    private readonly clock: EventQueue,
  ) {}

  /** Whether the network has become perfect. */
  get isStable(): boolean {
    return this.clock.nowMs > STABLE_AFTER_MS;
  }

  /** Whether a message gets through now. */
  passes(from: number, to: number, message: Message): boolean {
    if (from === to || this.isStable) return true;
    const { random, dropShare } = this.options;
    if (this.groups[from] !== this.groups[to] || chance(random, dropShare)) return false;
    return !this.isDeaf(to, message);
  }

  /** How long it takes. */
  delayMs(from: number, to: number): number {
    if (from === to) return 0;
    const { random, maxDelayMs } = this.options;
    return 1 + random.integer(this.isStable ? STABLE_DELAY_MS : maxDelayMs);
  }

  /** Parts the nodes anew, or joins them. */
  shuffle(): void {
    const { random, partitionShare, validators } = this.options;
    const isSplit = chance(random, partitionShare);
    this.groups = Array.from({ length: validators }, () => (isSplit ? random.integer(2) : 0));
  }

  /** Losses that gossip does not mend: the adversary of the proofs picks whom it keeps ignorant. */
  private isDeaf(to: number, message: Message): boolean {
    if (message.kind === "decided") return this.options.areDecisionsHidden;
    if (message.kind === "block") return false;
    if (this.options.isDeaf !== undefined) return this.options.isDeaf(to, message);
    if (message.kind === "proposal") return false;
    const { height, type, round } = message.vote;
    const key = `${to}/${height}/${round}/${type}`;
    const isDeaf = this.deaf.get(key) ?? chance(this.options.random, this.options.deafShare);
    this.deaf.set(key, isDeaf);
    return isDeaf;
  }
}
