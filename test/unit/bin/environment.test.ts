/** Which variables of the shell tests and benchmarks see: never those that name the shell's own exchange. */
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { KIT_CONFIG_NAMES } from "../../../cli/home/kit-config.js";
import { strangeVariables } from "../../../cli/home/strange-variables.js";
import { environmentName } from "../../../runtime/config/config.js";
import { testSources } from "../../helpers/sources/source-tree.js";

type Variables = Record<string, string>;

const BIN = "../../../bin";
const {
  environmentOfTests,
  leaveOutSettings,
}: {
  readonly environmentOfTests: (env: Variables) => Variables;
  readonly leaveOutSettings: (env: Variables) => void;
} = await import(`${BIN}/testing/environment.mjs`);

const valued = (names: readonly string[]): Variables =>
  Object.fromEntries(names.map((name) => [name, "x"]));

/** What a shell says that works with an exchange. */
const OF_AN_EXCHANGE = valued([
  "DATABASE_URL",
  "REDIS_URL",
  "REDIS_PASSWORD_FILE",
  ..."MODE NETWORK PORT GENESIS SEEDS".split(" "),
  ..."PGHOST PGPORT PGUSER PGPASSWORD PGPASSFILE PGOPTIONS PGSSLMODE".split(" "),
  ..."CAUSEWAY_HOME CAUSEWAY_LOG_LEVEL CAUSEWAY_SUPERVISED CAUSEWAY_FAILPOINT".split(" "),
  "causeway_worker_x",
  ...KIT_CONFIG_NAMES.map((name) => environmentName(name, "some.key")),
]);

/** What a run of the tests is told. */
const OF_A_RUN = valued([
  ..."PATH HOME TMPDIR CHROMIUM CAUSEWAY_TEST_CHROMIUM CAUSEWAY_FAULT_SEED".split(" "),
  ..."DATABASE_URL_TEST_SERVER REDIS_URL_TEST CAUSEWAY_TEST_SERVER_ENDS".split(" "),
]);

/** Variables with our prefix that tests read. */
const READ_BY_TESTS = [
  ...new Set(
    testSources().flatMap(({ text }) =>
      [...text.matchAll(/process\.env\[?[".]+(CAUSEWAY_\w+)/g)].map(([, name = ""]) => name),
    ),
  ),
];

describe("tests", () => {
  it("see nothing that says where an exchange of this machine is", () => {
    const env = { ...OF_AN_EXCHANGE, ...OF_A_RUN, NODE_EXTRA_CA_CERTS: "/ca.pem" };
    expect(environmentOfTests(env)).toEqual(OF_A_RUN);
    expect(env).toHaveProperty("DATABASE_URL");
  });

  it("see every variable that they read, and no kit that they start calls it misspelt", () => {
    expect(READ_BY_TESTS.length).toBeGreaterThan(20);
    const env = valued(READ_BY_TESTS);
    expect(environmentOfTests(env)).toEqual(env);
    expect(strangeVariables(env)).toEqual([]);
  });
});

describe("benchmarks", () => {
  it("see no more of it, and install what they compare with over the certificates of this machine", () => {
    const kept = { ...OF_A_RUN, NODE_EXTRA_CA_CERTS: "/ca.pem" };
    const env = { ...OF_AN_EXCHANGE, ...kept };
    leaveOutSettings(env);
    expect(env).toEqual(kept);
  });

  it("and tests ask for no database that a shell names", () => {
    const files = readdirSync("test", { recursive: true, encoding: "utf8" });
    const asking = files.filter(
      (file) =>
        file.endsWith(".ts") &&
        /databaseUrl\([^)]*\bprocess\.env/.test(readFileSync(join("test", file), "utf8")),
    );
    expect(files).toContain("bench/rows/indexer-rows.ts");
    expect(asking).toEqual([]);
  });
});
