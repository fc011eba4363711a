/** Ends the helper process and waits until its server and folders are gone. */
import { once } from "node:events";

export default async function globalTeardown() {
  const helper = globalThis.causewayTestServices;
  if (helper === undefined || helper.exitCode !== null) {
    return;
  }
  helper.ref();
  const ended = once(helper, "exit");
  helper.stdin.end();
  await ended;
}
