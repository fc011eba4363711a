/** Payouts of a token that is paused: by a person, or because its contract runs other code. */
import { afterEach, describe, expect, it } from "@jest/globals";
import { decodeRaw, House, WALLET } from "../../helpers/exchange/house.js";
import { callOf, TokenBench } from "./token-bench.js";
import { type PayoutBench, payoutsForTests } from "./payout-bench.js";

const { signal } = new AbortController();

let payouts: PayoutBench;
let bench: TokenBench;
let house: House;

payoutsForTests((opened) => {
  payouts = opened;
  ({ bench, house } = opened);
});

describe("withdrawals of tokens", () => {
  it("are not given out of a paused token, while others are", async () => {
    await bench.ledger.owner.query(
      `UPDATE token_state SET paused = true, reason = 'test', changed_by = 'test'
        WHERE asset = 'MOODY'`,
    );
    const [waiting, other] = [await payouts.accept("MOODY", 5n), await payouts.accept("PLAIN", 5n)];
    await bench.mine([callOf("PlainToken", "mint", [WALLET, 5n])]);
    await payouts.settleBlocks();
    await payouts.rounds(4);
    expect((await payouts.read(waiting)).status).toBe("accepted");
    expect((await payouts.read(other)).status).toBe("settled");
    await bench.ledger.owner.query(
      `UPDATE token_state SET paused = false, reason = '', changed_by = 'test'
        WHERE asset = 'MOODY'`,
    );
    await payouts.rounds(4);
    expect((await payouts.read(waiting)).status).toBe("settled");
  });

  describe("of a token that is paused for other code", () => {
    const pauseToken = (height: number, again = "") =>
      bench.ledger.owner.query(
        `UPDATE token_state SET paused = true, changed_by = 'test', reason = $1
          WHERE asset = 'MOODY'`,
        [`its contract runs other code after block ${height} than was accepted${again}`],
      );
    const head = () => bench.node.blockNumber({ signal });

    afterEach(() => payouts.goOn());

    it("give their nonce up where nothing was signed for it, and the hold goes back", async () => {
      const [unsigned, other] = [
        await payouts.accept("MOODY", 5n),
        await payouts.accept("PLAIN", 5n),
      ];
      await bench.mine([callOf("PlainToken", "mint", [WALLET, 5n])]);
      await payouts.settleBlocks();
      const before = await payouts.balanceOf("alice", "MOODY");
      payouts.behindSlots = async () => pauseToken(await head());
      await payouts.rounds(5);
      const { status, reason, hashes } = await payouts.read(unsigned);
      expect([status, reason, hashes.length]).toEqual([
        "failed",
        "its token is paused, because the contract runs other code than was accepted: " +
          "causeway tokens state",
        1,
      ]);
      expect(await payouts.held("MoodyToken", unsigned.destination)).toBe(0n);
      expect(await payouts.balanceOf("alice", "MOODY")).toMatchObject({
        availableUnits: (before?.availableUnits ?? 0n) + 5n,
        heldUnits: 0n,
      });
      expect((await payouts.read(other)).status).toBe("settled");
      expect((await bench.reconcile()).clean).toBe(true);
    });

    it("are proven by no log of that code, and wait for a person", async () => {
      const paid = await payouts.accept("MOODY", 5n);
      house.clock.ms += 3_000;
      await payouts.lane.runRound(signal);
      await pauseToken((await head()) + 1);
      // Looked at again, for yet other code that came later.
      await pauseToken((await head()) + 1_000, ", again");
      await payouts.rounds(4);
      const { status, reason, hashes } = await payouts.read(paid);
      expect(status).toBe("frozen");
      expect(reason).toContain(`causeway ledger decide-transfer ${paid.id}`);
      // Also behind it: that the code of before is back says nothing of what this one did.
      await payouts.goOn();
      expect(await payouts.lookAgain(paid)).toEqual([
        { obstacle: "unproven", id: paid.id, hash: hashes[0] },
      ]);
      await bench.decide(
        payouts.operator,
        { action: "decide-transfer", withdrawalId: paid.id, isPaid: true },
        "the destination has it",
      );
      expect((await payouts.read(paid)).status).toBe("settled");
      expect((await bench.reconcile()).clean).toBe(true);
    });

    it("are settled where they were mined before it", async () => {
      const paid = await payouts.accept("MOODY", 5n);
      house.clock.ms += 3_000;
      await payouts.lane.runRound(signal);
      await pauseToken((await head()) + 2);
      await payouts.rounds(4);
      expect((await payouts.read(paid)).status).toBe("settled");
    });

    it("are made no dearer, and give their nonces up together for whoever waits behind them", async () => {
      await bench.mine([callOf("PlainToken", "mint", [WALLET, 5n])]);
      await payouts.settleBlocks();
      const stopped = [await payouts.accept("MOODY", 5n), await payouts.accept("MOODY", 6n)];
      const behind = await payouts.accept("PLAIN", 5n);
      house.clock.ms += 3_000;
      await payouts.lane.runRound(signal);
      await pauseToken(await head());
      for (let round = 0; round < 4; round++) {
        house.clock.ms += 40_000;
        await payouts.lane.runRound(signal);
        await bench.mine([]);
      }
      const latest = new Map(payouts.sent.map((raw) => [decodeRaw(raw).nonce, raw]));
      payouts.sent = [...latest.values()];
      await payouts.rounds(3);
      for (const each of stopped) {
        const { status, reason } = await payouts.read(each);
        const signed = await bench.database.query(
          `SELECT 1 FROM withdrawal_attempt a JOIN nonce_slot s ON s.id = a.slot_id
            WHERE s.withdrawal_id = $1 AND a.kind = 'payment'`,
          [each.id],
        );
        expect([status, reason, signed.length]).toEqual([
          "failed",
          "its token is paused: nothing dearer is signed for its payment",
          1,
        ]);
        expect(await payouts.held("MoodyToken", each.destination)).toBe(0n);
      }
      expect(await payouts.read(behind)).toMatchObject({
        status: "settled",
        hashes: { length: 1 },
      });
      expect((await payouts.balanceOf("alice", "MOODY"))?.heldUnits).toBe(0n);
      expect((await bench.reconcile()).clean).toBe(true);
    });

    it("give their nonce up at once where the node refuses them", async () => {
      payouts.refusal = "transaction underpriced";
      const refused = await payouts.accept("MOODY", 5n);
      payouts.behindSignatures = async () => pauseToken(await head());
      house.clock.ms += 3_000;
      await payouts.lane.runRound(signal);
      payouts.refusal = undefined;
      expect((await payouts.read(refused)).status).toBe("cancelling");
      await payouts.rounds(3);
      expect(await payouts.read(refused)).toMatchObject({
        status: "failed",
        hashes: { length: 2 },
      });
      expect(await payouts.held("MoodyToken", refused.destination)).toBe(0n);
    });
  });
});
