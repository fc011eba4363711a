/** Which waiting withdrawals get a nonce, and which wait for what. */
import { describe, expect, it } from "@jest/globals";
import { toWithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import {
  chooseSlots,
  type OpenSlots,
  type SlotBudget,
  type SlotCandidate,
} from "../../../ledger/withdrawals/slot-choice.js";

const NOTHING_OPEN: OpenSlots = { count: 0, reservedAtoken: 0n, feesAtoken: 0n, codeGas: 0n };

const BUDGET: SlotBudget = {
  balanceAtoken: 10n ** 9n,
  balanceHeight: 1,
  nonce: 0n,
  maxLiveSlots: 10,
  maxCodeGas: 10n ** 9n,
  feePerDayAtoken: 100_000n,
};

let next = 0;

function candidate(gasLimit: bigint, more: Partial<SlotCandidate> = {}): SlotCandidate {
  next += 1;
  const id = toWithdrawalId(`wd_00000000-0000-4000-8000-${String(next).padStart(12, "0")}`);
  return { id, amountUnits: 1n, gasLimit, gasPriceAtoken: 1n, entersCode: false, ...more };
}

describe("the day's budget of fees", () => {
  it("keeps a payment that is too dear waiting, and none behind it", () => {
    const [first, dear, cheap] = [candidate(60_000n), candidate(50_000n), candidate(21_000n)];
    const choice = chooseSlots([first, dear, cheap], NOTHING_OPEN, BUDGET, 0n);
    expect(choice.chosen).toEqual([first, cheap]);
    expect([choice.limit, choice.uncovered, choice.behindCode]).toEqual(["fee-budget", [], []]);
  });

  it("counts what is booked and what is on its way, at its dearest", () => {
    const open = { ...NOTHING_OPEN, count: 1, feesAtoken: 40_000n };
    const [one, two] = [candidate(21_000n), candidate(21_000n)];
    expect(chooseSlots([one, two], open, BUDGET, 30_000n).chosen).toEqual([one]);
    expect(chooseSlots([one], open, BUDGET, 40_000n)).toMatchObject({ limit: "fee-budget" });
  });

  it("is named before the reserve, of which others have too little", () => {
    const [dear, large] = [candidate(200_000n), candidate(21_000n, { amountUnits: 10n ** 10n })];
    const choice = chooseSlots([dear, large], NOTHING_OPEN, BUDGET, 0n);
    expect([choice.limit, choice.uncovered]).toEqual(["fee-budget", [large.id]]);
  });
});

describe("a limit of the wallet", () => {
  it("is taken of by who is chosen alone, and comes before what else a request waits for", () => {
    const [dear, uncovered, behindCode] = [
      candidate(200_000n),
      candidate(21_000n, { amountUnits: 10n ** 10n }),
      candidate(30_000n, { entersCode: true }),
    ];
    const [first, second, held] = [candidate(21_000n), candidate(21_000n), candidate(21_000n)];
    const all = [dear, uncovered, behindCode, first, second, held];
    const open = { ...NOTHING_OPEN, count: 1, codeGas: BUDGET.maxCodeGas };
    const taken: string[] = [];
    const room = {
      hasRoom: () => taken.length < 2,
      take: (id: string) => void taken.push(id),
    };
    const choice = chooseSlots(all, open, BUDGET, 0n, room);
    expect(choice.chosen).toEqual([first, second]);
    expect(taken).toEqual([first.id, second.id]);
    expect([choice.uncovered, choice.behindCode]).toEqual([[uncovered.id], []]);
  });
});
