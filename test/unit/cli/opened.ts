/** What tests of commands open, ended behind each of them. */
import { afterEach } from "@jest/globals";
import { mkdtempSync, rmSync } from "node:fs";
import type { AddressInfo, Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What is done behind the test, the last first. */
export const closers: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

/** A folder that is gone behind the test. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "causeway-output-"));
  closers.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A server on any port. @returns the port */
export async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return (server.address() as AddressInfo).port;
}
