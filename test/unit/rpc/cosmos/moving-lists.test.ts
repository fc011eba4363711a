/** Pages of lists that others leave or join meanwhile: nobody is left out, nobody is there twice. */
import { expect, it } from "@jest/globals";
import {
  type Address,
  parseBech32,
  toBech32,
  VALIDATOR_PREFIX,
} from "../../../../chain/address.js";
import { bigintToBytes, type Hash32 } from "../../../../chain/hex.js";
import { JsonWriter } from "../../../../chain/protobuf/json.js";
import { MessageReader, type ProtoMessage } from "../../../../chain/protobuf/values.js";
import { delegate, undelegate, validatorOf } from "../../../../node/modules/staking/delegating.js";
import { stakingQueries } from "../../../../node/rpc/cosmos/modules/staking.js";
import { govQueries } from "../../../../node/rpc/cosmos/modules/gov.js";
import { createModulesAt } from "../../../../node/modules/reads/modules-at.js";
import type { StateReader } from "../../../../node/store/state-reader.js";
import type { ModuleSources } from "../../../../node/rpc/cosmos/sources.js";
import { anyOf, GOV, newChain, PEOPLE as VOTERS, submit, vote } from "../../modules/gov-stage.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../../helpers/cosmos/module-state.js";
import { loadDescriptors } from "../../../../runtime/files/descriptor-set.js";

const types = loadDescriptors();
const writer = new JsonWriter(types);
const ANSWER = types.message("cosmos.gov.v1.QueryProposalsResponse");
const OPERATOR = accountAt(0);
const PEOPLE = [6, 7, 8, 9].map(accountAt);
const VOTES = "/cosmos.gov.v1.Query/Votes";
const PROPOSALS = "/cosmos.gov.v1.Query/Proposals";
const LIST = "/cosmos.staking.v1beta1.Query/ValidatorDelegations";

/** Everybody has a delegation; whoever `leaves` has taken it back. */
function stateWithout(...leaves: readonly Address[]) {
  const chain = new ModuleChain(stakedGenesis([100]));
  for (const person of PEOPLE) chain.mint(person, 1_000n);
  chain.run((context) => {
    const validator = validatorOf(context, OPERATOR);
    for (const person of PEOPLE) delegate(context, person, validator, 1_000n);
    for (const person of leaves) undelegate(context, person, validator, 1_000n);
  });
  return chain.state;
}

/** All delegators, a page of two at each height. */
async function delegators(
  states: readonly ReturnType<typeof stateWithout>[],
  pagination: ProtoMessage,
) {
  const at = (height: number) => ({
    read: async (work: (state: unknown) => unknown) => work(states[height]),
  });
  const list = stakingQueries({ modules: { at } } as unknown as ModuleSources)[LIST];
  const found: Address[] = [];
  const told: number[] = [];
  let key = new Uint8Array(0);
  for (let height = 0; height === 0 || key.length > 0; height++) {
    const request = new MessageReader({
      validator_addr: toBech32(OPERATOR, VALIDATOR_PREFIX),
      pagination: { ...pagination, limit: 2n, key },
    });
    const { signal } = new AbortController();
    const tellHeight = (other: number) => told.push(other);
    const context = { height, signal, client: "", tellHeight };
    const answer = new MessageReader((await list?.(request, context)) ?? {});
    for (const one of answer.messages("delegation_responses")) {
      found.push(parseBech32(one.submessage("delegation").text("delegator_address")));
    }
    key = Uint8Array.from(answer.submessage("pagination").bytes("next_key"));
  }
  return { found, told };
}

it("whoever takes the place of one that left is on a page, in both directions", async () => {
  const [first, second] = PEOPLE;
  if (first === undefined || second === undefined) throw new Error("nobody is there");
  const states = [stateWithout(), stateWithout(first), stateWithout(first, second)];
  const { found, told } = await delegators(states, {});
  expect(found.toSorted()).toEqual([OPERATOR, ...PEOPLE].toSorted());
  // All pages are of the height of the first one, and the later ones say so.
  expect(told).toEqual([0, 0]);
  const reverse = await delegators(states, { reverse: true });
  expect(reverse.found).toEqual(found.toReversed());
});

it("a page goes on where the one that it begins with has left since", async () => {
  const last = PEOPLE[1];
  if (last === undefined) throw new Error("nobody is there");
  const states = [stateWithout(), stateWithout(last), stateWithout(last)];
  const { found } = await delegators(states, {});
  expect(found).toHaveLength(5);
});

