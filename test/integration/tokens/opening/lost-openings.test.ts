/** A token, and a wallet, that were taken in above the block that a chain came back to. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { readTokenAssets } from "../../../../ledger/assets/asset-registry.js";
import {
  bookOpening,
  countBookedPasts,
  openingEntry,
} from "../../../../ledger/assets/token-opening.js";
import { openIncident } from "../../../../ledger/incidents.js";
import { postJournals } from "../../../../ledger/journal/journal.js";
import { parseCustomerId } from "../../../../ledger/journal/accounts.js";
import { customerBalances } from "../../../../ledger/deposits/deposit-queries.js";
import { derivation } from "../../../helpers/services/watcher.js";
import { until } from "../../../helpers/until.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { registerTestWallets } from "../../../helpers/services/ledger.js";
import { testAddress } from "../../../helpers/chains/fake-chain.js";
import { callOf, TokenBench } from "../token-bench.js";

/** A hot wallet that comes later. */
const SECOND = testAddress(0x5ec);

let bench: TokenBench;

beforeEach(async () => {
  bench = await TokenBench.open();
  await bench.watch([]);
  await bench.deploy();
});
afterEach(() => bench.close());

/** Somebody who has many of them sends some. */
const send = (to: string, units: bigint) => callOf("PlainToken", "mint", [to, units]);

async function assertEven(): Promise<void> {
  const { clean, halted, tokens } = await bench.reconcile();
  const plain = tokens.find(({ asset }) => asset === "PLAIN");
  expect({ clean, halted, lines: plain?.lines }).toMatchObject({ clean: true, halted: undefined });
}

async function plainOf(customer: string): Promise<bigint | undefined> {
  const balances = await customerBalances(bench.database, parseCustomerId(customer));
  return balances?.find(({ asset }) => asset === "PLAIN")?.availableUnits;
}

it("has units of a token that came before it was listed once, as a sum or as deposits", async () => {
  const alice = await bench.register("alice");
  await bench.mine([send(alice, 3n), send(WALLET, 5n)]);
  // A block that the ledger has a hash of.
  await bench.mine([{ to: alice, value: 1_000n }]);
  const { height: kept } = bench.chain.chain.view.head();
  await bench.mine([send(alice, 40n), send(WALLET, 70n)]);
  await bench.mine([]);
  await bench.caughtUp();
  await bench.watch();
  await bench.mine([]);
  await bench.caughtUp();
  await assertEven();

  bench = await bench.without(kept);
  await bench.mine([]);
  // The same transaction as before, and one that is new.
  await bench.mine([send(alice, 40n)]);
  await bench.mine([send(alice, 9n)]);
  for (let block = 0; block < 4; block += 1) await bench.mine([]);
  await bench.recover();
  await assertEven();
  // What came before the token was listed is nobody's yet, as before.
  expect(await plainOf("alice")).toBe(9n);
  const found = `SELECT amount_units::text AS units FROM deposit
                  WHERE asset = 'PLAIN' AND status = 'suspense'`;
  expect(await bench.ledger.owner.query(found)).toEqual([{ units: "40" }]);

  // Lost once more, and further down.
  bench = await bench.without(kept - 2);
  for (let block = 0; block < 12; block += 1) await bench.mine([]);
  await bench.recover();
  await assertEven();
  expect(await plainOf("alice")).toBe(0n);
});

