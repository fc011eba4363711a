/**
 * The project's own state tests, in the form of Ethereum's: what @ethereumjs/evm 10.1.3 made of random
 * programs, on both engines. All of Ethereum's run with `npm run test:evm -- --fixtures DIR`.
 */
import { describe, expect, it } from "@jest/globals";
import { fileURLToPath } from "node:url";
import { ENGINES } from "../../../evm/engines.js";
import { failureOf } from "../../../evm/state-case.js";
import { fixtureFiles, readCases, type StateCase } from "../../../evm/state-fixture.js";

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
});