it("nobody's vote is on two pages where others vote meanwhile, in both directions", async () => {
  const chain = newChain();
  const proposal = submit(chain);
  const voters = VOTERS.slice(0, 5);
  for (const voter of voters) vote(chain, proposal, voter, 1);
  const late = VOTERS.slice(5);
  const at = () => ({
    read: async (work: (state: unknown) => unknown) => work(chain.state),
  });
  const list = govQueries({ modules: { at } } as unknown as ModuleSources)[VOTES];
  const pages = async (pagination: ProtoMessage) => {
    const found: Address[] = [];
    let key = new Uint8Array(0);
    for (let isFirst = true; isFirst || key.length > 0; isFirst = false) {
      const request = new MessageReader({
        proposal_id: proposal.id,
        pagination: { ...pagination, limit: 2n, key },
      });
      const { signal } = new AbortController();
      const context = { height: 1, signal, client: "", tellHeight: () => undefined };
      const answer = new MessageReader((await list?.(request, context)) ?? {});
      for (const one of answer.messages("votes")) found.push(parseBech32(one.text("voter")));
      key = Uint8Array.from(answer.submessage("pagination").bytes("next_key"));
      const next = late.pop();
      if (next !== undefined) vote(chain, proposal, next, 1);
    }
    return found;
  };
  expect(await pages({ reverse: true })).toEqual(voters.toReversed());
  const all = [...voters, ...VOTERS.slice(5).toReversed()];
  expect(await pages({})).toEqual(all);
  expect(await pages({ reverse: true })).toEqual(all.toReversed());
});

it("a page of proposals ends where they have megabytes together, in both directions", async () => {
  const chain = newChain();
  // The most messages in each other that a proposal's bytes hold, near enough.
  const amount = Array.from({ length: 1_000 }, () => ({ denom: "", amount: "" }));
  const transfer = { from_address: GOV, to_address: GOV, amount };
  const message = anyOf("/cosmos.bank.v1beta1.MsgSend", transfer);
  const messages = Array.from({ length: 15 }, () => message);
  const made = Array.from({ length: 19 }, () => submit(chain, { messages }).id);
  const at = () => ({ read: async (work: (state: unknown) => unknown) => work(chain.state) });
  const list = govQueries({ modules: { at }, types } as unknown as ModuleSources)[PROPOSALS];
  const page = async (pagination: ProtoMessage) => {
    const context = {
      height: 1,
      signal: new AbortController().signal,
      client: "",
      tellHeight: () => undefined,
    };
    const answer = (await list?.(new MessageReader({ pagination }), context)) ?? {};
    const sizeBytes = Buffer.byteLength(writer.text(ANSWER, answer));
    const reader = new MessageReader(answer);
    const ids = reader.messages("proposals").map((one) => one.bigint("id"));
    return { ids, sizeBytes, key: reader.submessage("pagination").bytes("next_key") };
  };
  for (const reverse of [false, true]) {
    const found: bigint[] = [];
    let key: Uint8Array = new Uint8Array(0);
    do {
      const one = await page({ reverse, key });
      expect(one.ids.length).toBeGreaterThan(1);
      expect(one.ids.length).toBeLessThan(made.length);
      expect(one.sizeBytes).toBeLessThan(16 * 1024 * 1024);
      found.push(...one.ids);
      ({ key } = one);
    } while (key.length > 0);
    expect(found).toEqual(reverse ? made.toReversed() : made);
  }
  // Who goes on by an offset would leave out what is between.
  await expect(page({ offset: 1n })).rejects.toThrow(
    "the proposals are large: use a smaller limit",
  );
  expect((await page({ offset: 1n, limit: 2n })).ids).toEqual(made.slice(1, 3));
});

it("a list of past proposals has no bound, however much of history it is read from", async () => {
  const { state } = newChain();
  // As many as nobody fits: most were dropped for want of deposits.
  const madeCount = 120_000n;
  let madeSlot: Hash32 | undefined;
  const reader: StateReader = {
    account: async (address) => state.accountNow(address),
    code: () => new Uint8Array(0),
    async storage(address, slot) {
      // How many were made is asked first.
      madeSlot ??= slot;
      return slot === madeSlot ? bigintToBytes(madeCount) : state.storageNow(address, slot);
    },
  };
  const modules = createModulesAt(() => reader);
  const list = govQueries({ modules } as unknown as ModuleSources)[PROPOSALS];
  const request = new MessageReader({ pagination: { count_total: true } });
  const { signal } = new AbortController();
  const answer = await list?.(request, {
    height: 1,
    signal,
    client: "",
    tellHeight: () => undefined,
  });
  expect(answer).toEqual({ proposals: [], pagination: { total: 0n } });
});
