/**
 * Whoever checks reserves: a customer with a file of its own, and the commands, which see neither
 * chain nor ledger.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { atokenToToken } from "../../../../chain/units.js";
import {
  runVerifyLiability,
  runVerifyReserves,
  type VerifyLiabilityOptions,
} from "../../../../cli/audit/reserves/commands.js";
import {
  encodeLiability,
  liabilityFileName,
  parseLiability,
  verifyLiability,
} from "../../../../cli/audit/reserves/liability-file.js";
import type { MadeReserves } from "../../../../cli/audit/reserves/make-reserves.js";
import { SUSPENSE_HOLDER } from "../../../../ledger/journal/accounts.js";
import { encodeGenesis, type Genesis } from "../../../../node/settings/genesis.js";
import { keys, ReservesStage, textOf } from "./stage.js";

const { signal } = new AbortController();

let stage: ReservesStage;
let genesis: Genesis;
let folder: string;
let made: MadeReserves;

beforeAll(async () => {
  stage = await ReservesStage.open();
  ({ genesis, folder } = stage);
  made = await stage.make();
});
afterAll(() => stage?.close());

const liabilityOf = (customerId: string) => {
  const found = made.liabilities.find((liability) => liability.customerId === customerId);
  if (found === undefined) throw new Error(`no liability to ${customerId}`);
  return found.file();
};

describe("a customer's file", () => {
  it("proves that what is owed is in the sum that was signed", async () => {
    const { liabilitiesRoot } = await stage.verify(made.contents);
    for (const [customer, units] of [
      ["alice", 700n],
      ["bob", 205n],
      [SUSPENSE_HOLDER, 30n],
    ] as const) {
      const file = parseLiability(encodeLiability(liabilityOf(customer)));
      expect(file.units).toBe(units);
      expect(verifyLiability(file)).toMatchObject({ root: { sumUnits: 935n }, liabilitiesRoot });
    }
    // Another look has other salts: files of two days tell nothing about the same leaf.
    const again = await stage.make();
    const [one, other] = [made, again].map(({ contents }) => contents.liabilities[0]?.hash);
    expect(one).not.toBe(other);
  });

  it("has a file of its own, whatever others are called", () => {
    const ids = [
      ["TOKEN", "desk:7"],
      ["TOKEN", "desk_7"],
      ["TOKEN", "desk-7"],
      ["TOKEN-desk", "7"],
    ] as const;
    const names = ids.map(([asset, customerId]) => liabilityFileName({ asset, customerId }));
    expect(names).toEqual([
      "TOKEN-desk%3A7.json",
      "TOKEN-desk_7.json",
      "TOKEN-desk-7.json",
      "TOKEN%2Ddesk-7.json",
    ]);
  });

  it("says nothing about others", () => {
    const text = encodeLiability(liabilityOf("alice"));
    expect(text).toContain("alice");
    expect(text).not.toContain("bob");
    expect(text).not.toContain(liabilityOf("bob").salt);
  });

  it("is refused with anything changed", () => {
    const good = liabilityOf("alice");
    const [step, ...others] = good.steps;
    const [root] = good.roots;
    if (step === undefined || root === undefined) throw new Error("steps");
    for (const changed of [
      { ...good, units: 701n },
      { ...good, customerId: "bob" },
      { ...good, salt: "0".repeat(64) },
      { ...good, asset: "GOLD" },
      { ...good, steps: others },
      { ...good, steps: [{ ...step, sumUnits: step.sumUnits + 1n }, ...others] },
      { ...good, steps: [{ ...step, side: step.side === "left" ? "right" : "left" }, ...others] },
      { ...good, roots: [{ ...root, sumUnits: 934n }] },
    ] as const) {
      expect(() => verifyLiability(parseLiability(encodeLiability(changed)))).toThrow(
        expect.objectContaining({ code: "NOT_PROVEN" }),
      );
    }
    const negative = encodeLiability(good).replace(/"sumUnits": "\d+"/, '"sumUnits": "-5"');
    expect(() => parseLiability(negative)).toThrow(
      expect.objectContaining({ code: "BUNDLE_UNREADABLE" }),
    );
  });
});

describe("the commands", () => {
  it("check both files offline, one against the other", async () => {
    const write = (name: string, text: string) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const genesisFile = write("genesis.json", encodeGenesis(genesis));
    const reserves = write("reserves.json", textOf(made.contents));
    const other = write("other.json", textOf((await stage.make()).contents));
    const alice = write("alice.json", encodeLiability(liabilityOf("alice")));
    const printed: string[] = [];
    const context = { home: folder, portOffset: 0, json: false, env: {}, signal };
    const shown = { ...context, print: (line: string) => void printed.push(line) };
    const warn = (line: string) => void printed.push(line);
    expect(await runVerifyReserves(shown, reserves, { genesis: genesisFile }, warn)).toBe(0);
    expect(printed.at(-1)).toBe("Proven, and covered.");
    // A rich stranger's address among them costs nobody a signature: what that would be is told apart.
    const shownLine = (name: string) => printed.find((line) => line.startsWith(`  ${name}  `));
    const { reservesAtoken, signedAtoken } = await stage.verify(made.contents);
    expect(shownLine("of wallets")).toContain(` ${atokenToToken(signedAtoken)} TOKEN, whose keys`);
    expect(shownLine("of addresses")).toContain(
      ` ${atokenToToken(reservesAtoken - signedAtoken)} TOKEN, which the wallets call deposit`,
    );
    expect(printed.at(-2)).not.toContain("did not sign for which accounts");
    const former = write(
      "former.json",
      await stage.formerText(made.contents, "causeway-reserves/1"),
    );
    expect(await runVerifyReserves(shown, former, { genesis: genesisFile }, warn)).toBe(0);
    expect(printed.at(-2)).toContain("did not sign for which accounts");
    const check = (options: VerifyLiabilityOptions) =>
      runVerifyLiability(shown, alice, { genesis: genesisFile, ...options }, warn);
    expect(await check({})).toBe(0);
    expect(await check({ reserves })).toBe(0);
    expect(printed.at(-1)).toBe("It is in the sum that the wallets signed for.");
    expect(await check({ reserves: other })).toBe(1);
    expect(printed.at(-1)).toContain("other liabilities");
    const forPrograms = { ...shown, json: true };
    const options = { genesis: genesisFile, reserves: other };
    expect(await runVerifyLiability(forPrograms, alice, options, warn)).toBe(1);
    const { signatures } = made.contents;
    const unsigned = textOf({ ...made.contents, signatures: signatures.slice(1) });
    const falseFile = write("false.json", unsigned);
    expect(await runVerifyReserves(forPrograms, falseFile, options, warn)).toBe(1);
    const documents = printed.filter((line) => line.startsWith("{"));
    expect(documents.map((line) => JSON.parse(line))).toEqual([
      { schemaVersion: 1, ok: false, reason: expect.stringContaining("other liabilities") },
      { schemaVersion: 1, ok: false, reason: expect.stringContaining("NOT signed by 0x") },
    ]);
    expect(await check({ reserves: alice })).toBe(2);
    expect(await runVerifyReserves(shown, alice, { genesis: genesisFile }, warn)).toBe(2);
    // What a proof of reserves lacks, the customer is told who has only the own file checked.
    expect(await check({ reserves: former })).toBe(0);
    expect(printed.join()).toMatch(/did not sign for which accounts.*It is in the sum that the w/);
    printed.length = 0;
    expect(await runVerifyLiability(forPrograms, alice, { ...options, reserves }, warn)).toBe(0);
    const owed = [{ asset: "TOKEN", customerId: "alice", units: 10n ** 60n }];
    const poor = await stage.make(keys, [], { liabilities: owed });
    const uncovered = write("uncovered.json", textOf(poor.contents));
    const [file] = poor.liabilities.map((liability) => encodeLiability(liability.file()));
    const of = { genesis: genesisFile, reserves: uncovered };
    const poorAlice = write("poor-alice.json", file ?? "");
    expect(await runVerifyLiability(forPrograms, poorAlice, of, warn)).toBe(1);
    expect(printed.map((line) => JSON.parse(line))).toMatchObject([
      { ok: true, isCovered: true, accountsSigned: true },
      { ok: false, isCovered: false, accountsSigned: true },
    ]);
    expect(await runVerifyLiability(shown, poorAlice, of, warn)).toBe(1);
    expect(printed.at(-1)).toBe("Proven, and NOT COVERED: more is owed than held.");
  });

  it("say of a token that its reserves are not proven, whatever is held of the chain's coin", async () => {
    const owed = [
      { asset: "TOKEN", customerId: "bob", units: 10n ** 60n },
      { asset: "GOLD", customerId: "alice", units: 7n },
    ];
    const poor = await stage.make(keys, [], { liabilities: owed });
    const write = (name: string, text: string) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const options = { genesis: write("genesis-of-gold.json", encodeGenesis(genesis)) };
    const reserves = write("gold-reserves.json", textOf(poor.contents));
    const goldOf = poor.liabilities.find(({ customerId }) => customerId === "alice");
    const gold = write(
      "gold-alice.json",
      goldOf === undefined ? "" : encodeLiability(goldOf.file()),
    );
    const printed: string[] = [];
    const print = (line: string) => void printed.push(line);
    const context = { home: folder, portOffset: 0, json: false, env: {}, signal, print };
    const check = (json: boolean) =>
      runVerifyLiability({ ...context, json }, gold, { ...options, reserves }, print);
    expect(await check(false)).toBe(0);
    expect(printed.at(-1)).toBe(
      "The reserves of GOLD are not proven: a proof of reserves is about TOKEN alone.",
    );
    expect(printed.join("\n")).not.toContain("NOT COVERED");
    printed.length = 0;
    expect(await check(true)).toBe(0);
    const ofAll = { ...context, json: true };
    expect(await runVerifyReserves(ofAll, reserves, options, print)).toBe(1);
    expect(printed.map((line) => JSON.parse(line))).toMatchObject([
      { ok: true, asset: "GOLD", isCovered: null, accountsSigned: true },
      { ok: false, otherLiabilities: [{ asset: "GOLD", units: "7" }] },
    ]);
  });
});
