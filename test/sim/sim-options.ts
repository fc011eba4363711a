/** What a run is asked for, what it came to, and what travels between its nodes. */
import type { BlockId } from "../../chain/consensus/block-id.js";
import type { Proposal, Vote } from "../../chain/consensus/vote.js";
import type { advance as advanceMachine } from "../../node/consensus/machine/state-machine.js";
import type { Random } from "../helpers/random.js";

/** The machine, replaceable so that a broken one can be shown to fail. */
export type Machine = typeof advanceMachine;

/** A run's shape. */
export interface SimOptions {
  readonly random: Random;
  readonly validators: number;
  /** How many of them lie: two proposals, two votes. */
  readonly liars: number;
  readonly heights: number;
  readonly dropShare: number;
  /** Share of (node, round, vote type) for which the node hears nothing at all. */
  readonly deafShare: number;
  /** A chosen deafness instead of the random one: true where the node never hears the message. */
  readonly isDeaf?: (to: number, message: Heard) => boolean;
  /** Whether those that decided cannot tell the others. */
  readonly areDecisionsHidden: boolean;
  readonly maxDelayMs: number;
  readonly crashShare: number;
  readonly partitionShare: number;
  readonly machine?: Machine;
}

/** What a run came to. */
export interface SimResult {
  /** Decided blocks per node, by height. */
  readonly decisions: readonly ReadonlyMap<number, string>[];
  readonly honest: readonly number[];
  readonly timeMs: number;
  readonly isFinished: boolean;
  readonly maxRound: number;
  readonly conflicts: number;
  readonly crashes: number;
  readonly faults: readonly string[];
}

/** What a node may be kept from hearing. */
export type Heard =
  | { readonly kind: "vote"; readonly vote: Vote }
  | { readonly kind: "proposal"; readonly proposal: Proposal };

/** Everything that travels. */
export type Message =
  | Heard
  | { readonly kind: "block"; readonly blockId: BlockId; readonly height: number }
  | { readonly kind: "vote"; readonly vote: Vote }
  | {
      readonly kind: "decided";
      readonly height: number;
      readonly blockId: BlockId;
      readonly votes: readonly Vote[];
    };
