/** The roles of the services: what they may not do, whoever has their passwords. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { randomBytes, randomUUID } from "node:crypto";
import { Client } from "pg";
import { openLedger } from "../../../../ledger/database.js";
import { openIncident } from "../../../../ledger/incidents.js";
import { writeLoss } from "../../../../ledger/guard/recovery-incident.js";
import {
  grantIndexerRole,
  grantLedgerRoles,
  indexerRole,
  LEDGER_SERVICES,
  ledgerRole,
  refuseFormerRoles,
} from "../../../../ledger/roles.js";
import {
  createLedgerDatabase,
  openTestLedger,
  roleUrl,
  silentLog,
  TEST_IDENTITY,
  TEST_PASSWORDS,
  type TestLedger,
} from "../../../helpers/services/ledger.js";
import { createTestDatabase } from "../../../helpers/services/postgres.js";

const { signal } = new AbortController();

/** Runs statements over one connection; for each PostgreSQL's code of its refusal, or "done". */
async function attemptAll(url: string, statements: readonly string[]): Promise<string[]> {
  const client = new Client({ connectionString: url });
  const outcomes: string[] = [];
  try {
    await client.connect();
    for (const statement of statements) {
      outcomes.push(await client.query(statement).then(() => "done", codeOf));
    }
    return outcomes;
  } catch (error) {
    return statements.map(() => codeOf(error));
  } finally {
    await client.end();
  }
}

async function attempt(url: string, statement: string): Promise<string> {
  const [outcome] = await attemptAll(url, [statement]);
  return outcome ?? "nothing";
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}

const NO_PRIVILEGE = "42501";

describe("a database with a long name", () => {
  // PostgreSQL cuts names at 63 bytes: of 62 and "_watcher" it keeps "_", of "_worker" as well.
  it.each([
    ["d".repeat(33), "every service has a role of its own"],
    ["d".repeat(34), "refused"],
    ["d".repeat(41), "refused"],
    ["ä".repeat(17), "refused"],
  ])("has no roles that would be cut, and be one: 21 bytes and %s", async (more, expected) => {
    const made = await createTestDatabase();
    const short = new URL(made.url).pathname.slice(1);
    const name = short + more;
    const url = new URL(made.url);
    url.pathname = `/${name}`;
    const server = new URL(made.url);
    server.pathname = "/postgres";
    expect(await attempt(server.href, `ALTER DATABASE ${short} RENAME TO "${name}"`)).toBe("done");
    const database = await openLedger({
      url: url.href,
      log: silentLog,
      signal,
      identity: TEST_IDENTITY,
    });
    try {
      const outcomes = [];
      for (const grant of [
        () => grantLedgerRoles(database, TEST_PASSWORDS),
        () => grantIndexerRole(database, "in dex"),
      ]) {
        outcomes.push(await grant().catch((error: unknown) => error));
      }
      const roles = await database.query<{ name: string }>(
        "SELECT rolname AS name FROM pg_roles WHERE starts_with(rolname, $1) ORDER BY rolname",
        [short],
      );
      if (expected === "refused") {
        const message = expect.stringMatching(/ has (55|62) bytes.* at most 54 /);
        const refusal = expect.objectContaining({ code: "ROLE_UNSAFE", message });
        expect(outcomes).toEqual([refusal, refusal]);
        expect(roles).toEqual([]);
      } else {
        expect(outcomes).toEqual([undefined, undefined]);
        expect(roles.map((role) => role.name)).toEqual(
          ["indexer", "operator", "watcher", "worker"].map((service) => `${name}_${service}`),
        );
      }
    } finally {
      await database.close();
      await attempt(server.href, `DROP DATABASE "${name}"`);
      for (const service of ["indexer", ...LEDGER_SERVICES]) {
        await attempt(server.href, `DROP ROLE IF EXISTS "${name}_${service}"`);
      }
    }
  });
});

