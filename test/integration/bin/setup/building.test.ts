/** The build of a clone: when it is made again, what is said meanwhile, and what is left where it fails. */
import { existsSync, readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { cloneForEachTest } from "./fresh-clone.js";

describe("bin/causeway.mjs in a fresh clone", () => {
  let clone: string;

  const { runCommand, runScript, countOf } = cloneForEachTest((made) => {
    clone = made;
  });

  it("builds by itself, too, as `npm run build`", async () => {
    expect((await runScript(["build.mjs"])).code).toBe(0);
    expect(existsSync(join(clone, "dist", ".stamp"))).toBe(true);
    expect(countOf("tsc-calls")).toBe(1);
  });

  it("builds again when a source changes, and leaves no drafts", async () => {
    await runCommand();
    writeFileSync(join(clone, "chain", "units.ts"), "export const changed = 1;\n");
    await runCommand();
    await runCommand();
    expect(countOf("tsc-calls")).toBe(2);
    expect(readdirSync(clone).filter((name) => name.startsWith("dist"))).toEqual(["dist"]);
  });

  it("builds again where a power cut has left names of files and not their content", async () => {
    await runCommand();
    truncateSync(join(clone, "dist", "cli", "main.js"));
    rmSync(join(clone, "dist", ".look"), { force: true });
    await runCommand();
    expect(countOf("tsc-calls")).toBe(2);
  });

  it("says from time to time that it is still building", async () => {
    const run = await runCommand({ FAKE_TSC_SLOW_MS: "9000" });
    expect(run.errors).toMatch(
      /causeway: building dist\n(causeway: still building dist after \d+ s\n)+$/,
    );
    expect(run.output).toBe("ran status\n");
  });

  it("shows the compiler's faults and keeps the former build", async () => {
    await runCommand();
    writeFileSync(join(clone, "chain", "units.ts"), "export const = ;\n");
    const run = await runCommand({ FAKE_TSC_FAULT: "1" });
    expect(run.code).toBe(1);
    expect(run.errors).toContain("chain/units.ts(1,1): error TS1005");
    expect(existsSync(join(clone, "dist", "cli", "main.js"))).toBe(true);
  });

  it("does not call the sources broken where the compiler was ended", async () => {
    const refused = await runCommand({ FAKE_TSC_KILLED: "1" });
    expect(refused.errors).toContain("the compiler was ended by SIGKILL");
    expect(refused.errors).not.toContain("do not compile");
    expect(refused.code).toBe(1);
  });

  it("says so where a helper program needs too long, and leaves nothing of it", async () => {
    const slow = {
      what: "the helper",
      command: process.execPath,
      args: ["-e", "setInterval(() => 0, 9999)"],
      cwd: clone,
      recordPath: join(clone, "child.json"),
      timeoutMs: 1_500,
    };
    writeFileSync(
      join(clone, "bin", "slow.mjs"),
      `import { runChild } from "./setup/child.mjs";
import { runSetup } from "./setup/setup-error.mjs";
await runSetup(() => runChild({ ...${JSON.stringify(slow)}, onOutput() {} }));`,
    );
    const { code, errors } = await runScript(["slow.mjs"]);
    expect(errors).toContain("the helper did not come to its end in 1.5 s");
    expect(code).toBe(1);
    expect(existsSync(slow.recordPath)).toBe(false);
  });
});
