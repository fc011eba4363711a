/** The kill switch where a session of somebody keeps a lock that it needs, as any role of the database may. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { runLiftSwitch } from "../../../../cli/commands/policy/kill-switch.js";
import { keccak256 } from "../../../../chain/hashes.js";
import { privateKeyToAddress } from "../../../../chain/signing/account-key.js";
import { readKillSwitch, setKillSwitch } from "../../../../ledger/kill-switch/kill-switch.js";
import {
  encodeKillSwitch,
  readKillSwitchFile,
} from "../../../../ledger/kill-switch/kill-switch-file.js";
import { SWITCH_UNTOUCHED } from "../../../../ledger/kill-switch/kill-switch-level.js";
import { killSwitchPath } from "../../../../ledger/policy/policy-paths.js";
import { lockFreeze } from "../../../../ledger/requests/signing-freeze.js";
import { createHotWallet } from "../../../../ledger/wallets/wallet-lease.js";
import type { SqlDatabase } from "../../../../runtime/sql/sql.js";
import { SqlError } from "../../../../runtime/sql/sql-errors.js";
import { mapWithdrawalError } from "../../../../withdrawal-worker/api/api-errors.js";
import { createPolicyRoutes } from "../../../../withdrawal-worker/api/policy-routes.js";
import { ensureKillSwitchFile } from "../../../../withdrawal-worker/kill-switch.js";
import { FAKE_CHAIN_ID } from "../../../helpers/chains/fake-chain.js";
import { House } from "../../../helpers/exchange/house.js";
import { createGate } from "../../../helpers/gate.js";
import { registerTestWallets, silentLog, standing } from "../../../helpers/services/ledger.js";
import { PATIENCE_MS, until } from "../../../helpers/until.js";
import { makeHome, typedIn } from "../typed-home.js";

const SECOND = privateKeyToAddress(keccak256(Buffer.from("a wallet that is opened meanwhile")));

/** The database without the wait for a lock being bounded: what it waits for may take a busy machine long. */
function patient(database: SqlDatabase): Pick<SqlDatabase, "transaction"> {
  return {
    transaction: (work) =>
      database.transaction((tx) =>
        work({
          query: async (text, parameters) =>
            text.includes("lock_timeout") ? [] : tx.query(text, parameters),
        }),
      ),
  };
}

const UNHEARD = new SqlError("DATABASE_UNAVAILABLE", "lock timeout", { retriable: true });

/** A database that cannot be told anything. */
function deaf(database: SqlDatabase, fault: Error = UNHEARD): SqlDatabase {
  const transaction = () => Promise.reject(fault);
  return Object.assign(Object.create(database), { transaction });
}

let house: House;

/** Sessions that wait for a lock. */
async function countWaiting(): Promise<number> {
  const waiting = await house.ledger.owner.query(
    `SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`,
  );
  return waiting.length;
}

beforeEach(async () => {
  house = await House.open();
});
afterEach(() => house.close());

it.each([
  ["its own lock", "SELECT pg_advisory_xact_lock(8083000009)"],
  ["a wallet's switch", "SELECT 1 FROM signing_freeze FOR UPDATE"],
])("is told to be unheard, and does not hang, behind %s", async (_what, statement) => {
  await house.lane().runRound(house.signal);
  const wanted = { level: "stop-sign", reason: "a key has leaked", by: "ann" } as const;
  await standing(house.ledger.owner, async (tx) => {
    await tx.query(statement);
    await expect(setKillSwitch(house.database, wanted)).rejects.toMatchObject({
      code: "DATABASE_UNAVAILABLE",
      message: expect.stringContaining("lock timeout"),
    });
  });
  expect((await readKillSwitch(house.database)).level).toBe("none");
  await setKillSwitch(house.database, wanted);
  expect((await readKillSwitch(house.database)).level).toBe("stop-sign");
});

/** `POST /v1/kill-switch` of a home with this file, as ann asks. @returns what she is answered */
async function raise(switchFile: string, level: string, reason: string, database = house.database) {
  const route = createPolicyRoutes({
    database,
    policy: { current: async () => house.files.policy },
    chainId: FAKE_CHAIN_ID,
    switchFile,
    clock: house.clock,
    log: silentLog,
  }).find(({ method, path }) => method === "post" && path === "/v1/kill-switch");
  const caller = { keyId: "ann", name: "of ann", scopes: [] };
  const asked = { body: { level, reason }, caller, headers: {}, params: {}, query: {} } as never;
  try {
    return { status: 200, body: (await route?.handler(asked))?.body };
  } catch (error) {
    return mapWithdrawalError(error);
  }
}

