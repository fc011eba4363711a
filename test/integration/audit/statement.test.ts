/** Statements of customers over books that a watcher wrote: sums, evidence, both forms. */
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { runStatement, type StatementOptions } from "../../../cli/audit/statement/command.js";
import { ADJUSTMENT, customerAccount, parseCustomerId } from "../../../ledger/journal/accounts.js";
import { postJournal } from "../../../ledger/journal/journal.js";
import type { Sql } from "../../../runtime/sql/sql.js";
import { roleUrl, standing } from "../../helpers/services/ledger.js";
import { HOT, WatcherBench } from "../../helpers/services/watcher.js";
import { until } from "../../helpers/until.js";
import { acceptOne } from "./support.js";

let bench: WatcherBench;
let home: string;
/** Between the two deposits. */
let middle: string;

const moment = async () => {
  const [row] = await bench.ledger.owner.query<{ at: Date }>("SELECT clock_timestamp() AS at");
  // Milliseconds: the next one lies behind everything that is committed.
  return new Date((row?.at.getTime() ?? 0) + 1).toISOString();
};

async function credited(customer: string, amountUnits: bigint): Promise<void> {
  const { address } = await bench.register(customer);
  bench.pay([address, amountUnits]);
  bench.chain.mine();
  await bench.caughtUp();
}

beforeAll(async () => {
  bench = await WatcherBench.open();
  home = mkdtempSync(join(tmpdir(), "causeway-statement-"));
  mkdirSync(join(home, "config"));
  writeFileSync(join(home, "config", "hot-wallet.json"), JSON.stringify({ address: HOT.slice(2) }));
  const running = bench.start();
  await credited("alice", 1_000n);
  middle = await moment();
  await credited("alice", 500n);
  await credited("bob", 77n);
  await running.stop();
  await acceptOne(bench.ledger.owner, "alice", 1_200n);
});
afterAll(async () => {
  await bench.close();
  rmSync(home, { recursive: true, force: true });
});

async function write(
  name: string,
  customer: string,
  { json = false, ...options }: Partial<StatementOptions> & { readonly json?: boolean },
) {
  const printed: string[] = [];
  const context = {
    home,
    portOffset: 0,
    json,
    env: { DATABASE_URL: roleUrl(bench.ledger.ownerUrl, "operator") },
    signal: new AbortController().signal,
    print: (line: string) => void printed.push(line),
  };
  const out = join(home, name);
  const all = { from: "2020-01-01", to: "2100-01-01", out, ...options };
  expect(await runStatement(context, customer, all)).toBe(0);
  return {
    printed,
    json: JSON.parse(readFileSync(`${out}.json`, "utf8")),
    csv: readFileSync(`${out}.csv`, "utf8"),
    sums: readFileSync(`${out}.sha256`, "utf8"),
  };
}

