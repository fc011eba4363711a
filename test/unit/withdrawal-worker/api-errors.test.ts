/** Codes of the withdrawal API's refusals: its file lists all that a client may meet. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { parse } from "yaml";
import { requestError } from "../../../runtime/http/http-errors.js";
import { mapWithdrawalError } from "../../../withdrawal-worker/api/api-errors.js";
import type { ApiErrorCode } from "../../../withdrawal-worker/errors.js";

/** Every code that the API makes itself; one that is added does not compile until it stands here. */
const OWN: Readonly<Record<ApiErrorCode, true>> = {
  INVALID_IDEMPOTENCY_KEY: true,
  INVALID_FIELD: true,
  FORBIDDEN_DESTINATION: true,
  UNKNOWN_ASSET: true,
  UNKNOWN_CUSTOMER: true,
  INSUFFICIENT_BALANCE: true,
  IDEMPOTENCY_KEY_REUSED: true,
  BELOW_MINIMUM: true,
  DEADLINE_PASSED: true,
  ABOVE_MAXIMUM: true,
  LIMIT_EXCEEDED: true,
  DESTINATION_NOT_LISTED: true,
  DESTINATION_TOO_NEW: true,
  WITHDRAWALS_STOPPED: true,
  NOT_PENDING: true,
  OWN_REQUEST: true,
  SAID_OTHERWISE: true,
  SIGNATURE_NEEDED: true,
  BAD_SIGNATURE: true,
  POLICY_CHANGED: true,
  SWITCH_LOWERED: true,
  ALREADY_MINED: true,
  ALREADY_ENDED: true,
  UNAVAILABLE: true,
  NOT_FOUND: true,
};

/** Refusals of signed requests name themselves (runtime/http/signed-request.ts). */
const OF_SIGNATURES = ["MISSING", "EXPIRED", "INVALID", "REPLAYED"].map(
  (what) => `SIGNATURE_${what}`,
);

describe("the withdrawal API's codes", () => {
  it("are those that its file lists, with the server's own, and no others", () => {
    const api = parse(readFileSync("openapi/withdrawal.yaml", "utf8"));
    const listed: string[] | undefined = api.components.schemas.Error.properties.code.enum;
    const codeOf = (error: unknown) =>
      Reflect.get(mapWithdrawalError(error).body as object, "code");
    const statuses = [400, 401, 403, 404, 405, 413, 415, 422, 429, 499];
    const ofServer = statuses.map((status) => codeOf(requestError(status, "refused")));
    const codes = [
      ...Object.keys(OWN),
      ...OF_SIGNATURES,
      ...ofServer,
      "RECOVERY",
      codeOf(new Error()),
    ];
    expect(new Set(listed)).toEqual(new Set(codes));
    expect(new Set(listed).size).toBe(listed?.length);
  });
});
