/** `npm start` on a terminal that is paused: the words wait, the kit does not. */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, it } from "@jest/globals";
import { identifyProcess } from "../../../runtime/process/process-identity.js";
import { compiledFolder } from "../../helpers/services/services.js";
import { until } from "../../helpers/until.js";

/** Keys that pause a terminal and let it go on. */
const [CTRL_S, CTRL_Q] = ["\x13", "\x11"];

/** What `kit-main.ts` does with its output, over parts that are all down; says something all the time. */
const STUB = `
  const [, , supervisor, pidFile] = process.argv;
  const { createKitOutput } = await import(supervisor + "/kit-output.js");
  const { createStatusLine } = await import(supervisor + "/status-line.js");
  const { writeFileSync } = await import("node:fs");
  const url = "http://127.0.0.1:1";
  const endpoints = {
    jsonRpcUrl: url, webSocketUrl: url, cometRpcUrl: url, metricsUrl: url, restUrl: url, grpcAddress: "127.0.0.1:1",
    sidecarOnlineUrl: url, sidecarOfflineUrl: url, depositUrl: url, withdrawalUrl: url, indexerUrl: url, otherNodes: [],
  };
  const evm = {};
  const clock = { nowMs: () => 1_000, monotonicMs: () => 0 };
  const { end, output, print } = createKitOutput(process.stdout, process.stderr);
  const stopping = new AbortController();
  process.on("SIGTERM", () => stopping.abort());
  const line = createStatusLine({ endpoints, treasury: undefined, evm, clock }, output);
  const talk = setInterval(() => line.interrupt("a part was started again"), 20);
  writeFileSync(pidFile, String(process.pid));
  await line.run(stopping.signal);
  clearInterval(talk);
  print("All processes are gone.");
  await end(stopping.signal);
  process.exit();
`;

const hasScript = spawnSync("script", ["--version"]).status === 0;
const withTerminal = hasScript ? it : it.skip;

withTerminal(`goes on and ends${hasScript ? "" : " [SKIPPED: needs script]"}`, async () => {
  const folder = mkdtempSync(join(tmpdir(), "causeway-paused-"));
  const [stub, pidFile] = [join(folder, "stub.mjs"), join(folder, "pid")];
  writeFileSync(stub, STUB);
  const supervisor = pathToFileURL(join(await compiledFolder(), "cli", "supervisor")).href;
  const command = [process.execPath, stub, supervisor, pidFile].map((word) => `'${word}'`);
  const terminal = spawn("script", ["-qec", command.join(" "), "/dev/null"]);
  try {
    let seen = "";
    terminal.stdout.on("data", (chunk: Buffer) => (seen += chunk.toString()));
    const comes = async (what: RegExp) => {
      seen = "";
      await until(() => what.test(seen), { timeoutMs: 60_000, what: `${what} is shown` });
    };
    const pause = async () => {
      terminal.stdin.write(CTRL_S);
      const isQuiet = async () => {
        const before = seen.length;
        await new Promise((resolve) => setTimeout(resolve, 300));
        return seen.length === before;
      };
      await until(isQuiet, { timeoutMs: 60_000, what: "the terminal is paused" });
    };
    await comes(/height/);
    await pause();
    terminal.stdin.write(CTRL_Q);
    await comes(/started again[^]*height/);
    await pause();
    const pid = Number(readFileSync(pidFile, "utf8"));
    process.kill(pid, "SIGTERM");
    await until(() => identifyProcess(pid) === undefined, {
      timeoutMs: 10_000,
      what: "it is gone",
    });
    expect(seen).not.toContain("All processes are gone.");
  } finally {
    terminal.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
});
