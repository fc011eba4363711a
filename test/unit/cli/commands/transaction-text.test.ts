/** What persons are told of a hot wallet's transactions before they decide about them. */
import { describe, expect, it } from "@jest/globals";
import { type Address, toChecksumAddress } from "../../../../chain/address.js";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { foreignLine, sentText } from "../../../../cli/commands/wallets/transaction-text.js";
import type { WalletTransaction } from "../../../../ledger/withdrawals/operator-decisions.js";
import { testAddress } from "../../../helpers/chains/fake-chain.js";

const [ALICE, BOB, GOLD] = [1, 2, 3].map(testAddress) as [Address, Address, Address];
const [alice, bob, gold] = [ALICE, BOB, GOLD].map(toChecksumAddress);

const coins = (amountUnits: bigint) => ({ contract: undefined, amountUnits });

/** A transaction of Cosmos that sent nothing. */
const COSMOS: WalletTransaction = {
  hash: keccak256Hex(Buffer.from("a transaction")),
  height: 7,
  nonce: 3n,
  to: undefined,
  isCosmos: true,
  isSuccess: true,
  valueAtoken: 0n,
  transfer: undefined,
  taken: [],
  paid: [],
  gasUsed: 21_000n,
  gasPriceAtoken: 1n,
};

describe("a hot wallet's transaction in words", () => {
  it("is no creation of a contract where it is of Cosmos, and says what a delegation took", () => {
    expect(foreignLine({ ...COSMOS, taken: [coins(1_000n)] })).toBe(
      `${COSMOS.hash} (block 7, nonce 3) sent 0 atoken to nobody, by Cosmos messages; ` +
        "it took 1000 atoken",
    );
  });

  it("names whom Cosmos messages paid, once or twice the same, or several", () => {
    const toAlice = { destination: ALICE, ...coins(2n) };
    const twice = { ...COSMOS, valueAtoken: 4n, taken: [coins(4n)], paid: [toAlice, toAlice] };
    expect(sentText(twice)).toBe(`4 atoken to ${alice}`);
    const both = { ...twice, paid: [toAlice, { ...toAlice, destination: BOB }] };
    expect(sentText(both)).toBe(
      `4 atoken to Cosmos messages, and by it something to 2 addresses: ${alice}, ${bob}`,
    );
  });

  it("counts all whom one paid, and names the first ten", () => {
    const paid = Array.from({ length: 11 }, (_, place) => ({
      destination: testAddress(place + 1),
      ...coins(1n),
    }));
    const text = sentText({ ...COSMOS, valueAtoken: 11n, taken: [coins(11n)], paid });
    expect(text).toContain(`something to 11 addresses: ${alice}, ${bob}`);
    expect(text.split("0x")).toHaveLength(11);
    expect(text).toContain(", ...");
  });

  it("says what a call without value took, in coins or tokens", () => {
    const taken = [coins(5n), { contract: GOLD, amountUnits: 6n }];
    expect(sentText({ ...COSMOS, isCosmos: false, to: BOB, taken })).toBe(
      `0 atoken to ${bob}; it took 5 atoken and 6 units of ${gold}`,
    );
  });

  it("is one amount to one address where that is all", () => {
    const evm = { ...COSMOS, isCosmos: false };
    expect(sentText({ ...evm, to: BOB, valueAtoken: 5n, taken: [coins(5n)] })).toBe(
      `5 atoken to ${bob}`,
    );
    const transfer = { to: ALICE, amountUnits: 6n };
    const taken = [{ contract: GOLD, amountUnits: 6n }];
    expect(sentText({ ...evm, to: GOLD, transfer, taken })).toBe(`6 units of ${gold} to ${alice}`);
    expect(sentText(evm)).toBe("0 atoken to a new contract");
  });
});
