/**
 * Tokens from deposit to settled payout on a real chain, the lane over the node's own pool and EVM;
 * and payouts whose contract says one thing and does another.
 */
import { describe, expect, it } from "@jest/globals";
import { readFreeze } from "../../../ledger/requests/signing-freeze.js";
import {
  acceptWithdrawals,
  findWithdrawal,
  type Withdrawal,
} from "../../../ledger/withdrawals/withdrawals.js";
import { readWalletTransactions } from "../../../cli/commands/wallets/wallet-transactions.js";
import { openLedger } from "../../../ledger/database.js";
import { declareRecovery } from "../../../ledger/guard/recovery-incident.js";
import { freezeRecovered } from "../../../ledger/requests/recovered-payments.js";
import { applyRecovery } from "../../../ledger/recovery/recovery.js";
import { planRecovery, type RecoveryChain } from "../../../ledger/recovery/recovery-plan.js";
import { listWallets } from "../../../ledger/wallets/wallet.js";
import { ANY_REQUEST } from "../../helpers/keys/signing.js";
import { copyTestDatabase } from "../../helpers/services/postgres.js";
import { derivation } from "../../helpers/services/watcher.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { House, requestOf, WALLET } from "../../helpers/exchange/house.js";
import {
  callOf,
  contractAt,
  type ContractName,
  ISSUER,
  THIEF,
  TokenBench,
  TOKENS,
} from "./token-bench.js";
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
  it("are paid from credited deposits, settled by their own log, and leave books even", async () => {
    expect(await payouts.balanceOf("alice", "PLAIN")).toMatchObject({ availableUnits: 1_000n });
    const paid = await payouts.accept("PLAIN", 300n);
    expect(await payouts.balanceOf("alice", "PLAIN")).toMatchObject({
      availableUnits: 700n,
      heldUnits: 300n,
    });
    await payouts.rounds(4);
    const settled = await payouts.read(paid);
    expect(settled).toMatchObject({ status: "settled", asset: "PLAIN", amountUnits: 300n });
    expect(await payouts.held("PlainToken", paid.destination)).toBe(300n);
    expect(await payouts.held("PlainToken", WALLET)).toBe(200n);
    expect(await payouts.balanceOf("alice", "PLAIN")).toMatchObject({
      availableUnits: 700n,
      heldUnits: 0n,
    });
    const [proof] = await bench.ledger.owner.query(
      `SELECT paid_proof FROM nonce_slot WHERE withdrawal_id = $1`,
      [paid.id],
    );
    expect(proof).toEqual({ paid_proof: "transfer" });
    const report = await bench.reconcile();
    expect([report.clean, report.tokens.flatMap(({ lines }) => lines)]).toMatchObject([true, {}]);
  });

  it("are not paid again out of a backup that lost them: the chain remembers the transfer", async () => {
    const { url, drop } = await copyTestDatabase(bench.ledger.ownerUrl);
    const paid = await payouts.accept("PLAIN", 77n);
    await payouts.rounds(4);
    expect((await payouts.read(paid)).status).toBe("settled");
    const genesisHash = bench.chain.chain.view.genesis().block.hash;
    const identity = { chainId: 6940n, genesisHash };
    const restored = await openLedger({ url, log: silentLog, signal, identity });
    await declareRecovery(restored, {
      reason: "a backup",
      operator: "test",
      nextAddressIndex: 0,
    });
    const chain: RecoveryChain = {
      headHeight: () => bench.node.blockNumber({ signal }),
      nonceAt: (wallet, at) => bench.node.getTransactionCount(wallet, at, { signal }),
      queuedNonces: (wallet) => bench.node.queuedNonces(wallet, { signal }),
      transactions: (wallet, range) =>
        readWalletTransactions(bench.node, wallet, { ...range, signal }),
      areActive: async (addresses) => addresses.map(() => false),
      addressAt: (index) => derivation.addressAt(index),
    };
    const plan = await planRecovery({
      database: restored,
      chain,
      wallets: await listWallets(restored),
      tokens: TOKENS,
    });
    if (plan === undefined) throw new Error("nothing to recover");
    await applyRecovery(restored, plan, "test");
    const [found] = await restored.query<{ hash: string }>(
      `SELECT tx_hash AS hash, contract, destination, amount_units::text AS amount
         FROM recovered_payment WHERE decision IS NULL`,
    );
    expect(found).toEqual({
      hash: paid.hashes[0] ?? (await payouts.read(paid)).txHash,
      contract: contractAt("PlainToken"),
      destination: paid.destination,
      amount: "77",
    });
    const same = { asset: "PLAIN", amountUnits: 77n, destination: paid.destination };
    const outcomes = await acceptWithdrawals(
      restored,
      [requestOf({ ...same, asset: "MOODY" }), requestOf(same)],
      ANY_REQUEST,
    );
    const [other, again] = outcomes.map((outcome) => {
      if (outcome.outcome === "refused") throw new Error(outcome.refusal);
      return outcome.withdrawal.id;
    });
    if (other === undefined || again === undefined) throw new Error("no request");
    // As when a slot is asked for: of another token it is another payment.
    const { frozen } = await restored.transaction((tx) => freezeRecovered(tx, [other, again]));
    expect(frozen).toEqual([again]);
    await bench.decide(
      restored,
      {
        action: "link-payment",
        hash: String(found?.hash),
        withdrawalId: again,
      },
      "it is this one",
    );
    expect((await findWithdrawal(restored, again))?.status).toBe("settled");
    const [left] = await restored.query(
      `SELECT sum(CASE WHEN debit = 'asset:recovered_payments' THEN amount_units
                       ELSE -amount_units END)::text AS sum
         FROM posting WHERE 'asset:recovered_payments' IN (debit, credit) AND asset = 'PLAIN'`,
    );
    expect(left).toEqual({ sum: "0" });
    await restored.close();
    await drop();
    await bench.mine([callOf("PlainToken", "mint", [WALLET, 77n])]);
    await payouts.settleBlocks();
  });

  it("wait while the wallet has too few of the token, and never share what it has", async () => {
    const [first, second] = [
      await payouts.accept("PLAIN", 150n),
      await payouts.accept("PLAIN", 150n),
    ];
    await payouts.rounds(4);
    const states = [await payouts.read(first), await payouts.read(second)].map(
      ({ status }) => status,
    );
    expect(states.toSorted()).toEqual(["accepted", "settled"]);
    await bench.mine([callOf("PlainToken", "mint", [WALLET, 100n])]);
    await payouts.settleBlocks();
    await payouts.rounds(4);
    expect((await payouts.read(second)).status).toBe("settled");
    expect((await bench.reconcile()).clean).toBe(true);
  });

  it("wait where a payment on its way took the tokens between the look and the estimate", async () => {
    await bench.mine([callOf("PlainToken", "mint", [WALLET, 100n])]);
    await payouts.settleBlocks();
    const has = await payouts.held("PlainToken", WALLET);
    const first = await payouts.accept("PLAIN", has - 10n);
    house.clock.ms += 3_000;
    await payouts.lane.runRound(signal);
    const second = await payouts.accept("PLAIN", 20n);
    payouts.beforeEstimate = () => bench.mine([], [...new Set(payouts.sent)]);
    await payouts.lane.runRound(signal);
    expect(payouts.beforeEstimate).toBeUndefined();
    payouts.sent = [];
    expect(await payouts.held("PlainToken", WALLET)).toBe(10n);
    const { status, reason } = await payouts.read(second);
    expect({ status, reason }).toEqual({
      status: "accepted",
      reason: "waits: the hot wallet's free balance does not cover it",
    });
    await bench.mine([callOf("PlainToken", "mint", [WALLET, 10n])]);
    await payouts.rounds(4);
    expect((await payouts.read(first)).status).toBe("settled");
    expect((await payouts.read(second)).status).toBe("settled");
  });

  it("are paid of what a mined payment has left, while the watcher looks at no block", async () => {
    await bench.mine([callOf("PlainToken", "mint", [WALLET, 50n])]);
    await payouts.settleBlocks();
    const has = await payouts.held("PlainToken", WALLET);
    await bench.stopWatching();
    const first = await payouts.accept("PLAIN", has - 20n);
    await payouts.roundsUnwatched(payouts.lane, 2);
    expect((await payouts.read(first)).status).toBe("included");
    const second = await payouts.accept("PLAIN", 20n);
    await payouts.lane.runRound(signal);
    expect((await payouts.read(second)).status).toBe("broadcast");
    const third = await payouts.accept("PLAIN", 1n);
    await payouts.roundsUnwatched(payouts.lane, 2);
    const states = [
      await payouts.read(first),
      await payouts.read(second),
      await payouts.read(third),
    ];
    expect(states.map(({ status }) => status)).toEqual(["included", "included", "accepted"]);
    await bench.watch();
    await bench.caughtUp();
    await bench.mine([callOf("PlainToken", "mint", [WALLET, 1n])]);
    await payouts.rounds(4);
    for (const each of [first, second, third])
      expect((await payouts.read(each)).status).toBe("settled");
    expect((await bench.reconcile()).clean).toBe(true);
  });

  it("fail without a nonce where the token answers that it does not transfer", async () => {
    await bench.mine([callOf("MoodyToken", "setMood", [1n])]);
    const refused = await payouts.accept("MOODY", 100n);
    await payouts.rounds(2);
    const found = await payouts.read(refused);
    expect(found).toMatchObject({ status: "failed", nonce: undefined });
    expect(found.reason).toContain("does not transfer");
    expect(await payouts.balanceOf("alice", "MOODY")).toMatchObject({ availableUnits: 1_000n });
  });

  it("freeze for a person where the token says yes and moves nothing, and are never paid again", async () => {
    await bench.mine([callOf("MoodyToken", "setMood", [2n])]);
    const silent = await payouts.accept("MOODY", 100n);
    await payouts.rounds(5);
    const frozen = await payouts.read(silent);
    expect(frozen).toMatchObject({ status: "frozen" });
    expect(frozen.reason).toContain(`causeway ledger decide-transfer ${silent.id}`);
    expect(await payouts.balanceOf("alice", "MOODY")).toMatchObject({ heldUnits: 100n });
    expect(frozen.hashes).toHaveLength(1);
    // The database itself knows no way around the proof.
    await expect(
      bench.ledger.owner.query(
        `UPDATE nonce_slot SET outcome = 'paid', paid_proof = 'receipt' WHERE withdrawal_id = $1`,
        [silent.id],
      ),
    ).rejects.toThrow("nothing proves");
    expect((await bench.reconcile()).clean).toBe(true);
    await bench.decide(
      payouts.operator,
      { action: "decide-transfer", withdrawalId: silent.id, isPaid: false },
      "the token's own balances show that nothing moved",
    );
    expect(await payouts.read(silent)).toMatchObject({ status: "failed" });
    expect(await payouts.balanceOf("alice", "MOODY")).toMatchObject({
      availableUnits: 1_000n,
      heldUnits: 0n,
    });
    expect(await payouts.held("MoodyToken", silent.destination)).toBe(0n);
    await bench.mine([callOf("MoodyToken", "setMood", [0n])]);
    await payouts.settleBlocks();
    expect((await bench.reconcile()).clean).toBe(true);
  });

  it("are settled though their recipient had a transfer of nothing logged beside them", async () => {
    await bench.mine([callOf("MoodyToken", "setMood", [5n])]);
    const paid = await payouts.accept("MOODY", 100n);
    await payouts.rounds(5);
    expect(await payouts.read(paid)).toMatchObject({ status: "settled" });
    expect(await payouts.held("MoodyToken", paid.destination)).toBe(100n);
    await bench.mine([callOf("MoodyToken", "setMood", [0n])]);
    await payouts.settleBlocks();
    expect((await bench.reconcile()).clean).toBe(true);
  });

  it("are not settled by a log before the watcher has looked at its block, and hide no others", async () => {
    const upgrade = (name: ContractName) =>
      callOf("UpgradableProxy", "upgradeTo", [contractAt(name)]);
    const before = await payouts.accept("PROXY", 10n);
    const own = payouts.openLane({ batchSize: 1 });
    await bench.stopWatching();
    await payouts.roundsUnwatched(own, 1);
    await bench.mine([upgrade("FeeToken")]);
    const forged = await Promise.all(
      Array.from({ length: 9 }, () => payouts.accept("PROXY", 100n)),
    );
    await payouts.roundsUnwatched(own, 14);
    const coins = await payouts.accept("TOKEN", 5n);
    await payouts.roundsUnwatched(own, 4);
    const statusesOf = async (some: readonly Withdrawal[]) => {
      const found = await Promise.all(some.map((one) => payouts.read(one)));
      return [...new Set(found.map(({ status }) => status))];
    };
    expect(await statusesOf([before, ...forged])).toEqual(["included"]);
    expect(await statusesOf([coins])).toEqual(["settled"]);
    // Nobody has to be told, and nothing waits for it.
    house.clock.ms += 3_600_000;
    expect([await own.runRound(signal), own.status()]).toMatchObject([
      false,
      { blockedReason: undefined, stalledMs: 0 },
    ]);
    await bench.watch();
    await bench.caughtUp();
    await payouts.roundsUnwatched(own, 4);
    expect(await statusesOf([before])).toEqual(["settled"]);
    expect(await statusesOf(forged)).toEqual(["frozen"]);
    expect((await payouts.read(before)).hashes).toHaveLength(1);
    for (const { id: withdrawalId } of forged) {
      const terms = { action: "decide-transfer", withdrawalId, isPaid: true } as const;
      await bench.decide(payouts.operator, terms, "its destination has it");
    }
    await bench.mine([upgrade("PlainToken")]);
    await payouts.settleBlocks();
    await payouts.goOn("PROXY");
    expect((await bench.reconcile()).clean).toBe(true);
  });

  it("stop when somebody else takes tokens from the wallet, and reconcile names the theft", async () => {
    await bench.mine([callOf("PlainToken", "mint", [WALLET, 50n])]);
    await payouts.settleBlocks();
    const nonce = await payouts.provider.getTransactionCount(WALLET);
    bench.skipNonce(THIEF.address, nonce);
    const loot = { ...callOf("PlainToken", "transfer", [ISSUER.address, 40n]), from: THIEF };
    const [theft] = await bench.mine([loot]);
    await payouts.settleBlocks();
    expect((await readFreeze(bench.database, WALLET)).frozen).toBe(true);
    const outflows = await bench.database.query(
      `SELECT asset, amount_units::text AS amount FROM foreign_outflow
        WHERE tx_hash = $1 ORDER BY asset`,
      [theft],
    );
    expect(outflows).toEqual([
      { asset: "PLAIN", amount: "40" },
      { asset: "TOKEN", amount: "0" },
    ]);
    const report = await bench.reconcile();
    expect(report.clean).toBe(false);
    const plain = report.tokens.find(({ asset }) => asset === "PLAIN");
    expect(plain?.lines[0]).toMatchObject({
      differenceUnits: -40n,
      breaks: [{ causes: [{ txHash: theft, chainUnits: -40n, ledgerUnits: 0n }] }],
    });
    await bench.decide(
      payouts.operator,
      { action: "accept-outflow", hash: String(theft), account: "asset:break" },
      "stolen",
    );
    expect((await bench.reconcile()).clean).toBe(true);
  });
});
