/** The last line of `causeway doctor`. */
import { describe, expect, it } from "@jest/globals";
import { verdictLine } from "../../../../cli/commands/doctor.js";
import { finding, type Severity } from "../../../../cli/probe/doctor-checks.js";

const lineOf = (...severities: readonly Severity[]) =>
  verdictLine(severities.map((severity) => finding("disk", severity, "")));

describe("the doctor's last line", () => {
  it("says that all is well where it is", () => {
    expect(lineOf("pass", "pass")).toBe("All is well.");
  });

  it("counts warnings, and does not say that all is well beside them", () => {
    expect(lineOf("pass", "warn")).toBe(
      "Nothing failed; there is 1 warning: the line that begins with WARN says what to do.",
    );
    expect(lineOf("warn", "pass", "warn")).toBe(
      "Nothing failed; there are 2 warnings: the lines that begin with WARN say what to do.",
    );
  });

  it("counts what failed, and the warnings beside it", () => {
    expect(lineOf("fail", "pass")).toBe(
      "1 check failed; each line that begins with FAIL says what to do.",
    );
    expect(lineOf("fail", "fail", "warn")).toBe(
      "2 checks failed, and there is 1 warning; each line that begins with FAIL or WARN says what to do.",
    );
  });
});
