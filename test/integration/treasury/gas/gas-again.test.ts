/** Gas for a token's sweep that is signed already, where the price rose beyond what its address can pay. */
import { afterAll, beforeAll, beforeEach, expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { LEDGER_MIGRATIONS, openLedger } from "../../../../ledger/database.js";
import { GasGivenAgain1760000000035 } from "../../../../ledger/migrations/treasury/0035-gas-given-again.js";
import { openMove } from "../../../../ledger/treasury/moves.js";
import type { Sweep } from "../../../../ledger/treasury/sweeps.js";
import { cancelWithdrawal } from "../../../../ledger/withdrawals/cancellation.js";
import { toWithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import type { Sweeper } from "../../../../withdrawal-worker/treasury/sweeper.js";
import type { TreasuryContext } from "../../../../withdrawal-worker/treasury/treasury-context.js";
import { openDatabase, type SqlDatabase } from "../../../../runtime/sql/sql.js";
import { silentLog, TEST_IDENTITY, standing } from "../../../helpers/services/ledger.js";
import { createTestDatabase } from "../../../helpers/services/postgres.js";
import { until } from "../../../helpers/until.js";
import { callOf } from "../../tokens/token-bench.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { dyingDatabase, Killed, PRICE, TreasuryBench } from "../treasury-bench.js";

const { signal } = new AbortController();

let bench: TreasuryBench;
let registered = 0;

beforeAll(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 10n ** 18n }]);
  await bench.bench.caughtUp();
});
afterAll(() => bench.close());

beforeEach(() => {
  bench.files.policy = bench.policyOf({});
});

/** A treasury whose node suggests a price and takes none of its bytes. @param happens behind its look */
function atPrice(
  suggestedPriceAtoken: bigint,
  over: Partial<Pick<TreasuryContext, "database" | "signer">> = {},
  happens: () => Promise<unknown> = async () => undefined,
): Sweeper {
  return bench.sweeper({
    ...over,
    settings: {
      ...bench.settings,
      repriceAfterMs: 0,
      gas: { ...bench.settings.gas, priceFloorAtoken: 0n },
    },
    node: {
      ...bench.node,
      send: async () => [],
      view: async (wallet, options) => {
        const view = await bench.node.view(wallet, options);
        await happens();
        return { ...view, suggestedPriceAtoken };
      },
    },
  });
}

/** A new customer's address whose sweep is signed and late: no block takes what its gas pays for. */
async function stuck(): Promise<Address> {
  const address = await tokens();
  await bench.rounds(5, atPrice(PRICE));
  expect([(await sweepOf(address)).state, await gasOf(address)]).toEqual(["signed", ["arrived"]]);
  await anHourLater();
  return address;
}

/** A new customer's address with a token and no coins, booked. */
async function tokens(): Promise<Address> {
  const address = await bench.bench.register(`customer-${registered++}`);
  await bench.bench.mine([callOf("PlainToken", "mint", [address, 5n])]);
  await bench.mine();
  return address;
}

async function anHourLater(): Promise<void> {
  await bench.bench.ledger.owner.transaction(async (tx) => {
    await tx.query(`ALTER TABLE sweep DISABLE TRIGGER sweep_guard`);
    await tx.query(`UPDATE sweep SET changed_at = changed_at - interval '1 hour'`);
    await tx.query(`ALTER TABLE sweep ENABLE TRIGGER sweep_guard`);
  });
}

async function sweepOf(address: Address): Promise<Sweep> {
  const found = (await bench.sweeps()).find((sweep) => sweep.address === address);
  if (found === undefined) throw new Error("no sweep");
  return found;
}

/** States of all gas of an address. */
async function gasOf(address: Address): Promise<readonly string[]> {
  const rows = await bench.worker.query<{ state: string }>(
    `SELECT state FROM treasury_move WHERE destination = $1 ORDER BY id`,
    [address],
  );
  return rows.map(({ state }) => state);
}

const lastPrice = async (address: Address) =>
  (await sweepOf(address)).attempts.at(-1)?.gasPriceAtoken;

/** Blocks take what there is. */
async function expectSettled(address: Address): Promise<void> {
  await bench.rounds(2);
  expect((await sweepOf(address)).state).toBe("settled");
  expect(await bench.units(address, "PLAIN")).toBe(0n);
}

it("is given once more at a risen price, within what the policy gives one sweep", async () => {
  const address = await stuck();
  const dear = atPrice(2n * PRICE);
  await bench.rounds(3, dear);
  expect(await gasOf(address)).toEqual(["arrived", "arrived"]);
  expect(await lastPrice(address)).toBeGreaterThanOrEqual(2n * PRICE);
  // A quarter more than was needed is there, and more than the policy's all is not given.
  const { givenAtoken, gasLimit } = await sweepOf(address);
  expect(givenAtoken).toBe((gasLimit * 2n * PRICE * 5n) / 4n);
  bench.files.policy = bench.policyOf({ topUpMaxAtoken: givenAtoken + gasLimit * PRICE });
  await bench.rounds(2, atPrice(4n * PRICE));
  expect(await gasOf(address)).toEqual(["arrived", "arrived"]);
  await bench.rounds(3, atPrice(3n * PRICE));
  expect(await gasOf(address)).toEqual(["arrived", "arrived", "arrived"]);
  expect(await lastPrice(address)).toBeGreaterThanOrEqual(3n * PRICE);
  await expectSettled(address);
});

