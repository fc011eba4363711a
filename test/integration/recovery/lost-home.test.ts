/** A machine that is lost with its home: nobody remembers how many addresses were given out since the backup. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { HDNodeWallet } from "ethers";
import { createAddressDerivation } from "../../../chain/derivation/address-derivation.js";
import { derivation, Desk, TOKEN } from "./desk.js";

let desk: Desk;
let backup: string;

beforeEach(async () => {
  desk = await Desk.openWithAlice();
  backup = await desk.backup();
});
afterEach(() => desk.close());

/** Customers of the day of whom the backup knows nothing. @returns their addresses */
async function registerMany(count: number): Promise<string[]> {
  const given: string[] = [];
  for (let n = 0; n < count; n += 1) given.push((await desk.register(`new-${n}`)).address);
  return given;
}

/** Another machine: `config/` and the database are of the backup. */
async function loseMachine(): Promise<void> {
  await desk.useDatabase(backup);
  rmSync(`${desk.home}/data`, { recursive: true });
}

const declare = (...more: readonly string[]) =>
  desk.causeway("recover", "--declare", "the machine is lost", ...more);

describe("an address that was told since the backup", () => {
  it("is told to nobody else, also where a whole day's customers have paid nothing yet", async () => {
    const given = await registerMany(60);
    await loseMachine();
    expect((await declare("--apply")).code).toBe(0);
    await desk.watch();
    const { address, index } = await desk.register("dave");
    expect(given).not.toContain(address);
    expect(index).toBe(1 + 1_000);
    // Whoever was told one of them and pays now is not taken for another customer.
    desk.pay([derivation.addressAt(41), TOKEN]);
    desk.chain.mine();
    await desk.watch();
    expect(await desk.availableAtoken("dave")).toBe(0n);
    const found = await desk.database.query(`SELECT address, status FROM deposit ORDER BY seq`);
    expect(found.at(-1)).toEqual({ address: derivation.addressAt(41), status: "suspense" });
    expect(await desk.breaks()).toBe("");
  });

  it("is told to nobody else where the search was broken off and the ledger opened without it", async () => {
    const given = await registerMany(60);
    await loseMachine();
    desk.chain.isSyncing = true;
    await expect(declare()).rejects.toMatchObject({ code: "NODE_UNFIT" });
    desk.chain.isSyncing = false;
    // Closed already: the runbook's next command has no --declare.
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    const { address, index } = await desk.register("dave");
    expect(given).not.toContain(address);
    expect(index).toBe(1 + 1_000);
  });

  it("is found however far behind the others it was paid, with those behind it", async () => {
    desk.pay([derivation.addressAt(150), TOKEN]);
    desk.chain.mine();
    await loseMachine();
    const plan = await declare();
    expect(plan.code).toBe(1);
    expect(plan.text).toContain("register 1150 addresses without a customer, indexes 1 to 1150");
    expect(plan.text).toContain("Nobody remembers how many addresses were given out");
    // Typed again, it is the same plan.
    expect((await declare()).text).toContain("register 1150 addresses");
  });

  it("is the last one that the operator's own records know, and no margin is needed", async () => {
    await registerMany(60);
    await loseMachine();
    const plan = await declare("--last-address-index", "60");
    expect(plan.text).toContain("register 60 addresses without a customer, indexes 1 to 60");
    expect(plan.text).not.toContain("Nobody remembers");
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
    expect((await desk.register("dave")).index).toBe(61);
  });
});

describe("--last-address-index", () => {
  it("is refused where it says nothing, before anything is closed", async () => {
    await loseMachine();
    for (const index of ["", "-1", "1.5", "1e3", "0x10", "2147483648", "99999999999"]) {
      await expect(declare(`--last-address-index=${index}`)).rejects.toMatchObject({
        code: "USAGE",
        message: "--last-address-index takes 0 to 2147483647.",
      });
    }
    await expect(desk.causeway("recover", "--last-address-index", "7")).rejects.toMatchObject({
      code: "USAGE",
      message: "--last-address-index goes with --declare.",
    });
    // Mistyped by some digits: nothing would take it back.
    await expect(declare("--last-address-index", "60000000")).rejects.toMatchObject({
      message: "more than 1000000 addresses are lost",
    });
    expect((await desk.register("dave")).index).toBe(1);
  });
});

