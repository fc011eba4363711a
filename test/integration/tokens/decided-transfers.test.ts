/** A token's payment that only a person could tell to be one, mined again on a chain that lost its block. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { readFreeze } from "../../../ledger/withdrawals/signing-freeze.js";
import { acceptWithdrawals, findWithdrawal } from "../../../ledger/withdrawals/withdrawals.js";
import { ANY_REQUEST } from "../../helpers/signing.js";
import { TreasuryBench } from "../treasury/treasury-bench.js";
import { freshAddress, requestOf, WALLET } from "../withdrawal-worker/house.js";
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

it("is what the person said, and no break", async () => {
  const alice = await bench.bench.register("alice");
  await bench.bench.mine([
    callOf("MoodyToken", "mint", [alice, 1_000n]),
    callOf("MoodyToken", "mint", [WALLET, 1_000n]),
    { to: WALLET, value: 10n ** 17n },
  ]);
  await work(2);
  const unsaid = callOf("MoodyToken", "setMood", [4n]);
  await bench.bench.mine([]);
  const { height: kept } = bench.bench.chain.chain.view.head();
  await bench.bench.mine([unsaid]);
  const fields = { asset: "MOODY", amountUnits: 100n, destination: freshAddress() };
  const request = requestOf({ ...fields, idempotencyKey: "unsaid" });
  const [outcome] = await acceptWithdrawals(bench.worker, [request], ANY_REQUEST);
  if (outcome?.outcome !== "accepted") throw new Error("it was refused");
  const { id } = outcome.withdrawal;
  await work(4);
  expect((await findWithdrawal(bench.worker, id))?.status).toBe("frozen");
  await bench.bench.decide(
    bench.bench.ledger.owner,
    { action: "decide-transfer", withdrawalId: id, isPaid: true },
    "the token's own balances show that it moved",
  );
  await bench.assertEven();

  const { height: lost } = bench.bench.chain.chain.view.head();
  bench = await bench.without(kept);
  await bench.bench.mine([unsaid]);
  while (bench.bench.chain.chain.view.head().height <= lost) await bench.bench.mine([]);
  const { payments } = await bench.bench.recover();
  await bench.bench.mine(
    [],
    payments.flatMap(({ raw }) => raw ?? []),
  );
  await bench.mine();
  expect(await bench.units(fields.destination, "MOODY")).toBe(100n);
  await bench.assertEven();
  expect((await readFreeze(bench.worker, WALLET)).reason).not.toContain(id);
});
