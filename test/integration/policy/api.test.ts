/** Approvals over HTTP: who the key says that asks, what it may, and what everybody sees. */
import { resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import request from "supertest";
import type { Address } from "../../../chain/address.js";
import type { ShownNonce } from "../../../ledger/requests/signing-freeze.js";
import { createApiKey } from "../../../ledger/access/api-keys.js";
import { KeyRing } from "../../../ledger/access/key-ring.js";
import type { AccessScope } from "../../../ledger/access/scopes.js";
import { activatePolicy } from "../../../ledger/policy/policy-store.js";
import { rejudgePending } from "../../../ledger/policy/stored-judgement.js";
import { createHotWallet } from "../../../ledger/wallets/wallet-lease.js";
import { resumeUnpaid } from "../../../ledger/withdrawals/operator-decisions.js";
import { createHttpServer, type HttpServer } from "../../../runtime/http/http-server.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { createMetrics } from "../../../runtime/process/metrics.js";
import { AcceptQueue } from "../../../withdrawal-worker/api/accept-queue.js";
import { mapWithdrawalError } from "../../../withdrawal-worker/api/api-errors.js";
import { createPolicyRoutes } from "../../../withdrawal-worker/api/policy-routes.js";
import { createWithdrawalRoutes } from "../../../withdrawal-worker/api/routes.js";
import { ApiError, WorkerError } from "../../../withdrawal-worker/errors.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { freshAddress, House, WALLET } from "../../helpers/exchange/house.js";
import { APPROVERS, policyOf, signatureOf } from "./terms.js";

let house: House;
let server: HttpServer;
let isStopped = false;
let policyFault: Error | undefined;
/** What the lanes of the API's process were shown. */
const shownNonces = new Map<Address, ShownNonce>();
/** Why the API's process cannot look at the chain; undefined where it can. */
let lookFault: ApiError | undefined;
const keys: Record<string, string> = {};

beforeAll(async () => {
  house = await House.withAlice(1_000_000n);
  const policy = {
    current: async () => {
      if (policyFault !== undefined) throw policyFault;
      return house.files.policy;
    },
  };
  const { clock, database } = house;
  server = createHttpServer({
    name: "withdrawal-api",
    apiSpecPath: resolve("openapi/withdrawal.yaml"),
    listen: { host: "127.0.0.1", port: 0 },
    routes: [
      ...createWithdrawalRoutes({
        database,
        accept: new AcceptQueue(database, {
          onAccepted: () => undefined,
          minimumAtoken: 0n,
          policy,
          isStopped: () => isStopped,
          clock: systemClock,
          signal: new AbortController().signal,
        }),
        policy,
        chainId: FAKE_CHAIN_ID,
        tokens: [],
        shownNonces,
        look: {
          async beforeEnding() {
            if (lookFault !== undefined) throw lookFault;
          },
        },
        onCancelled: () => undefined,
      }),
      ...createPolicyRoutes({
        database,
        policy,
        chainId: FAKE_CHAIN_ID,
        switchFile: "",
        clock,
        log: silentLog,
      }),
    ],
    access: new KeyRing({
      database: house.database,
      fileKey: "file-key",
      service: "withdrawal-api",
      clock: systemClock,
    }),
    mapError: mapWithdrawalError,
    readiness: () => ({ ready: true }),
    log: silentLog,
    metrics: createMetrics({ processMetrics: false }),
    bodyLimitBytes: 4_096,
  });
  const scopes: Record<string, readonly AccessScope[]> = {
    asker: ["withdrawals:write", "withdrawals:read", "approvals:write"],
    ann: ["approvals:write", "withdrawals:read"],
    ben: ["approvals:write"],
    reader: ["withdrawals:read"],
  };
  for (const [name, granted] of Object.entries(scopes)) {
    const made = await createApiKey(house.ledger.owner, {
      name,
      scopes: granted,
      callsPerSecond: undefined,
      expiresAt: undefined,
    });
    keys[name] = made.key;
  }
});

afterAll(async () => {
  await house.close();
});

const bearer = (who: string) => ({ Authorization: `Bearer ${keys[who] ?? who}` });

let asked = 0;
const ask = (amountUnits: string, key = `key ${asked++}`) =>
  request(server.app)
    .post("/v1/withdrawals")
    .set(bearer("asker"))
    .set("Idempotency-Key", key)
    .send({ customerId: "alice", asset: "TOKEN", to: freshAddress(), amountAtoken: amountUnits });

const say = (id: string, who: string, body: object) =>
  request(server.app).post(`/v1/withdrawals/${id}/approvals`).set(bearer(who)).send(body);

it("takes nothing back that has no nonce while the chain was never asked", async () => {
  house.files.policy = policyOf({
    approvals: [{ aboveUnits: 100n, needed: 1, signed: false }],
    feeUnits: 7n,
  });
  const { id } = (await ask("500")).body;
  lookFault = new ApiError(503, "UNAVAILABLE", "the node has not answered");
  const no = { decision: "reject", reason: "unknown payee" };
  expect(await say(id, "ann", no)).toMatchObject({ status: 503, body: { code: "UNAVAILABLE" } });
  const cancel = () =>
    request(server.app)
      .post(`/v1/withdrawals/${id}/cancel`)
      .set(bearer("asker"))
      .send({ reason: "changed its mind" });
  expect(await cancel()).toMatchObject({ status: 503, body: { code: "UNAVAILABLE" } });
  lookFault = undefined;
  const seen = await request(server.app).get(`/v1/withdrawals/${id}`).set(bearer("asker"));
  expect(seen.body).toMatchObject({ status: "pending_approval" });
  expect(await cancel()).toMatchObject({ status: 200, body: { status: "cancelled" } });
  lookFault = new ApiError(503, "UNAVAILABLE", "the node has not answered");
  expect(await cancel()).toMatchObject({ status: 200, body: { status: "cancelled" } });
  lookFault = undefined;
});

const YES = { decision: "approve", reason: "known payee" };

describe("POST /v1/withdrawals/{id}/approvals", () => {
  it("asks for two keys, none of them the one that asked, and shows what each said", async () => {
    house.files.policy = policyOf({
      approvals: [{ aboveUnits: 100n, needed: 2, signed: false }],
      feeUnits: 7n,
    });
    const { body: pending, status } = await ask("500");
    expect(status).toBe(201);
    expect(pending).toMatchObject({
      status: "pending_approval",
      feeUnits: "7",
      approvalsNeeded: 2,
      approvalsGiven: 0,
      policyHash: house.files.policy.hash,
      approvals: [],
    });
    const { id } = pending;
    const own = await say(id, "asker", YES);
    expect([own.status, own.body.code]).toEqual([422, "OWN_REQUEST"]);
    const lacking = await say(id, "reader", YES);
    expect([lacking.status, lacking.body.details.scope]).toEqual([403, "approvals:write"]);
    expect((await say(id, "ann", YES)).body).toMatchObject({ approvalsGiven: 1 });
    expect((await say(id, "ann", YES)).status).toBe(200);
    const listed = await request(server.app)
      .get("/v1/withdrawals?status=pending_approval")
      .set(bearer("reader"));
    expect(listed.body.withdrawals.map((one: { id: string }) => one.id)).toContain(id);
    const done = await say(id, "ben", YES);
    expect(done.status).toBe(200);
    expect(done.body).toMatchObject({ status: "accepted", approvalsGiven: 2 });
    expect(done.body.approvals).toHaveLength(2);
    expect(done.body.approvals[0]).toEqual({
      keyId: expect.stringMatching(/^[a-z0-9]{12}$/),
      decision: "approve",
      reason: "known payee",
      policyHash: house.files.policy.hash,
      signed: false,
      counts: true,
      at: expect.stringMatching(/Z$/),
    });
    // The home's own key may approve, too: it is nobody's that asked.
    const late = await say(id, "file-key", YES);
    expect([late.status, late.body.code]).toEqual([409, "NOT_PENDING"]);
  });

  it("takes one rejection, and the customer has the hold and the fee again", async () => {
    const before = await house.balance("alice");
    const { body: pending } = await ask("500");
    const ended = await say(pending.id, "ann", { decision: "reject", reason: "unknown payee" });
    expect(ended.body).toMatchObject({
      status: "rejected",
      reason: expect.stringMatching(/^rule approvals: [a-z0-9]{12} rejected it: unknown payee$/),
    });
    expect(await house.balance("alice")).toEqual(before);
  });

  it("gives no hold back at a rejection while the ledger has lost nonces that may have paid it", async () => {
    await createHotWallet(house.database, { wallet: WALLET, firstNonce: 4n });
    const before = await house.balance("alice");
    const { body: pending } = await ask("500");
    const held = await house.balance("alice");
    // A standby took over: it may lack the approvals of this one, its nonce and its payment.
    shownNonces.set(WALLET, { nonce: 5n });
    const said = await say(pending.id, "ann", { decision: "reject", reason: "unknown payee" });
    shownNonces.clear();
    expect([said.status, said.body.status]).toEqual([200, "frozen"]);
    expect(said.body.reason).toContain(WALLET);
    expect(await house.balance("alice")).toEqual(held);
    // A person finds that it was not paid.
    const { id, reason = "" } = await house.read(pending.id);
    expect(await resumeUnpaid(house.database, { id, reason })).toBe(true);
    expect((await house.read(id)).status).toBe("rejected");
    expect(await house.balance("alice")).toEqual(before);
  });

  it("takes signatures of approvers, and answers each fault with its code", async () => {
    house.files.policy = policyOf(
      { approvals: [{ aboveUnits: 0n, needed: 1, signed: true }] },
      { approvers: APPROVERS.slice(0, 1).map(({ name, publicKey }) => ({ name, publicKey })) },
    );
    const { body: pending } = await ask("500");
    const terms = await house.read(pending.id);
    const answers: (readonly [object, number, string])[] = [
      [YES, 422, "SIGNATURE_NEEDED"],
      [{ ...YES, ...signatureOf(1, terms, house.files.policy) }, 422, "BAD_SIGNATURE"],
      [{ ...YES, publicKey: APPROVERS[0]?.publicKey }, 422, "INVALID_FIELD"],
      [{ decision: "maybe", reason: "x" }, 422, "INVALID_FIELD"],
      [{ decision: "approve", reason: " " }, 422, "INVALID_FIELD"],
    ];
    for (const [body, status, code] of answers) {
      const answer = await say(pending.id, "ann", body);
      expect([answer.status, answer.body.code]).toEqual([status, code]);
    }
    const signed = { ...YES, ...signatureOf(0, terms, house.files.policy) };
    expect((await say(pending.id, "ann", signed)).body).toMatchObject({ status: "accepted" });
    expect((await say("wd_none", "ann", YES)).status).toBe(404);
  });
});

describe("GET /v1/policy", () => {
  it("shows all terms, without what opens the screening service", async () => {
    const url = "https://exchange:hunter2@aml.example/check?key=k-4711";
    const screening = { url, timeoutMs: 1_000, reviewApprovals: 2 };
    const shown = async () =>
      (await request(server.app).get("/v1/policy").set(bearer("file-key"))).body;
    house.files.policy = policyOf({});
    expect((await shown()).terms).toEqual(JSON.parse(house.files.policy.text));
    house.files.policy = policyOf({}, { screening });
    const { hash, terms } = await shown();
    expect(hash).toBe(house.files.policy.hash);
    expect(terms).toEqual({
      ...JSON.parse(house.files.policy.text),
      screening: { ...screening, url: "https://***@aml.example/***" },
    });
  });
});

describe("while the policy cannot be used", () => {
  it("what waits can be looked at and rejected, and not approved", async () => {
    house.files.policy = policyOf(
      { approvals: [{ aboveUnits: 0n, needed: 1, signed: false }] },
      { approvers: APPROVERS.map(({ name, publicKey }) => ({ name, publicKey })) },
    );
    await activatePolicy(house.database, () => house.files.policy);
    const before = await house.balance("alice");
    const { body: pending } = await ask("500");
    const path = `/v1/withdrawals/${pending.id}/approvals`;
    const look = () => request(server.app).get(path).set(bearer("reader"));
    expect((await look()).body.approvers).toHaveLength(3);
    policyFault = new WorkerError("POLICY_UNREADABLE", "a mistake", { retriable: true });
    try {
      const seen = await look();
      expect(seen.status).toBe(200);
      expect(seen.body).toMatchObject({ needed: 1, given: 0, approvers: [] });
      expect((await say(pending.id, "ann", YES)).status).toBe(503);
      const no = { decision: "reject", reason: "unknown payee" };
      const ended = await say(pending.id, "ann", no);
      expect([ended.status, ended.body.status]).toEqual([200, "rejected"]);
      policyFault = new Error("another fault");
      expect((await look()).status).toBe(500);
    } finally {
      policyFault = undefined;
    }
    expect(await house.balance("alice")).toEqual(before);
  });
});

describe("approvals under a policy that asks for more since", () => {
  it("are told not to count, beside those of now", async () => {
    const policyFor = (needed: number) =>
      policyOf({ approvals: [{ aboveUnits: 0n, needed, signed: false }] });
    house.files.policy = policyFor(2);
    const { body: pending } = await ask("500");
    await say(pending.id, "ann", YES);
    house.files.policy = policyFor(3);
    await activatePolicy(house.database, () => house.files.policy);
    await rejudgePending(house.database, house.files.policy);
    const countsOf = async () => {
      const { body } = await request(server.app)
        .get(`/v1/withdrawals/${pending.id}`)
        .set(bearer("reader"));
      const approvals: readonly { readonly counts: boolean }[] = body.approvals;
      return { given: body.approvalsGiven, counts: approvals.map(({ counts }) => counts) };
    };
    expect(await countsOf()).toEqual({ given: 0, counts: [false] });
    await say(pending.id, "ann", YES);
    expect(await countsOf()).toEqual({ given: 1, counts: [false, true] });
    await say(pending.id, "ben", { decision: "reject", reason: "unknown payee" });
    expect((await house.read(pending.id)).status).toBe("rejected");
  });
});

describe("what somebody has seen before deciding", () => {
  it("is held against what the withdrawal waits for now, unless it is rejected", async () => {
    house.files.policy = policyOf({ approvals: [{ aboveUnits: 0n, needed: 2, signed: false }] });
    const { hash } = house.files.policy;
    const { body: pending } = await ask("500");
    const outdated = [
      { needed: 1 },
      { policyHash: "0".repeat(64) },
      { needed: 1, policyHash: hash },
    ];
    for (const seen of outdated) {
      const answer = await say(pending.id, "ann", { ...YES, ...seen });
      expect([seen, answer.status, answer.body.code]).toEqual([seen, 409, "POLICY_CHANGED"]);
    }
    for (const seen of [{ needed: -1 }, { needed: "2" }, { policyHash: "ab" }]) {
      const answer = await say(pending.id, "ann", { ...YES, ...seen });
      expect([seen, answer.status, answer.body.code]).toEqual([seen, 422, "INVALID_FIELD"]);
    }
    const current = await say(pending.id, "ann", { ...YES, needed: 2, policyHash: hash });
    expect(current.body).toMatchObject({ approvalsGiven: 1 });
    const no = { decision: "reject", reason: "unknown payee", needed: 1 };
    expect((await say(pending.id, "ben", no)).status).toBe(200);
    expect((await house.read(pending.id)).status).toBe("rejected");
  });
});

describe("POST /v1/withdrawals under a policy", () => {
  it("is refused with the rule, and while withdrawals are stopped", async () => {
    house.files.policy = policyOf({
      limits: [{ by: "destination", window: "day", maxUnits: 10n, maxCount: undefined }],
    });
    const { status, body } = await ask("11");
    expect([status, body.code]).toEqual([422, "LIMIT_EXCEEDED"]);
    expect(body.details.rule).toMatch(/^TOKEN destination day 0x/);
    isStopped = true;
    const stopped = await ask("1");
    expect([stopped.status, stopped.body.code]).toEqual([422, "WITHDRAWALS_STOPPED"]);
    isStopped = false;
    expect((await ask("1")).status).toBe(201);
  });
});
