/** Who is swept first: nothing starves, whatever comes meanwhile. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { putOff, readDue } from "../../../../ledger/assets/sweep-due.js";
import { standing } from "../../../helpers/services/ledger.js";
import { until } from "../../../helpers/until.js";
import { callOf } from "../../tokens/token-bench.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { ANY_SWEEP, TreasuryBench } from "../treasury-bench.js";

/** More than one round looks at. */
const MANY = 220;

let bench: TreasuryBench;

beforeEach(async () => {
  bench = await TreasuryBench.open();
});
afterEach(() => bench.close());

it("sweeps the coins that gas is paid of, though tokens wait for that gas", async () => {
  const tokens: Address[] = [];
  for (const name of ["one", "two", "three"]) tokens.push(await bench.bench.register(name));
  await bench.bench.mine(tokens.map((address) => callOf("PlainToken", "mint", [address, 7n])));
  await bench.mine();
  const sweeper = bench.sweeper({ settings: { ...bench.settings, sweepsAtOnce: 2 } });
  // The hot wallet has nothing yet.
  await bench.rounds(2, sweeper);
  const coins = await bench.bench.register("four");
  await bench.bench.mine([{ to: coins, value: 10n ** 17n }]);
  await bench.mine();
  await bench.rounds(4, sweeper);
  expect(await bench.units(coins)).toBe(0n);
  for (let turn = 0; turn < 3; turn += 1) {
    await bench.bench.ledger.owner.query(
      `UPDATE sweep_due SET due_at = now() WHERE due_at <> 'infinity'`,
    );
    await bench.rounds(5, sweeper);
  }
  expect(await bench.units(WALLET, "PLAIN")).toBe(21n);
});

it("is locked in one order by whoever marks where to look, so that none ends the other's work", async () => {
  const made = [await bench.bench.register("one"), await bench.bench.register("two")];
  const [one, two] = made.toSorted();
  if (one === undefined || two === undefined) throw new Error("no address");
  await bench.bench.mine([one, two].map((to) => ({ to, value: 1n })));
  await bench.mine();
  const { owner } = bench.bench.ledger;
  const locks = (address: string) =>
    `SELECT 1 FROM sweep_due WHERE address = '${address}' FOR UPDATE`;
  const height = bench.bench.chain.chain.view.head().height;
  let marked: Promise<void> | undefined;
  await standing(owner, async (tx) => {
    // As the watcher: in the order of the addresses.
    await tx.query(locks(one));
    const entries = [two, one].map((address) => ({ address, asset: "TOKEN", delayMs: 1_000 }));
    marked = putOff(bench.worker, entries, { height, rewinds: 0 });
    const waits = `SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
                    WHERE NOT granted AND datname = current_database()`;
    await until(async () => (await owner.query(waits)).length > 0, {
      timeoutMs: 60_000,
      what: "the treasury waits for the watcher",
    });
    await tx.query(`${locks(two)} NOWAIT`);
  });
  await marked;
});

it("comes to every address, though dust falls on hundreds of others in every block", async () => {
  const addresses: Address[] = [];
  for (let n = 0; n < MANY; n += 1) addresses.push(await bench.bench.register(`customer-${n}`));
  const [last, ...dusty] = addresses.toSorted().toReversed();
  if (last === undefined) throw new Error("no address");
  const TOKEN = { ...ANY_SWEEP, sweepMinimumUnits: 10n ** 15n };
  bench.files.policy = bench.policyOf({ assets: { TOKEN } });
  // Booked before the round looks: else it would not be on the list yet.
  const dust = async () => {
    await bench.bench.mine(dusty.map((to) => ({ to, value: 1n })));
    await bench.bench.caughtUp();
  };
  await dust();
  await bench.bench.mine([{ to: last, value: 10n ** 17n }]);
  await bench.mine();
  const sweeper = bench.sweeper();
  for (let round = 0; round < 4; round += 1) {
    await dust();
    await bench.step(sweeper);
  }
  expect(await bench.units(last)).toBe(0n);
});

it("comes to others, however often a token moved nothing for one address", async () => {
  const { owner } = bench.bench.ledger;
  await bench.bench.mine([{ to: WALLET, value: 10n ** 18n }]);
  const [blocked, other] = [await bench.bench.register("one"), await bench.bench.register("two")];
  for (let nonce = 0; nonce < 3; nonce += 1) {
    await owner.query(
      `INSERT INTO sweep (address, asset, wallet, amount_units, gas_limit, nonce, gas_price_atoken,
         state, mined_hash)
       VALUES ($1, 'PLAIN', $2, 1, 21000, $3, 1, 'failed', $4)`,
      [blocked, WALLET, `${nonce}`, `0x${`${nonce}`.repeat(64)}`],
    );
  }
  await bench.bench.mine(
    [blocked, other].map((address) => callOf("PlainToken", "mint", [address, 7n])),
  );
  await bench.mine();
  const { height } = bench.bench.chain.chain.view.head();
  const due = await readDue(bench.worker, { height, limit: 10 });
  const failures = new Map(due.map((entry) => [entry.address, entry.failures]));
  expect([failures.get(blocked), failures.get(other)]).toEqual([3, 1]);
  await bench.rounds(6);
  expect(await bench.units(other, "PLAIN")).toBe(0n);
});
