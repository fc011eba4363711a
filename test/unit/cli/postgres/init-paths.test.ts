/** PostgreSQL 18's initdb on odd paths: it quotes its own programs and escapes nothing in them. */
import { describe, expect, it } from "@jest/globals";
import { assertInitRunsIn } from "../../../../cli/postgres/init-paths.js";

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
