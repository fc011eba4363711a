/** A validator of the simulation, with the durability that driver and signer promise. */
import type { Address } from "../../chain/address.js";
import type { BlockId } from "../../chain/consensus/block-id.js";
import type { Vote } from "../../chain/consensus/vote.js";
import type {
  ConsensusState,
  DecidingVotes,
  Input,
} from "../../node/consensus/machine/consensus-state.js";

/** One validator: volatile state, and what survives a crash. */
export class SimNode {
  state!: ConsensusState;
  isUp = true;
  /** On disk: inputs since the height began; the tail after `durable` may be lost. */
  log: Input[] = [];
  durable = 0;
  /** On disk: what was signed last. */
  signed:
    | { height: number; round: number; step: number; key: string; vote: Vote | undefined }
    | undefined;
  readonly decided = new Map<
    number,
    { readonly blockId: BlockId; readonly votes: readonly Vote[] }
  >();
  readonly blocks = new Map<string, BlockId>();
  lastCommit: DecidingVotes | undefined;
  timers = 0;

  constructor(
    readonly index: number,
    readonly address: Address,
    readonly isLiar: boolean,
  ) {}

  /** The signer's rule: never back, and never two different things in one step. */
  maySign(place: {
    readonly round: number;
    readonly step: number;
    /** Names what is signed. */
    readonly key: string;
    readonly vote: Vote | undefined;
  }): boolean {
    const { height } = this.state;
    const { round, step, key, vote } = place;
    this.durable = this.log.length;
    const { signed } = this;
    if (signed !== undefined) {
      const before = [signed.height, signed.round, signed.step];
      const now = [height, round, step];
      const order = before.findIndex((value, index) => value !== now[index]);
      const isBack = order >= 0 && (before[order] ?? 0) > (now[order] ?? 0);
      if (isBack) return false;
      if (order < 0) return signed.key === key;
    }
    this.signed = { height, round, step, key, vote };
    return true;
  }
}