it("has what a younger wallet held of coins and of a token once", async () => {
  await bench.watch();
  const alice = await bench.register("alice");
  await bench.mine([send(SECOND, 3n), { to: SECOND, value: 30n }]);
  await bench.mine([{ to: alice, value: 1_000n }]);
  const { height: kept } = bench.chain.chain.view.head();
  await bench.mine([send(SECOND, 40n), { to: SECOND, value: 400n }]);
  await bench.caughtUp();
  await registerTestWallets(bench.database, SECOND);
  await bench.mine([send(SECOND, 5n)]);
  await bench.caughtUp();
  const waiting = `SELECT 1 FROM wallet WHERE NOT past_booked`;
  await until(async () => (await bench.database.query(waiting)).length === 0, {
    timeoutMs: 20_000,
    what: "what the wallet held is booked",
  });
  await assertEven();

  bench = await bench.without(kept);
  await bench.mine([]);
  await bench.mine([send(SECOND, 40n)]);
  for (let block = 0; block < 4; block += 1) await bench.mine([]);
  await bench.recover();
  await assertEven();
  const [row] = await bench.ledger.owner.query<{ units: string }>(
    `SELECT sum(CASE WHEN debit = $1 THEN amount_units ELSE -amount_units END)::text AS units
       FROM posting WHERE asset = 'PLAIN' AND $1 IN (debit, credit)`,
    [`asset:wallet:${SECOND}`],
  );
  expect(row?.units).toBe("43");
});

it.each([
  { isDown: false, watcher: "runs" },
  { isDown: true, watcher: "is down" },
])(
  "has what lay at an address given out while a watcher that $watcher goes back once",
  async ({ isDown }) => {
    const alice = await bench.register("alice");
    const next = derivation.addressAt(1);
    await bench.mine([send(next, 3n)]);
    await bench.mine([{ to: alice, value: 1_000n }]);
    const { height: kept } = bench.chain.chain.view.head();
    await bench.caughtUp();
    await bench.mine([send(alice, 40n)]);
    await bench.caughtUp();
    await bench.watch();
    await bench.mine([]);
    await bench.caughtUp();

    bench = await bench.without(kept);
    for (let block = 0; block < 6; block += 1) await bench.mine([]);
    await bench.watch();
    await until(async () => (await openIncident(bench.ledger.owner)) !== undefined, {
      timeoutMs: 30_000,
      what: "the watcher halts",
    });
    expect(await bench.register("carol")).toBe(next);
    await bench.recover({ isDown });
    const waiting = `SELECT 1 FROM deposit_address WHERE NOT backfilled`;
    await until(async () => (await bench.database.query(waiting)).length === 0, {
      timeoutMs: 20_000,
      what: "what the address held is booked",
    });
    await assertEven();
  },
);

it("has what came to an address once where a later loss ends below the block it was given out at", async () => {
  await bench.watch();
  const bob = await bench.register("bob");
  await bench.mine([{ to: bob, value: 1_000n }]);
  const { height: kept } = bench.chain.chain.view.head();
  for (let block = 0; block < 6; block += 1) await bench.mine([{ to: bob, value: 1n }]);
  await bench.caughtUp();
  const alice = await bench.register("alice");
  await bench.mine([]);
  await bench.caughtUp();

  bench = await bench.without(kept);
  await bench.mine([send(alice, 9n)]);
  const { height: stays } = bench.chain.chain.view.head();
  for (let block = 0; block < 9; block += 1) await bench.mine([]);
  await bench.recover();
  await assertEven();
  expect(await plainOf("alice")).toBe(9n);

  bench = await bench.without(stays);
  for (let block = 0; block < 12; block += 1) await bench.mine([{ to: bob, value: 2n }]);
  await bench.recover();
  expect(await plainOf("alice")).toBe(9n);
  await assertEven();
});

it("books once what an address held of a token that was listed while the chain had lost its blocks", async () => {
  const alice = await bench.register("alice");
  const next = derivation.addressAt(1);
  await bench.mine([send(next, 3n), { to: alice, value: 1_000n }]);
  const { height: kept } = bench.chain.chain.view.head();
  await bench.mine([send(alice, 40n)]);
  await bench.mine([]);
  await bench.caughtUp();
  await bench.stopWatching();
  // Its past waits: nobody books it before the recovery.
  expect(await bench.register("carol")).toBe(next);

  bench = await bench.without(kept);
  await bench.mine([send(next, 5n)]);
  for (let block = 0; block < 6; block += 1) await bench.mine([]);
  await bench.recover();
  await openedAndBooked();
  await assertEven();
  expect(await unitsOf("asset:deposit_addresses")).toBe("8");
});