describe("the roles of the services", () => {
  let ledger: TestLedger;
  const as = (service: (typeof LEDGER_SERVICES)[number]) => roleUrl(ledger.url, service);

  beforeAll(async () => {
    ledger = await openTestLedger();
    await grantLedgerRoles(ledger.database, TEST_PASSWORDS);
  });
  afterAll(() => ledger.drop());

  it("log in with their own passwords only", async () => {
    for (const service of LEDGER_SERVICES) {
      expect(await attempt(as(service), "SELECT 1")).toBe("done");
      const other = new URL(as(service));
      other.password = "another";
      // The test's own server may trust whoever comes over loopback; then nothing is refused.
      expect(["28P01", "done"]).toContain(await attempt(other.href, "SELECT 1"));
    }
    const rows = await ledger.database.query<{ kept: string }>(
      `SELECT rolpassword AS kept FROM pg_authid WHERE rolname = ANY ($1::text[])`,
      [
        LEDGER_SERVICES.map((service) =>
          ledgerRole(new URL(ledger.url).pathname.slice(1), service),
        ),
      ],
    );
    expect(rows).toHaveLength(LEDGER_SERVICES.length);
    for (const { kept } of rows) expect(kept).toMatch(/^SCRAM-SHA-256\$4096:/);
  });

  it("are no superusers, make no roles and no databases, and inherit nothing", async () => {
    const rows = await ledger.database.query(
      `SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls, rolinherit
         FROM pg_roles WHERE rolname LIKE current_database() || '\\_%'`,
    );
    expect(rows).toEqual(
      LEDGER_SERVICES.map(() => ({
        rolsuper: false,
        rolcreaterole: false,
        rolcreatedb: false,
        rolreplication: false,
        rolbypassrls: false,
        rolinherit: false,
      })),
    );
  });

  it("cannot delete rows, empty or alter tables, or switch the rules off", async () => {
    const tables = await ledger.database.query<{ name: string }>(
      `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`,
    );
    expect(tables.length).toBeGreaterThan(15);
    const statements = [
      ...tables.flatMap(({ name }) => [
        `DELETE FROM ${name}`,
        `TRUNCATE ${name}`,
        `ALTER TABLE ${name} ADD COLUMN x int`,
        `ALTER TABLE ${name} DISABLE TRIGGER ALL`,
        `DROP TABLE ${name}`,
      ]),
      "CREATE TABLE mine (x int)",
      "CREATE TEMPORARY TABLE mine (x int)",
      "SET session_replication_role = replica",
      "UPDATE posting SET amount_units = amount_units",
      "UPDATE journal_entry SET memo = memo",
      "UPDATE meta SET value = value",
      "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE sql AS 'SELECT 1'",
    ];
    for (const service of LEDGER_SERVICES) {
      const outcomes = await attemptAll(as(service), statements);
      const allowed = statements.filter((_, index) => outcomes[index] !== NO_PRIVILEGE);
      expect({ service, allowed }).toEqual({ service, allowed: [] });
    }
  });

  it("cannot number a row themselves, and so put one behind all that are to come", async () => {
    const numbered = await ledger.database.query<{ name: string; column: string }>(
      `SELECT c.relname AS name, a.attname AS column FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attidentity <> ''`,
    );
    expect(numbered.length).toBeGreaterThan(15);
    for (const service of LEDGER_SERVICES) {
      const role = ledgerRole(new URL(ledger.url).pathname.slice(1), service);
      const may = await ledger.database.query(
        `SELECT t.name FROM unnest($2::text[], $3::text[]) AS t (name, number)
          WHERE has_column_privilege($1, t.name, t.number, 'INSERT')`,
        [role, numbered.map(({ name }) => name), numbered.map(({ column }) => column)],
      );
      expect({ service, may }).toEqual({ service, may: [] });
    }
    const last = `INSERT INTO kill_switch (id, level, reason, set_by) OVERRIDING SYSTEM VALUE
                    VALUES (9007199254740991, 'none', 'the last word', 'nobody')`;
    expect(await attempt(as("worker"), last)).toBe(NO_PRIVILEGE);
    const usual = "INSERT INTO kill_switch (level, reason, set_by) VALUES ('none', 'x', 'nobody')";
    expect(await attempt(as("worker"), usual)).toBe("done");
  });

  it("cannot write what is another service's", async () => {
    const refused: readonly (readonly ["watcher" | "worker", string])[] = [
      ["watcher", "UPDATE withdrawal SET status = 'settled'"],
      ["watcher", "UPDATE nonce_slot SET outcome = NULL"],
      ["watcher", "UPDATE hot_wallet SET next_nonce = 9"],
      ["watcher", "INSERT INTO withdrawal_attempt DEFAULT VALUES"],
      ["watcher", "UPDATE deposit_address SET customer_id = 'x'"],
      ["worker", "UPDATE deposit SET status = 'credited'"],
      ["worker", "UPDATE watch_cursor SET height = 9"],
      ["worker", "INSERT INTO deposit_address DEFAULT VALUES"],
      ["worker", "INSERT INTO customer VALUES ('x')"],
      ["worker", "UPDATE incident SET resolved_at = now(), resolved_by = 'worker'"],
      ["watcher", "INSERT INTO payout_failure DEFAULT VALUES"],
      ["watcher", "INSERT INTO foreign_transaction_acknowledged DEFAULT VALUES"],
      ["worker", "INSERT INTO foreign_transaction_acknowledged DEFAULT VALUES"],
    ];
    for (const [service, statement] of refused) {
      expect([statement, await attempt(as(service), statement)]).toEqual([statement, NO_PRIVILEGE]);
    }
  });

  it.each(["watcher", "worker"] as const)(
    "let the %s close a ledger that is behind",
    async (by) => {
      const other = await openTestLedger(TEST_IDENTITY, by);
      try {
        const mark = { ledgerId: randomUUID(), epoch: 1, nextAddressIndex: 5, eventSeq: 7 };
        const report = { reason: "it is behind", mark, reportedBy: by };
        await other.database.transaction((tx) => writeLoss(tx, report));
        expect((await openIncident(other.database))?.kind).toBe("RECOVERY");
      } finally {
        await other.drop();
      }
    },
  );

  it("are told of every table, so that a new one is somebody's or nobody's on purpose", async () => {
    const database = new URL(ledger.url).pathname.slice(1);
    const rows = await ledger.database.query<{ name: string }>(
      `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' AND NOT EXISTS (
         SELECT 1 FROM unnest($1::text[]) AS service
         WHERE has_any_column_privilege(service, quote_ident(tablename), 'INSERT, UPDATE'))`,
      [LEDGER_SERVICES.map((service) => ledgerRole(database, service))],
    );
    expect(rows.map(({ name }) => name)).toEqual(["schema_migration"]);
  });

  it("are made by an owner who is no superuser, and again after a migration", async () => {
    const database = await createTestDatabase();
    const owner = `owner_${randomBytes(6).toString("hex")}`;
    const name = new URL(database.url).pathname.slice(1);
    await run(database.url, `CREATE ROLE ${owner} LOGIN NOSUPERUSER CREATEROLE PASSWORD 'own'`);
    await run(database.url, `ALTER DATABASE ${name} OWNER TO ${owner}`);
    const url = new URL(database.url);
    [url.username, url.password] = [owner, "own"];
    const options = { log: silentLog, signal, identity: TEST_IDENTITY };
    // PostgreSQL 14 and older, and what was brought over from there, have the schema like this.
    await run(database.url, "ALTER SCHEMA public OWNER TO CURRENT_USER");
    await run(database.url, "GRANT CREATE ON SCHEMA public TO PUBLIC");
    const opened = await openLedger({ ...options, url: url.href });
    const remedy = `ALTER SCHEMA public OWNER TO ${owner}`;
    const unsafe = { code: "ROLE_UNSAFE", message: expect.stringContaining(remedy) };
    await expect(grantLedgerRoles(opened, TEST_PASSWORDS)).rejects.toMatchObject(unsafe);
    await expect(grantIndexerRole(opened, "in dex")).rejects.toMatchObject(unsafe);
    await run(database.url, remedy);
    await grantLedgerRoles(opened, TEST_PASSWORDS);
    await grantIndexerRole(opened, "in dex");
    await grantLedgerRoles(opened, { ...TEST_PASSWORDS, watcher: "changed" });
    await opened.close();
    const role = roleUrl(database.url, "worker");
    expect(await attempt(role, "DELETE FROM withdrawal")).toBe(NO_PRIVILEGE);
    expect(await attempt(role, "CREATE TABLE public.mine (x int)")).toBe(NO_PRIVILEGE);
    await run(database.url, `ALTER ROLE ${ledgerRole(name, "operator")} SUPERUSER`);
    const again = await openLedger({ ...options, url: url.href });
    await expect(grantLedgerRoles(again, TEST_PASSWORDS)).rejects.toMatchObject({
      code: "ROLE_UNSAFE",
    });
    await again.close();
    const worker = await openLedger({ ...options, url: role });
    await worker.close();
    await run(database.url, `REASSIGN OWNED BY ${owner} TO CURRENT_USER`);
    const services = LEDGER_SERVICES.map((service) => ledgerRole(name, service));
    const roles = [...services, indexerRole(name)].join(", ");
    await run(database.url, `DROP OWNED BY ${roles}, ${owner}; DROP ROLE ${roles}, ${owner}`);
    await database.drop();
  });

  it("are refused what a database of somebody else gives everybody, until it is the owner's", async () => {
    const database = await createTestDatabase();
    const name = new URL(database.url).pathname.slice(1);
    const [owner, master] = [`owner_${name}`, `master_${name}`];
    const login = (role: string) => {
      const url = new URL(database.url);
      [url.username, url.password] = [role, "own"];
      return url.href;
    };
    // As a hosted server has it, whose first user is no superuser.
    await run(database.url, `CREATE ROLE ${master} LOGIN CREATEDB CREATEROLE PASSWORD 'own'`);
    await run(database.url, `ALTER DATABASE ${name} OWNER TO ${master}`);
    await run(login(master), `CREATE ROLE ${owner} LOGIN CREATEROLE PASSWORD 'own'`);
    await run(login(master), `GRANT CREATE ON SCHEMA public TO ${owner}`);
    const options = { log: silentLog, signal, identity: TEST_IDENTITY };
    const opened = await openLedger({ ...options, url: login(owner) });
    const make = "CREATE TEMPORARY TABLE mine (x int)";
    const worker = roleUrl(database.url, "worker");
    const refusal = grantLedgerRoles(opened, TEST_PASSWORDS);
    const remedy = `ALTER DATABASE ${name} OWNER TO ${owner}`;
    await expect(refusal).rejects.toMatchObject({
      code: "ROLE_UNSAFE",
      message: expect.stringContaining(`as its owner (${master}) or a superuser say ${remedy}`),
    });

    // What is enough where it has to stay somebody else's.
    await run(login(master), `REVOKE TEMPORARY ON DATABASE ${name} FROM PUBLIC`);
    await grantLedgerRoles(opened, TEST_PASSWORDS);
    expect(await attempt(worker, make)).toBe(NO_PRIVILEGE);
    await run(login(master), `GRANT TEMPORARY, CREATE ON DATABASE ${name} TO PUBLIC`);
    await expect(grantLedgerRoles(opened, TEST_PASSWORDS)).rejects.toMatchObject({
      code: "ROLE_UNSAFE",
    });
    expect(await attempt(worker, make)).toBe("done");

    await run(login(master), `GRANT ${owner} TO CURRENT_USER`);
    await run(login(master), remedy);
    await run(login(owner), `GRANT TEMPORARY ON DATABASE ${name} TO ${ledgerRole(name, "worker")}`);
    await grantLedgerRoles(opened, TEST_PASSWORDS);
    await grantIndexerRole(opened, "in dex");
    expect(await attemptAll(worker, [make, "CREATE SCHEMA mine"])).toEqual([
      NO_PRIVILEGE,
      NO_PRIVILEGE,
    ]);
    const group = `group_${name}`;
    await run(
      database.url,
      `CREATE ROLE ${group}; ALTER ROLE ${ledgerRole(name, "watcher")} INHERIT`,
    );
    await run(database.url, `GRANT TEMPORARY ON DATABASE ${name} TO ${group}`);
    await run(database.url, `GRANT ${group} TO ${ledgerRole(name, "watcher")}`);
    await expect(grantLedgerRoles(opened, TEST_PASSWORDS)).rejects.toMatchObject({
      code: "ROLE_UNSAFE",
      message: expect.stringContaining("take it out of the roles that give it that"),
    });
    await opened.close();
    await run(database.url, `REASSIGN OWNED BY ${owner} TO CURRENT_USER`);
    const services = LEDGER_SERVICES.map((service) => ledgerRole(name, service));
    const roles = [...services, indexerRole(name), group, owner, master].join(", ");
    await run(database.url, `DROP OWNED BY ${roles}; DROP ROLE ${roles}`);
    await database.drop();
  });

  it("are those of the name that the database has now, and others are told of", async () => {
    const { url, drop } = await createLedgerDatabase(TEST_IDENTITY);
    const options = { log: silentLog, signal, identity: TEST_IDENTITY };
    const was = new URL(url).pathname.slice(1);
    const renamed = new URL(url);
    renamed.pathname = `/${was}_now`;
    const first = await openLedger({ ...options, url });
    await grantLedgerRoles(first, TEST_PASSWORDS);
    const stop = "INSERT INTO kill_switch (level, reason, set_by) VALUES ('stop-sign', 'x', 'ann')";
    await first.query(stop);
    await first.close();
    await run(ledger.url, `ALTER DATABASE ${was} RENAME TO ${was}_now`);
    const worker = new URL(roleUrl(url, "worker"));
    worker.pathname = renamed.pathname;
    const lift = stop.replace("stop-sign", "none");
    expect(await attempt(worker.href, lift)).toBe("23001");

    const second = await openLedger({ ...options, url: renamed.href });
    await grantLedgerRoles(second, TEST_PASSWORDS);
    const former = LEDGER_SERVICES.map((service) => ledgerRole(was, service)).toSorted();
    await expect(refuseFormerRoles(second)).rejects.toMatchObject({
      code: "ROLE_UNSAFE",
      message: expect.stringContaining(
        `REVOKE ALL ON ALL TABLES IN SCHEMA public FROM ${former.join(", ")}`,
      ),
      details: { roles: former },
    });
    await second.query(`REVOKE ALL ON ALL TABLES IN SCHEMA public FROM ${former.join(", ")}`);
    await refuseFormerRoles(second);
    await second.close();
    expect(await attempt(worker.href, "SELECT 1 FROM withdrawal")).toBe(NO_PRIVILEGE);
    const now = LEDGER_SERVICES.map((service) => ledgerRole(`${was}_now`, service));
    await run(renamed.href, `DROP OWNED BY ${[...former, ...now].join(", ")}`);
    await run(
      ledger.url,
      `ALTER DATABASE ${was}_now RENAME TO ${was}; DROP ROLE ${now.join(", ")}`,
    );
    await drop();
  });

  it("say of a database without tables what its role needs to make them", async () => {
    const database = await createTestDatabase();
    const role = `guest_${new URL(database.url).pathname.slice(1)}`;
    await run(database.url, `CREATE ROLE ${role} LOGIN PASSWORD 'own'`);
    const url = new URL(database.url);
    [url.username, url.password] = [role, "own"];
    const options = { log: silentLog, signal, identity: TEST_IDENTITY };
    await expect(openLedger({ ...options, url: url.href })).rejects.toMatchObject({
      code: "MIGRATION_NEEDED",
      message:
        "the database has no tables of a ledger yet, and its role may not make them (permission denied " +
        "for schema public): give it the database (ALTER DATABASE ... OWNER TO ...), or run `causeway migrate` " +
        "as the owner first",
    });
    await run(database.url, `DROP ROLE ${role}`);
    await database.drop();
  });

  it("say what is missing when their tables are older than the program", async () => {
    await run(ledger.url, "DELETE FROM schema_migration WHERE name LIKE 'Withdrawals%'");
    const options = { log: silentLog, signal, identity: TEST_IDENTITY };
    await expect(openLedger({ ...options, url: as("watcher") })).rejects.toMatchObject({
      code: "MIGRATION_NEEDED",
    });
  });

  async function run(url: string, statement: string): Promise<void> {
    expect([statement, await attempt(url, statement)]).toEqual([statement, "done"]);
  }
});
