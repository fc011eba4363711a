import { describe, expect, it } from "@jest/globals";
import { assertOrderStands } from "../../../../runtime/sql/collation.js";

/** A server that answers the two questions; undefined where it has no such function. */
function server(recorded: string | null, actual?: string | null) {
  const asked: string[] = [];
  return {
    asked,
    query: async (text: string) => {
      asked.push(text);
      if (!text.includes("actual_version"))
        return { rows: [{ recorded, actual: null, name: null }] };
      if (actual === undefined) throw new Error("no such function");
      return { rows: [{ recorded: null, actual, name: '"my ledger"' }] };
    },
  };
}

describe("the order of texts", () => {
  it("stands where the version is the recorded one, or none is recorded", async () => {
    await assertOrderStands(server("2.36", "2.36"));
    const older = server(null);
    await assertOrderStands(older);
    expect(older.asked).toHaveLength(1);
  });

  it.each([
    ["2.36", `REINDEX DATABASE "my ledger"; ALTER DATABASE "my ledger" REFRESH COLLATION VERSION;`],
    // To none PostgreSQL refreshes no version.
    [null, "pg_dump and pg_restore"],
  ])("is refused where it is of version %s by now, with what to say", async (actual, remedy) => {
    await expect(assertOrderStands(server("2.24", actual))).rejects.toMatchObject({
      code: "DATABASE_COLLATION",
      message: expect.stringContaining(remedy),
      details: { recorded: "2.24", actual },
    });
  });
});
