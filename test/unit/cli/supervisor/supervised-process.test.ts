import { describe, expect, it } from "@jest/globals";
import { present } from "../../../../chain/errors.js";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogFile } from "../../../../cli/supervisor/log-file.js";
import { NODE_ENVIRONMENT, NODE_FLAGS, runOf } from "../../../../cli/home/network/kit-nodes.js";
import {
  createSupervisedProcess,
  MAX_QUICK_DEATHS,
  type ProcessEvents,
  type SupervisedProcess,
} from "../../../../cli/supervisor/supervised-process.js";
import { until } from "../../../helpers/until.js";
import { systemClock } from "../../../../runtime/process/clock.js";

const fixtures = new URL("../../../fixtures/cli/", import.meta.url).pathname;

interface Seen {
  readonly spawned: number[];
  readonly ended: number[];
  readonly busy: string[];
  readonly restarts: string[];
  readonly gaveUp: string[];
  readonly finished: string[];
}

function supervise(
  script: string,
  options: {
    readonly readyTimeoutMs?: number;
    readonly env?: NodeJS.ProcessEnv;
    readonly flags?: readonly string[];
    readonly name?: string;
    readonly startFault?: () => string | undefined;
    readonly onRestarting?: () => void;
  } = {},
): { child: SupervisedProcess; seen: Seen; folder: string; changed: () => Promise<void> } {
  const folder = mkdtempSync(join(tmpdir(), "causeway-child-"));
  const seen: Seen = {
    spawned: [],
    ended: [],
    busy: [],
    restarts: [],
    gaveUp: [],
    finished: [],
  };
  let wake: (() => void)[] = [];
  const notify = (): void => {
    for (const call of wake) call();
    wake = [];
  };
  const events: ProcessEvents = {
    spawned: (_name, pid) => {
      seen.spawned.push(pid);
      notify();
    },
    ended: (_name, pid) => {
      seen.ended.push(pid);
      notify();
    },
    busy: (_name, reason) => {
      seen.busy.push(reason);
      notify();
    },
    restarting: (_name, reason) => {
      seen.restarts.push(reason);
      options.onRestarting?.();
      notify();
    },
    gaveUp: (error) => {
      seen.gaveUp.push(error.message);
      notify();
    },
    finished: (_name, reason) => {
      seen.finished.push(reason);
      notify();
    },
  };
  const child = createSupervisedProcess(
    {
      name: options.name ?? script,
      program: script,
      script: join(fixtures, `${script}.mjs`),
      flags: options.flags,
      args: [],
      env: { ...process.env, ...options.env },
      // A busy machine may take long to start even the smallest process.
      readyTimeoutMs: options.readyTimeoutMs ?? 240_000,
    },
    {
      log: createLogFile(folder, script),
      events,
      clock: systemClock,
      delays: { firstMs: 5, maxMs: 20 },
      startFault: options.startFault,
    },
  );
  return { child, seen, folder, changed: () => new Promise((resolve) => wake.push(resolve)) };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe("a supervised process", () => {
  const signal = new AbortController().signal;

  it("is started, logged and stopped", async () => {
    const { child, seen, folder } = supervise("ready-child");
    await child.start({ signal });
    expect(child.ready).toBe(true);
    await child.stop({ graceMs: 5_000 });
    expect(child.ready).toBe(false);
    expect(seen.spawned).toHaveLength(1);
    expect(seen.ended).toEqual(seen.spawned);
    expect(isAlive(present(seen.spawned[0], "the process"))).toBe(false);
    expect(readFileSync(join(folder, "ready-child.log"), "utf8")).toContain("ready child is here");
  });

  it("is run with the flags for Node, which a node's command has in package.json too", async () => {
    const { child, folder } = supervise("ready-child", { flags: NODE_FLAGS });
    await child.start({ signal });
    await child.stop({ graceMs: 5_000 });
    const words = `ready child is here ${NODE_FLAGS.join(" ")}`;
    expect(readFileSync(join(folder, "ready-child.log"), "utf8")).toContain(words);
    const manifest = readFileSync(new URL("../../../../package.json", import.meta.url), "utf8");
    const variables = Object.entries(NODE_ENVIRONMENT).map((pair) => pair.join("="));
    const command = [...variables, "exec node", ...NODE_FLAGS, "bin/causeway.mjs"].join(" ");
    expect(manifest).toContain(`"causeway": "${command}"`);
  });

  it("as a node has glibc give large pieces back, unless somebody said otherwise", () => {
    const own = { MALLOC_TRIM_THRESHOLD_: "1" };
    expect(runOf("node", own)).toEqual({
      flags: NODE_FLAGS,
      env: { ...NODE_ENVIRONMENT, MALLOC_TRIM_THRESHOLD_: "1" },
    });
    expect(runOf("explorer", own)).toEqual({ flags: [], env: own });
  });

  it("is started again when it is killed", async () => {
    const { child, seen, changed } = supervise("ready-child");
    await child.start({ signal });
    process.kill(present(seen.spawned[0], "the process"), "SIGKILL");
    while (seen.spawned.length < 2) await changed();
    expect(child.restarts).toBe(1);
    expect(seen.restarts).toEqual(["it was ended by SIGKILL"]);
    await child.stop({ graceMs: 5_000 });
    expect(seen.ended).toHaveLength(2);
  });

  it("is given up after five quick deaths, with its last lines as the reason", async () => {
    const { child, seen } = supervise("dying-child");
    await expect(child.start({ signal })).rejects.toMatchObject({ code: "CHILD_FAILED" });
    expect(seen.spawned).toHaveLength(MAX_QUICK_DEATHS);
    expect(seen.gaveUp).toHaveLength(1);
    expect(seen.gaveUp[0]).toContain("the frobnicator is missing");
    expect(seen.gaveUp[0]).toContain("it ended with code 1");
    await child.stop({ graceMs: 1_000 });
  });

  it("is given up, and ends nothing else, where the system cannot even begin to start it", async () => {
    // As where there is no memory for another process, Node throws what Linux says of so long a variable.
    const { child, seen } = supervise("ready-child", { env: { LONG: "x".repeat(200_000) } });
    await expect(child.start({ signal })).rejects.toMatchObject({
      code: "CHILD_FAILED",
      message: expect.stringContaining("it could not be started (spawn E2BIG)"),
    });
    expect(seen.gaveUp).toHaveLength(1);
    expect(seen.spawned).toEqual([]);
    await child.stop({ graceMs: 100 });
  });

  it("waits for a port on which it served before, and is given up at once for one on which it never did", async () => {
    const folder = mkdtempSync(join(tmpdir(), "causeway-port-"));
    const file = join(folder, "taken");
    const env = { PORT_FILE: file };
    const { child, seen, changed } = supervise("portless-child", { env });
    await child.start({ signal });
    writeFileSync(file, "");
    process.kill(present(seen.spawned[0], "the process"), "SIGKILL");
    while (seen.spawned.length < MAX_QUICK_DEATHS + 3 && seen.gaveUp.length === 0) await changed();
    expect(seen.gaveUp).toEqual([]);
    rmSync(file);
    await until(() => child.ready, { timeoutMs: 20_000 });
    await child.stop({ graceMs: 5_000 });
    writeFileSync(file, "");
    const late = supervise("portless-child", { env });
    await expect(late.child.start({ signal })).rejects.toThrow("port 1 is taken");
    expect(late.seen.spawned).toHaveLength(MAX_QUICK_DEATHS);
    await late.child.stop({ graceMs: 5_000 });
    rmSync(folder, { recursive: true });
  });

  it("is not started again once its work is done", async () => {
    const { child, seen, changed } = supervise("finishing-child");
    await child.start({ signal });
    process.kill(present(seen.spawned[0], "the child"), "SIGUSR2");
    while (seen.finished.length === 0 && seen.restarts.length === 0) await changed();
    await child.stop({ graceMs: 5_000 });
    expect(seen).toMatchObject({ finished: ["all is done"], restarts: [], gaveUp: [] });
    expect(seen.ended).toEqual(seen.spawned);
    expect(child.ready).toBe(false);
  });

  it("is not ready, and says why, where its work was done before", async () => {
    const { child, seen } = supervise("finishing-child", { env: { AT_ONCE: "1" } });
    await expect(child.start({ signal })).rejects.toMatchObject({
      code: "CHILD_FAILED",
      message: expect.stringContaining("all is done"),
    });
    await child.stop({ graceMs: 5_000 });
    expect(seen.spawned).toHaveLength(1);
    expect(seen.gaveUp).toEqual([]);
  });

  it("is not started again where something came up against it in the wait", async () => {
    let fault: string | undefined;
    const { child, seen, changed } = supervise("ready-child", {
      startFault: () => fault,
      onRestarting: () => {
        fault = "it is another release's by now";
      },
    });
    await child.start({ signal });
    process.kill(present(seen.spawned[0], "the process"), "SIGKILL");
    while (seen.gaveUp.length === 0 && seen.spawned.length < 2) await changed();
    await child.stop({ graceMs: 5_000 });
    expect(seen.gaveUp).toEqual([
      "ready-child: it was ended by SIGKILL, and it is another release's by now.",
    ]);
    expect(seen.spawned).toHaveLength(1);
  });

  it("is not even started for the first time where something is against it", async () => {
    const { child, seen } = supervise("ready-child", { startFault: () => "it is another's" });
    await expect(child.start({ signal })).rejects.toThrow("ready-child: it is another's.");
    await child.stop({ graceMs: 100 });
    expect(seen).toMatchObject({ spawned: [], gaveUp: ["ready-child: it is another's."] });
  });

  it("is killed when it does not end in time", async () => {
    const { child, seen } = supervise("deaf-child");
    await child.start({ signal });
    await child.stop({ graceMs: 100 });
    expect(isAlive(present(seen.spawned[0], "the process"))).toBe(false);
    expect(seen.restarts).toEqual([]);
  });

  it("tells every line of its last words, and nothing of its log", async () => {
    const { child, seen } = supervise("refusing-child");
    await expect(child.start({ signal })).rejects.toThrow("settings are wrong");
    const [message = ""] = seen.gaveUp;
    const faults = Array.from({ length: 60 }, (_, n) => `app.toml: key-${n} = "x" (allowed: y)`);
    expect(faults.filter((line) => !message.includes(line))).toEqual([]);
    expect(message.split("\n")).toHaveLength(61);
    expect(message).not.toContain("stopping");
    // Before each further start, too: why it was needed, in a line.
    expect(seen.restarts).toEqual(
      Array.from({ length: 4 }, () => "it ended with code 1: settings are wrong"),
    );
  });

  it("tells its last words where others run the same program under other names", async () => {
    const { child, seen } = supervise("refusing-child", { name: "refusing-child3" });
    await expect(child.start({ signal })).rejects.toThrow(
      "refusing-child3 died 5 times in a row (it ended with code 1): settings are wrong",
    );
    expect(seen.restarts[0]).toBe("it ended with code 1: settings are wrong");
  });

  it("tells no words of a former life", async () => {
    const folder = mkdtempSync(join(tmpdir(), "causeway-words-"));
    const file = join(folder, "taken");
    writeFileSync(file, "");
    const { child, seen, changed } = supervise("portless-child", { env: { PORT_FILE: file } });
    const started = child.start({ signal });
    while (seen.restarts.length === 0) await changed();
    expect(seen.restarts[0]).toContain("port 1 is taken");
    rmSync(file);
    await started;
    process.kill(present(seen.spawned.at(-1), "the process"), "SIGKILL");
    const told = seen.restarts.length;
    while (seen.restarts.length === told) await changed();
    expect(seen.restarts.at(-1)).toBe("it was ended by SIGKILL");
    await child.stop({ graceMs: 5_000 });
    rmSync(folder, { recursive: true });
  });

  it("is killed and started again when it never gets ready", async () => {
    const { child, seen } = supervise("silent-child", { readyTimeoutMs: 50 });
    await expect(child.start({ signal })).rejects.toThrow("not ready within 0.05 s");
    expect(seen.spawned.map(isAlive)).toEqual(seen.spawned.map(() => false));
    await child.stop({ graceMs: 100 });
  });

  it("is not killed behind its time where it says that its start takes long, and why", async () => {
    // A busy machine may take longer to come to where it says so: such a one is killed rightly.
    for (let readyTimeoutMs = 3_000; ; readyTimeoutMs *= 2) {
      const env = { READY_AFTER_MS: `${readyTimeoutMs + 1_000}` };
      const { child, seen, changed } = supervise("busy-child", { readyTimeoutMs, env });
      const restarted = async () => {
        while (seen.restarts.length === 0) await changed();
      };
      await Promise.race([child.start({ signal }), restarted()]);
      await child.stop({ graceMs: 5_000 });
      if (seen.restarts.length > 0 && readyTimeoutMs < 60_000) continue;
      const busy = ["moves its tables"];
      expect(seen).toMatchObject({ spawned: [expect.any(Number)], busy, restarts: [] });
      return;
    }
  });

  it("stops waiting for readiness when the start is aborted", async () => {
    const controller = new AbortController();
    const { child, seen } = supervise("silent-child");
    const started = child.start({ signal: controller.signal });
    controller.abort(new Error("stop pressed"));
    await expect(started).rejects.toThrow("stop pressed");
    await child.stop({ graceMs: 100 });
    expect(seen.spawned.map(isAlive)).toEqual([false]);
  });
});
