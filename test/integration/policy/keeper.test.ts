/** The home's policy in force: what its keeper brings into the ledger, and when it answers nothing. */
import { rmSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { policyPath } from "../../../ledger/policy/policy-paths.js";
import { type HashedPolicy, policyFileText } from "../../../ledger/policy/policy.js";
import { createLogger } from "../../../runtime/process/logger.js";
import type { SqlDatabase } from "../../../runtime/sql/sql.js";
import { PolicyKeeper } from "../../../withdrawal-worker/policy-keeper.js";
import { silentLog } from "../../helpers/services/ledger.js";
import { freshAddress, House } from "../../helpers/exchange/house.js";
import { policyOf } from "./terms.js";
import { makeHome } from "./typed-home.js";

let house: House;
let home: string;

beforeAll(async () => {
  house = await House.withAlice(1_000_000n);
});

afterAll(async () => {
  await house.close();
});

beforeEach(() => {
  home = makeHome();
});

const keeper = (database: SqlDatabase = house.database) =>
  PolicyKeeper.open({
    database,
    home,
    clock: house.clock,
    log: silentLog,
  });

const active = async () => {
  const rows = await house.database.query<{ policy_hash: string }>(
    `SELECT policy_hash FROM policy_activation ORDER BY id`,
  );
  return rows.map(({ policy_hash: hash }) => hash);
};

describe("the keeper of the policy", () => {
  it("writes the permissive one into a home that never had any, and brings changes into force", async () => {
    const opened = await keeper();
    const first = await opened.current();
    expect(await active()).toEqual([first.hash]);
    expect((await opened.current()).hash).toBe(first.hash);
    const approvals = [{ aboveUnits: 0n, needed: 1, signed: false }];
    const asking = policyOf({ approvals });
    house.files.policy = asking;
    const pending = await house.accept({ amountUnits: 10n });
    expect(pending.status).toBe("pending_approval");
    const fee = policyOf({ feeUnits: 1n });
    writeFileSync(policyPath(home), policyFileText(fee.policy));
    expect((await opened.current()).hash).toBe(fee.hash);
    expect(await active()).toEqual([first.hash, fee.hash]);
    // What waited for persons is judged by what is in force now.
    expect((await house.read(pending.id)).status).toBe("accepted");
  });

  it("tells once of approvals that its approvers cannot give, and pays what needs none", async () => {
    const lines: string[] = [];
    const destination = { write: (line: string) => lines.push(line) };
    const log = createLogger({ component: "test", destination });
    const asking = policyOf({ approvals: [{ aboveUnits: 10n, needed: 2, signed: true }] });
    writeFileSync(policyPath(home), policyFileText(asking.policy));
    const { database, clock } = house;
    const opened = await PolicyKeeper.open({ database, home, clock, log });
    expect((await opened.current()).hash).toBe(asking.hash);
    expect(opened.trouble()).toBeUndefined();
    const told = lines.filter((line) => line.includes("APPROVALS_OUT_OF_REACH"));
    expect(told).toEqual([expect.stringContaining("assets.*.approvals[0]")]);
  });

  it("comes into force again in a ledger that was put back under it", async () => {
    const listing = policyOf(
      {},
      {
        allowList: {
          delayHours: 24,
          others: "any",
          customers: new Map([["alice", new Set([freshAddress()])]]),
        },
      },
    );
    writeFileSync(policyPath(home), policyFileText(listing.policy));
    const opened = await keeper();
    const listed = () => house.database.query(`SELECT listed FROM policy_listing ORDER BY id`);
    expect(await listed()).toEqual([{ listed: true }]);
    // As in a copy of before: neither the activation nor what it listed.
    for (const table of ["policy_activation", "policy_listing"]) {
      await house.ledger.owner.query(`ALTER TABLE ${table} DISABLE TRIGGER ALL`);
    }
    await house.ledger.owner.query(`DELETE FROM policy_activation WHERE policy_hash = $1`, [
      listing.hash,
    ]);
    await house.ledger.owner.query(`DELETE FROM policy_listing`);
    for (const table of ["policy_activation", "policy_listing"]) {
      await house.ledger.owner.query(`ALTER TABLE ${table} ENABLE TRIGGER ALL`);
    }
    house.clock.ms += 1_000;
    await opened.current();
    expect((await active()).at(-1)).toBe(listing.hash);
    expect(await listed()).toEqual([{ listed: true }]);
  });

  /** A keeper that stands still before its n-th transaction from now on while something happens. */
  async function stillKeeper(place: number, happens: () => Promise<unknown>) {
    let count = 0;
    let isSet = false;
    const database: SqlDatabase = {
      ...house.database,
      query: (text, values) => house.database.query(text, values),
      async transaction(work) {
        if (isSet) count += 1;
        if (isSet && count === place) await happens();
        return house.database.transaction(work);
      },
    };
    const opened = await keeper(database);
    return {
      current: () => {
        isSet = true;
        return opened.current();
      },
    };
  }

  const write = ({ policy }: HashedPolicy) =>
    writeFileSync(policyPath(home), policyFileText(policy));

  const asking = (needed: number) =>
    policyOf({ approvals: [{ aboveUnits: 0n, needed, signed: false }] });

  it("brings no policy into force that the file has not any more, over the one that it has", async () => {
    write(policyOf({ feeUnits: 2n }));
    const other = await keeper();
    const [older, newer] = [policyOf({ feeUnits: 33n }), policyOf({ feeUnits: 4n })];
    const still = await stillKeeper(1, async () => {
      write(newer);
      await other.current();
    });
    write(older);
    expect((await still.current()).hash).toBe(newer.hash);
    expect((await active()).at(-1)).toBe(newer.hash);
    expect(await active()).not.toContain(older.hash);
  });

  it("judges nothing by a policy that another one has taken the place of", async () => {
    write(policyOf({ feeUnits: 6n }));
    const other = await keeper();
    const [older, newer] = [policyOf({ feeUnits: 5n }), asking(2)];
    // Behind its activation, before it judges.
    const still = await stillKeeper(2, async () => {
      write(newer);
      await other.current();
    });
    house.files.policy = asking(1);
    const { id } = await house.accept({ amountUnits: 10n });
    write(older);
    await still.current();
    expect(await house.read(id)).toMatchObject({
      status: "pending_approval",
      approval: { needed: 2, policyHash: newer.hash },
    });
  });

  it("judges what was accepted by a policy of before while it changed", async () => {
    const [older, newer] = [asking(1), asking(3)];
    write(newer);
    const opened = await keeper();
    house.files.policy = older;
    const { id } = await house.accept({ amountUnits: 10n });
    expect((await house.read(id)).approval.policyHash).toBe(older.hash);
    house.clock.ms += 1_000;
    await opened.current();
    expect((await house.read(id)).approval).toMatchObject({ needed: 3, policyHash: newer.hash });
  });

  it("answers nothing while the file is wrong or gone, and says so until it is mended", async () => {
    const text = policyFileText(policyOf({ feeUnits: 7n }).policy);
    writeFileSync(policyPath(home), text);
    const opened = await keeper();
    writeFileSync(policyPath(home), "{");
    await expect(opened.current()).rejects.toMatchObject({
      code: "POLICY_UNREADABLE",
      retriable: true,
    });
    expect(opened.trouble()).toContain("policy.json");
    rmSync(policyPath(home));
    await expect(opened.current()).rejects.toMatchObject({ code: "POLICY_UNREADABLE" });
    // The ledger has known a policy: a home that lost it does not start with one that allows all.
    await expect(keeper()).rejects.toThrow("is gone");
    writeFileSync(policyPath(home), text);
    await opened.current();
    expect(opened.trouble()).toBeUndefined();
  });
});
