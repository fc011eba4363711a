/** The lane against PostgreSQL and a node that answers as nodes do on bad days. */
import { MAX_LEASE_MS } from "../../../../ledger/lease.js";
import { resumeCrediting } from "../../../../ledger/incidents.js";
import { describe, expect, it } from "@jest/globals";
import { signLegacy } from "../../../../chain/transaction.js";
import { bytesToHex } from "../../../../chain/hex.js";
import {
  freshAddress,
  House,
  houseForEachTest,
  TOKEN,
  WALLET,
  WALLET_KEY,
  statuses,
  decodeRaw,
} from "../../../helpers/exchange/house.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { recordIncident } from "../../../helpers/services/ledger.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

describe("a withdrawal", () => {
  it("is paid once, settled with its fee, and its states and events are all there", async () => {
    const to = freshAddress();
    const { id } = await house.accept({ destination: to, destinationText: to });
    expect(await house.balance("alice")).toEqual({ available: 99n * TOKEN, held: TOKEN });
    const lane = house.lane();
    await lane.runRound(house.signal);
    const sent = await house.read(id);
    expect(sent.status).toBe("broadcast");
    expect(sent.nonce).toBe(0n);
    expect(sent.hashes).toHaveLength(1);
    house.chain.mine();
    await lane.runRound(house.signal);
    const settled = await house.read(id);
    expect(settled.status).toBe("settled");
    expect(statuses(settled)).toEqual([
      "accepted",
      "slotted",
      "signed",
      "broadcast",
      "included",
      "settled",
    ]);
    expect(settled.txHash).toBe(sent.hashes[0]);
    expect(settled.blockNumber).toBe(house.chain.head);
    expect(house.chain.balances.get(to)).toBe(TOKEN);
    expect(await house.balance("alice")).toEqual({ available: 99n * TOKEN, held: 0n });
    const fee = 21_000n * 25_000_000n;
    expect(await house.accountAtoken("expense:network_fee")).toBe(fee);
    const spent = 1_000n * TOKEN - (house.chain.balances.get(WALLET) ?? 0n);
    expect(100n * TOKEN - (await house.accountAtoken(`asset:wallet:${WALLET}`))).toBe(spent);
    const events = await house.database.query<{ seq: string; type: string }>(
      `SELECT seq::text, type FROM event ORDER BY seq`,
    );
    expect(events.map(({ type }) => type)).toEqual(
      statuses(settled).map((status) => `withdrawal.${status}`),
    );
    expect(events.map(({ seq }) => Number(seq))).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it("is signed with the estimate plus margin and the suggested price, without data", async () => {
    house.chain.gasPerPayment = 40_001n;
    const { id } = await house.accept();
    await house.lane().runRound(house.signal);
    const tx = decodeRaw(house.chain.arrived[0] ?? "");
    expect(tx.gasLimit).toBe(48_002n);
    expect(tx.maxFeePerGasAtoken).toBe(25_000_000n);
    expect(tx.chainId).toBe(FAKE_CHAIN_ID);
    expect(tx.data).toHaveLength(0);
    expect((await house.read(id)).hashes).toEqual([tx.hash]);
  });

  it("fails without a nonce and gives the hold back when its destination reverts", async () => {
    const to = freshAddress();
    house.chain.reverting.add(to);
    const { id } = await house.accept({ destination: to, destinationText: to });
    await house.lane({ leaseMs: MAX_LEASE_MS }).runRound(house.signal);
    const failed = await house.read(id);
    expect(failed.status).toBe("failed");
    expect(failed.nonce).toBeUndefined();
    expect(failed.reason).toContain("execution reverted");
    expect(await house.balance("alice")).toEqual({ available: 100n * TOKEN, held: 0n });
    const next = await house.accept();
    await house.lane().runRound(house.signal);
    expect((await house.read(next.id)).status).toBe("accepted"); // The first lane holds the lease.
  });

  it("that fails on the chain is refunded and its fee is still expensed", async () => {
    const to = freshAddress();
    house.chain.revertingOnChain.add(to);
    const { id } = await house.accept({ destination: to, destinationText: to });
    const lane = house.lane();
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("failed");
    expect(await house.balance("alice")).toEqual({ available: 100n * TOKEN, held: 0n });
    expect(await house.accountAtoken("expense:network_fee")).toBe(21_000n * 25_000_000n);
    const next = await house.accept();
    await lane.runRound(house.signal);
    expect((await house.read(next.id)).nonce).toBe(1n);
  });

  it("never fails because a node does not answer or says something unknown", async () => {
    const { id } = await house.accept();
    const lane = house.lane();
    house.chain.wireFault = (methods) =>
      methods.includes("eth_estimateGas") ? "reset-before" : undefined;
    await expect(lane.runRound(house.signal)).rejects.toThrow();
    house.chain.wireFault = () => undefined;
    house.chain.override = (method) =>
      method === "eth_estimateGas"
        ? { error: { code: -32603, message: "internal error: worker busy" } }
        : undefined;
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("accepted");
    house.chain.override = () => undefined;
    await house.database.query(`UPDATE withdrawal SET next_try_at = now()`);
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("broadcast");
  });

  it("is paid although the database's clock went back behind its request", async () => {
    const [first, second] = [await house.accept(), await house.accept()];
    const lateBy = (id: string, time: string) =>
      house.database.query(
        `UPDATE withdrawal SET next_try_at = now() + $2::interval WHERE id = $1`,
        [id, time],
      );
    await lateBy(first.id, "1 hour");
    // As what was put off.
    await lateBy(second.id, "15 minutes");
    const lane = house.lane({ retryDelayMs: 100_000 });
    await lane.runRound(house.signal);
    expect((await house.read(first.id)).status).toBe("broadcast");
    expect((await house.read(second.id)).status).toBe("accepted");
    // It goes back while the lane is at work.
    await lateBy(second.id, "1 hour");
    await lane.runRound(house.signal);
    expect((await house.read(second.id)).status).toBe("accepted");
    house.clock.ms += 60_000;
    await lane.runRound(house.signal);
    expect((await house.read(second.id)).status).toBe("broadcast");
  });

  it("waits while the balance is reserved for payments that are not mined yet", async () => {
    house.chain.balances.set(WALLET, 3n * TOKEN);
    house.chain.mine();
    const lane = house.lane();
    const first = await house.accept({ amountUnits: 2n * TOKEN });
    await lane.runRound(house.signal);
    expect((await house.read(first.id)).status).toBe("broadcast");
    const second = await house.accept({ amountUnits: 2n * TOKEN });
    await lane.runRound(house.signal);
    expect((await house.read(second.id)).status).toBe("accepted");
    house.chain.mine();
    await lane.runRound(house.signal);
    expect((await house.read(first.id)).status).toBe("settled");
    expect((await house.read(second.id)).nonce).toBeUndefined();
  });

  it("waits while as many nonces are open as the settings allow", async () => {
    const lane = house.lane({ maxLiveSlots: 2 });
    await house.accept();
    await house.accept();
    const third = await house.accept();
    await lane.runRound(house.signal);
    expect(house.chain.poolSize).toBe(2);
    expect((await house.read(third.id)).status).toBe("accepted");
    house.chain.mine();
    await lane.runRound(house.signal);
    expect((await house.read(third.id)).nonce).toBe(2n);
  });

  it("waits for funds behind the reserve and lets a smaller one go first", async () => {
    house.chain.balances.set(WALLET, 3n * TOKEN);
    house.chain.mine();
    const first = await house.accept({ amountUnits: 2n * TOKEN });
    const big = await house.accept({ amountUnits: 2n * TOKEN });
    const small = await house.accept({ amountUnits: TOKEN / 2n });
    const lane = house.lane();
    await lane.runRound(house.signal);
    expect((await house.read(first.id)).status).toBe("broadcast");
    const waiting = await house.read(big.id);
    expect(waiting.status).toBe("accepted");
    expect(waiting.reason).toContain("free balance");
    expect((await house.read(small.id)).status).toBe("broadcast");
    house.chain.balances.set(WALLET, 10n * TOKEN);
    house.chain.mine();
    await house.database.query(
      `UPDATE withdrawal SET next_try_at = now() WHERE status = 'accepted'`,
    );
    await lane.runRound(house.signal);
    await lane.runRound(house.signal);
    expect((await house.read(big.id)).status).toBe("broadcast");
  });
});

const foreignPayment = (nonce: bigint) =>
  bytesToHex(
    signLegacy(
      {
        chainId: FAKE_CHAIN_ID,
        nonce,
        gasPriceAtoken: 30_000_000n,
        gasLimit: 21_000n,
        to: freshAddress(),
        valueAtoken: 1n,
        data: new Uint8Array(0),
      },
      WALLET_KEY,
    ),
  );

const sendForeign = async (nonce: bigint) => {
  const response = await fetch(house.chain.url, {
    method: "POST",
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "eth_sendRawTransaction",
      params: [foreignPayment(nonce)],
    }),
  });
  await response.json();
};

