/**
 * Encodes each new block once, before anybody asks: blocks are final, so what is encoded at the
 * head serves every later read, also of a watcher that catches up after an outage.
 */
import { errorMessage } from "../../chain/errors.js";
import type { Height } from "../../chain/hex.js";
import type { Logger } from "../../runtime/logger.js";
import { sleep } from "../../runtime/task.js";
import type { BlockSource } from "./block-source.js";

/** Well below the block interval, so that a reader that polls finds the block encoded. */
const LOOK_INTERVAL_MS = 400;

/** After a longer gap the older blocks wait until they are asked for. */
const MAX_BLOCKS_BEHIND = 64;

/** What following needs. */
export interface FollowHeadOptions {
  readonly source: Pick<BlockSource, "tip" | "resolve" | "block">;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Time between two looks; the default fits blocks of 2 seconds. */
  readonly lookIntervalMs?: number;
}

/**
 * Follows the head until the signal fires. Only warms the cache: a fault costs the next reader
 * the time of a first read, so it is noted and waited out.
 */
export async function followHead(options: FollowHeadOptions): Promise<void> {
  const { log, signal } = options;
  let encodedTo: Height | undefined;
  while (!signal.aborted) {
    try {
      encodedTo = await encodeNew(options, encodedTo);
      await sleep(options.lookIntervalMs ?? LOOK_INTERVAL_MS, { signal });
    } catch (error) {
      if (signal.aborted) return;
      log.debug({ reason: errorMessage(error) }, "new blocks could not be encoded ahead");
      await sleep(LOOK_INTERVAL_MS, { signal }).catch(() => undefined);
    }
  }
}

async function encodeNew(
  { source, signal }: FollowHeadOptions,
  encodedTo: Height | undefined,
): Promise<Height> {
  const tip = await source.tip();
  const first = Math.max(0, tip.index - MAX_BLOCKS_BEHIND + 1, (encodedTo ?? tip.index - 1) + 1);
  for (let index = first; index <= tip.index && !signal.aborted; index++) {
    await source.block(await source.resolve({ index, hash: undefined }));
  }
  return tip.index;
}
