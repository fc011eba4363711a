/** What holdings ask for: bands are of all wallets together, a payment is of one. */
import { describe, expect, it } from "@jest/globals";
import { decideBand } from "../../../../withdrawal-worker/treasury/band-decision.js";
import { testAddress } from "../../../helpers/chains/fake-chain.js";
import { createRandom } from "../../../helpers/random.js";

const BAND = { lowUnits: 100n, targetUnits: 200n, highUnits: 500n };
const WALLETS = [testAddress(1), testAddress(2), testAddress(3)];

function decide(held: readonly bigint[], sumUnits = 0n, largestUnits = sumUnits, band = BAND) {
  const holdings = held.map((freeUnits, index) => ({
    wallet: WALLETS[index] ?? testAddress(9),
    freeUnits,
  }));
  return decideBand(holdings, { sumUnits, largestUnits }, band);
}

const cold = (amountUnits: bigint) => ({ kind: "cold", amountUnits });

describe("the band of all wallets", () => {
  it.each([
    ["below its low end asks for what is missing to the target", [40n, 20n], 0n, "refill", 140n],
    ["between low end and target asks for nothing new", [90n, 20n], 0n, "low", 90n],
    ["within it has enough", [300n, 200n], 0n, "enough", undefined],
    ["above it sends what is beyond the target", [501n], 0n, "cold", 301n],
    ["counts what is waited for as gone", [450n], 260n, "low", 10n],
    ["counts what a wallet lacks as gone", [150n, -60n], 0n, "refill", 110n],
  ] as const)("%s", (_what, held, waiting, kind, amountUnits) => {
    const more = amountUnits === undefined ? {} : { amountUnits };
    expect(decide(held, waiting)).toEqual({ kind, ...more });
  });

  it("sends no more at once than one wallet has", () => {
    expect(decide([400n, 300n, 300n])).toEqual(cold(400n));
  });
});

describe("one payment of one wallet", () => {
  it("is left what it needs where only the fullest wallet has that", () => {
    expect(decide([1_000n, 500n], 900n)).toEqual(cold(100n));
    expect(decide([900n, 899n], 900n)).toEqual({ kind: "enough" });
  });

  it("is asked for where no wallet has it, however much they have together", () => {
    const refill = { kind: "refill", wallet: WALLETS[0] };
    expect(decide([600n, 500n], 900n)).toEqual({ ...refill, amountUnits: 300n });
    expect(decide([600n, 600n, 600n], 900n)).toEqual({ ...refill, amountUnits: 300n });
    expect(decide([0n, 70n], 900n)).toEqual({
      kind: "refill",
      wallet: WALLETS[1],
      amountUnits: 1_030n,
    });
    expect(decide([-5n], 1n, 1n)).toMatchObject({ kind: "refill", wallet: WALLETS[0] });
  });

  it("stays with the wallet that is asked for already, unless that may be given nothing, or lacks much more", () => {
    const named = (wallet: (typeof WALLETS)[number] | undefined, firstUnits = 600n) => {
      const holdings = [firstUnits, 590n].map((freeUnits, index) => {
        return { wallet: WALLETS[index] ?? testAddress(9), freeUnits };
      });
      return decideBand(holdings, { sumUnits: 900n, largestUnits: 900n }, BAND, wallet);
    };
    const [first, second, gone] = WALLETS;
    expect(named(second)).toEqual({ kind: "refill", wallet: second, amountUnits: 310n });
    expect(named(second, 800n)).toEqual({ kind: "refill", wallet: first, amountUnits: 100n });
    expect(named(gone)).toEqual({ kind: "refill", wallet: first, amountUnits: 300n });
    expect(named(undefined)).toEqual(named(gone));
  });

  it("keeps nothing in cold storage's way that another wallet pays", () => {
    expect(decide([900n, 900n], 900n)).toEqual(cold(700n));
  });

  it("is covered still where it comes before the move to cold storage", () => {
    expect(decide([1_000n, 900n], 5n)).toEqual(cold(995n));
    expect(decide([1_000n, 900n], 20n, 5n)).toEqual(cold(980n));
  });

  it("of many does not keep the band from being kept for as long as they wait", () => {
    expect(decide([1_000n, 1_000n, 1_000n], 1_200n, 10n)).toEqual(cold(500n));
  });
});

it("leaves one wallet that pays the largest, and one that pays the move, in whichever order", () => {
  const random = createRandom(55);
  for (let run = 0; run < 5_000; run += 1) {
    const count = 1 + random.integer(3);
    const held = Array.from({ length: count }, () => BigInt(random.integer(2_000)));
    const largest = BigInt(random.integer(1_500));
    const decision = decide(held, largest);
    if (decision.kind !== "cold") continue;
    const { amountUnits } = decision;
    const facts = `held ${held.join(" ")}, largest ${largest}, moved ${amountUnits}`;
    const pays = (units: bigint, from: readonly bigint[]) =>
      from.flatMap((each, index) =>
        each >= units ? [from.map((other, at) => (at === index ? other - units : other))] : [],
      );
    const movedFirst = pays(amountUnits, held);
    const paidFirst = pays(largest, held);
    expect([facts, movedFirst.length > 0, paidFirst.length > 0]).toEqual([facts, true, true]);
    for (const left of movedFirst)
      expect([facts, pays(largest, left).length > 0]).toEqual([facts, true]);
    for (const left of paidFirst) {
      expect([facts, pays(amountUnits, left).length > 0]).toEqual([facts, true]);
    }
  }
});
