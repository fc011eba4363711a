import { describe, expect, it } from "@jest/globals";
import { errorMessage } from "../../../../chain/errors.js";
import { keccak256Hex } from "../../../../chain/hashes.js";
import {
  LEDGER_FORMAT_VERSION,
  LEDGER_MIGRATIONS,
  openLedger,
  readStoredIdentity,
} from "../../../../ledger/database.js";
import { recordCalls } from "../../../../ledger/access/api-calls.js";
import { readKillSwitch, setKillSwitch } from "../../../../ledger/kill-switch/kill-switch.js";
import { recordVerdicts } from "../../../../ledger/policy/screening-verdicts.js";
import { toWithdrawalId } from "../../../../ledger/requests/withdrawal-id.js";
import { NUMBERINGS } from "../../../../runtime/sql/numbering.js";
import { openDatabase } from "../../../../runtime/sql/sql.js";
import { freezeSigning, readFreeze } from "../../../../ledger/requests/signing-freeze.js";
import {
  openTestLedger,
  registerTestWallets,
  silentLog,
  TEST_IDENTITY,
} from "../../../helpers/services/ledger.js";
import { listWallets } from "../../../../ledger/wallets/wallet.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import {
  createTestDatabase,
  createVersionedDatabase,
  runOnServer,
} from "../../../helpers/services/postgres.js";
import { PATIENCE_MS, until } from "../../../helpers/until.js";

const { signal } = new AbortController();

/** What a release to come might do: nothing fails here, and rows mean something else. */
class OfLater1799999999999 {
  readonly name = "OfLater1799999999999";

  async up(runner: { query(text: string): Promise<unknown> }): Promise<void> {
    await runner.query(`ALTER TABLE customer ADD COLUMN tier text`);
  }

  async down(): Promise<void> {
    await Promise.reject(new Error("not taken back"));
  }
}

