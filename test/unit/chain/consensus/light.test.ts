/** What a light client believes: the tables of CometBFT 0.38.17's light/verifier_test.go. */
import { describe, expect, it } from "@jest/globals";
import { COMMIT_FLAG } from "../../../../chain/consensus/commit.js";
import {
  isLightExpired,
  type LightBlock,
  type LightRules,
  MAX_CLOCK_DRIFT_NS,
  verifyAdjacent,
  verifyBackwards,
  verifyLightBlock,
  verifyNonAdjacent,
  verifySelfSigned,
} from "../../../../chain/consensus/light.js";
import { verifySignature } from "../../../../chain/consensus/ed25519.js";
import {
  commitOf,
  HOUR_NS,
  LIGHT_CHAIN_ID,
  lightBlock,
  type LightBlockPlan,
  lightChain,
  lightKeys,
  lightSet,
  START_NS,
} from "../../../helpers/chains/light-blocks.js";

const MS_NS = 1_000_000n;

const keys = lightKeys(4);
/** 20, 30, 40, 50: the first three have no two thirds, the last three do. */
const validators = lightSet(keys, 20n, 10n);
const first = lightBlock({ keys, validators, height: 1, timeNs: START_NS });

function rules(change: Partial<LightRules> = {}): LightRules {
  return {
    chainId: LIGHT_CHAIN_ID,
    trustPeriodNs: 3n * HOUR_NS,
    nowNs: START_NS + 2n * HOUR_NS,
    verifySignature,
    ...change,
  };
}

function block(change: Partial<LightBlockPlan>): LightBlock {
  return lightBlock({ keys, validators, height: 2, timeNs: START_NS + HOUR_NS, ...change });
}

const others = lightSet(keys, 10n, 1n);

/** Name, block, refusal ("" for none), rules. */
type Row = readonly [name: string, next: LightBlock, refused: string, rules?: Partial<LightRules>];

const ADJACENT: readonly Row[] = [
  ["0 the same header", first, "must be adjacent"],
  ["1 another chain", block({ header: { chainId: "different" } }), "belongs to another chain"],
  [
    "2 time before the old header's",
    block({ timeNs: START_NS - HOUR_NS }),
    "not after the trusted",
  ],
  ["3 time from the future", block({ timeNs: START_NS + 3n * HOUR_NS }), "from the future"],
  [
    "4 time within the drift",
    block({ timeNs: START_NS + 2n * HOUR_NS + MAX_CLOCK_DRIFT_NS - MS_NS }),
    "",
  ],
  ["5 all signed", block({}), ""],
  ["6 two thirds signed", block({ signers: [1, 4] }), ""],
  ["7 one third signed", block({ signers: [3, 4] }), "only 50 of 140 signed"],
  [
    "8 other validators than foreseen",
    block({ validators: others }),
    "next validators do not match",
  ],
  [
    "9 validators that are not the header's",
    { ...block({}), validators: others },
    "do not match those that were supplied",
  ],
  [
    "10 the old header has expired",
    { ...block({}), validators: others },
    "has expired",
    { trustPeriodNs: HOUR_NS, nowNs: START_NS + HOUR_NS },
  ],
];

const [twoThirds, oneThird, less] = [keys.slice(1), keys.slice(3), keys.slice(0, 1)];
const part = (some: typeof keys, power: bigint, height: number) =>
  block({ keys: some, validators: lightSet(some, power, 10n), height });

const NON_ADJACENT: readonly Row[] = [
  ["0 all signed, all known", block({ height: 3 }), ""],
  ["1 two thirds signed, all known", block({ height: 4, signers: [1, 4] }), ""],
  ["2 one third signed, all known", block({ height: 5, signers: [3, 4] }), "only 50 of 140 signed"],
  ["3 all signed, two thirds known", part(twoThirds, 30n, 5), ""],
  ["4 all signed, a third known", part(oneThird, 50n, 5), ""],
  ["5 all signed, less than a third known", part(less, 20n, 5), "20 of 140 of the trusted power"],
];

function refusalOf(work: () => void): string {
  try {
    work();
    return "";
  } catch (error) {
    return String(error);
  }
}

function expectRefusal(refusal: string, expected: string): void {
  if (expected === "") expect(refusal).toBe("");
  else expect(refusal).toContain(expected);
}

describe("the next header", () => {
  it.each(ADJACENT)("%s", (_name, next, refused, change = {}) => {
    expectRefusal(
      refusalOf(() => verifyAdjacent(first, next, rules(change))),
      refused,
    );
  });
});

