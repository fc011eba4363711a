/** The direct lane beside Express: the same requests taken, the same replies, byte for byte. */
import { readFileSync } from "node:fs";
import { Agent, type IncomingHttpHeaders, request as httpRequest } from "node:http";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { parse } from "yaml";
import { AppError, errorMessage } from "../../../../chain/errors.js";
import { compileResponseCheck, loadApiSchemas } from "../../../../runtime/http/api-schema.js";
import { HttpError } from "../../../../runtime/http/http-errors.js";
import type { HttpReply } from "../../../../runtime/http/http-reply.js";
import type { HttpRequest } from "../../../../runtime/http/http-route.js";
import { type HttpServer, createHttpServer } from "../../../../runtime/http/http-server.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { createMetrics, type Metrics } from "../../../../runtime/process/metrics.js";
import {
  type Api,
  brokenBytes,
  mutate,
  sampleOf,
  schemaOf,
} from "../../../helpers/http/json-mutations.js";
import { createRandom } from "../../../helpers/random.js";
import { until } from "../../../helpers/until.js";

const SEED = 20_261_120;
const ROUNDS = 12;

const file = (path: string) => fileURLToPath(new URL(`../../../../${path}`, import.meta.url));
const DATA = file("openapi/data.yaml");
const CONSTRUCTION = file("openapi/construction.yaml");
const WITHDRAWAL = file("openapi/withdrawal.yaml");
const load = (path: string): Api => parse(readFileSync(path, "utf8"));
const apis = [DATA, CONSTRUCTION].map((apiSpecPath) => ({ apiSpecPath, api: load(apiSpecPath) }));

/** The one operation of its file that takes the lane. */
const REQUEST_PATH = "/v1/withdrawals";

const served = [
  ...apis.map(({ apiSpecPath, api }) => ({ apiSpecPath, paths: Object.keys(api.paths) })),
  { apiSpecPath: WITHDRAWAL, paths: [REQUEST_PATH] },
];

/** A withdrawal as the API shows it. */
const WITHDRAWAL_REPLY = {
  id: "wd_1",
  customerId: "alice",
  asset: "TOKEN",
  to: `0x${"a".repeat(40)}`,
  amountUnits: "1",
  amountAtoken: "1",
  status: "accepted",
  reason: null,
  expiresAt: null,
  wallet: null,
  nonce: null,
  hashes: [],
  txHash: null,
  blockNumber: null,
  history: [{ status: "accepted", at: "2026-11-21T10:00:00.123Z" }],
  feeUnits: "0",
  approvalsNeeded: 0,
  approvalsGiven: 0,
  policyHash: null,
  approvals: [],
};

interface Side {
  readonly server: HttpServer;
  readonly metrics: Metrics;
  /** Requests that handlers got, in order. */
  readonly seen: string[];
  /** How many of them came without Express. */
  direct: number;
}

/** What handlers answer next, the same on both sides. */
let reply: HttpReply | Error = {};

async function startSide(direct: boolean): Promise<Side> {
  const seen: string[] = [];
  const metrics = createMetrics({ processMetrics: false });
  const handler = async (request: HttpRequest) => {
    // Who calls: Express comes through its router.
    if (!/node_modules.router/.test(new Error("where").stack ?? "")) side.direct += 1;
    const { method, path, params, body, remoteAddress } = request;
    seen.push(JSON.stringify([method, path, params, body, remoteAddress]));
    if (reply instanceof Error) throw reply;
    return reply;
  };
  const [first, ...others] = served.map(({ apiSpecPath, paths }) => ({
    apiSpecPath,
    routes: paths.map((path) => ({
      method: "post" as const,
      path,
      direct,
      handler,
    })),
  }));
  if (first === undefined) throw new Error("no API file");
  const server = createHttpServer({
    ...first,
    moreApis: others,
    name: "lane",
    listen: { host: "127.0.0.1", port: 0 },
    mapError: (error) => ({
      status: error instanceof HttpError ? error.status : 500,
      body:
        error instanceof AppError
          ? { code: error.code, message: error.message, details: error.details }
          : { message: errorMessage(error) },
    }),
    readiness: () => ({ ready: true }),
    log: createLogger({ component: "test", level: "silent" }),
    metrics,
    bodyLimitBytes: 200_000,
  });
  await server.start();
  const side: Side = { server, metrics, seen, direct: 0 };
  return side;
}

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

const agent = new Agent({ keepAlive: true, maxSockets: 4 });

function send(
  side: Side,
  path: string,
  options: {
    readonly body: Buffer | string;
    readonly type?: string;
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string | string[]>>;
  },
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { body, type = "application/json", method = "POST" } = options;
    const length = Buffer.byteLength(body);
    const headers = { ...options.headers, "content-type": type, "content-length": length };
    const { port } = side.server;
    const request = httpRequest({ agent, port, path, method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => {
        const { statusCode: status, headers: got } = response;
        const { date: _date, ...others } = got;
        resolve({ status, headers: others, text: Buffer.concat(chunks).toString() });
      });
    });
    request.on("error", reject);
    request.end(body);
  });
}

