/** Coins and the lab's token as the chain has them: what a transaction moves, what an address holds. */
import { Interface } from "ethers";
import { NATIVE_ASSET } from "../../../ledger/journal/accounts.js";
import type { ChainTransaction } from "./chain.js";
import { type Asset, LAB_TOKEN, type Movement } from "./promises.js";

/** The calls of the lab's token that tests make or read. */
export const LAB_TOKEN_CALLS = new Interface([
  "function mint(address,uint256)",
  "function transfer(address,uint256)",
  "function balanceOf(address) view returns (uint256)",
]);

/** What it moves; a call of the token other than `transfer` counts as coins for it. */
export function movementOf(transaction: ChainTransaction, token: string | undefined): Movement {
  const { to, valueAtoken, input } = transaction;
  const call =
    token !== undefined && to === token
      ? LAB_TOKEN_CALLS.parseTransaction({ data: input, value: valueAtoken })
      : null;
  if (call?.name !== "transfer") {
    return { asset: NATIVE_ASSET, to: String(to), amountUnits: valueAtoken };
  }
  const [recipient, units] = call.args as unknown as [string, bigint];
  return { asset: LAB_TOKEN, to: recipient.toLowerCase(), amountUnits: units };
}

/** The call that answers, as a number in hex, what an address has at the head. */
export function balanceCall(
  { asset, address }: { readonly asset: Asset; readonly address: string },
  token: string | undefined,
): readonly [string, readonly unknown[]] {
  if (asset === NATIVE_ASSET) return ["eth_getBalance", [address, "latest"]];
  const data = LAB_TOKEN_CALLS.encodeFunctionData("balanceOf", [address]);
  return ["eth_call", [{ to: token, data }, "latest"]];
}

/** In words, equal for equal movements. */
export function describeMovement({ asset, to, amountUnits }: Movement): string {
  return `${amountUnits} ${asset} to ${to}`;
}
