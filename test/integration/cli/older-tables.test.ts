/** Commands of a release beside a kit of the one before: none changes its tables without being asked. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { parseAddress, toChecksumAddress } from "../../../chain/address.js";
import { freezeWallets } from "../../../cli/commands/withdrawals/withdrawals.js";
import { createProgram } from "../../../cli/program/program.js";
import { encodeKillSwitch } from "../../../ledger/kill-switch/kill-switch-file.js";
import { SWITCH_UNTOUCHED } from "../../../ledger/kill-switch/kill-switch-level.js";
import { LEDGER_MIGRATIONS } from "../../../ledger/database.js";
import { openDatabase, type SqlDatabase } from "../../../runtime/sql/sql.js";
import { SqlError } from "../../../runtime/sql/sql-errors.js";
import { type FakeNode, startFakeNode } from "../../helpers/chains/fake-node.js";
import { registerTestWallets, silentLog } from "../../helpers/services/ledger.js";
import { createTestDatabase, type TestDatabase } from "../../helpers/services/postgres.js";
import { HOT, WatcherBench } from "../../helpers/services/watcher.js";

const { signal } = new AbortController();

let bench: WatcherBench;
let home: string;
let tables: TestDatabase;
let url: string;
let former: SqlDatabase;
beforeAll(async () => {
  bench = await WatcherBench.open();
  home = mkdtempSync(join(tmpdir(), "causeway-older-"));
  mkdirSync(join(home, "config"));
  writeFileSync(join(home, "config", "hot-wallet.json"), JSON.stringify({ address: HOT.slice(2) }));
  writeFileSync(join(home, "config", "kill-switch.json"), encodeKillSwitch(SWITCH_UNTOUCHED));
  tables = await createTestDatabase();
  ({ url } = tables);
  former = await tablesOf(url, -1);
  await registerTestWallets(former, HOT);
});

/** Tables of this chain as the first migrations have made them. */
async function tablesOf(place: string, end: number): Promise<SqlDatabase> {
  const migrations = LEDGER_MIGRATIONS.slice(0, end);
  const options = { applicationName: "former", poolSize: 2, log: silentLog, signal };
  const opened = await openDatabase({ url: place, migrations, ...options });
  const identity = await bench.ledger.owner.query<{ key: string; value: string }>(
    `SELECT key, value FROM meta WHERE key IN ('chain_id', 'genesis_hash', 'format_version')`,
  );
  for (const { key, value } of identity) {
    await opened.query(`INSERT INTO meta (key, value) VALUES ($1, $2)`, [key, value]);
  }
  return opened;
}

afterAll(async () => {
  await former?.close();
  await Promise.all([tables?.drop(), bench?.close()]);
  rmSync(home, { recursive: true, force: true });
});

/** What was printed last, also by a command that failed. */
let lines: string[] = [];

function causeway(...words: readonly string[]): Promise<{ code: number; text: string }> {
  return causewayAt(bench.chain.url, ...words);
}

