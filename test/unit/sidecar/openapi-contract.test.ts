import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { Ajv, type ValidateFunction } from "ajv";
import { SigningKey, Wallet } from "ethers";
import { parse } from "yaml";
import { assertBlock, assertOperations, assertOptions } from "./asserter.js";
import { ALICE, BOB, hashOf, startFakeChain } from "../../helpers/chains/journal-chain.js";
import type { FakeNode } from "../../helpers/chains/fake-node.js";
import type { Reply } from "./replies.js";
import { call, NETWORK, type Online, onlineServer } from "./servers.js";

const path = (relative: string) => fileURLToPath(new URL(`../../../${relative}`, import.meta.url));

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly description?: string;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly additionalProperties?: boolean;
  readonly example?: unknown;
}

interface Content {
  readonly content: { readonly "application/json": { readonly schema: { readonly $ref: string } } };
}

interface Api {
  readonly paths: Readonly<
    Record<
      string,
      {
        readonly post: {
          readonly requestBody: Content;
          readonly responses: Record<string, Content>;
        };
      }
    >
  >;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const load = (name: string): Api => parse(readFileSync(path(`openapi/${name}.yaml`), "utf8"));
const data = load("data");
const construction = load("construction");
const own: Api = {
  paths: { ...data.paths, ...construction.paths },
  components: { schemas: { ...data.components.schemas, ...construction.components.schemas } },
};

const REFERENCE = path("../shared/reference/mesh/api.json");
const hasReference = existsSync(REFERENCE);
const mesh: Api = hasReference ? JSON.parse(readFileSync(REFERENCE, "utf8")) : own;
if (!hasReference) {
  process.stdout.write(`skipped: no ${REFERENCE}; the API files are not compared with Rosetta's\n`);
}
const withReference = hasReference ? describe : describe.skip;

const nameOf = (content: Content | undefined) =>
  content?.content["application/json"].schema.$ref.split("/").at(-1) ?? "";
const sorted = (names: Iterable<string>) =>
  [...names].toSorted((left, right) => (left < right ? -1 : 1));
const fieldsOf = (schema: Schema | undefined) => sorted(Object.keys(schema?.properties ?? {}));
const requiredOf = (schema: Schema | undefined) => sorted(schema?.required ?? []);
const shapeOf = (schema: Schema | undefined) =>
  schema?.$ref ?? [schema?.type, schema?.items?.$ref ?? schema?.items?.type];
const requestName = (api: Api, at: string) => nameOf(api.paths[at]?.post.requestBody);
const responseName = (api: Api, at: string, status: string) =>
  nameOf(api.paths[at]?.post.responses[status]);

/** Validators of every schema of an API file, by name. */
function validators(api: Api): (name: string) => ValidateFunction {
  const ajv = new Ajv({ strict: false, allErrors: true, formats: { int32: true, int64: true } });
  ajv.addSchema({ $id: "api", components: api.components });
  return (name) => ajv.compile({ $ref: `api#/components/schemas/${name}` });
}

withReference("the API files beside Rosetta's", () => {
  it("have the same paths, all POST, with the same request and response schemas", () => {
    expect(sorted(Object.keys(own.paths))).toEqual(sorted(Object.keys(mesh.paths)));
    for (const at of Object.keys(mesh.paths)) {
      expect({ at, methods: Object.keys(own.paths[at] ?? {}) }).toEqual({ at, methods: ["post"] });
      const names = (api: Api) => [
        requestName(api, at),
        responseName(api, at, "200"),
        responseName(api, at, "500"),
      ];
      expect({ at, names: names(own) }).toEqual({ at, names: names(mesh) });
    }
  });

  it("require the same fields and have no field that Rosetta does not have", () => {
    // In Rosetta up to 1.4.13, and still in the types of its command-line tool.
    const older: Record<string, string[]> = {
      ConstructionPreprocessRequest: ["max_fee", "suggested_fee_multiplier"],
    };
    for (const [name, schema] of Object.entries(own.components.schemas)) {
      const theirs = mesh.components.schemas[name];
      expect({ name, known: theirs !== undefined }).toEqual({ name, known: true });
      const expected = sorted([...fieldsOf(theirs), ...(older[name] ?? [])]);
      expect({ name, fields: fieldsOf(schema) }).toEqual({ name, fields: expected });
      expect({ name, required: requiredOf(schema) }).toEqual({
        name,
        required: requiredOf(theirs),
      });
      expect({ name, values: schema.enum }).toEqual({ name, values: theirs?.enum });
      for (const field of fieldsOf(theirs)) {
        expect({ name, field, shape: shapeOf(schema.properties?.[field]) }).toEqual({
          name,
          field,
          shape: shapeOf(theirs?.properties?.[field]),
        });
      }
    }
  });
});

describe("the API files themselves", () => {
  it("tell shared schemas in the same words", () => {
    const shared = Object.keys(data.components.schemas).filter(
      (name) => name in construction.components.schemas,
    );
    expect(shared).toEqual(expect.arrayContaining(["Operation", "Amount", "Error"]));
    for (const name of shared) {
      expect(construction.components.schemas[name]).toEqual(data.components.schemas[name]);
    }
  });

  it("describe every schema and refuse unknown fields, and their examples are right", () => {
    const validate = validators(own);
    for (const [name, schema] of Object.entries(own.components.schemas)) {
      expect({ name, text: schema.description }).toEqual({ name, text: expect.any(String) });
      if (schema.type === "object") {
        expect({ name, closed: schema.additionalProperties }).toEqual({ name, closed: false });
      }
      if (schema.example !== undefined) {
        const check = validate(name);
        expect({ name, ok: check(schema.example), errors: check.errors }).toMatchObject({
          ok: true,
        });
      }
    }
  });
});

interface Sample {
  readonly at: string;
  readonly request: unknown;
  readonly status: number;
  readonly reply: Reply;
}

const side = (index: number, address: string, value: string) => ({
  operation_identifier: { index },
  ...(index === 0 ? {} : { related_operations: [{ index: 0 }] }),
  type: "CALL",
  status: "",
  account: { address },
  amount: { value, currency: { symbol: "TOKEN", decimals: 18 } },
});

describe("what the server takes and answers", () => {
  let node: FakeNode;
  let online: Online;
  const samples: Sample[] = [];
  const wallet = new Wallet(`0x${"11".repeat(32)}`);
  const key = new SigningKey(wallet.privateKey);
  const network_identifier = NETWORK;

  const send = async (at: string, fields: Record<string, unknown> = {}) => {
    const { status, body } = await call(online.server, at, fields);
    samples.push({ at, request: { network_identifier, ...fields }, status, reply: body });
    return body;
  };

  beforeAll(async () => {
    node = await startFakeChain({ eth_sendRawTransaction: () => hashOf("unused") });
    online = onlineServer(node.url);
    await readAll();
    await constructOne();
  });

  afterAll(async () => {
    await online.rpc.close();
    await node.close();
  });

  async function readAll(): Promise<void> {
    await send("/network/status");
    await send("/network/options");
    for (const index of [0, 1, 2, 1, 99]) await send("/block", { block_identifier: { index } });
    await send("/block", { block_identifier: {} });
    await send("/block/transaction", {
      block_identifier: { index: 1, hash: hashOf("block 1") },
      transaction_identifier: { hash: hashOf("memo") },
    });
    const account_identifier = { address: ALICE };
    await send("/account/balance", { account_identifier });
    await send("/account/balance", {
      account_identifier,
      block_identifier: { index: 1 },
      currencies: [{ symbol: "TOKEN", decimals: 18 }],
    });
    await send("/account/coins", { account_identifier, include_mempool: false });
    await send("/mempool");
    await send("/mempool/transaction", { transaction_identifier: { hash: hashOf("x") } });
    await send("/call", { method: "x", parameters: {} });
    await send("/events/blocks", { offset: 0, limit: 5 });
    await send("/search/transactions", { operator: "and", address: ALICE, success: true });
  }

  async function constructOne(): Promise<void> {
    const public_key = { hex_bytes: key.compressedPublicKey.slice(2), curve_type: "secp256k1" };
    await send("/construction/derive", { public_key });
    const operations = [side(0, wallet.address, "-7"), side(1, BOB, "7")];
    const { options } = await send("/construction/preprocess", {
      operations,
      metadata: { memo: "hi", max_fee: "900000000000" },
    });
    const { metadata } = await send("/construction/metadata", { options });
    const { unsigned_transaction, payloads } = await send("/construction/payloads", {
      operations,
      metadata,
    });
    await send("/construction/parse", { signed: false, transaction: unsigned_transaction });
    const signature = key.sign(`0x${payloads[0].hex_bytes}`);
    const { signed_transaction } = await send("/construction/combine", {
      unsigned_transaction,
      signatures: [
        {
          signing_payload: payloads[0],
          public_key,
          signature_type: "ecdsa_recovery",
          hex_bytes: `${signature.r.slice(2)}${signature.s.slice(2)}0${signature.yParity}`,
        },
      ],
    });
    const { transaction_identifier } = await send("/construction/hash", { signed_transaction });
    await send("/construction/parse", { signed: true, transaction: signed_transaction });
    node.methods.set("eth_sendRawTransaction", () => transaction_identifier.hash);
    await send("/construction/submit", { signed_transaction });
  }

  it("covers every path", () => {
    const covered = new Set(["/network/list", ...samples.map((sample) => sample.at)]);
    expect(sorted(covered)).toEqual(sorted(Object.keys(own.paths)));
    const failed = samples.filter(
      ({ at, status }) => at.startsWith("/construction") && status !== 200,
    );
    expect(failed).toEqual([]);
  });

  it.each([
    ["the project's own files", own],
    ["Rosetta's", mesh],
  ])("is valid by %s", (_name, api) => {
    const validate = validators(api);
    for (const { at, request, status, reply } of samples) {
      const checkRequest = validate(requestName(api, at));
      checkRequest(request);
      expect({ at, request, errors: checkRequest.errors }).toEqual({ at, request, errors: null });
      const checkReply = validate(responseName(api, at, String(status)));
      checkReply(reply);
      expect({ at, reply, errors: checkReply.errors }).toEqual({ at, reply, errors: null });
    }
  });

  it("passes the rules of Mesh's asserter", () => {
    const options = samples.find(({ at }) => at === "/network/options")?.reply;
    if (options === undefined) throw new Error("no options were asked");
    assertOptions(options);
    const { allow } = options;
    const listed = new Map(allow.errors.map((error) => [error.code, error]));
    for (const { at, status, reply } of samples) {
      if (status === 500) {
        const { details: _details, ...constant } = reply;
        expect(constant).toEqual(listed.get(reply.code));
      } else if (at === "/block") {
        assertBlock(reply.block, allow);
      } else if (at === "/construction/parse") {
        assertOperations(reply.operations, { allow, construction: true });
        expect(reply.operations.length).toBeGreaterThan(0);
      }
    }
    const parses = samples.filter(({ at }) => at === "/construction/parse");
    expect(parses.map(({ reply }) => reply.account_identifier_signers.length)).toEqual([0, 1]);
    expect(parses.map(({ reply }) => reply.metadata.memo)).toEqual(["hi", "hi"]);
  });
});
