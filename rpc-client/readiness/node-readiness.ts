/** What `/ready` says of the node behind a server: whether it is the right one, reachable and moving. */
import {
  blockAgeSeconds,
  blockAgeText,
  isBlockAgeBeyond,
} from "../../chain/consensus/block-age.js";
import { errorMessage } from "../../chain/errors.js";
import type { Height } from "../../chain/hex.js";
import type { Network } from "../../chain/networks.js";
import type { Readiness } from "../../runtime/http/http-server.js";
import type { Clock } from "../../runtime/process/clock.js";
import { shareUnderway } from "../../runtime/process/task.js";

/**
 * The check behind /ready: faults of the node are reasons, not errors. Anybody may ask, as often as he likes:
 * who asks meanwhile gets the same answer, or these questions would fill the client of everybody else.
 * @param reasonNotReady one sentence, or undefined when all is well
 */
export function createReadiness(
  reasonNotReady: () => Promise<string | undefined>,
): () => Promise<Readiness> {
  return shareUnderway(async () => {
    const reason = await reasonNotReady().catch(errorMessage);
    return reason === undefined ? { ready: true } : { ready: false, reason };
  });
}

/** Why a node of this chain is not the right one; undefined when it is. */
export function otherChainReason(
  chainId: bigint,
  { evmChainId }: Pick<Network, "evmChainId">,
): string | undefined {
  return chainId === evmChainId ? undefined : `the node is on chain ${chainId}, not ${evmChainId}`;
}

/** Why a node with this newest block does not move; undefined when it does. This sign cannot deceive. */
export function oldBlockReason(
  head: { readonly height: Height; readonly timestampSeconds: number },
  { clock, maxBlockAgeMs }: { readonly clock: Clock; readonly maxBlockAgeMs: number },
): string | undefined {
  const ageSeconds = blockAgeSeconds(head.timestampSeconds * 1_000, clock.nowMs());
  if (!isBlockAgeBeyond(ageSeconds, maxBlockAgeMs / 1_000)) return undefined;
  return `the newest block (${head.height}) is ${blockAgeText(ageSeconds)}`;
}