describe("the hot wallet's nonces", () => {
  it("freeze signing when the chain knows a nonce that the ledger never gave", async () => {
    const lane = house.lane();
    await lane.runRound(house.signal);
    await sendForeign(0n);
    house.chain.mine();
    const { id } = await house.accept();
    await lane.runRound(house.signal);
    expect(await house.isFrozen()).toBe(true);
    expect((await house.read(id)).status).toBe("accepted");
    expect(lane.status().blockedReason).toContain("signing is frozen");
    expect(house.chain.arrived).toHaveLength(1);
  });

  it("freeze a payment whose nonce a foreign transaction took, and never pay it again", async () => {
    const lane = house.lane();
    const { id } = await house.accept();
    house.chain.wireFault = (methods) =>
      methods.includes("eth_sendRawTransaction") ? "reset-before" : undefined;
    await expect(lane.runRound(house.signal)).rejects.toThrow();
    house.chain.wireFault = () => undefined;
    await sendForeign(0n);
    house.chain.mine();
    house.clock.ms += 2_000;
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("signed"); // Receipts may lag: it looks again.
    house.clock.ms += 5_000;
    await lane.runRound(house.signal);
    const frozen = await house.read(id);
    expect(frozen.status).toBe("frozen");
    expect(frozen.hashes).toHaveLength(1);
    expect(await house.isFrozen()).toBe(true);
    expect(await house.balance("alice")).toEqual({ available: 99n * TOKEN, held: TOKEN });
    for (let round = 0; round < 3; round++) await lane.runRound(house.signal);
    expect(house.chain.nonces.get(WALLET)).toBe(1n);
  });

  it("freeze signing when a foreign transaction sits in the pool at our nonce", async () => {
    const lane = house.lane();
    await lane.runRound(house.signal);
    const { id } = await house.accept();
    house.chain.override = (method) =>
      method === "eth_sendRawTransaction"
        ? { error: { code: -32000, message: "replacement transaction underpriced" } }
        : undefined;
    await lane.runRound(house.signal);
    expect(await house.isFrozen()).toBe(true);
    expect((await house.read(id)).status).toBe("signed");
  });

  it("sign nothing while an incident is open, and go on after it", async () => {
    const { id } = await house.accept();
    await recordIncident(house.ledger.owner, {
      kind: "HASH_CHANGED",
      height: 1,
      message: "block 1 changed",
      details: {},
    });
    const lane = house.lane();
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("accepted");
    expect(house.chain.arrived).toEqual([]);
    expect(lane.status().blockedReason).toContain("HASH_CHANGED");
    await resumeCrediting(house.ledger.owner, "test");
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("broadcast");
  });

  it("settles what is on its way while signing is frozen", async () => {
    const { id } = await house.accept();
    const lane = house.lane();
    await lane.runRound(house.signal);
    const late = await house.accept();
    await house.database.query(
      `UPDATE signing_freeze SET frozen = true, reason = 'test' WHERE wallet = $1`,
      [WALLET],
    );
    house.chain.mine();
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("settled");
    expect((await house.read(late.id)).status).toBe("accepted");
  });

  it("are not given by a worker whose lease went to another", async () => {
    const first = house.lane({ leaseMs: 1 });
    // Not over before the first one looks again, however busy the machine is.
    const second = house.lane({ leaseMs: 60_000 });
    await first.runRound(house.signal);
    await house.database.query(`SELECT pg_sleep(0.01)`);
    await second.runRound(house.signal);
    await house.accept();
    await first.runRound(house.signal);
    expect(first.status().holdsLease).toBe(false);
    expect(second.status().holdsLease).toBe(true);
    expect(house.chain.arrived).toHaveLength(0);
    await second.runRound(house.signal);
    expect(house.chain.arrived).toHaveLength(1);
  });

  it("wait while the node shows a height below what is booked", async () => {
    const lane = house.lane();
    const { id } = await house.accept();
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("settled");
    house.chain.override = (method) =>
      method === "eth_blockNumber" ? { result: "0x1" } : undefined;
    await expect(house.lane().runRound(house.signal)).rejects.toMatchObject({
      code: "NODE_BEHIND",
    });
  });

  it("refuse a node of another chain and one that is catching up", async () => {
    const lane = house.lane();
    house.chain.chainId = 6941n;
    await expect(lane.runRound(house.signal)).rejects.toMatchObject({ code: "WRONG_NODE" });
    house.chain.chainId = FAKE_CHAIN_ID;
    house.chain.isSyncing = true;
    await expect(lane.runRound(house.signal)).rejects.toMatchObject({ code: "NODE_BEHIND" });
  });

  it("refuse a node of the same chain id and another genesis, the second one, too", async () => {
    const { id } = await house.accept();
    const header = { hash: `0x${"cd".repeat(32)}`, parentHash: `0x${"00".repeat(32)}` };
    house.chain.override = (method, params) =>
      method === "eth_getBlockByNumber" && params[0] === "0x0"
        ? { result: { ...header, number: "0x0", timestamp: "0x1" } }
        : undefined;
    const context = house.context();
    const { signal } = house;
    const refusal = { code: "WRONG_NODE", details: { genesisHash: header.hash } };
    await expect(house.laneWith(context).runRound(signal)).rejects.toMatchObject(refusal);
    await expect(context.node.assertChain({ signal })).rejects.toMatchObject(refusal);
    expect([house.chain.arrived, (await house.read(id)).hashes]).toEqual([[], []]);
    house.chain.override = () => undefined;
    await context.node.assertChain({ signal });
    await house.laneWith(context).runRound(signal);
    expect((await house.read(id)).status).toBe("broadcast");
  });
});

