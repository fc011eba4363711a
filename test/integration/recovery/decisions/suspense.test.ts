/** Decisions about coins in suspense: given once, to whom is named, and never more than is left. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { readStatement } from "../../../../ledger/books/statement.js";
import { entriesOfDeposit } from "../../../../ledger/deposits/deposit-evidence.js";
import { parseCustomerId } from "../../../../ledger/journal/accounts.js";
import { testAddress } from "../../../helpers/chains/fake-chain.js";
import { derivation, Desk, destination, STRANGER, TOKEN, WALLET } from "../desk.js";
import { booksOf, REASON } from "./books.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.open();
});
afterEach(() => desk.close());

const { takeFrom, reconcile, totals, twoInSuspense } = booksOf(() => desk);

describe("decisions about the books", () => {
  it("give nobody units of a paused token, and say so", async () => {
    const token = parseAddress(testAddress(0x70c3));
    desk.chain.token = token;
    desk.tokens = [{ contractAddress: token, symbol: "PLAIN", decimals: 18 }];
    await desk.watch();
    const { address } = await desk.register("alice");
    const paid = { from: WALLET, to: address, units: TOKEN };
    desk.chain.mine([
      desk.chain.tokenPayment(STRANGER, { from: undefined, to: WALLET, units: TOKEN }),
      desk.chain.tokenPayment(WALLET, paid),
    ]);
    await desk.watch();
    const [deposit] = await desk.database.query<{ id: string }>(
      `SELECT id FROM deposit WHERE status = 'suspense' AND asset = 'PLAIN'`,
    );
    const give = ["ledger", "assign-deposit", deposit?.id ?? "", "--customer", "alice", ...REASON];
    const setPaused = (paused: boolean) =>
      desk.database.query(
        `UPDATE token_state SET paused = $1, reason = 'other code', changed_by = 'test'`,
        [paused],
      );
    await setPaused(true);
    await expect(desk.causeway(...give)).rejects.toMatchObject({
      code: "INVALID_DECISION",
      message: expect.stringContaining("causeway tokens state"),
    });
    await setPaused(false);
    await desk.causeway(...give);
    expect(await totals("liability:customer:alice")).toBe(-TOKEN);
  });

  it("release suspense to a customer, and take an opening balance", async () => {
    const { address } = await desk.register("alice");
    await desk.watch();
    desk.pay([WALLET, 2n * TOKEN]);
    desk.pay([address, TOKEN]);
    desk.chain.mine();
    await desk.watch();
    const adjust = (key: string, ...rest: string[]) =>
      desk.causeway("ledger", "adjust", "--key", key, ...rest, ...REASON);
    const release = ["--debit", "liability:suspense", "--credit", "liability:customer:alice"];
    await adjust("inflow-1", ...release, "--amount-atoken", String(TOKEN));
    expect(await desk.availableAtoken("alice")).toBe(2n * TOKEN);
    const opening = ["--debit", "asset:cold_storage", "--credit", "equity:opening_capital"];
    await adjust("opening-cold", ...opening, "--amount-atoken", "77");
    expect(await totals("asset:cold_storage")).toBe(77n);
    expect((await reconcile()).code).toBe(0);
    const sides = (debit: string, credit: string, amount: bigint) => [
      "--debit",
      debit,
      "--credit",
      credit,
      "--amount-atoken",
      String(amount),
    ];
    const [alice, suspense] = ["liability:customer:alice", "liability:suspense"];
    const refused: readonly (readonly [string, string, readonly string[]])[] = [
      ["already", "inflow-1", sides(suspense, alice, TOKEN)],
      ["below zero", "k1", sides(alice, suspense, 9n * TOKEN)],
      ["evidence", "k2", sides("asset:break", `asset:wallet:${WALLET}`, 1n)],
      ["one of", "k3", sides("asset:nowhere", "asset:break", 1n)],
      ["does not know", "k4", sides(suspense, "liability:customer:nobody", 1n)],
      ["same account", "k5", sides(suspense, suspense, 1n)],
      ...["", "1e1", "0x1", "-1", "Infinity"].map((block) => {
        const rest = [...sides(suspense, alice, 1n), `--block=${block}`];
        return ["--block", "k6", rest] as const;
      }),
    ];
    for (const [why, key, rest] of refused) {
      await expect(adjust(key, ...rest)).rejects.toThrow(why);
    }
    const silent = ["ledger", "adjust", "--key", "k", ...sides(suspense, alice, 1n)];
    await expect(desk.causeway(...silent, "--reason", " ")).rejects.toThrow("--reason");
  });

  it("leave a deposit that went to suspense to the customer who is named", async () => {
    const early = destination(5);
    await desk.watch();
    // Paid before it was anybody's address.
    const next = derivation.addressAt(0);
    desk.pay([next, TOKEN], [early, 1n]);
    desk.chain.mine();
    await desk.watch();
    await desk.register("alice");
    desk.chain.mine();
    await desk.watch();
    expect(await desk.availableAtoken("alice")).toBe(0n);
    const [row] = await desk.database.query<{ id: string }>(`SELECT id FROM deposit`);
    for (const nobody of ["causeway:treasury", "causeway:suspense", "causeway:unassigned"]) {
      const given = ["ledger", "assign-deposit", row?.id ?? "", "--customer", nobody, ...REASON];
      await expect(desk.causeway(...given)).rejects.toMatchObject({ code: "INVALID_DECISION" });
    }
    const assign = ["ledger", "assign-deposit", row?.id ?? "", "--customer", "alice", ...REASON];
    expect((await desk.causeway(...assign)).text).not.toContain("the ledger had no customer");
    expect(await desk.availableAtoken("alice")).toBe(TOKEN);
    await expect(desk.causeway(...assign)).rejects.toMatchObject({ code: "DECIDED_ALREADY" });
    expect((await reconcile()).code).toBe(0);
  });

  it("give the same coins out of suspense once, whichever decisions name them", async () => {
    const [one, two] = await twoInSuspense(TOKEN, 2n * TOKEN);
    const assign = (id: string, customer: string) =>
      desk.causeway("ledger", "assign-deposit", id, "--customer", customer, ...REASON);
    const adjust = (key: string, amountAtoken: bigint) => {
      const sides = ["--debit", "liability:suspense", "--credit", "liability:customer:alice"];
      const terms = ["--key", key, "--amount-atoken", String(amountAtoken), ...sides];
      return desk.causeway("ledger", "adjust", ...terms, ...REASON);
    };
    await adjust("by-hand", TOKEN + 1n);
    const empty = { code: "INVALID_DECISION", message: expect.stringContaining("suspense holds") };
    await expect(assign(two, "bob")).rejects.toMatchObject(empty);
    await assign(one, "alice");
    await expect(adjust("again", TOKEN)).rejects.toMatchObject(empty);
    expect(await desk.availableAtoken("alice")).toBe(2n * TOKEN + 1n);
    expect(await desk.availableAtoken("bob")).toBe(0n);
    expect(await totals("liability:suspense")).toBe(1n - TOKEN);
    expect((await reconcile()).code).toBe(0);
  });

  it("take from suspense what lies there, whichever decision does", async () => {
    await desk.watch();
    desk.pay([WALLET, 2n * TOKEN]);
    await desk.watch();
    const hash = takeFrom(WALLET, STRANGER, 7n * TOKEN);
    await desk.watch();
    const accept = (account: string) =>
      desk.causeway("ledger", "accept-outflow", hash, "--account", account, ...REASON);
    await expect(accept("liability:suspense")).rejects.toMatchObject({
      code: "INVALID_DECISION",
      message: expect.stringContaining("suspense holds"),
    });
    expect(await totals("liability:suspense")).toBe(-2n * TOKEN);
    await accept("asset:break");
    expect((await reconcile()).code).toBe(0);
  });

  it("take from suspense by a deposit's name, and give of it only what is left", async () => {
    const [one, two] = await twoInSuspense(3n * TOKEN, 4n * TOKEN);
    const adjust = (key: string, depositId: string, amountAtoken: bigint, ...more: string[]) => {
      const sides = ["--debit", "liability:suspense", "--credit", "expense:write_off"];
      const what = ["--key", key, "--deposit", depositId, "--amount-atoken", `${amountAtoken}`];
      return desk.causeway("ledger", "adjust", ...what, ...sides, ...more, ...REASON);
    };
    const assign = (id: string, customer: string) =>
      desk.causeway("ledger", "assign-deposit", id, "--customer", customer, ...REASON);
    await adjust("part", one, TOKEN);
    // What lies there of others is not this deposit's.
    for (const [id, amountAtoken] of [
      [one, 2n * TOKEN + 1n],
      [two, 4n * TOKEN + 1n],
      ["1-2-3", 1n],
    ] as const) {
      await expect(adjust("more", id, amountAtoken)).rejects.toMatchObject({
        code: "INVALID_DECISION",
      });
    }
    await adjust("all", two, 4n * TOKEN);
    await expect(assign(two, "bob")).rejects.toMatchObject({ code: "INVALID_DECISION" });
    await assign(one, "alice");
    await expect(adjust("late", one, 1n)).rejects.toMatchObject({ code: "INVALID_DECISION" });
    expect(await desk.availableAtoken("alice")).toBe(2n * TOKEN);
    expect(await desk.availableAtoken("bob")).toBe(0n);
    expect(await totals("liability:suspense")).toBe(0n);
    expect((await reconcile()).code).toBe(0);
    const all = (await desk.causeway("ledger", "decisions")).text;
    expect(all).toContain(`depositId ${two}`);
    const taken = await desk.database.query(
      `SELECT e.memo, e.effective_height::integer AS height
         FROM journal_entry e WHERE e.idem_key = 'adjustment:all'`,
    );
    expect(taken).toEqual([{ memo: expect.stringMatching(/^0x[0-9a-f]{64}$/), height: 1 }]);
  });

  it("stand in the evidence of the deposit that they name, and in the customer's statement", async () => {
    const [one, two] = await twoInSuspense(3n * TOKEN, 4n * TOKEN);
    const give = (key: string, id: string, customer: string, amountAtoken: bigint) => {
      const sides = ["--debit", "liability:suspense", "--credit", `liability:customer:${customer}`];
      const what = ["--key", key, "--deposit", id, "--amount-atoken", `${amountAtoken}`];
      return desk.causeway("ledger", "adjust", ...what, ...sides, ...REASON);
    };
    await give("part", one, "bob", TOKEN);
    await give("all", two, "bob", 4n * TOKEN);
    const left = async (id: string) => {
      const entries = await entriesOfDeposit(desk.database, id);
      const effects = entries.flatMap(({ postings }) =>
        postings.map(({ debit, credit, amountUnits }) => {
          const came = credit === "liability:suspense" ? amountUnits : 0n;
          return debit === "liability:suspense" ? came - amountUnits : came;
        }),
      );
      return effects.reduce((sum, units) => sum + units, 0n);
    };
    expect([await left(one), await left(two)]).toEqual([2n * TOKEN, 0n]);
    const period = { from: new Date(0), to: new Date("2100-01-01T00:00:00Z") };
    const { signal } = new AbortController();
    const bob = parseCustomerId("bob");
    const { assets } = await readStatement(desk.database, bob, period, { signal });
    const named = assets.flatMap(({ movements }) => movements.map(({ evidence }) => evidence));
    expect(named.map(({ depositId }) => depositId)).toEqual([one, two]);
  });

  it("name a deposit only where coins are taken from suspense", async () => {
    await desk.watch();
    const sides = ["--debit", "asset:break", "--credit", "equity:adjustment"];
    const what = ["--key", "k", "--deposit", "1-0-0", "--amount-atoken", "1"];
    await expect(
      desk.causeway("ledger", "adjust", ...what, ...sides, ...REASON),
    ).rejects.toMatchObject({ code: "INVALID_DECISION" });
  });

  it("give no more of a deposit that came again than was not given before", async () => {
    const address = derivation.addressAt(0);
    await desk.watch();
    const kept = desk.chain.head;
    // As a recovery leaves it: of a customer whom only a person knows.
    await desk.database.query(
      `INSERT INTO deposit_address (index, address, customer_id, from_height, backfilled)
       VALUES (0, $1, 'causeway:unassigned', 1, true)`,
      [address],
    );
    await desk.database.query(`UPDATE watch_cursor SET next_address_index = 1`);
    const payment = desk.chain.payment(STRANGER, address, 5n * TOKEN);
    const comesAndIsGiven = async () => {
      desk.chain.mine([payment]);
      desk.chain.mine();
      await desk.watch();
      const [row] = await desk.database.query<{ id: string }>(
        `SELECT id FROM deposit WHERE status = 'suspense'`,
      );
      const id = row?.id ?? "";
      await desk.causeway("ledger", "assign-deposit", id, "--customer", "bob", ...REASON);
    };
    const isLost = async () => {
      await desk.loseAbove(kept);
      expect((await desk.causeway("recover", "--apply")).code).toBe(0);
      desk.chain.mine();
      await desk.watch();
    };
    await comesAndIsGiven();
    const fields = { key: "b", customer: "bob", to: destination(7), amountAtoken: 4n * TOKEN };
    await desk.request(fields);
    await desk.work();
    await desk.watch();
    for (let loss = 0; loss < 2; loss += 1) {
      await isLost();
      expect(await desk.availableAtoken("bob")).toBe(0n);
      await comesAndIsGiven();
      expect(await desk.availableAtoken("bob")).toBe(TOKEN);
      expect((await reconcile()).code).toBe(0);
    }
  });
});