describe("a header further up", () => {
  it.each(NON_ADJACENT)("%s", (_name, next, refused, change = {}) => {
    expectRefusal(
      refusalOf(() => verifyNonAdjacent(first, next, rules(change))),
      refused,
    );
  });

  it("has another code when a header in between may lead there", () => {
    const next = part(less, 20n, 5);
    expect(() => verifyLightBlock(first, next, rules())).toThrow(
      expect.objectContaining({ code: "LIGHT_UNTRUSTED" }),
    );
    expect(() => verifyLightBlock(first, block({ height: 5, signers: [3, 4] }), rules())).toThrow(
      expect.objectContaining({ code: "LIGHT_INVALID" }),
    );
  });

  it("is never the next one", () => {
    expectRefusal(
      refusalOf(() => verifyNonAdjacent(first, block({}), rules())),
      "non adjacent",
    );
  });

  it("counts nobody twice", () => {
    const next = block({ height: 3 });
    const [one, , ...rest] = next.commit.signatures;
    if (one === undefined) throw new Error("no signature");
    const commit = { ...next.commit, signatures: [one, one, ...rest] };
    // The power of the first one alone is more than a third: the trusted set is asked for more.
    const small = lightSet(lightKeys(4), 20n, 0n);
    const trusted = { ...first, validators: small };
    expectRefusal(
      refusalOf(() => verifyNonAdjacent(trusted, { ...next, commit }, rules())),
      "double vote",
    );
  });
});

describe("a commit", () => {
  const next = block({});
  const change = (index: number, signature: Uint8Array): LightBlock => ({
    ...next,
    commit: {
      ...next.commit,
      signatures: next.commit.signatures.map((entry, at) =>
        at === index && entry.flag !== COMMIT_FLAG.absent ? { ...entry, signature } : entry,
      ),
    },
  });

  it("with a false signature is refused", () => {
    const wrong = change(0, new Uint8Array(64).fill(9));
    expectRefusal(
      refusalOf(() => verifyAdjacent(first, wrong, rules())),
      "wrong signature (#0)",
    );
  });

  it("for another header, height or number of validators is refused", () => {
    const at = (fields: Partial<LightBlock["commit"]>) => ({
      ...next,
      commit: { ...next.commit, ...fields },
    });
    const signatures = next.commit.signatures.slice(1);
    const rows: readonly (readonly [LightBlock, string])[] = [
      [at({ height: 3 }), "for another height"],
      [at({ blockId: undefined }), "for nil"],
      [at({ blockId: first.commit.blockId }), "signs another block"],
      [at({ signatures }), "another number of validators"],
      [{ ...next, header: { ...next.header, appHash: first.header.dataHash } }, "another block"],
      [block({ header: { blockVersion: 10 } }), "block protocol"],
    ];
    for (const [wrong, expected] of rows) {
      expectRefusal(
        refusalOf(() => verifyAdjacent(first, wrong, rules())),
        expected,
      );
    }
  });

  it("of nil votes has no power", () => {
    const nil = commitOf(next.header, { keys, validators });
    const signatures = nil.signatures.map((entry) =>
      entry.flag === COMMIT_FLAG.absent ? entry : { ...entry, flag: COMMIT_FLAG.nil },
    );
    const voted = { ...next, commit: { ...nil, signatures } };
    expectRefusal(
      refusalOf(() => verifySelfSigned(voted, rules())),
      "only 0 of 140",
    );
    expect(refusalOf(() => verifySelfSigned(next, rules()))).toBe("");
  });
});

describe("time", () => {
  it("expires a header at the end of the period, not before", () => {
    const at = (nowNs: bigint) => isLightExpired(first.header, { trustPeriodNs: HOUR_NS, nowNs });
    expect([at(START_NS + HOUR_NS - 1n), at(START_NS + HOUR_NS)]).toEqual([false, true]);
  });
});

describe("the header before", () => {
  const chain = lightChain(3, { validators: 3, change: 0 });
  const [older, trusted] = [chain.get(2)?.header, chain.get(3)?.header];
  if (older === undefined || trusted === undefined) throw new Error("no chain");

  it("is the one whose hash the trusted one has", () => {
    expect(refusalOf(() => verifyBackwards(older, trusted))).toBe("");
    const rows: readonly (readonly [Partial<typeof older>, string])[] = [
      [{ appHash: older.dataHash }, "not the trusted header's last block"],
      [{ height: 1 }, "not the header of the height before"],
      [{ timeNs: trusted.timeNs }, "not older"],
      [{ chainId: "another" }, "another chain"],
      [{ blockVersion: 12 }, "block protocol"],
    ];
    for (const [change, expected] of rows) {
      expectRefusal(
        refusalOf(() => verifyBackwards({ ...older, ...change }, trusted)),
        expected,
      );
    }
  });
});
