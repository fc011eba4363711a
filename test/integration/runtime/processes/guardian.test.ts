/** Guardians: the children of a killed supervisor end, and nobody else does. */
import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "@jest/globals";
import {
  childrenOf,
  identifyProcess,
  isRunning,
  type ProcessIdentity,
  signalProcess,
} from "../../../../runtime/process/process-identity.js";
import { endedBy, endOf } from "../../../helpers/processes/endings.js";
import { until } from "../../../helpers/until.js";
import { ORPHAN_LIMIT_MS, probesForTests, type Run } from "./probe.js";

const probes = probesForTests();
const { run } = probes;

/** A supervisor with one obedient and one deaf child; prints their process ids. */
const supervisor = (end: string) => `
  import { spawn } from "node:child_process";
  import { startGuardian } from ${JSON.stringify(`${probes.folder}/runtime/process/guardian.js`)};
  import { createLogger } from ${JSON.stringify(`${probes.folder}/runtime/process/logger.js`)};
  const guardian = startGuardian({ log: createLogger({ component: "t", level: "silent" }) });
  const start = (source) => {
    const child = spawn(process.execPath, ["-e", source + "; setInterval(() => {}, 1000)"],
      { stdio: "ignore", detached: true });
    guardian.watch({ pid: child.pid });
    return child;
  };
  const obedient = start("");
  const deaf = start("process.on('SIGTERM', () => {})");
  const released = start("");
  guardian.forget(released.pid);
  console.log(JSON.stringify([obedient.pid, deaf.pid, released.pid]));
  ${end}
`;

async function pidsOf(process: Run): Promise<number[]> {
  const isTold = () => process.output().endsWith("\n") || process.child.exitCode !== null;
  await until(isTold, { timeoutMs: 10_000 });
  expect(process.errors()).toBe("");
  return JSON.parse(process.output()) as number[];
}

