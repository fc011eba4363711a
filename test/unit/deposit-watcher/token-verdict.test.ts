import { describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { keccak256Hex } from "../../../chain/hashes.js";
import type { TokenSide } from "../../../deposit-watcher/tokens/token-side.js";
import {
  judgeTouch,
  noVerdicts,
  payersInQuestion,
  touchesOf,
} from "../../../deposit-watcher/tokens/token-verdict.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { testAddress } from "../../helpers/chains/fake-chain.js";

const alice = testAddress(1);
const hotWallet = testAddress(2);
const contract = testAddress(3);
const hashOf = (text: string) => keccak256Hex(Buffer.from(text));
const owners = {
  walletFrom: (address: Address) => (address === hotWallet ? 0 : undefined),
  customerOf: (address: Address) => (address === alice ? parseCustomerId("alice") : undefined),
  isExplained: ({ hash }: { readonly hash: string }) =>
    hash === hashOf("payment of ours") || hash === hashOf("sweep of ours"),
};

let opIndex = 0;

/** A side of a transfer at an address, each with an index of its own. */
function side(units: bigint, address = alice, tx = "a"): TokenSide {
  opIndex += 1;
  return {
    asset: "GOLD",
    contract,
    address,
    units,
    counterparty: testAddress(9),
    height: 5,
    blockHash: hashOf("block"),
    txHash: hashOf(tx),
    txIndex: 0,
    opIndex,
  };
}

/** What sides come to with these balances around the block. */
function judge(sides: readonly TokenSide[], before: bigint | undefined, after: bigint | undefined) {
  const verdicts = noVerdicts();
  for (const touch of touchesOf(sides)) {
    judgeTouch(touch, { beforeUnits: before, afterUnits: after }, owners, verdicts);
  }
  const { deposits, walletInflows, outflows, sightings, surpluses } = verdicts;
  return {
    deposits: deposits.map(({ amountUnits }) => amountUnits),
    wallet: walletInflows.map(({ amountUnits }) => amountUnits),
    outflows: outflows.map(({ amountUnits }) => amountUnits),
    sightings: sightings.map(({ reason, claimed }) => `${reason} ${claimed}`),
    surpluses: surpluses.map(({ amountUnits }) => amountUnits),
  };
}

const nothing = { deposits: [], wallet: [], outflows: [], sightings: [], surpluses: [] };

describe("what a token's balances say of its claims", () => {
  it("is what arrived, where both agree", () => {
    expect(judge([side(10n), side(5n)], 100n, 115n)).toEqual({ ...nothing, deposits: [10n, 5n] });
  });

  it("counts what left in the same block, sweeps included", () => {
    expect(judge([side(10n), side(-60n, alice, "sweep")], 100n, 50n)).toEqual({
      ...nothing,
      deposits: [10n],
      outflows: [60n],
    });
  });

  it("is no more than the balance rose by, and the rest is recorded", () => {
    expect(judge([side(100n), side(50n)], 0n, 120n)).toEqual({
      ...nothing,
      deposits: [100n, 20n],
      sightings: ["SHORTFALL 30"],
    });
    expect(judge([side(100n)], 7n, 7n)).toEqual({ ...nothing, sightings: ["NOT_ARRIVED 100"] });
    expect(judge([side(100n)], 7n, 3n)).toEqual({ ...nothing, sightings: ["NOT_ARRIVED 100"] });
  });

  it("is in suspense where it came unsaid", () => {
    expect(judge([side(100n)], 0n, 130n)).toEqual({
      ...nothing,
      deposits: [100n],
      surpluses: [30n],
    });
  });

  it("gives and leaves no more than there can be of a token, whatever it logs", () => {
    const all = 2n ** 256n - 1n;
    const gone = Array.from({ length: 10 }, () => side(-all, alice, "sweep of ours"));
    expect(judge([...gone, side(5n)], 5n, 5n)).toEqual({
      ...nothing,
      deposits: [5n],
      outflows: [all],
      surpluses: [all],
    });
  });

  it("is nothing where the contract does not tell", () => {
    const unreadable = { ...nothing, sightings: ["UNREADABLE 100"] };
    expect(judge([side(100n)], undefined, 100n)).toEqual(unreadable);
    expect(judge([side(100n)], 0n, undefined)).toEqual(unreadable);
  });

  it("is the exchange's own at the hot wallet", () => {
    expect(judge([side(8n, hotWallet)], 0n, 8n)).toEqual({ ...nothing, wallet: [8n] });
  });

  it("is an outflow of the hot wallet as far as its balance fell", () => {
    const claim = (units: bigint, tx = "claim") => side(units, hotWallet, tx);
    expect(judge([claim(-5n)], 100n, 100n)).toEqual({ ...nothing, sightings: ["NOT_LEFT 5"] });
    expect(judge([claim(-5n)], 100n, 95n)).toEqual({ ...nothing, outflows: [5n] });
    expect(judge([claim(-5n)], 100n, 98n)).toEqual({
      ...nothing,
      outflows: [2n],
      sightings: ["NOT_LEFT 3"],
    });
    // What came in the same block is counted.
    expect(judge([claim(5n, "inflow"), claim(-5n)], 100n, 100n)).toEqual({
      ...nothing,
      wallet: [5n],
      outflows: [5n],
    });
    // Behind what is gone nobody knows which claim was true.
    expect(judge([claim(-5n)], undefined, 100n)).toEqual({ ...nothing, outflows: [5n] });
  });

  it("is an outflow of the hot wallet in full where it is a payment of ours", () => {
    const sides = [side(-5n, hotWallet, "payment of ours"), side(-7n, hotWallet, "claim")];
    expect(judge(sides, 100n, 95n)).toEqual({
      ...nothing,
      outflows: [5n],
      sightings: ["NOT_LEFT 7"],
    });
    expect(judge(sides.slice(0, 1), 100n, 100n)).toEqual({
      ...nothing,
      outflows: [5n],
      surpluses: [5n],
    });
  });

  it("is an outflow of a deposit address as far as its balance fell", () => {
    expect(judge([side(-5n)], 10n, 10n)).toEqual({ ...nothing, sightings: ["NOT_LEFT 5"] });
    expect(judge([side(-5n)], 10n, 5n)).toEqual({ ...nothing, outflows: [5n] });
    expect(judge([side(10n), side(-5n, alice, "claim")], 10n, 20n)).toEqual({
      ...nothing,
      deposits: [10n],
      sightings: ["NOT_LEFT 5"],
    });
    expect(judge([side(-5n)], undefined, 10n)).toEqual({ ...nothing, outflows: [5n] });
  });

  it("is an outflow of a deposit address in full where it is a sweep of ours", () => {
    expect(judge([side(-5n, alice, "sweep of ours")], 10n, 10n)).toEqual({
      ...nothing,
      outflows: [5n],
      surpluses: [5n],
    });
  });

  it("is what a transaction left there, where it takes of what it brings", () => {
    expect(judge([side(100n), side(-3n)], 0n, 97n)).toEqual({
      ...nothing,
      deposits: [97n],
      sightings: ["SHORTFALL 3"],
    });
    expect(judge([side(8n, hotWallet), side(-1n, hotWallet)], 0n, 7n)).toEqual({
      ...nothing,
      wallet: [7n],
      sightings: ["SHORTFALL 1"],
    });
    expect(judge([side(-3n), side(100n)], 50n, 147n)).toEqual({
      ...nothing,
      deposits: [97n],
      sightings: ["SHORTFALL 3"],
    });
    expect(judge([side(5n), side(-5n)], 9n, 9n)).toEqual({
      ...nothing,
      sightings: ["NOT_ARRIVED 5"],
    });
  });

  it("takes of the last that a transaction brought first, and never of what another one did", () => {
    const sides = [side(10n), side(4n), side(20n, alice, "b"), side(-6n), side(3n)];
    expect(judge(sides, 0n, 31n)).toEqual({
      ...nothing,
      deposits: [10n, 1n, 20n],
      sightings: ["SHORTFALL 3", "NOT_ARRIVED 3"],
    });
    const apart = [side(100n), side(-60n, alice, "b"), side(-3n)];
    expect(judge(apart, 60n, 97n)).toEqual({
      ...nothing,
      deposits: [97n],
      outflows: [60n],
      sightings: ["SHORTFALL 3"],
    });
  });

  it("is an outflow as far as a transaction takes beyond what it brought", () => {
    const sides = [side(10n, hotWallet), side(-60n, hotWallet)];
    expect(judge(sides, 100n, 50n)).toEqual({
      ...nothing,
      outflows: [50n],
      sightings: ["NOT_ARRIVED 10"],
    });
    // What it only says that it brought hides nothing of what it took.
    expect(judge([side(100n, hotWallet), side(-100n, hotWallet)], 100n, 0n)).toEqual({
      ...nothing,
      outflows: [100n],
      sightings: ["NOT_ARRIVED 100"],
    });
    expect(judge([side(100n, hotWallet), side(-100n, hotWallet)], 100n, 40n)).toEqual({
      ...nothing,
      outflows: [60n],
      sightings: ["NOT_ARRIVED 100"],
    });
    // What it only says that it took is nothing that it took.
    expect(judge([side(100n, hotWallet), side(-100n, hotWallet)], 0n, 100n)).toEqual({
      ...nothing,
      wallet: [100n],
      sightings: ["NOT_LEFT 100"],
    });
    expect(judge(sides, undefined, 50n)).toEqual({
      ...nothing,
      outflows: [60n],
      sightings: ["UNREADABLE 10"],
    });
  });

  it("takes nothing of what a payment or a sweep of ours brings back", () => {
    for (const tx of ["payment of ours", "sweep of ours"]) {
      expect(judge([side(-60n, hotWallet, tx), side(10n, hotWallet, tx)], 100n, 50n)).toEqual({
        ...nothing,
        wallet: [10n],
        outflows: [60n],
      });
      expect(judge([side(-60n, alice, tx), side(10n, alice, tx)], 100n, 50n)).toEqual({
        ...nothing,
        deposits: [10n],
        outflows: [60n],
      });
    }
  });

  it("asks what explains a transaction that takes of what it brings", () => {
    const ask = (sides: readonly TokenSide[], before: bigint, after: bigint) => {
      const balances = { beforeUnits: before, afterUnits: after };
      return touchesOf(sides).flatMap((touch) => {
        return payersInQuestion(touch, balances).map(({ hash }) => hash);
      });
    };
    const both = [side(100n), side(-3n), side(-5n, alice, "b")];
    expect(ask(both, 5n, 97n)).toEqual([hashOf("a")]);
    expect(ask(both, 5n, 102n)).toEqual([hashOf("a"), hashOf("b")]);
    expect(ask([side(100n), side(-5n, alice, "b")], 5n, 100n)).toEqual([]);
  });
});
