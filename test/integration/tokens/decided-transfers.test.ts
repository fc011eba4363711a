/** A token's payment that only a person could tell to be one, mined again on a chain that lost its block. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { Address } from "../../../chain/address.js";
import type { Hash32 } from "../../../chain/hex.js";
import { approve, propose } from "../../../ledger/decisions/decision-log.js";
import type { WalletChain } from "../../../ledger/withdrawals/release/outcome.js";
import { releaseWithdrawal } from "../../../ledger/withdrawals/release/release.js";
import type { WithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import { readFreeze } from "../../../ledger/requests/signing-freeze.js";
import { acceptWithdrawals, findWithdrawal } from "../../../ledger/withdrawals/withdrawals.js";
import { ANY_REQUEST } from "../../helpers/keys/signing.js";
import { TreasuryBench } from "../treasury/treasury-bench.js";
import { freshAddress, requestOf, WALLET } from "../../helpers/exchange/house.js";
import { until } from "../../helpers/until.js";
import { callOf } from "./token-bench.js";

const { signal } = new AbortController();

let bench: TreasuryBench;

beforeEach(async () => {
  bench = await TreasuryBench.open();
});
afterEach(() => bench.close());

async function work(rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    bench.house.clock.ms += 3_000;
    await bench.lane.runRound(signal);
    await bench.mine();
  }
}

/** A payment that the token did not log: frozen, and on the chain above a block. */
async function unproven() {
  const alice = await bench.bench.register("alice");
  await bench.bench.mine([
    callOf("MoodyToken", "mint", [alice, 1_000n]),
    callOf("MoodyToken", "mint", [WALLET, 1_000n]),
    { to: WALLET, value: 10n ** 17n },
  ]);
  await work(2);
  await bench.bench.mine([]);
  const { height: kept } = bench.bench.chain.chain.view.head();
  await bench.bench.mine([UNSAID]);
  const fields = { asset: "MOODY", amountUnits: 100n, destination: freshAddress() };
  const request = requestOf({ ...fields, idempotencyKey: "unsaid" });
  const [outcome] = await acceptWithdrawals(bench.worker, [request], ANY_REQUEST);
  if (outcome?.outcome !== "accepted") throw new Error("it was refused");
  const { id } = outcome.withdrawal;
  await work(4);
  expect(await statusOf(id)).toBe("frozen");
  return { id, kept, destination: fields.destination };
}

const UNSAID = callOf("MoodyToken", "setMood", [4n]);

const statusOf = async (id: WithdrawalId) => (await findWithdrawal(bench.worker, id))?.status;

const decide = (withdrawalId: WithdrawalId) =>
  bench.bench.decide(
    bench.bench.ledger.owner,
    { action: "decide-transfer", withdrawalId, isPaid: true },
    "the token's own balances show that it moved",
  );

/** The chain comes back without the blocks above one, and the watcher goes back on it. */
async function loseAbove(kept: number) {
  const { height: lost } = bench.bench.chain.chain.view.head();
  bench = await bench.without(kept);
  await bench.bench.mine([UNSAID]);
  while (bench.bench.chain.chain.view.head().height <= lost) await bench.bench.mine([]);
  const { payments } = await bench.bench.recover();
  return payments.flatMap(({ raw }) => raw ?? []);
}

/** A person has the chain looked at again. */
function release(id: WithdrawalId) {
  const { node, ledger } = bench.bench;
  const chainOf = (wallet: Address): WalletChain => ({
    headHeight: () => node.blockNumber({ signal }),
    nonceAt: (at) => node.getTransactionCount(wallet, at, { signal }),
    queuedNonces: () => node.queuedNonces(wallet, { signal }),
    receipts: (hashes) => node.getTransactionReceipts(hashes, { signal }),
    transactions: async () => [],
  });
  const context = { database: ledger.owner, wallet: WALLET, chainOf };
  const looking = { decision: "look-again" } as const;
  return releaseWithdrawal({ ...context, paymentOf: async () => undefined }, id, looking);
}

it("is what the person said, and no break", async () => {
  const { id, kept, destination } = await unproven();
  await decide(id);
  await bench.assertEven();
  const raws = await loseAbove(kept);
  await bench.bench.mine([], raws);
  await bench.mine();
  expect(await bench.units(destination, "MOODY")).toBe(100n);
  await bench.assertEven();
  expect((await readFreeze(bench.worker, WALLET)).reason).not.toContain(id);
});

