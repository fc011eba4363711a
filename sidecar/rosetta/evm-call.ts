/**
 * What an intent is as a call of the EVM, and what a call means. `transfer(address,uint256)` of a
 * registered token is the one calldata that has a meaning here: it is an ERC20_TRANSFER, never a
 * CALL, so that a transaction has exactly one reading.
 */
import { type Address, ZERO_ADDRESS } from "../../chain/address.js";
import { decodeTransfer, encodeTransfer } from "../../chain/erc20.js";
import type { Hex } from "../../chain/hex.js";
import { fault, type Place } from "./request-fields.js";
import type { Token, TokenRegistry } from "./token-registry.js";

/** A transfer of native coins, or a call that carries them (possibly none). */
export interface CallIntent {
  readonly type: "CALL";
  readonly from: Address;
  readonly to: Address;
  readonly valueAtoken: bigint;
}

/** A transfer of an ERC-20 by its holder. */
export interface TokenIntent {
  readonly type: "ERC20_TRANSFER";
  readonly from: Address;
  /** The recipient, not the contract. */
  readonly to: Address;
  readonly token: Token;
  /** In the token's smallest unit. */
  readonly amountUnits: bigint;
}

/** What somebody wants to happen. */
export type Intent = CallIntent | TokenIntent;

/** The part of a transaction that an intent decides. */
export interface EvmCall {
  readonly to: Address;
  readonly valueAtoken: bigint;
  /** Calldata, `0x` for none. */
  readonly data: Hex;
}

/**
 * The call of an intent.
 * @param data calldata of a CALL; that of a token transfer follows from the intent
 */
export function callOf(intent: Intent, data: Hex): EvmCall {
  if (intent.type === "CALL") return { to: intent.to, valueAtoken: intent.valueAtoken, data };
  const { token, to, amountUnits } = intent;
  return { to: token.contractAddress, valueAtoken: 0n, data: encodeTransfer({ to, amountUnits }) };
}

/** The intent behind a call: a token transfer only where `callOf` would give these very bytes. */
export function intentOf(from: Address, call: EvmCall, registry: TokenRegistry): Intent {
  const { to, valueAtoken, data } = call;
  const token = registry.byAddress(to);
  const transfer = token === undefined || valueAtoken > 0n ? undefined : decodeTransfer(data);
  // A transfer to the zero address is refused by common tokens and is no intent.
  if (token === undefined || transfer === undefined || transfer.to === ZERO_ADDRESS) {
    return { type: "CALL", from, to, valueAtoken };
  }
  return { type: "ERC20_TRANSFER", from, token, ...transfer };
}

/**
 * Calldata that a caller chose for an intent, checked: a token transfer has none of its own, and
 * no CALL may hide one.
 * @param data `0x` for none
 * @throws the place's error
 */
export function checkChosenData(
  intent: Intent,
  data: Hex,
  { registry, place }: { readonly registry: TokenRegistry; readonly place: Place },
): void {
  if (intent.type === "ERC20_TRANSFER") {
    // A memo after the arguments would reach the chain, but no reader could tell it from a call
    // with dirty calldata, and contracts that check the length would revert.
    if (data !== "0x") throw fault(place, "no data and no memo with ERC20_TRANSFER");
  } else if (intentOf(intent.from, callOf(intent, data), registry).type !== "CALL") {
    throw fault(place, "ERC20_TRANSFER operations for a transfer of a registered token");
  }
}
