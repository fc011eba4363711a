/**
 * From a block to its transfers, in order: native coins as the journal has them, then tokens as
 * contracts log them. Pure. What moved nothing (zero coins, reverted frames) is not among them; a
 * log of a token is a claim, and balances made of claims are checked elsewhere.
 */
import type { Address } from "../../chain/address.js";
import type { BalanceChange } from "../../chain/balance-change.js";
import type { Height } from "../../chain/hex.js";
import type { RangedBlock } from "../../rpc-client/indexing/ranged-block.js";
import type { Steps } from "../../chain/steps/steps.js";
import { tokensMoved, unaccompaniedBy } from "../../rpc-client/indexing/token-moves.js";
import type { WrappedCoins } from "./wrapped-coins.js";

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
  /** Told by a Deposit or Withdrawal, which makes no token of a contract by itself. */
  readonly isWrapping: boolean;
  readonly tracePath: string | undefined;
}

/** Reasons of value that code moved: at the top level it is the transaction's own. */
const VALUE_REASONS: ReadonlySet<string> = new Set(["CALL", "CREATE", "CREATE2", "SELFDESTRUCT"]);

/** Shares of fees, on their way to and from the collector. */
const FEE_REASONS: ReadonlySet<string> = new Set(["FEE", "TREASURY"]);

/** All transfers of a block, in steps. @param coins told what the block says of them */
export function* transferSteps(block: RangedBlock, coins: WrappedCoins): Steps<Transfer[]> {
  const { height, transactions, blockChanges } = block;
  for (const { logs } of transactions) {
    for (const contract of unaccompaniedBy(logs)) coins.add(contract, height);
    yield;
  }
  const transfers: Transfer[] = [];
  let logIndex = 0;
  for (const { index: txIndex, changes, logs } of transactions) {
    const first = transfers.length;
    addCoins(transfers, changes, { height, txIndex });
    for (const one of tokensMoved(logs, logIndex)) {
      if (one.wrapping === "echoed" && !coins.isUnaccompanied(one.asset, height)) continue;
      transfers.push({
        height,
        txIndex,
        seq: transfers.length - first,
        kind: one.kind,
        reason: undefined,
        asset: one.asset,
        from: one.from,
        to: one.to,
        amountUnits: one.amountUnits,
        tokenId: one.tokenId,
        logIndex: one.logIndex,
        isWrapping: one.wrapping !== undefined,
        tracePath: undefined,
      });
    }
    logIndex += logs.length;
    yield;
  }
  addCoins(transfers, blockChanges, { height, txIndex: transactions.length });
  return transfers;
}

/** Changes that moved something, numbered from 0 on. */
function addCoins(
  transfers: Transfer[],
  changes: readonly BalanceChange[],
  { height, txIndex }: Pick<Transfer, "height" | "txIndex">,
): void {
  const first = transfers.length;
  for (const change of changes) {
    if (!change.effective || change.amountAtoken === 0n) continue;
    transfers.push({
      height,
      txIndex,
      seq: transfers.length - first,
      kind: kindOf(change),
      reason: change.reason,
      asset: undefined,
      from: change.from,
      to: change.to,
      amountUnits: change.amountAtoken,
      tokenId: undefined,
      logIndex: undefined,
      isWrapping: false,
      tracePath: change.tracePath,
    });
  }
}

function kindOf({ reason, from, to, tracePath }: BalanceChange): TransferKind {
  if (FEE_REASONS.has(reason)) return "fee";
  if (from === undefined) return "mint";
  if (to === undefined) return "burn";
  if (!VALUE_REASONS.has(reason)) return "module";
  // A message of the Cosmos side has no frames: what it sends is the transaction's own, as at the top level.
  const isOwn = tracePath === undefined || tracePath === "";
  return isOwn && reason !== "SELFDESTRUCT" ? "native" : "internal";
}
