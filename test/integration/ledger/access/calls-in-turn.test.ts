/** The record of calls as somebody reads on in it, while both APIs write: nothing comes behind what was read. */
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import { listCalls, recordCalls } from "../../../../ledger/access/api-calls.js";
import { openTestLedger, type TestLedger, standing } from "../../../helpers/services/ledger.js";
import { until } from "../../../helpers/until.js";

let ledger: TestLedger;

beforeAll(async () => {
  ledger = await openTestLedger(undefined, "worker");
});
afterAll(() => ledger.drop());

const callOf = (path: string) => {
  const rest = { idempotencyKey: undefined, actor: undefined, reason: undefined };
  const call = { keyId: "api.key", method: "POST", path, bodySha256: "0".repeat(64) };
  return { ...call, ...rest, signedDigest: undefined };
};

it("has no call that is committed later before one that was read", async () => {
  const { database, owner } = ledger;
  const nowMs = Date.now();
  const read = (afterSeq: number) => listCalls(owner, { keyId: undefined, afterSeq, limit: 10 });
  let isDone = false;
  const waits = async () => {
    const rows = await owner.query(
      `SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE NOT granted AND datname = current_database()`,
    );
    return rows.length > 0;
  };
  let second: Promise<unknown> = Promise.resolve();
  const first: string[] = [];
  let seq = 0;
  await standing(database, async (tx) => {
    await recordCalls(tx, { service: "withdrawal-api", nowMs }, [callOf("/v1/withdrawals")]);
    // The other API's, at the same moment: it is written at once, or waits for its turn.
    const call = [callOf("/v1/addresses")];
    second = recordCalls(owner, { service: "deposit-api", nowMs }, call).finally(() => {
      isDone = true;
    });
    await until(async () => isDone || (await waits()), { timeoutMs: 10_000 });
    const page = await read(0);
    first.push(...page.map(({ path }) => path));
    seq = page.at(-1)?.seq ?? 0;
  });
  await second;
  const rest = (await read(seq)).map(({ path }) => path);
  expect([...first, ...rest]).toEqual(["/v1/withdrawals", "/v1/addresses"]);
});
