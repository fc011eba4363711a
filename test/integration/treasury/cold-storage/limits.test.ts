/** Rules about what customers take: what the treasury moves is neither held by them nor counted. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { listEvents } from "../../../helpers/events.js";
import { parseCustomerId, TREASURY } from "../../../../ledger/journal/accounts.js";
import { hashPolicy, type Limit, type Policy, rulesOf } from "../../../../ledger/policy/policy.js";
import { acceptWithdrawals, findWithdrawal } from "../../../../ledger/withdrawals/withdrawals.js";
import { ANY_REQUEST } from "../../../helpers/keys/signing.js";
import { requestOf, WALLET } from "../../../helpers/exchange/house.js";
import { ANY_SWEEP, TreasuryBench } from "../treasury-bench.js";

const ONE = 10n ** 18n;

const coldAddress = parseAddress(`0x${"c1".repeat(20)}`);

let bench: TreasuryBench;

beforeEach(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 4n * ONE }]);
  await bench.mine();
});
afterEach(() => bench.close());

/** A policy that sends what is above one coin to cold storage. */
function coldPolicy(terms: Partial<Policy> = {}, limits: readonly Limit[] = []) {
  const band = { lowUnits: 0n, targetUnits: ONE, highUnits: ONE };
  const rules = { ...ANY_SWEEP, sweepMinimumUnits: 10n ** 30n, coldAddress, band };
  const { policy } = bench.policyOf({ assets: { TOKEN: rules } });
  const assets = new Map([["TOKEN", { ...rulesOf(policy, "TOKEN"), limits }]]);
  return hashPolicy({ ...policy, ...terms, assets });
}

async function ask(customer: string) {
  const customerId = parseCustomerId(customer);
  const request = requestOf({ customerId, asset: "TOKEN", amountUnits: ONE / 2n });
  const [answer] = await acceptWithdrawals(bench.worker, [request], ANY_REQUEST);
  if (answer?.outcome !== "accepted") throw new Error(`it is ${answer?.outcome}`);
  return answer.withdrawal;
}

it("asks no screening about its own moves, which go where the policy itself says", async () => {
  const alice = await bench.bench.register("alice");
  await bench.bench.mine([{ to: alice, value: ONE }]);
  await bench.mine();
  await bench.mine();
  const asked: unknown[] = [];
  const service = createServer((request, response) => {
    request.on("data", (chunk: Buffer) => asked.push(JSON.parse(chunk.toString())));
    request.on("end", () => response.writeHead(200).end(`{"decision":"review"}`));
  });
  await new Promise<void>((resolve) => service.listen(0, "127.0.0.1", resolve));
  try {
    const url = `http://127.0.0.1:${(service.address() as AddressInfo).port}/`;
    bench.files.policy = coldPolicy({ screening: { url, timeoutMs: 60_000, reviewApprovals: 1 } });
    const { id } = await ask("alice");
    await bench.rounds(4);
    expect((await findWithdrawal(bench.worker, id))?.status).toBe("pending_approval");
    expect(asked).toMatchObject([{ withdrawalId: id, customerId: "alice" }]);
    expect(await bench.units(coldAddress)).toBeGreaterThan(2n * ONE);
  } finally {
    service.closeAllConnections();
    await new Promise((resolve) => service.close(resolve));
  }
});

it("stores in cold storage what is above the band, and pays customers up to the limit all the same", async () => {
  const alice = await bench.bench.register("alice");
  await bench.bench.mine([{ to: alice, value: ONE }]);
  await bench.mine();
  await bench.mine();
  bench.files.policy = coldPolicy({}, [
    { by: "wallet", window: "day", maxUnits: ONE, maxCount: 1 },
  ]);
  await bench.rounds(4);
  expect(await bench.units(coldAddress)).toBeGreaterThan(2n * ONE);
  const { id } = await ask("alice");
  await bench.rounds(4);
  expect((await findWithdrawal(bench.worker, id))?.status).toBe("settled");
});

it("is told under a name that is no customer's: sums of events without it are the balances", async () => {
  const alice = await bench.bench.register("alice");
  await bench.bench.mine([{ to: alice, value: ONE }]);
  await bench.mine();
  await bench.mine();
  bench.files.policy = coldPolicy();
  await bench.rounds(4);
  const { id } = await ask("alice");
  await bench.rounds(4);
  expect((await findWithdrawal(bench.worker, id))?.status).toBe("settled");
  const sums = new Map<unknown, bigint>();
  for (const { type, data } of await listEvents(bench.worker, { afterSeq: 0, limit: 1_000 })) {
    const units = (...fields: readonly string[]) =>
      fields.reduce((sum, field) => sum + BigInt(String(data[field])), 0n);
    const { customerId } = data;
    const had = sums.get(customerId) ?? 0n;
    if (type === "deposit.credited") sums.set(customerId, had + units("creditedUnits"));
    if (type === "withdrawal.settled") {
      sums.set(customerId, had - units("amountUnits", "feeUnits"));
    }
  }
  const rows = await bench.bench.ledger.owner.query<Record<"id" | "units", string>>(
    `SELECT customer_id AS id, (available_units + held_units)::text AS units FROM customer_balance`,
  );
  const balances = new Map(rows.map((row) => [row.id, BigInt(row.units)]));
  expect(sums.get(TREASURY)).toBeLessThan(0n);
  expect(balances.get(TREASURY)).toBe(0n);
  for (const map of [sums, balances]) map.delete(TREASURY);
  expect(sums).toEqual(balances);
});
