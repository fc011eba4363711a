/**
 * A shell that names an exchange's database, queue and settings, as a deployment does: what tests, benchmarks
 * and CI start never sees them.
 */
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type BinClone, createBinClone } from "../../helpers/processes/bin-clone.js";

/** Prints the variables whose values are of an exchange, each once. */
const SAY = `
const said = Object.entries(process.env).filter(([, value]) => value.includes("exchange"));
console.error("SEEN " + said.map(([name]) => name).sort().join() + ".");
`;

const SHELL = {
  DATABASE_URL: "postgres://owner@exchange.example/ledger",
  REDIS_URL: "redis://exchange.example",
  PGHOST: "exchange.example",
  CAUSEWAY_HOME: "/srv/exchange",
  CAUSEWAY_WORKER_NODE_JSON_RPC_URL: "http://exchange.example",
  CAUSEWAY_TEST_OWN: "not of the exchange",
};

describe("a shell that names an exchange", () => {
  let clone: BinClone;
  beforeAll(() => {
    clone = createBinClone(SAY);
    for (const name of ["bench", "evm"]) clone.write(`.cache/bench/test/${name}/main.js`, SAY);
  });
  afterAll(() => clone.remove());

  it.each(["test.mjs", "faults.mjs", "soak.mjs", "bench.mjs", "test-evm.mjs"])(
    "shows nothing of it to what bin/%s starts",
    async (program) => {
      const { errors } = await clone.start([program], SHELL).ended;
      const seen = errors.split("\n").filter((line) => line.startsWith("SEEN"));
      expect([...new Set(seen)]).toEqual(["SEEN CAUSEWAY_TEST_OWN."]);
    },
  );

  it("shows nothing of it to a jest that somebody starts without them", () => {
    const runner = pathToFileURL(resolve("test", "helpers", "runner")).href;
    const script = `const { default: begin } = await import("${runner}/global-setup.mjs");
      const { default: end } = await import("${runner}/global-teardown.mjs");
      await begin();
      ${SAY}
      await end();`;
    const words = ["--input-type=module", "-e", script];
    const env = { PATH: process.env["PATH"], TMPDIR: process.env["TMPDIR"], ...SHELL };
    const { stderr } = spawnSync(process.execPath, words, { env, encoding: "utf8" });
    expect(stderr).toBe("SEEN CAUSEWAY_TEST_OWN.\n");
  });

  it("shows nothing of it to the steps of CI", () => {
    const script = `. .ci/steps.sh; node -e '${SAY}'`;
    const env = { PATH: process.env["PATH"], ...SHELL };
    const { stderr } = spawnSync("bash", ["--norc", "-c", script], { env, encoding: "utf8" });
    expect(stderr).toBe("SEEN CAUSEWAY_TEST_OWN.\n");
  });
});
