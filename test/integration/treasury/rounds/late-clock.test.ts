/** A treasury whose database's clock has gone back: what waits by the clock of before is not waited for. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { type Address, parseAddress } from "../../../../chain/address.js";
import type { Sql } from "../../../../runtime/sql/sql.js";
import { contractAt } from "../../tokens/token-bench.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { ANY_SWEEP, TreasuryBench } from "../treasury-bench.js";

const ONE = 10n ** 18n;
const HOUR_MS = 3_600_000;

const { signal } = new AbortController();

let bench: TreasuryBench;
let registered = 0;

beforeAll(async () => {
  bench = await TreasuryBench.open();
  await bench.bench.mine([{ to: WALLET, value: 4n * ONE }]);
  await bench.bench.caughtUp();
});
afterAll(() => bench.close());

/** A new customer's address with coins, booked. */
async function coins(): Promise<Address> {
  const address = await bench.bench.register(`customer-${registered++}`);
  await bench.bench.mine([{ to: address, value: 10n ** 16n }]);
  await bench.mine();
  return address;
}

/** As the times of a table's rows are seen once the database's clock has gone back by two hours. */
const goBack = (table: string, column: string) =>
  bench.bench.ledger.owner.transaction(async (tx: Sql) => {
    await tx.query(`ALTER TABLE ${table} DISABLE TRIGGER USER`);
    await tx.query(`UPDATE ${table} SET ${column} = ${column} + interval '2 hours'
                     WHERE ${column} <> 'infinity'`);
    await tx.query(`ALTER TABLE ${table} ENABLE TRIGGER USER`);
  });

it("looks at once for coins that were noted before", async () => {
  const treasury = bench.sweeper();
  await bench.rounds(1, treasury);
  const address = await coins();
  await goBack("sweep_due", "due_at");
  await bench.rounds(3, treasury);
  expect(await bench.units(address)).toBeGreaterThan(0n);
  // The treasury's own clock has gone on.
  bench.clock.ms += 2 * HOUR_MS;
  await bench.rounds(3, treasury);
  expect(await bench.units(address)).toBe(0n);
});

it("takes the steps of its sweeps for as old as they are ahead", async () => {
  const address = await coins();
  const mute = bench.sweeper({ node: { ...bench.node, send: async () => [] } });
  for (let round = 0; round < 2; round += 1) await mute.round(signal);
  const own = async () => (await bench.sweeps()).find((sweep) => sweep.address === address);
  expect(await own()).toMatchObject({ state: "signed", isLate: false });
  await goBack("sweep", "changed_at");
  await goBack("sweep_attempt", "created_at");
  const late = await own();
  expect(late).toMatchObject({ state: "signed", isLate: true });
  for (const ageMs of [late?.ageMs, late?.attempts[0]?.ageMs]) {
    expect(ageMs).toBeGreaterThan(HOUR_MS);
    expect(ageMs).toBeLessThanOrEqual(2 * HOUR_MS);
  }
});

it("asks again for a move to cold storage that ended before", async () => {
  const storeAt = (coldAddress: Address) => {
    const band = { lowUnits: 0n, targetUnits: ONE, highUnits: ONE };
    bench.files.policy = bench.policyOf({ assets: { TOKEN: { ...ANY_SWEEP, coldAddress, band } } });
  };
  const states = async () => {
    const rows = await bench.bench.ledger.owner.query<{ state: string }>(
      `SELECT state FROM treasury_move ORDER BY id`,
    );
    return rows.map(({ state }) => state);
  };
  storeAt(contractAt("SecondPlain"));
  await bench.rounds(4);
  storeAt(parseAddress(`0x${"c1".repeat(20)}`));
  await bench.rounds(2);
  expect(await states()).toEqual(["void"]);
  await goBack("treasury_move", "created_at");
  await bench.rounds(4);
  expect(await states()).toEqual(["void", "arrived"]);
});