it("is obeyed by the home whose API was asked, which says that the ledger was not told", async () => {
  await house.lane().runRound(house.signal);
  const folder = mkdtempSync(join(tmpdir(), "causeway-held-switch-"));
  const file = join(folder, "kill-switch.json");
  await ensureKillSwitchFile(file, house.database);
  try {
    await standing(house.ledger.owner, async (tx) => {
      await tx.query("SELECT 1 FROM signing_freeze FOR UPDATE");
      const told = await raise(file, "stop-sign", "a key has leaked");
      expect(told).toMatchObject({
        status: 503,
        body: { code: "UNAVAILABLE", message: expect.stringMatching(/this home is at stop-sign/) },
      });
      expect(readKillSwitchFile(file)).toMatchObject({
        level: "stop-sign",
        reason: "a key has leaked",
        by: "ann",
      });
    });
    const unheard = deaf(house.database);
    // What stops as much, or more, stays as it was set, and by whom.
    const before = readFileSync(file, "utf8");
    const lower = await raise(file, "stop-new", "another reason", unheard);
    expect(lower).toMatchObject({ status: 503, body: { code: "UNAVAILABLE" } });
    expect(readFileSync(file, "utf8")).toBe(before);
    const nowhere = join(folder, "missing", "kill-switch.json");
    // A file that cannot be read stops all that there is.
    expect(await raise(nowhere, "stop-sign", "a key has leaked", unheard)).toMatchObject({
      status: 503,
      body: { message: expect.stringMatching(/this home is at stop-broadcast/) },
    });
    // Read-only, as it were: a name beside the file would be too long.
    let deep = folder;
    while (deep.length < 4_050) deep = join(deep, "d".repeat(Math.min(200, 4_060 - deep.length)));
    mkdirSync(deep, { recursive: true });
    const unwritable = join(deep, "kill-switch.json");
    cpSync(file, unwritable);
    expect(await raise(unwritable, "stop-broadcast", "a key has leaked", unheard)).toMatchObject({
      status: 503,
      body: {
        message: expect.stringMatching(/^neither .* nothing more is stopped$/),
        details: { homeFault: expect.stringContaining("ENAMETOOLONG") },
      },
    });
    expect(readKillSwitchFile(unwritable).level).toBe("stop-sign");
    expect((await readKillSwitch(house.database)).level).toBe("none");
    const again = await raise(file, "stop-sign", "a key has leaked");
    expect(again).toMatchObject({
      status: 200,
      body: { ledger: { level: "stop-sign", by: "ann" } },
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it("leaves the word of who was told that all is stopped where the file was not there", async () => {
  const folder = mkdtempSync(join(tmpdir(), "causeway-absent-switch-"));
  const file = join(folder, "kill-switch.json");
  try {
    const told = await raise(file, "stop-sign", "a key has leaked", deaf(house.database));
    expect(told).toMatchObject({
      status: 503,
      body: { message: expect.stringMatching(/this home is at stop-broadcast/), details: {} },
    });
    // The worker is started anew, with the database.
    await ensureKillSwitchFile(file, house.database);
    expect((await readKillSwitch(house.database)).level).toBe("none");
    const word = { level: "stop-broadcast", reason: "a key has leaked", by: "ann" };
    expect(readKillSwitchFile(file)).toMatchObject(word);
    // Where the ledger is told it has the word, and the file is for who starts next.
    rmSync(file);
    expect(await raise(file, "stop-sign", "a key has leaked")).toMatchObject({ status: 200 });
    await ensureKillSwitchFile(file, house.database);
    expect(readKillSwitchFile(file)).toMatchObject({ ...word, level: "stop-sign" });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it("gives up a home whose file others write without an end", async () => {
  const folder = mkdtempSync(join(tmpdir(), "causeway-held-switch-"));
  const file = join(folder, "kill-switch.json");
  // For a product that never gives up, which would keep this test from ending it.
  const endMs = performance.now() + PATIENCE_MS;
  let writes = 0;
  let next: NodeJS.Immediate | undefined;
  const write = () => {
    const reason = `the word ${writes}`;
    writeFileSync(file, encodeKillSwitch({ ...SWITCH_UNTOUCHED, reason }));
    writes += 1;
    if (performance.now() < endMs) next = setImmediate(write);
  };
  write();
  try {
    expect(await raise(file, "stop-sign", "a key has leaked", deaf(house.database))).toMatchObject({
      status: 503,
      body: {
        message: expect.stringMatching(/^neither .* nothing more is stopped$/),
        details: { homeFault: expect.stringContaining("others write") },
      },
    });
    expect(readKillSwitchFile(file).level).toBe("none");
  } finally {
    clearImmediate(next);
    rmSync(folder, { recursive: true });
  }
});

it.each([
  ["refuses what it is told", new SqlError("CHECK_VIOLATION", "kill_switch_reason_check")],
  ["fails in a way that nobody knows", new Error("no such thing")],
])("is obeyed by the home, too, whose ledger %s", async (_what, fault) => {
  const folder = mkdtempSync(join(tmpdir(), "causeway-refused-switch-"));
  const file = join(folder, "kill-switch.json");
  await ensureKillSwitchFile(file, house.database);
  try {
    const told = await raise(file, "stop-sign", "a key has leaked", deaf(house.database, fault));
    expect(told).toMatchObject({
      status: 503,
      body: {
        code: "UNAVAILABLE",
        message: "this home is at stop-sign and obeys; the ledger could not be told: see the log",
      },
    });
    expect(readKillSwitchFile(file)).toMatchObject({ level: "stop-sign", by: "ann" });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it("is not lifted by who has not seen what is set while the lift waits", async () => {
  const home = makeHome();
  const file = killSwitchPath(home);
  await ensureKillSwitchFile(file, house.database);
  const before = readFileSync(file, "utf8");
  await setKillSwitch(house.database, { level: "stop-new", reason: "a drill", by: "ann" });
  const printed: string[] = [];
  const owner = typedIn(home, house.ledger.owner.url, (text) => void printed.push(text));
  const terms = { reason: "the drill is over", operator: "ann" };
  let lifting: Promise<number> | undefined;
  await standing(house.ledger.owner, async (tx) => {
    await tx.query("SELECT pg_advisory_xact_lock(8083000009)");
    await tx.query(
      `INSERT INTO kill_switch (level, reason, set_by) VALUES ('stop-sign', 'a key has leaked', 'ben')`,
    );
    lifting = runLiftSwitch(owner, terms);
    const what = "the lift waits";
    await until(async () => (await countWaiting()) === 1, { timeoutMs: 4_000, what });
  });
  expect(await lifting).toBe(1);
  expect(printed.join("\n")).toMatch(/set again meanwhile: stop-sign since .*, by ben: a key/);
  expect(await readKillSwitch(house.database)).toMatchObject({ level: "stop-sign", by: "ben" });
  expect(readFileSync(file, "utf8")).toBe(before);
  expect(await runLiftSwitch(owner, terms)).toBe(0);
  expect((await readKillSwitch(house.database)).level).toBe("none");
});

it("is known to a wallet that is opened while it is set, once it is said to be set", async () => {
  await house.lane().runRound(house.signal);
  await registerTestWallets(house.database, SECOND);
  const [held, released] = [createGate(), createGate()];
  const signing = standing(house.ledger.owner, async (tx) => {
    await tx.query(`SELECT 1 FROM signing_freeze FOR SHARE`);
    held.open();
    await released.opened;
  });
  const seen: boolean[] = [];
  const all: Promise<unknown>[] = [signing];
  try {
    await Promise.race([held.opened, signing]);
    const wanted = { level: "stop-sign", reason: "a key has leaked", by: "ann" } as const;
    const setting = setKillSwitch(patient(house.database), wanted);
    all.push(setting);
    const timeoutMs = 4_000;
    await until(async () => (await countWaiting()) === 1, { timeoutMs, what: "the setting waits" });

    const opening = createHotWallet(house.database, { wallet: SECOND, firstNonce: 0n });
    const using = opening.then(() =>
      standing(house.ledger.owner, async (tx) => {
        seen.push((await lockFreeze(tx, SECOND)).frozen);
        // What is committed by this look is committed behind the word that all is stopped.
        await setting;
      }),
    );
    all.push(using);
    const hasCome = async () => seen.length === 1 || (await countWaiting()) === 2;
    await until(hasCome, { timeoutMs, what: "the wallet is opened, or waits" });
  } finally {
    released.open();
    await Promise.allSettled(all);
  }
  await Promise.all(all);
  expect(seen).toEqual([true]);
});
