/** A payment that its node does not take: it ends, waits for coins, or gives its nonce up. */
import { describe, expect, it } from "@jest/globals";
import {
  House,
  houseForEachTest,
  statuses,
  TOKEN,
  WALLET,
} from "../../../../../helpers/exchange/house.js";
import { expectEvenBooks } from "./even-books.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

describe("the limit of the node", () => {
  it("is asked before a nonce is taken: what does not fit with its margin fails at once", async () => {
    house.chain.maxTransactionGas = 500_000n;
    const greedy = await house.acceptTo();
    house.chain.gasOf.set(greedy.to, 450_000n);
    const plain = await house.acceptTo();
    const lane = house.lane();
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    const failed = await house.read(greedy.id);
    expect(failed.status).toBe("failed");
    expect(failed.nonce).toBeUndefined();
    expect((await house.read(plain.id)).status).toBe("settled");
    expect(await house.balance("alice")).toEqual({ available: 99n * TOKEN, held: 0n });
  });

  it("of a node that names none: the payment that it refuses gives its nonce up", async () => {
    house.chain.namesTransactionGas = false;
    house.chain.maxTransactionGas = 500_000n;
    const greedy = await house.acceptTo();
    house.chain.gasOf.set(greedy.to, 450_000n);
    const plain = await Promise.all([house.acceptTo(), house.acceptTo(), house.acceptTo()]);
    const lane = house.lane();
    // It reverts behind its first estimate: there is no gas with which it could be paid.
    house.chain.wireFault = (methods) => {
      if (methods.includes("eth_sendRawTransaction")) house.chain.reverting.add(greedy.to);
      return undefined;
    };
    await lane.runRound(house.signal);
    await house.pass(lane, { rounds: 4, stepMs: 2_000 });
    for (const { id } of plain) expect((await house.read(id)).status).toBe("settled");
    const failed = await house.read(greedy.id);
    expect(statuses(failed).slice(-3)).toEqual(["cancelling", "included", "failed"]);
    expect(failed.reason).toContain("refuses its payment for good");
    expect(house.chain.balances.get(greedy.to) ?? 0n).toBe(0n);
    expect(await house.balance("alice")).toEqual({ available: 97n * TOKEN, held: 0n });
    expect(house.chain.nonces.get(WALLET)).toBe(4n);
    await expectEvenBooks(house);
  });
});

describe("a payment that its node refuses and that cannot be estimated with what the wallet has", () => {
  it("waits: with more coins it may work", async () => {
    house.chain.balances.set(WALLET, TOKEN + 10n ** 13n);
    house.chain.mine();
    const { id } = await house.acceptTo();
    const { node } = house.context();
    let isRefused = false;
    const lane = house.laneWith({
      node: {
        ...node,
        estimate: async (wallet, payments, options) => {
          if (!isRefused) return node.estimate(wallet, payments, options);
          const reason = "gas required exceeds allowance (40000)";
          return payments.map(() => ({ kind: "refused-by-destination", reason }));
        },
      },
    });
    house.chain.override = (method) => {
      if (method !== "eth_sendRawTransaction") return undefined;
      isRefused = true;
      return { error: { code: -32_000, message: "exceeds block gas limit" } };
    };
    await house.pass(lane, { rounds: 3, stepMs: 2_000 });
    expect((await house.read(id)).status).toBe("signed");
    house.chain.override = () => undefined;
    await house.pass(lane, { rounds: 4, stepMs: 15_000 });
    expect((await house.read(id)).status).toBe("settled");
  });
});
