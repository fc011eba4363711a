/** Files of proofs, which others made: what is no file, or has no end, is refused within bounds. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { readProofFile } from "../../../cli/audit/balance/proof-source.js";

let folder: string;
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-proof-"));
});
afterAll(() => {
  fs.rmSync(folder, { recursive: true, force: true });
});

const refused = (reason: RegExp) => ({
  code: "BUNDLE_UNREADABLE",
  message: expect.stringMatching(reason),
});

it("is read to its last byte, and not beyond what a proof may have", async () => {
  const file = path.join(folder, "proof.json");
  fs.writeFileSync(file, "äöü".repeat(50_000));
  expect(await readProofFile(file, 300_000)).toBe("äöü".repeat(50_000));
  await expect(readProofFile(file, 299_999)).rejects.toMatchObject(refused(/too long for a proof/));
  for (const missing of [path.join(folder, "none.json"), folder]) {
    await expect(readProofFile(missing, 1)).rejects.toMatchObject(refused(/^Cannot read /));
  }
});

it("is not read for ever where it is a link to what has no end", async () => {
  const link = path.join(folder, "endless.json");
  fs.symlinkSync("/dev/zero", link);
  await expect(readProofFile(link, 1_048_576)).rejects.toMatchObject(
    refused(/too long for a proof/),
  );
});
