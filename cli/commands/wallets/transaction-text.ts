/** Transactions of the hot wallets in words, for persons who decide about them. */
import { toChecksumAddress } from "../../../chain/address.js";
import { NATIVE_ASSET } from "../../../ledger/journal/accounts.js";
import type { ForeignOutflow } from "../../../ledger/withdrawals/foreign-transactions.js";
import type { WalletTransaction } from "../../../ledger/withdrawals/operator-decisions.js";
import { amountText } from "../../amount-text.js";

/** Recipients that a line names; one transaction may pay thousands. */
const MAX_NAMED = 10;

/** What a line says of a transaction's own bytes. */
type Sent = Pick<
  WalletTransaction,
  "to" | "isCosmos" | "valueAtoken" | "transfer" | "taken" | "paid"
>;

/** One line about a transaction that nobody asked for. */
export function foreignLine(transaction: WalletTransaction | ForeignOutflow): string {
  const { hash, height } = transaction;
  if ("nonce" in transaction) {
    return `${hash} (block ${height}, nonce ${transaction.nonce}) sent ${sentText(transaction)}`;
  }
  const { asset, amountUnits, feeAtoken } = transaction;
  const took = asset === NATIVE_ASSET ? `${amountUnits} atoken` : amountText(asset, amountUnits);
  return `${hash} (block ${height}) took ${took} and a fee of ${feeAtoken} atoken`;
}

/**
 * What a transaction sent to whom, and what it took from the wallet beside that: coins that its bytes do not
 * say, as those of a delegation.
 */
export function sentText(transaction: Sent): string {
  const { to, valueAtoken, transfer, taken } = transaction;
  const isToken = transfer !== undefined;
  const said = {
    contract: isToken ? to : undefined,
    amountUnits: isToken ? transfer.amountUnits : valueAtoken,
  };
  const others = taken.filter(
    ({ contract, amountUnits }) => contract !== said.contract || amountUnits !== said.amountUnits,
  );
  const beside = others.length === 0 ? "" : `; it took ${others.map(takenText).join(" and ")}`;
  const receiver = isToken ? toChecksumAddress(transfer.to) : receiverText(transaction);
  return `${takenText(said)} to ${receiver}${beside}`;
}

function receiverText({ to, isCosmos, paid }: Sent): string {
  const recipients = [...new Set(paid.map(({ destination }) => toChecksumAddress(destination)))];
  const [only = "nobody, by Cosmos messages", ...others] = recipients;
  const called = isCosmos ? "Cosmos messages" : "a new contract";
  const named = to === undefined ? called : toChecksumAddress(to);
  if (others.length > 0) return `${named}, and by it something to ${manyText(recipients)}`;
  return to === undefined && isCosmos ? only : named;
}

function manyText(recipients: readonly string[]): string {
  const more = recipients.length > MAX_NAMED ? ", ..." : "";
  const named = recipients.slice(0, MAX_NAMED).join(", ");
  return `${recipients.length} addresses: ${named}${more}`;
}

function takenText({ contract, amountUnits }: WalletTransaction["taken"][number]): string {
  if (contract === undefined) return `${amountUnits} atoken`;
  return amountText(toChecksumAddress(contract), amountUnits);
}
