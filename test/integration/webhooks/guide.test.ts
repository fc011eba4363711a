/**
 * Deliveries as they travel: over TLS, and to the receiver of the guide's chapter, run as it stands.
 */
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer as createPlainServer } from "node:http";
import { createServer } from "node:https";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { transformSync } from "@swc/core";
import { createMessage, type WebhookMessage } from "../../../deposit-watcher/webhooks/delivery.js";
import { guardedPost } from "../../../runtime/http/outgoing/guarded-post.js";
import { guideFiles, outputOf, temporaryFolders } from "../../helpers/processes/guide.js";
import { freePort } from "../../helpers/ports.js";
import { compiledFolder } from "../../helpers/services/services.js";
import { until } from "../../helpers/until.js";

const SECRET = "whsec_of-the-test-which-is-long-enough-to-be-one";
const folders = temporaryFolders();
afterAll(() => folders.removeAll());

describe("a delivery over TLS", () => {
  const folder = join("test", "fixtures", "tls");
  const read = (name: string) => readFileSync(join(folder, name), "utf8");

  it("goes to the checked address, for the name's certificate, and to no other's", async () => {
    const names: string[] = [];
    const hosts: unknown[] = [];
    const server = createServer(
      {
        key: read("key.pem"),
        cert: read("certificate.pem"),
        SNICallback: (name, done) => {
          names.push(name);
          done(null);
        },
      },
      (request, response) => {
        hosts.push(request.headers.host);
        response.writeHead(204).end();
      },
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const program = `
      const { guardedPost } = await import(process.argv[1] + "/runtime/http/outgoing/guarded-post.js");
      const post = (host) => guardedPost({
        url: new URL("https://" + host + ":${port}/"), headers: {}, body: "{}", timeoutMs: 30000,
        allowLoopback: true, signal: new AbortController().signal,
        resolve: async () => ["127.0.0.1"],
      }).then(({ status }) => status, ({ code }) => code);
      console.log(JSON.stringify([await post("hooks.test"), await post("other.test"),
        await post("127.0.0.1")]));`;
    const run = async (env: Readonly<Record<string, string>>) => {
      const command = [process.execPath, "--input-type=module", "-e", program];
      return JSON.parse(await outputOf([...command, await compiledFolder()], ".", env));
    };
    try {
      const refused = "TARGET_UNREACHABLE";
      const trusted = { NODE_EXTRA_CA_CERTS: join(folder, "certificate.pem") };
      expect(await run(trusted)).toEqual([204, refused, refused]);
      expect(names).toEqual(["hooks.test", "other.test"]);
      expect(hosts).toEqual([`hooks.test:${port}`]);
      expect(await run({})).toEqual([refused, refused, refused]);
    } finally {
      server.close();
    }
  });
});

describe("the guide's receiver", () => {
  const event = {
    seq: 42,
    epoch: 1,
    type: "deposit.credited",
    data: { depositId: "7-0-3", note: "\u00fc" },
    at: "2026-11-20T00:00:00.000Z",
  };

  const told = (epoch: number, seq: number) => ({ ...event, epoch, seq });

  /** The list of events, by the number that a page begins behind; pages are held back where a test says so. */
  async function openApi(pages: ReadonlyMap<string, object>) {
    const asked: string[] = [];
    const held = new Map<string, Promise<string>>();
    const api = createPlainServer((request, response) => {
      const { searchParams } = new URL(request.url ?? "", "http://api");
      const after = searchParams.get("after") ?? "";
      asked.push(`${after} ${searchParams.get("limit")}`);
      const isOpen = request.headers.authorization === "Bearer key";
      const answer = (outcome: string) => {
        const status = outcome === "broken" ? 503 : isOpen ? 200 : 401;
        response.writeHead(status).end(JSON.stringify(pages.get(after)));
      };
      void (held.get(after) ?? Promise.resolve("told")).then(answer);
    });
    await new Promise<void>((resolve) => api.listen(0, "127.0.0.1", resolve));
    const { port } = api.address() as AddressInfo;
    const settings = { DEPOSIT_API: `http://127.0.0.1:${port}`, API_KEY: "key" };
    const hold = (after: string) => {
      const { promise, resolve } = Promise.withResolvers<string>();
      held.set(after, promise);
      return (outcome = "told") => {
        held.delete(after);
        resolve(outcome);
      };
    };
    return { asked, settings, hold, close: () => void api.close() };
  }

  /** As it stands in the chapter, in a process of its own. */
  async function startReceiver(settings: Readonly<Record<string, string>> = {}) {
    const folder = folders.make("webhooks");
    const source = guideFiles("webhooks.md").get("receiver.ts") ?? "";
    const { code } = transformSync(source, {
      jsc: { parser: { syntax: "typescript" }, target: "es2022" },
    });
    writeFileSync(join(folder, "receiver.mjs"), code);
    const port = await freePort();
    const child = spawn(process.execPath, [join(folder, "receiver.mjs")], {
      env: { ...process.env, ...settings, WEBHOOK_SECRET: SECRET, PORT: `${port}` },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const lines: string[] = [];
    child.stdout.on("data", (chunk: Buffer) => lines.push(...chunk.toString().trim().split("\n")));
    await until(() => lines.includes("listening"), { timeoutMs: 10_000 });
    const post = async (message: WebhookMessage) => {
      const answer = await guardedPost({
        url: new URL(`http://127.0.0.1:${port}/`),
        ...message,
        timeoutMs: 30_000,
        allowLoopback: true,
        signal: new AbortController().signal,
      });
      return answer.status;
    };
    return { port, child, lines, post };
  }

  it("takes what is signed by a live secret, once, and nothing else", async () => {
    const { child, lines, post } = await startReceiver();
    try {
      const send = (
        secrets: readonly string[],
        { agedMs = 0, body }: { readonly agedMs?: number; readonly body?: string } = {},
      ) => {
        const message = createMessage(event, { secrets, nowMs: Date.now() - agedMs });
        return post({ ...message, body: body ?? message.body });
      };
      // The same signed bytes, cut at other full stops: no time that is read there is a recent one.
      const cut = (data: Readonly<Record<string, unknown>>, at: number) => {
        const { headers, body } = createMessage(
          { ...event, data },
          { secrets: [SECRET], nowMs: 1 },
        );
        const all = [headers["causeway-id"], headers["causeway-timestamp"], body].join(".");
        const parts = all.split(".");
        const id = parts.slice(0, at).join(".");
        const timestamp = parts[at] ?? "";
        const moved = { "causeway-id": id, "causeway-timestamp": timestamp };
        return post({
          headers: { ...headers, ...moved },
          body: parts.slice(at + 1).join("."),
        });
      };
      expect(await send([SECRET])).toBe(204);
      expect(await send(["another", SECRET])).toBe(204);
      expect(await send(["another"])).toBe(401);
      expect(await send([SECRET], { agedMs: 3_600_000 })).toBe(401);
      expect(await send([SECRET], { body: "{}" })).toBe(401);
      const customerId = `x.${Math.floor(Date.now() / 1_000)}.y`;
      // Old, no time at all, and one that a customer's name has.
      const cuts = [cut({}, 1), cut({}, 2), cut({ customerId }, 3)];
      expect(await Promise.all(cuts)).toEqual([401, 401, 401]);
      expect(await send([SECRET])).toBe(204);
      expect(lines.slice(1)).toEqual(['42 deposit.credited {"depositId":"7-0-3","note":"\u00fc"}']);
    } finally {
      child.kill();
    }
  });

  it("takes back what a new epoch makes void before it counts what is told again", async () => {
    const pages = new Map([
      ["0", { events: [told(1, 41)], next: "41" }],
      // Of one event: what was written under its number since, if anything.
      ["39", { events: [told(1, 41)], next: "41" }],
      ["40", { events: [told(1, 41)], next: "41" }],
      ["41", { events: [told(2, 43)], next: null }],
    ]);
    const { asked, settings, close } = await openApi(pages);
    const { child, lines, post } = await startReceiver(settings);
    try {
      // The last two were on their way when the ledger was lost: one of them still stands.
      for (const [epoch, seq] of [
        [1, 42],
        [2, 43],
        [2, 43],
        [1, 40],
        [1, 41],
        [1, 41],
      ] as const) {
        const message = createMessage(told(epoch, seq), { secrets: [SECRET], nowMs: Date.now() });
        expect(await post(message)).toBe(204);
      }
      const brief = lines.slice(1).map((line) => line.replace(/ deposit.credited.*/, ""));
      expect(brief).toEqual(["42", "take back 42", "43", "41"]);
      expect(asked).toEqual(["0 1000", "41 1000", "39 1", "40 1"]);
    } finally {
      child.kill();
      close();
    }
  });

  it("handles once what is sent again while it asks what stands", async () => {
    const pages = new Map([
      ["0", { events: [told(1, 41)], next: "41" }],
      ["40", { events: [told(1, 41)], next: "41" }],
      ["41", { events: [told(2, 43)], next: null }],
    ]);
    const { asked, settings, close, hold } = await openApi(pages);
    const { child, lines, post } = await startReceiver(settings);
    const send = (epoch: number, seq: number) =>
      post(createMessage(told(epoch, seq), { secrets: [SECRET], nowMs: Date.now() }));
    const isAsked = (page: string, times: number) =>
      until(() => asked.filter((one) => one === page).length === times, { timeoutMs: 10_000 });
    try {
      expect(await send(1, 42)).toBe(204);
      const letListGo = hold("0");
      const first = send(2, 43);
      await isAsked("0 1000", 1);
      const again = send(2, 43);
      // Behind it: what is of the epoch that still stands is answered meanwhile.
      expect(await send(1, 44)).toBe(204);
      letListGo();
      expect(await Promise.all([first, again])).toEqual([204, 204]);
      const letOneGo = hold("40");
      const late = [send(1, 41), send(1, 41)];
      await isAsked("40 1", 2);
      letOneGo();
      expect(await Promise.all(late)).toEqual([204, 204]);
      const brief = lines.slice(1).map((line) => line.replace(/ deposit.credited.*/, ""));
      expect(brief).toEqual(["42", "44", "take back 42", "take back 44", "43", "41"]);
      expect(asked).toEqual(["0 1000", "41 1000", "40 1", "40 1"]);
    } finally {
      child.kill();
      close();
    }
  });

  it("begins an epoch again where it could not, and a further one behind it", async () => {
    const pages = new Map([["0", { events: [told(1, 44), told(3, 45)], next: null }]]);
    const { asked, settings, close, hold } = await openApi(pages);
    const { child, lines, post } = await startReceiver(settings);
    const send = (epoch: number, seq: number) =>
      post(createMessage(told(epoch, seq), { secrets: [SECRET], nowMs: Date.now() }));
    const isAsked = (times: number) => until(() => asked.length === times, { timeoutMs: 10_000 });
    try {
      expect(await send(1, 42)).toBe(204);
      const breakOff = hold("0");
      const broken = expect(send(2, 43)).rejects.toMatchObject({ code: "TARGET_UNREACHABLE" });
      await isAsked(1);
      breakOff("broken");
      await broken;
      const letGo = hold("0");
      const second = send(2, 43);
      await isAsked(2);
      const third = send(3, 45);
      expect(await send(1, 44)).toBe(204);
      letGo();
      expect(await Promise.all([second, third])).toEqual([204, 204]);
      const brief = lines.slice(1).map((line) => line.replace(/ deposit.credited.*/, ""));
      expect(brief).toEqual(["42", "44", "take back 42", "43", "take back 43", "45"]);
      expect(asked).toEqual(["0 1000", "0 1000", "0 1000"]);
    } finally {
      child.kill();
      close();
    }
  });

  it("goes on behind what is broken off, and handles again what it could not", async () => {
    const { port, child, lines, post } = await startReceiver();
    try {
      const broken = connect(port, "127.0.0.1");
      const head = "POST / HTTP/1.1\r\nhost: receiver\r\ncontent-length: 10\r\n\r\n";
      await new Promise<void>((resolve) => void broken.write(`${head}abc`, () => resolve()));
      broken.destroy();
      const message = createMessage(event, { secrets: [SECRET], nowMs: Date.now() });
      const { "causeway-id": id, "causeway-timestamp": timestamp } = message.headers;
      const hmac = createHmac("sha256", SECRET).update(`${id}.${timestamp}.{`).digest("hex");
      const headers = { ...message.headers, "causeway-signature": `v1=${hmac}` };
      await expect(post({ headers, body: "{" })).rejects.toMatchObject({
        code: "TARGET_UNREACHABLE",
      });
      expect(await post(message)).toBe(204);
      expect(await post(message)).toBe(204);
      expect(lines.slice(1)).toEqual([expect.stringMatching(/^42 deposit.credited/)]);
      expect(child.exitCode).toBeNull();
    } finally {
      child.kill();
    }
  });
});
