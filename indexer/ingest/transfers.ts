/**
 * From a block to its transfers, in order: native coins as the journal has them, then tokens as
 * contracts log them. Pure. What moved nothing (zero coins, reverted frames) is not among them; a
 * log of a token is a claim, and balances made of claims are checked elsewhere.
 */
import type { Address } from "../../chain/address.js";
import type { BalanceChange } from "../../chain/balance-change.js";
import type { Height } from "../../chain/hex.js";
import type { RangedBlock } from "../../rpc-client/indexing/block-range.js";
import { tokensMoved } from "../../rpc-client/indexing/token-moves.js";

/** What kind of movement a transfer is. */
export type TransferKind =
  | "native"
  | "internal"
  | "fee"
  | "mint"
  | "burn"
  | "module"
  | "erc20"
  | "erc721"
  | "erc1155";

/** One movement of coins or tokens. */
export interface Transfer {
  readonly height: Height;
  /** Behind the last transaction for what the block itself did. */
  readonly txIndex: number;
  /** Position among the transfers of its transaction. */
  readonly seq: number;
  readonly kind: TransferKind;
  /** The journal's reason; undefined for tokens. */
  readonly reason: string | undefined;
  /** A token's contract; undefined for the coin. */
  readonly asset: Address | undefined;
  readonly from: Address | undefined;
  readonly to: Address | undefined;
  readonly amountUnits: bigint;
  readonly tokenId: bigint | undefined;
  readonly logIndex: number | undefined;
  readonly tracePath: string | undefined;
}

type Moved = Omit<Transfer, "height" | "txIndex" | "seq">;

/** Reasons of value that code moved: at the top level it is the transaction's own. */
const VALUE_REASONS: ReadonlySet<string> = new Set(["CALL", "CREATE", "CREATE2", "SELFDESTRUCT"]);

/** Shares of fees, on their way to and from the collector. */
const FEE_REASONS: ReadonlySet<string> = new Set(["FEE", "TREASURY"]);

/** Tokens have no place in the journal. */
const NO_JOURNAL = { reason: undefined, tracePath: undefined };

/** All transfers of a block. */
export function transfersOf(block: RangedBlock): Transfer[] {
  const { height, transactions, blockChanges } = block;
  const transfers: Transfer[] = [];
  let logIndex = 0;
  for (const { index, changes, logs } of transactions) {
    const first = logIndex;
    logIndex += logs.length;
    const tokens = tokensMoved(logs, first).map((one) => ({ ...NO_JOURNAL, ...one }));
    const moved: readonly Moved[] = [...changes.flatMap(coinsMoved), ...tokens];
    for (const [seq, one] of moved.entries()) {
      transfers.push({ height, txIndex: index, seq, ...one });
    }
  }
  const txIndex = transactions.length;
  for (const [seq, one] of blockChanges.flatMap(coinsMoved).entries()) {
    transfers.push({ height, txIndex, seq, ...one });
  }
  return transfers;
}

function coinsMoved(change: BalanceChange): Moved[] {
  const { reason, from, to, amountAtoken, effective, tracePath } = change;
  if (!effective || amountAtoken === 0n) return [];
  return [
    {
      kind: kindOf(change),
      reason,
      asset: undefined,
      from,
      to,
      amountUnits: amountAtoken,
      tokenId: undefined,
      logIndex: undefined,
      tracePath,
    },
  ];
}

function kindOf({ reason, from, to, tracePath }: BalanceChange): TransferKind {
  if (FEE_REASONS.has(reason)) return "fee";
  if (from === undefined) return "mint";
  if (to === undefined) return "burn";
  if (!VALUE_REASONS.has(reason)) return "module";
  return tracePath === "" && reason !== "SELFDESTRUCT" ? "native" : "internal";
}
