/**
 * Tamper evidence: what a superuser changes behind all rules is named by somebody who has nothing but
 * the file of an export. The ledger is a real one, written by a watcher on a fake chain.
 */
import { createHash } from "node:crypto";
import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { AuditError } from "../../../cli/audit/errors.js";
import { readExport } from "../../../cli/audit/ledger/export-file.js";
import { verifyLedger } from "../../../cli/audit/ledger/verify-ledger.js";
import { runExportLedger, runVerifyLedger } from "../../../cli/audit/ledger/commands.js";
import { runStatement } from "../../../cli/audit/statement/command.js";
import { encodeGenesis } from "../../../node/settings/genesis.js";
import { testGenesis } from "../../helpers/chains/execution-chain.js";
import { readHead } from "../../../ledger/tamper/chainer.js";
import { falsifications } from "../../helpers/falsified.js";
import { createRandom } from "../../helpers/random.js";
import { BOB, ExportedBooks, putBack } from "./exported-books.js";

let books: ExportedBooks;
beforeAll(async () => {
  books = await ExportedBooks.open();
});
afterAll(() => books?.close());

describe("an export of the ledger", () => {
  it("proves untouched books: chain, double entry, balances", async () => {
    const file = await books.exported(books.bench.ledger.url);
    const { code, lines } = await books.run(
      books.copy.url,
      (context, warn) => runVerifyLedger(context, file, {}, warn),
      true,
    );
    const verdict = JSON.parse(lines.join(""));
    expect([code, verdict.ok, verdict.faults]).toEqual([0, true, []]);
    const count = async (table: string) =>
      Number(
        (await books.bench.ledger.owner.query<{ n: string }>(`SELECT count(*) n FROM ${table}`))[0]
          ?.n,
      );
    expect(verdict.rows).toEqual({
      event: await count("event"),
      entry: await count("journal_entry"),
      deposit: 4,
      withdrawal: 1,
      asset: 2,
      token_state: 1,
      sighting: 1,
      activation: 1,
      listing: 1,
      decision: 1,
      approval: 1,
      verdict: 1,
      kill_switch: 1,
      address: 2,
      assignment: 0,
      proposal: 2,
      outcome: 1,
      wallet: 1,
      wallet_change: 2,
      acknowledgement: 1,
      rewind: 1,
    });
    expect(verdict.postings).toBe(await count("posting"));
    expect(verdict.accounts[`TOKEN liability:held:${BOB}`]).toBe("-400");
    expect(verdict.accounts["TOKEN liability:customer:alice"]).toBe("-1007");
    // The file is bound by its last line, whatever program looks.
    const text = readFileSync(file, "utf8");
    const end = text.lastIndexOf("\n", text.length - 2) + 1;
    expect(JSON.parse(text.slice(end)).sha256).toBe(
      createHash("sha256").update(text.slice(0, end)).digest("hex"),
    );
  });

  it("is of the home's own chain: books of another one are refused, and untouched", async () => {
    const out = join(books.home, "foreign.jsonl");
    const config = join(books.home, "config");
    const attempts = [
      () => books.run(books.copy.url, (context, warn) => runExportLedger(context, { out }, warn)),
      () =>
        books.run(books.copy.url, (context) =>
          runStatement(context, BOB, { from: "2026-01-01", to: "2026-02-01", out }),
        ),
    ];
    const origin = { kind: "remote", network: "testnet", isComplete: true };
    const write = (genesisHash: string) =>
      writeFileSync(join(config, "chain.json"), JSON.stringify({ ...origin, genesisHash }));
    const refused = { code: "FOREIGN_LEDGER", message: expect.stringContaining("--home") };
    try {
      write(`0x${"99".repeat(32)}`);
      for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject(refused);
      rmSync(join(config, "chain.json"));
      const genesis = encodeGenesis(testGenesis(`0x${"11".repeat(20)}`));
      writeFileSync(join(config, "genesis.json"), genesis);
      for (const attempt of attempts) await expect(attempt()).rejects.toMatchObject(refused);
      expect(readdirSync(books.home).filter((name) => name.startsWith("foreign"))).toEqual([]);
      write(books.bench.chain.genesisHash);
      for (const attempt of attempts) expect((await attempt()).code).toBe(0);
    } finally {
      for (const name of ["chain.json", "genesis.json"])
        rmSync(join(config, name), { force: true });
    }
  });

  it("hashes rows as the rule says, as an independent program finds", async () => {
    const lines = readFileSync(await books.exported(books.bench.ledger.url), "utf8")
      .trim()
      .split("\n");
    const [ledger, ...links] = lines.map((line) => JSON.parse(line));
    const sha = (text: string) => createHash("sha256").update(text).digest("hex");
    let previous = sha(`causeway-chain/1\n${ledger.ledgerId}\n${ledger.genesisHash}`);
    for (const link of links.filter(({ type }) => type === "link")) {
      expect(link.digest).toBe(sha(JSON.stringify(link.row)));
      previous = sha(`${previous}\n${link.n}\n${link.kind}\n${link.key}\n${link.digest}`);
      expect(link.hash).toBe(previous);
    }
    expect(ledger.head).toBe(previous);
  });

  const first = (table: string, id: string) => `${id} = (SELECT min(${id}) FROM ${table})`;

  it.each([
    [
      "the amount of a posting",
      "posting",
      `UPDATE posting SET amount_units = amount_units + 1 WHERE ${first("posting", "id")}`,
      /^TAMPERED: journal entry 1 \(wallet-inflow:0-0-0\) was changed after link \d+ .*"1000001"/,
    ],
    [
      "who is credited",
      "posting",
      `UPDATE posting SET credit = 'liability:customer:alice'
        WHERE id = (SELECT min(id) FROM posting WHERE credit = 'liability:customer:${BOB}')`,
      /^TAMPERED: journal entry \d+ \(deposit:2-/,
    ],
    [
      "the height of an entry",
      "journal_entry",
      `UPDATE journal_entry SET effective_height = 5 WHERE ${first("journal_entry", "id")}`,
      /^TAMPERED: journal entry 1 /,
    ],
    [
      "an event",
      "event",
      `UPDATE event SET type = 'deposit.forged' WHERE ${first("event", "seq")}`,
      /^TAMPERED: event 1 \(deposit\.forged\) was changed/,
    ],
    [
      "a deposit's amount",
      "deposit",
      `UPDATE deposit SET amount_units = 9 WHERE ${first("deposit", "seq")}`,
      /^TAMPERED: deposit 1 \(1-0-\d\) was changed/,
    ],
    [
      "whose a deposit is",
      "deposit",
      `UPDATE deposit SET customer_id = '${BOB}' WHERE ${first("deposit", "seq")}`,
      /^TAMPERED: deposit 1-0-\d is bob's, and was alice's when told/,
    ],
    [
      "whose an address is",
      "deposit_address",
      `UPDATE deposit_address SET customer_id = '${BOB}' WHERE index = 0`,
      /^TAMPERED: address 1 \(0x[0-9a-f]{40}\) was changed after link \d+ .*"bob"/,
    ],
    [
      "what became of a deposit",
      "deposit",
      `UPDATE deposit SET status = 'suspense' WHERE ${first("deposit", "seq")}`,
      /^TAMPERED: deposit 1-0-\d is suspense, and the last that was told is deposit\.credited/,
    ],
    [
      "what a withdrawal pays",
      "withdrawal",
      `UPDATE withdrawal SET amount_units = 1`,
      /^TAMPERED: withdrawal 1 \(.*\) was changed/,
    ],
    [
      "what became of a withdrawal",
      "withdrawal",
      `UPDATE withdrawal SET status = 'settled'`,
      /^TAMPERED: withdrawal wd_\S+ is settled, and the last that was told is withdrawal\.accepted/,
    ],
    [
      "who asked for a withdrawal",
      "withdrawal",
      `UPDATE withdrawal SET requested_by = 'ann'`,
      /^TAMPERED: withdrawal wd_\S+ was asked for by "ann", and the decision .* says by null/,
    ],
    [
      "what a token is",
      "asset",
      `UPDATE asset SET decimals = 18 WHERE symbol = 'GOLD'`,
      /^TAMPERED: asset \d+ \(GOLD\) was changed/,
    ],
    [
      "the code that was accepted",
      "token_state_change",
      `UPDATE token_state_change SET code_hash = '0x${"00".repeat(32)}'`,
      /^TAMPERED: token state \d+ \(GOLD\) was changed/,
    ],
    [
      "why something was not credited",
      "token_sighting",
      `UPDATE token_sighting SET reason = 'NFT'`,
      /^TAMPERED: sighting \d+ \(0xab.*\) was changed/,
    ],
    [
      "which policy was in force",
      "policy_activation",
      `UPDATE policy_activation SET at = at - interval '1 day'`,
      /^TAMPERED: activation \d+ .* was changed/,
    ],
    [
      "since when a destination is listed",
      "policy_listing",
      `UPDATE policy_listing SET at = at - interval '30 days'`,
      /^TAMPERED: listing \d+ \(alice\) was changed/,
    ],
    [
      "what was decided",
      "policy_decision",
      `UPDATE policy_decision SET rules = '{"approvals": 0}'`,
      /^TAMPERED: decision \d+ \(wd_.*\) was changed/,
    ],
    [
      "who approved",
      "withdrawal_approval",
      `UPDATE withdrawal_approval SET key_id = 'bob'`,
      /^TAMPERED: approval \d+ \(wd_.*\) was changed/,
    ],
    [
      "what screening said",
      "screening_verdict",
      `UPDATE screening_verdict SET reference = 'case 2'`,
      /^TAMPERED: verdict \d+ \(wd_.*\) was changed/,
    ],
    [
      "who set the kill switch",
      "kill_switch",
      `UPDATE kill_switch SET set_by = 'bob'`,
      /^TAMPERED: kill switch \d+ \(stop-new\) was changed/,
    ],
    [
      "what an operator decided",
      "operator_decision",
      `UPDATE operator_decision SET terms = '{"action": "write-off-payment"}' WHERE key = 'made'`,
      /^TAMPERED: proposal 1 \(adjustment\) was changed/,
    ],
    [
      "who decided",
      "operator_decision",
      `UPDATE operator_decision SET decided_by = 'cid' WHERE key = 'made'`,
      /^TAMPERED: decision 1 is done by "cid", and what was made of it says done by "bea"/,
    ],
    [
      "that a decision waits",
      "operator_decision",
      `UPDATE operator_decision SET status = 'done', decided_by = 'bea', decided_at = now()
        WHERE key = 'waiting'`,
      /^TAMPERED: decision 2 is done by "bea", and what was made of it says proposed/,
    ],
    [
      "what became of a decision",
      "operator_decision_outcome",
      `UPDATE operator_decision_outcome SET status = 'refused'`,
      /^TAMPERED: outcome 1 \(1\) was changed/,
    ],
    [
      "which wallet it is",
      "wallet",
      `UPDATE wallet SET from_height = 9`,
      /^TAMPERED: wallet 1 \(0x[0-9a-f]{40}\) was changed/,
    ],
    [
      "whether a wallet pays",
      "wallet",
      `UPDATE wallet SET status = 'active'`,
      /^TAMPERED: wallet 0x[0-9a-f]{40} is active by "ann": "rotated", and .* says draining by "ann"/,
    ],
    [
      "who drained a wallet",
      "wallet_change",
      `UPDATE wallet_change SET operator = 'bob' WHERE status = 'draining'`,
      /^TAMPERED: wallet change 2 \(0x[0-9a-f]{40}\) was changed/,
    ],
    [
      "who acknowledged an outflow",
      "foreign_transaction_acknowledged",
      `UPDATE foreign_transaction_acknowledged SET acknowledged_by = 'bob'`,
      /^TAMPERED: acknowledgement 1 \(0xab.*\) was changed/,
    ],
    [
      "how far the watcher went back",
      "chain_rewind",
      `UPDATE chain_rewind SET to_height = 1`,
      /^TAMPERED: rewind 1 \(ann\) was changed/,
    ],
    [
      "a link",
      "chain_link",
      `UPDATE chain_link SET digest = repeat('0', 64) WHERE n = 2`,
      /^TAMPERED: link 2 \(.*\) has another hash/,
    ],
    [
      "a balance",
      "customer_balance",
      `UPDATE customer_balance SET available_units = 5 WHERE customer_id = 'alice'`,
      /^TAMPERED: the balance of TOKEN liability:customer:alice is kept as 5, and .* 1007/,
    ],
  ] as const)("names %s", async (_what, table, statement, expected) => {
    // The CHECK of the chain's hashes holds for superusers too: it goes first.
    await books.tamper(
      "ALTER TABLE chain_link DROP CONSTRAINT IF EXISTS chain_link_hash",
      `CREATE TABLE kept AS SELECT * FROM ${table}`,
      statement,
    );
    const { code, lines } = await books.verdictOf(await books.exported(books.copy.url));
    expect(code).toBe(1);
    expect(lines[0]).toMatch(expected);
    // What is not as it was is named by the next one.
    await books.tamper(`DELETE FROM ${table}`, putBack(table), "DROP TABLE kept");
  });

  it("names nothing once all of that is as it was", async () => {
    expect((await books.verdictOf(await books.exported(books.copy.url))).lines).toEqual([
      expect.stringMatching(/^Nothing was changed/),
    ]);
  });

  it("names a row that is gone, and one that was put among older ones", async () => {
    const [row] = await books.bench.ledger.owner.query<{ seq: string }>(
      `SELECT max(seq)::text AS seq FROM event`,
    );
    await books.tamper(`CREATE TABLE kept AS SELECT * FROM event WHERE seq = ${row?.seq}`);
    await books.tamper(`DELETE FROM event WHERE seq = ${row?.seq}`);
    expect((await books.verdictOf(await books.exported(books.copy.url))).lines[0]).toMatch(
      new RegExp(`^TAMPERED: event ${row?.seq} is gone: link \\d+ was about it`),
    );
    await books.tamper("INSERT INTO event SELECT * FROM kept", "DROP TABLE kept");
    // As if these rows were linked long ago.
    await books.tamper(
      `UPDATE chain_cursor SET row_key = 1000 WHERE kind = 'entry'`,
      `INSERT INTO journal_entry (id, kind, idem_key) OVERRIDING SYSTEM VALUE
       VALUES (900, 'ledger.adjustment', 'forged')`,
    );
    expect((await books.verdictOf(await books.exported(books.copy.url))).lines[0]).toBe(
      "TAMPERED: journal entry 900 (forged) was put among rows that had their links",
    );
    await books.tamper("DELETE FROM journal_entry WHERE id = 900");
  });

  it("is known for another one when the whole chain was written anew", async () => {
    const { hash } = await readHead(books.bench.ledger.database);
    await books.tamper(
      "UPDATE event SET type = 'deposit.forged' WHERE seq = 1",
      "DELETE FROM chain_link",
    );
    await books.tamper("UPDATE chain_cursor SET row_key = 0");
    const file = await books.exported(books.copy.url);
    expect((await books.verdictOf(file)).code).toBe(0);
    expect((await books.verdictOf(file, hash)).lines).toEqual([
      `TAMPERED: no link has the hash ${hash}: this is another chain than the known one`,
    ]);
    // Of a file alone nobody can tell: who reads the verdict is told so.
    const told = async (head: { readonly head?: string }) => {
      const { lines } = await books.run(books.copy.url, (context, warn) =>
        runVerifyLedger(context, file, head, warn),
      );
      return lines.find((line) => line.startsWith("  known head"));
    };
    expect(await told({})).toMatch(/none given: .*written anew.*cut short.*--head/);
    expect(await told({ head: hash })).toBe(`  known head      ${hash}`);
  });

  it("names what was falsified, field by field, by somebody who sealed the file anew", async () => {
    const seed = Number(process.env["SEED"] ?? Date.now() % 2 ** 32);
    console.log(`falsified exports: SEED=${seed}`);
    const random = createRandom(seed);
    const [file, path] = [
      await books.exported(books.bench.ledger.url),
      join(books.home, "falsified.jsonl"),
    ];
    const lines = readFileSync(file, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { readonly type: string; readonly kind?: string });
    const body = lines.slice(0, -1);
    const checked = async (from: string) => {
      const verdict = await verifyLedger(readExport(from));
      return { ...verdict, accounts: new Map(verdict.accounts) };
    };
    const told = await checked(file);
    const believed = new Set<string>();
    let count = 0;
    const judge = async (changed: readonly unknown[], what: { place: string; how: string }) => {
      count += 1;
      const text = changed.map((line) => `${JSON.stringify(line)}\n`).join("");
      const sha256 = createHash("sha256").update(text).digest("hex");
      const end = JSON.stringify({ type: "end", lines: changed.length, sha256 });
      writeFileSync(path, `${text}${end}\n`);
      try {
        const verdict = await checked(path);
        if (verdict.faults.length > 0) return;
        const is = isDeepStrictEqual(verdict, told) ? "same" : "other";
        believed.add(`${is}: ${what.place} ${is === "same" ? "" : what.how}`.trim());
      } catch (error) {
        const code = error instanceof AuditError ? error.code : String(error);
        expect({ seed, ...what, code }).toEqual({ seed, ...what, code: "BUNDLE_UNREADABLE" });
      }
    };
    // One line of each kind, and the last one of each type.
    const chosen = body.filter(
      ({ type, kind }, at) =>
        body.findIndex((line) => line.type === type && line.kind === kind) === at ||
        body.findLastIndex((line) => line.type === type) === at,
    );
    for (const line of chosen) {
      const at = body.indexOf(line);
      for (const { place, how, value } of falsifications(line, random)) {
        await judge(body.with(at, value as typeof line), { place: `${line.type}.${place}`, how });
      }
    }
    for (const [at, line] of body.entries()) {
      const what = (how: string) => ({ place: line.type, how });
      await judge(body.toSpliced(at, 1), what("dropped"));
      await judge(body.toSpliced(at, 0, line), what("doubled"));
      await judge([...body, line], what("repeated at the end"));
      const next = body[at + 1];
      if (next !== undefined) await judge(body.toSpliced(at, 2, next, line), what("moved"));
    }
    expect([...believed].toSorted()).toEqual([
      // The order of what is kept says nothing, nor do these two fields.
      "same: balance",
      "same: decision",
      "same: deposit",
      "same: ledger.chainId",
      "same: ledger.exportedAt",
      "same: link",
      "same: wallet",
      "same: withdrawal",
    ]);
    expect(count).toBeGreaterThan(3_000);
  });

  it("names what is there twice, so that a false line hides behind a right one", async () => {
    const path = join(books.home, "twice.jsonl");
    const lines = readFileSync(await books.exported(books.bench.ledger.url), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const body = lines.slice(0, -1);
    const faultsOf = async (changed: readonly Record<string, unknown>[]) => {
      const text = changed.map((line) => `${JSON.stringify(line)}\n`).join("");
      const sha256 = createHash("sha256").update(text).digest("hex");
      const end = { type: "end", lines: changed.length, sha256 };
      writeFileSync(path, `${text}${JSON.stringify(end)}\n`);
      return (await verifyLedger(readExport(path))).faults;
    };
    const at = (type: string) => body.findIndex((line) => line["type"] === type);
    const balance = { ...body[at("balance")], available: "999999" };
    expect(await faultsOf(body.toSpliced(at("balance"), 0, balance))).toEqual([
      expect.stringMatching(/^the balance of .* is there twice$/),
    ]);
    // One of two deposits is told of twice, so that nothing is told of the other one.
    const [one, next] = [at("deposit"), at("deposit") + 1];
    const repeated = { ...body[one] };
    expect(await faultsOf(body.with(next, repeated))).toEqual([
      `deposit ${String(repeated["depositId"])} is there twice`,
      "of 4 deposits the export says of 3 whose they are",
    ]);
    // Told before the last event about it, which says something else.
    const told = { ...repeated, status: "detected" };
    const credited = body.findIndex(
      ({ kind, row }) =>
        kind === "event" &&
        Array.isArray(row) &&
        row[2] === "deposit.credited" &&
        String(row[3]).includes(`"${String(repeated["depositId"])}"`),
    );
    expect(await faultsOf(body.toSpliced(one, 1).toSpliced(credited, 0, told))).toEqual([
      `deposit ${String(repeated["depositId"])} is detected, and the last that was told is deposit.credited`,
    ]);
    const { kind, key, row } = body[at("link")] ?? {};
    const unlinked = { type: "unlinked", kind, key, isLate: false, row };
    expect(await faultsOf(body.toSpliced(at("balance"), 0, unlinked))).toContainEqual(
      expect.stringMatching(/ is there twice$/),
    );
    // An export of a former release says nothing of deposits; this one only pretends to be one.
    const { deposits: _count, ...former } = body[0] ?? {};
    expect(await faultsOf(body.with(0, former))).toEqual([
      "the export says of deposits whose they are, and not of how many",
    ]);
    const old = body.with(0, former).filter(({ type }) => type !== "deposit");
    expect(await faultsOf(old)).toEqual([
      "the export does not say whose deposits are, and has what came with a later release",
    ]);
    const { lines: shown } = await books.run(books.copy.url, (context, warn) =>
      runVerifyLedger(context, path, {}, warn),
    );
    expect(shown).toContainEqual(expect.stringMatching(/deposits .* not whose they are/));
    // The same member twice in a line: programs differ in which of the two they read.
    const text = readFileSync(await books.exported(books.bench.ledger.url), "utf8");
    const twice = text.replace('"available":', '"available":"5","available":');
    const whole = twice.slice(0, twice.lastIndexOf("\n", twice.length - 2) + 1);
    const sha256 = createHash("sha256").update(whole).digest("hex");
    const end = JSON.stringify({ type: "end", lines: body.length, sha256 });
    writeFileSync(path, `${whole}${end}\n`);
    const refused = await books.verdictOf(path);
    expect([refused.code, refused.lines.join("")]).toEqual([
      2,
      expect.stringContaining("is not written as exports are"),
    ]);
  });

  it("that is cut short or edited is refused as a file", async () => {
    const file = await books.exported(books.bench.ledger.url);
    const text = readFileSync(file, "utf8");
    const lines = text.trimEnd().split("\n");
    const broken: readonly (readonly [string, RegExp])[] = [
      [`${lines.slice(0, -1).join("\n")}\n`, /breaks off/],
      [`${lines.slice(0, -2).join("\n")}\n${lines.at(-1)}\n`, /last line does not fit/],
      [text.replace("liability:customer:alice", "liability:customer:malory"), /does not fit/],
      [text.replace("causeway-ledger-export/1", "causeway-ledger-export/2"), /line 1/],
      ["{", /no JSON/],
    ];
    for (const [content, reason] of broken) {
      const path = join(books.home, "broken.jsonl");
      writeFileSync(path, content);
      const { code, lines: said } = await books.verdictOf(path);
      expect([code, said.join("\n")]).toEqual([2, expect.stringMatching(reason)]);
    }
    appendFileSync(file, "{}\n");
    expect((await books.verdictOf(file)).code).toBe(2);
    const again = await books.run(books.bench.ledger.url, (context, warn) =>
      runExportLedger(context, { out: file }, warn),
    );
    expect([again.code, again.lines.join("")]).toEqual([2, expect.stringContaining("Cannot make")]);
  });
});
