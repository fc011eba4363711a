/**
 * Requests that go wrong, against real processes. 5,000 of them here; `npm run test:fuzz` sends
 * 100,000. The seed is printed; CAUSEWAY_FUZZ_SEED repeats a run.
 */
import { rmSync } from "node:fs";
import { Agent, type OutgoingHttpHeaders, request as httpRequest } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { listedErrors } from "../../../sidecar/rosetta/errors.js";
import { brokenBytes, mutate } from "../../helpers/http/json-mutations.js";
import {
  createVolume,
  freeOffset,
  initVolume,
  type MeshContainer,
  startMeshContainer,
} from "../../helpers/mesh/mesh-container.js";
import { recordConversation, type Sample } from "../../helpers/mesh/mesh-conversation.js";
import { createApiValidator, ownApi, publishedApi } from "../../helpers/http/published-api.js";
import { createRandom } from "../../helpers/random.js";

const REQUESTS = Number(process.env["CAUSEWAY_FUZZ_REQUESTS"] ?? 5_000);
const SEED = Number(process.env["CAUSEWAY_FUZZ_SEED"] ?? Math.floor(Math.random() * 2 ** 32));

/** Requests under way at once. */
const CONNECTIONS = 16;

/** Findings that are shown; one fault makes many. */
const MAX_FINDINGS = 10;

const NO_TYPE = "none";

const ODD_TYPES = [
  NO_TYPE,
  "",
  "text/plain",
  "application/json; charset=latin1",
  "application/json;charset=utf-8",
  "APPLICATION/JSON",
  "application/jsonp",
  "application/vnd.api+json",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
  "multipart/form-data",
  "*/*",
  "application/json, text/plain",
];

const ODD_METHODS = ["GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "PROPFIND"];

const ODD_PATHS: readonly ((path: string) => string)[] = [
  (path) => `${path}/`,
  (path) => `/${path}`,
  (path) => `${path}?`,
  (path) => `${path}?x=1&x=2`,
  (path) => `${path}?__proto__[x]=1`,
  (path) => `${path}?x=%00`,
  (path) => `${path}%00`,
  (path) => `${path}/%E0%A4%A`,
  (path) => path.toUpperCase(),
  (path) => path.replace("/", "/%2e%2e/"),
  (path) => `http://other.example${path}`,
  (path) => `${path}/${"x".repeat(3_000)}`,
  () => "/",
  () => "*",
  () => "/__proto__",
  () => "/construction",
  () => "/metrics/",
];

const listed = new Map(listedErrors().map((error) => [error.code, error]));
const INTERNAL = listedErrors().find(({ message }) => message === "internal error")?.code;

const validators = [ownApi(), publishedApi()].flatMap((api) =>
  api === undefined ? [] : [createApiValidator(api)],
);

interface Attempt {
  readonly path: string;
  readonly method: string;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Buffer;
  /** The endpoint whose description the answer has to fit; undefined off every path. */
  readonly endpoint: string | undefined;
}

/** Status and body as they came. */
interface Answer {
  readonly status: number;
  readonly text: string;
}

describe("requests that go wrong", () => {
  const volume = createVolume();
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const containers: MeshContainer[] = [];
  let samples: readonly Sample[] = [];

  beforeAll(async () => {
    const portOffset = await freeOffset(1);
    await initVolume(volume, portOffset);
    const shared = { home: volume, portOffset };
    for (const [mode, port] of [["ONLINE", 8080] as const, ["OFFLINE", 8081] as const]) {
      containers.push(await startMeshContainer({ mode, port: port + portOffset, ...shared }));
    }
    const [onlineUrl = "", offlineUrl = ""] = containers.map(({ url }) => url);
    samples = await recordConversation({ onlineUrl, offlineUrl, home: volume });
  });

  afterAll(async () => {
    agent.destroy();
    await Promise.all(containers.map((container) => container.stop()));
    rmSync(volume, { recursive: true, force: true });
  });

  function send(url: string, { path, method, headers, body }: Attempt): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const { hostname, port } = new URL(url);
      const options = { agent, hostname, port, path, method, headers };
      const request = httpRequest(options, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }),
        );
        response.on("error", reject);
      });
      request.on("error", reject);
      request.end(body);
    });
  }

  it(`are answered 200, or 500 with a listed error, ${REQUESTS} times (seed ${SEED})`, async () => {
    process.stdout.write(`fuzz: ${REQUESTS} requests, seed ${SEED}\n`);
    const random = createRandom(SEED);
    const findings: string[] = [];
    const seen = new Map<string, number>();
    let left = REQUESTS;
    const worker = async () => {
      while (left > 0 && findings.length < MAX_FINDINGS) {
        left -= 1;
        const attempt = makeAttempt(samples, random);
        const url = containers[random.integer(5) === 0 ? 1 : 0]?.url ?? "";
        const found = await send(url, attempt).then(
          (answer) => faultOf(attempt, answer, seen),
          (error: unknown) => retryable(error, attempt),
        );
        if (found !== undefined) findings.push(`${found} <- ${describeAttempt(attempt)}`);
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, worker));
    expect(findings).toEqual([]);
    const counts = Object.fromEntries([...seen].toSorted(([, a], [, b]) => b - a));
    process.stdout.write(`fuzz: ${JSON.stringify(counts)}\n`);
    // Deep enough: much is accepted, and refusals come from many different rules.
    expect(seen.get("200") ?? 0).toBeGreaterThan(REQUESTS / 50);
    expect(seen.size).toBeGreaterThan(12);
    for (const container of containers) {
      expect(container.process.exitCode).toBeNull();
      expect(container.output()).not.toMatch(/; again|"level":"error"/);
      expect((await fetch(`${container.url}/ready`)).status).toBe(200);
    }
  });

  it("are answered in the API's words even where they are hardly HTTP", async () => {
    const body = '{"network_identifier":{"blockchain":"token","network":"testnet"}}';
    const head = (lines: string) => `POST /network/options HTTP/1.1\r\n${lines}\r\n`;
    const json = "Content-Type: application/json\r\n";
    const whole = `${json}Content-Length: ${body.length}\r\n`;
    const requests: readonly string[] = [
      `${head(whole)}${body}`,
      `${head(`Host: x\r\nExpect: 200-maybe\r\n${whole}`)}${body}`,
      `${head(`Host: x\r\n${json}Content-Length: abc\r\n`)}${body}`,
      `${head(`Host: x\r\n${json}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n`)}${body}`,
      `${head(`Host: x\r\n${json}Transfer-Encoding: chunked\r\n`)}zz\r\n${body}`,
      `${head(`Host: x\r\nX: ${"y".repeat(40_000)}\r\n${whole}`)}${body}`,
      `${head(`Host: x\r\nBad Header: 1\r\n${whole}`)}${body}`,
      `${head(`Host: x\r\nX: a\u0000b\r\n${whole}`)}${body}`,
      `BREW /network/options HTTP/1.1\r\nHost: x\r\n\r\n`,
      `POST /network/options HTTP/9.9\r\nHost: x\r\n\r\n`,
      "POST /network/options\r\n\r\n",
      "\u0016\u0003\u0001 a TLS hello",
    ];
    for (const request of requests) {
      const text = await sendRaw(containers[0]?.url ?? "", request);
      const shown = { request: request.slice(0, 120), text: text.slice(0, 60) };
      const status = /^HTTP\/1\.1 (\d+) /.exec(text)?.[1];
      expect({ shown, known: status === "200" || status === "500" }).toEqual({
        shown,
        known: true,
      });
      const reply: unknown = JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4));
      if (status === "500")
        expect({ shown, code: unlisted(reply) }).not.toMatchObject({ code: undefined });
    }
  });
});

