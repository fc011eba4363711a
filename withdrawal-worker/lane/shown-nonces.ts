/**
 * Next nonces as a ledger has shown them to this process. They never fall, but where a database has lost
 * commits that it had answered: what was signed for such a nonce may be on its way, or be asked for again.
 */
import type { Address } from "../../chain/address.js";
import type { HotWalletState } from "../../ledger/withdrawals/wallet-lease.js";
import { behindReason } from "../../ledger/withdrawals/signing-freeze.js";
import type { LaneContext } from "./lane-context.js";
import type { WalletView } from "./wallet-node.js";

/** A wallet's row, and what this process was shown of it before. */
export interface ShownWallet extends HotWalletState {
  /** The highest next nonce that was ever shown; absent where nobody keeps it. */
  readonly shownNonce?: bigint;
}

/** What the lanes of one process have seen, for all its wallets. */
export class ShownNonces {
  readonly #highest = new Map<Address, bigint>();

  /** The highest of each wallet. */
  get all(): ReadonlyMap<Address, bigint> {
    return this.#highest;
  }

  /** Takes a wallet's next nonce in. @returns the highest that was ever shown */
  note(wallet: Address, nextNonce: bigint): bigint {
    const before = this.#highest.get(wallet) ?? 0n;
    const highest = nextNonce > before ? nextNonce : before;
    this.#highest.set(wallet, highest);
    return highest;
  }

  /** The wallet is frozen for it, or knows the nonces again: what is shown from now on counts. */
  forget(wallet: Address): void {
    this.#highest.delete(wallet);
  }
}

/**
 * Freezes a wallet whose ledger has given fewer nonces than the chain has used, the pool holds, or this
 * process was shown: the key was used elsewhere, or the ledger is an older one.
 * @param row read behind the chain
 */
export async function freezeIfBehind(
  { ledger, log }: Pick<LaneContext, "ledger" | "log">,
  wallet: Address,
  view: Pick<WalletView, "nonce" | "pendingNonce">,
  row: Pick<ShownWallet, "nextNonce" | "shownNonce">,
): Promise<void> {
  const seen = [view.nonce, view.pendingNonce, row.shownNonce ?? 0n].reduce((left, right) =>
    left > right ? left : right,
  );
  if (seen <= row.nextNonce) return;
  const reason = behindReason(seen, row.nextNonce);
  if (await ledger.freezeBehindChain({ wallet, seen, reason })) {
    log.error({ wallet, reason }, "signing is frozen");
  }
}
