/** A server of headers without a network, for the light client. */
import { EMPTY_COMMIT } from "../../../chain/consensus/commit.js";
import type { LightBlock } from "../../../chain/consensus/light.js";
import type { BlockExtras } from "../../../node/statesync/light/light-json.js";
import type { LightProvider } from "../../../node/statesync/light/light-rpc.js";
import { StateSyncError } from "../../../node/statesync/state-sync-error.js";

/** Blocks by height. */
export type LightBlocks = ReadonlyMap<number, LightBlock>;

/** A server that has these blocks and counts what it is asked for. */
export class FakeLightServer implements LightProvider {
  readonly asked: number[] = [];
  /** The highest one of each page of headers that was asked for. */
  readonly pages: number[] = [];
  /** What a height is answered with the first time. */
  readonly early = new Map<number, LightBlock>();
  /** Heights whose validators it does not give the first time. */
  readonly busy = new Set<number>();
  /** Replaces what a block is answered with. */
  extras: Partial<BlockExtras> = {};

  constructor(
    readonly name: string,
    private readonly blocks: LightBlocks,
  ) {}

  async lightBlock(height: number): Promise<LightBlock> {
    this.asked.push(height);
    const early = this.early.get(height);
    this.early.delete(height);
    return early ?? this.need(height);
  }

  async validators(height: number) {
    if (this.busy.delete(height)) throw unavailable("it is busy");
    return this.need(height).validators;
  }

  async blockExtras(height: number) {
    const lastCommit = this.blocks.get(height - 1)?.commit ?? EMPTY_COMMIT;
    return { header: this.need(height).header, lastCommit, evidence: [], ...this.extras };
  }

  async headers({ from, to }: { readonly from: number; readonly to: number }) {
    this.pages.push(from);
    return Array.from({ length: from - to + 1 }, (_, index) => this.need(from - index).header);
  }

  private need(height: number): LightBlock {
    const block = this.blocks.get(height);
    if (block !== undefined) return block;
    throw unavailable(`no height ${height}`);
  }
}

function unavailable(reason: string): StateSyncError {
  return new StateSyncError("SERVER_UNAVAILABLE", reason, { retriable: true });
}
