/**
 * Tokens from deposit to settled payout on a real chain, the lane over the node's own pool and EVM;
 * and payouts whose contract says one thing and does another.
 */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { Contract, JsonRpcProvider } from "ethers";
import type { Address } from "../../../chain/address.js";
import type { Hex } from "../../../chain/hex.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { customerBalances } from "../../../ledger/deposits/deposit-queries.js";
import { readFreeze } from "../../../ledger/requests/signing-freeze.js";
import {
  acceptWithdrawals,
  findWithdrawal,
  type Withdrawal,
} from "../../../ledger/withdrawals/withdrawals.js";
import { releaseWithdrawal } from "../../../ledger/withdrawals/release/release.js";
import { RpcError } from "../../../rpc-client/errors.js";
import { Lane } from "../../../withdrawal-worker/lane/lane.js";
import type { LaneSettings } from "../../../withdrawal-worker/lane/lane-context.js";
import { createLaneGuard } from "../../../withdrawal-worker/lane/lane-guard.js";
import { createLaneLedger } from "../../../withdrawal-worker/lane/lane-ledger.js";
import { readWalletTransactions } from "../../../cli/commands/wallets/wallet-transactions.js";
import { type LedgerDatabase, openLedger } from "../../../ledger/database.js";
import { declareRecovery } from "../../../ledger/guard/recovery-incident.js";
import { freezeRecovered } from "../../../ledger/requests/recovered-payments.js";
import { applyRecovery } from "../../../ledger/recovery/recovery.js";
import { planRecovery, type RecoveryChain } from "../../../ledger/recovery/recovery-plan.js";
import { listWallets } from "../../../ledger/wallets/wallet.js";
import { ANY_REQUEST, laneRules } from "../../helpers/keys/signing.js";
import { copyTestDatabase } from "../../helpers/services/postgres.js";
import { derivation } from "../../helpers/services/watcher.js";
import { roleUrl, silentLog } from "../../helpers/services/ledger.js";
import {
  decodeRaw,
  freshAddress,
  House,
  requestOf,
  WALLET,
  WALLET_KEY,
} from "../../helpers/exchange/house.js";
import {
  callOf,
  contractAt,
  type ContractName,
  ISSUER,
  THIEF,
  TokenBench,
  TOKENS,
} from "./token-bench.js";
import { createPatientNode } from "../../helpers/exchange/patient-node.js";

const { signal } = new AbortController();

let bench: TokenBench;
let house: House;
/** In the roles of the worker and of a person's commands. */
let worker: LedgerDatabase;
let operator: LedgerDatabase;
let lane: Lane;
let provider: JsonRpcProvider;
let alice: Address;
/** What the lane sent since the last block. */
let sent: Hex[] = [];
/** Done once, before the lane's next estimate of a token's transfer. */
let beforeEstimate: (() => Promise<unknown>) | undefined;
/** Done once, between the lane's next nonces and their signatures. */
let behindSlots: (() => Promise<unknown>) | undefined;
/** Done once, between the lane's next signatures and their sending. */
let behindSignatures: (() => Promise<unknown>) | undefined;
/** What the node says to whatever is sent; undefined while it takes it. */
let refusal: string | undefined;

beforeAll(async () => {
  bench = await TokenBench.open();
  house = await House.open();
  alice = await bench.register("alice");
  await bench.watch();
  await bench.deploy();
  await bench.mine([
    callOf("PlainToken", "mint", [WALLET, 500n]),
    callOf("MoodyToken", "mint", [WALLET, 1_000n]),
    callOf("PlainToken", "mint", [alice, 1_000n]),
    callOf("MoodyToken", "mint", [alice, 1_000n]),
    callOf("UpgradableProxy", "mint", [WALLET, 10_000n]),
    callOf("UpgradableProxy", "mint", [alice, 1_000n]),
    { to: WALLET, value: 10n ** 18n },
    { to: alice, value: 10n ** 15n },
  ]);
  await settleBlocks();
  [worker, operator] = await Promise.all([openAs("worker"), openAs("operator")]);
  lane = openLane();
  provider = new JsonRpcProvider(bench.chain.url, 6940, { staticNetwork: true });
});

afterAll(async () => {
  provider.destroy();
  await Promise.all([worker.close(), operator.close()]);
  await house.close();
  await bench.close();
});

function openAs(service: "worker" | "operator"): Promise<LedgerDatabase> {
  const genesisHash = bench.chain.chain.view.genesis().block.hash;
  const identity = { chainId: 6940n, genesisHash };
  const url = roleUrl(bench.ledger.ownerUrl, service);
  return openLedger({ url, log: silentLog, signal, identity });
}

