/** What a transaction brought to addresses of ours, as its operations and its logs tell. */
import type { Address } from "../../chain/address.js";
import { NATIVE_ASSET } from "../../ledger/journal/accounts.js";
import type { Brought } from "../../ledger/treasury/top-ups.js";
import type { DataTransaction } from "../../rpc-client/data-api/data-block.js";
import type { NodeReceipt } from "../../rpc-client/transaction-codec.js";
import { OtherSides } from "../deposit-match.js";

/** Coins that a transaction brought to addresses of ours. */
export function arrivalsIn(
  transaction: DataTransaction | undefined,
  isOurs: (address: Address) => boolean,
): readonly Brought[] {
  if (transaction === undefined) return [];
  const sides = new OtherSides(transaction);
  return transaction.operations
    .filter(({ address, isNative, amountAtoken, status }) => {
      return isOurs(address) && isNative && amountAtoken > 0n && status === "SUCCESS";
    })
    .filter((operation) => !sides.isSelfPaid(operation))
    .map(({ address, amountAtoken: amountUnits }) => {
      return { address, asset: NATIVE_ASSET, amountUnits, txHash: transaction.hash };
    });
}

/** Tokens that a transaction says it brought to addresses of ours: its operations, then its logs. */
export function claimsIn(
  transaction: DataTransaction | undefined,
  receipt: Pick<NodeReceipt, "transfers"> | undefined,
  isOurs: (address: Address) => boolean,
): readonly { readonly contract: Address; readonly address: Address }[] {
  const { operations = [] } = transaction ?? {};
  const sides = new OtherSides({ operations });
  const told = operations.flatMap((operation) => {
    const { address, contract, amountAtoken, status } = operation;
    const isArrival = isOurs(address) && amountAtoken > 0n && status === "SUCCESS";
    if (contract === undefined || !isArrival || sides.isSelfPaid(operation)) return [];
    return [{ contract, address }];
  });
  const logged = (receipt?.transfers ?? []).flatMap(({ contract, from, to, units }) => {
    if (to === undefined || to === from || units === 0n || !isOurs(to)) return [];
    return [{ contract, address: to }];
  });
  return [...told, ...logged];
}
