/** The policy and what a lost ledger had paid: neither makes the other forget. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { NATIVE_ASSET, parseCustomerId } from "../../../ledger/journal/accounts.js";
import type { LimitSubject } from "../../../ledger/policy/policy.js";
import { acceptWithdrawals } from "../../../ledger/withdrawals/withdrawals.js";
import { ANY_REQUEST } from "../../helpers/keys/signing.js";
import { policyOf } from "../policy/terms.js";
import { Desk, destination, TOKEN, WALLET } from "./desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
});
afterEach(() => desk.close());

/** What the worker answers to a request by the policy of the desk. */
async function ask(key: string, amountAtoken: bigint, expiresAtMs?: number, to = destination(2)) {
  const [outcome] = await acceptWithdrawals(
    desk.workerDatabase,
    [
      {
        idempotencyKey: key,
        customerId: parseCustomerId("alice"),
        asset: NATIVE_ASSET,
        destination: to,
        destinationText: to,
        amountUnits: amountAtoken,
        expiresAtMs,
      },
    ],
    { ...ANY_REQUEST, policy: desk.files.policy },
  );
  return outcome;
}

/** Alice is paid 2 TOKEN behind a backup, which comes back and is recovered. */
async function lose(expiresAtMs?: number): Promise<string> {
  const backup = await desk.backup();
  expect(await ask("a2", 2n * TOKEN, expiresAtMs)).toMatchObject({ outcome: "accepted" });
  await desk.work();
  await desk.register("bob");
  await desk.useDatabase(backup);
  await desk.watch();
  expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  await desk.watch();
  return desk.ownHashes().at(-1) ?? "";
}

describe("a request that the policy refuses and that equals a recovered payment", () => {
  it("is refused by it still when a person says that it was another one", async () => {
    await lose();
    desk.files.policy = policyOf({
      limits: [{ by: "customer", window: "day", maxUnits: TOKEN, maxCount: undefined }],
    });
    const outcome = await ask("another", 2n * TOKEN);
    if (outcome === undefined || outcome.outcome === "refused") throw new Error("not taken");
    const { id } = outcome.withdrawal;
    expect((await desk.read(id)).status).toBe("frozen");
    await desk.causeway("ledger", "pay-withdrawal", id, "--reason", "a new order");
    await desk.work();
    expect(await desk.read(id)).toMatchObject({
      status: "rejected",
      reason: expect.stringContaining("LIMIT_EXCEEDED"),
    });
    expect(desk.paidAtoken(destination(2))).toBe(2n * TOKEN);
    expect(await desk.availableAtoken("alice")).toBe(10n * TOKEN);
  });
});

describe("a lost request that a person booked with its key", () => {
  it("answers its client's repeat, whose deadline nobody could know", async () => {
    const expiresAtMs = Date.now() + 3_600_000;
    const hash = await lose(expiresAtMs);
    const claim = ["--customer", "alice", "--idempotency-key", "a2", "--reason", "their records"];
    await desk.causeway("ledger", "link-payment", hash, ...claim);
    const repeated = { outcome: "repeated", withdrawal: { status: "settled", txHash: hash } };
    expect(await ask("a2", 2n * TOKEN, expiresAtMs)).toMatchObject(repeated);
    expect(await ask("a2", 2n * TOKEN)).toMatchObject(repeated);
    const reused = { outcome: "refused", refusal: "IDEMPOTENCY_KEY_REUSED" };
    expect(await ask("a2", 3n * TOKEN, expiresAtMs)).toMatchObject(reused);
  });

  it("costs the service fee that a person knows, and it once", async () => {
    desk.files.policy = policyOf({ feeUnits: 7n });
    const hash = await lose();
    const claim = ["--customer", "alice", "--idempotency-key", "a2", "--reason", "their records"];
    await desk.causeway("ledger", "link-payment", hash, ...claim);
    expect(await desk.availableAtoken("alice")).toBe(8n * TOKEN);
    const sides = ["--debit", "liability:customer:alice", "--credit", "revenue:withdrawal_fees"];
    const terms = ["--key", `fee:${hash}`, ...sides, "--amount-atoken", "7"];
    const fee = ["ledger", "adjust", ...terms, "--reason", "their records"];
    expect((await desk.causeway(...fee)).code).toBe(0);
    await desk.causeway(...fee).catch(() => undefined);
    expect(await desk.availableAtoken("alice")).toBe(8n * TOKEN - 7n);
    expect(await desk.breaks()).toBe("");
  });
});

