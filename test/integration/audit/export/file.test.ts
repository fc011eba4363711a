/**
 * The file of an export: what it proves by itself of books that a watcher has written on a fake chain,
 * and what is named where somebody has changed and sealed it anew.
 */
import { createHash } from "node:crypto";
import { appendFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { AuditError } from "../../../../cli/audit/errors.js";
import { readExport } from "../../../../cli/audit/ledger/export-file.js";
import { verifyLedger } from "../../../../cli/audit/ledger/verify-ledger.js";
import { runExportLedger, runVerifyLedger } from "../../../../cli/audit/ledger/commands.js";
import { runStatement } from "../../../../cli/audit/statement/command.js";
import { encodeGenesis } from "../../../../node/settings/genesis.js";
import { testGenesis } from "../../../helpers/chains/execution-chain.js";
import { falsifications } from "../../../helpers/falsified.js";
import { createRandom } from "../../../helpers/random.js";
import { BOB, ExportedBooks } from "./exported-books.js";

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
