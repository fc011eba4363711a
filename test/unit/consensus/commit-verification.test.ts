/** What a commit proves: the tables of CometBFT 0.38.17's types/validation_test.go. */
import { describe, expect, it } from "@jest/globals";
import { type Commit, COMMIT_FLAG, type CommitSignature } from "../../../chain/consensus/commit.js";
import type { BlockId } from "../../../chain/consensus/block-id.js";
import { validatorAddress, ValidatorSet } from "../../../chain/consensus/validator-set.js";
import { VOTE_TYPE, voteSignBytes } from "../../../chain/consensus/vote.js";
import { verifyCommit } from "../../../node/blocks/commit-verification.js";
import { signingKeyOf } from "../../../chain/consensus/ed25519.js";
import { blockNamed } from "./scenario.js";

const CHAIN_ID = "chain_6940-1";
const HEIGHT = 100;
const TIME_NS = 1_700_000_000_000_000_000n;

function named(name: string): BlockId {
  const id = blockNamed(name);
  if (id === undefined) throw new Error("nil has no id");
  return id;
}

const BLOCK = named("A");
const KEYS = Array.from({ length: 10 }, (_, index) => signingKeyOf(Buffer.alloc(32, index + 1)));

const setOf = (size: number) =>
  ValidatorSet.genesis(KEYS.slice(0, size).map(({ publicKey }) => ({ publicKey, power: 10n })));

/** One entry of a commit, signed by the validator at the place; later places begin anew. */
function entry(
  set: ValidatorSet,
  index: number,
  content: { readonly blockId: BlockId | undefined; readonly chainId?: string; height?: number },
): CommitSignature {
  const address = set.at(index % set.size)?.address;
  const key = KEYS.find(({ publicKey }) => validatorAddress(publicKey) === address);
  if (address === undefined || key === undefined) throw new Error("no such validator");
  const { blockId, chainId = CHAIN_ID, height = HEIGHT } = content;
  const type = VOTE_TYPE.precommit;
  const vote = { type, height, round: 0, blockId, timeNs: TIME_NS };
  return {
    flag: blockId === undefined ? COMMIT_FLAG.nil : COMMIT_FLAG.commit,
    validatorAddress: address,
    timeNs: TIME_NS,
    signature: key.sign(voteSignBytes(chainId, vote)),
  };
}

interface Row {
  readonly chainId?: string;
  readonly blockId?: BlockId;
  readonly height?: number;
  readonly size: number;
  readonly block: number;
  readonly nil?: number;
  readonly absent?: number;
}

/** Absent ones come first, then those for the block, then those for nil. */
function commitOf(set: ValidatorSet, row: Row): Commit {
  const { blockId = BLOCK, chainId = CHAIN_ID, height = HEIGHT, absent = 0, nil = 0 } = row;
  const signatures = Array.from({ length: absent + row.block + nil }, (_, index) => {
    if (index < absent) return { flag: COMMIT_FLAG.absent };
    const isNil = index >= absent + row.block;
    return entry(set, index, { blockId: isNil ? undefined : blockId, chainId, height });
  });
  return { height, round: 0, blockId, signatures };
}

function verdict(commit: Commit, validators: ValidatorSet): string {
  const expected = { chainId: CHAIN_ID, height: HEIGHT, blockId: BLOCK, validators };
  try {
    verifyCommit(commit, expected);
    return "good";
  } catch (error) {
    return error instanceof Error ? error.message.replace("block refused: the commit ", "") : "";
  }
}

describe("a commit is judged as CometBFT does (VerifyCommit_All)", () => {
  it.each<[string, Row, string | RegExp]>([
    ["good, of three", { size: 3, block: 3 }, "good"],
    ["good, of one", { size: 1, block: 1 }, "good"],
    ["of another chain", { size: 2, block: 2, chainId: "chain_6941-1" }, /signature 0.* is false/],
    ["for another block", { size: 2, block: 2, blockId: named("B") }, "is for another block"],
    ["of another height", { size: 1, block: 1, height: 99 }, "is for another height"],
    ["of three out of four", { size: 4, block: 3 }, "has another number of validators"],
    ["of two out of one", { size: 1, block: 2 }, "has another number of validators"],
    ["with 30 of 100", { size: 10, block: 3, nil: 2, absent: 5 }, "has no two thirds"],
    ["with nobody", { size: 1, block: 0, absent: 1 }, "has no two thirds"],
    ["with nil alone", { size: 1, block: 0, nil: 1 }, "has no two thirds"],
    ["with exactly two thirds", { size: 9, block: 6, nil: 3 }, "has no two thirds"],
    ["with one more than two thirds", { size: 9, block: 7, nil: 2 }, "good"],
  ])("%s", (_, row, expected) => {
    const set = setOf(row.size);
    expect(verdict(commitOf(set, row), set)).toMatch(expected);
  });

  it("by every signature, also those beyond two thirds (VerifyCommit_CheckAllSignatures)", () => {
    const set = setOf(4);
    const good = commitOf(set, { size: 4, block: 4 });
    expect(verdict(good, set)).toBe("good");
    for (const blockId of [BLOCK, undefined]) {
      const foreign = entry(set, 3, { blockId, chainId: "CentaurusA" });
      const bad = { ...good, signatures: [...good.signatures.slice(0, 3), foreign] };
      expect(verdict(bad, set)).toMatch(/signature 3 of the commit is false/);
    }
  });

  it("by the place of each (double vote from Validator)", () => {
    const set = setOf(4);
    const good = commitOf(set, { size: 4, block: 4 });
    const [one, two, three, four] = good.signatures;
    if (!one || !two || !three || !four) throw new Error("no signatures");
    const twice = { ...good, signatures: [one, one, three, four] };
    expect(verdict(twice, set)).toMatch(/signature 1 of the commit names another validator/);
    const moved = { ...good, signatures: [two, one, three, four] };
    expect(verdict(moved, set)).toMatch(/signature 0 of the commit names another validator/);
  });

  it("by what each is for: nil is no vote for the block, nor the other way round", () => {
    const set = setOf(4);
    const good = commitOf(set, { size: 4, block: 3, nil: 1 });
    const turned = good.signatures.map((one): CommitSignature => {
      if (one.flag === COMMIT_FLAG.absent) return one;
      const { commit, nil } = COMMIT_FLAG;
      return { ...one, flag: one.flag === nil ? commit : nil };
    });
    expect(verdict(good, set)).toBe("good");
    expect(verdict({ ...good, signatures: turned }, set)).toMatch(/is false/);
  });

  it("of keys that are none never passes (VerifyCommitWithInvalidProposerKey)", () => {
    const set = setOf(2);
    const broken = ValidatorSet.restore(
      set.validators.map((one) => ({ ...one, publicKey: new Uint8Array(32) })),
      set.proposer.address,
    );
    const commit = commitOf(set, { size: 2, block: 2 });
    expect(verdict(commit, broken)).toMatch(/signature 0 of the commit is false/);
  });
});
