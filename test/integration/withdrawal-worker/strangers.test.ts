/** What strangers choose (a destination's words, a node's answers) ends neither the lane nor others. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import { SqlError } from "../../../runtime/sql/sql-errors.js";
import { Lane } from "../../../withdrawal-worker/lane/lane.js";
import { freshAddress, House, TOKEN } from "./house.js";

let house: House;

beforeEach(async () => {
  house = await House.open();
  await house.fund("alice", 100n * TOKEN);
});

afterEach(async () => {
  await house.close();
});

async function acceptTo(to: Address, amountAtoken = TOKEN) {
  return house.accept({ destination: to, destinationText: to, amountAtoken });
}

async function work(lane: Lane, rounds = 3): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    await lane.runRound(house.signal);
    house.chain.mine();
    house.clock.ms += 2_000;
  }
}

/** Estimates of payments to an address are answered by this error. */
function refuse(to: Address, error: { readonly code: number; readonly message: string }): void {
  house.chain.override = (method, [call]) => {
    const isMeant = method === "eth_estimateGas" && Reflect.get(Object(call), "to") === to;
    return isMeant ? { error } : undefined;
  };
}

describe("a destination that chooses the words of its refusal", () => {
  const cutInTwo = `execution reverted: ${"a".repeat(179)}\u{1F600}!`;
  it.each([
    ["a NUL character", "execution reverted: a\u0000b", "execution reverted: a\ufffdb"],
    ["a character where the text is cut", cutInTwo, `${cutInTwo.slice(0, 199)}\u{1F600}`],
    ["half a character", "execution reverted: \ud83d", "execution reverted: \ufffd"],
  ])("stops nobody's payouts: %s", async (_name, message, kept) => {
    const to = freshAddress();
    refuse(to, { code: 3, message });
    const refused = await acceptTo(to, 1n);
    const plain = await acceptTo(freshAddress());
    await work(house.lane());
    expect((await house.read(plain.id)).status).toBe("settled");
    const { status, reason } = await house.read(refused.id);
    expect({ status, reason }).toEqual({
      status: "failed",
      reason: `the destination refuses: ${kept}`,
    });
  });

  it("stops nobody's payouts by words that nobody knows", async () => {
    const to = freshAddress();
    refuse(to, { code: -32_000, message: `what\u0000 ${"\u{1F600}".repeat(500)}` });
    const unknown = await acceptTo(to, 1n);
    const plain = await acceptTo(freshAddress());
    await work(house.lane());
    expect((await house.read(plain.id)).status).toBe("settled");
    const { status, reason } = await house.read(unknown.id);
    expect(status).toBe("accepted");
    expect(reason).toContain("could not estimate it (what\ufffd \u{1F600}");
  });
});

describe("a request whose end the ledger does not take", () => {
  it("is put off by itself, and the others go on", async () => {
    const isReverting = [freshAddress(), freshAddress()];
    for (const to of isReverting) house.chain.reverting.add(to);
    const [odd, failing] = await Promise.all(isReverting.map((to) => acceptTo(to)));
    const plain = await acceptTo(freshAddress());
    const context = house.context();
    const lane = new Lane(
      {
        ...context,
        ledger: {
          ...context.ledger,
          endBeforeSlot: async (to, steps) => {
            if (steps.some(({ id }) => id === odd?.id)) {
              throw new SqlError("DATABASE_FAULT", "DATABASE_FAULT: it does not take this");
            }
            return context.ledger.endBeforeSlot(to, steps);
          },
        },
      },
      "w",
    );
    await work(lane);
    const [oddNow, failingNow, plainNow] = await Promise.all(
      [odd, failing, plain].map((entry) => house.read(entry?.id ?? plain.id)),
    );
    expect(plainNow?.status).toBe("settled");
    expect(failingNow?.status).toBe("failed");
    expect(oddNow?.status).toBe("accepted");
    expect(oddNow?.reason).toContain("the ledger did not take what came of it");
  });
});
