/** A person's word on withdrawals, from a home whose copy of the policy is not the one in force. */
import { generateKeyPairSync } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { runDoctor } from "../../../cli/commands/doctor.js";
import { runDecideWithdrawal } from "../../../cli/commands/policy/approvals.js";
import type { LedgerCommand } from "../../../cli/ledger/ledger-tools.js";
import { policyFileText } from "../../../ledger/policy/policy.js";
import { policyPath } from "../../../ledger/policy/policy-paths.js";
import { activatePolicy } from "../../../ledger/policy/policy-store.js";
import { rejudgePending } from "../../../ledger/policy/stored-judgement.js";
import { House } from "../../helpers/exchange/house.js";
import { policyOf } from "./terms.js";
import { DOWN, makeHome, typedIn } from "./typed-home.js";

let house: House;
let home: string;
let printed: string[];

beforeAll(async () => {
  house = await House.withAlice(1_000_000n);
});

afterAll(async () => {
  await house.close();
});

beforeEach(() => {
  home = makeHome();
  printed = [];
});

const command = (url = house.ledger.url) => typedIn(home, url, (text) => void printed.push(text));

/** Beside a node: whoever rejects asks it what the ledger may have lost. */
const owner = () => {
  const asked = command(house.ledger.owner.url);
  const env = { ...asked.env, CAUSEWAY_WATCHER_NODE_JSON_RPC_URL: house.chain.url };
  return { ...asked, env };
};

describe("causeway withdrawals approve", () => {
  it("signs with the operator's key, and takes no other key's word", async () => {
    const { privateKey, publicKey } = generateKeyPairSync("ed25519");
    const raw = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
    const policy = policyOf(
      { approvals: [{ aboveUnits: 0n, needed: 1, signed: true }] },
      { approvers: [{ name: "ann", publicKey: raw }] },
    );
    house.files.policy = policy;
    // As in a container: the operator's home has what the policy said on the first day.
    writeFileSync(policyPath(home), policyFileText(policyOf({}).policy));
    await activatePolicy(house.database, () => policy);
    const pem = (key: typeof privateKey) => key.export({ format: "pem", type: "pkcs8" }).toString();
    const right = join(home, "right.pem");
    writeFileSync(right, pem(privateKey));
    const wrong = join(home, "wrong.pem");
    writeFileSync(wrong, pem(generateKeyPairSync("ed25519").privateKey));
    const { id } = await house.accept({ amountUnits: 10n });
    const say = (signingKey?: string) =>
      runDecideWithdrawal(owner(), {
        id,
        decision: "approve",
        reason: "known payee",
        operator: "ann",
        ...(signingKey === undefined ? {} : { signingKey }),
      });
    expect(await say()).toBe(1);
    expect(printed.join()).toContain("--signing-key");
    expect(await say(wrong)).toBe(1);
    await expect(say(policyPath(home))).rejects.toThrow("no Ed25519 key");
    printed = [];
    expect(await say(right)).toBe(0);
    // What was signed is shown, and which policy it counts under.
    expect(printed.join("\n")).toMatch(new RegExp(`"causeway-approval-v1".*${id}.*${policy.hash}`));
    expect(await house.read(id)).toMatchObject({
      status: "accepted",
      approval: { approvals: [{ keyId: "operator:ann", signature: { publicKey: raw } }] },
    });
    expect(readFileSync(right, "utf8")).not.toContain(printed.join());
  });

  it("counts under the policy in force alone, whichever one the home has a copy of", async () => {
    const [former, present] = [1, 2].map((needed) =>
      policyOf({ approvals: [{ aboveUnits: 0n, needed, signed: false }] }),
    );
    if (former === undefined || present === undefined) throw new Error("no policies");
    house.files.policy = former;
    await activatePolicy(house.database, () => former);
    writeFileSync(policyPath(home), policyFileText(former.policy));
    const asked = await house.accept({ amountUnits: 10n, requestedBy: "asker" });
    const say = (decision: "approve" | "reject") =>
      runDecideWithdrawal(owner(), { id: asked.id, decision, reason: "known", operator: "ann" });
    await activatePolicy(house.database, () => present);
    for (const decision of ["approve", "reject"] as const) {
      // The worker has not judged it by that one yet: who looked at it saw what the former one asks for.
      expect(await say(decision)).toBe(1);
      expect(printed.at(-2)).toContain("the policy has changed");
    }
    await rejudgePending(house.database, present);
    expect(await say("approve")).toBe(0);
    expect(await house.read(asked.id)).toMatchObject({
      status: "pending_approval",
      approval: { needed: 2, approvals: [{ keyId: "operator:ann", policyHash: present.hash }] },
    });
    const rejected = await house.accept({ amountUnits: 10n });
    await rejudgePending(house.database, present);
    const no = { decision: "reject", reason: "unknown payee", operator: "ben" } as const;
    expect(await runDecideWithdrawal(owner(), { id: rejected.id, ...no })).toBe(0);
    expect((await house.read(rejected.id)).status).toBe("rejected");
  });
});

describe("causeway doctor", () => {
  it("judges the policy in force, and the home's only where the ledger does not answer", async () => {
    const nobody = policyOf({ approvals: [{ aboveUnits: 0n, needed: 1, signed: true }] });
    const found = async (asked: LedgerCommand) => {
      printed = [];
      await runDoctor({ ...asked, json: true }, { strict: false });
      const { checks } = JSON.parse(printed.join(""));
      return checks.filter(({ id }: { id: string }) => id === "policy");
    };
    const told = [{ severity: "warn", value: expect.stringMatching(/^APPROVALS_OUT_OF_REACH: /) }];
    writeFileSync(policyPath(home), policyFileText(policyOf({}).policy));
    await activatePolicy(house.database, () => nobody);
    expect(await found(owner())).toMatchObject(told);
    expect(await found(command(DOWN))).toEqual([]);
    writeFileSync(policyPath(home), policyFileText(nobody.policy));
    await activatePolicy(house.database, () => policyOf({}));
    expect(await found(owner())).toEqual([]);
    expect(await found(command(DOWN))).toMatchObject(told);
  });
});
