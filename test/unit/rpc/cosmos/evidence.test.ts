/** Evidence is read from the blocks in which it was punished: which ones are needed, and what if one is gone. */
import { expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { type DuplicateVoteEvidence, hashEvidence } from "../../../../chain/consensus/evidence.js";
import { type Vote, VOTE_TYPE } from "../../../../chain/consensus/vote.js";
import { parseHash32 } from "../../../../chain/hex.js";
import { sha256 } from "../../../../chain/hashes.js";
import { MessageReader } from "../../../../chain/protobuf/values.js";
import { punish } from "../../../../node/modules/slashing/signing.js";
import {
  slashValidator,
  undelegate,
  validatorOf,
} from "../../../../node/modules/staking/delegating.js";
import { registerValidator } from "../../../../node/modules/staking/registration.js";
import { Validators } from "../../../../node/modules/staking/validator-record.js";
import { slashingQueries } from "../../../../node/rpc/cosmos/modules/slashing.js";
import type { ModuleSources } from "../../../../node/rpc/cosmos/sources.js";
import { loadDescriptors } from "../../../../runtime/files/descriptor-set.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../../helpers/cosmos/module-state.js";

const types = loadDescriptors();

/** The queries of a node whose block 2 has this evidence; that has pruned all blocks where there is none. */
function nodeOf(chain: ModuleChain, evidence?: readonly DuplicateVoteEvidence[]) {
  const at = () => ({
    read: async (work: (state: unknown) => unknown) => work(chain.state),
  });
  const consensus = {
    outline: (height: number) =>
      evidence === undefined ? undefined : { evidence: height === 2 ? evidence : [] },
    async *committedEvidence() {
      for (const one of evidence ?? []) {
        yield { hash: hashEvidence(one), voteHeight: one.voteA.height };
      }
    },
  };
  const sources = { types, modules: { at }, chain: { consensus, events: eventsOf(chain) } };
  const queries = slashingQueries(sources as unknown as ModuleSources);
  const { signal } = new AbortController();
  const context = { height: 9, signal, client: "", tellHeight: () => undefined };
  return async (name: string, request = {}) =>
    queries[`/cosmos.evidence.v1beta1.Query/${name}`]?.(new MessageReader(request), context);
}

/** The index of events: all of these chains' slashes were in one block, height 2. */
function eventsOf(chain: ModuleChain) {
  return {
    async *heightsOfType(wanted: string, from: number, to: number) {
      if (from <= 2 && to >= 2 && chain.events.some(({ type }) => type === wanted)) yield 2;
    },
  };
}

function slashedChain(): ModuleChain {
  const chain = new ModuleChain(stakedGenesis([100, 50]));
  chain.run((context) => {
    const validator = validatorOf(context, accountAt(0));
    const fault = { infractionHeight: 0, stakeAtoken: validator.tokens };
    slashValidator(context, validator, fault, 10n ** 16n);
  });
  return chain;
}

it("a slash for missed blocks has none: no block is needed to say so", async () => {
  const ask = nodeOf(slashedChain());
  expect(await ask("AllEvidence")).toMatchObject({ evidence: [] });
  await expect(ask("Evidence", { hash: "AB".repeat(32) })).rejects.toMatchObject({
    code: "NOT_FOUND",
    message: `evidence ${"AB".repeat(32)} not found`,
  });
});

/** The second validator has signed twice. @returns its key's address */
function punishSecond(chain: ModuleChain): Address {
  let found: Address | undefined;
  chain.height = 2;
  chain.run((context) => {
    const { consensusAddress } = validatorOf(context, accountAt(1));
    punish(context, [{ consensusAddress, height: 1, power: 50n }]);
    found = consensusAddress;
  });
  if (found === undefined) throw new Error("nobody was punished");
  return found;
}

/** Evidence against a validator for two blocks of height 1; nobody looks at its signatures. */
function proofOf(validatorAddress: Address): DuplicateVoteEvidence {
  const vote = (fill: string): Vote => ({
    type: VOTE_TYPE.precommit,
    height: 1,
    round: 0,
    blockId: {
      hash: parseHash32(`0x${fill.repeat(64)}`),
      parts: { total: 1, hash: parseHash32(`0x${fill.repeat(64)}`) },
    },
    timeNs: 1_750_000_000_000_000_000n,
    validatorAddress,
    validatorIndex: 1,
    signature: new Uint8Array(64),
  });
  const powers = { totalPower: 150n, validatorPower: 50n };
  return { voteA: vote("a"), voteB: vote("b"), ...powers, timeNs: 1_750_000_000_000_000_000n };
}

it("of who signed twice is listed, and found by its hash", async () => {
  const chain = slashedChain();
  const validatorAddress = punishSecond(chain);
  const ask = nodeOf(chain, [proofOf(accountAt(7)), proofOf(validatorAddress)]);
  const answer = new MessageReader((await ask("AllEvidence")) ?? {});
  const [one, ...others] = answer.messages("evidence");
  expect(others).toEqual([]);
  const bytes = one?.bytes("value") ?? new Uint8Array(0);
  const hash = Buffer.from(sha256(bytes)).toString("hex");
  expect(await ask("Evidence", { hash })).toMatchObject({ evidence: { value: bytes } });
});

it("stays listed when its validator is gone, and its operator has another key", async () => {
  const chain = new ModuleChain(stakedGenesis([100, 50], { "staking.unbonding_time": "4s" }));
  const validatorAddress = punishSecond(chain);
  const ask = nodeOf(chain, [proofOf(validatorAddress)]);
  const before = await ask("AllEvidence");
  expect(before?.["evidence"]).toHaveLength(1);
  chain.endBlock();
  const operator = accountAt(1);
  chain.run((context) => {
    const validator = validatorOf(context, operator);
    undelegate(context, operator, validator, validator.tokens);
  });
  chain.endBlock({ seconds: 5 });
  expect(new Validators(chain.state).of(operator).exists).toBe(false);
  expect(await ask("AllEvidence")).toEqual(before);
  chain.mint(operator, 10n * 10n ** 18n);
  const description = {
    moniker: "m",
    identity: "",
    website: "",
    security_contact: "",
    details: "",
  };
  const failure = chain.run((context) => {
    registerValidator(context, {
      operator,
      publicKey: new Uint8Array(32).fill(7),
      description,
      commission: { rate: 0n, maxRate: 0n, maxChangeRate: 0n },
      minSelfDelegation: 1n,
      selfDelegationAtoken: 10n ** 18n,
    });
  });
  expect(failure).toBeUndefined();
  expect(await ask("AllEvidence")).toEqual(before);
});

it("is listed where a double signing costs nothing", async () => {
  const params = { "slashing.slash_fraction_double_sign": "0" };
  const chain = new ModuleChain(stakedGenesis([100, 50], params));
  const ask = nodeOf(chain, [proofOf(punishSecond(chain))]);
  expect((await ask("AllEvidence"))?.["evidence"]).toHaveLength(1);
});

it("of a pruned block is not called unknown", async () => {
  const chain = slashedChain();
  punishSecond(chain);
  const ask = nodeOf(chain);
  const message = expect.stringMatching(/^block [0-9]+, in which .* is pruned on this node$/);
  const pruned = { code: "FAILED_PRECONDITION", message };
  await expect(ask("AllEvidence")).rejects.toMatchObject(pruned);
  await expect(ask("Evidence", { hash: "AB".repeat(32) })).rejects.toMatchObject(pruned);
});