describe("the direct lane", () => {
  let lane: Side;
  let plain: Side;

  beforeAll(async () => {
    lane = await startSide(true);
    plain = await startSide(false);
  });

  afterAll(async () => {
    agent.destroy();
    await Promise.all([lane.server.stop(), plain.server.stop()]);
  });

  /** Sends one request to both; all that can be seen is equal. True when it took the lane. */
  async function both(path: string, options: Parameters<typeof send>[2]): Promise<boolean> {
    const sides = [lane, plain];
    const [ours, theirs] = await Promise.all(sides.map((side) => send(side, path, options)));
    const about = `${path} ${String(options.body).slice(0, 300)}`;
    expect({ about, ...ours }).toEqual({ about, ...theirs });
    expect({ about, seen: lane.seen }).toEqual({ about, seen: plain.seen });
    expect(plain.direct).toBe(0);
    const { direct } = lane;
    lane.direct = 0;
    for (const { seen } of sides) seen.length = 0;
    return direct > 0;
  }

  it("answers as Express does, whatever is asked and whatever the handler says", async () => {
    const random = createRandom(SEED);
    const taken = { yes: 0, no: 0 };
    for (const { api } of apis) {
      for (const [path, { post }] of Object.entries(api.paths)) {
        for (let round = 0; round < ROUNDS; round += 1) {
          const fitting = sampleOf(schemaOf(post.responses["200"]), api, random);
          reply = { body: round % 3 === 0 ? mutate(fitting, random) : fitting };
          const sample = sampleOf(schemaOf(post.requestBody), api, random);
          const body = random.pick([
            () => Buffer.from(JSON.stringify(sample)),
            () => Buffer.from(JSON.stringify(mutate(sample, random)) ?? ""),
            () => brokenBytes(sample, random),
          ])();
          taken[(await both(path, { body })) ? "yes" : "no"] += 1;
        }
      }
    }
    // Both are common, else this would compare little.
    expect({ seed: SEED, common: Math.min(taken.yes, taken.no) > 50 }).toEqual({
      seed: SEED,
      common: true,
    });
  });

  it("leaves everything but a plain request to Express", async () => {
    reply = { body: { network_identifiers: [] } };
    const body = "{}";
    const path = "/network/list";
    expect(await both(path, { body })).toBe(true);
    expect(await both(path, { body, type: "Application/JSON; charset=UTF-8" })).toBe(true);
    const others: readonly (readonly [string, Parameters<typeof send>[2]])[] = [
      [path, { body, type: "application/json; charset=latin1" }],
      [path, { body, type: "application/json; v=1" }],
      [path, { body, type: "text/plain" }],
      [path, { body, type: "multipart/form-data; boundary=x" }],
      [path, { body, method: "PUT" }],
      [path, { body: "" }],
      [path, { body: `"${"x".repeat(300_000)}"` }],
      [`${path}?`, { body }],
      [`${path}?x=1`, { body }],
      [`${path}/`, { body }],
      ["/network/%6cist", { body }],
      ["/Network/list", { body }],
      ["/nothing", { body }],
    ];
    for (const [at, options] of others) {
      expect({ at, options, direct: await both(at, options) }).toMatchObject({ direct: false });
    }
  });

  it("sends statuses, headers, bytes and errors of handlers as Express does", async () => {
    const body = "{}";
    const path = "/network/list";
    const error = new AppError("ODD", "an odd fault", { details: { a: 1 } });
    const replies: readonly (HttpReply | Error)[] = [
      { bytes: Buffer.from('{"finished":"é"}'), headers: { "x-kind": "bytes" } },
      { body: { network_identifiers: [] }, headers: { "x-kind": "json" } },
      { status: 201, body: { network_identifiers: [] } },
      { status: 500, body: { code: 1, message: "é", retriable: false } },
      { status: 204 },
      { body: null },
      {},
      error,
      new Error("plain"),
    ];
    for (const next of replies) {
      reply = next;
      expect(await both(path, { body })).toBe(true);
    }
  });

  it("judges a header and times of replies as Express does", async () => {
    const random = createRandom(SEED);
    const request = { customerId: "alice", asset: "TOKEN", to: `0x${"a".repeat(40)}` };
    const body = JSON.stringify({ ...request, amountAtoken: "1" });
    const key = { "Idempotency-Key": "payment-1" };
    reply = { status: 201, body: WITHDRAWAL_REPLY };
    expect(await both(REQUEST_PATH, { body, headers: key })).toBe(true);
    const keys: readonly Readonly<Record<string, string | string[]>>[] = [
      {},
      { "Idempotency-Key": "" },
      { "Idempotency-Key": "x".repeat(128) },
      { "Idempotency-Key": "x".repeat(129) },
      { "Idempotency-Key": "h\u00e9" },
      { "Idempotency-Key": ["one", "two"] },
      { "Idempotency-Key": "~ !" },
    ];
    for (const headers of keys) await both(REQUEST_PATH, { body, headers });
    const taken = { yes: 0, no: 0 };
    for (let round = 0; round < 10 * ROUNDS; round += 1) {
      const isReply = round % 2 === 0;
      // Of a broken time each side tells in words of its own: below.
      const { expiresAt, history, ...others } = WITHDRAWAL_REPLY;
      const changed = isReply ? mutate(others, random) : others;
      const isObject = typeof changed === "object" && changed !== null && !Array.isArray(changed);
      const bodyOfReply = isObject ? { ...changed, expiresAt, history } : changed;
      reply = { status: random.pick([200, 201, 422]), body: bodyOfReply };
      const sent = isReply ? body : (JSON.stringify(mutate(JSON.parse(body), random)) ?? "");
      const isTaken = await both(REQUEST_PATH, { body: sent, headers: key });
      taken[isTaken ? "yes" : "no"] += 1;
    }
    expect({ seed: SEED, common: Math.min(taken.yes, taken.no) > 10 }).toEqual({
      seed: SEED,
      common: true,
    });
    for (const at of ["2026-11-21T10:00:00.123Z", "2026-11-21T10:00:00+01:00", "yesterday", ""]) {
      reply = { status: 201, body: { ...WITHDRAWAL_REPLY, expiresAt: at } };
      expect(await both(REQUEST_PATH, { body, headers: key })).toBe(true);
    }
    reply = { status: 409, body: { error: { code: "ALREADY_MINED", message: "too late" } } };
    expect(await both(REQUEST_PATH, { body, headers: key })).toBe(true);
    const isGetTaken = await both(REQUEST_PATH, { body, headers: key, method: "GET" });
    expect(isGetTaken).toBe(false);
  });

  it("measures its replies under the same names", async () => {
    const names = async ({ metrics }: Side) =>
      (await metrics.page())
        .split("\n")
        .filter((line) => /_count\{/.test(line))
        .toSorted();
    // A reply is measured when its connection is done with it: a moment after the client has it.
    await until(async () => (await names(lane)).join() === (await names(plain)).join(), {
      timeoutMs: 5_000,
      what: "both sides have measured the same replies",
    });
    expect((await names(lane)).join()).toContain('route="/account/balance",status="200"');
  });
});

describe("an API file's checks", () => {
  it("name the operation that they cannot express", () => {
    const schemas = loadApiSchemas(file("test/fixtures/runtime/api.yaml"));
    expect(() => schemas.requestCheck("/v1/things", "get")).toThrow(/get \/v1\/things has param/i);
    expect(() => schemas.requestCheck("/v1/nothing", "post")).toThrow(/is not in it/);
    expect(() => loadApiSchemas(file("package.json"))).toThrow(/not OpenAPI 3.0/);
    expect(() => loadApiSchemas(file("absent.yaml"))).toThrow(/cannot be read/);
  });

  it("refuse what the validator behind Express treats in a way of its own", () => {
    const schemas = loadApiSchemas(file("test/fixtures/runtime/odd-api.yaml"));
    for (const path of [
      "/date",
      "/read-only",
      "/discriminator",
      "/form",
      "/parameter",
      "/unknown",
    ]) {
      expect(() => schemas.requestCheck(path, "post")).toThrow(HttpError);
    }
    expect(() => schemas.requestCheck("/reference", "post")).not.toThrow();
    expect(() => schemas.responseCheck("/reference", "post")).not.toThrow();
    expect(() => schemas.responseCheck("/nowhere", "post")).toThrow(/by reference/);
    for (const path of ["/optional-header", "/number-header"]) {
      expect(() => schemas.requestCheck(path, "post")).toThrow(/parameters/);
    }
  });

  it("tell of a reply what is wrong with it", () => {
    const check = compileResponseCheck(DATA, "/network/list", "post");
    expect(() => check({ network_identifiers: [] })).not.toThrow();
    const fault = catchError(() => check({ network_identifiers: [{ blockchain: "token" }] }));
    expect(fault).toMatchObject({ code: "INVALID_RESPONSE", status: 500 });
    expect(fault).toHaveProperty("details.errors", [
      {
        path: "/response/network_identifiers/0/network",
        message: "must have required property 'network'",
        errorCode: "required.openapi.validation",
      },
    ]);
    expect(() => check({ network_identifiers: [] }, 404)).toThrow(/no schema defined/);
  });
});

function catchError(work: () => void): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
}
