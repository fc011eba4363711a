/** What one wallet cannot pay for a reason of its home or node: another one pays it. */
import { beforeEach, expect, it } from "@jest/globals";
import { keccak256 } from "../../../chain/hashes.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { MAX_LEASE_MS } from "../../../ledger/lease.js";
import type { WithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import type { LaneContext } from "../../../withdrawal-worker/lane/lane-context.js";
import type { Lane } from "../../../withdrawal-worker/lane/lane.js";
import { House, houseForEachTest, TOKEN, WALLET } from "../../helpers/exchange/house.js";
import { registerTestWallets } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";

const SECOND_KEY = keccak256(Buffer.from("second hot wallet, of another home"));
const SECOND = privateKeyToAddress(SECOND_KEY);

/** What the first lane puts off, or is late for, waits for longer than a test does. */
const NEVER = { retryDelayMs: 3_600_000, scanIntervalMs: 3_600_000 };

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

beforeEach(async () => {
  house.chain.balances.set(SECOND, 20n * TOKEN);
  house.chain.mine();
  await registerTestWallets(house.database, SECOND);
});

/** Of the first wallet's home alone: it has fifty times the coins, and is to pay everything. */
const faults: Record<string, (context: LaneContext) => Partial<LaneContext>> = {
  "whose node answers no estimate": ({ node }) => ({
    node: {
      ...node,
      estimate: async (_, payments) =>
        payments.map(() => ({ kind: "unknown", reason: "rate limited" })),
    },
  }),
  "whose node does not say where code is": ({ node }) => ({
    node: { ...node, haveCode: async (addresses) => addresses.map(() => "too-much") },
  }),
  "whose signer has no room in its day": ({ signer }) => ({
    signer: {
      address: WALLET,
      sign: (intents, options) => signer.sign(intents, options),
      trouble: () => signer.trouble(),
      review: (payments) =>
        payments.map(() => {
          return {
            kind: "refused",
            code: "DAY_TOTAL",
            reason: "the day is full",
            isLasting: false,
          };
        }),
    },
  }),
  "that allows less in fees": ({ settings }) => ({
    settings: { ...settings, gas: { ...settings.gas, feePerPayoutAtoken: 1n } },
  }),
};

function firstLane(of: (context: LaneContext) => Partial<LaneContext>, settings = {}): Lane {
  const context = house.context({ ...NEVER, ...settings });
  return house.laneWith({ ...context, ...of(context) });
}

async function dueIn(
  id: WithdrawalId,
): Promise<{ readonly is_due: boolean; reason: string | null }> {
  const [row] = await house.database.query<{ is_due: boolean; reason: string | null }>(
    `SELECT next_try_at <= now() AS is_due, reason FROM withdrawal WHERE id = $1`,
    [id],
  );
  if (row === undefined) throw new Error(`no withdrawal ${id}`);
  return row;
}

it.each(Object.entries(faults))("is paid by another wallet than the one %s", async (_, fault) => {
  const lanes = [firstLane(fault), house.laneOf(SECOND_KEY, { leaseMs: MAX_LEASE_MS })];
  for (const lane of lanes) await lane.runRound(house.signal);
  const { id } = await house.accept();
  await lanes[0]?.runRound(house.signal);
  expect(await dueIn(id)).toMatchObject({ is_due: true });
  await until(
    async () => {
      for (const lane of lanes) await lane.runRound(house.signal);
      house.chain.mine();
      return (await house.read(id)).status === "settled";
    },
    { timeoutMs: 20_000, what: "the second wallet pays it" },
  );
  expect((await house.read(id)).wallet).toBe(SECOND);
});

it("is asked about once, and put off when nobody has taken it in time", async () => {
  let asked = 0;
  const fault = ({ node }: LaneContext): Partial<LaneContext> => ({
    node: {
      ...node,
      estimate: async (_, payments) => {
        asked += payments.length;
        return payments.map(() => ({ kind: "unknown", reason: "rate limited" }));
      },
    },
  });
  const first = firstLane(fault);
  // It holds its lease, and does not look again.
  await house.laneOf(SECOND_KEY, { leaseMs: MAX_LEASE_MS }).runRound(house.signal);
  await first.runRound(house.signal);
  const { id } = await house.accept();
  for (let round = 0; round < 3; round += 1) await first.runRound(house.signal);
  expect([asked, await dueIn(id)]).toEqual([1, { is_due: true, reason: null }]);
  // Twice three of its scans later.
  await house.database.query(`UPDATE withdrawal SET next_try_at = now() - interval '7 hours'`);
  await first.runRound(house.signal);
  const reason = "waits: the node could not estimate it (rate limited)";
  expect([asked, await dueIn(id)]).toEqual([1, { is_due: false, reason }]);
  // Due again it is asked about anew, and left again.
  await house.database.query(`UPDATE withdrawal SET next_try_at = now() - interval '1 hour'`);
  await first.runRound(house.signal);
  expect([asked, await dueIn(id)]).toEqual([2, { is_due: true, reason }]);
  // Another one has put it off meanwhile.
  await house.hurry();
  await first.runRound(house.signal);
  expect([asked, await dueIn(id)]).toEqual([3, { is_due: true, reason }]);
});

it.each([
  ["where there is no other", false, TOKEN],
  ["where no other covers it", true, 25n * TOKEN],
] as const)("is put off at once %s", async (_, hasOther, amountUnits) => {
  const first = firstLane(faults["whose node answers no estimate"] ?? (() => ({})));
  if (hasOther) await house.laneOf(SECOND_KEY, { leaseMs: MAX_LEASE_MS }).runRound(house.signal);
  await first.runRound(house.signal);
  const { id } = await house.accept({ amountUnits });
  await first.runRound(house.signal);
  expect((await dueIn(id)).is_due).toBe(false);
});

it("takes no more than half of what is looked at: others are seen behind it", async () => {
  const fault = faults["whose node answers no estimate"] ?? (() => ({}));
  const first = firstLane(fault, { batchSize: 4 });
  await house.laneOf(SECOND_KEY, { leaseMs: MAX_LEASE_MS }).runRound(house.signal);
  await first.runRound(house.signal);
  const ids: WithdrawalId[] = [];
  for (let count = 0; count < 6; count += 1) ids.push((await house.accept()).id);
  for (let round = 0; round < 3; round += 1) await first.runRound(house.signal);
  const due = await Promise.all(ids.map(async (id) => (await dueIn(id)).is_due));
  expect(due).toEqual([true, true, false, false, false, false]);
});
