/** Who decides about the books: by two where asked, with a reason, and with names that both have seen. */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../../chain/address.js";
import { testAddress } from "../../../helpers/chains/fake-chain.js";
import { Desk, STRANGER, TOKEN, WALLET } from "../desk.js";
import { booksOf, REASON } from "./books.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.open();
});
afterEach(() => desk.close());

const { takeFrom, reconcile, twoInSuspense } = booksOf(() => desk);

describe("decisions about the books", () => {
  it("wait for a second person where two are asked for", async () => {
    desk.env["CAUSEWAY_WATCHER_LEDGER_TWO_PERSONS"] = "true";
    await desk.watch();
    const hash = takeFrom(WALLET, STRANGER, TOKEN);
    await desk.watch();
    const proposed = await desk.causeway("ledger", "accept-outflow", hash, ...REASON);
    expect(proposed.text).toContain("1 proposed accept-outflow");
    expect((await reconcile()).code).toBe(1);
    const own = desk.causeway("ledger", "approve", "1", "--operator", "ann");
    await expect(own).rejects.toMatchObject({ code: "SECOND_PERSON_NEEDED" });
    await desk.causeway("ledger", "refuse", "1", "--operator", "bea");
    const late = desk.causeway("ledger", "approve", "1", "--operator", "bea");
    await expect(late).rejects.toMatchObject({ code: "NO_PROPOSAL" });
    await desk.causeway("ledger", "accept-outflow", hash, ...REASON);
    await desk.causeway("ledger", "approve", "2", "--operator", "bea");
    const clean = await reconcile();
    expect(clean.code).toBe(0);
    expect(clean.text).toContain("by ann and bea");
    const all = (await desk.causeway("ledger", "decisions")).text.split("\n");
    expect(all.map((line) => line.split(" ").slice(0, 3).join(" "))).toEqual([
      "1 refused accept-outflow",
      "2 done accept-outflow",
    ]);
    // Whose the reason is, and who agreed to it or did not.
    expect(all[0]).toMatch(/; proposed by ann: .*; refused by bea$/);
    expect(all[1]).toMatch(/; proposed by ann: .*; approved by bea$/);
    await expect(
      desk.database.query(`UPDATE operator_decision SET reason = 'none'`),
    ).rejects.toMatchObject({ details: { sqlState: "23001" } });
  });

  it.each(["false", "true"])(
    "correct the books of assets that there are, with two persons: %s",
    async (twoPersons) => {
      desk.env["CAUSEWAY_WATCHER_LEDGER_TWO_PERSONS"] = twoPersons;
      await desk.watch();
      await desk.register("alice");
      const sides = ["--debit", "expense:write_off", "--credit", "liability:customer:alice"];
      const mistyped = ["--key", "k", "--asset", "TOKNE", "--amount-atoken", "5"];
      const adjust = desk.causeway("ledger", "adjust", ...mistyped, ...sides, ...REASON);
      await expect(adjust).rejects.toMatchObject({
        code: "INVALID_DECISION",
        message: expect.stringContaining("TOKNE"),
      });
      expect((await desk.causeway("ledger", "decisions")).text).toBe("Nobody decided anything.");
    },
  );

  it.each(["false", "true"])(
    "make a withdrawal good in what it was of, with two persons: %s",
    async (twoPersons) => {
      const token = parseAddress(testAddress(0x70c3));
      desk.chain.token = token;
      desk.tokens = [{ contractAddress: token, symbol: "PLAIN", decimals: 18 }];
      await desk.watch();
      await desk.register("alice");
      const sides = ["--debit", "expense:write_off", "--credit", "liability:customer:alice"];
      const adjust = (key: string, ...asset: string[]) => {
        const terms = ["--key", key, "--amount-atoken", "5", ...asset, ...sides];
        return desk.causeway("ledger", "adjust", ...terms, ...REASON);
      };
      await adjust("opening", "--asset", "PLAIN");
      const wish = { key: "w", customer: "alice", to: STRANGER, amountAtoken: 5n };
      const { id } = await desk.request({ ...wish, asset: "PLAIN" });
      desk.env["CAUSEWAY_WATCHER_LEDGER_TWO_PERSONS"] = twoPersons;
      for (const kind of ["lost-key", "found-key", "by-hand"]) {
        await expect(adjust(`${kind}:${id}`)).rejects.toMatchObject({
          code: "INVALID_DECISION",
          message: `${id} is a withdrawal of PLAIN, not of TOKEN: say --asset PLAIN`,
        });
      }
      // What names no withdrawal of this ledger is the person's own word.
      expect((await adjust("lost-key:of-the-HSM")).code).toBe(0);
      expect((await adjust(`lost-key:${id}`, "--asset", "PLAIN")).code).toBe(0);
    },
  );

  it("are shown to the second person as they are, whatever is in their reasons", async () => {
    desk.env["CAUSEWAY_WATCHER_LEDGER_TWO_PERSONS"] = "true";
    await desk.watch();
    await desk.register("alice");
    const forged = "1 proposed write-off-payment, proposed by bea: dust";
    // Begins the line anew and clears it; a line of its own; conceals what follows.
    const reason = `x\r\u001b[2K${forged}\n${forged}\u009b8m\u202e`;
    const terms = ["--debit", "expense:write_off", "--credit", "liability:customer:alice"];
    const adjust = ["--key", "k", "--amount-atoken", "5", ...terms, "--reason", reason];
    const proposed = await desk.causeway("ledger", "adjust", ...adjust, "--operator", "mal");
    await desk.causeway("killswitch", "set", "stop-new", "--reason", reason);
    const said = [
      proposed,
      await desk.causeway("ledger", "open"),
      await desk.causeway("ledger", "decisions"),
    ];
    for (const { text } of said) {
      expect(text.split("\n")).toHaveLength(1);
      expect(text).toMatch(/^1 proposed adjust key k, .*amountAtoken 5; proposed by mal: x\\u000d/);
    }
    said.push(await desk.causeway("killswitch", "show"), await desk.causeway("reconcile"));
    const document = await desk.causeway("ledger", "decisions", "--json");
    expect(JSON.parse(document.text).decisions[0].reason).toBe(reason);
    const obeyed = ["\r", "\u001b", "\u009b", "\u202e"];
    for (const { text } of [...said, document]) {
      expect(obeyed.filter((character) => text.includes(character))).toEqual([]);
    }
  });

  it("have a reason that the ledger can keep", async () => {
    await desk.watch();
    const hash = takeFrom(WALLET, STRANGER, TOKEN);
    await desk.watch();
    for (const reason of [" ", "x".repeat(1_001)]) {
      for (const words of [
        ["ledger", "accept-outflow", hash],
        ["withdrawals", "release", "--acknowledge", hash],
        ["wallets", "drain", WALLET],
      ]) {
        await expect(desk.causeway(...words, "--reason", reason)).rejects.toMatchObject({
          code: "USAGE",
          message: expect.stringContaining("--reason"),
        });
      }
    }
  });

  it("name a customer that is made by them: the name may be mistyped", async () => {
    const [one, two] = await twoInSuspense(TOKEN, TOKEN);
    const assign = (id: string, customer: string, ...more: string[]) =>
      desk.causeway("ledger", "assign-deposit", id, "--customer", customer, ...REASON, ...more);
    const { text } = await assign(one, "alcie");
    expect(text).toMatch(/\nthe ledger had no customer alcie before: .*ledger adjust/);
    expect(JSON.parse((await assign(two, "alcie", "--json")).text).newCustomer).toBeNull();
  });

  it("name it to both persons: as not there yet to the first, as just made to the second", async () => {
    desk.env["CAUSEWAY_WATCHER_LEDGER_TWO_PERSONS"] = "true";
    const [one, two] = await twoInSuspense(TOKEN, TOKEN);
    const assign = (id: string) =>
      desk.causeway("ledger", "assign-deposit", id, "--customer", "alcie", ...REASON);
    const decide = (verb: string, id: string) =>
      desk.causeway("ledger", verb, id, "--operator", "bea");
    const NEW = "\nthe ledger had no customer alcie";
    expect((await assign(one)).text).toContain(`${NEW} yet`);
    // Nobody is made by a refusal.
    expect((await decide("refuse", "1")).text).not.toContain(NEW);
    expect((await assign(one)).text).toContain(`${NEW} yet`);
    expect((await decide("approve", "2")).text).toMatch(
      /\nthe ledger had no customer alcie before: .*ledger adjust/,
    );
    // There is one of that name by now.
    expect((await assign(two)).text).not.toContain(NEW);
    expect((await decide("approve", "3")).text).not.toContain(NEW);
  });
});
