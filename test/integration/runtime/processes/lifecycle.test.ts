/**
 * The life of a process: how it starts, is stopped, fails, and hears of its supervisor's end; and
 * failpoints.
 */
import { once } from "node:events";
import { closeSync, mkdirSync, mkdtempSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { endedBy, endOf } from "../../../helpers/processes/endings.js";
import { until } from "../../../helpers/until.js";
import { ORPHAN_LIMIT_MS, probesForTests, type Run } from "./probe.js";

const probes = probesForTests();
const { run } = probes;

const lifecycle = (start: string) => `
  import { runProcess } from ${JSON.stringify(`${probes.folder}/runtime/process/lifecycle.js`)};
  const service = (name, stop) => ({ name, stop: stop ?? (async () => console.log("stopped " + name)) });
  runProcess({ name: "probe", start: ${start} });
`;
const isReady = (process: Run) => () => process.output().includes('"ready":true');

describe("runProcess", () => {
  it.each(["SIGTERM", "SIGINT"] as const)(
    "says that it is ready, stops its services in reverse order on %s and exits 0",
    async (signal) => {
      const probe = run(
        lifecycle(`async ({ home, portOffset }) => {
          console.log(home, portOffset);
          return [service("database"), service("api")];
        }`),
        { args: ["--home", "/tmp/some-home", "--port-offset", "40"] },
      );
      await until(isReady(probe), { timeoutMs: 10_000 });
      expect(probe.output()).toContain("/tmp/some-home 40");
      expect(probe.output()).toContain('{"ready":true,"name":"probe"}');
      probe.child.kill(signal);
      expect(await endOf(probe)).toEqual(endedBy([0, null]));
      expect(probe.output()).toMatch(/stopping[^]*stopped api[^]*stopped database/);
    },
  );

  it.each([
    ["beneath npm, which passes the terminal's own on", { npm_lifecycle_event: "causeway" }, 2],
    ["from a terminal", {}, 1],
  ])("takes a Ctrl-C for one and ends at once by the next, %s", async (_how, env, signals) => {
    const probe = run(
      `${lifecycle(`async () => [service("slow", () => new Promise(() => {}))]`)}
        process.on("SIGINT", () => console.log("heard"));`,
      { env },
    );
    await until(isReady(probe), { timeoutMs: 10_000 });
    for (let sent = 1; sent <= signals; sent += 1) {
      probe.child.kill("SIGINT");
      const isHeard = () => probe.output().split("heard").length > sent;
      await until(() => isHeard() || probe.child.exitCode !== null, { timeoutMs: 10_000 });
    }
    expect(probe.child.exitCode).toBeNull();
    expect(probe.output()).toContain('"reason":"SIGINT"');
    probe.child.kill("SIGINT");
    expect(await endOf(probe)).toEqual(endedBy([1, null]));
    expect(probe.output()).not.toContain("stop took too long");
  });

  it.each([true, false])(
    "works on while its log lies on a full disk, and stops in order (IPC: %s)",
    async (ipc) => {
      const disk = openSync("/dev/full", "w");
      const probe = run(
        lifecycle(`async ({ log }) => {
          const say = (line) => process.stderr.write(line + "\\n");
          for (let line = 0; line < 3; line += 1) log.info({ line }, "nobody reads this");
          setImmediate(() => say("serving"));
          return [service("api", async () => say("stopped api"))];
        }`),
        { ipc, stdout: disk },
      );
      closeSync(disk);
      await until(() => /serving|probe:/.test(probe.errors()), { timeoutMs: 10_000 });
      probe.child.kill("SIGTERM");
      expect(await endOf(probe)).toEqual(endedBy([0, null]));
      expect(probe.errors()).toBe("serving\nstopped api\n");
    },
  );

  it("exits 1 with one sentence when the start fails", async () => {
    const probe = run(lifecycle(`async () => { throw new Error("port 8082 is taken"); }`));
    expect(await endOf(probe)).toEqual(endedBy([1, null]));
    expect(probe.errors()).toBe("probe: port 8082 is taken\n");
  });

  it("tells its supervisor that its start takes long, that its work is done, and exits 0", async () => {
    const probe = run(
      lifecycle(`async ({ busy, finish }) => {
        busy("moves its tables");
        process.once("SIGUSR2", () => finish("nothing is left to do"));
        return [service("api")];
      }`),
      { ipc: true },
    );
    const messages: unknown[] = [];
    probe.child.on("message", (message) => messages.push(message));
    await until(() => messages.length > 1, { timeoutMs: 10_000 });
    probe.child.kill("SIGUSR2");
    expect(await endOf(probe)).toEqual(endedBy([0, null]));
    await until(() => !probe.child.connected, { timeoutMs: 10_000 });
    expect(messages).toEqual([
      { busy: true, name: "probe", reason: "moves its tables" },
      { ready: true, name: "probe" },
      { finished: true, name: "probe", reason: "nothing is left to do" },
    ]);
    expect(probe.output()).toContain("stopped api");
  });

  it("tells its supervisor when a port is taken, and people what to do", async () => {
    const start = `async () => {
      throw Object.assign(new Error("port 8082 is taken"), { code: "PORT_TAKEN" });
    }`;
    const probe = run(lifecycle(start), { ipc: true });
    const told: unknown[] = [];
    probe.child.on("message", (message) => told.push(message));
    expect(await endOf(probe)).toEqual(endedBy([1, null]));
    await until(() => !probe.child.connected, { timeoutMs: 10_000 });
    expect(told).toEqual([{ portTaken: true, name: "probe" }]);
    expect(probe.errors()).toBe(
      "probe: port 8082 is taken. Free the port or use --port-offset N.\n",
    );
  });

  it.each([["--port-offset", "x"], ["--port-offset", "99999"], ["--colour"]])(
    "refuses the arguments %s %s",
    async (...args) => {
      const probe = run(lifecycle("async () => []"), { args });
      expect(await endOf(probe)).toEqual(endedBy([1, null]));
      expect(probe.errors().trim().split("\n")).toHaveLength(1);
      expect(probe.output()).not.toContain("ready");
    },
  );

  it("stops its services and exits 1 after a fault in the background", async () => {
    const probe = run(
      lifecycle(`async ({ fatal }) => {
        setTimeout(() => fatal(new Error("books do not balance")), 20);
        return [service("api")];
      }`),
    );
    expect(await endOf(probe)).toEqual(endedBy([1, null]));
    expect(probe.output()).toContain("stopped api");
    expect(probe.output()).toContain("books do not balance");
  });

  it("treats a rejection that nobody handles as a fault", async () => {
    const probe = run(
      lifecycle(`async () => {
        setTimeout(() => void Promise.reject(new Error("forgotten")), 20);
        return [service("api")];
      }`),
    );
    expect(await endOf(probe)).toEqual(endedBy([1, null]));
    expect(probe.output()).toContain("forgotten");
  });

  it("is interrupted while it still starts", async () => {
    const probe = run(
      lifecycle(`({ signal }) => new Promise((resolve, reject) => {
        console.log("starting");
        const timer = setInterval(() => {}, 1000);
        signal.addEventListener("abort", () => { clearInterval(timer); reject(signal.reason); });
      })`),
    );
    await until(() => probe.output().includes("starting"), { timeoutMs: 10_000 });
    probe.child.kill("SIGTERM");
    expect(await endOf(probe)).toEqual(endedBy([0, null]));
    expect(probe.errors()).toBe("");
  });

  it("sets itself a deadline when a service never stops", async () => {
    const probe = run(
      lifecycle(`async () => {
        setInterval(() => {}, 1000);
        return [service("stuck", () => new Promise(() => {}))];
      }`),
      { ipc: true, env: { CAUSEWAY_SUPERVISED: "1" } },
    );
    const told = await Promise.race([once(probe.child, "message"), endOf(probe)]);
    expect(told).toEqual([{ ready: true, name: "probe" }, undefined]);
    // The shorter of the two deadlines, that of an orphan, keeps this test short.
    probe.child.disconnect();
    expect(await endOf(probe)).toEqual(endedBy([1, null]));
    const [, deadlineMs] = /"deadlineMs":(\d+).*stop took too long/.exec(probe.output()) ?? [];
    expect(Number(deadlineMs)).toBeLessThan(ORPHAN_LIMIT_MS);
  });

  it.each([
    ["withdrawal-worker/main.js", "worker.toml", ["--port-offset", "much"]],
    ["explorer/main.js", "explorer.toml", ["--bogus"]],
  ])("of %s tells all wrong settings at once", async (entry, file, args) => {
    const home = mkdtempSync(join(probes.scriptFolder, "home-"));
    mkdirSync(join(home, "config"));
    writeFileSync(join(home, "config", file), "unheard-of = 1\n");
    writeFileSync(join(home, "config", "tokens.json"), '[{"symbol":1}]');
    const probe = run(`await import(${JSON.stringify(`${probes.folder}/${entry}`)});`, {
      args: ["--home", home, ...args],
      env: { CAUSEWAY_LOG_LEVEL: "verbose" },
    });
    expect(await probe.ended).toEqual([1, null]);
    for (const name of [args[0], "unheard-of", "tokens.json: [0]", "CAUSEWAY_LOG_LEVEL"]) {
      expect(probe.errors()).toContain(name);
    }
    const files = run(`await import(${JSON.stringify(`${probes.folder}/${entry}`)});`, {
      args: ["--home", home],
    });
    expect(await files.ended).toEqual([1, null]);
    for (const name of ["unheard-of", "tokens.json: [0]"]) expect(files.errors()).toContain(name);
  });

  it("ends when its supervisor's pipe closes, without IPC", async () => {
    const probe = run(lifecycle(`async () => { setInterval(() => {}, 1000); return []; }`), {
      env: { CAUSEWAY_SUPERVISED: "1" },
    });
    await until(isReady(probe), { timeoutMs: 10_000 });
    probe.child.stdin?.end();
    expect(await endOf(probe)).toEqual(endedBy([0, null]));
  });

  it("ends when its supervisor was gone before it listened", async () => {
    const loading = `while (process.connected) await new Promise(setImmediate);
      const { runProcess } = await import(${JSON.stringify(`${probes.folder}/runtime/process/lifecycle.js`)});
      runProcess({ name: "probe", start: async () => { console.log("started"); return []; } });`;
    const probe = run(loading, { ipc: true, env: { CAUSEWAY_SUPERVISED: "1" } });
    probe.child.disconnect();
    expect(await endOf(probe)).toEqual(endedBy([0, null]));
    expect(probe.output()).not.toContain("started");
    expect(probe.output()).toContain('"reason":"supervisor died"');
  });

  it("outlives a closed stdin when nobody supervises it", async () => {
    const probe = run(lifecycle(`async () => { setInterval(() => {}, 1000); return []; }`));
    await until(isReady(probe), { timeoutMs: 10_000 });
    probe.child.stdin?.end();
    probe.child.kill("SIGTERM");
    expect(await endOf(probe)).toEqual(endedBy([0, null]));
    expect(probe.output()).toContain('"reason":"SIGTERM"');
  });
});

/** Passes two failpoints four times and prints how far it got. */
const program = () => `
  import { failpoint } from ${JSON.stringify(`${probes.folder}/runtime/process/failpoint.js`)};
  for (let hit = 1; hit <= 4; hit += 1) {
    failpoint("other.place");
    failpoint("probe.after-commit");
    process.stdout.write(String(hit));
  }
`;

describe("failpoint", () => {
  it.each([
    ["", "1234", null],
    ["probe.after-commit", "", "SIGKILL"],
    ["probe.after-commit:3", "12", "SIGKILL"],
    ["probe.after", "1234", null],
    ["probe.after-commit:x", "1234", null],
  ])("armed with %j lets the process get as far as %j", async (armed, output, signal) => {
    const probe = run(program(), { env: { CAUSEWAY_FAILPOINT: armed } });
    const [, endSignal] = await probe.ended;
    expect(endSignal).toBe(signal);
    expect(probe.output()).toBe(output);
  });
});
