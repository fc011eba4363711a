/** `--param`: what is typed counts as it is typed, or is refused. */
import { describe, expect, it } from "@jest/globals";
import { parseParamFlags } from "../../../../cli/commands/param-flags.js";

describe("--param", () => {
  it("is taken any number of times, the same value twice, too", () => {
    const twice = "gov.voting_period=60s";
    const params = parseParamFlags([twice, "slashing.signed_blocks_window=20", twice]);
    expect(params.gov.voting_period).toBe(60_000n);
    expect(params.slashing.signed_blocks_window).toBe(20n);
  });

  it("is refused with two values for one parameter: only the last one would count", () => {
    const message = "--param gov.voting_period is given twice, with different values.";
    const fault = { code: "USAGE", message };
    const texts = ["gov.voting_period=60s", "gov.voting_period=2h"];
    expect(() => parseParamFlags(texts)).toThrow(expect.objectContaining(fault));
  });

  it("is refused for names that every object has", () => {
    for (const name of ["__proto__", "constructor"]) {
      const message = expect.stringContaining(`there is no parameter ${name}: take one of `);
      const fault = expect.objectContaining({ code: "USAGE", message });
      expect(() => parseParamFlags([`${name}=1`])).toThrow(fault);
    }
  });
});