it("opens a token that was listed on a chain that is still shorter than it was", async () => {
  const alice = await bench.register("alice");
  await bench.mine([send(alice, 3n), send(WALLET, 5n), { to: alice, value: 1_000n }]);
  const { height: kept } = bench.chain.chain.view.head();
  await bench.mine([send(alice, 40n)]);
  for (let block = 0; block < 6; block += 1) await bench.mine([]);
  await bench.caughtUp();
  await bench.stopWatching();

  bench = await bench.without(kept);
  await bench.mine([send(alice, 9n)]);
  await bench.recover();
  await openedAndBooked();
  await assertEven();
  expect(await unitsOf("asset:deposit_addresses")).toBe("12");
  expect(await unitsOf(`asset:wallet:${WALLET}`)).toBe("5");
});

/** Until everything that was held before is in the books. */
async function openedAndBooked(): Promise<void> {
  const waiting = `SELECT 1 FROM deposit_address WHERE NOT backfilled
                    UNION ALL SELECT 1 FROM token_state WHERE NOT opened LIMIT 1`;
  await until(
    async () => {
      if (bench.faults.length > 0) throw bench.faults[0];
      return (await bench.database.query(waiting)).length === 0;
    },
    { timeoutMs: 20_000, what: "what was held before is booked" },
  );
  // The last deposit is credited.
  await bench.mine([]);
  await bench.caughtUp();
}

/** What an account has of the plain token. */
async function unitsOf(account: string): Promise<string | undefined> {
  const [row] = await bench.ledger.owner.query<{ units: string }>(
    `SELECT sum(CASE WHEN debit = $1 THEN amount_units ELSE -amount_units END)::text AS units
       FROM posting WHERE asset = 'PLAIN' AND $1 IN (debit, credit)`,
    [account],
  );
  return row?.units;
}

it.each([0, 1])(
  "is opened without what an address' own past has of it, behind %i losses of blocks",
  async (rewinds) => {
    await bench.watch();
    const address = await bench.register("alice");
    const [listed] = (await readTokenAssets(bench.database)).filter(
      ({ symbol }) => symbol === "PLAIN",
    );
    if (listed === undefined) throw new Error("it is not followed");
    const token = { ...listed, fromHeight: 5 };
    const balance = { asset: "PLAIN", amountUnits: 7n, address, isHotWallet: false };
    const keys: string[] = [];
    await bench.ledger.owner
      .transaction(async (tx) => {
        await postJournals(tx, [openingEntry({ ...balance, ...token }, balance, 0)]);
        for (const table of ["watch_cursor", "token_state"]) {
          await tx.query(`ALTER TABLE ${table} DISABLE TRIGGER USER`);
        }
        await tx.query(`UPDATE watch_cursor SET rewinds = $1`, [rewinds]);
        await tx.query(`UPDATE token_state SET opened = false WHERE asset = 'PLAIN'`);
        const inIt = {
          ...bench.database,
          transaction: (work: (sql: typeof tx) => unknown) => work(tx),
        };
        const bookedPasts = await countBookedPasts(tx);
        const read = { balances: [balance], rewinds, bookedPasts };
        expect(await bookOpening(inIt as never, token, read)).toBe(true);
        const rows = await tx.query<{ key: string }>(
          `SELECT idem_key AS key FROM journal_entry WHERE memo = $1`,
          [`before ${address}`],
        );
        keys.push(...rows.map(({ key }) => key));
        throw new Error("undone");
      })
      .catch((error: unknown) => expect(String(error)).toContain("undone"));
    expect(keys).toEqual([`token-opening:PLAIN:${address}`]);
  },
);
