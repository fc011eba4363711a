/** The programs beside `npm test`, as somebody types them who does not know their flags. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";

/** Runs a program of `bin/`. */
function run(program: string, ...words: string[]) {
  return new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
    execFile(process.execPath, [join("bin", program), ...words], (error, stdout, stderr) => {
      resolve({ code: Number(error?.code ?? 0), stdout, stderr });
    });
  });
}

describe.each(["soak.mjs", "faults.mjs"])("bin/%s", (program) => {
  it.each([
    [["--bogus"], "causeway: Unknown option '--bogus'"],
    [["--seed", "x"], 'causeway: --seed is a whole number from 1 on, not "x"'],
  ])("tells of %j what there is, and runs nothing", async (words, sentence) => {
    const { code, stdout, stderr } = await run(program, ...words);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr.startsWith(`${sentence}\n\nUsage: npm run test:`)).toBe(true);
  });
});

it.each(["test.mjs", "soak.mjs", "faults.mjs"])("bin/%s shows its usage", async (program) => {
  const { code, stdout, stderr } = await run(program, "--help");
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout.startsWith("Usage: npm ")).toBe(true);
});
