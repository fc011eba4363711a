/** A folder with the programs of `bin/` in which nothing is installed or built: what they start is a test's own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

/** A program of such a folder that runs. */
export interface BinProgram {
  readonly process: ChildProcess;
  /** Its code or signal, and all that it wrote. */
  readonly ended: Promise<{
    readonly code: number | string;
    readonly output: string;
    readonly errors: string;
  }>;
}

/** The folder. */
export interface BinClone {
  readonly folder: string;
  /** Writes a file below it. */
  write(path: string, text: string): void;
  /** Starts a program of its `bin/`, which sees PATH and these variables alone. */
  start(words: readonly string[], env?: Readonly<Record<string, string>>): BinProgram;
  remove(): void;
}

/** Makes one in which `jest` is the text of the program that stands for jest. */
export function createBinClone(jest: string): BinClone {
  const folder = mkdtempSync(join(tmpdir(), "causeway-bin-"));
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  for (const path of ["bin", "cli/home/test-variables.mjs"]) {
    cpSync(resolve(path), join(folder, path), { recursive: true });
  }
  write("package.json", '{"type":"module"}');
  write("bin/setup/prepare.mjs", "export const prepare = async () => undefined;");
  write("node_modules/jest/bin/jest.js", jest);
  return {
    folder,
    write,
    start([program = "", ...words], env = {}) {
      const child = spawn(process.execPath, [join(folder, "bin", program), ...words], {
        env: { PATH: process.env["PATH"], ...env },
        stdio: ["ignore", "pipe", "pipe"],
      });
      let [output, errors] = ["", ""];
      child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
      child.stderr.on("data", (chunk: Buffer) => (errors += chunk.toString()));
      const ended = once(child, "close").then(([code, signal]: unknown[]) => ({
        code: typeof code === "number" ? code : String(signal),
        output,
        errors,
      }));
      return { process: child, ended };
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
