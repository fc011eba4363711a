/** Takes the run's place on the machine, and starts the helper process that gives tests a PostgreSQL and a compiled tree when they ask. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { leaveOutSettings } from "../../../bin/testing/environment.mjs";
import { claimRun } from "../../../bin/testing/test-ports.mjs";

const SCRIPT = fileURLToPath(new URL("./test-services.mjs", import.meta.url));

export default async function globalSetup() {
  // Also where somebody starts jest without `npm test`.
  leaveOutSettings();
  process.env.CAUSEWAY_TEST_RUN = String(await claimRun());
  // Its stdin is the leash: when this process ends for any reason, the helper cleans up.
  const helper = spawn(process.execPath, [SCRIPT], {
    detached: true,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const [line] = await once(helper.stdout, "data");
  process.env.CAUSEWAY_TEST_SERVICES = String(line).trim();
  helper.unref();
  helper.stdin.unref();
  helper.stdout.unref();
  globalThis.causewayTestServices = helper;
}