/** A lane of the bench's ledger and chain, with the settings of the lane's other tests. */
function openLane(settings: Partial<LaneSettings> = {}): Lane {
  const context = house.context(settings);
  const database = worker;
  const ledger = createLaneLedger(database);
  const genesisHash = bench.chain.chain.view.genesis().block.hash;
  const node = createPatientNode(bench.rpc, { chainId: 6940n, genesisHash });
  return new Lane(
    {
      ...context,
      ...laneRules({
        privateKey: WALLET_KEY,
        chainId: 6940n,
        limits: {
          gasPriceCapAtoken: context.settings.gas.priceCapAtoken,
          gasLimitMax: context.settings.gas.limitMax,
        },
        sql: database,
        contractOf: (asset) => TOKENS.find(({ symbol }) => symbol === asset)?.contractAddress,
      }),
      ledger: {
        ...ledger,
        takeSlots: async (...asked) => {
          const taken = await ledger.takeSlots(...asked);
          const task = behindSlots;
          behindSlots = undefined;
          await task?.();
          return taken;
        },
        storeAttempts: async (...asked) => {
          const isStored = await ledger.storeAttempts(...asked);
          const task = behindSignatures;
          behindSignatures = undefined;
          await task?.();
          return isStored;
        },
      },
      guard: createLaneGuard({ database, wallet: WALLET, log: silentLog }),
      node: {
        ...node,
        estimate: async (...asked) => {
          const task = asked[1].length > 0 ? beforeEstimate : undefined;
          if (task !== undefined) beforeEstimate = undefined;
          await task?.();
          return node.estimate(...asked);
        },
        send: async (raws, options) => {
          if (refusal !== undefined) {
            const rpc = { rpcCode: -32_000, method: "eth_sendRawTransaction" };
            const error = new RpcError(refusal, rpc);
            return raws.map(() => ({ outcome: "refused" as const, error }));
          }
          sent.push(...raws);
          return node.send(raws, options);
        },
      },
    },
    "worker",
  );
}

async function settleBlocks(): Promise<void> {
  await bench.mine([]);
  await bench.mine([]);
  await bench.caughtUp();
}

async function accept(asset: string, amountUnits: bigint): Promise<Withdrawal> {
  const destination = freshAddress();
  const request = requestOf({ asset, amountUnits, destination, idempotencyKey: randomUUID() });
  const [outcome] = await acceptWithdrawals(worker, [request], ANY_REQUEST);
  if (outcome?.outcome !== "accepted") throw new Error(JSON.stringify(outcome));
  return outcome.withdrawal;
}

async function read({ id }: Withdrawal): Promise<Withdrawal> {
  const found = await findWithdrawal(bench.database, id);
  if (found === undefined) throw new Error("it is gone");
  return found;
}

/** Requests that wait are due at once. */
const hurry = () =>
  bench.ledger.owner.query(`UPDATE withdrawal SET next_try_at = now() WHERE status = 'accepted'`);

/** Rounds of the lane, each with a block of what it sent; requests that wait are due each time. */
async function rounds(count: number): Promise<void> {
  for (let round = 0; round < count; round++) {
    house.clock.ms += 3_000;
    await hurry();
    await lane.runRound(signal);
    const raws = [...new Set(sent)];
    sent = [];
    await bench.mine([], raws);
    // Nothing of a token is settled before the watcher has looked at its block.
    await bench.caughtUp();
  }
}

/** Rounds of a lane while the watcher stands still, each with a block of what it sent. */
async function roundsUnwatched(own: Lane, count: number): Promise<void> {
  for (let round = 0; round < count; round++) {
    house.clock.ms += 3_000;
    await hurry();
    await own.runRound(signal);
    const raws = [...new Set(sent)];
    sent = [];
    await bench.mine([], raws);
  }
}

/** A person has the chain looked at again. */
async function lookAgain({ id }: Withdrawal) {
  const { node } = bench;
  const { obstacles } = await releaseWithdrawal(
    {
      database: operator,
      wallet: WALLET,
      chainOf: (wallet) => ({
        headHeight: () => node.blockNumber({ signal }),
        nonceAt: (at) => node.getTransactionCount(wallet, at, { signal }),
        queuedNonces: () => node.queuedNonces(wallet, { signal }),
        receipts: (hashes) => node.getTransactionReceipts(hashes, { signal }),
        transactions: async () => [],
      }),
      paymentOf: async () => undefined,
    },
    id,
    { decision: "look-again" },
  );
  return obstacles;
}

async function balanceOf(customer: string, asset: string) {
  const balances = await customerBalances(bench.database, parseCustomerId(customer));
  return balances?.find((each) => each.asset === asset);
}

