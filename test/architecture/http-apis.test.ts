/**
 * Who judges HTTP requests: every operation of the API files is served behind the validator, and
 * those that may take the lane without Express are the ones that a test compares both ways.
 */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { OpenAPISchemaValidator } from "express-openapi-validator/dist/framework/openapi.schema.validator.js";
import { parse } from "yaml";
import { createOperatorRoutes } from "../../deposit-watcher/api/operator-routes.js";
import { createDepositRoutes } from "../../deposit-watcher/api/routes.js";
import { createWebhookRoutes } from "../../deposit-watcher/webhooks/routes.js";
import { ACCESS_SCOPES } from "../../ledger/access/scopes.js";
import { TREASURY, UNASSIGNED } from "../../ledger/journal/accounts.js";
import { loadApiSchemas, readApiFile } from "../../runtime/http/api-schema.js";
import { createPolicyRoutes } from "../../withdrawal-worker/api/policy-routes.js";
import { createWithdrawalRoutes } from "../../withdrawal-worker/api/routes.js";
import { createTreasuryRoutes } from "../../withdrawal-worker/api/treasury-routes.js";
import { createWalletRoutes } from "../../withdrawal-worker/api/wallet-routes.js";
import { compiledFolder } from "../helpers/services/services.js";
import { productSources } from "../helpers/sources/source-tree.js";

const METHODS = new Set(["get", "post", "put", "delete", "patch"]);

/** API files whose operations are sent through both ways by test/unit/runtime/http/http-lane.test.ts. */
const COMPARED = ["construction.yaml", "data.yaml"];

/** The one operation of its file that is, with a header beside its body. */
const REQUEST = { name: "withdrawal.yaml", path: "/v1/withdrawals", method: "post" };

/** What a key of each scope opens, over both APIs that ask for keys. */
const OPENED: Readonly<Record<string, readonly string[]>> = {
  "deposits:read": [
    "get /v1/assets",
    "get /v1/customers/{id}/balances",
    "get /v1/deposits",
    "get /v1/deposits/explain",
    "get /v1/deposits/{id}",
    "get /v1/events",
    "get /v1/token-sightings",
  ],
  "addresses:write": ["post /v1/addresses"],
  "withdrawals:read": [
    "get /v1/kill-switch",
    "get /v1/sweeps",
    "get /v1/treasury",
    "get /v1/wallets",
    "get /v1/withdrawals",
    "get /v1/withdrawals/{id}",
    "get /v1/withdrawals/{id}/approvals",
  ],
  "withdrawals:write": ["post /v1/withdrawals", "post /v1/withdrawals/{id}/cancel"],
  "approvals:write": ["post /v1/withdrawals/{id}/approvals"],
  "operations:write": [
    "delete /v1/webhooks/{id}",
    "delete /v1/webhooks/{id}/secrets/{secretId}",
    "post /v1/incidents/resume",
    "post /v1/kill-switch",
    "post /v1/webhooks",
    "post /v1/webhooks/{id}/redeliver",
    "post /v1/webhooks/{id}/secrets",
  ],
  "audit:read": [
    "get /v1/calls",
    "get /v1/decisions",
    "get /v1/deposits/{id}/evidence",
    "get /v1/fees",
    "get /v1/figures",
    "get /v1/incidents",
    "get /v1/policy",
    "get /v1/reconciliations",
    "get /v1/webhooks",
    "get /v1/webhooks/{id}",
    "get /v1/webhooks/{id}/deliveries",
  ],
  // Figures of /metrics, which is no operation of an API file.
  "metrics:read": [],
};

/** Files of the APIs that ask for keys. */
const KEYED = ["deposit.yaml", "withdrawal.yaml"];

const sources = productSources();
const operations = readdirSync("openapi")
  .filter((name) => name.endsWith(".yaml"))
  .flatMap((name) => {
    const api: { paths: Record<string, Record<string, unknown>> } = parse(
      readFileSync(`openapi/${name}`, "utf8"),
    );
    return Object.entries(api.paths).flatMap(([path, item]) =>
      Object.keys(item)
        .filter((key) => METHODS.has(key))
        .map((method) => ({ name, path, method, described: JSON.stringify(item[method]) })),
    );
  });

