/** A key that ends between the head of a request and the end of its body, which may be long in coming. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { listCalls } from "../../../../ledger/access/api-calls.js";
import { createApiKey, revokeApiKey } from "../../../../ledger/access/api-keys.js";
import { KeyRing } from "../../../../ledger/access/key-ring.js";
import { openTestLedger, type TestLedger } from "../../../helpers/services/ledger.js";

let ledger: TestLedger;
let ring: KeyRing;
let nowMs = Date.now();

beforeAll(async () => {
  ledger = await openTestLedger(undefined, "worker");
  ring = new KeyRing({
    database: ledger.database,
    fileKey: "the-key-of-the-home",
    service: "withdrawal-api",
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
  });
});
afterAll(() => ledger.drop());

function make(expiresAt?: Date) {
  return createApiKey(ledger.owner, {
    name: "a client",
    scopes: ["withdrawals:write"],
    callsPerSecond: undefined,
    expiresAt,
  });
}

function callOf(keyId: string, signedDigest?: string) {
  const rest = { idempotencyKey: undefined, actor: undefined, reason: undefined };
  const call = { keyId, method: "POST", path: "/v1/withdrawals", bodySha256: "0".repeat(64) };
  return { ...call, ...rest, signedDigest };
}

const calls = async (keyId: string) =>
  (await listCalls(ledger.owner, { keyId, afterSeq: 0, limit: 10 })).length;

it("has nothing done that was asked with it, once it is revoked", async () => {
  const { key, stored } = await make();
  const other = await make();
  expect(await ring.identify(key)).toMatchObject({ keyId: stored.id });
  await ring.record(callOf(stored.id));
  await revokeApiKey(ledger.owner, stored.id);
  // Of one batch, which is one statement.
  const [ended, others, own] = await Promise.allSettled([
    ring.record(callOf(stored.id, "1".repeat(64))),
    ring.record(callOf(other.stored.id)),
    ring.record(callOf("api.key")),
  ]);
  expect(ended).toMatchObject({ status: "rejected", reason: { status: 401 } });
  expect([others.status, own.status]).toEqual(["fulfilled", "fulfilled"]);
  expect([await calls(stored.id), await calls(other.stored.id)]).toEqual([1, 1]);
});

it("has nothing done that was asked with it, once it has expired", async () => {
  const { key, stored } = await make(new Date(nowMs + 1_000));
  expect(await ring.identify(key)).toMatchObject({ keyId: stored.id });
  await ring.record(callOf(stored.id));
  nowMs += 1_000;
  await expect(ring.record(callOf(stored.id))).rejects.toMatchObject({ status: 401 });
  expect(await calls(stored.id)).toBe(1);
});
