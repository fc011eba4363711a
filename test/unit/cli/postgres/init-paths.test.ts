/** PostgreSQL 18's initdb on odd paths: it quotes its own programs and escapes nothing in them. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { findPrograms } from "../../../../cli/postgres/binaries.js";
import { createCluster } from "../../../../cli/postgres/cluster.js";
import { assertInitRunsIn, assertLoadable } from "../../../../cli/postgres/init-paths.js";

describe("folders that a database is made from", () => {
  it.each(['/my "clone"/bin', "/cash $x/bin", "/a `b`/bin", "/two\nlines/bin"])(
    "are refused where PostgreSQL's programs cannot find each other: %j",
    (folder) => {
      expect(() => assertInitRunsIn(folder)).toThrow(
        expect.objectContaining({
          code: "BINARIES_UNUSABLE",
          message: expect.stringMatching(/^[^\n]*move the clone .*, or set DATABASE_URL/),
        }),
      );
    },
  );

  it("are good with whatever else a folder is called", () => {
    for (const name of ["a b", "it's", "a;b", "a&b", "100%", "#1", "grüße", "a\tb"]) {
      expect(() => assertInitRunsIn(`/${name}/bin`)).not.toThrow();
    }
  });
});

describe("a system without the C library of the programs", () => {
  const { signal } = new AbortController();
  let home: string;
  let initdb: string;

  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "causeway-musl-"));
    initdb = join(home, "initdb");
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  it.each([
    ["a script", "#!/lib64/ld-none.so.9 -x\n"],
    ["a program", "\u007fELF\u0000\u0001\u0000/lib64/ld-none.so.9\u0000\u0000GNU"],
  ])("is named as that before anything is made: %s", async (_kind, beginning) => {
    writeFileSync(initdb, beginning, { mode: 0o755 });
    const binaries = { initdb, postgres: initdb, majorVersion: 18 };
    const folder = join(home, "postgres");
    const place = { folder, isNew: true, link: undefined, account: undefined };
    await expect(createCluster({ place, home, binaries, signal })).rejects.toMatchObject({
      code: "BINARIES_UNUSABLE",
      message:
        "this system has no glibc (/lib64/ld-none.so.9), which PostgreSQL's programs need: use a " +
        "Debian-like system, or set DATABASE_URL to a PostgreSQL of your own",
    });
    expect([existsSync(folder), existsSync(join(home, "config"))]).toEqual([false, false]);
  });

  it("is not this one, nor one whose programs do not tell", () => {
    const { installed } = findPrograms({ account: undefined, copyFolder: home });
    writeFileSync(initdb, "another kind of program");
    const programs = [join(installed.native, "bin", "initdb"), initdb, join(home, "missing")];
    for (const program of programs) expect(() => assertLoadable(program)).not.toThrow();
  });
});
