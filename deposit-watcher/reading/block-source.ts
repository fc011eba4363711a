/** Where the watcher has blocks from. */
import type { Height } from "../../chain/hex.js";
import type { DataBlock } from "../../rpc-client/data-api/data-block.js";

/** How one block is asked for. */
export interface BlockOptions {
  readonly signal: AbortSignal;
  /**
   * Awaited before a block that may be large although those before it were small: resolves once there is
   * memory for it.
   */
  readonly turn?: () => Promise<void>;
}

/** Where blocks come from: the Data API client. */
export interface BlockSource {
  /** Undefined while the source does not have the block. */
  block(height: Height, options: BlockOptions): Promise<DataBlock | undefined>;
}