it("is not given where the fee would be above the policy's, nor before the sweep is late", async () => {
  const address = await stuck();
  const { gasLimit } = await sweepOf(address);
  await bench.rounds(2, atPrice(10n ** 15n / gasLimit + 1n));
  expect(await gasOf(address)).toEqual(["arrived"]);
  await bench.worker.query(`UPDATE sweep SET state = state WHERE address = $1`, [address]);
  await bench.rounds(2, atPrice(2n * PRICE));
  expect(await gasOf(address)).toEqual(["arrived"]);
  await expectSettled(address);
});

it("is not given for a token of which no list here says that its sweep can be signed", async () => {
  const address = await stuck();
  const signer = bench.signer({ contractOf: () => undefined });
  await bench.rounds(2, atPrice(2n * PRICE, { signer }));
  expect(await gasOf(address)).toEqual(["arrived"]);
  await expectSettled(address);
});

it("is asked for once by two that look at once, and by one that dies behind it", async () => {
  const address = await stuck();
  await Promise.all([atPrice(2n * PRICE).round(signal), atPrice(2n * PRICE).round(signal)]);
  expect(await gasOf(address)).toEqual(["arrived", "open"]);
  for (let steps = 1; ; steps += 1) {
    const dying = dyingDatabase(bench.worker, steps);
    const outcome = await atPrice(2n * PRICE, dying)
      .round(signal)
      .then(
        () => "lived",
        (error: unknown) => {
          if (error instanceof Killed) return "died";
          throw error;
        },
      );
    expect(await gasOf(address)).toEqual(["arrived", "open"]);
    if (outcome === "lived") break;
  }
  await bench.rounds(2, atPrice(2n * PRICE));
  expect(await gasOf(address)).toEqual(["arrived", "arrived"]);
  expect(await lastPrice(address)).toBeGreaterThanOrEqual(2n * PRICE);
  await expectSettled(address);
});

it("is not asked for by what was seen before other gas came, nor for a sweep that has ended", async () => {
  const address = await stuck();
  const { id: sweepId, topUpId: afterId } = await sweepOf(address);
  const ask = (seenId: number) =>
    openMove(
      bench.worker,
      {
        kind: "top-up",
        sweepId,
        destination: address,
        amountUnits: 1n,
        afterId: seenId,
      },
      { minimumAtoken: 0n, policy: bench.files.policy, isStopped: false },
    );
  await bench.rounds(3, atPrice(2n * PRICE));
  expect(await ask(afterId)).toBeUndefined();
  expect(await gasOf(address)).toEqual(["arrived", "arrived"]);
  await expectSettled(address);
  expect(await ask((await sweepOf(address)).topUpId)).toBeUndefined();
  expect(await gasOf(address)).toEqual(["arrived", "arrived"]);
  await bench.assertEven();
});

it("is not asked for again by a look at a block before the one in which it arrived", async () => {
  const address = await stuck();
  await atPrice(2n * PRICE).round(signal);
  expect(await gasOf(address)).toEqual(["arrived", "open"]);
  const arrives = async () => {
    bench.house.clock.ms += 3_000;
    await bench.lane.runRound(signal);
    await bench.mine();
  };
  await atPrice(2n * PRICE, {}, arrives).round(signal);
  expect(await gasOf(address)).toEqual(["arrived", "arrived"]);
  await bench.rounds(1, atPrice(2n * PRICE));
  expect(await gasOf(address)).toEqual(["arrived", "arrived"]);
  expect(await lastPrice(address)).toBeGreaterThanOrEqual(2n * PRICE);
  await expectSettled(address);
});