describe("receipts", () => {
  it("of a block that changed after it was recorded freeze instead of settling", async () => {
    const { id } = await house.accept();
    const lane = house.lane();
    await lane.runRound(house.signal);
    house.chain.mine();
    house.chain.override = (method, params) =>
      method === "eth_getBlockByNumber" && params[0] !== "0x0"
        ? {
            result: {
              number: params[0],
              hash: `0x${"cd".repeat(32)}`,
              parentHash: `0x${"00".repeat(32)}`,
              timestamp: "0x1",
            },
          }
        : undefined;
    await lane.runRound(house.signal);
    // One look may have met another node: the next one has to agree.
    expect((await house.read(id)).status).toBe("included");
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("frozen");
    expect(await house.isFrozen()).toBe(true);
    house.chain.override = () => undefined;
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("frozen");
  });

  it("of a block that looks changed once are booked at the next look", async () => {
    const { id } = await house.accept();
    const lane = house.lane();
    await lane.runRound(house.signal);
    house.chain.mine();
    const header = { hash: `0x${"cd".repeat(32)}`, parentHash: `0x${"00".repeat(32)}` };
    house.chain.override = (method, params) =>
      method === "eth_getBlockByNumber" && params[0] !== "0x0"
        ? { result: { ...header, number: params[0], timestamp: "0x1" } }
        : undefined;
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("included");
    house.chain.override = () => undefined;
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("settled");
    expect(await house.isFrozen()).toBe(false);
  });
});

