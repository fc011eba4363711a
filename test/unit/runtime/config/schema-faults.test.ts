/** Outside input that a schema refuses is explained in one line. */
import { describe, expect, it } from "@jest/globals";
import { z } from "zod";
import { parseGenesis } from "../../../../node/settings/genesis.js";
import { schemaFaultText } from "../../../../runtime/config/schema-faults.js";

describe("a document that its schema refuses", () => {
  it("is explained by place, in one line, as far as people read", () => {
    const schema = z.object({ list: z.array(z.object({ count: z.number() })) });
    const result = schema.safeParse({ list: [{ count: 1 }, { count: "2" }] });
    expect(schemaFaultText(result.error)).toBe(
      "list.1.count: Invalid input: expected number, received string",
    );
    const wide = z.array(z.number()).safeParse(["a", "b", "c", "d", "e", "f", "g"]);
    expect(schemaFaultText(wide.error)).toMatch(/^0: .*; 4: [^;]*; and 2 more$/);
    expect(schemaFaultText(new Error("something else"))).toBe("something else");
  });

  it("is so explained where the genesis is read", () => {
    expect(() => parseGenesis("{}")).toThrow(
      /^genesis is not valid: network: [^\n]*; and \d more$/,
    );
    expect(() => parseGenesis("{")).toThrow(/^genesis is not valid: [^\n]*JSON[^\n]*$/);
  });
});
