/** The receiver of the guide's chapter, run as it stands, against messages of the dispatcher. */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { transformSync } from "@swc/core";
import { createMessage } from "../../../deposit-watcher/webhooks/delivery.js";
import { guardedPost } from "../../../runtime/http/outgoing/guarded-post.js";
import { guideFiles, temporaryFolders } from "../../helpers/guide.js";
import { freePort } from "../../helpers/ports.js";
import { until } from "../../helpers/until.js";

const SECRET = "whsec_of-the-test-which-is-long-enough-to-be-one";
const folders = temporaryFolders();
afterAll(() => folders.removeAll());

describe("the guide's receiver", () => {
  it("takes what is signed by a live secret, once, and nothing else", async () => {
    const folder = folders.make("webhooks");
    const source = guideFiles("webhooks.md").get("receiver.ts") ?? "";
    const { code } = transformSync(source, {
      jsc: { parser: { syntax: "typescript" }, target: "es2022" },
    });
    writeFileSync(join(folder, "receiver.mjs"), code);
    const port = await freePort();
    const child = spawn(process.execPath, [join(folder, "receiver.mjs")], {
      env: { ...process.env, WEBHOOK_SECRET: SECRET, PORT: `${port}` },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const lines: string[] = [];
    child.stdout.on("data", (chunk: Buffer) => lines.push(...chunk.toString().trim().split("\n")));
    try {
      await until(() => lines.includes("listening"), { timeoutMs: 10_000 });
      const event = {
        seq: 42,
        epoch: 1,
        type: "deposit.credited",
        data: { depositId: "7-0-3", note: "\u00fc" },
        at: "2026-11-20T00:00:00.000Z",
      };
      const send = async (
        secrets: readonly string[],
        { agedMs = 0, body }: { readonly agedMs?: number; readonly body?: string } = {},
      ) => {
        const message = createMessage(event, { secrets, nowMs: Date.now() - agedMs });
        const answer = await guardedPost({
          url: new URL(`http://127.0.0.1:${port}/`),
          ...message,
          body: body ?? message.body,
          timeoutMs: 30_000,
          allowLoopback: true,
          signal: new AbortController().signal,
        });
        return answer.status;
      };
      expect(await send([SECRET])).toBe(204);
      expect(await send(["another", SECRET])).toBe(204);
      expect(await send(["another"])).toBe(401);
      expect(await send([SECRET], { agedMs: 3_600_000 })).toBe(401);
      expect(await send([SECRET], { body: "{}" })).toBe(401);
      expect(lines.slice(1)).toEqual(['42 deposit.credited {"depositId":"7-0-3","note":"\u00fc"}']);
    } finally {
      child.kill();
    }
  });
});
