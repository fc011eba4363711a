/** One side of a token's transfer at one of our addresses, as operations or logs tell it. */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { TransferLog } from "../../rpc-client/tokens/transfer-logs.js";

/** A claim of a contract: it counts as far as the balance confirms it. */
export interface TokenSide {
  readonly asset: string;
  readonly contract: Address;
  /** Ours. */
  readonly address: Address;
  /** Signed, never zero. */
  readonly units: bigint;
  /** Undefined for a mint or a burn. */
  readonly counterparty: Address | undefined;
  readonly height: Height;
  readonly blockHash: Hash32;
  readonly txHash: Hash32;
  readonly txIndex: number;
  readonly opIndex: number;
}

/**
 * Of a transfer that the Data API has no operation for, the index is the position of its log in the
 * block above this; no transaction has so many operations.
 */
export const LOG_INDEX_BASE = 1_000_000_000;

/** `opIndex` of a transfer that only a log tells. */
export function opIndexOfLog({ logIndex }: Pick<TransferLog, "logIndex">): number {
  return LOG_INDEX_BASE + logIndex;
}

/** Sides of a standard ERC-20 transfer at our addresses; none where nothing moved. */
export function sidesOfLog(
  log: TransferLog,
  asset: string,
  isOurs: (address: Address) => boolean,
): TokenSide[] {
  const { from, to, value = 0n, contract, height, blockHash, txHash, txIndex } = log;
  if (value === 0n || from === to) return [];
  const opIndex = opIndexOfLog(log);
  const place = { asset, contract, height, blockHash, txHash, txIndex, opIndex };
  const sides: TokenSide[] = [];
  if (from !== undefined && isOurs(from)) {
    sides.push({ ...place, address: from, units: -value, counterparty: to });
  }
  if (to !== undefined && isOurs(to)) {
    sides.push({ ...place, address: to, units: value, counterparty: from });
  }
  return sides;
}
