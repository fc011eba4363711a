/** What a release asks of the chain, what an operator may decide in it, and what it came to. */
import type { Address } from "../../../chain/address.js";
import type { Hash32, Height } from "../../../chain/hex.js";
import type { SqlDatabase } from "../../../runtime/sql/sql.js";
import type { KillSwitchState } from "../../kill-switch/kill-switch-level.js";
import type { ForeignOutflow } from "../foreign-transactions.js";
import type { WalletTransaction } from "../operator-decisions.js";
import type { ForeignPayment } from "../../requests/possible-payments.js";
import type { MinedReceipt } from "../slot-outcomes.js";
import type { WithdrawalId } from "../../requests/withdrawal-id.js";

/** What a release asks of the chain, for one hot wallet. */
export interface WalletChain {
  readonly headHeight: () => Promise<Height>;
  /** The wallet's next nonce after a block, or behind everything that waits in the node's pool. */
  readonly nonceAt: (at: Height | "pending") => Promise<bigint>;
  /** In the order of the hashes; undefined for what is not mined. */
  readonly receipts: (hashes: readonly Hash32[]) => Promise<readonly (MinedReceipt | undefined)[]>;
  /**
   * Nonces, rising, of what the node's pool has of the wallet and no block can take yet; undefined where it
   * does not tell.
   */
  readonly queuedNonces: () => Promise<readonly bigint[] | undefined>;
  /** What the wallet signed in these blocks, both included, in order. */
  readonly transactions: (range: {
    readonly from: Height;
    readonly to: Height;
  }) => Promise<readonly WalletTransaction[]>;
}

/** What a transaction of a block may have paid, whoever signed it; undefined where nothing shows it. */
export type ShowPayment = (asked: {
  readonly hash: Hash32;
  readonly height: Height;
}) => Promise<ForeignPayment | undefined>;

/** One thing that a release did, for the command to tell. */
export type ReleaseStep =
  | { readonly step: "signing-released" }
  | { readonly step: "foreign-accepted"; readonly nextNonce: bigint; readonly count: number }
  /** Waiting withdrawals that a foreign transaction may have paid: they froze. */
  | { readonly step: "equal-frozen"; readonly count: number }
  | { readonly step: "found-mined"; readonly id: WithdrawalId; readonly hash: Hash32 }
  | { readonly step: "slot-resumed"; readonly id: WithdrawalId; readonly nonce: bigint }
  | { readonly step: "nonce-replaced"; readonly id: WithdrawalId; readonly foreignHash: Hash32 }
  | { readonly step: "unpaid-resumed"; readonly id: WithdrawalId }
  | { readonly step: "payment-adopted"; readonly id: WithdrawalId; readonly hash: Hash32 };

/** Why something stays frozen. */
export type ReleaseObstacle =
  /** An incident halts signing whatever the switch says. */
  | { readonly obstacle: "incident"; readonly reason: string }
  /** So does the kill switch, which is lifted by its own word alone. */
  | { readonly obstacle: "kill-switch"; readonly killSwitch: KillSwitchState }
  | { readonly obstacle: "foreign-pending"; readonly waiting: string }
  /** Something froze the wallet since the release began to look, and nobody has looked at that. */
  | { readonly obstacle: "frozen-meanwhile"; readonly wallet: Address; readonly reason: string }
  /** Nobody has acknowledged these yet. */
  | {
      readonly obstacle: "foreign-mined";
      readonly transactions: readonly (WalletTransaction | ForeignOutflow)[];
    }
  | { readonly obstacle: "undecided"; readonly id: WithdrawalId; readonly reason: string }
  /** A token's payment is mined and did not log its transfer: a person says whether it paid. */
  | { readonly obstacle: "unproven"; readonly id: WithdrawalId; readonly hash: Hash32 }
  | { readonly obstacle: "nonce-unexplained"; readonly id: WithdrawalId; readonly nonce: bigint }
  | { readonly obstacle: "maybe-paid"; readonly id: WithdrawalId; readonly hash: Hash32 }
  /** The same of one that a person has booked as an outflow: a word about the withdrawal lets it go on. */
  | {
      readonly obstacle: "maybe-paid-booked";
      readonly id: WithdrawalId;
      readonly hash: Hash32;
      /** Others of which the same is true, each once. */
      readonly others: readonly Hash32[];
    }
  /** A recovered payment equals it, and a person has to say whose that was. */
  | { readonly obstacle: "recovered"; readonly id: WithdrawalId; readonly hash: Hash32 }
  | { readonly obstacle: "payment-under-way"; readonly id: WithdrawalId }
  /**
   * Its own nonce, of this wallet, is not used yet: the payment that is named, or found and booked by
   * nobody, is not its own, and may have paid it all the same.
   */
  | {
      readonly obstacle: "nonce-free";
      readonly id: WithdrawalId;
      readonly wallet: Address;
      readonly nonce: bigint;
      readonly hash: Hash32;
    }
  /** Somebody else decided about it at the same time. */
  | { readonly obstacle: "moved-meanwhile"; readonly id: WithdrawalId }
  | { readonly obstacle: "no-payment"; readonly id: WithdrawalId; readonly hash: Hash32 };

/** What a release came to; nothing stays frozen of what was asked for when `obstacles` is empty. */
export interface ReleaseReport {
  readonly steps: readonly ReleaseStep[];
  readonly obstacles: readonly ReleaseObstacle[];
}

/** What an operator decides about one frozen withdrawal. */
export type ReleaseDecision =
  | { readonly decision: "look-again" }
  /** It was never paid: pay it. */
  | { readonly decision: "not-paid" }
  /** This mined transaction of the wallet was its payment; its own nonce may be another wallet's. */
  | { readonly decision: "paid-by"; readonly hash: Hash32 };

/** Where a release works. */
export interface ReleaseContext {
  readonly database: SqlDatabase;
  readonly wallet: Address;
  /** What another wallet has paid by hand is paid, too. */
  readonly chainOf: (wallet: Address) => WalletChain;
  readonly paymentOf: ShowPayment;
}
