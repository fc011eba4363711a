/** Payouts that enter code: what they may cost, whom they may keep waiting, and what failures cost. */
import { describe, expect, it } from "@jest/globals";
import { toQuantity } from "../../../../../chain/hex.js";
import { parseCustomerId } from "../../../../../ledger/journal/accounts.js";
import { cancelWithdrawal } from "../../../../../ledger/withdrawals/cancellation.js";
import { listEvents } from "../../../../helpers/events.js";
import { hashPolicy, PERMISSIVE_POLICY, rulesOf } from "../../../../../ledger/policy/policy.js";
import { createJsonRpcClient } from "../../../../../rpc-client/json-rpc.js";
import { createWalletNode } from "../../../../../withdrawal-worker/lane/wallet-node.js";
import { FAKE_CHAIN_ID } from "../../../../helpers/chains/fake-chain.js";
import { PATIENCE_MS } from "../../../../helpers/until.js";
import {
  freshAddress,
  House,
  houseForEachTest,
  TOKEN,
  statuses,
  WALLET,
} from "../../../../helpers/exchange/house.js";

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

describe("payouts to code", () => {
  it("are estimated with the price that is signed, within what the wallet can pay", async () => {
    const asked: Record<string, string>[] = [];
    house.chain.override = (method, [message]) => {
      if (method === "eth_estimateGas") asked.push(message as Record<string, string>);
      return undefined;
    };
    await house.acceptTo();
    await house.lane().runRound(house.signal);
    const { gas = "0", gasPrice = "0" } = asked[0] ?? {};
    expect([BigInt(gas), BigInt(gasPrice)]).toEqual([833_333n, 25_000_000n]);
  });

  it("do not fail because the wallet cannot pay for their gas now: they wait", async () => {
    const { id, to } = await house.acceptTo();
    house.chain.gasOf.set(to, 300_000n);
    house.chain.balances.set(WALLET, TOKEN + 100_000n * 25_000_000n);
    house.chain.mine();
    const lane = house.lane();
    await lane.runRound(house.signal);
    const waiting = await house.read(id);
    expect(waiting.status).toBe("accepted");
    expect(waiting.reason).toContain("free balance");
    house.chain.balances.set(WALLET, 2n * TOKEN);
    house.chain.mine();
    await house.database.query(`UPDATE withdrawal SET next_try_at = now()`);
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("broadcast");
  });

  it("do not fail because a payment that was mined meanwhile took the coins for their gas", async () => {
    const { id: first } = await house.acceptTo();
    house.chain.balances.set(WALLET, 2n * TOKEN + 100_000n * 25_000_000n);
    house.chain.mine();
    const lane = house.lane();
    await lane.runRound(house.signal);
    const { id, to } = await house.acceptTo();
    house.chain.gasOf.set(to, 300_000n);
    house.chain.override = (method) => {
      if (method !== "eth_estimateGas") return undefined;
      house.chain.override = () => undefined;
      house.chain.mine();
      return { error: { code: -32000, message: "gas required exceeds allowance (79000)" } };
    };
    await lane.runRound(house.signal);
    const { status, reason } = await house.read(id);
    expect([status, reason]).toEqual(["accepted", expect.stringContaining("free balance")]);
    await lane.runRound(house.signal);
    expect((await house.read(first)).status).toBe("settled");
  });

  it("do not fail by the state of a node that lacks the block of the view: they wait for it", async () => {
    const { id, to } = await house.acceptTo();
    house.chain.gasOf.set(to, 300_000n);
    const { head } = house.chain;
    let asked = 0;
    house.chain.override = (method, [, block]) => {
      if (method !== "eth_estimateGas") return undefined;
      asked += 1;
      // Before the refill there was nothing that the wallet could pay with.
      return block === toQuantity(head)
        ? { error: { code: -32000, message: "header not found" } }
        : { error: { code: 3, message: "execution reverted: no", data: "0x" } };
    };
    const lane = house.lane();
    await lane.runRound(house.signal);
    const waiting = await house.read(id);
    expect([asked > 0, waiting.status]).toEqual([true, "accepted"]);
    expect(waiting.reason).toContain("header not found");
    house.chain.override = () => undefined;
    await house.database.query(`UPDATE withdrawal SET next_try_at = now()`);
    await lane.runRound(house.signal);
    expect((await house.read(id)).status).toBe("broadcast");
  });

  it("get nonces behind plain payments, and no more gas at once than their share", async () => {
    const code = [await house.acceptTo(), await house.acceptTo(), await house.acceptTo()];
    for (const { to } of code) house.chain.gasOf.set(to, 300_000n);
    const plain = [await house.acceptTo(), await house.acceptTo()];
    const { gas } = house.context().settings;
    const lane = house.lane({ gas: { ...gas, codeGasInFlight: 720_000n } });
    await lane.runRound(house.signal);
    const nonces = async (all: typeof plain) =>
      Promise.all(all.map(async ({ id }) => (await house.read(id)).nonce));
    expect(await nonces(plain)).toEqual([0n, 1n]);
    expect(await nonces(code)).toEqual([2n, 3n, undefined]);
    const waiting = await Promise.all(code.map(async ({ id }) => (await house.read(id)).reason));
    expect(waiting[2]).toContain("other payouts");
    house.chain.mine();
    await house.database.query(
      `UPDATE withdrawal SET next_try_at = now() WHERE status = 'accepted'`,
    );
    await lane.runRound(house.signal);
    expect(await nonces(code)).toEqual([2n, 3n, 4n]);
  });

  describe("that go on waiting since their fee is too dear", () => {
    const dearGas = 700_000n;

    /** Accepts payouts to code, `dear` ones before the one that is returned; allows half the fee of those. */
    async function acceptBehind(dear: number) {
      for (let count = 0; count < dear; count += 1) {
        const { to } = await house.acceptTo();
        house.chain.withCode.add(to);
        house.chain.gasOf.set(to, dearGas);
      }
      const behind = await house.acceptTo();
      house.chain.withCode.add(behind.to);
      house.chain.gasOf.set(behind.to, dearGas / 7n);
      const { settings } = house.context();
      const feePerPayoutAtoken = (dearGas / 2n) * house.chain.gasPriceAtoken;
      const gas = { ...settings.gas, feePerPayoutAtoken };
      return { ...behind, settings: { ...settings, batchSize: 200, gas } };
    }

    /** Rounds, between which time passes for all alike. */
    async function passRounds(lane: ReturnType<House["lane"]>): Promise<void> {
      for (let round = 0; round < 2; round += 1) {
        await lane.runRound(house.signal);
        await house.database.query(
          `UPDATE withdrawal SET next_try_at = next_try_at - interval '1 minute'
            WHERE status = 'accepted'`,
        );
      }
    }

    it("do not hide those that one round has no room for", async () => {
      const { id, settings } = await acceptBehind(64);
      await passRounds(house.lane(settings));
      expect((await house.read(id)).nonce).toBe(0n);
    });

    it("do not hide those that one round has no time for", async () => {
      const { id, settings } = await acceptBehind(8);
      const rpc = createJsonRpcClient({ url: house.chain.url, timeoutMs: PATIENCE_MS });
      const identity = { chainId: FAKE_CHAIN_ID, genesisHash: house.chain.blockHash(0) };
      const node = createWalletNode(rpc, identity, { estimateBudgetMs: 1 });
      await passRounds(house.laneWith({ settings, node }));
      rpc.close();
      expect((await house.read(id)).nonce).toBe(0n);
    });
  });

  it("that fail on the chain cost what the settings say, and then are rejected by rule", async () => {
    const failures = { failureFeeAtoken: 7n, maxCount: 2, windowMs: 3_600_000 };
    const lane = house.lane({ failures });
    for (let n = 0; n < 2; n++) {
      const { to } = await house.acceptTo();
      house.chain.gasOf.set(to, 50_000n);
      house.chain.revertingOnChain.add(to);
      await lane.runRound(house.signal);
      house.chain.mine();
      await lane.runRound(house.signal);
    }
    expect(await house.balance("alice")).toEqual({ available: 100n * TOKEN - 14n, held: 0n });
    expect(await house.accountAtoken("revenue:failed_payouts")).toBe(-14n);
    expect(await countedAtoken()).toBe(-14n);
    const third = await house.acceptTo();
    house.chain.gasOf.set(third.to, 50_000n);
    const plain = await house.acceptTo();
    await house.fund("bob", TOKEN);
    const bobs = freshAddress();
    house.chain.gasOf.set(bobs, 50_000n);
    const other = await house.accept({
      customerId: parseCustomerId("bob"),
      destination: bobs,
      destinationText: bobs,
    });
    await lane.runRound(house.signal);
    const rejected = await house.read(third.id);
    expect(statuses(rejected)).toEqual(["accepted", "rejected"]);
    expect(rejected.reason).toContain("rule failed-payouts");
    expect((await house.read(plain.id)).status).toBe("broadcast");
    expect((await house.read(other.id)).status).toBe("broadcast");
    await expectEvenBooksWithBob();
  });

  it("tell by events what they cost, the service fee of others with them", async () => {
    const fees = { ...rulesOf(PERMISSIVE_POLICY, "TOKEN"), feeUnits: 3n };
    house.files.policy = hashPolicy({ ...PERMISSIVE_POLICY, assets: new Map([["TOKEN", fees]]) });
    const lane = house.lane({ failures: { failureFeeAtoken: 7n, maxCount: 0, windowMs: 60_000 } });
    const failing = await house.acceptTo();
    house.chain.gasOf.set(failing.to, 50_000n);
    house.chain.revertingOnChain.add(failing.to);
    const paid = await house.acceptTo();
    const unwanted = await house.acceptTo();
    await cancelWithdrawal(house.database, unwanted.id, "the client changed its mind");
    await house.pass(lane, { rounds: 4, stepMs: 1_000 });
    expect((await house.read(failing.id)).status).toBe("failed");
    expect((await house.read(paid.id)).status).toBe("settled");
    const { available, held } = await house.balance("alice");
    expect([available, held]).toEqual([99n * TOKEN - 10n, 0n]);
    expect(await countedAtoken()).toBe(available - 100n * TOKEN);
  });

  /** What withdrawals did to a balance, as somebody counts it who reads nothing but events. */
  async function countedAtoken(): Promise<bigint> {
    let sum = 0n;
    for (const { type, data } of await listEvents(house.database, { afterSeq: 0, limit: 1_000 })) {
      const units = (field: string) => BigInt(String(data[field]));
      if (type === "withdrawal.settled") sum -= units("amountUnits") + units("feeUnits");
      if (type === "withdrawal.failed") sum -= units("chargedUnits");
    }
    return sum;
  }

  /** Bob's coins were funded beyond alice's hundred. */
  async function expectEvenBooksWithBob(): Promise<void> {
    const fees = (await house.accountAtoken("expense:network_fee")) * -1n;
    const hot = await house.accountAtoken(`asset:wallet:${WALLET}`);
    expect(hot).toBe(101n * TOKEN + fees);
  }
});
