/** What a home's files say each by itself rightly, and together without a meaning. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { homePaths } from "../../../../cli/home/home.js";
import { checkMeaning } from "../../../../cli/probe/doctor-meaning.js";
import { policyFileText } from "../../../../ledger/policy/policy.js";
import type { AssetRules, Policy } from "../../../../ledger/policy/policy.js";
import { APPROVERS, policyOf } from "../../../integration/policy/terms.js";

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const [ann, ben] = APPROVERS.map(({ name, publicKey }) => ({ name, publicKey }));
if (ann === undefined || ben === undefined) throw new Error("no approvers");
const annsOther = { ...ben, name: ann.name };
const screening = { url: "http://127.0.0.1:1/", timeoutMs: 1_000, reviewApprovals: 1 };

function found(
  rules: Partial<AssetRules> = {},
  terms: Partial<Policy> = {},
  env: Readonly<Record<string, string>> = {},
): readonly string[] {
  const home = mkdtempSync(join(tmpdir(), "causeway-meaning-"));
  folders.push(home);
  const paths = homePaths(home);
  mkdirSync(dirname(paths.policy));
  writeFileSync(paths.policy, policyFileText(policyOf(rules, terms).policy));
  const findings = checkMeaning({ paths, env, portOffset: 0 }, undefined);
  return findings.map(({ id, severity, value }) => `${id} ${severity} ${value.split(":")[0]}`);
}

const rule = (needed: number, signed: boolean) => ({
  approvals: [{ aboveUnits: 10n, needed, signed }],
});

describe("the doctor's look at what files mean", () => {
  it.each([
    ["1", "1", []],
    ["2", "1", ["settings warn PRICE_FLOOR_ABOVE_CAP"]],
  ])("tells of a floor of the gas price of %s with a cap of %s: %j", (floor, cap, expected) => {
    const env = {
      CAUSEWAY_WORKER_GAS_PRICE_FLOOR_ATOKEN: floor,
      CAUSEWAY_WORKER_GAS_PRICE_CAP_ATOKEN: cap,
    };
    expect(found({}, {}, env)).toEqual(expected);
  });

  it.each([
    ["http://127.0.0.1:18545", ["second-node warn watcher.toml"]],
    ["http://10.0.0.2:8545", []],
  ])("tells that the first node and %s are of one machine: %j", (second, expected) => {
    const env = { CAUSEWAY_WATCHER_NODE_SECOND_JSON_RPC_URL: second };
    expect(found({}, {}, env)).toEqual(expected);
  });

  const OUT_OF_REACH = ["policy warn APPROVALS_OUT_OF_REACH"];
  it.each([
    ["two of two", rule(2, true), { approvers: [ann, ben] }, []],
    ["three of two", rule(3, true), { approvers: [ann, ben] }, OUT_OF_REACH],
    [
      "two of one person with two keys",
      rule(2, true),
      { approvers: [ann, annsOther] },
      OUT_OF_REACH,
    ],
    [
      "two of one key under two names",
      rule(2, true),
      { approvers: [ann, { ...ann, name: "ben" }] },
      OUT_OF_REACH,
    ],
    [
      "two where one has the other's key as well",
      rule(2, true),
      { approvers: [ann, { ...ben, name: "ann" }, ben] },
      OUT_OF_REACH,
    ],
    ["one of nobody", rule(1, true), {}, OUT_OF_REACH],
    ["three keys' without signatures", rule(3, false), {}, []],
    ["two of two and a review", rule(2, true), { approvers: [ann, ben], screening }, OUT_OF_REACH],
    ["one of two and a review", rule(1, true), { approvers: [ann, ben], screening }, []],
  ])("tells of approvals that nobody can give: %s", (_name, rules, terms, expected) => {
    expect(found(rules, terms)).toEqual(expected);
  });
});
