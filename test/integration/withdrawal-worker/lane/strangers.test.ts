/** What strangers choose (a destination's words, a node's answers) ends neither the lane nor others. */
import { describe, expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { NodeFault } from "../../../../rpc-client/errors.js";
import type { JsonRpcClient } from "../../../../rpc-client/json-rpc.js";
import { SqlError } from "../../../../runtime/sql/sql-errors.js";
import { Lane } from "../../../../withdrawal-worker/lane/lane.js";
import { createWalletNode } from "../../../../withdrawal-worker/lane/wallet-node.js";
import {
  freshAddress,
  House,
  houseForEachTest,
  TOKEN,
  WALLET,
} from "../../../helpers/exchange/house.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

async function acceptTo(to: Address, amountAtoken = TOKEN) {
  return house.accept({ destination: to, destinationText: to, amountUnits: amountAtoken });
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
          endBeforeSlot: async (lease, to, steps) => {
            if (steps.some(({ id }) => id === odd?.id)) {
              throw new SqlError("DATABASE_FAULT", "DATABASE_FAULT: it does not take this");
            }
            return context.ledger.endBeforeSlot(lease, to, steps);
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

describe("requests to code that take the node long", () => {
  it("hide nobody behind them, however many they are and however soon they are due again", async () => {
    const dear = freshAddress();
    house.chain.withCode.add(dear);
    house.chain.gasOf.set(dear, 800_000n);
    for (let count = 0; count < 30; count += 1) await acceptTo(dear, 1n);
    const plain = await acceptTo(freshAddress());
    const context = house.context({ batchSize: 10, retryDelayMs: 0 });
    const lane = new Lane(
      {
        ...context,
        // Nobody finds the time to estimate those to code.
        node: {
          ...context.node,
          estimate: async (wallet, payments, options) =>
            payments.some(({ to }) => to === dear)
              ? payments.map(() => undefined)
              : context.node.estimate(wallet, payments, options),
        },
      },
      "w",
    );
    for (let round = 0; round < 4; round += 1) await lane.runRound(house.signal);
    expect((await house.read(plain.id)).status).toBe("broadcast");
  });

  it("that were asked about in vain are due again behind those that never were", async () => {
    const [late, unasked] = [freshAddress(), freshAddress()];
    for (const to of [late, unasked]) house.chain.withCode.add(to);
    const requests = [await acceptTo(late, 1n), await acceptTo(unasked, 1n)];
    const context = house.context({ retryDelayMs: 10_000 });
    const lane = new Lane(
      {
        ...context,
        node: {
          ...context.node,
          estimate: async (_wallet, payments) =>
            payments.map(({ to }) =>
              to === late ? { kind: "unknown", reason: "no answer in time" } : undefined,
            ),
        },
      },
      "w",
    );
    await lane.runRound(house.signal);
    const rows = await house.database.query<{ id: string }>(
      `SELECT id FROM withdrawal ORDER BY next_try_at`,
    );
    expect(rows.map(({ id }) => id)).toEqual(requests.map(({ id }) => id).toReversed());
  });

  it("are given up one by one when a whole part of them was not answered", async () => {
    const sizes: number[] = [];
    const rpc: JsonRpcClient = {
      request: async () => Promise.reject(new Error("not asked")),
      batch: (calls, { signal }) => {
        sizes.push(calls.length);
        if (calls.length > 1) {
          return Promise.reject(new NodeFault("NODE_TIMEOUT", "no answer", { retriable: true }));
        }
        return new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(new Error("aborted")), { once: true });
        });
      },
      close: () => undefined,
    };
    const identity = { chainId: 1n, genesisHash: house.chain.genesisHash };
    const node = createWalletNode(rpc, identity, { estimateBudgetMs: 1 });
    const payment = { valueAtoken: 1n, gasPriceAtoken: 1n, gasMax: 1_000_000n };
    const payments = [freshAddress(), freshAddress()].map((to) => ({ ...payment, to }));
    const { signal } = house;
    const meanings = await node.estimate(WALLET, payments, { signal, at: 1 });
    expect(meanings[0]).toEqual({ kind: "unknown", reason: "the node gave no answer in time" });
    expect(sizes.slice(0, 2)).toEqual([2, 1]);
  });
});

describe("a node whose numbers no chain has", () => {
  const huge = `0x${"f".repeat(64)}`;

  it("is waited out: an estimate below a transfer's gas, a nonce and fees beyond every chain's", async () => {
    const plain = await acceptTo(freshAddress());
    const lane = house.lane({ retryDelayMs: 0 });
    house.chain.override = (method) =>
      method === "eth_getTransactionCount" ? { result: huge } : undefined;
    await expect(lane.runRound(house.signal)).rejects.toMatchObject({ code: "BAD_ANSWER" });
    house.chain.override = (method) =>
      method === "eth_estimateGas" ? { result: "0x0" } : undefined;
    await lane.runRound(house.signal);
    expect((await house.read(plain.id)).reason).toContain("below the gas of a transfer");
    house.chain.override = () => undefined;
    await work(lane, 1);
    for (const field of ["gasUsed", "effectiveGasPrice"]) {
      house.chain.override = (method, [hash]) =>
        method === "eth_getTransactionReceipt"
          ? { result: { ...receiptOf(String(hash)), [field]: huge } }
          : undefined;
      await expect(lane.runRound(house.signal)).rejects.toMatchObject({ code: "BAD_ANSWER" });
    }
    house.chain.override = () => undefined;
    await lane.runRound(house.signal);
    expect((await house.read(plain.id)).status).toBe("settled");
  });

  const receiptOf = (transactionHash: string) => ({
    transactionHash,
    blockHash: house.chain.blockHash(1),
    blockNumber: "0x1",
    transactionIndex: "0x0",
    from: WALLET,
    to: WALLET,
    contractAddress: null,
    status: "0x1",
    gasUsed: "0x5208",
    effectiveGasPrice: "0x1",
  });
});
