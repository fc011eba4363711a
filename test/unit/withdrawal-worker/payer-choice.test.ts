/** Which of several wallets pays which request. */
import { describe, expect, it } from "@jest/globals";
import { bytesToAddress } from "../../../chain/address.js";
import { choosePayers, type Payer } from "../../../ledger/wallets/payer-choice.js";
import { shareOf } from "../../../withdrawal-worker/lane/slots/slot-share.js";
import { createRandom } from "../../helpers/random.js";

const wallet = (number: number) => bytesToAddress(Buffer.alloc(20, number));
const [first, second] = [wallet(1), wallet(2)];

const payer = (at: number, freeAtoken: bigint, openSlots = 0): Payer => ({
  wallet: wallet(at),
  freeAtoken,
  openSlots,
});

const requests = (count: number, neededAtoken: bigint, isOverdue = false) =>
  Array.from({ length: count }, () => ({ neededAtoken, isOverdue }));

const asking = { asking: first, maxOpenSlots: 100 };

describe("the choice of who pays", () => {
  it("follows free balance for each open nonce", () => {
    const chosen = choosePayers(requests(30, 1n), [payer(1, 2_000n), payer(2, 1_000n)], asking);
    expect(chosen.filter((each) => each === first)).toHaveLength(20);
    expect(chosen.filter((each) => each === second)).toHaveLength(10);
    const deep = choosePayers(requests(1, 1n), [payer(1, 2_000n, 9), payer(2, 1_000n)], asking);
    expect(deep).toEqual([second]);
  });

  it("passes over who does not cover it, or whose window is full; nobody is told apart", () => {
    expect(choosePayers(requests(1, 500n), [payer(1, 499n), payer(2, 500n, 80)], asking)).toEqual([
      second,
    ]);
    const full = [payer(1, 9_000n, 100), payer(2, 10n)];
    expect(choosePayers(requests(1, 5n), full, asking)).toEqual([second]);
    expect(choosePayers(requests(2, 7n), full, asking)).toEqual([second, undefined]);
    expect(choosePayers(requests(1, 1n), [payer(1, 5n), payer(2, 5n)], asking)).toEqual([first]);
  });

  it("gives what is overdue to whoever asks and covers it", () => {
    const payers = [payer(1, 10n), payer(2, 1_000n)];
    expect(choosePayers(requests(1, 5n), payers, asking)).toEqual([second]);
    expect(choosePayers(requests(1, 5n, true), payers, asking)).toEqual([first]);
    expect(choosePayers(requests(1, 50n, true), payers, asking)).toEqual([second]);
  });

  it("never gives a wallet more than it has, and leaves nothing that one of them covers", () => {
    const seed = 20_261_121;
    const random = createRandom(seed);
    for (let round = 0; round < 300; round += 1) {
      const payers = [1, 2, 3].map((at) =>
        payer(at, BigInt(random.integer(1_000)), random.integer(5)),
      );
      const wanted = Array.from({ length: 20 }, () => ({
        neededAtoken: BigInt(1 + random.integer(200)),
        isOverdue: random.integer(4) === 0,
      }));
      const maxOpenSlots = 8;
      const chosen = choosePayers(wanted, payers, { asking: first, maxOpenSlots });
      const left = new Map(payers.map((each) => [each.wallet, { ...each }]));
      wanted.forEach(({ neededAtoken }, index) => {
        const able = [...left.values()].filter(
          ({ freeAtoken, openSlots }) => freeAtoken >= neededAtoken && openSlots < maxOpenSlots,
        );
        const taker = chosen[index];
        expect([seed, round, index, taker !== undefined]).toEqual([
          seed,
          round,
          index,
          able.length > 0,
        ]);
        if (taker === undefined) return;
        expect(able.map((each) => each.wallet)).toContain(taker);
        const before = left.get(taker) ?? payer(0, 0n);
        left.set(taker, {
          wallet: taker,
          freeAtoken: before.freeAtoken - neededAtoken,
          openSlots: before.openSlots + 1,
        });
      });
    }
  });
});

describe("a wallet's share", () => {
  it("leaves gas that its signer refuses to other wallets for a while", async () => {
    const ids = async (payers: readonly Payer[]) => {
      const context = {
        ledger: { readOtherWallets: async () => [], readPayers: async () => payers },
        settings: {
          scanIntervalMs: 1_000,
          maxLiveSlots: 100,
          gas: { priceFloorAtoken: 1n, priceCapAtoken: 1n },
        },
        signer: {
          address: first,
          review: (asked: readonly object[]) =>
            asked.map(() => ({ code: "FORBIDDEN_DESTINATION" })),
        },
      };
      const request = { asset: "TOKEN", contract: undefined, amountUnits: 1n };
      const waiting = [
        { ...request, id: "gas", addressIndex: 3, waitedMs: 0 },
        { ...request, id: "overdue gas", addressIndex: 4, waitedMs: 6_000 },
        { ...request, id: "nobody's gas", addressIndex: 5, waitedMs: 6_001 },
        { ...request, id: "payout", waitedMs: 0 },
      ];
      const round = { view: { suggestedPriceAtoken: 1n } };
      const { coins } = await shareOf(context as never, round as never, waiting as never);
      return coins.map(({ id }) => id);
    };
    const own = payer(1, 10n ** 9n);
    expect(await ids([own, payer(2, 50_000n)])).toEqual(["nobody's gas", "payout"]);
    // With no other wallet it is rejected at once.
    expect(await ids([own])).toHaveLength(4);
  });

  it("leaves tokens that it does not cover to other wallets for twice as long, as far as there is room", async () => {
    const ids = async (
      payers: readonly Payer[],
      { balanceAtoken, batchSize = 8 }: { balanceAtoken: bigint; batchSize?: number },
    ) => {
      const context = {
        ledger: { readOtherWallets: async () => [], readPayers: async () => payers },
        node: { tokenBalances: async () => [100n] },
        settings: {
          scanIntervalMs: 1_000,
          maxLiveSlots: 100,
          batchSize,
          gas: { priceFloorAtoken: 1n, priceCapAtoken: 1n },
        },
        signer: { address: first, review: () => [] },
      };
      const request = { asset: "GOLD", contract: wallet(9), amountUnits: 101n };
      const waiting = [
        { ...request, id: "covered", amountUnits: 100n, waitedMs: 0 },
        { ...request, id: "new", waitedMs: 3_000 },
        { ...request, id: "overdue", waitedMs: 3_001 },
        { ...request, id: "late", waitedMs: 12_000 },
        { ...request, id: "nobody's", waitedMs: 12_001 },
      ];
      const round = { view: { suggestedPriceAtoken: 1n, balanceAtoken, height: 1 } };
      const { tokens } = await shareOf(context as never, round as never, waiting as never);
      return tokens.requests.map(({ id }) => id);
    };
    const both = [payer(1, 10n ** 9n), payer(2, 1n)];
    const rich = { balanceAtoken: 10n ** 9n };
    expect(await ids(both, rich)).toEqual(["covered", "nobody's"]);
    // Coins for a fee are needed, too.
    expect(await ids(both, { balanceAtoken: 1n })).toEqual(["nobody's"]);
    // What is beyond half of what is looked at makes room for others.
    const narrow = { ...rich, batchSize: 2 };
    expect(await ids(both, narrow)).toEqual(["covered", "late", "nobody's"]);
    expect(await ids(both.slice(0, 1), rich)).toHaveLength(5);
  });
});
