/** Folders are made step by step, and a refusal is told with its cause. */
import { expect, it } from "@jest/globals";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureFolder } from "../../../../runtime/files/folder.js";

it("makes a folder with those above it for its owner alone, and leaves one that is there", () => {
  const base = mkdtempSync(join(tmpdir(), "causeway-folder-"));
  const folder = join(base, "data", "chain");
  ensureFolder(folder);
  ensureFolder(folder);
  for (const made of [folder, join(base, "data")]) {
    expect((statSync(made).mode & 0o777).toString(8)).toBe("700");
  }
  rmSync(base, { recursive: true });
});

it("names folder and cause where it cannot, and never hangs", () => {
  const base = mkdtempSync(join(tmpdir(), "causeway-folder-"));
  writeFileSync(join(base, "file"), "");
  for (const folder of [join(base, "file", "chain"), "/proc/causeway/chain"]) {
    const refused = { code: "FOLDER_UNUSABLE", message: expect.stringMatching(/E[A-Z]+: /) };
    expect(() => ensureFolder(folder)).toThrow(expect.objectContaining(refused));
  }
  rmSync(base, { recursive: true });
});
