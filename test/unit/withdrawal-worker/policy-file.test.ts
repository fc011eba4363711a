/** The policy as a file: every mistake at once, one hash for one meaning, never half believed. */
import { createHash, generateKeyPairSync } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { parseAddress } from "../../../chain/address.js";
import { TREASURY } from "../../../ledger/journal/accounts.js";
import { isSignedByApprover } from "../../../ledger/policy/approval-digest.js";
import {
  approvalsFor,
  brokenRule,
  brokenSigningRule,
  hashPolicy,
  PERMISSIVE_POLICY,
  policyFileText,
  rulesOf,
} from "../../../ledger/policy/policy.js";
import { PolicyFile } from "../../../ledger/policy/policy-file.js";
import { parsePolicy } from "../../../ledger/policy/policy-parser.js";
import { createHttpPoster } from "../../../rpc-client/http-post.js";
import { ConfigError } from "../../../runtime/config/config.js";
import { freshFile } from "../../helpers/keys/signing.js";

const plain = () => JSON.parse(policyFileText(PERMISSIVE_POLICY));

describe("a policy's text", () => {
  it("of a new home is complete, and forbids nothing", () => {
    const { policy } = parsePolicy(policyFileText(PERMISSIVE_POLICY));
    expect(policy).toEqual(PERMISSIVE_POLICY);
    expect(Object.keys(plain().assets["*"])).toEqual([
      "minimumUnits",
      "maximumUnits",
      "feeUnits",
      "signerDayMaxUnits",
      "limits",
      "approvals",
    ]);
  });

  it("has one hash however it is laid out, and another one for every other meaning", () => {
    const text = policyFileText(PERMISSIVE_POLICY);
    const parsed = (changed: string) => {
      const { policy, faults } = parsePolicy(changed);
      expect(faults).toEqual([]);
      return hashPolicy(policy ?? PERMISSIVE_POLICY).hash;
    };
    const { format, assets, ...rest } = plain();
    const hash = parsed(text);
    expect(parsed(JSON.stringify({ ...rest, assets, format }))).toBe(hash);
    expect(parsed(text.replace('"feeUnits": "0"', '"feeUnits": "1"'))).not.toBe(hash);
    expect(parsed(text.replace('"delayHours": 24', '"delayHours": 25'))).not.toBe(hash);
  });

  it("has the hash that decisions of every release name, as sha256sum gives it", () => {
    const text = plain();
    const limits = [{ by: "customer", window: "15m", maxUnits: "50", maxCount: 3 }];
    text.assets.USDX = {
      approvals: [{ aboveUnits: "10", needed: 2, signed: true }],
      limits,
      signerDayMaxUnits: "1000",
      feeUnits: "2",
      maximumUnits: "100",
      minimumUnits: "1",
    };
    const { policy } = parsePolicy(JSON.stringify(text));
    expect([hashPolicy(PERMISSIVE_POLICY).hash, policy && hashPolicy(policy).hash]).toEqual([
      "ff6083301a8d39dd0a858f34300c381392184db1dbec1f87ecc5565de1dd51ea",
      "be3d074ac5a9cc22469db3a470ed4dcfb79c297c26328089fff7fb832ebb3eda",
    ]);
  });

  it("reads every term", () => {
    const text = plain();
    text.assets.USDX = {
      minimumUnits: "1",
      maximumUnits: "100",
      feeUnits: "2",
      signerDayMaxUnits: "1000",
      limits: [
        { by: "customer", window: "15m", maxUnits: "50", maxCount: 3 },
        { by: "wallet", window: "day", maxUnits: null, maxCount: 7 },
      ],
      approvals: [
        { aboveUnits: "10", needed: 1, signed: false },
        { aboveUnits: "50", needed: 2, signed: true },
      ],
    };
    const { policy } = parsePolicy(JSON.stringify(text));
    if (policy === undefined) throw new Error("not read");
    expect(rulesOf(policy, "USDX")).toMatchObject({
      maximumUnits: 100n,
      signerDayMaxUnits: 1_000n,
      limits: [
        { by: "customer", window: 900, maxUnits: 50n, maxCount: 3 },
        { by: "wallet", window: "day", maxUnits: undefined, maxCount: 7 },
      ],
    });
    expect(rulesOf(policy, "OTHER")).toEqual(rulesOf(policy, "*"));
    const needed = (amountUnits: bigint) => approvalsFor(policy, { asset: "USDX", amountUnits });
    expect([10n, 11n, 50n, 51n].map((units) => needed(units).needed)).toEqual([0, 1, 1, 2]);
    expect(needed(51n).signed).toBe(true);
  });

  it("with a term left out has one fault, which says what is to be written there", () => {
    const without = (cut: (text: ReturnType<typeof plain>) => void) => {
      const text = plain();
      cut(text);
      return parsePolicy(JSON.stringify(text)).faults;
    };
    const value = "nothing";
    expect(without((text) => delete text.assets["*"].feeUnits)).toEqual([
      {
        key: "assets.*.feeUnits",
        value,
        allowed: "every term is written: a decimal string of the asset's smallest unit",
      },
    ]);
    expect(without((text) => delete text.assets["*"].maximumUnits)).toEqual([
      {
        key: "assets.*.maximumUnits",
        value,
        allowed: "every term is written: a decimal string of the asset's smallest unit, or null",
      },
    ]);
    expect(without((text) => delete text.allowList)).toEqual([
      {
        key: "allowList",
        value,
        allowed: "every term is written: an object with delayHours, others, customers",
      },
    ]);
    expect(without((text) => delete text.screening)).toMatchObject([{ key: "screening" }]);
    const rule = { aboveUnits: "5", needed: 1, signed: false };
    const rules = [rule, { needed: 2, signed: false }];
    expect(without((text) => (text.assets["*"].approvals = rules))).toMatchObject([
      { key: "assets.*.approvals[1].aboveUnits" },
    ]);
    // Nor does what is no object lack each of its terms.
    expect(without((text) => (text.assets["*"] = 5))).toMatchObject([{ key: "assets.*" }]);
    expect(parsePolicy("7").faults).toMatchObject([{ key: "(whole file)" }]);
  });

  it("pays nothing of an asset that it says nothing of", () => {
    const text = plain();
    text.assets = { TOKEN: text.assets["*"] };
    const { policy } = parsePolicy(JSON.stringify(text));
    if (policy === undefined) throw new Error("not read");
    const destination = parseAddress(`0x${"11".repeat(20)}`);
    const broken = (asset: string) =>
      brokenRule(policy, { customerId: "alice", asset, destination, amountUnits: 1n });
    expect([broken("TOKEN"), broken("USDX")]).toEqual([undefined, "ABOVE_MAXIMUM"]);
  });

  it("forbids what is more than any wallet may pay in a window, but not to the treasury", () => {
    const text = plain();
    const limits = ["9", "5", null].map((maxUnits) => {
      return { by: "wallet", window: "day", maxUnits, maxCount: 7 };
    });
    const cold = `0x${"c0".repeat(20)}`;
    text.assets["*"].limits = limits;
    const asset = { sweepMinimumUnits: "1", sweepFeeMaxAtoken: "1", coldAddress: cold, band: null };
    text.treasury = { topUpMaxAtoken: "1", assets: { TOKEN: asset } };
    const { policy } = parsePolicy(JSON.stringify(text));
    if (policy === undefined) throw new Error("not read");
    const destination = parseAddress(cold);
    const request = { customerId: "alice", asset: "TOKEN", destination, amountUnits: 6n };
    expect(brokenRule(policy, request)).toBe("ABOVE_MAXIMUM");
    expect(brokenRule(policy, { ...request, amountUnits: 5n })).toBeUndefined();
    expect(brokenRule(policy, { ...request, customerId: TREASURY })).toBeUndefined();
    // It may have a nonce from a time when the wallets were allowed more.
    expect(brokenSigningRule(policy, request)).toBeUndefined();
  });

  it("is refused with all its mistakes at once, each with its place", () => {
    const text = plain();
    Object.assign(text.assets["*"], {
      minimumUnits: 5,
      feeUnits: "-1",
      limits: [{ by: "nobody", window: "40d", maxUnits: null, maxCount: null }],
      approvals: [
        { aboveUnits: "10", needed: 2, signed: false },
        { aboveUnits: "5", needed: 0, signed: "no" },
      ],
      extra: true,
    });
    delete text.assets["*"].signerDayMaxUnits;
    text.allowList.customers = { alice: ["0x12"], "not a customer": [] };
    text.approvers = [{ name: "", publicKey: "aa" }];
    text.screening = { url: "ftp://x", timeoutMs: 1, reviewApprovals: 0 };
    text.format = 2;
    const { faults } = parsePolicy(JSON.stringify(text));
    expect([...new Set(faults.map(({ key }) => key))].toSorted()).toEqual(
      [
        "format",
        "assets.*.minimumUnits",
        "assets.*.feeUnits",
        "assets.*.signerDayMaxUnits",
        "assets.*.extra",
        "assets.*.limits[0]",
        "assets.*.limits[0].by",
        "assets.*.limits[0].window",
        "assets.*.approvals[1]",
        "assets.*.approvals[1].needed",
        "assets.*.approvals[1].signed",
        "allowList.customers.alice[0]",
        "allowList.customers.not a customer",
        "approvers[0].name",
        "approvers[0].publicKey",
        "screening.url",
        "screening.timeoutMs",
        "screening.reviewApprovals",
      ].toSorted(),
    );
    for (const broken of ["{", "[]", "null", "3"]) {
      expect(parsePolicy(broken).faults.length).toBeGreaterThan(0);
    }
  });

  it("takes no list of one length for a length", () => {
    const text = plain();
    text.assets["*"].limits = [{ by: "customer", window: ["90s"], maxUnits: "5", maxCount: null }];
    expect(parsePolicy(JSON.stringify(text)).faults.map(({ key }) => key)).toEqual([
      "assets.*.limits[0].window",
    ]);
  });

  it("asks no screening service at what is no address of one", () => {
    const faultsOf = (url: unknown) => {
      const text = { ...plain(), screening: { url, timeoutMs: 1_000, reviewApprovals: 1 } };
      return parsePolicy(JSON.stringify(text)).faults.map(({ key }) => key);
    };
    for (const url of ["http://127.0.0.1:8085/v1?of=us", "https://ann:p%40ss@screen.example"]) {
      expect([url, faultsOf(url)]).toEqual([url, []]);
      expect(() => createHttpPoster({ url, timeoutMs: 1, maxResponseBytes: 1 })).not.toThrow();
    }
    // A port beyond all, half an address, no host, and a percent sign that is to be a percent sign.
    for (const url of [
      "http://127.0.0.1:80855/",
      "http://[::1/",
      "https://:8443/",
      "https://ann:50%off@screen.example/",
      8085,
    ]) {
      expect([url, faultsOf(url)]).toEqual([url, ["screening.url"]]);
    }
  });

  it("shows of a wrong URL neither user and password nor what follows the host", () => {
    const url = "htps://ann:s3cret@screen.example:8443/v2/s3cret?key=s3cret";
    const text = { ...plain(), screening: { url, timeoutMs: 1_000, reviewApprovals: 1 } };
    const shown = JSON.stringify([
      ...parsePolicy(JSON.stringify(text)).faults,
      ...parsePolicy(JSON.stringify({ ...text, screening: url })).faults,
      ...parsePolicy(JSON.stringify({ ...text, review: text.screening })).faults,
    ]);
    expect(shown).not.toContain("s3cret");
    expect(shown).toContain("htps://***@screen.example:8443/***");
  });

  it("that says a term twice is refused: of two lists or bounds one would be lost", () => {
    const text = policyFileText(PERMISSIVE_POLICY);
    const list = (customers: string) =>
      text.replace('"customers": {}', `"customers": {${customers}}`);
    const address = (digit: string) => `"0x${digit.repeat(40)}"`;
    const [one, two] = [address("1"), address("2")];
    for (const [changed, key] of [
      [list(`"alice": [${one}], "bob": [], "alice": [${two}]`), "alice"],
      [list(`"alice": [${one}], "al\\u0069ce": [${two}]`), "alice"],
      [text.replace('"feeUnits": "0"', '"maximumUnits": "5", "feeUnits": "0"'), "maximumUnits"],
      [text.replace('"format": 1', '"format": 1, "screening": null'), "screening"],
    ] as const) {
      const { faults } = parsePolicy(changed);
      expect(faults).toEqual([{ key, value: "written twice", allowed: expect.any(String) }]);
    }
    // A name may come again in another object, and a text may look like one.
    const right = list(`"alice": [${one}, ${two}], "assets": [${two}], "a:b": []`);
    expect(parsePolicy(right).faults).toEqual([]);
  });

  it("asks no less for a larger amount: neither fewer persons nor words instead of signatures", () => {
    const faultsOf = (...approvals: readonly object[]) => {
      const text = plain();
      text.assets["*"].approvals = approvals;
      return parsePolicy(JSON.stringify(text)).faults.map(({ key }) => key);
    };
    const small = { aboveUnits: "10", needed: 2, signed: true };
    const large = { aboveUnits: "100", needed: 2, signed: true };
    expect(faultsOf(small, large)).toEqual([]);
    expect(faultsOf({ ...small, signed: false }, large)).toEqual([]);
    for (const less of [{ needed: 1 }, { signed: false }, { needed: 3, signed: false }]) {
      expect(faultsOf(small, { ...large, ...less })).toEqual(["assets.*.approvals[1]"]);
    }
  });

  it("takes no approver for whom everybody can sign", () => {
    // R is the neutral element and s is 0: nobody needed a key for that.
    const signature = `01${"00".repeat(63)}`;
    const approved = (publicKey: string) => {
      const text = { ...plain(), approvers: [{ name: "to be filled in", publicKey }] };
      const { policy, faults } = parsePolicy(JSON.stringify(text));
      const digest = createHash("sha256").update("a withdrawal").digest();
      const isApproved =
        policy !== undefined && isSignedByApprover(policy, digest, { publicKey, signature });
      return { isApproved, faults: faults.map(({ key }) => key) };
    };
    // Points of small order (RFC 7748, section 7, has them for X25519), zeros among them.
    for (const key of ["00".repeat(32), `01${"00".repeat(31)}`, `ec${"ff".repeat(30)}7f`]) {
      expect(approved(key)).toEqual({ isApproved: false, faults: ["approvers[0].publicKey"] });
    }
    const { publicKey } = generateKeyPairSync("ed25519");
    const raw = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
    expect(approved(raw)).toEqual({ isApproved: false, faults: [] });
  });
});

describe("a policy's file", () => {
  it("is read again when it changes, and refused while it is wrong or gone", () => {
    const path = freshFile("policy.json");
    const text = policyFileText(PERMISSIVE_POLICY);
    writeFileSync(path, text);
    const file = new PolicyFile(path);
    const { hash } = file.read();
    expect(file.read().hash).toBe(hash);
    writeFileSync(path, text.replace('"feeUnits": "0"', '"feeUnits": "10"'));
    expect(file.read().hash).not.toBe(hash);
    writeFileSync(path, "{");
    expect(() => file.read()).toThrow(ConfigError);
    expect(() => file.read()).toThrow(path);
    rmSync(path);
    expect(() => file.read()).toThrow(ConfigError);
    writeFileSync(path, text);
    expect(file.read().hash).toBe(hash);
  });
});