it("stays frozen for a person who has it looked at again, and is told to nobody a second time", async () => {
  const { id, destination } = await unproven();
  const { hashes, history } = (await findWithdrawal(bench.worker, id)) ?? {};
  const { steps, obstacles } = await release(id);
  expect({ steps, obstacles }).toEqual({
    steps: [],
    obstacles: [{ obstacle: "unproven", id, hash: hashes?.[0] }],
  });
  await work(2);
  expect((await findWithdrawal(bench.worker, id))?.history).toEqual(history);
  await decide(id);
  expect([await statusOf(id), await bench.units(destination, "MOODY")]).toEqual(["settled", 100n]);
  await bench.assertEven();
});

it("is decided in the block in which it stands, and not while it is in none", async () => {
  const { id, kept, destination } = await unproven();
  const raws = await loseAbove(kept);
  await expect(decide(id)).rejects.toMatchObject({ code: "INVALID_DECISION" });
  expect([await statusOf(id), await bench.units(destination, "MOODY")]).toEqual(["frozen", 0n]);
  await bench.bench.mine([], raws);
  await bench.mine();
  // In another block than the one in which it was found.
  await expect(decide(id)).rejects.toThrow(`causeway withdrawals release ${id}`);
  expect((await release(id)).steps).toMatchObject([{ step: "found-mined", id }]);
  // The lane of before the loss may hold the wallet for a moment yet.
  const isFrozenAgain = async () => {
    await work(1);
    return (await statusOf(id)) === "frozen";
  };
  await until(isFrozenAgain, { timeoutMs: 60_000, what: "it is frozen in its new block" });
  await decide(id);
  expect([await statusOf(id), await bench.units(destination, "MOODY")]).toEqual(["settled", 100n]);
  await bench.assertEven();
});

it("is not decided by a word of before the chain lost its block", async () => {
  const { id, kept, destination } = await unproven();
  const { owner } = bench.bench.ledger;
  const terms = { action: "decide-transfer", withdrawalId: id, isPaid: false } as const;
  const wanted = { terms, reason: "nothing moved", operator: "ann", needsSecond: true };
  const { id: decision } = await propose(owner, wanted, bench.bench.decisionChain);
  const raws = await loseAbove(kept);
  await bench.bench.mine([], raws);
  await bench.mine();
  await release(id);
  const isFrozenAgain = async () => {
    await work(1);
    return (await statusOf(id)) === "frozen";
  };
  await until(isFrozenAgain, { timeoutMs: 60_000, what: "it is frozen in its new block" });
  const approval = { id: decision, operator: "bea" };
  await expect(
    approve(bench.bench.ledger.owner, approval, bench.bench.decisionChain),
  ).rejects.toThrow(`decision ${decision} was proposed before`);
  // Given back by that word, it would have been paid besides.
  expect([await statusOf(id), await bench.units(destination, "MOODY")]).toEqual(["frozen", 100n]);
});

/** Proposes that it paid; while the chain is asked about the block in which it was found, something happens. */
async function proposeWhile(id: WithdrawalId, happens: () => Promise<unknown>): Promise<unknown> {
  const { owner } = bench.bench.ledger;
  const [found] = await owner.query<{ hash: Hash32 }>(
    `SELECT block_hash AS hash FROM nonce_slot WHERE withdrawal_id = $1`,
    [id],
  );
  const terms = { action: "decide-transfer", withdrawalId: id, isPaid: true } as const;
  return propose(
    owner,
    { terms, reason: "it moved", operator: "ann", needsSecond: false },
    {
      hasDone: async () => true,
      paidBy: async () => undefined,
      async blockOf() {
        await happens();
        return found?.hash;
      },
    },
  );
}

it("is not decided by what the chain said before the watcher went back", async () => {
  const { id, kept } = await unproven();
  await expect(proposeWhile(id, () => loseAbove(kept))).rejects.toThrow("went back");
  expect(await statusOf(id)).toBe("frozen");
});

it("is not decided by what the chain said of the block in which it was found before", async () => {
  const { id } = await unproven();
  // Another one had it looked at again, and it was found elsewhere.
  const elsewhere = () =>
    bench.bench.ledger.owner.query(
      `UPDATE nonce_slot SET block_hash = $2 WHERE withdrawal_id = $1`,
      [id, `0x${"0b".repeat(32)}`],
    );
  await expect(proposeWhile(id, elsewhere)).rejects.toThrow("changed while this was looked at");
  expect(await statusOf(id)).toBe("frozen");
});
