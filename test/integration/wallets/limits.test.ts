/** What wallets have each for itself, and what they share: a policy's limit, and the budget of fees. */
import { beforeEach, expect, it } from "@jest/globals";
import { keccak256 } from "../../../chain/hashes.js";
import { privateKeyToAddress } from "../../../chain/signing/account-key.js";
import { parseHash32 } from "../../../chain/hex.js";
import { MAX_LEASE_MS } from "../../../ledger/lease.js";
import {
  readLiveSlots,
  storeAttempts,
  takeSlots,
} from "../../../ledger/withdrawals/nonce-slots.js";
import type { SlotBudget } from "../../../ledger/withdrawals/slot-choice.js";
import {
  acquireLease,
  createHotWallet,
  type WalletLease,
} from "../../../ledger/wallets/wallet-lease.js";
import type { Withdrawal } from "../../../ledger/withdrawals/withdrawals.js";
import { present } from "../../../chain/errors.js";
import { createGate } from "../../helpers/gate.js";
import { registerTestWallets, standing } from "../../helpers/services/ledger.js";
import { until } from "../../helpers/until.js";
import { policyOf } from "../policy/terms.js";
import { House, houseForEachTest, TOKEN, WALLET } from "../../helpers/exchange/house.js";

const SECOND_KEY = keccak256(Buffer.from("second hot wallet of the limits"));
const SECOND = privateKeyToAddress(SECOND_KEY);

let house: House;

houseForEachTest((opened) => {
  house = opened;
});

beforeEach(async () => {
  house.chain.balances.set(SECOND, 20n * TOKEN);
  house.chain.mine();
  await registerTestWallets(house.database, SECOND);
});

it("pays from another wallet what is beyond the limit of the one that was to pay", async () => {
  house.files.policy = policyOf({
    limits: [{ by: "wallet", window: "day", maxUnits: 2n * TOKEN, maxCount: undefined }],
  });
  // What the first one puts off, or is late for, waits for longer than the test does.
  const first = house.lane({ retryDelayMs: 3_600_000, scanIntervalMs: 3_600_000 });
  const lanes = [first, house.laneOf(SECOND_KEY, { leaseMs: MAX_LEASE_MS })];
  for (const lane of lanes) await lane.runRound(house.signal);
  // It has fifty times the coins: all three would be its own.
  const asked: Withdrawal[] = [];
  for (let count = 0; count < 3; count += 1) asked.push(await house.accept());
  await first.runRound(house.signal);
  const left = await house.database.query(
    `SELECT next_try_at <= now() AS is_due FROM withdrawal WHERE status = 'accepted'`,
  );
  expect(left).toEqual([{ is_due: true }]);
  const paidBy = async () => {
    const found = await Promise.all(asked.map(({ id }) => house.read(id)));
    return found.map(({ status, wallet }) => (status === "settled" ? wallet : undefined));
  };
  await until(
    async () => {
      await Promise.all(lanes.map((lane) => lane.runRound(house.signal)));
      house.chain.mine();
      house.clock.ms += 2_000;
      return !(await paidBy()).includes(undefined);
    },
    { timeoutMs: 60_000, what: "all three are settled" },
  );
  const payers = await paidBy();
  expect(payers.filter((wallet) => wallet === WALLET)).toHaveLength(2);
  expect(payers.filter((wallet) => wallet === SECOND)).toHaveLength(1);
  const frozen = await house.database.query(`SELECT 1 FROM signing_freeze WHERE frozen`);
  expect(frozen).toEqual([]);
});

it("spends the day's budget of fees once, by whichever of two wallets comes first", async () => {
  const leases: WalletLease[] = [];
  for (const wallet of [WALLET, SECOND]) {
    await createHotWallet(house.database, { wallet, firstNonce: 0n });
    const lease = await acquireLease(house.database, { wallet, owner: "test", leaseMs: 60_000 });
    leases.push(present(lease, "a lease"));
  }
  const gas = { gasLimit: 21_000n, gasPriceAtoken: 1n, entersCode: false };
  const budget: SlotBudget = {
    balanceAtoken: 20n * TOKEN,
    balanceHeight: house.chain.head,
    nonce: 0n,
    maxLiveSlots: 10,
    maxCodeGas: 0n,
    // One payment's fee, and not a second one's.
    feePerDayAtoken: 40_000n,
  };
  const { policy } = house.files;
  const requests = [await house.accept(), await house.accept()];
  // Both commits wait for the last lock that they take: each has counted what is spent by then.
  const [held, released] = [createGate(), createGate()];
  const blocked = standing(house.ledger.owner, async (tx) => {
    await tx.query(`SELECT 1 FROM event_counter FOR UPDATE`);
    held.open();
    await released.opened;
  });
  let taking: ReturnType<typeof takeSlots>[] = [];
  try {
    await Promise.race([held.opened, blocked]);
    taking = leases.map((lease, index) => {
      const { id, amountUnits } = present(requests[index], "a request");
      const candidates = [{ id, amountUnits, ...gas }];
      return takeSlots(house.database, lease, candidates, { budget, policy });
    });
    await until(
      async () => {
        const waiting = await house.ledger.owner.query(
          `SELECT 1 FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        );
        return waiting.length === 2;
      },
      { timeoutMs: 10_000, what: "both wait" },
    );
  } finally {
    released.open();
    await Promise.allSettled([blocked, ...taking]);
  }
  await blocked;
  const results = await Promise.all(taking);
  expect(results.flatMap(({ taken }) => taken)).toHaveLength(1);
  expect(results.map(({ limit }) => limit)).toContain("fee-budget");
});

it("makes payments dearer within the budget, whichever of two wallets comes first", async () => {
  const gas = { gasLimit: 21_000n, gasPriceAtoken: 1n, entersCode: false };
  const budget: SlotBudget = {
    balanceAtoken: 20n * TOKEN,
    balanceHeight: house.chain.head,
    nonce: 0n,
    maxLiveSlots: 10,
    maxCodeGas: 0n,
    // Two payments' fees, and one of them three times.
    feePerDayAtoken: 84_000n,
  };
  const { policy } = house.files;
  for (const wallet of [WALLET, SECOND]) {
    await createHotWallet(house.database, { wallet, firstNonce: 0n });
    const options = { wallet, owner: "test", leaseMs: 60_000 };
    const lease = present(await acquireLease(house.database, options), "a lease");
    const { id, amountUnits } = await house.accept();
    await takeSlots(house.database, lease, [{ id, amountUnits, ...gas }], { budget, policy });
    const statuses = ["slotted"] as const;
    const [slot] = await readLiveSlots(house.database, { wallet, statuses, limit: 1 });
    const attempts = [1n, 3n].map((gasPriceAtoken, n) => ({
      slotId: present(slot, "a slot").slotId,
      withdrawalId: id,
      n,
      kind: "payment" as const,
      raw: "0x00" as const,
      hash: parseHash32(`0x${(wallet === WALLET ? "a" : "b").repeat(63)}${n}`),
      gasLimit: 21_000n,
      gasPriceAtoken,
      valueAtoken: amountUnits,
    }));
    const rules = { ...budget, policyHash: policy.hash };
    for (const attempt of attempts) await storeAttempts(house.database, lease, [attempt], rules);
  }
  const stored = await house.database.query(
    `SELECT wallet, n FROM withdrawal_attempt a JOIN nonce_slot s ON s.id = a.slot_id
      ORDER BY a.hash`,
  );
  expect(stored).toEqual([
    { wallet: WALLET, n: 0 },
    { wallet: WALLET, n: 1 },
    { wallet: SECOND, n: 0 },
  ]);
});
