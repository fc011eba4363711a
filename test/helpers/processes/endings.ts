/** Ends of processes, told beside what they said: where a test wanted something else, both are seen. */
import type { ChildProcess } from "node:child_process";
import { expect } from "@jest/globals";

/** Lines that are told. */
const SAID_LINES = 20;

/** A process whose output is collected. */
interface Collected<T> {
  readonly ended: Promise<T>;
  output(): string;
  errors?(): string;
}

/** How a process has ended, and its last lines, all in one. */
export async function endOf<T>(process: Collected<T>): Promise<{ ended: T; said: string }> {
  const ended = await process.ended;
  const lines = `${process.output()}\n${process.errors?.() ?? ""}`.trim().split("\n");
  return { ended, said: lines.slice(-SAID_LINES).join(" | ") };
}

/** What `endOf` is to be: this end, whatever was said. */
export function endedBy<T>(ended: T): { readonly ended: T; readonly said: unknown } {
  return { ended, said: expect.any(String) };
}

/**
 * What a child writes first to its standard output. Throws how it ended, and what it wrote to its standard
 * error, where that comes before.
 */
export function firstWords(child: ChildProcess): Promise<string> {
  let errors = "";
  child.stderr?.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  return new Promise((resolve, reject) => {
    child.stdout?.once("data", (chunk: Buffer) => resolve(chunk.toString()));
    child.once("error", reject);
    child.once("close", (code, signal) => {
      reject(new Error(`it ended (${signal ?? code}) and had said nothing\n${errors}`));
    });
  });
}