it("is asked for while a block ends the sweep, and neither holds the other up", async () => {
  const address = await stuck();
  const { id: sweepId, topUpId: afterId } = await sweepOf(address);
  const rules = { minimumAtoken: 0n, policy: bench.files.policy, isStopped: false };
  let asked: Promise<unknown> | undefined;
  const { owner } = bench.bench.ledger;
  // As the watcher does it: the sweep, then the events.
  await standing(owner, async (tx) => {
    await tx.query(`SELECT 1 FROM sweep WHERE id = $1 FOR UPDATE`, [sweepId]);
    const move = {
      kind: "top-up",
      sweepId,
      destination: address,
      amountUnits: 1n,
      afterId,
    } as const;
    asked = openMove(bench.worker, move, rules);
    const waiting = `SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await until(async () => (await owner.query(waiting)).length > 0, {
      timeoutMs: 10_000,
      what: "the gas waits for the block",
    });
    await tx.query(`SELECT 1 FROM event_counter FOR UPDATE`);
    await tx.query(`UPDATE sweep SET state = 'frozen', reason = 'drill' WHERE id = $1`, [sweepId]);
  });
  expect(await asked).toBeUndefined();
  expect(await gasOf(address)).toEqual(["arrived"]);
  await bench.assertEven();
});

it("is given to what was signed for nothing, once gas has a price", async () => {
  const address = await tokens();
  await bench.rounds(3, atPrice(0n));
  expect([(await sweepOf(address)).state, await gasOf(address)]).toEqual(["signed", []]);
  expect(await lastPrice(address)).toBe(0n);
  await anHourLater();
  await bench.rounds(3, atPrice(PRICE));
  expect(await gasOf(address)).toEqual(["arrived"]);
  expect(await lastPrice(address)).toBeGreaterThanOrEqual(PRICE);
  await expectSettled(address);
});

it("is tried again after a while where no hot wallet paid it", async () => {
  const address = await stuck();
  await atPrice(2n * PRICE).round(signal);
  const [asked] = await bench.worker.query<{ id: string }>(
    `SELECT withdrawal_id AS id FROM treasury_move WHERE destination = $1 AND state = 'open'`,
    [address],
  );
  const id = toWithdrawalId(String(asked?.id));
  expect(await cancelWithdrawal(bench.worker, id, "drill")).toBe("done");
  await bench.rounds(3, atPrice(2n * PRICE));
  expect(await gasOf(address)).toEqual(["arrived", "void"]);
  await bench.bench.ledger.owner.transaction(async (tx) => {
    await tx.query(`ALTER TABLE treasury_move DISABLE TRIGGER treasury_move_guard`);
    await tx.query(`UPDATE treasury_move SET created_at = created_at - interval '1 hour'`);
    await tx.query(`ALTER TABLE treasury_move ENABLE TRIGGER treasury_move_guard`);
  });
  await bench.rounds(3, atPrice(2n * PRICE));
  expect(await gasOf(address)).toEqual(["arrived", "void", "arrived"]);
  await expectSettled(address);
});

it("stands as it was in a ledger of before, and may come again there", async () => {
  const { url, drop } = await createTestDatabase();
  const common = { url, log: silentLog, signal, applicationName: "test", poolSize: 2 };
  const address = `0x${"d".repeat(40)}`;
  const give = (database: SqlDatabase, id: string) =>
    database.transaction(async (tx) => {
      await tx.query(
        `INSERT INTO withdrawal (id, idempotency_key, request_hash, customer_id, asset, destination,
                                 destination_text, amount_units, status)
         VALUES ($1, $1, '', 'causeway:treasury', 'TOKEN', $2, $2, 7, 'accepted')`,
        [id, address],
      );
      await tx.query(
        `INSERT INTO treasury_move (kind, withdrawal_id, asset, destination, amount_units, sweep_id)
         SELECT 'top-up', $1, 'TOKEN', address, 7, id FROM sweep`,
        [id],
      );
    });
  const before = LEDGER_MIGRATIONS.slice(0, LEDGER_MIGRATIONS.indexOf(GasGivenAgain1760000000035));
  const former = await openDatabase({ ...common, migrations: before });
  await former.query(
    `INSERT INTO asset (symbol, decimals, contract, from_height) VALUES ('PLAIN', 6, $1, 0)`,
    [`0x${"a".repeat(40)}`],
  );
  await former.query(`INSERT INTO customer (id) VALUES ('alice')`);
  await former.query(
    `INSERT INTO deposit_address (index, address, customer_id, from_height, backfilled)
     VALUES (0, $1, 'alice', 0, true)`,
    [address],
  );
  await former.query(
    `INSERT INTO wallet (address, place, status, reason, operator, label, from_height,
                         past_booked)
     VALUES ($1, 1, 'active', 'drill', 'drill', '', 0, true)`,
    [WALLET],
  );
  await former.query(
    `INSERT INTO sweep (address, asset, wallet, amount_units, gas_limit, state)
     VALUES ($1, 'PLAIN', $2, 1, 21000, 'needs-gas')`,
    [address, WALLET],
  );
  await give(former, "wd_1");
  await former.query(`UPDATE treasury_move SET state = 'arrived'`);
  await former.query(`UPDATE sweep SET state = 'ready', nonce = 0, gas_price_atoken = 1`);
  await former.query(`UPDATE sweep SET state = 'signed'`);
  await expect(give(former, "wd_2")).rejects.toThrow();
  await former.close();
  const now = await openLedger({ url, log: silentLog, signal, identity: TEST_IDENTITY });
  try {
    await give(now, "wd_2");
    expect(
      await now.query(`SELECT withdrawal_id AS id, state FROM treasury_move ORDER BY id`),
    ).toEqual([
      { id: "wd_1", state: "arrived" },
      { id: "wd_2", state: "open" },
    ]);
    // One at a time, and none for one that is frozen.
    await expect(give(now, "wd_3")).rejects.toThrow();
    await now.query(`UPDATE treasury_move SET state = 'void' WHERE state = 'open'`);
    await now.query(`UPDATE sweep SET state = 'frozen', reason = 'drill'`);
    await expect(give(now, "wd_3")).rejects.toThrow();
  } finally {
    await now.close();
    await drop();
  }
});
