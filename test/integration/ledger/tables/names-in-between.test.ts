/**
 * The indexer's role may make schemas in the ledger's database, and one that is called as another role comes
 * before all others when that role asks for a table by its name alone. It reads and changes nothing of the
 * ledger all the same.
 */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Client } from "pg";
import { openLedger } from "../../../../ledger/database.js";
import {
  grantIndexerRole,
  grantLedgerRoles,
  indexerRole,
  LEDGER_SERVICES,
  ledgerRole,
} from "../../../../ledger/roles.js";
import { readFreeze } from "../../../../ledger/requests/signing-freeze.js";
import {
  openTestLedger,
  roleUrl,
  silentLog,
  TEST_IDENTITY,
  TEST_PASSWORDS,
  type TestLedger,
} from "../../../helpers/services/ledger.js";
import { parseAddress } from "../../../../chain/address.js";

const { signal } = new AbortController();
const WALLET = parseAddress(`0x${"5a".repeat(20)}`);
const NO_PRIVILEGE = "42501";

describe("the indexer's role", () => {
  let ledger: TestLedger;
  let indexer: Client;
  let database: string;

  beforeAll(async () => {
    ledger = await openTestLedger();
    // As a database has them that was put back without its rights.
    await ledger.database.query("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO PUBLIC");
    await grantLedgerRoles(ledger.database, TEST_PASSWORDS);
    await grantIndexerRole(ledger.database, "in dex");
    const url = new URL(ledger.url);
    database = url.pathname.slice(1);
    url.username = indexerRole(database);
    url.password = encodeURIComponent("in dex");
    indexer = new Client({ connectionString: url.href });
    await indexer.connect();
  });
  afterAll(async () => {
    await indexer.end();
    await ledger.drop();
  });

  it("puts no table before the ledger's, whoever reads it", async () => {
    await ledger.database.query(
      `INSERT INTO signing_freeze (wallet, frozen, reason) VALUES ($1, true, 'a theft')`,
      [WALLET],
    );
    const owner = new URL(ledger.url);
    const readers = [
      { name: owner.username, url: owner.href },
      ...LEDGER_SERVICES.map((service) => ({
        name: ledgerRole(database, service),
        url: roleUrl(ledger.url, service),
      })),
    ];
    for (const { name, url } of readers) {
      await indexer.query(`CREATE SCHEMA "${name}"`);
      await indexer.query(`GRANT USAGE ON SCHEMA "${name}" TO PUBLIC`);
      await indexer.query(
        `CREATE TABLE "${name}".signing_freeze (wallet text, frozen boolean, reason text,
                                                changed_at timestamptz DEFAULT now())`,
      );
      await indexer.query(`GRANT SELECT, UPDATE ON "${name}".signing_freeze TO PUBLIC`);
      await indexer.query(
        `INSERT INTO "${name}".signing_freeze VALUES ('${WALLET}', false, 'all is well')`,
      );
      const common = { log: silentLog, signal, identity: TEST_IDENTITY };
      const opened = await openLedger({ ...common, url, olderTables: "leave" });
      const { frozen, reason } = await readFreeze(opened, WALLET);
      await opened.close();
      expect({ name, frozen, reason }).toEqual({ name, frozen: true, reason: "a theft" });
    }
  });

  it("calls none of the functions that do more than their caller may", async () => {
    const found = await ledger.database.query<{ name: string; path: string | null }>(
      `SELECT oid::regprocedure::text AS name, array_to_string(proconfig, ';') AS path
         FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace ORDER BY 1`,
    );
    const path = "search_path=public, pg_temp";
    expect(found).toEqual([
      { name: "move_customer_balances()", path },
      { name: "prune_reconcile_runs(integer,integer)", path },
      { name: "prune_webhook_deliveries(integer,integer)", path },
      { name: "skip_told_positions()", path },
    ]);
    const callers = ["watcher", "worker", "operator"].map((service) => `${database}_${service}`);
    const rows = await ledger.database.query<{ name: string; callers: readonly string[] }>(
      `SELECT p.oid::regprocedure::text AS name,
              array(SELECT role FROM unnest($1::text[]) AS role
                     WHERE has_function_privilege(role, p.oid, 'EXECUTE')) AS callers
         FROM pg_proc p WHERE prosecdef AND pronamespace = 'public'::regnamespace ORDER BY 1`,
      [[...callers, indexerRole(database)]],
    );
    expect(rows).toEqual([
      { name: "move_customer_balances()", callers: [] },
      {
        name: "prune_reconcile_runs(integer,integer)",
        callers: [ledgerRole(database, "watcher")],
      },
      {
        name: "prune_webhook_deliveries(integer,integer)",
        callers: [ledgerRole(database, "watcher"), ledgerRole(database, "operator")],
      },
      { name: "skip_told_positions()", callers: [ledgerRole(database, "operator")] },
    ]);
    for (const call of [
      "skip_told_positions()",
      "prune_webhook_deliveries(0, 1)",
      "prune_reconcile_runs(0, 1)",
    ]) {
      await expect(indexer.query(`SELECT ${call}`)).rejects.toMatchObject({ code: NO_PRIVILEGE });
    }
  });
});
