/** An account's sequence, and whether what this node has of the past tells when it was taken. */
import type { Address } from "../../../chain/address.js";
import type { Height } from "../../../chain/hex.js";
import type { ChainView } from "../../view/chain-view.js";

/** An account's sequence, which one transaction takes at most. */
export interface AccountSequence {
  readonly account: Address;
  readonly sequence: bigint;
}

/** Whether a block up to a height has taken a sequence. Throws HISTORY_PRUNED. */
export async function isTakenBy(
  view: ChainView,
  { account, sequence }: AccountSequence,
  height: Height,
): Promise<boolean> {
  return ((await view.account(account, height))?.nonce ?? 0n) > sequence;
}

/**
 * A height that is not below the one before `first`, up to which nobody has taken a sequence: whatever takes
 * it stands in a block from `first` on.
 * @param first the oldest height of what is to be looked through
 * @returns undefined where no state that is here rules an older block out
 */
export async function untakenUntil(
  view: ChainView,
  signed: AccountSequence,
  first: Height,
): Promise<Height | undefined> {
  const height = Math.max(view.oldest().state, first - 1);
  return (await isTakenBy(view, signed, height)) ? undefined : height;
}
