/** Events, validators, proofs and votes: JSON byte for byte as CometBFT 0.38.17 writes it. */
import { describe, expect, it } from "@jest/globals";
import { ZERO_ADDRESS } from "../../../../chain/address.js";
import { type DuplicateVoteEvidence, hashEvidence } from "../../../../chain/consensus/evidence.js";
import { merkleRootOf, provenRootSteps } from "../../../../chain/consensus/merkle.js";
import { ValidatorSet } from "../../../../chain/consensus/validator-set.js";
import { sha256 } from "../../../../chain/hashes.js";
import type { Hash32 } from "../../../../chain/hex.js";
import type { HeightProgress } from "../../../../node/consensus/consensus-ports.js";
import { type MomentName, STEP } from "../../../../node/consensus/machine/consensus-state.js";
import { signingKeyOf } from "../../../../chain/consensus/ed25519.js";
import {
  evidenceJson,
  transactionProofJson,
  validatorJson,
} from "../../../../node/rpc/comet/json/encode.js";
import { momentPublication, votePublication } from "../../../../node/rpc/comet/json/event-data.js";
import { parseEvidence } from "../../../../node/rpc/comet/json/evidence-json.js";
import type { CometChain } from "../../../../node/rpc/comet/ports.js";
import { emptyProgress } from "../../../helpers/chains/height-progress.js";
import { readScenarios } from "../../consensus/cometbft-scenarios.js";
import { allAtOnce } from "../../../../chain/steps/steps.js";

const { shapes } = readScenarios();
const keyOf = (index: number) => signingKeyOf(Buffer.alloc(32, index + 1)).publicKey;
const setOf = (powers: Readonly<Record<number, bigint>>) =>
  ValidatorSet.genesis(
    Object.entries(powers).map(([index, power]) => ({ publicKey: keyOf(Number(index)), power })),
  );

function shape(name: string): string {
  const text = shapes[name];
  if (text === undefined) throw new Error(`no shape ${name}`);
  return text;
}

/** Consensus in the middle of a height. */
function chainAt(progress: HeightProgress): CometChain {
  const consensus = { progress: () => progress, validators: () => progress.validators };
  return { consensus } as unknown as CometChain;
}

const members = setOf({ 1: 10n, 2: 7n });
const two = ValidatorSet.restore(
  members.validators,
  members.validators[0]?.address ?? ZERO_ADDRESS,
);
const middle = chainAt(emptyProgress(7, two, { round: 2 }));

/** The evidence of the fixture, as JSON brings it in. */
function evidenceOfShape(): DuplicateVoteEvidence {
  const { value } = JSON.parse(shape("evidence")) as { value: { evidence: unknown } };
  return parseEvidence(value.evidence);
}

describe("events", () => {
  it.each<[MomentName, string, keyof typeof STEP]>([
    ["Polka", "roundState", "prevote"],
    ["TimeoutPropose", "roundState", "prevote"],
    ["NewRound", "newRound", "newRound"],
  ])("of a moment are CometBFT's: %s", async (name, wanted, step) => {
    const moment = { name, height: 7, round: 2, step: STEP[step] };
    const event = momentPublication(middle, moment);
    expect(event.kind).toBe(name);
    expect([...(await event.values())]).toEqual([["tm.event", [name]]]);
    expect(String(await event.data())).toBe(shape(wanted));
  });

  it("of a complete proposal name its block", async () => {
    const [hash, partsHash] = [1, 2].map((byte) => `0x0${byte}`.padEnd(66, `0${byte}`) as Hash32);
    if (hash === undefined || partsHash === undefined) throw new Error("two hashes");
    const blockId = { hash, parts: { total: 3, hash: partsHash } };
    const place = { name: "CompleteProposal", height: 7, round: 2, step: STEP.propose } as const;
    const moment = { ...place, blockId };
    const text = String(await momentPublication(middle, moment).data());
    expect(text).toBe(shape("completeProposal"));
  });

  it("of votes are CometBFT's", async () => {
    const text = String(await votePublication(evidenceOfShape().voteA).data());
    expect(text).toBe(shape("vote"));
  });
});

describe("values", () => {
  it("of evidence go out as they came in", () => {
    const evidence = evidenceOfShape();
    const value = { height: "9", evidence: evidenceJson(evidence) };
    const text = JSON.stringify({ type: "tendermint/event/NewEvidence", value });
    expect(text).toBe(shape("evidence"));
    expect(parseEvidence(JSON.parse(JSON.stringify(value.evidence)))).toEqual(evidence);
    expect(hashEvidence(evidence)).toMatch(/^0x[0-9a-f]{64}$/);
  });

  it("of validators are CometBFT's, those that leave too", () => {
    expect(JSON.stringify(two.validators.map(validatorJson))).toBe(shape("validators"));
    const [first] = two.validators;
    if (first === undefined) throw new Error("no validator");
    const left = validatorJson({ ...first, power: 0n, priority: 0n });
    const value = { validator_updates: [left] };
    const text = JSON.stringify({ type: "tendermint/event/ValidatorSetUpdates", value });
    expect(text).toBe(shape("updates"));
  });

  it("of proofs are CometBFT's", () => {
    const transactions = [
      Buffer.from("a transaction"),
      Buffer.from("another one"),
      Buffer.from([0xff, 0]),
    ];
    const leaves = transactions.map((bytes) => sha256(bytes));
    const root = merkleRootOf(leaves);
    for (const [index, proof] of allAtOnce(provenRootSteps(leaves)).proofs.entries()) {
      const bytes = transactions[index] ?? Buffer.alloc(0);
      const text = JSON.stringify(transactionProofJson(root, bytes, proof));
      expect(text).toBe(shape(`proof${index}`));
    }
  });
});
