/** A process that hands over: what becomes of its services, its signals, its exit code, and of the next program. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import {
  identifyProcess,
  isRunning,
  type ProcessIdentity,
  signalProcess,
} from "../../../runtime/process/process-identity.js";
import { endedBy, endOf } from "../../helpers/processes/endings.js";
import { compiledFolder } from "../../helpers/services/services.js";
import { until } from "../../helpers/until.js";

const TIMEOUT = { timeoutMs: 20_000 };

let folder: string;
let scripts: string;
const children: ChildProcess[] = [];
const orphans: ProcessIdentity[] = [];

beforeAll(async () => {
  folder = await compiledFolder();
  scripts = mkdtempSync(join(tmpdir(), "causeway-successor-"));
}, 600_000);

afterAll(() => rmSync(scripts, { recursive: true }));

afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  for (const orphan of orphans.splice(0)) signalProcess(orphan, "SIGKILL");
});

/** The next program: tells its id and what it hears; ends by itself where it is given an exit code. */
const NEXT = `
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
    process.on(signal, () => {
      console.log("next heard " + signal);
      if (signal !== "SIGHUP") process.exit(signal === "SIGTERM" ? 3 : 4);
    });
  }
  console.log("next runs as " + process.pid + " with " + process.argv.slice(2).join(" "));
  const [word] = process.argv.slice(2);
  if (word === "end") process.exit(7);
  if (word === "die") process.kill(process.pid, "SIGKILL");
  setInterval(() => {}, 1000);
`;

/** A process with a service that hands over at once, to the next program with this word. */
function handOver(word: string, stop = `console.log("stopped");`) {
  const next = join(scripts, "next.mjs");
  writeFileSync(next, NEXT);
  const main = join(scripts, `main-${children.length}-${word}.mjs`);
  const from = (file: string) => JSON.stringify(`${folder}/runtime/process/${file}.js`);
  writeFileSync(
    main,
    `import { runProcess } from ${from("lifecycle")};
     import { runSuccessor } from ${from("successor")};
     const program = (log) => ({ script: ${JSON.stringify(next)}, args: [${JSON.stringify(word)}], env: process.env, log });
     process.on("SIGINT", () => console.log("main heard SIGINT"));
     runProcess({ name: "probe", start: async ({ log, handOver }) => {
       setImmediate(() => handOver("another goes on", () => runSuccessor(program(log))));
       return [{ name: "api", async stop() { ${stop} } }];
     } });`,
  );
  const child = spawn(process.execPath, [main], { stdio: ["ignore", "pipe", "pipe"] });
  children.push(child);
  let [output, errors] = ["", ""];
  child.stdout.on("data", (chunk) => (output += String(chunk)));
  child.stderr.on("data", (chunk) => (errors += String(chunk)));
  const ended = new Promise<readonly [number | null, string | null]>((resolve) =>
    child.once("close", (code, signal) => resolve([code, signal])),
  );
  const says = (words: string) => until(() => output.includes(words), { ...TIMEOUT, what: words });
  return { child, output: () => output, errors: () => errors, ended, says };
}

/** The next program, which runs by now. */
async function nextOf(probe: ReturnType<typeof handOver>) {
  await probe.says("next runs as ");
  const identity = identifyProcess(Number(/next runs as (\d+)/.exec(probe.output())?.[1]));
  if (identity === undefined) throw new Error("the next program does not run");
  orphans.push(identity);
  return identity;
}

describe("a process that hands over", () => {
  it("ends its services first, and with the exit code of what goes on", async () => {
    const probe = handOver("end");
    expect(await endOf(probe)).toEqual(endedBy([7, null]));
    expect(probe.output()).toMatch(/another goes on[^]*stopped\n[^]*next runs as \d+ with end\n/);
  });

  it("ends as a shell tells the end by a signal", async () => {
    expect(await endOf(handOver("die"))).toEqual(endedBy([137, null]));
  });

  it.each([
    ["SIGTERM", 3],
    ["SIGINT", 4],
  ] as const)("passes %s on, and waits for the end", async (signal, code) => {
    const probe = handOver("stay");
    await nextOf(probe);
    probe.child.kill("SIGHUP");
    await probe.says("next heard SIGHUP");
    probe.child.kill(signal);
    expect(await endOf(probe)).toEqual(endedBy([code, null]));
    expect(probe.output()).toContain(`next heard ${signal}`);
    expect(probe.output()).not.toContain("main heard");
  });

  it("takes what goes on with it where it is killed", async () => {
    const probe = handOver("stay");
    const next = await nextOf(probe);
    probe.child.kill("SIGKILL");
    await until(() => !isRunning(next), { ...TIMEOUT, what: "the end of the next program" });
  });

  it("starts nothing where it is asked to end before its services have stopped", async () => {
    const probe = handOver(
      "end",
      `console.log("stopping now");
       await new Promise((resolve) => process.once("SIGUSR2", resolve));`,
    );
    await probe.says("stopping now");
    probe.child.kill("SIGINT");
    await probe.says("main heard SIGINT");
    probe.child.kill("SIGUSR2");
    expect(await endOf(probe)).toEqual(endedBy([0, null]));
    expect(probe.output()).not.toContain("next runs");
  });

  it("starts nothing where a service does not stop cleanly", async () => {
    const probe = handOver("end", `throw new Error("the store cannot be closed");`);
    expect(await endOf(probe)).toEqual(endedBy([1, null]));
    expect(probe.output()).not.toContain("next runs");
  });
});
