/**
 * A node whose last port is taken: what came up before is gone again. Shown by a process that does
 * nothing but start one: it ends by itself only when no socket, timer or thread is left, and it
 * starts the same home afterwards only when no lock is.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { createServer, type Server } from "node:net";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { nodePorts } from "../../../cli/home/node-home.js";
import { createTestnet, type TestnetNode } from "../../../cli/home/network/testnet.js";
import { Stages } from "../../../node/compose/stages.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { kitOffset } from "../../helpers/kit.js";
import { compiledFolder } from "../../helpers/services/services.js";

/** Prints what became of two starts; stops only what has started. */
const PROGRAM = `
  const [folder, home, offset] = process.argv.slice(2);
  const { NODE_PROCESS } = await import(folder + "/node/compose/process.js");
  const { createLogger } = await import(folder + "/runtime/process/logger.js");
  const start = (env, signal) =>
    NODE_PROCESS.start({
      home,
      portOffset: Number(offset),
      env,
      signal,
      log: createLogger({ component: "node", level: "silent" }),
      fatal: (error) => console.log("fatal", error.code),
      finish: () => undefined,
    });
  await start({}, new AbortController().signal).then(
    () => console.log("started"),
    (error) => console.log("refused", error.code),
  );
  const ending = new AbortController();
  const env = { CAUSEWAY_CONFIG_INSTRUMENTATION_PROMETHEUS: "false" };
  const services = await start(env, ending.signal);
  console.log(services.map(({ name }) => name).join(", "));
  ending.abort();
  for (const service of services.toReversed()) await service.stop();
  console.log("ended");
`;

const PORT_OFFSET = kitOffset(0);

let folder: string;
let blocker: Server | undefined;

beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "causeway-stages-"));
});

afterEach(async () => {
  blocker?.close();
  blocker = undefined;
  fs.rmSync(folder, { recursive: true, force: true });
});

async function writeHome(): Promise<TestnetNode> {
  const out = path.join(folder, "net");
  const plan = { out, validators: 1, fullNodes: 0, portOffset: PORT_OFFSET, clock: systemClock };
  const [node] = (await createTestnet(plan)).nodes;
  if (node === undefined) throw new Error("no node");
  return node;
}

describe("a node of which a late stage cannot start", () => {
  it("leaves no socket, no lock and no thread, and starts when the cause is gone", async () => {
    const { home, portOffset } = await writeHome();
    blocker = createServer().listen(nodePorts(portOffset).metrics, "127.0.0.1");
    await once(blocker, "listening");
    const program = path.join(folder, "start.mjs");
    fs.writeFileSync(program, PROGRAM);
    const args = [program, await compiledFolder(), home, `${portOffset}`];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk: Buffer) => (output += chunk.toString()));
    }
    const timer = setTimeout(() => child.kill("SIGKILL"), 240_000);
    // Not its exit, behind which what it wrote may still be on the way.
    const [code, signal] = (await once(child, "close")) as [number | null, string | null];
    clearTimeout(timer);
    const [refused, names, ended] = output.split("\n");
    expect({ output, refused, ended }).toEqual({
      output,
      refused: "refused PORT_TAKEN",
      ended: "ended",
    });
    expect(names).toMatch(/^store, sender recovery, mempool, call workers, snapshots, pruning/);
    expect(names).toMatch(/network, block production, servers$/);
    expect([code, signal]).toEqual([0, null]);
  });
});

describe("stages", () => {
  it("are unwound in reverse, past one that does not end, with their signal fired", async () => {
    const order: string[] = [];
    const written: string[] = [];
    const destination = { write: (line: string) => written.push(line) };
    const log = createLogger({ component: "test", destination });
    const stages = new Stages(log, new AbortController().signal);
    for (const name of ["first", "second", "third"]) {
      const stop = async () => {
        order.push(`${name} ${stages.signal.aborted}`);
        if (name === "second") throw new Error("will not end");
      };
      await stages.start(name, () => name, stop);
    }
    const late = stages.start(
      "late",
      () => {
        throw new Error("taken");
      },
      async () => order.push("late"),
    );
    await expect(late).rejects.toThrow("taken");
    await stages.unwind();
    expect(order).toEqual(["third true", "second true", "first true"]);
    expect(written.join("")).toContain('"stage":"second"');
    expect(stages.services()).toEqual([]);
  });

  it("open nothing any more once the process is told to end", async () => {
    const process = new AbortController();
    const stages = new Stages(createLogger({ component: "test", level: "silent" }), process.signal);
    const order: string[] = [];
    const part = (name: string) =>
      stages.start(
        name,
        () => order.push(`${name} opened`),
        async () => order.push(`${name} closed`),
      );
    await part("store");
    process.abort(new DOMException("the process is stopping", "AbortError"));
    await expect(part("network")).rejects.toThrow("the process is stopping");
    await stages.unwind();
    expect(order).toEqual(["store opened", "store closed"]);
  });
});
