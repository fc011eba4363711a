/** What a receipt has to show before a token's payment counts as paid. */
import { expect, it } from "@jest/globals";
import { isTransferLogged, type LoggedTransfer } from "../../../ledger/requests/payment-terms.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";

const [wallet, contract, destination, other] = [
  testAddress(1),
  testAddress(2),
  testAddress(3),
  testAddress(4),
];

const terms = { wallet, contract, destination, amountUnits: 10n };

const payment: LoggedTransfer = { contract, from: wallet, to: destination, units: 10n };

it.each<{
  readonly name: string;
  readonly logged: readonly LoggedTransfer[];
  readonly is: boolean;
}>([
  { name: "its transfer", logged: [payment], is: true },
  { name: "no transfer", logged: [], is: false },
  { name: "its transfer twice", logged: [payment, payment], is: false },
  { name: "another amount", logged: [{ ...payment, units: 9n }], is: false },
  { name: "another recipient", logged: [{ ...payment, to: other }], is: false },
  { name: "another token's", logged: [{ ...payment, contract: other }], is: false },
  {
    name: "another one of the wallet's beside it",
    logged: [payment, { ...payment, to: other, units: 1n }],
    is: false,
  },
  {
    name: "one of nothing beside it, to anybody",
    logged: [{ ...payment, to: other, units: 0n }, payment, { ...payment, units: 0n }],
    is: true,
  },
  {
    name: "somebody else's beside it",
    logged: [payment, { ...payment, from: destination, to: other }],
    is: true,
  },
])("tells from $name", ({ logged, is }) => {
  expect(isTransferLogged(terms, logged)).toBe(is);
});
