/**
 * The project's own state tests, in the form of Ethereum's: what @ethereumjs/evm 10.1.3 made of random
 * programs, on both engines. All of Ethereum's run with `npm run test:evm -- --fixtures DIR`.
 */
import { describe, expect, it } from "@jest/globals";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ENGINES } from "../../../evm/engines.js";
import { failureOf } from "../../../evm/state-case.js";
import { fixtureFiles, readCases, type StateCase } from "../../../evm/state-fixture.js";
import { runStateTests } from "../../../evm/state-run.js";

const FOLDER = fileURLToPath(new URL("../../../evm/fixtures", import.meta.url));
const cases = fixtureFiles(FOLDER).flatMap((file) => readCases(file, "own"));

describe.each(Object.entries(ENGINES))("the engine %s", (_name, create) => {
  it("comes to the roots and logs of all cases", async () => {
    const failures = [];
    for (const test of cases) {
      const failure = await failureOf(test, create);
      if (failure !== undefined) failures.push(`${test.name}: ${failure}`);
    }
    expect(failures).toEqual([]);
    expect(cases.length).toBeGreaterThan(100);
  });

  it("is held to them: another root, other logs and another exception fail", async () => {
    const [test] = cases;
    if (test === undefined) throw new Error("there are no cases");
    const other = test.logsHash;
    const changed: StateCase[] = [
      { ...test, stateRoot: other },
      { ...test, logsHash: test.stateRoot },
      { ...test, exception: "TransactionException.NONCE_IS_MAX" },
    ];
    for (const wrong of changed) expect(await failureOf(wrong, create)).toBeDefined();
  });

  it("are all counted, a file that cannot be read as one that failed", async () => {
    const [name, first] = firstTest();
    const senderless = { ...first, transaction: { ...first.transaction, sender: undefined } };
    const folder = mkdtempSync(join(tmpdir(), "causeway-state-tests-"));
    try {
      mkdirSync(join(folder, "a"));
      writeFileSync(join(folder, "a", "cut.json"), "{");
      writeFileSync(join(folder, "b.json"), JSON.stringify({ [name]: senderless }));
      writeFileSync(join(folder, "c.json"), JSON.stringify({ [name]: first }));
      const said: string[] = [];
      const run = { folder, engine: create, say: (line: string) => said.push(line) };
      expect(await runStateTests({ ...run, only: "" })).toBe(false);
      expect(said.at(-1)).toBe("1 passed, 2 failed");
      expect(said).toContainEqual(expect.stringMatching(/^a\/cut\.json: cannot be read: .*JSON/));
      expect(said).toContain("b.json: cannot be read: sender is no text");
      expect(await runStateTests({ ...run, only: "c" })).toBe(false);
      expect(await runStateTests({ ...run, only: "c." })).toBe(true);
      expect(said.at(-1)).toBe("1 passed, 0 failed");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

/** The first of the project's own, with one result. */
function firstTest() {
  const [file = ""] = fixtureFiles(FOLDER);
  const tests: Record<
    string,
    { readonly post: { readonly Cancun: unknown[] }; transaction: object }
  > = JSON.parse(readFileSync(file, "utf8"));
  const [entry] = Object.entries(tests);
  if (entry === undefined) throw new Error("there are no tests");
  const [name, test] = entry;
  return [name, { ...test, post: { Cancun: test.post.Cancun.slice(0, 1) } }] as const;
}
