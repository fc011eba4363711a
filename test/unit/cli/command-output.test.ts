/** What a command's answer is worth: written or reported as lost, and ended where the command is stopped. */
import { createWriteStream, readFileSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { PassThrough, Writable } from "node:stream";
import { describe, expect, it } from "@jest/globals";
import { createStandardOutput } from "../../../cli/standard-output.js";
import type { KitProbe } from "../../../cli/probe/kit-status.js";
import { createStatusLine } from "../../../cli/supervisor/status-line.js";
import { printJson, printLongJson, toJson } from "../../../cli/command-context.js";
import { createKitOutput, type StandardStream } from "../../../cli/supervisor/kit-output.js";
import { runWaitTx } from "../../../cli/queries/run-wait.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { runCommand } from "../../helpers/processes/command-line.js";
import { listen, newFolder } from "./opened.js";

describe("the standard output of a command", () => {
  it("is reported as lost where the disk is full, also by its last line", async () => {
    for (const lines of [1, 100]) {
      const output = createStandardOutput(createWriteStream("/dev/full"));
      for (let line = 0; line < lines; line += 1) output.print(`line ${line}`);
      await expect(output.end()).rejects.toMatchObject({
        code: "OUTPUT_LOST",
        message: expect.stringContaining("there is no space left on its disk"),
      });
    }
  });

  it("is whole where it ends without a fault", async () => {
    const file = join(newFolder(), "out");
    const output = createStandardOutput(createWriteStream(file));
    for (let line = 0; line < 1_000; line += 1) output.print(`line ${line}`);
    await output.end();
    expect(readFileSync(file, "utf8").split("\n")).toHaveLength(1_001);
  });

  it("takes the parts of a long line as its reader takes them, and none behind a stop", async () => {
    const slow = new PassThrough({ highWaterMark: 8 });
    const output = createStandardOutput(slow);
    const stopping = new AbortController();
    let made = 0;
    const parts = function* (count: number) {
      for (; made < count; made += 1) yield `part ${made} `.padEnd(10);
    };
    const printed = output.printParts(parts(1_000), stopping.signal);
    await new Promise((resolve) => setImmediate(resolve));
    expect(made).toBeLessThan(10);
    stopping.abort(new Error("stopped"));
    await expect(printed).rejects.toThrow("stopped");
    expect(made).toBeLessThan(10);

    made = 0;
    const file = join(newFolder(), "out");
    const whole = createStandardOutput(createWriteStream(file));
    await whole.printParts(parts(1_000), new AbortController().signal);
    await whole.end();
    const lines = readFileSync(file, "utf8").split("\n");
    expect(lines.map((line) => line.length)).toEqual([10_000, 0]);
  });

  it("ends with its reader in the middle of a long line, without a fault", async () => {
    const server = createServer((socket) => void socket.once("data", () => socket.destroy()));
    const socket = connect(await listen(server), "127.0.0.1");
    const output = createStandardOutput(socket);
    const endless = function* () {
      for (;;) yield "x".repeat(65_536);
    };
    await output.printParts(endless(), new AbortController().signal);
    await output.end();
  });

  it("may have lost its reader: that is no fault of the command", async () => {
    const server = createServer((socket) => void socket.resetAndDestroy());
    const socket = connect(await listen(server), "127.0.0.1");
    const output = createStandardOutput(socket);
    await new Promise<void>((resolve) => socket.once("close", () => resolve()));
    output.print("nobody reads this");
    await output.end();
  });
});

describe("a command's JSON document", () => {
  it("tells its version, is one line, and has no amount as a number", () => {
    const document = toJson({ atoken: 10n ** 30n, text: "two\nlines", none: null });
    expect(document).toBe(
      '{"schemaVersion":1,"atoken":"1000000000000000000000000000000","text":"two\\nlines","none":null}',
    );
    const lines: string[] = [];
    const { signal } = new AbortController();
    const context = { home: "", portOffset: 0, json: true, env: {}, signal };
    printJson({ ...context, print: (line) => lines.push(line) }, { heights: [1n] });
    expect(lines).toEqual(['{"schemaVersion":1,"heights":["1"]}']);
  });

  it("is the same where it is too long for one text, and written by its parts", async () => {
    const entries = Array.from(
      { length: 20_000 },
      (_, index) => [`"${index}"`, `${index}`] as const,
    );
    const lines: string[] = [];
    const parts: string[] = [];
    const { signal } = new AbortController();
    const print = (line: string) => lines.push(line);
    const context = { home: "", portOffset: 0, json: true, env: {}, signal, print };
    const printParts = async (all: Iterable<string>) => void parts.push(...all);
    for (const few of [[], entries]) {
      lines.splice(0);
      parts.splice(0);
      const long = { member: "accounts", entries: few };
      await printLongJson(context, { ok: true }, long);
      await printLongJson({ ...context, printParts }, { ok: true }, long);
      const expected = toJson({ ok: true, accounts: Object.fromEntries(few) });
      expect([lines, parts.join("")]).toEqual([[expected], expected]);
      for (const part of parts) expect(part.length).toBeLessThan(70_000);
    }
    expect(parts.length).toBeGreaterThan(3);
  });
});

describe("the output of the kit", () => {
  /** Both streams of a process, and what its reader has taken; it takes nothing before `read`. */
  const pausing = () => {
    const waiting: (() => void)[] = [];
    const taken: string[] = [];
    let isReading = false;
    const take = (chunk: unknown, done: () => void): void => {
      taken.push(String(chunk));
      done();
    };
    const stream = new Writable({
      write: (chunk, _encoding, done) => {
        if (isReading) take(chunk, done);
        else waiting.push(() => take(chunk, done));
      },
    });
    const read = (): void => {
      isReading = true;
      for (const go of waiting.splice(0)) go();
    };
    const standard = Object.assign(stream, { fd: 1 }) as unknown as StandardStream;
    return { kit: createKitOutput(standard, standard), taken, read };
  };

  it("is whole for a reader that goes on after a pause", async () => {
    const { kit, taken, read } = pausing();
    kit.print("one");
    kit.print("two");
    expect(kit.output.isBehind).toBe(true);
    const ended = kit.end(new AbortController().signal);
    read();
    await ended;
    expect([kit.output.isBehind, taken.join("")]).toEqual([false, "one\ntwo\n"]);
  });

  it("shows what its parts wrote, and no terminal obeys it", async () => {
    const { kit, taken, read } = pausing();
    read();
    kit.print("node: it ended:\n    \u001b[2Jgone\u0007");
    kit.printError("causeway: \u001b]0;title\u0007");
    const line = createStatusLine({ clock: systemClock } as unknown as KitProbe, kit.output);
    line.interrupt("worker: \u001b[1A\r it is up");
    expect(taken.join("")).toBe(
      "node: it ended:\n    \\u001b[2Jgone\\u0007\n" +
        "causeway: \\u001b]0;title\\u0007\n" +
        "worker: \\u001b[1A\\u000d it is up\n",
    );
  });

  it("keeps no process that has to stop, now or while it waits", async () => {
    const stopping = new AbortController();
    const { kit, taken } = pausing();
    kit.print("one");
    const ended = kit.end(stopping.signal);
    stopping.abort();
    await ended;
    await kit.end(stopping.signal);
    expect(taken).toEqual([]);
  });
});

describe("a command that is stopped", () => {
  const stopped = () => new DOMException("the command was stopped", "AbortError");

  it("does not read a file of millions of lines to its end, and calls it no fault", async () => {
    const file = join(newFolder(), "ledger.jsonl");
    const balance = { customerId: "a", asset: "TOKEN", available: "1", held: "0" };
    writeFileSync(file, `${JSON.stringify({ type: "balance", ...balance })}\n`);
    const { code, out, err } = await runCommand(
      newFolder(),
      ["verify", "ledger", file],
      AbortSignal.abort(stopped()),
    );
    expect({ code, out, err }).toEqual({
      code: 1,
      out: "",
      err: expect.stringMatching(/^(AbortError: )?the command was stopped\.$/),
    });
  });

  it("does not wait for a terminal on which nobody types", async () => {
    const stopping = new AbortController();
    const { signal } = stopping;
    const context = { home: newFolder(), portOffset: 0, json: false, env: {}, signal };
    const print = () => undefined;
    const waiting = runWaitTx({ ...context, print }, undefined, {}, new PassThrough());
    stopping.abort(stopped());
    await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
  });
});