describe("opening the ledger", () => {
  it("refuses the ledger of another chain and names the remedy, without touching it", async () => {
    const ledger = await openTestLedger();
    const foreign = [
      { ...TEST_IDENTITY, chainId: 6941n },
      { ...TEST_IDENTITY, genesisHash: keccak256Hex(Buffer.from("other")) },
    ];
    for (const identity of foreign) {
      await expect(
        openLedger({ url: ledger.url, log: silentLog, signal, identity }),
      ).rejects.toMatchObject({
        code: "FOREIGN_LEDGER",
        message: expect.stringContaining("or an empty one"),
      });
    }
    await ledger.drop();
  });

  it("refuses a database that cannot hold every text, but for what stops payments", async () => {
    const { url, drop } = await createTestDatabase("LATIN1");
    const options = { url, log: silentLog, signal, identity: TEST_IDENTITY };
    await expect(openLedger(options)).rejects.toMatchObject({
      code: "DATABASE_ENCODING",
      message: expect.stringMatching(/LATIN1.*ENCODING 'UTF8' TEMPLATE template0/),
    });
    await (await openLedger({ ...options, olderTables: "any" })).close();
    await drop();
  });

  it("refuses one whose texts have another order than its indexes, but for what stops payments", async () => {
    const { url, drop } = await createVersionedDatabase();
    const name = new URL(url).pathname.slice(1);
    const options = { url, log: silentLog, signal, identity: TEST_IDENTITY };
    const running = await openLedger(options);
    // As a standby with other libraries has it that takes over.
    await runOnServer(
      url,
      `UPDATE pg_database SET datcollversion = '2.24' WHERE datname = '${name}';
       SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = '${name}' AND pid <> pg_backend_pid()`,
    );
    const remedy = `REINDEX DATABASE ${name}; ALTER DATABASE ${name} REFRESH COLLATION VERSION`;
    const message = expect.stringContaining(remedy);
    await expect(openLedger(options)).rejects.toMatchObject({
      code: "DATABASE_COLLATION",
      message,
      retriable: false,
    });
    await (await openLedger({ ...options, olderTables: "any" })).close();
    // Who is at work waits for the person, and says for what.
    const waiting = { code: "DATABASE_UNAVAILABLE", message, retriable: true };
    const read = () => running.query("SELECT 1 AS one");
    const isRefused = async () =>
      (await read().then(() => "read", errorMessage)).includes("REINDEX");
    await until(isRefused, { timeoutMs: PATIENCE_MS });
    await expect(read()).rejects.toMatchObject(waiting);
    for (const statement of remedy.split("; ")) await runOnServer(url, statement);
    expect(await read()).toEqual([{ one: 1 }]);
    await running.close();
    await (await openLedger(options)).close();
    await drop();
  });

  it("opens one of a server that keeps text as it comes", async () => {
    const { url, drop } = await createTestDatabase("SQL_ASCII");
    const database = await openLedger({ url, log: silentLog, signal, identity: TEST_IDENTITY });
    expect(await database.query("SELECT $1::text AS said", ["≠ 字"])).toEqual([{ said: "≠ 字" }]);
    await database.close();
    await drop();
  });

  it("counts characters of texts there, and no bytes", async () => {
    const { url, drop } = await createTestDatabase("SQL_ASCII");
    const database = await openLedger({ url, log: silentLog, signal, identity: TEST_IDENTITY });
    const wanted = { level: "stop-new", reason: "字".repeat(500), by: "字".repeat(100) } as const;
    await setKillSwitch(database, wanted);
    expect(await readKillSwitch(database)).toMatchObject(wanted);
    const call = {
      keyId: "a-key",
      method: "POST",
      path: "/v1/withdrawals",
      bodySha256: "00".repeat(32),
      idempotencyKey: undefined,
      signedDigest: undefined,
      actor: undefined,
    };
    const said = { actor: "字".repeat(100), reason: "字".repeat(500) };
    await recordCalls(database, { service: "test", nowMs: Date.now() }, [{ ...call, ...said }]);
    expect(await database.query("SELECT actor, reason FROM api_call")).toEqual([said]);
    const refused = recordCalls(database, { service: "test", nowMs: Date.now() }, [
      { ...call, reason: "x".repeat(501) },
    ]);
    await expect(refused).rejects.toMatchObject({ code: "CHECK_VIOLATION" });
    const answer = {
      withdrawalId: toWithdrawalId(`wd_${"0".repeat(26)}`),
      verdict: "review",
      reference: "字".repeat(200),
    } as const;
    await database.transaction(async (tx) => {
      // About a withdrawal that is not there.
      await tx.query("SET LOCAL session_replication_role = replica");
      await recordVerdicts(tx, [answer]);
    });
    await registerTestWallets(database, WALLET);
    // None is cut within a character: no row with such a half can be read.
    const causes = ["一", "二", "三"].map((character) => character.repeat(1_100));
    for (const cause of causes) await freezeSigning(database, WALLET, cause);
    const [first, , last] = causes.map((cause) => cause.slice(0, 1_000));
    expect((await readFreeze(database, WALLET)).reason).toBe(`${first}; also: ${last}`);
    // What is left in bytes is never anything but ASCII.
    const inBytes = await database.query<{ text: string }>(
      `SELECT conrelid::regclass || '.' || substring(pg_get_constraintdef(oid) FROM 'length.(\\w+)') AS text
         FROM pg_constraint
        WHERE contype = 'c' AND pg_get_constraintdef(oid) ~ 'length.(?!convert_to)' ORDER BY text`,
    );
    expect(inBytes.map(({ text }) => text)).toEqual([
      "api_key_signature.verifier",
      "operator_decision.key",
      "operator_decision.seen",
      "posting.asset",
      "posting.credit",
      "posting.debit",
      "webhook.url",
      "webhook_secret.secret",
      "withdrawal.idempotency_key",
      "withdrawal.requested_by",
      "withdrawal_approval.key_id",
    ]);
    await database.close();
    await drop();
  });

  it("refuses a ledger of a newer format", async () => {
    const ledger = await openTestLedger();
    await ledger.database.query(`UPDATE meta SET value = $1 WHERE key = 'format_version'`, [
      String(LEDGER_FORMAT_VERSION + 1),
    ]);
    await expect(
      openLedger({ url: ledger.url, log: silentLog, signal, identity: TEST_IDENTITY }),
    ).rejects.toMatchObject({ code: "NEWER_LEDGER" });
    await ledger.drop();
  });

  it("refuses tables that a later release has changed, and changes nothing itself", async () => {
    const { url, drop } = await createTestDatabase();
    const options = { url, log: silentLog, signal };
    const later = await openDatabase({
      ...options,
      applicationName: "later",
      migrations: [...LEDGER_MIGRATIONS.slice(0, 3), OfLater1799999999999],
      poolSize: 2,
    });
    await later.query(`INSERT INTO meta VALUES ('format_version', '2')`);
    const dones = () => later.query(`SELECT name FROM schema_migration ORDER BY id`);
    const before = await dones();
    await expect(openLedger({ ...options, identity: TEST_IDENTITY })).rejects.toMatchObject({
      code: "NEWER_LEDGER",
      message: expect.stringContaining("OfLater1799999999999"),
    });
    expect(await dones()).toEqual(before);
    await later.close();
    await drop();
  });

  it("opens the same ledger again and tells its chain", async () => {
    const ledger = await openTestLedger();
    const again = await openLedger({
      url: ledger.url,
      log: silentLog,
      signal,
      identity: TEST_IDENTITY,
    });
    await again.close();
    expect(await readStoredIdentity({ url: ledger.url, log: silentLog, signal })).toEqual(
      TEST_IDENTITY,
    );
    await ledger.drop();
  });

  it("takes a ledger of format 1 over with what is on its way in it", async () => {
    const { url, drop } = await createTestDatabase();
    const options = { url, log: silentLog, signal };
    const former = await openDatabase({
      ...options,
      applicationName: "test",
      migrations: LEDGER_MIGRATIONS.slice(0, 2),
      poolSize: 2,
    });
    await former.query(`INSERT INTO meta VALUES ('format_version', '1')`);
    await former.query(`INSERT INTO customer (id) VALUES ('alice')`);
    const wallet = `0x${"1".repeat(40)}`;
    await former.query(`INSERT INTO hot_wallet (wallet, next_nonce) VALUES ($1, 7)`, [wallet]);
    await former.query(
      `INSERT INTO withdrawal (id, idempotency_key, request_hash, customer_id, asset, wallet,
         destination, destination_text, amount_atoken, status)
       VALUES ('wd_1', 'k', 'h', 'alice', 'TOKEN', $1, $1, $1, 100, 'signed')`,
      [wallet],
    );
    await former.query(
      `INSERT INTO nonce_slot (wallet, nonce, withdrawal_id, gas_limit, gas_price_atoken,
         reserved_atoken) VALUES ($1, 6, 'wd_1', 21, 2, 142)`,
      [wallet],
    );
    await former.query(
      `INSERT INTO withdrawal_attempt (slot_id, n, raw, hash, gas_limit, gas_price_atoken)
       VALUES (1, 1, '0x00', '0x' || repeat('a', 64), 21, 2)`,
    );
    await former.close();
    const told: string[] = [];
    const busy = (reason: string) => void told.push(reason);
    const database = await openLedger({ ...options, identity: TEST_IDENTITY, busy });
    await (await openLedger({ ...options, identity: TEST_IDENTITY, busy })).close();
    // Once: a supervisor kills who takes long and has not said so.
    expect(told).toEqual(["brings the ledger's tables to this release"]);
    expect(await listWallets(database)).toMatchObject([
      { address: wallet, status: "active", fromHeight: 0, pastBooked: true },
    ]);
    const [slot] = await database.query(
      `SELECT s.fee_reserved_atoken, s.replaced, a.kind, w.cancel_cause
         FROM nonce_slot s JOIN withdrawal_attempt a ON a.slot_id = s.id
         JOIN withdrawal w ON w.id = s.withdrawal_id`,
    );
    expect(slot).toEqual({
      fee_reserved_atoken: "42",
      replaced: true,
      kind: "payment",
      cancel_cause: null,
    });
    const [format] = await database.query(`SELECT value FROM meta WHERE key = 'format_version'`);
    expect(format).toEqual({ value: String(LEDGER_FORMAT_VERSION) });
    await database.close();
    await drop();
  });

  it("has a key on every number that the database draws, so that none counts twice", async () => {
    const ledger = await openTestLedger();
    try {
      const drawn = await ledger.owner.query<{ place: string; index: string | null }>(
        `SELECT c.table_name || '.' || c.column_name AS place,
                (SELECT x.relname FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
                  WHERE i.indrelid = c.table_name::regclass AND i.indisunique AND i.indnatts = 1
                    AND i.indpred IS NULL AND pg_get_indexdef(x.oid, 1, true) = quote_ident(c.column_name)) AS index
           FROM information_schema.columns c
          WHERE c.table_schema = 'public'
            AND (c.is_identity = 'YES' OR c.column_default LIKE 'nextval(%')`,
      );
      expect(drawn.length).toBeGreaterThan(20);
      expect(drawn.filter(({ index }) => index === null)).toEqual([]);
      const known = await ledger.owner.query<{ name: string }>(NUMBERINGS);
      const names = known.map(({ name }) => name);
      expect(drawn.filter(({ index }) => !names.includes(index ?? ""))).toEqual([]);
    } finally {
      await ledger.drop();
    }
  });

  it("makes the tables of an empty database, also for who refuses older ones", async () => {
    const { url, drop } = await createTestDatabase();
    const options = { url, log: silentLog, signal, identity: TEST_IDENTITY };
    const database = await openLedger({ ...options, olderTables: "refuse" });
    expect(await database.query(`SELECT height FROM watch_cursor`)).toEqual([{ height: "-1" }]);
    await database.close();
    await drop();
  });

  it("says whose tables these are where a first opening ended before it could", async () => {
    const { url, drop } = await createTestDatabase();
    const options = { url, log: silentLog, signal };
    const names = { applicationName: "cut short", poolSize: 2, migrations: LEDGER_MIGRATIONS };
    await (await openDatabase({ ...options, ...names })).close();
    expect(await readStoredIdentity(options)).toBeUndefined();
    await (await openLedger({ ...options, identity: TEST_IDENTITY })).close();
    expect(await readStoredIdentity(options)).toEqual(TEST_IDENTITY);
    await drop();
  });

  it("leaves an empty database empty for who takes tables as they are", async () => {
    const { url, drop } = await createTestDatabase();
    const options = { url, log: silentLog, signal, identity: TEST_IDENTITY };
    const database = await openLedger({ ...options, olderTables: "leave" });
    const tables = `SELECT count(*)::integer AS n FROM pg_tables WHERE schemaname = 'public'`;
    expect(await database.query(tables)).toEqual([{ n: 0 }]);
    await database.close();
    await drop();
  });

  it("opens an empty database for several processes at once", async () => {
    const { url, drop } = await createTestDatabase();
    expect(await readStoredIdentity({ url, log: silentLog, signal })).toBeUndefined();
    const opened = await Promise.all(
      [1, 2, 3].map(() => openLedger({ url, log: silentLog, signal, identity: TEST_IDENTITY })),
    );
    const counts = await Promise.all(
      opened.map((database) => database.query(`SELECT height FROM watch_cursor`)),
    );
    expect(counts).toEqual([[{ height: "-1" }], [{ height: "-1" }], [{ height: "-1" }]]);
    await Promise.all(opened.map((database) => database.close()));
    await drop();
  });
});