describe("a statement", () => {
  it("leads from nothing over every movement to what the customer has", async () => {
    const { json } = await write("all", "alice", {});
    expect(json).toMatchObject({ format: "causeway-statement/1", customerId: "alice" });
    expect(json.assets).toHaveLength(1);
    const [{ asset, opening, movements, closing }] = json.assets;
    expect([asset, opening, closing]).toEqual([
      "TOKEN",
      { availableUnits: "0", heldUnits: "0" },
      { availableUnits: "300", heldUnits: "1200" },
    ]);
    type Movement = Record<"kind" | "key", string> &
      Record<"change" | "after" | "evidence", object>;
    expect(
      (movements as Movement[]).map(({ kind, change, after }) => [kind, change, after]),
    ).toEqual([
      [
        "deposit.credit",
        { availableUnits: "1000", heldUnits: "0" },
        { availableUnits: "1000", heldUnits: "0" },
      ],
      [
        "deposit.credit",
        { availableUnits: "500", heldUnits: "0" },
        { availableUnits: "1500", heldUnits: "0" },
      ],
      [
        "withdrawal.hold",
        { availableUnits: "-1200", heldUnits: "1200" },
        { availableUnits: "300", heldUnits: "1200" },
      ],
    ]);
    const [first, , hold] = movements;
    const rows = await bench.ledger.owner.query<Record<string, string>>(
      `SELECT deposit.id, tx_hash, height, link.n, link.hash FROM deposit
         JOIN journal_entry e ON e.idem_key = 'deposit:' || deposit.id
         JOIN chain_link link ON link.kind = 'entry' AND link.row_key = e.id
        WHERE customer_id = 'alice' ORDER BY deposit.seq`,
    );
    expect(first.evidence).toEqual({
      depositId: rows[0]?.["id"],
      withdrawalId: null,
      txHash: rows[0]?.["tx_hash"],
      blockNumber: Number(rows[0]?.["height"]),
      link: { n: Number(rows[0]?.["n"]), hash: rows[0]?.["hash"] },
    });
    expect(hold.evidence).toMatchObject({
      depositId: null,
      withdrawalId: expect.any(String),
      txHash: null,
      link: { n: expect.any(Number) },
    });
  });

  it("names the transaction of every entry that the books know one of", async () => {
    await bench.register("carol");
    const credit = customerAccount(parseCustomerId("carol"));
    const [one, two, three] = ["a1", "b2", "c3"].map((pair) => `0x${pair.repeat(32)}`);
    const memos = {
      "ledger.outflow": `${one} ${HOT}`,
      "ledger.adjustment": two,
      "ledger.remined": three,
      // What a person wrote there is no transaction, nor is what is longer than one.
      "ledger.write_off": "asked for by mail",
      "ledger.recovered_payment": `${one}ff`,
    };
    for (const [kind, memo] of Object.entries(memos)) {
      await postJournal(bench.ledger.owner, {
        kind,
        idemKey: `carol:${kind}`,
        effectiveHeight: null,
        memo,
        postings: [{ asset: "TOKEN", debit: ADJUSTMENT, credit, amountUnits: 5n }],
      });
    }
    const { json, csv } = await write("memos", "carol", {});
    const movements: { evidence: { txHash: string | null } }[] = json.assets[0].movements;
    const hashes = [one, two, three, null, null];
    expect(movements.map(({ evidence }) => evidence.txHash)).toEqual(hashes);
    expect(csv).toContain(`,${two},`);
  });

  it("of a part begins with what was before, and ends before its end", async () => {
    const early = await write("early", "alice", { to: middle });
    const late = await write("late", "alice", { from: middle });
    expect(early.json.assets[0].closing).toEqual(late.json.assets[0].opening);
    expect(early.json.assets[0].movements).toHaveLength(1);
    expect(late.json.assets[0].movements).toHaveLength(2);
    const { json } = await write("other", "bob", {});
    expect(json.assets[0].closing).toEqual({ availableUnits: "77", heldUnits: "0" });
  });

  it("of a time that is over gains nothing afterwards, whoever was writing then", async () => {
    const { owner } = bench.ledger;
    const adjust = (tx: Sql, idemKey: string) =>
      postJournal(tx, {
        kind: "ledger.adjustment",
        idemKey,
        effectiveHeight: null,
        postings: [
          {
            asset: "TOKEN",
            debit: ADJUSTMENT,
            credit: customerAccount(parseCustomerId("bob")),
            amountUnits: 5n,
          },
        ],
      });
    let early: ReturnType<typeof write> | undefined;
    let end = "";
    // Written before the end, committed while the statement is being asked for.
    await standing(owner, async (tx) => {
      await adjust(tx, "late commit");
      end = await moment();
      early = write("over", "bob", { to: end });
      const asking = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
         AND pid <> pg_backend_pid() AND query LIKE '%AS writer FROM pg_locks%'`;
      await until(async () => (await owner.query(asking)).length > 0, {
        timeoutMs: 10_000,
        what: "the statement waits for who is writing",
      });
    });
    expect((await early)?.json.assets[0].closing.availableUnits).toBe("82");
    // Begun before the end, written behind it.
    let over: Awaited<ReturnType<typeof write>> | undefined;
    await standing(owner, async (tx) => {
      await tx.query("SELECT 1");
      end = await moment();
      over = await write("over-2", "bob", { to: end });
      await adjust(tx, "late entry");
    });
    const next = await write("next", "bob", { from: end });
    expect(next.json.assets[0].opening).toEqual(over?.json.assets[0].closing);
    expect(next.json.assets[0].closing.availableUnits).toBe("87");
  });

  it("of a time that is not over ends where it was made, says so, and gains nothing", async () => {
    const before = await moment();
    const { json, csv, printed } = await write("open", "bob", { to: "2100-01-01" });
    const after = await moment();
    expect(before <= json.to && json.to < after).toBe(true);
    expect(csv).toContain(`closing,TOKEN,${json.to}`);
    // With its hyphen: the hashes of a statement are hexadecimal, and one of them held "2100".
    expect(csv).not.toContain("2100-01");
    expect(printed.join("\n")).toContain(`That time is not over: it ends at ${json.to}`);
    const again = await write("open-2", "bob", { to: json.to });
    expect(again.json).toEqual(json);
    expect(again.printed.join("\n")).not.toContain("not over");
    const wrong = { from: "2099-01-01", to: "2100-01-01" };
    await expect(write("x", "bob", wrong)).rejects.toMatchObject({ code: "STATEMENT_NOT_BEGUN" });
  });

  it("meets the one before it, also where the database's clock went back in between", async () => {
    const { owner } = bench.ledger;
    const told = await write("told", "bob", {});
    const setClock = (sql: string) =>
      owner.query(`ALTER TABLE journal_entry ALTER COLUMN posted_at SET DEFAULT ${sql}`);
    await setClock("clock_timestamp() - interval '30 seconds'");
    const customer = customerAccount(parseCustomerId("bob"));
    await postJournal(owner, {
      kind: "ledger.adjustment",
      idemKey: "behind a clock that went back",
      effectiveHeight: null,
      postings: [{ asset: "TOKEN", debit: ADJUSTMENT, credit: customer, amountUnits: 3n }],
    });
    await setClock("clock_timestamp()");
    const units = (statement: typeof told) =>
      statement.json.assets[0].movements.map((movement: { change: { availableUnits: string } }) =>
        BigInt(movement.change.availableUnits),
      );
    const next = await write("behind", "bob", { from: told.json.to });
    expect(next.json.assets[0].opening).toEqual(told.json.assets[0].closing);
    expect(units(next)).toEqual([3n]);
    // What was told stays as it was, and so does a part of it.
    const again = await write("told-2", "bob", { to: told.json.to });
    expect(again.json).toEqual(told.json);
    const recent = new Date(Date.parse(told.json.to) - 60_000).toISOString();
    expect(units(await write("minute", "bob", { from: recent, to: told.json.to }))).toEqual(
      units(told),
    );
  });

  it("says so where the books were told up to a moment that the clock has not reached", async () => {
    const { owner } = bench.ledger;
    const ahead = new Date(Date.now() + 3_600_000).toISOString();
    await owner.query(
      `INSERT INTO statement_end (at, entry_id) SELECT $1, max(id) FROM journal_entry`,
      [ahead],
    );
    const { printed } = await write("ahead", "bob", {});
    expect(printed.join("\n")).toContain(`The books were told up to ${ahead} before`);
    await expect(owner.query(`DELETE FROM statement_end`)).rejects.toThrow("append-only");
    for (const backwards of [
      `INSERT INTO statement_end (at, entry_id) SELECT now(), max(id) FROM journal_entry`,
      `INSERT INTO statement_end (at, entry_id) VALUES (now() + interval '1 day', 1)`,
    ]) {
      await expect(owner.query(backwards)).rejects.toThrow("only go forward");
    }
  });

  it("names opening and closing balance where it is made, and what lies between them", async () => {
    const { printed } = await write("named", "alice", { from: middle });
    expect(printed).toContain(
      "opening 0.000000000000001 TOKEN + 0.0000000000000005 TOKEN in 2 movements = " +
        "closing 0.0000000000000015 TOKEN",
    );
    const { printed: forPrograms, json } = await write("programs", "alice", { json: true });
    const [{ asset, opening, closing }] = json.assets;
    expect(JSON.parse(forPrograms.join(""))).toMatchObject({
      ok: true,
      from: json.from,
      to: json.to,
      assets: [{ asset, opening, movements: 3, closing }],
    });
  });

  it("says the same in both forms, each with its SHA-256", async () => {
    const { csv, sums, json, printed } = await write("forms", "alice", {});
    const [head, ...lines] = csv.trimEnd().split("\r\n");
    const names = head?.split(",") ?? [];
    const cells = lines.map((line) =>
      Object.fromEntries(line.split(",").map((cell, index) => [names[index], cell])),
    );
    expect(cells.map(({ line }) => line)).toEqual([
      "opening",
      "movement",
      "movement",
      "movement",
      "closing",
    ]);
    const changes = cells.reduce((sum, row) => sum + BigInt(row["available_change"] ?? 0), 0n);
    expect(changes.toString()).toBe(json.assets[0].closing.availableUnits);
    expect(cells.at(-1)).toMatchObject({ available_after: "300", held_after: "1200" });
    expect(cells[1]?.["transaction"]).toBe(json.assets[0].movements[0].evidence.txHash);
    const sum = createHash("sha256").update(csv).digest("hex");
    expect(sums.split("\n")[1]).toBe(`${sum}  forms.csv`);
    expect(printed.join("\n")).toContain(sum);
  });

  it("is refused for nobody, and for no time", async () => {
    await expect(write("x", "nobody", {})).rejects.toMatchObject({ code: "UNKNOWN_CUSTOMER" });
    for (const wrong of [
      { from: "yesterday" },
      // Days and hours of no calendar: a statement of March would answer who asks for February.
      { from: "2026-02-30" },
      { to: "2026-10-31T24:00:00Z" },
      { from: "2026-11-02", to: "2026-11-01" },
      { to: "2026-11-01T00:00:00" },
    ]) {
      await expect(write("x", "alice", wrong)).rejects.toMatchObject({ code: "USAGE" });
    }
    await expect(write("all", "alice", {})).rejects.toThrow(/another name/);
  });

  it("leaves no part of itself where one of its files is there already", async () => {
    writeFileSync(join(home, "part.csv"), "somebody's");
    await expect(write("part", "alice", {})).rejects.toThrow(/part\.csv is there already/);
    expect(readdirSync(home).filter((name) => name.startsWith("part"))).toEqual(["part.csv"]);
    expect(readFileSync(join(home, "part.csv"), "utf8")).toBe("somebody's");
  });
});