describe("HTTP APIs", () => {
  it("have one server, and it has the validator", () => {
    const makers = sources.filter(({ packages }) => packages.includes("express-openapi-validator"));
    expect(makers.map(({ path }) => path)).toEqual(["runtime/http/http-server.ts"]);
  });

  it("are described by the rules of OpenAPI, and compile", () => {
    const rules = new OpenAPISchemaValidator({ version: "3.0.3", validateApiSpec: true });
    expect(
      rules.validate({ openapi: "3.0.3", info: { title: "", version: "" } } as never).errors,
    ).not.toEqual([]);
    const files = readdirSync("openapi").filter((name) => name.endsWith(".yaml"));
    for (const name of files) {
      const document = parse(readFileSync(`openapi/${name}`, "utf8"));
      expect({ name, errors: rules.validate(document).errors }).toEqual({ name, errors: [] });
    }
    const direct = operations.filter((one) => COMPARED.includes(one.name));
    for (const { name, path, method } of [...direct, REQUEST]) {
      const schemas = loadApiSchemas(`openapi/${name}`);
      expect(schemas.requestCheck(path, method)).toBeInstanceOf(Function);
      expect(schemas.responseCheck(path, method)).toBeInstanceOf(Function);
    }
  });

  it("name, as their guides do, who stands in rows and events and is no customer", () => {
    const read = (path: string) => readFileSync(path, "utf8").replace(/\s+/g, " ");
    const described = (name: string) =>
      parse(readFileSync(`openapi/${name}`, "utf8")).components.schemas.CustomerId.description;
    const guide = read("docs/guide/webhooks.md");
    expect(described("deposit.yaml")).toContain(`\`${UNASSIGNED}\``);
    expect(guide).toContain(`\`${UNASSIGNED}\``);
    const texts = [...KEYED.map(described), guide, read("docs/treasury.md")];
    for (const text of texts) expect(text).toContain(`\`${TREASURY}\``);
  });

  it("are in the build as JSON, too, which is what its programs read", async () => {
    const built = join(await compiledFolder(), "openapi");
    const files = readdirSync("openapi").filter((name) => name.endsWith(".yaml"));
    expect(files.length).toBeGreaterThan(3);
    for (const name of files) {
      const json = join(built, name.replace(".yaml", ".json"));
      const document: unknown = parse(readFileSync(`openapi/${name}`, "utf8"));
      expect(JSON.parse(readFileSync(json, "utf8"))).toEqual(document);
      // Whoever has only that file reads it.
      const folder = mkdtempSync(join(tmpdir(), "causeway-api-"));
      cpSync(json, join(folder, basename(json)));
      expect(readApiFile(join(folder, name))).toEqual(document);
      rmSync(folder, { recursive: true });
    }
  });

  it("have a handler for every operation of their files", () => {
    expect(operations.length).toBeGreaterThan(25);
    const text = sources
      .filter(({ path }) => /^(sidecar|deposit-watcher|withdrawal-worker|indexer)\//.test(path))
      .map((source) => source.text)
      .join("\n");
    const missing = operations.filter(({ path }) => {
      const last = path.split("/").at(-1) ?? "";
      return !text.includes(`"${path}"`) && !text.includes(`"${last}"`);
    });
    expect(missing).toEqual([]);
  });

  it("ask for the scope of every operation behind a key, and say what it is where they name one", () => {
    // Handlers are not called.
    const none = {} as never;
    const routes = [
      ...createDepositRoutes(none),
      ...createWebhookRoutes(none),
      ...createOperatorRoutes(none),
      ...createWithdrawalRoutes(none),
      ...createPolicyRoutes(none),
      ...createTreasuryRoutes(none),
      ...createWalletRoutes(none),
    ];
    const scopeOf = new Map(routes.map((one) => [`${one.method} ${one.path}`, one.scope]));
    expect(scopeOf.size).toBe(routes.length);
    const wanted = Object.entries(OPENED).flatMap(([scope, list]) =>
      list.map((operation) => [operation, scope] as const),
    );
    expect(Object.fromEntries(scopeOf)).toEqual(Object.fromEntries(wanted));
    expect(Object.keys(OPENED)).toEqual([...ACCESS_SCOPES]);
    const keyed = operations.filter(({ name }) => KEYED.includes(name));
    const named = keyed.map(({ method, path }) => `${method} ${path}`);
    expect(named.toSorted()).toEqual([...scopeOf.keys()].toSorted());
    for (const { method, path, described } of keyed) {
      const [, told] = /Scope `([a-z:]+)`/.exec(described) ?? [];
      const scope = scopeOf.get(`${method} ${path}`);
      expect({ method, path, told: told ?? scope }).toEqual({ method, path, told: scope });
    }
  });

  it("are told of by their scope to whoever gives a program a key of its own", () => {
    const rows = readFileSync("docs/operations.md", "utf8").matchAll(
      /^\| `([a-z]+:[a-z]+)` \|.*$/gm,
    );
    const told = [...rows].map(([row, scope]) => {
      const routes = [...row.matchAll(/`(GET|POST|DELETE) (\/v1\/[^` ]+)`/g)];
      return [
        scope,
        routes.map(([, method, path]) => `${method?.toLowerCase()} ${path}`).toSorted(),
      ];
    });
    expect(told).toEqual(Object.entries(OPENED).map(([scope, list]) => [scope, list.toSorted()]));
  });

  it("mark no operation for the lane that is not compared both ways", () => {
    const marking = sources.filter(({ text }) => /\bdirect: true\b/.test(text));
    expect(marking.map(({ path }) => path).toSorted()).toEqual([
      "sidecar/rosetta/endpoint.ts",
      "withdrawal-worker/api/routes.ts",
    ]);
    const marks = marking.map(({ text }) => text.match(/\bdirect: true\b/g)?.length);
    expect(marks).toEqual([1, 1]);
    const compared = readFileSync("test/unit/runtime/http/http-lane.test.ts", "utf8");
    for (const name of COMPARED) expect(compared).toContain(`openapi/${name}`);
    expect(compared).toContain(`openapi/${REQUEST.name}`);
    expect(compared).toContain(`REQUEST_PATH = "${REQUEST.path}"`);
    const posts = operations.filter(({ name }) => COMPARED.includes(name));
    expect(posts.filter(({ method }) => method !== "post")).toEqual([]);
  });
});