/** Rows for every rule that calls a function of the ledger, and one posting for each kind of account. */
const JUDGED_ROWS = `
  INSERT INTO api_call (key_id, service, method, path, body_sha256, signed_digest)
    VALUES ('k', 'deposits', 'POST', '/v1/addresses', repeat('a', 64), repeat('b', 64));
  INSERT INTO chain_link (n, kind, row_key, digest, previous, hash)
    SELECT 1, 'event', 1, d, d, encode(sha256(convert_to(
             d || E'\\n' || 1 || E'\\n' || 'event' || E'\\n' || 1 || E'\\n' || d, 'UTF8')), 'hex')
      FROM repeat('c', 64) AS d;
  INSERT INTO deposit (id, address, customer_id, asset, amount_units, status, height, block_hash,
                       tx_hash, tx_index, op_index)
    VALUES ('1-0-0', '0x' || repeat('1', 40), 'alice', 'TOKEN', 10, 'credited', 1,
            '0x' || repeat('2', 64), '0x' || repeat('3', 64), 0, 0);
  INSERT INTO withdrawal (id, idempotency_key, request_hash, customer_id, asset, wallet, destination,
                          destination_text, amount_units, status)
    SELECT 'wd_1', 'k', 'h', 'alice', 'TOKEN', a, a, a, 1, 'signed' FROM concat('0x', repeat('4', 40)) AS a;
  INSERT INTO withdrawal_attempt (slot_id, n, raw, hash, gas_limit, gas_price_atoken)
    VALUES (1, 1, '0x00', '0x' || repeat('5', 64), 21000, 2);
  INSERT INTO posting (journal_id, place, asset, debit, credit, amount_units)
    SELECT 1, n, 'TOKEN', account, CASE n WHEN 1 THEN 'asset:in_transit' ELSE 'liability:suspense' END, 1
      FROM unnest(ARRAY['liability:customer:alice', 'liability:held:alice', 'asset:deposit_addresses',
                        'asset:wallet:0x' || repeat('4', 40), 'asset:cold_storage',
                        'revenue:withdrawal_fees', 'asset:in_transit']) WITH ORDINALITY AS kind (account, n)`;

