/** Tables of the release before: what it did not write down of tokens and their deposits. */
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { parseHash32 } from "../../../../chain/hex.js";
import {
  observeCodes,
  readTokenStates,
  withCodeOfNobody,
} from "../../../../ledger/assets/token-state.js";
import { LEDGER_MIGRATIONS, openLedger } from "../../../../ledger/database.js";
import { CodesOfTokens1760000000054 } from "../../../../ledger/migrations/tokens/0054-codes-of-tokens.js";
import { openDatabase, type SqlDatabase } from "../../../../runtime/sql/sql.js";
import { silentLog, TEST_IDENTITY } from "../../../helpers/services/ledger.js";
import { createTestDatabase, type TestDatabase } from "../../../helpers/services/postgres.js";

const { signal } = new AbortController();
const ZEROS = `0x${"00".repeat(32)}`;
const WORD = `0x${"0d".repeat(32)}`;
const CODE = `0x${"c0".repeat(32)}`;

let owned: TestDatabase;
let database: SqlDatabase;

beforeEach(async () => {
  owned = await createTestDatabase();
});
afterEach(async () => {
  await database.close();
  await owned.drop();
});

/** Migrates with these rows in the tables of before. */
async function migrate(statements: readonly string[]): Promise<void> {
  const common = { url: owned.url, log: silentLog, signal };
  const migrations = LEDGER_MIGRATIONS.slice(
    0,
    LEDGER_MIGRATIONS.indexOf(CodesOfTokens1760000000054),
  );
  const former = await openDatabase({
    ...common,
    applicationName: "test",
    poolSize: 2,
    migrations,
  });
  for (const statement of statements) await former.query(statement);
  await former.close();
  database = await openLedger({ ...common, identity: TEST_IDENTITY });
}

const token = (symbol: string, contract: string) =>
  `INSERT INTO asset (symbol, contract, decimals, from_height)
   VALUES ('${symbol}', '0x${contract.repeat(40)}', 0, 1)`;

const accepted = (symbol: string) =>
  `INSERT INTO token_state (asset, opened, code_hash, implementation, changed_by)
   VALUES ('${symbol}', true, '${CODE}', '${ZEROS}', 'watcher')`;

it("know no code of deposits that wait and came behind other code, and accepted code of all others", async () => {
  const paused = (height: number) =>
    `UPDATE token_state SET paused = true, changed_by = 'watcher',
            reason = 'its contract runs other code after block ${height} than was accepted (...)'
      WHERE asset = 'GOLD'`;
  const deposit = (asset: string, height: number, status: string) =>
    `INSERT INTO deposit (id, address, customer_id, asset, amount_units, status, height, block_hash,
                          tx_hash, tx_index, op_index, held_for)
     VALUES ('${height}-0-0', '0x${"a".repeat(40)}', 'alice', '${asset}', 1, '${status}', ${height},
             '${ZEROS}', '${ZEROS}', 0, 0, ${status === "held" ? "'token-paused'" : "NULL"})`;
  await migrate([
    token("GOLD", "b"),
    token("LEAD", "c"),
    accepted("GOLD"),
    accepted("LEAD"),
    `INSERT INTO customer (id) VALUES ('alice')`,
    `INSERT INTO deposit_address (index, address, customer_id, from_height, backfilled)
     VALUES (0, '0x${"a".repeat(40)}', 'alice', 1, true)`,
    deposit("GOLD", 8, "credited"),
    deposit("GOLD", 9, "held"),
    // Its first word counts.
    paused(10),
    paused(12),
    deposit("GOLD", 10, "held"),
    deposit("LEAD", 11, "held"),
  ]);
  const rows = await database.query(
    `SELECT height::text, other_code_hash AS code, other_implementation AS implementation
       FROM deposit ORDER BY seq`,
  );
  expect(rows).toEqual([
    { height: "8", code: null, implementation: null },
    { height: "9", code: null, implementation: null },
    { height: "10", code: ZEROS, implementation: ZEROS },
    { height: "11", code: null, implementation: null },
  ]);
  await expect(
    database.query(
      `UPDATE deposit SET other_code_hash = NULL, other_implementation = NULL, status = 'suspense'
        WHERE height = 10`,
    ),
  ).rejects.toThrow("may only move on");
});

it("takes what is found in more slots once, of the same code, and stops at the next one", async () => {
  await migrate(
    ["GOLD", "LEAD", "IRON"].flatMap((name, at) => [token(name, `${at}`), accepted(name)]),
  );
  const other = `0x${"0e".repeat(32)}`;
  let height = 4;
  const see = (asset: string, implementation: string, codeHash = CODE) =>
    database.transaction(async (tx) => {
      const code = { codeHash: parseHash32(codeHash), implementation: parseHash32(implementation) };
      const events = await observeCodes(tx, [{ asset, height: (height += 1), ...code }]);
      return events.map(({ type }) => type);
    });
  // A proxy that was taken for none.
  expect(await see("GOLD", WORD)).toEqual([]);
  expect((await readTokenStates(database)).get("GOLD")).toMatchObject({
    implementation: WORD,
    isPaused: false,
  });
  expect(await see("GOLD", WORD)).toEqual([]);
  expect(await see("GOLD", other)).toEqual(["token.paused"]);
  // None, now as before: what comes later is new.
  expect(await see("LEAD", ZEROS)).toEqual([]);
  expect(await see("LEAD", WORD)).toEqual(["token.paused"]);
  // Other code is other code.
  expect(await see("IRON", WORD, other)).toEqual(["token.paused"]);
  await expect(
    database.query(`UPDATE token_state SET read_slots = 1 WHERE asset = 'LEAD'`),
  ).rejects.toThrow("stands");
});

it("leaves no token out of a past for what was looked for in fewer slots", async () => {
  await migrate(
    ["GOLD", "LEAD", "IRON"].flatMap((name, at) => [token(name, `${at}`), accepted(name)]),
  );
  const [codeHash, other] = [parseHash32(CODE), parseHash32(`0x${"0e".repeat(32)}`)];
  const [zeros, implementation] = [parseHash32(ZEROS), parseHash32(WORD)];
  const nobodys = () =>
    withCodeOfNobody(database, [
      { asset: "GOLD", codeHash, implementation },
      { asset: "LEAD", codeHash: other, implementation },
      { asset: "IRON", codeHash, implementation: zeros },
    ]);
  expect(await nobodys()).toEqual(new Set(["LEAD"]));
  // None in all of them: what is named later is other code.
  await database.transaction((tx) =>
    observeCodes(tx, [{ asset: "GOLD", height: 4, codeHash, implementation: zeros }]),
  );
  expect(await nobodys()).toEqual(new Set(["GOLD", "LEAD"]));
});
