/** A second loss of the ledger. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { Desk, destination, TOKEN } from "./desk.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.open();
  const { address } = await desk.register("alice");
  desk.pay([address, 10n * TOKEN]);
  desk.chain.mine();
  await desk.watch();
  await desk.lane().runRound(desk.signal);
});
afterEach(() => desk.close());

const FIELDS = { customer: "alice", to: destination(1), amountAtoken: TOKEN };

describe("a second loss", () => {
  it("pays nothing again that a person cleared in the first one", async () => {
    const first = await desk.backup();
    await desk.request({ key: "lost", ...FIELDS });
    await desk.work();
    await desk.register("bob");
    await desk.useDatabase(first);
    await desk.watch();
    await desk.causeway("recover", "--apply");
    await desk.watch();
    const other = await desk.request({ key: "other", ...FIELDS });
    await desk.work(1);
    expect((await desk.read(other.id)).status).toBe("frozen");
    await desk.causeway("ledger", "pay-withdrawal", other.id, "--reason", "a new order");
    const second = await desk.backup();
    await desk.work();
    expect(desk.paidAtoken(destination(1))).toBe(2n * TOKEN);
    await desk.register("carol");
    await desk.useDatabase(second);
    await desk.watch();
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    await desk.watch();
    await desk.work();
    // Two requests, two payments.
    expect(desk.paidAtoken(destination(1))).toBe(2n * TOKEN);
    expect((await desk.read(other.id)).status).toBe("frozen");
    // A person may say so again, who knows of the second payment.
    await desk.causeway("ledger", "pay-withdrawal", other.id, "--reason", "still another one");
    await desk.work();
    expect((await desk.read(other.id)).status).toBe("settled");
    expect(desk.paidAtoken(destination(1))).toBe(3n * TOKEN);
  });
});
