/** Lines of an export: whatever a file of others is, it ends in lines or in BUNDLE_UNREADABLE. */
import { createHash } from "node:crypto";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { readExport } from "../../../../cli/audit/ledger/export-file.js";

let folder: string;
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-lines-"));
});
afterAll(() => {
  fs.rmSync(folder, { recursive: true, force: true });
});

async function read(file: string): Promise<string[]> {
  const types: string[] = [];
  for await (const { type } of readExport(file)) types.push(type);
  return types;
}

function written(text: string): string {
  const file = path.join(folder, "export.jsonl");
  fs.writeFileSync(file, text);
  return file;
}

/** An export of balances of customers with these names, in the bytes that were sealed. */
function sealed(names: readonly string[]): string {
  return sealedLines(
    names.map((customerId) => {
      return { type: "balance", customerId, asset: "TOKEN", available: "1", held: "0" };
    }),
  );
}

function sealedLines(documents: readonly object[]): string {
  const lines = documents.map((document) => `${JSON.stringify(document)}\n`);
  const sha256 = createHash("sha256").update(lines.join("")).digest("hex");
  return `${lines.join("")}${JSON.stringify({ type: "end", lines: lines.length, sha256 })}\n`;
}

it("are what stands between two line feeds, as JSON writes texts", async () => {
  const text = sealed(["a", "of two \u2028 lines", "b\u2029", "\u0085"]);
  const types = ["balance", "balance", "balance", "balance", "end"];
  expect(await read(written(text))).toEqual(types);
  expect(await read(written(text.trimEnd()))).toEqual(types);
  expect(await read(written(text.replaceAll("\n", "\r\n")))).toEqual(types);
  // Longer than what is read at once.
  const many = Array.from({ length: 5_000 }, (_, index) => `customer ${index} äöü`);
  expect(await read(written(sealed(many)))).toHaveLength(5_001);
});

it("hold balances of a token whose contract makes up what arrives, above any payment", async () => {
  // A thousand deposits of 2^256 - 1.
  const available = `${(2n ** 256n - 1n) * 1_000n}`;
  const balance = { type: "balance", customerId: "a", asset: "LIE", available, held: "0" };
  expect(await read(written(sealedLines([balance])))).toEqual(["balance", "end"]);
});

it("are refused where there is none, an empty one, or one behind the end", async () => {
  const text = sealed(["a"]);
  for (const wrong of ["", "\n", `\n${text}`, `${text}\n`, `${text}${text}`, text.slice(0, 30)]) {
    await expect(read(written(wrong))).rejects.toMatchObject({ code: "BUNDLE_UNREADABLE" });
  }
});

it("hold all that a chain had lost, as much as one plan of a rewind has", async () => {
  const hash = `0x${"ab".repeat(32)}`;
  // As the database writes it.
  const list = (count: number, ...fields: readonly string[]) =>
    `[${`["${fields.join('", "')}"], `.repeat(count)}[]]`;
  const most = 100_000;
  const text = [
    `{"deposits": ${list(most, "1000000-100-2000001", hash, "1".repeat(26))}`,
    `"inflows": ${list(most, `reversal:sweep-out:${hash}:0x${"5e".repeat(20)}-r1`, hash)}`,
    // Those that were mined above the block, and those whose nonces are free.
    `"payments": ${list(2 * most, `wd_${"x".repeat(26)}`, hash)}}`,
  ].join(", ");
  const row = ["1", "ann", "2000000", hash, "1000000", hash, text, "2026-11-01T00:00:00Z"];
  const line = { type: "unlinked", kind: "rewind", key: 1, isLate: false, row };
  expect(await read(written(sealedLines([line])))).toEqual(["unlinked", "end"]);
});

it("are refused where one is longer than any text can be", async () => {
  const file = path.join(folder, "sparse.jsonl");
  fs.writeFileSync(file, "");
  fs.truncateSync(file, 700 * 1024 * 1024);
  await expect(read(file)).rejects.toMatchObject({
    code: "BUNDLE_UNREADABLE",
    message: expect.stringContaining("line 1 is too long"),
  });
});