describe("guardian", () => {
  const orphans: ProcessIdentity[] = [];

  afterEach(() => {
    for (const orphan of orphans.splice(0)) signalProcess(orphan, "SIGKILL");
  });

  it("ends the children of a killed supervisor within 5 s, deaf ones too, others never", async () => {
    const parent = run(supervisor("setInterval(() => {}, 1000);"));
    const identities = (await pidsOf(parent)).map(identifyProcess);
    const [obedient, deaf, released] = identities;
    expect(identities).not.toContain(undefined);
    parent.child.kill("SIGKILL");
    const isGone = (identity: typeof obedient) => identity === undefined || !isRunning(identity);
    await until(() => isGone(obedient) && isGone(deaf), { timeoutMs: ORPHAN_LIMIT_MS });
    expect(released !== undefined && isRunning(released)).toBe(true);
    expect(released !== undefined && signalProcess(released, "SIGKILL")).toBe(true);
  });

  /** A supervisor whose guardian cannot be started until it is told so; prints its child's process id. */
  const supervisorWithout = (begin: string, end: string) => `
    import { spawn } from "node:child_process";
    import { closeSync, openSync, writeSync } from "node:fs";
    import { startGuardian } from ${JSON.stringify(`${probes.folder}/runtime/process/guardian.js`)};
    import { createLogger } from ${JSON.stringify(`${probes.folder}/runtime/process/logger.js`)};
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"],
      { stdio: "ignore", detached: true });
    const log = createLogger({ component: "t", level: "silent" });
    const { execPath } = process;
    const { stdin } = process;
    const open = [];
    console.log(JSON.stringify([child.pid]));
    ${begin}
    const guardian = startGuardian({ log, retryDelays: { firstMs: 5, maxMs: 20 } });
    guardian.watch({ pid: child.pid });
    stdin.once("data", () => { ${end} });
    setInterval(() => {}, 1000);
  `;
  const childOf = async (parent: Run) => {
    const [identity] = (await pidsOf(parent)).map(identifyProcess);
    if (identity === undefined) throw new Error("the child does not run");
    orphans.push(identity);
    return identity;
  };
  const guardiansOf = (parent: Run, child: ProcessIdentity) => {
    // Its end is the first fault, and the last word on it.
    expect([parent.child.exitCode, parent.errors()]).toEqual([null, ""]);
    return childrenOf(parent.child.pid ?? 0).filter(
      ({ pid }) => pid !== child.pid && hasBecome(pid, "guardian-main"),
    );
  };
  /** Until a program runs in it a new process is still called as its parent, also where none can be run. */
  const hasBecome = (pid: number, script: string) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(script);
    } catch {
      return false; // Ended in between.
    }
  };
  const renamed = (name: string) => [
    `process.execPath = ${JSON.stringify(name)};`,
    "process.execPath = execPath;",
  ];

  it.each([
    ["there is no memory for it", renamed("\0")],
    ["the system refuses it", renamed("/nowhere/node")],
    [
      "too few files can be opened",
      [
        // One is left to read with who the child is: a process needs more than that.
        'try { for (;;) open.push(openSync("/dev/null")); } catch { closeSync(open.pop()); }',
        "for (const fd of open) closeSync(fd);",
      ],
    ],
  ])("is started as soon as it can be where %s", async (_what, [begin = "", end = ""]) => {
    const parent = run(supervisorWithout(begin, end));
    const identity = await childOf(parent);
    parent.child.stdin?.write("go on\n");
    await until(() => guardiansOf(parent, identity).length === 1, { timeoutMs: 10_000 });
    parent.child.kill("SIGKILL");
    await until(() => !isRunning(identity), { timeoutMs: ORPHAN_LIMIT_MS });
  });

  it("knows the children however soon behind its start the supervisor is killed", async () => {
    const diesAtTheFirstWord = [
      "stdin.constructor.prototype._writeGeneric = () => process.kill(process.pid, 'SIGKILL');",
      "writeSync(1, 'silent');",
    ];
    const parent = run(supervisorWithout("", diesAtTheFirstWord.join("\n")));
    const identity = await childOf(parent);
    await until(() => guardiansOf(parent, identity).length === 1, { timeoutMs: 10_000 });
    const [former] = guardiansOf(parent, identity);
    parent.child.stdin?.write("go on\n");
    await until(() => parent.output().endsWith("silent"), { timeoutMs: 10_000 });
    expect(former !== undefined && signalProcess(former, "SIGKILL")).toBe(true);
    const isDead = () => parent.child.signalCode === "SIGKILL";
    const isBack = () => guardiansOf(parent, identity).some(({ pid }) => pid !== former?.pid);
    await until(() => isDead() || isBack(), { timeoutMs: 10_000 });
    parent.child.kill("SIGKILL");
    await until(() => !isRunning(identity), { timeoutMs: ORPHAN_LIMIT_MS });
  });

  it("is started again however often it dies", async () => {
    const parent = run(supervisorWithout("", ""));
    const identity = await childOf(parent);
    for (let death = 0; death < 8; death += 1) {
      await until(() => guardiansOf(parent, identity).length === 1, { timeoutMs: 10_000 });
      for (const guardian of guardiansOf(parent, identity)) signalProcess(guardian, "SIGKILL");
    }
    await until(() => guardiansOf(parent, identity).length === 1, { timeoutMs: 10_000 });
  });

  it("touches nothing when it is closed, and keeps no process alive", async () => {
    const parent = run(
      supervisor("obedient.unref(); deaf.unref(); released.unref(); guardian.close();"),
    );
    const identities = (await pidsOf(parent)).map(identifyProcess);
    expect(await endOf(parent)).toEqual(endedBy([0, null]));
    for (const identity of identities) {
      expect(identity !== undefined && isRunning(identity)).toBe(true);
      expect(identity !== undefined && signalProcess(identity, "SIGKILL")).toBe(true);
    }
  });

  it("never signals a process that only inherited an id", () => {
    const own = identifyProcess(process.pid);
    expect(own !== undefined && isRunning(own)).toBe(true);
    expect(signalProcess({ pid: process.pid, startTicks: "1" }, "SIGKILL")).toBe(false);
    expect(identifyProcess(2 ** 22 + 1)).toBeUndefined();
  });
});
