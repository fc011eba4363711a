/** Payouts of tokens to receivers that have something of them when gas is estimated, and nothing by then. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import { acceptWithdrawals, findWithdrawal } from "../../../ledger/withdrawals/withdrawals.js";
import { ANY_REQUEST } from "../../helpers/keys/signing.js";
import { TreasuryBench } from "../treasury/treasury-bench.js";
import { requestOf, WALLET } from "../../helpers/exchange/house.js";
import { callOf, depositKey } from "./token-bench.js";

const { signal } = new AbortController();

let bench: TreasuryBench;

beforeAll(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 10n ** 18n }]);
  await bench.mine();
});
afterAll(() => bench.close());

it("pays a receiver that has sent all of its own on before the payment is mined", async () => {
  const key = depositKey(80_000);
  const destination = parseAddress(key.address.toLowerCase());
  const alice = await bench.bench.register("alice");
  const mint = (to: string, units: bigint) => callOf("PlainToken", "mint", [to, units]);
  await bench.bench.mine([
    mint(alice, 300n),
    mint(WALLET, 1_000n),
    mint(destination, 5n),
    { to: destination, value: 10n ** 16n },
  ]);
  await bench.mine();
  await bench.mine();
  const customerId = parseCustomerId("alice");
  const request = requestOf({ customerId, asset: "PLAIN", amountUnits: 300n, destination });
  const [answer] = await acceptWithdrawals(bench.worker, [request], ANY_REQUEST);
  if (answer?.outcome !== "accepted") throw new Error(`it is ${answer?.outcome}`);
  await bench.lane.runRound(signal);
  const collected = callOf("PlainToken", "transfer", [depositKey(80_001).address, 5n]);
  await bench.bench.mine([{ from: key, ...collected }]);
  expect(await bench.units(destination, "PLAIN")).toBe(0n);
  await bench.mine();
  for (let round = 0; round < 2; round += 1) {
    bench.house.clock.ms += 3_000;
    await bench.lane.runRound(signal);
  }
  const found = await findWithdrawal(bench.worker, answer.withdrawal.id);
  expect([found?.status, await bench.units(destination, "PLAIN")]).toEqual(["settled", 300n]);
});
