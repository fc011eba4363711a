/** Reasons of refusals as Solidity's `Error(string)`, which every client and `catch` reads. */
import {
  type AbiParameter,
  selectorOf,
  signatureHash,
  signatureOf,
} from "../../../chain/evm/abi/abi-types.js";
import { encodeAbi } from "../../../chain/evm/abi/abi-values.js";
import { hexToBytes } from "../../../chain/hex.js";

const REASON: readonly AbiParameter[] = [
  { name: "reason", type: { kind: "string" }, isIndexed: false },
];
const SELECTOR = hexToBytes(selectorOf(signatureHash(signatureOf("Error", REASON))));

/** What a frame that reverts for a reason gives back. */
export function revertData(reason: string): Uint8Array {
  return Buffer.concat([SELECTOR, encodeAbi(REASON, [reason])]);
}