describe("a recovered payment that nobody has decided about", () => {
  const limitOf = (by: LimitSubject) =>
    policyOf({ limits: [{ by, window: "day", maxUnits: 3n * TOKEN, maxCount: undefined }] });
  const exceeded = { outcome: "refused", refusal: "LIMIT_EXCEEDED" };

  it("counts for its destination, until it is decided about", async () => {
    const hash = await lose();
    desk.files.policy = limitOf("destination");
    expect(await ask("more", TOKEN + 1n)).toMatchObject(exceeded);
    expect(await ask("else", TOKEN + 1n, undefined, destination(3))).toMatchObject({
      outcome: "accepted",
    });
    expect(await ask("fits", TOKEN)).toMatchObject({ outcome: "accepted" });
    expect(await ask("none is left", 1n)).toMatchObject(exceeded);
    await desk.causeway("ledger", "write-off-payment", hash, "--reason", "nobody's");
    expect(await ask("more", TOKEN + 1n)).toMatchObject({ outcome: "accepted" });
  });

  it("counts for each destination that it paid among others, and for its asset as a whole", async () => {
    const backup = await desk.backup();
    // In two parts, and at once.
    const payment = desk.chain.cosmosPayments(WALLET, [
      [destination(2), TOKEN],
      [destination(2), TOKEN],
      [destination(3), TOKEN],
    ]);
    desk.chain.mine([payment]);
    await desk.register("bob");
    await desk.useDatabase(backup);
    await desk.watch();
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    await desk.watch();
    desk.files.policy = limitOf("asset");
    expect(await ask("first", 1n, undefined, destination(5))).toMatchObject(exceeded);
    desk.files.policy = limitOf("destination");
    expect(await ask("a", TOKEN + 1n)).toMatchObject(exceeded);
    expect(await ask("b", 2n * TOKEN + 1n, undefined, destination(3))).toMatchObject(exceeded);
    const fits = [
      await ask("c", TOKEN - 1n),
      await ask("d", 2n * TOKEN, undefined, destination(3)),
      await ask("e", 3n * TOKEN, undefined, destination(4)),
    ];
    expect(fits.map((one) => one?.outcome)).toEqual(["accepted", "accepted", "accepted"]);
  });

  it("counts once for its asset when it became a customer's", async () => {
    const hash = await lose();
    desk.files.policy = limitOf("asset");
    expect(await ask("more", TOKEN + 1n, undefined, destination(3))).toMatchObject(exceeded);
    const claim = ["--customer", "alice", "--idempotency-key", "a2", "--reason", "their records"];
    await desk.causeway("ledger", "link-payment", hash, ...claim);
    expect(await ask("more", TOKEN + 1n, undefined, destination(3))).toMatchObject(exceeded);
    expect(await ask("fits", TOKEN, undefined, destination(3))).toMatchObject({
      outcome: "accepted",
    });
  });

  it("counts for the wallet that paid it", async () => {
    await lose();
    desk.files.policy = limitOf("wallet");
    const fits = await ask("fits", TOKEN, undefined, destination(3));
    const more = await ask("more", 1n, undefined, destination(4));
    await desk.work(4);
    expect(desk.paidAtoken(destination(3))).toBe(TOKEN);
    expect(desk.paidAtoken(destination(4))).toBe(0n);
    if (fits?.outcome !== "accepted" || more?.outcome !== "accepted") throw new Error("refused");
    expect(await desk.read(more.withdrawal.id)).toMatchObject({
      status: "accepted",
      reason: expect.stringContaining("the wallet's limit"),
    });
  });

  it("counts under a policy that came after the request", async () => {
    await lose();
    const asked = await ask("more", TOKEN + 1n);
    if (asked?.outcome !== "accepted") throw new Error("refused");
    desk.files.policy = limitOf("destination");
    await desk.work(2);
    expect(await desk.read(asked.withdrawal.id)).toMatchObject({
      status: "rejected",
      reason: expect.stringContaining("LIMIT_EXCEEDED"),
    });
    expect(desk.paidAtoken(destination(2))).toBe(2n * TOKEN);
  });
});
