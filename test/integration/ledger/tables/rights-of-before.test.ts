/** Services whose roles nobody gives rights anew behind a migration, as in a database that was renamed. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { parseHash32 } from "../../../../chain/hex.js";
import { insertDeposits } from "../../../../ledger/blocks/new-deposits.js";
import { LEDGER_MIGRATIONS, openLedger } from "../../../../ledger/database.js";
import { parseCustomerId } from "../../../../ledger/journal/accounts.js";
import { RulesOfTheOwner1760000000052 } from "../../../../ledger/migrations/rules/0052-rules-of-the-owner.js";
import { grantLedgerRoles, LEDGER_SERVICES, ledgerRole } from "../../../../ledger/roles.js";
import { openDatabase, type SqlDatabase } from "../../../../runtime/sql/sql.js";
import {
  roleUrl,
  silentLog,
  TEST_IDENTITY,
  TEST_PASSWORDS,
} from "../../../helpers/services/ledger.js";
import { createTestDatabase, type TestDatabase } from "../../../helpers/services/postgres.js";

const { signal } = new AbortController();
const HASH = parseHash32(`0x${"c0".repeat(32)}`);
const ADDRESS = parseAddress(`0x${"a0".repeat(20)}`);

/** Since this release services have the right to each column by itself. */
const BY_COLUMN = LEDGER_MIGRATIONS.indexOf(RulesOfTheOwner1760000000052);

let owned: TestDatabase;
let database: SqlDatabase;

beforeEach(async () => {
  owned = await createTestDatabase();
  const common = { url: owned.url, log: silentLog, signal };
  const migrations = LEDGER_MIGRATIONS.slice(0, BY_COLUMN);
  const names = { applicationName: "test", poolSize: 2, migrations };
  const former = await openDatabase({ ...common, ...names });
  await grantLedgerRoles(former, TEST_PASSWORDS);
  await former.close();
  database = await openLedger({ ...common, identity: TEST_IDENTITY });
});
afterEach(async () => {
  await database.close();
  await owned.drop();
});

/** Columns that services may name in rows which they add. */
async function readNameable(): Promise<readonly string[]> {
  const name = new URL(owned.url).pathname.slice(1);
  const rows = await database.query<{ place: string }>(
    `SELECT concat_ws(' ', substr(s.role, length($1) + 2), c.relname, a.attname) AS place
       FROM unnest($2::text[]) AS s (role)
      CROSS JOIN pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
      WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
        AND a.attnum > 0 AND NOT a.attisdropped
        AND has_column_privilege(s.role, c.oid, a.attnum, 'INSERT')
      ORDER BY 1`,
    [name, LEDGER_SERVICES.map((service) => ledgerRole(name, service))],
  );
  return rows.map(({ place }) => place);
}

describe("services with the rights of the release before", () => {
  it("may name in new rows what they may where rights are given anew", async () => {
    const kept = new Set(await readNameable());
    await grantLedgerRoles(database, TEST_PASSWORDS);
    const given = await readNameable();
    expect(given.length).toBeGreaterThan(300);
    expect(given.filter((place) => !kept.has(place))).toEqual([]);
  });

  it("store deposits", async () => {
    await database.query(`INSERT INTO customer (id) VALUES ('alice')`);
    await database.query(
      `INSERT INTO deposit_address (index, address, customer_id, from_height, backfilled)
       VALUES (0, $1, 'alice', 1, true)`,
      [ADDRESS],
    );
    const watcher = await openLedger({
      url: roleUrl(owned.url, "watcher"),
      log: silentLog,
      signal,
      identity: TEST_IDENTITY,
    });
    const deposit = {
      address: ADDRESS,
      customerId: parseCustomerId("alice"),
      asset: "TOKEN",
      amountUnits: 5n,
      height: 7,
      blockHash: HASH,
      txHash: HASH,
      txIndex: 0,
      opIndex: 0,
      creditable: true,
    };
    try {
      await watcher.transaction((tx) => insertDeposits(tx, [{ deposit, status: "detected" }]));
    } finally {
      await watcher.close();
    }
    expect(await database.query("SELECT status FROM deposit")).toEqual([{ status: "detected" }]);
  });
});