/** As ethers reads it. */
function held(name: "PlainToken" | "MoodyToken", account: string): Promise<bigint> {
  const abi = ["function balanceOf(address) view returns (uint256)"];
  return new Contract(contractAt(name), abi, provider).getFunction("balanceOf")(account);
}

describe("withdrawals of tokens", () => {
  it("are paid from credited deposits, settled by their own log, and leave books even", async () => {
    expect(await balanceOf("alice", "PLAIN")).toMatchObject({ availableUnits: 1_000n });
    const paid = await accept("PLAIN", 300n);
    expect(await balanceOf("alice", "PLAIN")).toMatchObject({
      availableUnits: 700n,
      heldUnits: 300n,
    });
    await rounds(4);
    const settled = await read(paid);
    expect(settled).toMatchObject({ status: "settled", asset: "PLAIN", amountUnits: 300n });
    expect(await held("PlainToken", paid.destination)).toBe(300n);
    expect(await held("PlainToken", WALLET)).toBe(200n);
    expect(await balanceOf("alice", "PLAIN")).toMatchObject({
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
    const paid = await accept("PLAIN", 77n);
    await rounds(4);
    expect((await read(paid)).status).toBe("settled");
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
      hash: paid.hashes[0] ?? (await read(paid)).txHash,
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
    await settleBlocks();
  });

  it("wait while the wallet has too few of the token, and never share what it has", async () => {
    const [first, second] = [await accept("PLAIN", 150n), await accept("PLAIN", 150n)];
    await rounds(4);
    const states = [await read(first), await read(second)].map(({ status }) => status);
    expect(states.toSorted()).toEqual(["accepted", "settled"]);
    await bench.mine([callOf("PlainToken", "mint", [WALLET, 100n])]);
    await settleBlocks();
    await rounds(4);
    expect((await read(second)).status).toBe("settled");
    expect((await bench.reconcile()).clean).toBe(true);
  });

  it("wait where a payment on its way took the tokens between the look and the estimate", async () => {
    await bench.mine([callOf("PlainToken", "mint", [WALLET, 100n])]);
    await settleBlocks();
    const has = await held("PlainToken", WALLET);
    const first = await accept("PLAIN", has - 10n);
    house.clock.ms += 3_000;
    await lane.runRound(signal);
    const second = await accept("PLAIN", 20n);
    beforeEstimate = () => bench.mine([], [...new Set(sent)]);
    await lane.runRound(signal);
    expect(beforeEstimate).toBeUndefined();
    sent = [];
    expect(await held("PlainToken", WALLET)).toBe(10n);
    const { status, reason } = await read(second);
    expect({ status, reason }).toEqual({
      status: "accepted",
      reason: "waits: the hot wallet's free balance does not cover it",
    });
    await bench.mine([callOf("PlainToken", "mint", [WALLET, 10n])]);
    await rounds(4);
    expect((await read(first)).status).toBe("settled");
    expect((await read(second)).status).toBe("settled");
  });

  it("are paid of what a mined payment has left, while the watcher looks at no block", async () => {
    await bench.mine([callOf("PlainToken", "mint", [WALLET, 50n])]);
    await settleBlocks();
    const has = await held("PlainToken", WALLET);
    await bench.stopWatching();
    const first = await accept("PLAIN", has - 20n);
    await roundsUnwatched(lane, 2);
    expect((await read(first)).status).toBe("included");
    const second = await accept("PLAIN", 20n);
    await lane.runRound(signal);
    expect((await read(second)).status).toBe("broadcast");
    const third = await accept("PLAIN", 1n);
    await roundsUnwatched(lane, 2);
    const states = [await read(first), await read(second), await read(third)];
    expect(states.map(({ status }) => status)).toEqual(["included", "included", "accepted"]);
    await bench.watch();
    await bench.caughtUp();
    await bench.mine([callOf("PlainToken", "mint", [WALLET, 1n])]);
    await rounds(4);
    for (const each of [first, second, third]) expect((await read(each)).status).toBe("settled");
    expect((await bench.reconcile()).clean).toBe(true);
  });

  it("fail without a nonce where the token answers that it does not transfer", async () => {
    await bench.mine([callOf("MoodyToken", "setMood", [1n])]);
    const refused = await accept("MOODY", 100n);
    await rounds(2);
    const found = await read(refused);
    expect(found).toMatchObject({ status: "failed", nonce: undefined });
    expect(found.reason).toContain("does not transfer");
    expect(await balanceOf("alice", "MOODY")).toMatchObject({ availableUnits: 1_000n });
  });

  it("freeze for a person where the token says yes and moves nothing, and are never paid again", async () => {
    await bench.mine([callOf("MoodyToken", "setMood", [2n])]);
    const silent = await accept("MOODY", 100n);
    await rounds(5);
    const frozen = await read(silent);
    expect(frozen).toMatchObject({ status: "frozen" });
    expect(frozen.reason).toContain(`causeway ledger decide-transfer ${silent.id}`);
    expect(await balanceOf("alice", "MOODY")).toMatchObject({ heldUnits: 100n });
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
      operator,
      { action: "decide-transfer", withdrawalId: silent.id, isPaid: false },
      "the token's own balances show that nothing moved",
    );
    expect(await read(silent)).toMatchObject({ status: "failed" });
    expect(await balanceOf("alice", "MOODY")).toMatchObject({
      availableUnits: 1_000n,
      heldUnits: 0n,
    });
    expect(await held("MoodyToken", silent.destination)).toBe(0n);
    await bench.mine([callOf("MoodyToken", "setMood", [0n])]);
    await settleBlocks();
    expect((await bench.reconcile()).clean).toBe(true);
  });

  it("are settled though their recipient had a transfer of nothing logged beside them", async () => {
    await bench.mine([callOf("MoodyToken", "setMood", [5n])]);
    const paid = await accept("MOODY", 100n);
    await rounds(5);
    expect(await read(paid)).toMatchObject({ status: "settled" });
    expect(await held("MoodyToken", paid.destination)).toBe(100n);
    await bench.mine([callOf("MoodyToken", "setMood", [0n])]);
    await settleBlocks();
    expect((await bench.reconcile()).clean).toBe(true);
  });

  it("are not given out of a paused token, while others are", async () => {
    await bench.ledger.owner.query(
      `UPDATE token_state SET paused = true, reason = 'test', changed_by = 'test'
        WHERE asset = 'MOODY'`,
    );
    const [waiting, other] = [await accept("MOODY", 5n), await accept("PLAIN", 5n)];
    await bench.mine([callOf("PlainToken", "mint", [WALLET, 5n])]);
    await settleBlocks();
    await rounds(4);
    expect((await read(waiting)).status).toBe("accepted");
    expect((await read(other)).status).toBe("settled");
    await bench.ledger.owner.query(
      `UPDATE token_state SET paused = false, reason = '', changed_by = 'test'
        WHERE asset = 'MOODY'`,
    );
    await rounds(4);
    expect((await read(waiting)).status).toBe("settled");
  });

  const goOn = (asset = "MOODY") =>
    bench.ledger.owner.query(
      `UPDATE token_state SET paused = false, reason = '', changed_by = 'test' WHERE asset = $1`,
      [asset],
    );

  it("are not settled by a log before the watcher has looked at its block, and hide no others", async () => {
    const upgrade = (name: ContractName) =>
      callOf("UpgradableProxy", "upgradeTo", [contractAt(name)]);
    const before = await accept("PROXY", 10n);
    const own = openLane({ batchSize: 1 });
    await bench.stopWatching();
    await roundsUnwatched(own, 1);
    await bench.mine([upgrade("FeeToken")]);
    const forged = await Promise.all(Array.from({ length: 9 }, () => accept("PROXY", 100n)));
    await roundsUnwatched(own, 14);
    const coins = await accept("TOKEN", 5n);
    await roundsUnwatched(own, 4);
    const statusesOf = async (some: readonly Withdrawal[]) => {
      const found = await Promise.all(some.map(read));
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
    await roundsUnwatched(own, 4);
    expect(await statusesOf([before])).toEqual(["settled"]);
    expect(await statusesOf(forged)).toEqual(["frozen"]);
    expect((await read(before)).hashes).toHaveLength(1);
    for (const { id: withdrawalId } of forged) {
      const terms = { action: "decide-transfer", withdrawalId, isPaid: true } as const;
      await bench.decide(operator, terms, "its destination has it");
    }
    await bench.mine([upgrade("PlainToken")]);
    await settleBlocks();
    await goOn("PROXY");
    expect((await bench.reconcile()).clean).toBe(true);
  });

  describe("of a token that is paused for other code", () => {
    const pauseToken = (height: number, again = "") =>
      bench.ledger.owner.query(
        `UPDATE token_state SET paused = true, changed_by = 'test', reason = $1
          WHERE asset = 'MOODY'`,
        [`its contract runs other code after block ${height} than was accepted${again}`],
      );
    const head = () => bench.node.blockNumber({ signal });

    afterEach(() => goOn());

    it("give their nonce up where nothing was signed for it, and the hold goes back", async () => {
      const [unsigned, other] = [await accept("MOODY", 5n), await accept("PLAIN", 5n)];
      await bench.mine([callOf("PlainToken", "mint", [WALLET, 5n])]);
      await settleBlocks();
      const before = await balanceOf("alice", "MOODY");
      behindSlots = async () => pauseToken(await head());
      await rounds(5);
      const { status, reason, hashes } = await read(unsigned);
      expect([status, reason, hashes.length]).toEqual([
        "failed",
        "its token is paused, because the contract runs other code than was accepted: " +
          "causeway tokens state",
        1,
      ]);
      expect(await held("MoodyToken", unsigned.destination)).toBe(0n);
      expect(await balanceOf("alice", "MOODY")).toMatchObject({
        availableUnits: (before?.availableUnits ?? 0n) + 5n,
        heldUnits: 0n,
      });
      expect((await read(other)).status).toBe("settled");
      expect((await bench.reconcile()).clean).toBe(true);
    });

    it("are proven by no log of that code, and wait for a person", async () => {
      const paid = await accept("MOODY", 5n);
      house.clock.ms += 3_000;
      await lane.runRound(signal);
      await pauseToken((await head()) + 1);
      // Looked at again, for yet other code that came later.
      await pauseToken((await head()) + 1_000, ", again");
      await rounds(4);
      const { status, reason, hashes } = await read(paid);
      expect(status).toBe("frozen");
      expect(reason).toContain(`causeway ledger decide-transfer ${paid.id}`);
      // Also behind it: that the code of before is back says nothing of what this one did.
      await goOn();
      expect(await lookAgain(paid)).toEqual([
        { obstacle: "unproven", id: paid.id, hash: hashes[0] },
      ]);
      await bench.decide(
        operator,
        { action: "decide-transfer", withdrawalId: paid.id, isPaid: true },
        "the destination has it",
      );
      expect((await read(paid)).status).toBe("settled");
      expect((await bench.reconcile()).clean).toBe(true);
    });

    it("are settled where they were mined before it", async () => {
      const paid = await accept("MOODY", 5n);
      house.clock.ms += 3_000;
      await lane.runRound(signal);
      await pauseToken((await head()) + 2);
      await rounds(4);
      expect((await read(paid)).status).toBe("settled");
    });

    it("are made no dearer, and give their nonces up together for whoever waits behind them", async () => {
      await bench.mine([callOf("PlainToken", "mint", [WALLET, 5n])]);
      await settleBlocks();
      const stopped = [await accept("MOODY", 5n), await accept("MOODY", 6n)];
      const behind = await accept("PLAIN", 5n);
      house.clock.ms += 3_000;
      await lane.runRound(signal);
      await pauseToken(await head());
      for (let round = 0; round < 4; round++) {
        house.clock.ms += 40_000;
        await lane.runRound(signal);
        await bench.mine([]);
      }
      const latest = new Map(sent.map((raw) => [decodeRaw(raw).nonce, raw]));
      sent = [...latest.values()];
      await rounds(3);
      for (const each of stopped) {
        const { status, reason } = await read(each);
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
        expect(await held("MoodyToken", each.destination)).toBe(0n);
      }
      expect(await read(behind)).toMatchObject({ status: "settled", hashes: { length: 1 } });
      expect((await balanceOf("alice", "MOODY"))?.heldUnits).toBe(0n);
      expect((await bench.reconcile()).clean).toBe(true);
    });

    it("give their nonce up at once where the node refuses them", async () => {
      refusal = "transaction underpriced";
      const refused = await accept("MOODY", 5n);
      behindSignatures = async () => pauseToken(await head());
      house.clock.ms += 3_000;
      await lane.runRound(signal);
      refusal = undefined;
      expect((await read(refused)).status).toBe("cancelling");
      await rounds(3);
      expect(await read(refused)).toMatchObject({ status: "failed", hashes: { length: 2 } });
      expect(await held("MoodyToken", refused.destination)).toBe(0n);
    });
  });

  it("stop when somebody else takes tokens from the wallet, and reconcile names the theft", async () => {
    await bench.mine([callOf("PlainToken", "mint", [WALLET, 50n])]);
    await settleBlocks();
    const nonce = await provider.getTransactionCount(WALLET);
    bench.skipNonce(THIEF.address, nonce);
    const loot = { ...callOf("PlainToken", "transfer", [ISSUER.address, 40n]), from: THIEF };
    const [theft] = await bench.mine([loot]);
    await settleBlocks();
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
      operator,
      { action: "accept-outflow", hash: String(theft), account: "asset:break" },
      "stolen",
    );
    expect((await bench.reconcile()).clean).toBe(true);
  });
});
