/**
 * Next nonces as a ledger has shown them to this process. They never fall, but where a database has lost
 * commits that it had answered: what was signed for such a nonce may be on its way, or be asked for again.
 */
import type { Address } from "../../chain/address.js";
import {
  isLetGo,
  type KnownNonces,
  type ShownNonce,
} from "../../ledger/requests/signing-freeze.js";
import type { HotWalletState } from "../../ledger/wallets/wallet-lease.js";

/** What the lanes of one process have seen, for all its wallets. */
export class ShownNonces {
  readonly #highest = new Map<Address, ShownNonce>();
  /** When each wallet was let go on last, as far as this process was shown. */
  readonly #releasedAt = new Map<Address, bigint>();
  #epoch = 0;
  #wasChainAsked = false;

  /** Whether the chain was asked about all wallets since this process began: before, nothing was shown. */
  get wasChainAsked(): boolean {
    return this.#wasChainAsked;
  }

  /** The chain was asked about all wallets. */
  chainAsked(): void {
    this.#wasChainAsked = true;
  }

  /** The highest of each wallet. */
  get all(): KnownNonces {
    return this.#highest;
  }

  /**
   * Takes a wallet's next nonce in, as the ledger shows it in this epoch: a recovery has looked at chain
   * and pool, and what was shown before it counts no more. Nor does what a person has let go since. A freeze
   * ends nothing: it may be lost as well.
   * @returns the highest that was shown
   */
  note(
    wallet: Address,
    { nextNonce, epoch, released }: Pick<HotWalletState, "nextNonce" | "epoch" | "released">,
  ): bigint {
    if (epoch > this.#epoch) {
      this.#highest.clear();
      this.#epoch = epoch;
    }
    const seen = this.#highest.get(wallet)?.nonce ?? 0n;
    const knownAt = this.#releasedAt.get(wallet);
    const before = isLetGo(released, { seen, knownAt }) ? 0n : seen;
    if (released !== undefined && released.at > (knownAt ?? -1n)) {
      this.#releasedAt.set(wallet, released.at);
    }
    const highest = nextNonce > before ? nextNonce : before;
    this.#highest.set(wallet, { nonce: highest, releasedAt: this.#releasedAt.get(wallet) });
    return highest;
  }
}
