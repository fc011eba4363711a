/** Module texts over the compiled product, run as processes of their own. */
import { afterAll, afterEach, beforeAll } from "@jest/globals";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compiledFolder } from "../../../helpers/services/services.js";

/** Contract: children whose supervisor was killed end within 5 s. */
export const ORPHAN_LIMIT_MS = 5_000;

/** A process, and what it has written. */
export interface Run {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly errors: () => string;
  readonly ended: Promise<readonly [number | null, NodeJS.Signals | null]>;
}

/** Runs module texts; what still runs of them behind a test is killed. */
export function probesForTests() {
  let folder: string;
  let scriptFolder: string;
  let scripts = 0;
  const children: ChildProcess[] = [];

  beforeAll(async () => {
    folder = await compiledFolder();
    scriptFolder = mkdtempSync(join(tmpdir(), "causeway-probes-"));
  });

  afterAll(() => {
    rmSync(scriptFolder, { recursive: true });
  });

  afterEach(() => {
    for (const child of children.splice(0)) {
      child.kill("SIGKILL");
    }
  });

  /** Runs a module text as a process of its own. */
  function run(
    source: string,
    options: {
      args?: string[];
      env?: Record<string, string>;
      ipc?: boolean;
      /** Descriptor that takes its output; else a pipe. */
      stdout?: number;
    } = {},
  ): Run {
    scripts += 1;
    const path = join(scriptFolder, `probe-${scripts}.mjs`);
    writeFileSync(path, source);
    const child = spawn(process.execPath, [path, ...(options.args ?? [])], {
      env: { PATH: process.env["PATH"], ...options.env },
      stdio: [
        "pipe",
        options.stdout ?? "pipe",
        "pipe",
        ...(options.ipc === true ? (["ipc"] as const) : []),
      ],
    });
    children.push(child);
    let output = "";
    let errors = "";
    child.stdout?.on("data", (chunk) => {
      output += String(chunk);
    });
    child.stderr?.on("data", (chunk) => {
      errors += String(chunk);
    });
    // Node never reports "close" once the parent has disconnected the IPC channel; behind "exit" alone what
    // was written may still be on the way.
    const streams = [child.stdout, child.stderr].flatMap((stream) => stream ?? []);
    const ended = Promise.all([
      once(child, "exit"),
      ...streams.map((stream) => once(stream, "close")),
    ]).then(([[code, signal]]) => [code, signal] as [number | null, NodeJS.Signals | null]);
    return { child, output: () => output, errors: () => errors, ended };
  }

  return {
    /** Where the compiled product lies. */
    get folder() {
      return folder;
    },
    /** Where the texts are written, and what they need beside them. */
    get scriptFolder() {
      return scriptFolder;
    },
    run,
  };
}
