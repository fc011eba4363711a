/**
 * At which height nonces were last seen unused: what used one is in a block above it. A node that has begun
 * above that, restored from a snapshot, or has deleted it, has no receipt of it and denies nothing.
 */
import type { Height } from "../../chain/hex.js";
import type { LiveSlot } from "../../ledger/withdrawals/slot-rows.js";
import type { WalletView } from "./wallet-node.js";

/** Steps of the nonce that are remembered: more are a round each, and long over. */
const MAX_STEPS = 1_000;

/** The wallet's nonce at a height. */
type Look = Pick<WalletView, "nonce" | "height">;

/** Of one wallet, in this process, and behind what the last one saw. */
export class UnusedNonces {
  #steps: Look[] = [];
  /** The lowest block without which the node cannot say what used a nonce. */
  #unkeptFrom: Height | undefined;

  /** A look at the chain. @param before what was seen last, by this process or another one */
  note({ nonce, height }: Look, before: Look | undefined): void {
    if (this.#steps.length === 0 && before !== undefined) this.#steps.push(before);
    const last = this.#steps.at(-1);
    // A chain that came back shorter uses them anew.
    if (last !== undefined && last.height > height) this.#steps = [];
    if (last?.nonce === nonce) this.#steps.pop();
    this.#steps.push({ nonce, height });
    if (this.#steps.length > MAX_STEPS) this.#steps.shift();
  }

  /** A round begins: what the node cannot say is found anew. */
  begin(): void {
    this.#unkeptFrom = undefined;
  }

  /**
   * Of slots whose used nonces no receipt explains those of which the node would have one, were they ours.
   * @param blocks.oldestHeight the first that the node keeps
   * @param blocks.settledHeight of the wallet's last settled payment: what is not remembered came behind it
   */
  denied(
    slots: readonly LiveSlot[],
    blocks: { readonly oldestHeight: Height; readonly settledHeight: Height },
  ): readonly LiveSlot[] {
    return slots.filter(({ nonce, attempts }) => {
      const unused = this.#steps.findLast((step) => step.nonce <= nonce);
      const neededFrom = (unused?.height ?? blocks.settledHeight) + 1;
      if (attempts.length === 0 || blocks.oldestHeight <= neededFrom) return true;
      this.#unkeptFrom = Math.min(this.#unkeptFrom ?? neededFrom, neededFrom);
      return false;
    });
  }

  /** What the node was found not to keep in this round; undefined for nothing. */
  trouble(): string | undefined {
    if (this.#unkeptFrom === undefined) return undefined;
    return (
      `the node does not keep the blocks since ${this.#unkeptFrom}, and cannot say whether payments ` +
      "of ours used the wallet's nonces: ask one that does"
    );
  }
}
