/** A user of the console who gets another key stays one person: of two keys one counts. */
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "@jest/globals";
import {
  runAddConsoleUser,
  runRemoveConsoleUser,
  runResetConsoleUser,
} from "../../../cli/commands/console-users.js";
import type { LedgerCommand } from "../../../cli/ledger/ledger-tools.js";
import { readUser } from "../../../console/users/user-files.js";
import { countingApprovals } from "../../../ledger/policy/approval-rows.js";
import { decideWithdrawal, type NewApproval } from "../../../ledger/policy/approvals.js";
import { rejudgePending } from "../../../ledger/policy/stored-judgement.js";
import type { Withdrawal } from "../../../ledger/withdrawals/withdrawals.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import { House, WALLET } from "../../helpers/exchange/house.js";
import { freshFile } from "../../helpers/keys/signing.js";
import { policyOf } from "./terms.js";

const CHEAP = { n: 16, r: 1, p: 1 };

const approvals = [{ aboveUnits: 10n, needed: 2, signed: false }];
const TWO = policyOf({ approvals });
/** Asks for the same, by another text. */
const TWO_AGAIN = policyOf({ approvals, maximumUnits: 1_000n });

let house: House;
let home: string;

beforeAll(async () => {
  house = await House.withAlice(1_000_000n);
});
afterAll(() => house.close());

beforeEach(() => {
  home = dirname(freshFile("x"));
  mkdirSync(join(home, "config"));
  writeFileSync(join(home, "config", "hot-wallet.json"), JSON.stringify({ address: WALLET }));
  house.files.policy = TWO;
});

const command = (): LedgerCommand => ({
  home,
  portOffset: 0,
  json: false,
  env: { DATABASE_URL: house.ledger.owner.url },
  signal: house.signal,
  print: () => undefined,
});

const keyOf = (name: string): string => readUser(home, name)?.keyId ?? "";

async function added(name: string): Promise<string> {
  await runAddConsoleUser(command(), { name, role: "admin", cost: CHEAP });
  return keyOf(name);
}

async function reset(name: string): Promise<string> {
  await runResetConsoleUser(command(), { name, cost: CHEAP });
  return keyOf(name);
}

const pending = (requestedBy = "asker") => house.accept({ amountUnits: 100n, requestedBy });

const say = ({ id }: Withdrawal, keyId: string, more: Partial<NewApproval> = {}) =>
  decideWithdrawal(
    house.database,
    { id, keyId, decision: "approve", reason: "looked at it", ...more },
    { policy: house.files.policy, chainId: FAKE_CHAIN_ID },
  );

/** Its status, and how many approvals count by the code and by the database. */
async function stateOf({ id }: Withdrawal) {
  const { status, approval } = await house.read(id);
  const [row] = await house.database.query<{ met: boolean }>(`SELECT has_approvals($1) AS met`, [
    id,
  ]);
  return [status, countingApprovals(approval).length, row?.met];
}

it("counts once however often a user is reset", async () => {
  const asked = await pending();
  const first = await added("ann");
  expect(await say(asked, first)).toBe("done");
  const second = await reset("ann");
  expect(second).not.toBe(first);
  expect(await say(asked, second)).toBe("said-otherwise");
  const third = await reset("ann");
  expect(await say(asked, third)).toBe("said-otherwise");
  expect(await stateOf(asked)).toEqual(["pending_approval", 1, false]);
  expect(await say(asked, await added("ben"))).toBe("done");
  expect(await stateOf(asked)).toEqual(["accepted", 2, true]);
});

it("may still say no with the key of now", async () => {
  const asked = await pending();
  expect(await say(asked, await added("ida"))).toBe("done");
  expect(await say(asked, await reset("ida"), { decision: "reject" })).toBe("done");
  expect((await stateOf(asked))[0]).toBe("rejected");
});

it("counts once for a user who is removed and added again", async () => {
  const asked = await pending();
  expect(await say(asked, await added("carl"))).toBe("done");
  await runRemoveConsoleUser(command(), { name: "carl" });
  expect(await say(asked, await added("carl"))).toBe("said-otherwise");
  expect(await say(asked, await added("dora"))).toBe("done");
});

it("counts somebody of the same name in another home as another person, while the first is there", async () => {
  const asked = await pending();
  await added("ada");
  expect(await say(asked, await reset("ada"))).toBe("done");
  const first = home;
  home = dirname(freshFile("x"));
  mkdirSync(join(home, "config"));
  copyFileSync(join(first, "config", "hot-wallet.json"), join(home, "config", "hot-wallet.json"));
  expect(await say(asked, await added("ada"))).toBe("done");
  expect(await stateOf(asked)).toEqual(["accepted", 2, true]);
});

it("cannot approve what it asked for with the key of before", async () => {
  const asked = await pending(await added("emil"));
  const later = await reset("emil");
  expect(await say(asked, later)).toBe("own-request");
  expect(await say(asked, later, { decision: "reject" })).toBe("done");
});

it("is held to it by the database, whatever program writes", async () => {
  const write = ({ id }: Withdrawal, keyId: string) =>
    house.database.query(
      `INSERT INTO withdrawal_approval (withdrawal_id, key_id, decision, reason, policy_hash, digest)
       VALUES ($1, $2, 'approve', 'written', $3, $4)`,
      [id, keyId, TWO.hash, "ab".repeat(32)],
    );
  const first = await added("fred");
  const [asked, own] = [await pending(), await pending(first)];
  expect(await say(asked, first)).toBe("done");
  const second = await reset("fred");
  await expect(write(asked, second)).rejects.toThrow(/by another key of the same person/);
  await expect(write(own, second)).rejects.toThrow(
    /was asked for with this key, or one of the same person/,
  );
  expect(await stateOf(asked)).toEqual(["pending_approval", 1, false]);
});

it("counts once over policies that come and go", async () => {
  const asked = await pending();
  const first = await added("gus");
  expect(await say(asked, first)).toBe("done");
  const second = await reset("gus");
  for (const policy of [TWO_AGAIN, TWO, TWO_AGAIN]) {
    house.files.policy = policy;
    await rejudgePending(house.database, policy);
    expect(await say(asked, second)).toBe("said-otherwise");
    expect(await stateOf(asked)).toEqual(["pending_approval", 1, false]);
  }
});

it("names the first key of a user for good", async () => {
  const first = await added("hal");
  await reset("hal");
  const last = await reset("hal");
  const keys = async () =>
    house.database.query(`SELECT first_key FROM api_key WHERE id = $1`, [last]);
  expect(await keys()).toEqual([{ first_key: first }]);
  await expect(
    house.ledger.owner.query(
      `UPDATE api_key SET revoked_at = now(), first_key = NULL WHERE id = $1`,
      [last],
    ),
  ).rejects.toThrow(/may only be revoked/);
  expect(await keys()).toEqual([{ first_key: first }]);
});
