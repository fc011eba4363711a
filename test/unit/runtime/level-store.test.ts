/** Faults of opening a store are told apart by what level says, not by the folder's name. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openLevelStore } from "../../../runtime/files/level-store.js";

const OPTIONS = { cacheBytes: 1 << 20, writeBufferBytes: 1 << 20 };

describe("a store in a folder whose name has a lock in it", () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "causeway-blockchain-"));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  it("is in use while it is open", async () => {
    const store = await openLevelStore(folder, OPTIONS);
    await expect(openLevelStore(folder, OPTIONS)).rejects.toMatchObject({ code: "LOCKED" });
    await store.close();
  });

  it("is not in use when it is damaged", async () => {
    await (await openLevelStore(folder, OPTIONS)).close();
    for (const name of readdirSync(folder)) {
      if (name.startsWith("MANIFEST")) writeFileSync(join(folder, name), "x");
    }
    await expect(openLevelStore(folder, OPTIONS)).rejects.toMatchObject({
      code: "CORRUPT",
      message: expect.stringContaining(folder),
    });
  });

  it("is not in use when its lock cannot be taken for another reason", async () => {
    rmSync(folder, { recursive: true });
    writeFileSync(folder, "");
    await expect(openLevelStore(folder, OPTIONS)).rejects.toMatchObject({ code: "CORRUPT" });
  });
});
