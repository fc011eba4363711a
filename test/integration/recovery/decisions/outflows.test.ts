/**
 * Decisions about what left addresses of the exchange, and about single amounts: reconcile is clean
 * again.
 */
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { toChecksumAddress } from "../../../../chain/address.js";
import { Desk, STRANGER, TOKEN, WALLET } from "../desk.js";
import { booksOf, REASON } from "./books.js";

let desk: Desk;

beforeEach(async () => {
  desk = await Desk.open();
});
afterEach(() => desk.close());

const { takeFrom, reconcile, totals } = booksOf(() => desk);

describe("decisions about the books", () => {
  it("explain a foreign outflow line by line: reconcile is clean again, at tolerance 0", async () => {
    await desk.watch();
    const hash = takeFrom(WALLET, STRANGER, 3n * TOKEN);
    await desk.watch();
    const before = await reconcile();
    expect(before.code).toBe(1);
    expect(before.text).toContain(hash);
    expect((await desk.causeway("ledger", "open")).text).toContain(`outflow ${hash}`);
    await desk.causeway("ledger", "accept-outflow", hash, ...REASON);
    const after = await reconcile();
    expect(after.code).toBe(0);
    expect(after.text).toContain(
      `decided (1): ${hash} in block 1: 3 from asset:wallet:${WALLET} to asset:break, by ann: ` +
        "the auditor asked",
    );
    expect(await totals("asset:break")).toBe(3n * TOKEN);
    const again = desk.causeway("ledger", "accept-outflow", hash, ...REASON);
    await expect(again).rejects.toMatchObject({ code: "DECIDED_ALREADY" });
    // The next one is a break again.
    takeFrom(WALLET, STRANGER, 1n);
    await desk.watch();
    expect((await reconcile()).code).toBe(1);
  });

  it("are not needed for a sweep by hand of a deposit address into the hot wallet", async () => {
    const { address } = await desk.register("alice");
    desk.pay([address, 5n * TOKEN]);
    await desk.watch();
    takeFrom(address, WALLET, 4n * TOKEN);
    await desk.watch();
    expect((await reconcile()).text).toContain("Clean");
    expect(await totals("liability:suspense")).toBe(0n);
    expect(await totals("asset:in_transit")).toBe(0n);
    expect(await desk.availableAtoken("alice")).toBe(5n * TOKEN);
  });

  it("take the account of a wallet as every command shows the wallet, with its checksum", async () => {
    await desk.watch();
    const hash = takeFrom(WALLET, STRANGER, TOKEN);
    await desk.watch();
    const before = await totals(`asset:wallet:${WALLET}`);
    const shown = toChecksumAddress(WALLET);
    const adjust = (wallet: string) => {
      const sides = ["--debit", "asset:break", "--credit", `asset:wallet:${wallet}`];
      const proof = ["--tx", hash, "--block", "1", "--amount-atoken", "7"];
      return desk.causeway("ledger", "adjust", "--key", "seven", ...sides, ...proof, ...REASON);
    };
    const digit = /[A-F]/.exec(shown)?.[0] ?? "";
    const mistyped = shown.replace(digit, digit.toLowerCase());
    await expect(adjust(mistyped)).rejects.toThrow("checksum");
    expect((await adjust(shown)).code).toBe(0);
    expect(await totals(`asset:wallet:${WALLET}`)).toBe(before - 7n);
  });

  it("move no more than any amount on the chain can be", async () => {
    await desk.watch();
    const sides = ["--debit", "asset:break", "--credit", "equity:adjustment"];
    const adjust = (key: string, amountAtoken: bigint) => {
      const what = ["--key", key, "--amount-atoken", `${amountAtoken}`];
      return desk.causeway("ledger", "adjust", ...what, ...sides, ...REASON);
    };
    const most = 2n ** 256n - 1n;
    await expect(adjust("more", most + 1n)).rejects.toMatchObject({ code: "INVALID_DECISION" });
    await adjust("most", most);
    expect(await totals("asset:break")).toBe(most);
  });
});
