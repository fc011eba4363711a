/** A machine that is lost with its home: nobody remembers how many addresses were given out since the backup. */
import { rmSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
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
