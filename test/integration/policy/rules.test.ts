/** The policy when requests are accepted: every rule, alone and under a hundred requests at once. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { setKillSwitch } from "../../../ledger/kill-switch/kill-switch.js";
import type { HashedPolicy } from "../../../ledger/policy/policy.js";
import { activatePolicy } from "../../../ledger/policy/policy-store.js";
import { judgeAtSlot, writeAtSlot } from "../../../ledger/policy/stored-judgement.js";
import { parseCustomerId } from "../../../ledger/journal/accounts.js";
import {
  type AcceptOutcome,
  acceptWithdrawals,
  type WithdrawalRequest,
} from "../../../ledger/withdrawals/withdrawals.js";
import { ANY_REQUEST, PERMISSIVE } from "../../helpers/keys/signing.js";
import { until } from "../../helpers/until.js";
import { freshAddress, House, requestOf, WALLET } from "../../helpers/exchange/house.js";
import { standing } from "../../helpers/services/ledger.js";
import { policyOf } from "./terms.js";

let house: House;
let customers = 0;

beforeAll(async () => {
  house = await House.open();
});

afterAll(async () => {
  await house.close();
});

async function newCustomer(units = 1_000n) {
  customers += 1;
  const id = parseCustomerId(`customer-${customers}`);
  await house.fund(id, units);
  return id;
}

async function ask(
  policy: HashedPolicy,
  fields: Partial<WithdrawalRequest>,
): Promise<AcceptOutcome | undefined> {
  const rules = { ...ANY_REQUEST, policy };
  const [outcome] = await acceptWithdrawals(house.database, [requestOf(fields)], rules);
  return outcome;
}

const codeOf = (outcome: AcceptOutcome | undefined) =>
  outcome?.outcome === "refused" ? outcome.refusal : outcome?.outcome;

describe("rules about one request", () => {
  it("bound its amount from both sides, the bounds themselves allowed", async () => {
    const policy = policyOf({ minimumUnits: 10n, maximumUnits: 20n });
    const customerId = await newCustomer();
    const seen = [];
    for (const amountUnits of [9n, 10n, 20n, 21n]) {
      seen.push(codeOf(await ask(policy, { customerId, amountUnits })));
    }
    expect(seen).toEqual(["BELOW_MINIMUM", "accepted", "accepted", "ABOVE_MAXIMUM"]);
  });

  it("take nothing that is more than the signer signs in a whole day", async () => {
    const policy = policyOf({ maximumUnits: 40n, signerDayMaxUnits: 30n });
    const customerId = await newCustomer();
    const asked = (amountUnits: bigint) => ask(policy, { customerId, amountUnits });
    expect(codeOf(await asked(31n))).toBe("ABOVE_MAXIMUM");
    expect(codeOf(await asked(30n))).toBe("accepted");
    // What the day has no room for by now waits for the next one.
    expect(codeOf(await asked(30n))).toBe("accepted");
  });

  it("of an asset stand before the default ones", async () => {
    const [strict] = policyOf({ maximumUnits: 5n }).policy.assets.values();
    const [loose] = policyOf({ maximumUnits: 50n }).policy.assets.values();
    if (strict === undefined || loose === undefined) throw new Error("no rules");
    const customerId = await newCustomer();
    const assets = new Map([
      ["*", strict],
      ["TOKEN", loose],
    ]);
    const outcome = await ask(policyOf({}, { assets }), { customerId, amountUnits: 50n });
    expect(codeOf(outcome)).toBe("accepted");
  });

  it("let a customer with a list be paid there only, and others by the policy's word", async () => {
    const listed = freshAddress();
    const [alice, bob] = [await newCustomer(), await newCustomer()];
    const customersOf = new Map([[alice, new Set([listed])]]);
    const allowList = { delayHours: 0, others: "any" as const, customers: customersOf };
    const open = policyOf({}, { allowList });
    const closed = policyOf({}, { allowList: { ...allowList, others: "none" } });
    const to = { destination: listed, destinationText: listed, amountUnits: 1n };
    expect(codeOf(await ask(open, { customerId: alice, ...to }))).toBe("accepted");
    expect(codeOf(await ask(open, { customerId: alice, amountUnits: 1n }))).toBe(
      "DESTINATION_NOT_LISTED",
    );
    expect(codeOf(await ask(open, { customerId: bob, amountUnits: 1n }))).toBe("accepted");
    expect(codeOf(await ask(closed, { customerId: bob, ...to }))).toBe("DESTINATION_NOT_LISTED");
  });

  it("pay a newly listed destination only after the delay, which begins again when it comes back", async () => {
    const listed = freshAddress();
    const customerId = await newCustomer();
    const withList = (addresses: readonly string[]) =>
      policyOf(
        {},
        {
          allowList: {
            delayHours: 24,
            others: "any",
            customers: new Map([[customerId, new Set(addresses as (typeof listed)[])]]),
          },
        },
      );
    const policy = withList([listed]);
    const fields = { customerId, destination: listed, destinationText: listed, amountUnits: 1n };
    expect(codeOf(await ask(policy, fields))).toBe("DESTINATION_TOO_NEW");
    await activatePolicy(house.database, () => policy);
    expect(codeOf(await ask(policy, fields))).toBe("DESTINATION_TOO_NEW");
    // A day passes: the database has no clock that tests could move.
    await house.ledger.owner.query(`ALTER TABLE policy_listing DISABLE TRIGGER ALL`);
    await house.ledger.owner.query(`UPDATE policy_listing SET at = at - interval '24 hours'`);
    await house.ledger.owner.query(`ALTER TABLE policy_listing ENABLE TRIGGER ALL`);
    expect(codeOf(await ask(policy, fields))).toBe("accepted");
    await activatePolicy(house.database, () => withList([]));
    await activatePolicy(house.database, () => policy);
    expect(codeOf(await ask(policy, fields))).toBe("DESTINATION_TOO_NEW");
  });

  it("stop new requests by either switch, and answer repeats all the same", async () => {
    const customerId = await newCustomer();
    const request = requestOf({ customerId, amountUnits: 1n });
    const again = (isStopped: boolean) =>
      acceptWithdrawals(house.database, [request], { ...ANY_REQUEST, isStopped });
    expect((await again(true)).map(codeOf)).toEqual(["WITHDRAWALS_STOPPED"]);
    const [first] = await again(false);
    const by = { reason: "test", by: "tests" };
    await setKillSwitch(house.ledger.owner, { level: "stop-new", ...by });
    expect(codeOf(await ask(PERMISSIVE, { customerId, amountUnits: 1n }))).toBe(
      "WITHDRAWALS_STOPPED",
    );
    const [repeat] = await again(true);
    expect(codeOf(repeat)).toBe("repeated");
    await setKillSwitch(house.ledger.owner, { level: "none", ...by });
    expect(codeOf(first)).toBe("accepted");
  });

  it("charge the fee on top, held with the amount, or refuse for want of it", async () => {
    const policy = policyOf({ feeUnits: 3n });
    const customerId = await newCustomer(10n);
    expect(codeOf(await ask(policy, { customerId, amountUnits: 8n }))).toBe("INSUFFICIENT_BALANCE");
    const outcome = await ask(policy, { customerId, amountUnits: 7n });
    expect(outcome).toMatchObject({ outcome: "accepted", withdrawal: { feeUnits: 3n } });
    expect(await house.balance(customerId)).toEqual({ available: 0n, held: 10n });
  });
});

describe("limits", () => {
  it.each(["customer", "destination", "asset"] as const)(
    "by %s count amounts and requests, in the day and in a window",
    async (by) => {
      for (const window of ["day", 3_600] as const) {
        const customerId = await newCustomer();
        const destination = freshAddress();
        const to = { customerId, destination, destinationText: destination };
        const before = by === "asset" ? await askedToday() : { units: 0n, count: 0 };
        const byUnits = policyOf({
          limits: [{ by, window, maxUnits: before.units + 10n, maxCount: undefined }],
        });
        expect(codeOf(await ask(byUnits, { ...to, amountUnits: 6n }))).toBe("accepted");
        const refused = await ask(byUnits, { ...to, amountUnits: 5n });
        expect(refused).toMatchObject({
          refusal: "LIMIT_EXCEEDED",
          rule: expect.stringContaining(`${by} ${window === "day" ? "day" : "3600s"}`),
        });
        expect(codeOf(await ask(byUnits, { ...to, amountUnits: 4n }))).toBe("accepted");
        const byCount = policyOf({
          limits: [{ by, window, maxUnits: undefined, maxCount: before.count + 3 }],
        });
        expect(codeOf(await ask(byCount, { ...to, amountUnits: 1n }))).toBe("accepted");
        expect(codeOf(await ask(byCount, { ...to, amountUnits: 1n }))).toBe("LIMIT_EXCEEDED");
      }
    },
  );

  async function askedToday(): Promise<{ units: bigint; count: number }> {
    const [row] = await house.database.query<{ units: string; count: number }>(
      `SELECT coalesce(sum(amount_units), 0)::text AS units, count(*)::integer AS count
         FROM withdrawal WHERE status NOT IN ('failed', 'rejected', 'cancelled')`,
    );
    return { units: BigInt(row?.units ?? "0"), count: row?.count ?? 0 };
  }

  it("are not exceeded by a hundred requests at once, from two processes", async () => {
    // Of many customers, so that no balance makes them wait for each other.
    const askers = await Promise.all(Array.from({ length: 20 }, () => newCustomer()));
    const destination = freshAddress();
    const policy = policyOf({
      limits: [{ by: "destination", window: "day", maxUnits: 370n, maxCount: undefined }],
    });
    const outcomes = await Promise.all(
      Array.from({ length: 100 }, (_, index) => {
        const database = index % 2 === 0 ? house.database : house.ledger.owner;
        const customerId = askers[index % askers.length];
        const to = { destination, destinationText: destination };
        const request = requestOf({ customerId, amountUnits: 10n, ...to });
        return acceptWithdrawals(database, [request], { ...ANY_REQUEST, policy });
      }),
    );
    const codes = outcomes.flat().map(codeOf);
    expect(codes.filter((code) => code === "accepted")).toHaveLength(37);
    expect(codes.filter((code) => code === "LIMIT_EXCEEDED")).toHaveLength(63);
    const held = await Promise.all(askers.map(async (id) => (await house.balance(id)).held));
    expect(held.reduce((sum, units) => sum + units)).toBe(370n);
  });

  it("hold within one batch, too, and what was refused leaves no trace in them", async () => {
    const customerId = await newCustomer();
    const policy = policyOf({
      limits: [{ by: "customer", window: "day", maxUnits: 10n, maxCount: undefined }],
    });
    const requests = [6n, 5n, 4n].map((amountUnits) => requestOf({ customerId, amountUnits }));
    const outcomes = await acceptWithdrawals(house.database, requests, { ...ANY_REQUEST, policy });
    expect(outcomes.map(codeOf)).toEqual(["accepted", "LIMIT_EXCEEDED", "accepted"]);
  });

  it("of one window that bound amounts and numbers apart count each request once", async () => {
    const customerId = await newCustomer();
    const same = { by: "customer", window: "day" } as const;
    const policy = policyOf({
      limits: [
        { ...same, maxUnits: 10n, maxCount: undefined },
        { ...same, maxUnits: undefined, maxCount: 3 },
      ],
    });
    const requests = [4n, 4n, 2n, 1n].map((amountUnits) => requestOf({ customerId, amountUnits }));
    const outcomes = await acceptWithdrawals(house.database, requests, { ...ANY_REQUEST, policy });
    const accepted = ["accepted", "accepted", "accepted"];
    expect(outcomes.map(codeOf)).toEqual([...accepted, "LIMIT_EXCEEDED"]);
  });
});

describe("a decision", () => {
  it("is kept with the policy that took it and who asked, and nobody changes either", async () => {
    const policy = policyOf({ feeUnits: 1n });
    const asked = { customerId: await newCustomer(), amountUnits: 1n, requestedBy: "asker" };
    const outcome = await ask(policy, asked);
    if (outcome?.outcome !== "accepted") throw new Error("not accepted");
    const rows = await house.database.query(
      `SELECT stage, outcome, rules, body FROM policy_decision JOIN policy_version ON hash = policy_hash
        WHERE withdrawal_id = $1`,
      [outcome.withdrawal.id],
    );
    expect(rows).toEqual([
      {
        stage: "accept",
        outcome: "pay",
        rules: { approvals: 0, signed: false, feeUnits: "1", requestedBy: "asker" },
        body: policy.text,
      },
    ]);
    for (const table of ["policy_decision", "policy_version", "policy_activation"]) {
      await expect(house.ledger.owner.query(`DELETE FROM ${table}`)).rejects.toThrow("append-only");
    }
    await expect(
      house.ledger.owner.query(`INSERT INTO policy_version (hash, body) VALUES ($1, 'other')`, [
        "0".repeat(64),
      ]),
    ).rejects.toThrow();
  });
});

describe("a limit that comes into force", () => {
  it("is kept where one was accepted by the policy of before while another was being judged", async () => {
    const [alice, bob] = [await newCustomer(), await newCustomer()];
    const destination = freshAddress();
    const to = { destination, destinationText: destination, amountUnits: 6n };
    const limits = [
      { by: "destination" as const, window: "day" as const, maxUnits: 10n, maxCount: undefined },
    ];
    const limited = policyOf({ limits });
    await activatePolicy(house.database, () => limited);
    // Held behind its limits' count, until the other one is written down.
    const { owner } = house.ledger;
    const { second, first } = await standing(owner, async (tx) => {
      await tx.query(`SELECT 1 FROM customer_balance WHERE customer_id = $1 FOR UPDATE`, [bob]);
      const later = ask(limited, { customerId: bob, ...to });
      const isHeld = async () => {
        const rows = await owner.query(
          `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'
              AND query LIKE '%customer_balance%' AND datname = current_database()`,
        );
        return rows.length > 0;
      };
      await until(isHeld, { timeoutMs: 20_000, what: "the second one waits for its balance" });
      return { first: await ask(PERMISSIVE, { customerId: alice, ...to }), second: later };
    });
    const outcomes = [first, await second];
    expect(outcomes.map(codeOf)).toEqual(["accepted", "accepted"]);
    const ids = outcomes.flatMap((outcome) =>
      outcome?.outcome === "accepted" ? [outcome.withdrawal.id] : [],
    );
    const { allowed } = await house.database.transaction(async (tx) => {
      const judged = await judgeAtSlot(tx, { policy: limited, wallet: WALLET }, ids);
      await writeAtSlot(tx, limited, judged);
      return judged;
    });
    expect([...allowed]).toEqual(ids.slice(0, 1));
    const [, over] = ids;
    expect(over && (await house.read(over)).status).toBe("rejected");
  });
});
