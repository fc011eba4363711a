/** Turns of a worker at a wallet: whether what it saw in the last one still agrees with what it sees now. */
import type { WalletLease } from "../../ledger/wallets/wallet-lease.js";
import type { LaneSettings } from "./lane-context.js";

/** What a round's turn is to the lane's last one. */
export interface Turn {
  /** Nobody else had the wallet between them. */
  readonly isSame: boolean;
  /** Somebody else may have had it for so long that nothing that was seen before counts. */
  readonly isLater: boolean;
}

/** Remembers the last round under a lease. */
export class LeaseTurns {
  readonly #settings: Pick<LaneSettings, "leaseMs" | "scanIntervalMs">;
  #last: { readonly epoch: bigint; readonly askedMs: number } | undefined;

  constructor(settings: Pick<LaneSettings, "leaseMs" | "scanIntervalMs">) {
    this.#settings = settings;
  }

  /**
   * A round under this lease. Where others had the wallet for no longer than two looks are apart, these still
   * follow each other: workers that take turns would never see the same twice else.
   * @param askedMs when the chain was asked for it, monotonic
   */
  begin({ epoch }: WalletLease, askedMs: number): Turn {
    const last = this.#last;
    this.#last = { epoch, askedMs };
    if (last === undefined) return { isSame: false, isLater: false };
    const isSame = epoch <= last.epoch + 1n;
    const { leaseMs, scanIntervalMs } = this.#settings;
    return { isSame, isLater: !isSame && askedMs - last.askedMs > leaseMs + 2 * scanIntervalMs };
  }
}
