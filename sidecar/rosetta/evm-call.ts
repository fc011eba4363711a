/**
 * What an intent is as a call of the EVM, and what a call means. Two kinds of calldata have a meaning
 * here: `transfer(address,uint256)` of a registered token, and what an account does through the
 * chain's own contracts with its stake, rewards and votes. They are never a CALL, so that a
 * transaction has exactly one reading.
 */
import { type Address, ZERO_ADDRESS } from "../../chain/address.js";
import { decodeTransfer, encodeTransfer } from "../../chain/evm/erc20.js";
import type { Hex } from "../../chain/hex.js";
import {
  decodeStakingCall,
  encodeStakingCall,
  otherStakingChangeOf,
  stakingKindOf,
} from "../../chain/staking/calls.js";
import type { Atoken } from "../../chain/units.js";
import { fault, type Place } from "./request-fields.js";
import { STAKE_TYPE_OF, stakeIntent, type StakeIntent } from "./stake-intent.js";
import type { Token, TokenRegistry } from "./token-registry.js";

/** A transfer of native coins, or a call that carries them (possibly none). */
export interface CallIntent {
  readonly type: "CALL";
  readonly from: Address;
  readonly to: Address;
  readonly valueAtoken: Atoken;
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
export type Intent = CallIntent | TokenIntent | StakeIntent;

/** The part of a transaction that an intent decides. */
export interface EvmCall {
  readonly to: Address;
  readonly valueAtoken: Atoken;
  /** Calldata, `0x` for none. */
  readonly data: Hex;
}

/**
 * The call of an intent.
 * @param data calldata of a CALL; that of a token transfer follows from the intent
 */
export function callOf(intent: Intent, data: Hex): EvmCall {
  if (intent.type === "CALL") return { to: intent.to, valueAtoken: intent.valueAtoken, data };
  if ("call" in intent) {
    return { ...encodeStakingCall(intent.from, intent.call), valueAtoken: 0n };
  }
  const { token, to, amountUnits } = intent;
  return { to: token.contractAddress, valueAtoken: 0n, data: encodeTransfer({ to, amountUnits }) };
}

/**
 * The intent behind a call: a token transfer, or something to do with stake, only where `callOf`
 * would give these very bytes. A transfer to the sender itself, or to the zero address, is a CALL: no
 * operations ask for one.
 */
export function intentOf(from: Address, call: EvmCall, registry: TokenRegistry): Intent {
  const { to, valueAtoken, data } = call;
  const staking = valueAtoken > 0n ? undefined : decodeStakingCall(from, { to, data });
  if (staking !== undefined) return stakeIntent(from, staking);
  const transfer = transferOf(from, call, registry);
  if (transfer !== undefined && transfer.to !== from) return transfer;
  return { type: "CALL", from, to, valueAtoken };
}

/** The transfer of a registered token that a call asks for, to whomever but the zero address. */
export function transferOf(
  from: Address,
  { to, valueAtoken, data }: EvmCall,
  registry: TokenRegistry,
): TokenIntent | undefined {
  const token = registry.byAddress(to);
  const transfer = token === undefined || valueAtoken > 0n ? undefined : decodeTransfer(data);
  // One to the zero address is refused by common tokens.
  if (token === undefined || transfer === undefined || transfer.to === ZERO_ADDRESS) {
    return undefined;
  }
  return { type: "ERC20_TRANSFER", from, token, ...transfer };
}

/**
 * Calldata that a caller chose for an intent, checked: only a CALL has any of its own, and none
 * may hide another intent. What changes something at the chain's contracts for stake, rewards or votes is
 * none of a CALL in any spelling: their functions take many that operations have not, and some, by which
 * coins of the sender leave without a value, have no operations at all.
 * @param data `0x` for none
 * @throws the place's error
 */
export function checkChosenData(
  intent: Intent,
  data: Hex,
  { registry, place }: { readonly registry: TokenRegistry; readonly place: Place },
): void {
  if (intent.type !== "CALL") {
    // A memo after the arguments would reach the chain, but no reader could tell it from a call
    // with dirty calldata, and contracts that check the length would revert.
    if (data !== "0x") throw fault(place, `no data and no memo with ${intent.type}`);
    return;
  }
  const call = callOf(intent, data);
  const untold = otherStakingChangeOf(call);
  if (untold !== undefined) {
    throw fault(place, `no call of ${untold}: no operations say what it does`);
  }
  const kind = stakingKindOf(call);
  const type =
    kind === undefined ? intentOf(intent.from, call, registry).type : STAKE_TYPE_OF[kind];
  if (type === "CALL") return;
  const what = type === "ERC20_TRANSFER" ? "a transfer of a registered token" : "this call";
  throw fault(place, `${type} operations for ${what}`);
}
