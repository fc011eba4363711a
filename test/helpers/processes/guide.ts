/** Chapters of the guide, run as they stand: their files laid out in a folder, and started there. */
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";

const ROOT = process.cwd();

/** Whether this machine lets us leave its network; `ip` brings up the namespace's loopback. */
export const CAN_ISOLATE =
  spawnSync("unshare", ["-rn", "ip", "link", "set", "lo", "up"], { stdio: "ignore" }).status === 0;

/** Temporary folders of one test file. */
export interface TemporaryFolders {
  /** Makes one. */
  make(name: string): string;
  removeAll(): void;
}

/** Begins a list of folders. */
export function temporaryFolders(): TemporaryFolders {
  const folders: string[] = [];
  return {
    make(name) {
      const folder = fs.mkdtempSync(path.join(os.tmpdir(), `causeway-${name}-`));
      folders.push(folder);
      return folder;
    },
    removeAll() {
      // Who was killed just now may still end a file.
      const removal = { recursive: true, force: true, maxRetries: 20 };
      for (const folder of folders) fs.rmSync(folder, removal);
    },
  };
}

/** Files of a chapter by name: fenced blocks whose info string ends in one. */
export function guideFiles(chapter: string): Map<string, string> {
  const text = fs.readFileSync(path.join(ROOT, "docs", "guide", chapter), "utf8");
  const blocks = text.matchAll(/^```\w+ (\S+)\n([\s\S]*?)^```$/gm);
  return new Map([...blocks].map(([, name = "", file = ""]) => [name, file]));
}

/** Writes files into a folder in which the packages of the clone are found. */
export function layOut(folder: string, files: ReadonlyMap<string, string>): void {
  for (const [name, text] of files) fs.writeFileSync(path.join(folder, name), text);
  fs.symlinkSync(path.join(ROOT, "node_modules"), path.join(folder, "node_modules"));
}

/** The command in a network namespace without interfaces, where there are namespaces. */
export function withoutNetwork(command: readonly string[]): readonly string[] {
  if (!CAN_ISOLATE) return command;
  return ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", ...command];
}

/** What a program of the guide came to. */
export interface GuideRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command in a folder. */
export async function runCommand(
  command: readonly string[],
  folder: string,
  env: Readonly<Record<string, string>>,
): Promise<GuideRun> {
  const [file = "", ...args] = command;
  const child = spawn(file, args, {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  return { code, stdout, stderr };
}

/** What a command printed; one that fails throws all of its output. */
export async function outputOf(
  command: readonly string[],
  folder: string,
  env: Readonly<Record<string, string>>,
): Promise<string> {
  const { code, stdout, stderr } = await runCommand(command, folder, env);
  if (code !== 0) throw new Error(`${command.at(-1)} ended with ${code}\n${stdout}${stderr}`);
  return stdout;
}
