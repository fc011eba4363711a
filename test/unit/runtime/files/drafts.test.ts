/** What killed processes left beside a file goes; what is another's stays. */
import { randomUUID } from "node:crypto";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { removeDrafts, replaceFile, SECRET_MODE } from "../../../../runtime/files/durable-file.js";

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "causeway-drafts-"));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const put = (name: string) => writeFileSync(join(folder, name), name);

it("removes the drafts of one file alone", async () => {
  const file = join(folder, "state");
  await replaceFile(file, "what was signed", SECRET_MODE);
  const kept = [
    `.state.json.${randomUUID()}.tmp`,
    `.state.taken-${randomUUID()}`,
    `.other.${randomUUID()}.tmp`,
    "state.tmp",
    ".state.notes.tmp",
    `..state.${randomUUID()}.tmp`,
  ];
  for (const name of [...kept, ...[1, 2].map(() => `.state.${randomUUID()}.tmp`)]) put(name);
  await removeDrafts(file);
  expect(readdirSync(folder).toSorted()).toEqual([...kept, "state"].toSorted());
  expect(readFileSync(file, "utf8")).toBe("what was signed");
});

it("does without where it cannot", async () => {
  await removeDrafts(join(folder, "missing", "state"));
  const draft = `.state.${randomUUID()}.tmp`;
  // None of ours is a folder; and one that cannot go does not keep the others.
  mkdirSync(join(folder, `.state.${"0".repeat(8)}-0000-0000-0000-${"0".repeat(12)}.tmp`));
  put(draft);
  await removeDrafts(join(folder, "state"));
  expect(readdirSync(folder)).not.toContain(draft);
  chmodSync(folder, 0o333);
  // Nothing is forbidden to root.
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  try {
    await removeDrafts(join(folder, "state"));
  } finally {
    if (isRoot) process.seteuid?.(0);
    chmodSync(folder, 0o700);
  }
});
