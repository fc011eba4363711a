/** Repeats of accepted requests while no policy can be read: nothing new is taken, and what was taken is told. */
import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, it } from "@jest/globals";
import { policyFileText } from "../../../ledger/policy/policy.js";
import { systemClock } from "../../../runtime/process/clock.js";
import { AcceptQueue } from "../../../withdrawal-worker/api/accept-queue.js";
import { PolicyReader } from "../../../withdrawal-worker/policy-keeper.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { freshFile, PERMISSIVE } from "../../helpers/keys/signing.js";
import { House, requestOf, TOKEN } from "../../helpers/exchange/house.js";

let house: House;

beforeEach(async () => {
  house = await House.open();
  await house.fund("alice", 100n * TOKEN);
});
afterEach(() => house.close());

it("are answered as ever, beside new requests that are not", async () => {
  const file = freshFile("policy.json");
  writeFileSync(file, policyFileText(PERMISSIVE.policy));
  const queue = new AcceptQueue(house.database, {
    onAccepted: () => undefined,
    minimumAtoken: 0n,
    policy: new PolicyReader({ file, log: silentLog }),
    isStopped: () => false,
    clock: systemClock,
    signal: house.signal,
  });
  const request = requestOf();
  const accepted = await queue.accept(request);
  expect(accepted.outcome).toBe("accepted");
  const { id } = await house.accept();

  writeFileSync(file, "{");
  const asked = [
    request,
    { ...request, amountUnits: 2n * TOKEN },
    requestOf({ amountUnits: 3n * TOKEN }),
  ].map((each) => queue.accept(each));
  expect(await Promise.allSettled(asked)).toMatchObject([
    { value: { ...accepted, outcome: "repeated" } },
    { value: { outcome: "refused", refusal: "IDEMPOTENCY_KEY_REUSED" } },
    { reason: { code: "POLICY_UNREADABLE", retriable: true } },
  ]);
  expect((await house.balance("alice")).held).toBe(2n * TOKEN);
  expect((await house.read(id)).status).toBe("accepted");

  writeFileSync(file, policyFileText(PERMISSIVE.policy));
  expect(await queue.accept(requestOf())).toMatchObject({ outcome: "accepted" });
});