/** All that a server writes until it closes. */
function sendRaw(url: string, request: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
    socket.on("close", () => resolve(text));
    socket.on("error", (error) => (text === "" ? reject(error) : resolve(text)));
    // Half closed: the server answers, then closes its side as well.
    socket.end(request, "latin1");
  });
}

function makeAttempt(samples: readonly Sample[], random: ReturnType<typeof createRandom>): Attempt {
  const { path, request } = random.pick(samples);
  const value = random.integer(20) === 0 ? request : mutate(request, random);
  const kind = random.integer(20);
  const body =
    kind < 3 ? brokenBytes(request, random) : Buffer.from(JSON.stringify(value) ?? "undefined");
  const type = kind === 3 ? random.pick(ODD_TYPES) : "application/json";
  const oddPath = kind === 4 ? random.pick(ODD_PATHS)(path) : undefined;
  return {
    path: oddPath ?? path,
    method: kind === 5 ? random.pick(ODD_METHODS) : "POST",
    headers: {
      "content-length": body.length,
      ...(type === NO_TYPE ? {} : { "content-type": type }),
    },
    body,
    endpoint: oddPath === undefined ? path : undefined,
  };
}

/** What is wrong with an answer, if anything. */
function faultOf(
  { endpoint, method }: Attempt,
  { status, text }: Answer,
  seen: Map<string, number>,
): string | undefined {
  if (status !== 200 && status !== 500) return `status ${status}: ${text.slice(0, 200)}`;
  if (method === "HEAD") return undefined;
  let reply: unknown;
  try {
    reply = JSON.parse(text);
  } catch {
    return `no JSON: ${text.slice(0, 200)}`;
  }
  const faults =
    endpoint === undefined
      ? []
      : validators.flatMap((validator) => validator.response(endpoint, status, reply));
  if (faults.length > 0) return `${faults.join()}: ${text.slice(0, 300)}`;
  const outcome = status === 200 ? "200" : unlisted(reply);
  if (outcome === undefined) return `not as listed: ${text.slice(0, 300)}`;
  seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
  return Number(outcome) === INTERNAL ? `an internal error: ${text.slice(0, 300)}` : undefined;
}

/** The error's number; undefined when it differs from the listed one. */
function unlisted(reply: unknown): string | undefined {
  const { code, message, description, retriable } = Object(reply) as Record<string, unknown>;
  const entry = listed.get(Number(code));
  const isEqual =
    entry?.message === message &&
    entry?.description === description &&
    entry?.retriable === retriable;
  return isEqual ? String(code) : undefined;
}

/** A server that refuses a body early closes its connection: the rest of it cannot be sent. */
function retryable(error: unknown, { body }: Attempt): string | undefined {
  const code: unknown = Reflect.get(Object(error), "code");
  const isEarlyClose = body.length > 65_536 && (code === "EPIPE" || code === "ECONNRESET");
  return isEarlyClose ? undefined : `no answer (${String(error)})`;
}

function describeAttempt({ method, path, headers, body }: Attempt): string {
  const shown = body.toString("utf8").slice(0, 1_500);
  return `${method} ${path.slice(0, 100)} ${JSON.stringify(headers)} ${shown}`;
}
