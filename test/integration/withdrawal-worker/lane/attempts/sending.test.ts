/** Sending against a node that answers as nodes do on bad days: what was signed is never signed anew. */
import { describe, expect, it } from "@jest/globals";
import { cancelWithdrawal } from "../../../../../ledger/withdrawals/cancellation.js";
import { SqlError } from "../../../../../runtime/sql/sql-errors.js";
import { WorkerError } from "../../../../../withdrawal-worker/errors.js";
import { until } from "../../../../helpers/until.js";
import {
  House,
  houseForEachTest,
  statuses,
  WALLET,
  decodeRaw,
} from "../../../../helpers/exchange/house.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

describe("sending", () => {
  for (const fault of ["reset-after", "reset-before", "http-503", "html", "wrong-id"] as const) {
    it(`keeps the slot and repeats the same bytes after ${fault}`, async () => {
      const { id } = await house.accept();
      const lane = house.lane();
      house.chain.wireFault = (methods) =>
        methods.includes("eth_sendRawTransaction") ? fault : undefined;
      await expect(lane.runRound(house.signal)).rejects.toThrow();
      expect((await house.read(id)).status).toBe("signed");
      house.chain.wireFault = () => undefined;
      house.clock.ms += 2_000;
      await lane.runRound(house.signal);
      house.chain.mine();
      await lane.runRound(house.signal);
      const settled = await house.read(id);
      expect(settled.status).toBe("settled");
      expect(settled.hashes).toHaveLength(1);
      expect(new Set(house.chain.arrived).size).toBe(1);
      expect(house.chain.nonces.get(WALLET)).toBe(1n);
    });
  }

  it("tells of what the node has taken, also when the first commit of that was lost", async () => {
    const { id } = await house.accept();
    const { ledger } = house.context();
    let losses = 1;
    const lane = house.laneWith({
      ledger: {
        ...ledger,
        markBroadcast: async (steps) => {
          if (losses-- > 0) throw new SqlError("DATABASE_UNAVAILABLE", "away", { retriable: true });
          return ledger.markBroadcast(steps);
        },
      },
    });
    await expect(lane.runRound(house.signal)).rejects.toThrow("away");
    expect((await house.read(id)).status).toBe("signed");
    await lane.runRound(house.signal);
    expect(statuses(await house.read(id)).slice(-2)).toEqual(["signed", "broadcast"]);
    expect(house.chain.arrived).toHaveLength(1);
  });

  it("survives an answer that never comes although the node took the bytes", async () => {
    const { id } = await house.accept();
    const lane = house.lane({}, 200);
    house.chain.wireFault = (methods) =>
      methods.includes("eth_sendRawTransaction") ? "hang-after" : undefined;
    // So short a time may be over before other answers come, too, where the machine is busy.
    while (house.chain.arrived.length === 0) {
      await expect(lane.runRound(house.signal)).rejects.toThrow();
    }
    house.chain.wireFault = () => undefined;
    house.chain.mine();
    const isSettled = async () => {
      await lane.runRound(house.signal).catch(() => undefined);
      return (await house.read(id)).status === "settled";
    };
    await until(isSettled, { timeoutMs: 60_000, what: "the receipt is booked" });
    expect(new Set(house.chain.arrived).size).toBe(1);
    expect(house.chain.nonces.get(WALLET)).toBe(1n);
  });

  it("does not believe a node that answers with another hash, and pays once later", async () => {
    const { id } = await house.accept();
    const lane = house.lane();
    house.chain.override = (method) =>
      method === "eth_sendRawTransaction" ? { result: `0x${"ab".repeat(32)}` } : undefined;
    await expect(lane.runRound(house.signal)).rejects.toMatchObject({ code: "NODE_BROKEN" });
    expect((await house.read(id)).status).toBe("signed");
    house.chain.override = () => undefined;
    house.clock.ms += 2_000;
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("broadcast");
  });

  it("sends again what a node forgot, also while the policy cannot be read and others wait", async () => {
    const { id } = await house.accept();
    let isReadable = true;
    const lane = house.laneWith({
      policy: {
        current: async () => {
          if (isReadable) return house.files.policy;
          throw new WorkerError("POLICY_UNREADABLE", "the policy cannot be used", {
            retriable: true,
          });
        },
      },
    });
    await lane.runRound(house.signal);
    house.chain.clearPool();
    isReadable = false;
    const { id: waiting } = await house.accept();
    house.clock.ms += 2_000;
    await expect(lane.runRound(house.signal)).rejects.toMatchObject({ code: "POLICY_UNREADABLE" });
    house.chain.mine();
    await expect(lane.runRound(house.signal)).rejects.toMatchObject({ code: "POLICY_UNREADABLE" });
    expect((await house.read(id)).status).toBe("settled");
    expect((await house.read(waiting)).status).toBe("accepted");
    expect(new Set(house.chain.arrived).size).toBe(1);
  });

  it("sends again what a restarted node forgot", async () => {
    const { id } = await house.accept();
    const lane = house.lane();
    await lane.runRound(house.signal);
    house.chain.clearPool();
    house.clock.ms += 2_000;
    await lane.runRound(house.signal);
    expect(house.chain.poolSize).toBe(1);
    expect(new Set(house.chain.arrived).size).toBe(1);
    expect((await house.read(id)).hashes).toHaveLength(1);
  });

  it("sends the same bytes until a full pool that let them go takes them again", async () => {
    const ids = [(await house.accept()).id, (await house.accept()).id];
    const lane = house.lane();
    await lane.runRound(house.signal);
    // dropped (underpriced), with the sender's later ones; what comes now is refused for a while.
    house.chain.clearPool();
    const error = { code: -32_000, message: "transaction underpriced" };
    house.chain.override = (method) =>
      method === "eth_sendRawTransaction"
        ? { error: { ...error, data: { reason: "UNDERPRICED" } } }
        : undefined;
    for (let round = 0; round < 3; round++) {
      house.clock.ms += 2_000;
      await lane.runRound(house.signal);
    }
    expect(house.chain.poolSize).toBe(0);
    house.chain.override = () => undefined;
    house.clock.ms += 2_000;
    await lane.runRound(house.signal);
    expect(house.chain.poolSize).toBe(2);
    for (const id of ids) expect((await house.read(id)).hashes).toHaveLength(1);
    expect(new Set(house.chain.arrived).size).toBe(2);
    house.chain.mine();
    await lane.runRound(house.signal);
    for (const id of ids) expect((await house.read(id)).status).toBe("settled");
  });

  it("corrects a price below the minimum on the same slot", async () => {
    const { id } = await house.accept();
    const lane = house.lane();
    house.chain.minimumPriceAtoken = 40_000_000n;
    await lane.runRound(house.signal);
    expect((await house.read(id)).hashes).toHaveLength(2);
    await lane.runRound(house.signal);
    house.chain.mine();
    await lane.runRound(house.signal);
    const settled = await house.read(id);
    expect(settled.status).toBe("settled");
    expect(settled.nonce).toBe(0n);
    expect(settled.txHash).toBe(settled.hashes[1]);
  });

  describe("that a node finds too cheap without a word of what it takes", () => {
    const underpriced = { error: { code: -32_000, message: "transaction underpriced" } };
    const refuseAll = () => {
      house.chain.override = (method) =>
        method === "eth_sendRawTransaction" ? underpriced : undefined;
    };
    const priceOf = (raw: unknown) => decodeRaw(String(raw)).maxFeePerGasAtoken;
    const prices = () => [...new Set(house.chain.arrived)].map(priceOf);

    it("sends the same bytes for the while that this lasts, and nobody is to blame", async () => {
      const ids = [(await house.accept()).id, (await house.accept()).id];
      const lane = house.lane();
      refuseAll();
      for (let round = 0; round < 40; round += 1) {
        house.clock.ms += 500;
        await lane.runRound(house.signal);
      }
      house.chain.override = () => undefined;
      await house.pass(lane);
      for (const id of ids) {
        expect(await house.read(id)).toMatchObject({ status: "settled", hashes: { length: 1 } });
      }
      expect(await house.database.query(`SELECT 1 FROM payout_failure`)).toEqual([]);
    });

    it("makes each a tenth dearer once in the time of a better price", async () => {
      const ids = [(await house.accept()).id, (await house.accept()).id];
      const lane = house.lane();
      refuseAll();
      for (let round = 0; round < 65; round += 1) {
        await lane.runRound(house.signal);
        house.clock.ms += 1_000;
      }
      for (const id of ids) expect((await house.read(id)).hashes).toHaveLength(3);
      house.chain.override = () => undefined;
      await house.pass(lane, { rounds: 4 });
      expect(prices()).toEqual([30_250_000n, 30_250_000n]);
      for (const id of ids) expect((await house.read(id)).status).toBe("settled");
    });

    it("signs at once what the node suggests by now", async () => {
      const { id } = await house.accept();
      const lane = house.lane();
      refuseAll();
      await lane.runRound(house.signal);
      house.chain.gasPriceAtoken = 60_000_000n;
      house.chain.override = (method, [raw]) => {
        const isCheap = method === "eth_sendRawTransaction" && priceOf(raw) < 60_000_000n;
        return isCheap ? underpriced : undefined;
      };
      await house.pass(lane, { rounds: 3 });
      expect(prices()).toEqual([60_000_000n]);
      expect(await house.read(id)).toMatchObject({ status: "settled", hashes: { length: 2 } });
    });

    it("ends by the time of the lowest nonce, and not for the number of its prices", async () => {
      const { id } = await house.accept();
      const context = house.context({
        stall: { repriceAfterMs: 1_000, giveUpAfterMs: 120_000, alarmAfterMs: 60_000 },
      });
      const lane = house.laneWith(context);
      refuseAll();
      for (let round = 0; round < 80; round += 1) {
        await lane.runRound(house.signal);
        house.clock.ms += 1_000;
        house.chain.mine();
      }
      const waiting = await house.read(id);
      expect([waiting.status, waiting.hashes.length]).toEqual(["signed", 32]);
      house.chain.override = (method, [raw]) =>
        method === "eth_sendRawTransaction" && decodeRaw(String(raw)).to !== WALLET
          ? underpriced
          : undefined;
      await house.pass(lane, { rounds: 60, stepMs: 1_000 });
      expect(await house.read(id)).toMatchObject({
        status: "failed",
        reason: "its payment was not mined within 120 s",
      });
      expect(await house.database.query(`SELECT 1 FROM payout_failure`)).toEqual([]);
    });

    it("lets a transfer of nothing wait likewise", async () => {
      const { id } = await house.accept();
      const lane = house.lane();
      refuseAll();
      await lane.runRound(house.signal);
      expect(await cancelWithdrawal(house.database, id, "the customer asked")).toBe("done");
      for (let round = 0; round < 20; round += 1) {
        await lane.runRound(house.signal);
        house.clock.ms += 1_000;
      }
      expect((await house.read(id)).hashes).toHaveLength(2);
      house.chain.override = () => undefined;
      await house.pass(lane);
      expect((await house.read(id)).status).toBe("cancelled");
    });
  });

  it("waits, and never signs above the cap, when the minimum is above it", async () => {
    const { id } = await house.accept();
    const lane = house.lane();
    house.chain.minimumPriceAtoken = 2_000_000_000n;
    await lane.runRound(house.signal);
    const waiting = await house.read(id);
    expect(waiting.status).toBe("signed");
    expect(waiting.hashes).toHaveLength(1);
  });

  it("corrects too little gas on the same slot", async () => {
    const { id } = await house.accept();
    const lane = house.lane();
    house.chain.minimumGas = 60_000n;
    await lane.runRound(house.signal);
    await lane.runRound(house.signal);
    const corrected = await house.read(id);
    expect(corrected.status).toBe("broadcast");
    expect(corrected.hashes).toHaveLength(2);
    expect(decodeRaw(house.chain.arrived.at(-1) ?? "").gasLimit).toBe(72_000n);
  });

  it("keeps the slot and pauses when the wallet suddenly cannot pay", async () => {
    const { id } = await house.accept();
    const lane = house.lane();
    house.chain.override = (method) =>
      method === "eth_sendRawTransaction"
        ? {
            error: {
              code: -32000,
              message: "insufficient funds for gas * price + value: balance 0",
            },
          }
        : undefined;
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("signed");
    house.chain.override = () => undefined;
    house.clock.ms += 2_000;
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("broadcast");
  });
});
