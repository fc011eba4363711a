/** Which versions of Node a release takes, by the range in its package.json. */
import fs from "node:fs";
import { expect, it } from "@jest/globals";
import { nodeFault } from "../../../../cli/upgrade/node-range.js";

it.each([
  ["^20.19 || >=22.12", "20.19.0", true],
  ["^20.19 || >=22.12", "20.18.9", false],
  ["^20.19 || >=22.12", "21.9.0", false],
  ["^20.19 || >=22.12", "22.11.0", false],
  ["^20.19 || >=22.12", "22.12.0", true],
  ["^20.19 || >=22.12", "24.0.0", true],
  [">= 22", "20.19.1", false],
  [">=22.3.4", "22.3.3", false],
  [">=22.3.4", "22.3.4", true],
  ["^22", "23.0.0", false],
  [">=100", "23.1.0", false],
])("%s and Node %s: %p", (range, version, isFit) => {
  const fault = isFit ? undefined : `needs Node ${range}, and this is ${version}`;
  expect(nodeFault(range, version)).toBe(fault);
});

it("takes no version for fit by words that it does not know", () => {
  expect(nodeFault("20.x || 22.x", "22.12.0")).toBe(
    'needs Node "20.x || 22.x", which this program does not understand',
  );
  expect(nodeFault("lts/* || >=22", "22.12.0")).toBeUndefined();
});

it("understands the range of this very release, which the Node of the tests is in", () => {
  const { engines } = JSON.parse(fs.readFileSync("package.json", "utf8"));
  expect(nodeFault(engines.node, process.versions.node)).toBeUndefined();
  expect(nodeFault(engines.node, "18.20.0")).toContain("and this is 18.20.0");
});
