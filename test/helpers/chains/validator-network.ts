/** A full mesh between validator nodes of one process: every message, and what statuses ask for. */
import type { ConsensusMessage } from "../../../node/consensus/consensus-ports.js";
import type { Genesis } from "../../../node/settings/genesis.js";
import { until } from "../until.js";
import { ValidatorNode, type ValidatorNodeOptions } from "./validator-node.js";

/** How often nodes compare what they have. */
const REPAIR_MS = 50;

/** Decides whether a message passes. */
export type Filter = (from: number, to: number, message: ConsensusMessage) => boolean;

/** Nodes by index; an index without a node is one that is down. */
export class ValidatorNetwork {
  readonly nodes: (ValidatorNode | undefined)[] = [];
  readonly sent: ConsensusMessage[] = [];
  passes: Filter = () => true;
  private readonly timer: NodeJS.Timeout;

  constructor(
    readonly genesis: Genesis,
    readonly seeds: readonly (Uint8Array | undefined)[],
  ) {
    this.timer = setInterval(() => this.repairAll(), REPAIR_MS);
  }

  /** Opens and starts a node; `home` is that of one that was stopped. */
  async start(index: number, options: Partial<ValidatorNodeOptions> = {}): Promise<ValidatorNode> {
    const { genesis, seeds } = this;
    const node = await ValidatorNode.open({ genesis, seed: seeds[index], ...options });
    this.nodes[index] = node;
    node.start((message) => this.broadcast(index, message));
    return node;
  }

  /** Sends a message to all others, as node `from` would. */
  broadcast(from: number, message: ConsensusMessage): void {
    this.sent.push(message);
    for (const [to, node] of this.nodes.entries()) {
      if (to === from || node === undefined || !this.passes(from, to, message)) continue;
      void node.consensus.receive(message, String(from));
    }
  }

  /** Stops a node and keeps its home. */
  async halt(index: number): Promise<string> {
    const node = this.nodes[index];
    this.nodes[index] = undefined;
    await node?.stop({ keep: true });
    return node?.home ?? "";
  }

  /** Resolves when all running nodes have a height; rejects when one halted. */
  async reach(height: number): Promise<void> {
    const up = () => this.nodes.filter((node) => node !== undefined);
    await until(
      () => {
        const halts = up().flatMap((node) => node.halts);
        if (halts.length > 0) throw new Error(`halted: ${halts.join(", ")}`);
        return up().every((node) => node.height >= height);
      },
      { timeoutMs: 60_000, what: `height ${height}` },
    );
  }

  async close(): Promise<void> {
    clearInterval(this.timer);
    for (const node of this.nodes) await node?.stop();
  }

  private repairAll(): void {
    for (const [to, node] of this.nodes.entries()) {
      if (node === undefined) continue;
      const status = node.consensus.status();
      for (const [from, peer] of this.nodes.entries()) {
        if (from === to || peer === undefined) continue;
        if (!this.passes(to, from, { type: "status", status })) continue;
        for (const message of peer.consensus.repair(status)) {
          if (!this.passes(from, to, message)) continue;
          void node.consensus.receive(message, String(from));
        }
      }
    }
  }
}
