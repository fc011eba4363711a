/** Where runs of the tests put their files: told at once where there is no place, and open to root's PostgreSQL. */
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type BinClone, createBinClone } from "../../helpers/processes/bin-clone.js";

const SAY = `console.error("TMPDIR " + process.env.TMPDIR);`;

describe("files of a run", () => {
  let clone: BinClone;
  beforeEach(() => {
    clone = createBinClone(SAY);
    clone.write(".cache/bench/test/bench/main.js", SAY);
  });
  afterEach(() => clone.remove());

  const PROGRAMS = ["test.mjs", "faults.mjs", "soak.mjs", "bench.mjs"];

  it.each(PROGRAMS)("have a place, or bin/%s says so before it installs anything", async (name) => {
    const prepared = join(clone.folder, "prepared");
    const note = `import { writeFileSync } from "node:fs";
      export const prepare = async () => writeFileSync(${JSON.stringify(prepared)}, "");`;
    clone.write("bin/setup/prepare.mjs", note);
    const nowhere = join(clone.folder, "nowhere");
    const { code, errors } = await clone.start([name], { TMPDIR: nowhere }).ended;
    expect({ code, errors }).toEqual({
      code: 1,
      errors:
        `causeway: no temporary files can be made in ${nowhere} (ENOENT): ` +
        "make that folder usable, or name another one by TMPDIR\n",
    });
    expect(existsSync(prepared)).toBe(false);
  });

  it.each(PROGRAMS)("lie where root's PostgreSQL may go, for bin/%s", async (name) => {
    const closed = join(clone.folder, "closed");
    mkdirSync(closed);
    chmodSync(closed, 0o700);
    const { output, errors } = await clone.start([name], { TMPDIR: closed }).ended;
    const parent = process.getuid?.() === 0 ? "/tmp" : closed;
    const places = errors.split("\n").filter((line) => line !== "");
    expect(places.length).toBeGreaterThan(0);
    for (const place of places) {
      expect(place === `TMPDIR ${parent}` || place.startsWith(`TMPDIR ${parent}/`)).toBe(true);
    }
    expect(output.includes(`${closed} lets no other user in`)).toBe(parent === "/tmp");
  });

  it("lie where it may go in CI, too", () => {
    const script = `. .ci/steps.sh; stat -c %a "$work"`;
    const env = { PATH: process.env["PATH"], TMPDIR: process.env["TMPDIR"] };
    const words = ["--norc", "-c", script];
    expect(spawnSync("bash", words, { env, encoding: "utf8" }).stdout).toBe("711\n");
  });
});
