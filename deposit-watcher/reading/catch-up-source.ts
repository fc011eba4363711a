/**
 * Blocks for a watcher that is far behind: read with the accounts that they name alone where the Data
 * API offers that, many in one call, at a twentieth of the bytes. Everywhere else, and whenever such
 * an answer is none or makes no sense, the block itself is read: it is what is true.
 */
import { errorMessage } from "../../chain/errors.js";
import type { Height } from "../../chain/hex.js";
import {
  type DataApiClient,
  isBlockMissing,
  isOfServer,
} from "../../rpc-client/data-api/data-api-client.js";
import type { DataBlock } from "../../rpc-client/data-api/data-block.js";
import { NodeFault } from "../../rpc-client/errors.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { BlockOptions, BlockSource } from "./block-source.js";

/** What is read. */
export type CatchUpClient = Pick<DataApiClient, "block" | "accountBlocks">;

/** Heights of one call at most. */
const MAX_RANGE = 32;

/** Heights that are asked for in one moment. */
interface Range {
  readonly from: Height;
  to: Height;
  readonly signal: AbortSignal;
  readonly answer: Promise<ReadonlyMap<Height, DataBlock>>;
}

/** See above; one for the life of a process. */
export class CatchUpSource implements BlockSource {
  #isOffered = true;
  /** Takes in the heights that follow, until this moment has passed. */
  #open: Range | undefined;

  constructor(
    private readonly client: CatchUpClient,
    private readonly log: Pick<Logger, "info">,
  ) {}

  /** See `BlockSource`. */
  async block(height: Height, { signal, turn }: BlockOptions): Promise<DataBlock | undefined> {
    if (this.#isOffered) {
      const block = (await this.#rangeFor(height, signal).answer).get(height);
      if (block !== undefined) return block;
    }
    // Who asked counts on a twentieth of it.
    await turn?.();
    signal.throwIfAborted();
    return this.client.block(height, { signal });
  }

  #rangeFor(height: Height, signal: AbortSignal): Range {
    const open = this.#open;
    const goesOn = open?.signal === signal && open.to + 1 === height;
    if (open !== undefined && goesOn && height - open.from < MAX_RANGE) {
      open.to = height;
      return open;
    }
    // Asked when all that is wanted now has been said.
    const answer: Range["answer"] = Promise.resolve().then(() => {
      if (this.#open === range) this.#open = undefined;
      return this.#read(range);
    });
    const range: Range = { from: height, to: height, signal, answer };
    this.#open = range;
    return range;
  }

  async #read({ from, to, signal }: Range): Promise<ReadonlyMap<Height, DataBlock>> {
    const blocks = new Map<Height, DataBlock>();
    try {
      for (let next = from; next <= to; next = from + blocks.size) {
        const read = await this.client.accountBlocks({ from: next, to }, { signal });
        for (const block of read) blocks.set(block.height, this.#checked(block));
      }
    } catch (error) {
      signal.throwIfAborted();
      this.#judge(error);
    }
    return blocks;
  }

  /** A block whose transactions do not fit it is read as it is the next time. */
  #checked(block: DataBlock): DataBlock {
    return {
      ...block,
      transactions: async (concerns, wanted) => {
        try {
          return await block.transactions(concerns, wanted);
        } catch (error) {
          if (!wanted.signal.aborted) this.#judge(error);
          throw error;
        }
      },
    };
  }

  /** What passes is asked for again with the next range; all else will not get better. */
  #judge(error: unknown): void {
    if (passes(error) || !this.#isOffered) return;
    this.#isOffered = false;
    const reason = errorMessage(error);
    this.log.info({ reason }, "the Data API tells no accounts of blocks, whole blocks are read");
  }
}

function passes(error: unknown): boolean {
  if (error instanceof NodeFault) return error.retriable;
  return isBlockMissing(error) || isOfServer(error);
}
