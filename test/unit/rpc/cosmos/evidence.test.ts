/** Evidence is read from the blocks in which it was punished: which ones are needed, and what if one is gone. */
import { expect, it } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { sha256 } from "../../../../chain/hashes.js";
import { MessageReader } from "../../../../chain/protobuf/values.js";
import { punish } from "../../../../node/modules/slashing/signing.js";
import { slashValidator, validatorOf } from "../../../../node/modules/staking/delegating.js";
import { slashingQueries } from "../../../../node/rpc/cosmos/modules/slashing.js";
import type { ModuleSources } from "../../../../node/rpc/cosmos/sources.js";
import { loadDescriptors } from "../../../../runtime/files/descriptor-set.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../../helpers/cosmos/module-state.js";

const types = loadDescriptors();

/** The queries of a node whose blocks all have this evidence; that has pruned them where there is none. */
function nodeOf(chain: ModuleChain, evidence?: readonly unknown[]) {
  const at = () => ({
    read: async (work: (state: unknown) => unknown) => work(chain.state),
  });
  const consensus = { outline: () => (evidence === undefined ? undefined : { evidence }) };
  const sources = { types, modules: { at }, chain: { consensus } };
  const queries = slashingQueries(sources as unknown as ModuleSources);
  const context = { height: 9, signal: new AbortController().signal, tellHeight: () => undefined };
  return async (name: string, request = {}) =>
    queries[`/cosmos.evidence.v1beta1.Query/${name}`]?.(new MessageReader(request), context);
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
  chain.run((context) => {
    const { consensusAddress } = validatorOf(context, accountAt(1));
    punish(context, [{ consensusAddress, height: 1, power: 50n }]);
    found = consensusAddress;
  });
  if (found === undefined) throw new Error("nobody was punished");
  return found;
}

it("of who signed twice is listed, and found by its hash", async () => {
  const chain = slashedChain();
  const validatorAddress = punishSecond(chain);
  const proof = (of: Address) => ({
    voteA: { validatorAddress: of, height: 1 },
    timeNs: 1_750_000_000_000_000_000n,
    validatorPower: 50n,
  });
  const ask = nodeOf(chain, [proof(accountAt(7)), proof(validatorAddress)]);
  const answer = new MessageReader((await ask("AllEvidence")) ?? {});
  const [one, ...others] = answer.messages("evidence");
  expect(others).toEqual([]);
  const bytes = one?.bytes("value") ?? new Uint8Array(0);
  const hash = Buffer.from(sha256(bytes)).toString("hex");
  expect(await ask("Evidence", { hash })).toMatchObject({ evidence: { value: bytes } });
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
