/** Commands of a release beside a kit of the one before: none changes its tables without being asked. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { createProgram } from "../../../cli/program/program.js";
import { encodeKillSwitch } from "../../../ledger/kill-switch/kill-switch-file.js";
import { SWITCH_UNTOUCHED } from "../../../ledger/kill-switch/kill-switch-level.js";
import { LEDGER_MIGRATIONS } from "../../../ledger/database.js";
import { openDatabase, type SqlDatabase } from "../../../runtime/sql/sql.js";
import { registerTestWallets, silentLog } from "../../helpers/services/ledger.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";
import { HOT, WatcherBench } from "../../helpers/services/watcher.js";

const { signal } = new AbortController();

let bench: WatcherBench;
let home: string;
let tables: TestDatabase;
let former: SqlDatabase;
beforeAll(async () => {
  bench = await WatcherBench.open();
  home = mkdtempSync(join(tmpdir(), "causeway-older-"));
  mkdirSync(join(home, "config"));
  writeFileSync(join(home, "config", "hot-wallet.json"), JSON.stringify({ address: HOT.slice(2) }));
  writeFileSync(join(home, "config", "kill-switch.json"), encodeKillSwitch(SWITCH_UNTOUCHED));
  tables = await createTestDatabase();
  const migrations = LEDGER_MIGRATIONS.slice(0, -1);
  const options = { applicationName: "former", poolSize: 2, log: silentLog, signal };
  former = await openDatabase({ url: tables.url, migrations, ...options });
  const identity = await bench.ledger.owner.query<{ key: string; value: string }>(
    `SELECT key, value FROM meta WHERE key IN ('chain_id', 'genesis_hash', 'format_version')`,
  );
  for (const { key, value } of identity) {
    await former.query(`INSERT INTO meta (key, value) VALUES ($1, $2)`, [key, value]);
  }
  await registerTestWallets(former, HOT);
});
afterAll(async () => {
  await former?.close();
  await Promise.all([tables?.drop(), bench?.close()]);
  rmSync(home, { recursive: true, force: true });
});

async function causeway(...words: readonly string[]): Promise<{ code: number; text: string }> {
  const lines: string[] = [];
  let code = -1;
  const print = (line: string) => void lines.push(line);
  const program = createProgram({
    version: "0",
    env: {
      DATABASE_URL: tables.url,
      CAUSEWAY_WATCHER_NODE_JSON_RPC_URL: bench.chain.url,
    },
    signal,
    print,
    warn: print,
    setExitCode: (given) => {
      code = given;
    },
  });
  await program.parseAsync(["node", "causeway", ...words, "--home", home]);
  return { code, text: lines.join("\n") };
}

const done = () => former.query(`SELECT name FROM schema_migration ORDER BY id`);

it("says what to do first, and leaves them as they are", async () => {
  const before = await done();
  const looks = [
    ["keys", "list"],
    ["ledger", "open"],
    ["ledger", "decisions"],
    ["withdrawals", "list"],
    ["wallets", "list"],
    ["deposits", "status"],
    ["reconcile"],
    ["recover"],
  ];
  for (const words of looks) {
    await expect(causeway(...words)).rejects.toMatchObject({
      code: "MIGRATION_NEEDED",
      message: expect.stringContaining("back up the database"),
    });
  }
  const file = join(home, "export.jsonl");
  await expect(causeway("audit", "export", "--out", file)).rejects.toMatchObject({
    code: "MIGRATION_NEEDED",
  });
  expect(await done()).toEqual(before);
});

it("stops payments all the same", async () => {
  const before = await done();
  const switched = await causeway("killswitch", "set", "stop-new", "--reason", "now");
  expect(switched).toEqual({ code: 0, text: expect.stringContaining("is at stop-new") });
  expect((await causeway("withdrawals", "freeze", "--reason", "now")).text).toContain("FROZEN");
  expect(await former.query(`SELECT level FROM kill_switch`)).toEqual([{ level: "stop-new" }]);
  expect(await done()).toEqual(before);
});

it("changes them where that is asked for", async () => {
  expect((await causeway("migrate")).code).toBe(0);
  expect(await done()).toHaveLength(LEDGER_MIGRATIONS.length);
  expect((await causeway("ledger", "open")).text).not.toBe("");
});
