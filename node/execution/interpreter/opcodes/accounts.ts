/** Reads of accounts and blocks: BALANCE, EXTCODE*, BLOCKHASH and the block's fields. */
import type { Address } from "../../../../chain/address.js";
import { EMPTY_CODE_HASH, type Hash32 } from "../../../../chain/hex.js";
import type { AccountRecord } from "../../../store/account-record.js";
import { isEmptyAccount } from "../../../store/account-record.js";
import type { Frame } from "../frame.js";
import { COLD_ACCOUNT_GAS, WARM_GAS } from "../schedule.js";

/** BLOCKHASH reaches so far back. */
const HASH_WINDOW_BLOCKS = 256;

/** Charges the touch of an account (EIP-2929). */
export function chargeAccount(frame: Frame, address: Address): void {
  const isCold = frame.execution.substate.warmAddress(address);
  frame.charge(isCold ? COLD_ACCOUNT_GAS : WARM_GAS);
  if (isCold) spendOnColdAccount(frame, address);
}

/** Compute units of an account's first touch in the transaction. */
export function spendOnColdAccount(frame: Frame, address: Address): void {
  const { seenAccountNs, coldAccountNs } = frame.weights;
  frame.spend(frame.execution.reads.seeAccount(address) ? seenAccountNs : coldAccountNs);
}

/** The account, or undefined where none is or only an empty one (EIP-161). */
export function livingAccount(frame: Frame, address: Address): AccountRecord | undefined {
  const account = frame.execution.state.accountNow(address);
  return account === undefined || isEmptyAccount(account) ? undefined : account;
}

/** Hash of the account's code; of no bytes where there is none. */
export function codeHashOf(frame: Frame, address: Address): Hash32 {
  return frame.execution.state.accountNow(address)?.codeHash ?? EMPTY_CODE_HASH;
}

/** BALANCE of any account. */
export function balance(frame: Frame): void {
  const address = frame.popAddress();
  chargeAccount(frame, address);
  frame.push(frame.execution.state.accountNow(address)?.balanceAtoken ?? 0n);
}

/** SELFBALANCE (EIP-1884). */
export function selfbalance(frame: Frame): void {
  frame.push(frame.execution.state.accountNow(frame.self)?.balanceAtoken ?? 0n);
}

/** EXTCODESIZE: bytes of an account's code. */
export function extcodesize(frame: Frame): void {
  const address = frame.popAddress();
  chargeAccount(frame, address);
  frame.push(BigInt(frame.execution.state.codeSizeNow(codeHashOf(frame, address))));
}

/** EIP-1052: 0 for an account that does not exist. */
export function extcodehash(frame: Frame): void {
  const address = frame.popAddress();
  chargeAccount(frame, address);
  frame.push(BigInt(livingAccount(frame, address)?.codeHash ?? 0));
}

/** BLOCKHASH: of one of the last 256 blocks, else 0. */
export function blockhash(frame: Frame): void {
  const { block } = frame.execution;
  const height = frame.pop();
  const ageBlocks = BigInt(block.height) - height;
  if (ageBlocks < 1n || ageBlocks > HASH_WINDOW_BLOCKS) {
    frame.push(0n);
    return;
  }
  const hash = block.blockHash(Number(height));
  if (hash instanceof Promise) throw new TypeError("hashes of recent blocks must be at hand");
  frame.push(BigInt(hash));
}

/** COINBASE: the proposer's address. */
export function coinbase(frame: Frame): void {
  frame.push(BigInt(frame.execution.block.coinbase));
}

/** TIMESTAMP: seconds. */
export function timestamp(frame: Frame): void {
  frame.push(BigInt(frame.execution.block.timestampSeconds));
}

/** NUMBER: the height. */
export function number(frame: Frame): void {
  frame.push(BigInt(frame.execution.block.height));
}

/** PREVRANDAO: the parent's hash (D19). */
export function prevrandao(frame: Frame): void {
  frame.push(BigInt(frame.execution.block.mixHash));
}

/** GASLIMIT of the block. */
export function gaslimit(frame: Frame): void {
  frame.push(frame.execution.block.gasLimit);
}

/** CHAINID (EIP-1344). */
export function chainid(frame: Frame): void {
  frame.push(frame.execution.chainId);
}

/** BASEFEE (EIP-3198): 0 here (D7). */
export function basefee(frame: Frame): void {
  frame.push(frame.execution.block.baseFeeAtoken ?? 0n);
}

/** EIP-4844: there are no blobs in any transaction. */
export function blobhash(frame: Frame): void {
  frame.pop();
  frame.push(0n);
}

/** BLOBBASEFEE (EIP-7516). */
export function blobbasefee(frame: Frame): void {
  frame.push(frame.execution.block.blobBaseFeeAtoken ?? 1n);
}

/** ADDRESS: whose storage the frame has. */
export function ownAddress(frame: Frame): void {
  frame.push(BigInt(frame.self));
}

/** ORIGIN: who sent the transaction. */
export function origin(frame: Frame): void {
  frame.push(BigInt(frame.execution.origin));
}

/** CALLER: who sent the message. */
export function caller(frame: Frame): void {
  frame.push(BigInt(frame.message.caller));
}

/** CALLVALUE: atoken that came with the message. */
export function callvalue(frame: Frame): void {
  frame.push(frame.message.valueAtoken);
}

/** GASPRICE: the effective price. */
export function gasprice(frame: Frame): void {
  frame.push(frame.execution.gasPriceAtoken);
}
