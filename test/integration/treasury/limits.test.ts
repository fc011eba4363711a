/** Limits of a wallet are about what customers take: what the treasury moves is neither held by them nor counted. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { hashPolicy, type Limit, rulesOf } from "../../../ledger/policy/policy.js";
import { acceptWithdrawals, findWithdrawal } from "../../../ledger/withdrawals/withdrawals.js";
import { ANY_REQUEST } from "../../helpers/signing.js";
import { requestOf, WALLET } from "../withdrawal-worker/house.js";
import { ANY_SWEEP, TreasuryBench } from "./treasury-bench.js";

const ONE = 10n ** 18n;

const coldAddress = parseAddress(`0x${"c1".repeat(20)}`);

let bench: TreasuryBench;

beforeEach(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 4n * ONE }]);
  await bench.mine();
});
afterEach(() => bench.close());

it("stores in cold storage what is above the band, and pays customers up to the limit all the same", async () => {
  const alice = await bench.bench.register("alice");
  await bench.bench.mine([{ to: alice, value: ONE }]);
  await bench.mine();
  await bench.mine();
  const band = { lowUnits: 0n, targetUnits: ONE, highUnits: ONE };
  const rules = { ...ANY_SWEEP, sweepMinimumUnits: 10n ** 30n, coldAddress, band };
  const { policy } = bench.policyOf({ assets: { TOKEN: rules } });
  const limits: Limit[] = [{ by: "wallet", window: "day", maxUnits: ONE, maxCount: 1 }];
  const assets = new Map([["TOKEN", { ...rulesOf(policy, "TOKEN"), limits }]]);
  bench.files.policy = hashPolicy({ ...policy, assets });
  await bench.rounds(4);
  expect(await bench.units(coldAddress)).toBeGreaterThan(2n * ONE);
  const customerId = parseCustomerId("alice");
  const request = requestOf({ customerId, asset: "TOKEN", amountUnits: ONE / 2n });
  const [answer] = await acceptWithdrawals(bench.worker, [request], ANY_REQUEST);
  if (answer?.outcome !== "accepted") throw new Error(`it is ${answer?.outcome}`);
  await bench.rounds(4);
  const { id } = answer.withdrawal;
  expect((await findWithdrawal(bench.worker, id))?.status).toBe("settled");
});
