/** Ends of processes, told beside what they said: where a test wanted something else, both are seen. */
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