describe("a copy of the ledger's tables", () => {
  it("takes all rows where no schema is searched, as a restored dump and a replica do", async () => {
    const ledger = await openTestLedger();
    await ledger.owner.transaction(async (tx) => {
      await tx.query(`SET LOCAL session_replication_role = replica`);
      await tx.query(JUDGED_ROWS);
      const tables = await tx.query<{ name: string; columns: string; judged: boolean }>(
        `SELECT c.relname AS name, string_agg(quote_ident(a.attname), ', ') AS columns,
                -- Accounts are judged by functions in ledgers of before.
                c.relname = 'posting' OR EXISTS (
                  SELECT FROM pg_constraint r JOIN pg_depend d ON d.objid = r.oid
                         WHERE r.conrelid = c.oid AND d.classid = 'pg_constraint'::regclass
                           AND d.refclassid = 'pg_proc'::regclass) AS judged
           FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
          WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0
            AND NOT a.attisdropped AND a.attgenerated = ''
          GROUP BY c.oid, c.relname`,
      );
      expect(tables.length).toBeGreaterThan(60);
      await tx.query(`SET LOCAL search_path = ''`);
      await tx.query(`CREATE SCHEMA copied`);
      const rules = "INCLUDING CONSTRAINTS INCLUDING GENERATED INCLUDING INDEXES";
      const statements = tables.map(
        ({ name, columns }) => `
          CREATE TABLE copied.${name} (LIKE public.${name} ${rules});
          INSERT INTO copied.${name} (${columns}) SELECT ${columns} FROM public.${name}`,
      );
      await tx.query(statements.join(";"));
      const rows = tables
        .filter(({ judged }) => judged)
        .map(({ name }) => `SELECT '${name}' AS name, count(*)::integer AS n FROM copied.${name}`);
      expect(await tx.query(`${rows.join(" UNION ALL ")} ORDER BY name`)).toEqual([
        { name: "api_call", n: 1 },
        { name: "chain_link", n: 1 },
        { name: "deposit", n: 1 },
        { name: "posting", n: 7 },
        { name: "withdrawal", n: 1 },
        { name: "withdrawal_attempt", n: 1 },
      ]);
    });
    await ledger.drop();
  });
});
