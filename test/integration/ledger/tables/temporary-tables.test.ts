/**
 * Who may make temporary tables has names that come before all others in its session, and triggers of its
 * own. The rules of the tables hold for a service's role that has that right all the same.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { Client } from "pg";
import { errorCode } from "../../../../chain/errors.js";
import { LEDGER_MIGRATIONS, openLedger } from "../../../../ledger/database.js";
import { setKillSwitch } from "../../../../ledger/kill-switch/kill-switch.js";
import { RulesOfTheOwner1760000000052 } from "../../../../ledger/migrations/rules/0052-rules-of-the-owner.js";
import { ledgerRole } from "../../../../ledger/roles.js";
import { openDatabase } from "../../../../runtime/sql/sql.js";
import { House } from "../../../helpers/exchange/house.js";
import { silentLog, TEST_IDENTITY } from "../../../helpers/services/ledger.js";
import { createTestDatabase, runOnServer } from "../../../helpers/services/postgres.js";
import { policyOf } from "../../policy/terms.js";

const NO_PRIVILEGE = "42501";
const RESTRICT = "23001";

let house: House;
let thief: Client;

beforeAll(async () => {
  house = await House.withAlice(1_000n);
  await house.fund("bob", 5n);
  await house.fund("carol", 5n);
  const name = new URL(house.ledger.ownerUrl).pathname.slice(1);
  const role = ledgerRole(name, "worker");
  await runOnServer(house.ledger.ownerUrl, `GRANT TEMPORARY ON DATABASE ${name} TO ${role}`);
});
afterAll(() => house.close());

beforeEach(async () => {
  thief = new Client({ connectionString: house.ledger.url });
  await thief.connect();
});
afterEach(() => thief.end());

/** Runs a statement as the worker; PostgreSQL's code of its refusal, or "done". */
const attempt = (statement: string) => thief.query(statement).then(() => "done", errorCode);

/** Runs a statement inside of a trigger that the worker has made. */
async function attemptInTrigger(statement: string): Promise<string> {
  await thief.query("CREATE TEMPORARY TABLE IF NOT EXISTS own (x int)");
  await thief.query(
    `CREATE OR REPLACE FUNCTION pg_temp.act() RETURNS trigger LANGUAGE plpgsql AS $$
       BEGIN ${statement}; RETURN NULL; END $$`,
  );
  await thief.query(
    "CREATE OR REPLACE TRIGGER act AFTER INSERT ON own FOR EACH ROW EXECUTE FUNCTION pg_temp.act()",
  );
  return attempt("INSERT INTO own VALUES (1)");
}

describe("a service's role that may make temporary tables", () => {
  const lift = `INSERT INTO public.kill_switch (level, reason, set_by)
                  VALUES ('none', 'all is well', 'thief')`;

  it.each([
    ["table", "CREATE TEMPORARY TABLE kill_switch (id bigint, level text)"],
    ["type", `CREATE DOMAIN pg_temp.text AS "char"`],
  ])("does not lower the kill switch by a %s of its own", async (_, made) => {
    const stop = { level: "stop-sign", reason: "a theft", by: "ann" } as const;
    await setKillSwitch(house.ledger.owner, stop);
    expect(await attempt(made)).toBe("done");
    expect(await attempt(lift)).toBe(RESTRICT);
  });

  it("approves nothing by a table of its own", async () => {
    const approvals = [{ aboveUnits: 1n, needed: 1, signed: false }];
    house.files.policy = policyOf({ approvals });
    await setKillSwitch(house.ledger.owner, { level: "none", reason: "over", by: "ann" });
    const { id, approval } = await house.accept({ amountUnits: 100n });
    await thief.query(
      `CREATE TEMPORARY TABLE withdrawal_approval AS
         SELECT '${id}'::text AS withdrawal_id, '${approval.policyHash}'::text AS policy_hash,
                'approve'::text AS decision, NULL::text AS signature`,
    );
    const accept = `UPDATE public.withdrawal SET status = 'accepted' WHERE id = '${id}'`;
    expect(await attempt(accept)).toBe(RESTRICT);
  });

  it("writes no balance from a trigger of its own", async () => {
    const give = "UPDATE public.customer_balance SET available_units = 1e30";
    expect(await attemptInTrigger(give)).toBe(NO_PRIVILEGE);
    const add = `INSERT INTO public.customer_balance (customer_id, asset, available_units)
                   VALUES ('bob', 'GOLD', 1)`;
    expect(await attemptInTrigger(add)).toBe(NO_PRIVILEGE);
    expect(await house.balance("bob")).toEqual({ available: 5n, held: 0n });
  });

  it("makes no balance another customer's or another asset's", async () => {
    const change = (what: string) =>
      attemptInTrigger(`UPDATE public.customer_balance SET ${what} WHERE customer_id = 'bob'`);
    expect(await change("customer_id = 'carol'")).toBe(RESTRICT);
    expect(await change("asset = 'GOLD'")).toBe(NO_PRIVILEGE);
    expect(await house.balance("bob")).toEqual({ available: 5n, held: 0n });
  });

  it.each([false, true])("has no balances moved by postings of its own (%s)", async (any) => {
    // As a database has it that was put back without its rights.
    const all = "GRANT EXECUTE ON FUNCTION move_customer_balances() TO PUBLIC";
    if (any) await house.ledger.owner.query(all);
    await thief.query("CREATE TEMPORARY TABLE posting AS SELECT * FROM public.posting LIMIT 0");
    const hang = `CREATE TRIGGER moves AFTER INSERT ON posting REFERENCING NEW TABLE AS new_posting
                    FOR EACH STATEMENT EXECUTE FUNCTION public.move_customer_balances()`;
    expect(await attempt(hang)).toBe(any ? "done" : NO_PRIVILEGE);
    if (!any) return;
    const post = `INSERT INTO posting (journal_id, place, asset, debit, credit, amount_units)
                    VALUES (1, 0, 'TOKEN', 'asset:hot_wallet', 'liability:customer:bob', 7)`;
    expect(await attempt(post)).toBe(RESTRICT);
  });
});

