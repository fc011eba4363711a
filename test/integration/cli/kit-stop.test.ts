/** A kit whose every process hangs is gone all the same; that it is in time, the kit holds itself to. */
import { expect, it } from "@jest/globals";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { present } from "../../../chain/errors.js";
import { createHomeFolders, homePaths } from "../../../cli/home/home.js";
import { readPostmasterFile } from "../../../cli/postgres/survivor.js";
import { createKit, kitScripts } from "../../../cli/supervisor/kit.js";
import { createChildRecord } from "../../../cli/supervisor/orphans.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { EMBEDDED_POSTGRES_PORT } from "../../../runtime/config/service-urls.js";
import { startGuardian } from "../../../runtime/process/guardian.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { identifyProcess } from "../../../runtime/process/process-identity.js";
import { freePort } from "../../helpers/ports.js";

/** Is ready, and hears no SIGTERM. */
const DEAF = `
  process.on("SIGTERM", () => undefined);
  process.on("disconnect", () => process.exit(0));
  process.send({ ready: true });
  setInterval(() => undefined, 1000);
`;

it("is gone after its stop, the database included, although all of it hangs", async () => {
  const folder = mkdtempSync(join(tmpdir(), "causeway-kit-stop-"));
  // mkdtemp closes the folder; the server's account must pass through it.
  chmodSync(folder, 0o711);
  const paths = homePaths(join(folder, "home"));
  await createHomeFolders(paths);
  const deaf = join(folder, "deaf.mjs");
  writeFileSync(deaf, DEAF);
  const log = createLogger({ component: "test", level: "silent" });
  const guardian = startGuardian({ log });
  const lost = new AbortController().signal;
  const children = createChildRecord(paths.children, lost);
  const pids = new Set<number>();
  const kit = createKit({
    paths,
    nodes: [{ name: "node", home: paths.home, portStep: 0 }],
    portOffset: (await freePort()) - EMBEDDED_POSTGRES_PORT,
    env: { ...process.env, DATABASE_URL: "" },
    guardian,
    children: {
      ...children,
      add(name, pid) {
        pids.add(pid);
        children.add(name, pid);
      },
    },
    clock: systemClock,
    log,
    signal: new AbortController().signal,
    lost,
    isPatient: false,
    print: () => undefined,
    onFatal: () => undefined,
    scripts: {
      node: deaf,
      "sidecar-online": deaf,
      "sidecar-offline": deaf,
      "deposit-watcher": deaf,
      "withdrawal-worker": deaf,
      treasury: deaf,
      indexer: deaf,
      explorer: deaf,
      console: deaf,
    },
  });
  try {
    await kit.start();
    const server = present(readPostmasterFile(join(paths.data, "postgres")), "the server");
    pids.add(server.pid);
    process.kill(server.pid, "SIGSTOP");
    await kit.stop();
    expect([...pids].filter((pid) => identifyProcess(pid) !== undefined)).toEqual([]);
    expect(pids.size).toBe(Object.keys(kitScripts()).length + 1);
  } finally {
    guardian.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
