/** Commands beside a kit that runs from the build, and those that wait for no installing. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { firstWords } from "../../../helpers/processes/endings.js";
import { cloneForEachTest } from "./fresh-clone.js";

describe("bin/causeway.mjs in a fresh clone", () => {
  let clone: string;

  const { runCommand, runScript, update, installed, npmCalls, countOf } = cloneForEachTest(
    (made) => {
      clone = made;
    },
  );

  it("runs what is built while a kit runs from it, and builds when that has ended", async () => {
    await runCommand();
    const part = join(clone, "dist", "part.js");
    writeFileSync(part, "setInterval(() => undefined, 1000); console.log('up');");
    const kit = spawn(process.execPath, ["--no-warnings", part, "--home", "x"]);
    const ended = once(kit, "exit");
    await firstWords(kit);
    update("1.0.1");
    const beside = await runCommand();
    expect(beside).toMatchObject({ code: 0, output: "ran status\n" });
    expect(beside.errors).toContain(`process ${kit.pid} runs what is built in this clone`);
    expect([installed().version, countOf("tsc-calls")]).toEqual(["1.0.0", 1]);
    // Whoever starts something means the sources that are there.
    await runScript(["causeway.mjs", "start"]);
    expect([installed().version, countOf("tsc-calls")]).toEqual(["1.0.1", 2]);
    update("1.0.2");
    kit.kill("SIGKILL");
    await ended;
    expect(await runCommand()).toMatchObject({ code: 0, output: "ran status\n" });
    expect([installed().version, countOf("tsc-calls")]).toEqual(["1.0.2", 3]);
  });

  it("takes a node that `causeway start` runs for one, wherever that was typed", async () => {
    await runCommand();
    const serve = "if (process.argv[2] === 'start') setInterval(() => undefined, 1000);";
    const main = join(clone, "dist", "cli", "main.js");
    writeFileSync(main, `${readFileSync(main, "utf8")};${serve}`);
    const words = ["--no-warnings", "causeway.mjs", "start"];
    const node = spawn(process.execPath, words, { cwd: join(clone, "bin") });
    await firstWords(node);
    update("1.0.1");
    expect((await runCommand()).errors).toContain(`process ${node.pid} runs what is built`);
    node.kill("SIGKILL");
    await once(node, "exit");
    expect(npmCalls()).toHaveLength(1);
  });

  it("stops payments by what is built, and waits for no installing", async () => {
    await runCommand();
    update("1.0.1");
    const unreachable = { FAKE_NPM_FAULT: "ENOTFOUND" };
    for (const words of [
      ["killswitch", "set", "stop-sign"],
      ["withdrawals", "freeze"],
    ]) {
      const run = await runScript(["causeway.mjs", ...words], unreachable);
      expect(run).toMatchObject({ code: 0, output: `ran ${words.join(" ")}\n` });
      expect(run.errors).toContain("waits for no installing and building");
    }
    expect(npmCalls()).toHaveLength(1);
    expect((await runScript(["causeway.mjs", "killswitch", "lift"], unreachable)).code).toBe(1);
    // Cut off between two renames.
    const former = join(clone, ".cache", "node_modules.former");
    renameSync(join(clone, "node_modules"), former);
    const run = await runScript(["causeway.mjs", "withdrawals", "freeze"], unreachable);
    expect(run).toMatchObject({ code: 0, output: "ran withdrawals freeze\n" });
  });
});