describe("tables of the release before", () => {
  it("leave services only the locks of balances, also where no rights are given anew", async () => {
    const { url, drop } = await createTestDatabase();
    const common = { url, log: silentLog, signal: house.signal };
    const before = LEDGER_MIGRATIONS.slice(
      0,
      LEDGER_MIGRATIONS.indexOf(RulesOfTheOwner1760000000052),
    );
    const tables = { applicationName: "test", migrations: before, poolSize: 2 };
    const former = await openDatabase({ ...common, ...tables });
    const role = ledgerRole(new URL(url).pathname.slice(1), "worker");
    await former.query(`CREATE ROLE ${role}`);
    await former.query(
      `GRANT INSERT (customer_id, asset, held_units), UPDATE ON customer_balance TO ${role}`,
    );
    await former.close();
    const database = await openLedger({ ...common, identity: TEST_IDENTITY });
    const rights = await database.query(
      `SELECT a.attname AS column, g.privilege_type AS may
         FROM pg_attribute a CROSS JOIN LATERAL aclexplode(a.attacl) AS g
        WHERE a.attrelid = 'customer_balance'::regclass`,
    );
    expect(rights).toEqual([{ column: "customer_id", may: "UPDATE" }]);
    const [all] = await database.query(
      `SELECT has_table_privilege($1, 'customer_balance', 'UPDATE') AS may`,
      [role],
    );
    expect(all).toEqual({ may: false });
    await database.close();
    await drop();
  });
});

describe("the functions of triggers", () => {
  it("look for what they name in one place, whoever has them called", async () => {
    const found = await house.ledger.owner.query<{ name: string; path: string; body: string }>(
      `SELECT p.proname AS name, coalesce(array_to_string(p.proconfig, ';'), '') AS path,
              p.prosrc AS body
         FROM pg_proc p
        WHERE p.pronamespace = 'public'::regnamespace AND p.prorettype = 'trigger'::regtype`,
    );
    expect(found.length).toBeGreaterThan(40);
    const open = found.filter(
      ({ path, body }) => !path.includes("search_path=public, pg_temp") && namesWithoutSchema(body),
    );
    expect(open.map(({ name }) => name)).toEqual([]);
  });
});

/** Whether a function's body names a table, a type or a function of ours by its name alone. */
function namesWithoutSchema(body: string): boolean {
  const said = body
    .replaceAll(/--.*$/gm, "")
    .replaceAll(/'[^']*'/g, "''")
    .replaceAll(/IS (NOT )?DISTINCT FROM/g, "=");
  const table = /\b(FROM|JOIN|INTO|UPDATE)\s+(?!public\.)/;
  const type = /\bDECLARE\b(?!\s+\w+ pg_catalog\.)|::(?!pg_catalog\.)|\bPERFORM\b/;
  return table.test(said) || type.test(said) || /\bhas_approvals\(/.test(said);
}