async function causewayAt(
  nodeUrl: string,
  ...words: readonly string[]
): Promise<{ code: number; text: string }> {
  lines = [];
  let code = -1;
  const print = (line: string) => void lines.push(line);
  const program = createProgram({
    version: "0",
    env: {
      DATABASE_URL: url,
      CAUSEWAY_WATCHER_NODE_JSON_RPC_URL: nodeUrl,
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

it("freezes who can be frozen where the database fails, and tells its fault as it is", async () => {
  const other = parseAddress(`0x${"0a".repeat(20)}`);
  const lost = new SqlError("DATABASE_UNAVAILABLE", "the connection is lost", { retriable: true });
  const meant = { reason: "a fault", wallet: undefined };
  const freeze = (database: SqlDatabase, listWallets: () => Promise<never>) =>
    freezeWallets({ database, listWallets }, home, meant);
  const unlisted = await freeze(former, () => Promise.reject(lost));
  expect(unlisted.fault).toBe(lost);
  expect(unlisted.switches).toMatchObject([{ wallet: HOT, frozen: true }]);
  // One that cannot be frozen keeps no other from it.
  const query: SqlDatabase["query"] = (text, parameters) =>
    text.includes("INSERT INTO signing_freeze") && parameters?.[0] === other
      ? Promise.reject(lost)
      : former.query(text, parameters);
  const patchy: SqlDatabase = Object.assign(Object.create(former), { query });
  const wallets = [other, HOT].map((address) => ({ address, status: "active" }));
  const listed = await freeze(patchy, () => Promise.resolve(wallets as never));
  expect(listed.fault).toBe(lost);
  expect(listed.switches).toMatchObject([
    { wallet: other, frozen: false },
    { wallet: HOT, frozen: true, reason: expect.stringContaining("typed again") },
  ]);
});

describe("tables of 0.1.0, which have neither wallets nor a kill switch", () => {
  const other = `0x${"0b".repeat(20)}`;
  let first: TestDatabase;
  let opened: SqlDatabase;
  beforeEach(async () => {
    first = await createTestDatabase();
    opened = await tablesOf(first.url, 2);
    await opened.query(`INSERT INTO hot_wallet (wallet, next_nonce) VALUES ($1, 7)`, [other]);
    await opened.query(`INSERT INTO customer (id) VALUES ('alice')`);
    ({ url } = first);
  });
  afterEach(async () => {
    ({ url } = tables);
    await opened.close();
    await first.drop();
  });

  const frozen = () =>
    opened.query(`SELECT wallet, reason FROM signing_freeze WHERE frozen ORDER BY wallet`);

  it("freezes whoever may sign, and says that it could not ask everything", async () => {
    await expect(causeway("withdrawals", "freeze", "--reason", "a theft")).rejects.toMatchObject({
      code: "MIGRATION_NEEDED",
      message: expect.stringContaining('relation "wallet" does not exist'),
    });
    const wallets = [other, HOT].toSorted();
    expect(await frozen()).toEqual(wallets.map((wallet) => ({ wallet, reason: "a theft" })));
    expect(lines).toEqual([expect.stringContaining("FROZEN"), expect.stringContaining("FROZEN")]);
    await opened.query(`INSERT INTO schema_migration (timestamp, name) VALUES (1, 'Later1')`);
    await expect(causeway("withdrawals", "freeze", "--reason", "again")).rejects.toMatchObject({
      code: "NEWER_LEDGER",
      message: expect.stringContaining("Later1"),
    });
  });

  it("are told a kill switch that stops signing by the wallets' own", async () => {
    const lesser = await causeway("killswitch", "set", "stop-new", "--reason", "a theft");
    expect(lesser).toEqual({ code: 1, text: expect.stringContaining("have no kill switch") });
    // Whoever types it again is told the same; and no signer has to do with it.
    expect(lesser.text).toContain("run `causeway migrate`, or set stop-sign");
    expect(lesser.text).not.toMatch(/end its process|Try again/);
    expect(await frozen()).toEqual([]);
    const { code, text } = await causeway("killswitch", "set", "stop-sign", "--reason", "a theft");
    expect(code).toBe(1);
    expect(text).toContain(`${toChecksumAddress(HOT)} until \`withdrawals release\``);
    expect(text).toContain("one of another release, or of another home, may not: end its process");
    expect(text).not.toContain("Try again");
    const reason = "kill switch stop-sign: a theft";
    expect(await frozen()).toEqual([other, HOT].toSorted().map((wallet) => ({ wallet, reason })));
  });

  // No node of this release follows a chain of that one.
  it("are brought over without a node, to be read", async () => {
    const silent = "http://127.0.0.1:1";
    expect((await causewayAt(silent, "migrate")).code).toBe(0);
    const out = (name: string) => ["--out", join(home, name)];
    const rest: Readonly<Record<string, readonly string[]>> = {
      "audit export": out("former.jsonl"),
      "audit statement": ["alice", "--from", "2026-01-01", "--to", "2026-02-01", ...out("alice")],
    };
    const page = readFileSync("docs/operations.md", "utf8");
    const [, named = ""] = /what asks no node reads it: (.*?)\. /s.exec(page) ?? [];
    const commands = [...named.matchAll(/`([^`]+)`/g)].map(([, command = ""]) => command);
    expect(commands).toContain("audit statement");
    for (const command of commands) {
      const words = [...command.split(" "), ...(rest[command] ?? [])];
      const result = await causewayAt(silent, ...words);
      expect({ command, ...result }).toMatchObject({ command, code: 0 });
    }
  });

  it("are told it from a home that cannot be written, whose fault names the wallets as well", async () => {
    const usual = home;
    // Read-only, as it were: a name beside the file would be too long.
    let deep = join(usual, "deep");
    while (deep.length < 4_043) deep = join(deep, "d".repeat(Math.min(200, 4_053 - deep.length)));
    mkdirSync(deep, { recursive: true });
    cpSync(join(usual, "config"), join(deep, "config"), { recursive: true });
    const untouched = encodeKillSwitch(SWITCH_UNTOUCHED);
    writeFileSync(join(deep, "config", "kill-switch.json"), untouched);
    home = deep;
    try {
      await expect(
        causeway("killswitch", "set", "stop-sign", "--reason", "a theft"),
      ).rejects.toMatchObject({
        code: "HOME_UNUSABLE",
        message: expect.stringMatching(
          new RegExp(`ENAMETOOLONG.* signed for .*${toChecksumAddress(HOT)}`),
        ),
      });
      expect(await frozen()).toHaveLength(2);
      await expect(
        causeway("killswitch", "set", "stop-new", "--reason", "a theft"),
      ).rejects.toMatchObject({
        message: expect.not.stringMatching(/end its process|Try again/),
      });
    } finally {
      home = usual;
    }
  });
});

it("stops payments on tables of a later release, and lifts nothing there", async () => {
  await former.query(`INSERT INTO schema_migration (timestamp, name) VALUES (1, 'Later1')`);
  try {
    const refused = { code: "NEWER_LEDGER" };
    await expect(causeway("withdrawals", "list")).rejects.toMatchObject(refused);
    expect((await causeway("withdrawals", "freeze", "--reason", "later")).code).toBe(0);
    expect((await causeway("killswitch", "set", "stop-sign", "--reason", "later")).code).toBe(0);
    const { code, text } = await causeway("killswitch", "lift", "--reason", "over");
    expect([code, text]).toEqual([1, expect.stringContaining("Later1")]);
    const levels = await former.query(`SELECT level FROM kill_switch ORDER BY id`);
    expect(levels.at(-1)).toEqual({ level: "stop-sign" });
  } finally {
    await former.query(`DELETE FROM schema_migration WHERE name = 'Later1'`);
  }
});

describe("a node that answers badly", () => {
  let busy: FakeNode;
  beforeEach(async () => {
    const error = { code: -32005, message: "limit exceeded" };
    busy = await startFakeNode({}, { override: () => ({ error }) });
  });
  afterEach(async () => {
    ({ url } = tables);
    await busy.close();
  });

  it("keeps nobody from changing them where that is asked for", async () => {
    expect((await causewayAt(busy.url, "migrate")).code).toBe(0);
    expect(await done()).toHaveLength(LEDGER_MIGRATIONS.length);
  });

  it("is told of where the ledger is empty: no patience makes it another one", async () => {
    const empty = await createTestDatabase();
    ({ url } = empty);
    try {
      await expect(causewayAt(busy.url, "migrate")).rejects.toMatchObject({ code: "RPC_ERROR" });
    } finally {
      await empty.drop();
    }
  });
});

it("changes them where that is asked for, also while the node is down", async () => {
  const { code, text } = await causewayAt("http://127.0.0.1:9", "migrate");
  expect(code).toBe(0);
  // This one knows its chain: nothing waits for the node.
  expect(text).not.toContain("empty ledger");
  expect(await done()).toHaveLength(LEDGER_MIGRATIONS.length);
  expect((await causeway("ledger", "open")).text).not.toBe("");
});