describe("a home with another deposit key than the ledger's", () => {
  const otherXpub = HDNodeWallet.fromPhrase(
    "legal winner thank year wave sausage worth useful legal winner thank yellow",
    undefined,
    "m/44'/60'/0'/0",
  ).neuter().extendedKey;
  const keyFile = () => `${desk.home}/config/deposit.xpub`;
  const useKey = (xpub: string) => writeFileSync(keyFile(), `${xpub}\n`);
  const registered = async () => {
    const rows = await desk.database.query<{ address: string }>(
      `SELECT address FROM deposit_address ORDER BY index`,
    );
    return rows.map(({ address }) => address);
  };
  const addressesOf = (key: typeof derivation, from: number, end: number) =>
    Array.from({ length: end - from }, (_, place) => key.addressAt(from + place));

  it("recovers nothing: the addresses that customers were told would never be watched", async () => {
    const own = readFileSync(keyFile(), "utf8").trim();
    await registerMany(2);
    await loseMachine();
    // The new machine's home was made by itself.
    useKey(otherXpub);
    for (const words of [[], ["--last-address-index", "2"]]) {
      await expect(declare("--apply", ...words)).rejects.toMatchObject({
        code: "HOME_UNUSABLE",
        message: expect.stringContaining(`address 0 of this ledger, ${derivation.addressAt(0)}`),
      });
    }
    expect(await registered()).toEqual([derivation.addressAt(0)]);
    // Not even closed: what was typed was about another ledger's home.
    expect((await desk.register("dave")).index).toBe(1);
    useKey(own);
    expect((await declare("--last-address-index", "2", "--apply")).code).toBe(0);
    expect(await registered()).toEqual(addressesOf(derivation, 0, 3));
    desk.pay([derivation.addressAt(2), TOKEN]);
    desk.chain.mine();
    await desk.watch();
    const found = await desk.database.query(`SELECT address, status FROM deposit ORDER BY seq`);
    expect(found.at(-1)).toEqual({ address: derivation.addressAt(2), status: "suspense" });
  });

  it("still goes back on a chain that lost blocks: no address is made for that", async () => {
    useKey(otherXpub);
    await desk.loseAbove(0);
    expect((await desk.causeway("recover", "--apply")).code).toBe(0);
  });

  it("recovers each part by its own key where the key was exchanged on purpose", async () => {
    const former = readFileSync(keyFile(), "utf8").trim();
    const other = createAddressDerivation(otherXpub);
    await desk.useEmptyDatabase();
    rmSync(`${desk.home}/data`, { recursive: true });
    useKey(otherXpub);
    desk.env["CAUSEWAY_WATCHER_API_DEPOSIT_KEY_FROM_INDEX"] = "3";
    await expect(declare("--last-address-index", "4", "--apply")).rejects.toMatchObject({
      code: "HOME_UNUSABLE",
      message: expect.stringContaining("addresses below 3 were given out by a former key"),
    });
    expect(await registered()).toEqual([]);
    useKey(former);
    desk.env["CAUSEWAY_WATCHER_API_DEPOSIT_KEY_FROM_INDEX"] = "0";
    expect((await declare("--last-address-index", "2", "--apply")).code).toBe(0);
    useKey(otherXpub);
    desk.env["CAUSEWAY_WATCHER_API_DEPOSIT_KEY_FROM_INDEX"] = "3";
    expect((await declare("--last-address-index", "4", "--apply")).code).toBe(0);
    expect(await registered()).toEqual([
      ...addressesOf(derivation, 0, 3),
      ...addressesOf(other, 3, 5),
    ]);
  });
});