describe("many withdrawals", () => {
  it("are paid exactly once each by two workers under random faults of the wire", async () => {
    const seed = 20_261_120;
    let state = seed;
    const random = () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state / 2 ** 32;
    };
    const count = 120;
    const destinations = Array.from({ length: count }, () => freshAddress());
    await house.fund("bob", 1_000n * TOKEN);
    for (const destination of destinations) {
      await house.accept({ destination, destinationText: destination, amountUnits: TOKEN / 10n });
    }
    const faults = ["reset-after", "reset-before", "http-503", "html", "wrong-id"] as const;
    house.chain.wireFault = () =>
      random() < 0.15 ? faults[Math.floor(random() * faults.length)] : undefined;
    const workers = [house.lane({ batchSize: 25, leaseMs: 30 }), house.lane({ leaseMs: 30 })];
    for (let round = 0; round < 400; round++) {
      await Promise.allSettled(workers.map((lane) => lane.runRound(house.signal)));
      house.clock.ms += 300;
      if (round % 3 === 0) house.chain.mine();
      if (round % 20 === 19) house.chain.clearPool();
      const open = await house.database.query<{ count: string }>(
        `SELECT count(*)::text AS count FROM withdrawal WHERE status <> 'settled'`,
      );
      if (open[0]?.count === "0") break;
    }
    for (const destination of destinations) {
      expect({ seed, paid: house.chain.balances.get(destination) }).toEqual({
        seed,
        paid: TOKEN / 10n,
      });
    }
    expect(house.chain.nonces.get(WALLET)).toBe(BigInt(count));
    expect(await house.isFrozen()).toBe(false);
    expect((await house.balance("alice")).held).toBe(0n);
  });
});
