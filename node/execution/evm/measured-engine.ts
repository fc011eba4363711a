/**
 * Another engine in blocks, with the compute units of our own: those are a rule of the chain that no
 * other engine knows, and a transaction that they end would come to something else there.
 */
import type { JournaledState } from "../../state/journaled-state.js";
import type { Engine } from "../interpreter/engine.js";
import type { BlockContext, EvmMessage } from "../message.js";
import type { RunResult, RunTerms, TransactionEngine } from "../transaction-engine.js";

/** Runs each message twice: on our own engine for its units, and on the other one for the rest. */
export class MeasuredEngine implements TransactionEngine {
  /** Where the last message had its effects. */
  private last: TransactionEngine;

  constructor(
    private readonly own: Engine,
    private readonly other: TransactionEngine,
    private readonly state: JournaledState,
  ) {
    this.last = other;
  }

  async run(message: EvmMessage, block: BlockContext, terms: RunTerms): Promise<RunResult> {
    const { computeNs, isOutOfCompute } = this.measure(message, block, terms);
    this.last = isOutOfCompute ? this.own : this.other;
    const result = await this.last.run(message, block, terms);
    return { ...result, computeNs };
  }

  async finish(isIncluded: boolean): Promise<void> {
    if (this.last !== this.own) await this.last.finish(isIncluded);
    // What the next message takes depends on what this one has read.
    this.own.finish(isIncluded);
  }

  /** What it takes, without any effect. */
  private measure(message: EvmMessage, block: BlockContext, { limitNs }: RunTerms): RunResult {
    const { state } = this;
    const depth = state.depth();
    state.checkpoint();
    try {
      return this.own.run(message, block, { limitNs });
    } finally {
      while (state.depth() > depth) state.revert();
    }
  }
}
