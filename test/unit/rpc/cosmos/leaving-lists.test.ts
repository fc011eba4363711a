/** Lists of what leaves a validator: each account's entries together, once, and counted as they are shown. */
import { expect, it } from "@jest/globals";
import {
  type Address,
  parseBech32,
  toBech32,
  VALIDATOR_PREFIX,
} from "../../../../chain/address.js";
import { MessageReader, type ProtoMessage } from "../../../../chain/protobuf/values.js";
import type { ModuleContext } from "../../../../node/modules/module-context.js";
import {
  delegate,
  redelegate,
  undelegate,
  validatorOf,
} from "../../../../node/modules/staking/delegating.js";
import { leavingPage } from "../../../../node/rpc/cosmos/leaving-page.js";
import { stakingQueries } from "../../../../node/rpc/cosmos/modules/staking.js";
import { pageRequest, partRequest } from "../../../../node/rpc/cosmos/paging.js";
import type { ModuleSources } from "../../../../node/rpc/cosmos/sources.js";
import { accountAt, ModuleChain, stakedGenesis } from "../../../helpers/cosmos/module-state.js";

const FROM = accountAt(0);
const TO = accountAt(1);
const OTHER = accountAt(2);
const PEOPLE = Array.from({ length: 7 }, (_, index) => accountAt(10 + index));
const MOVERS = Array.from({ length: 120 }, (_, index) => accountAt(100 + index));
const SERVICE = "/cosmos.staking.v1beta1.Query";

/** Everybody takes stake back twice, with others in between, and moves some of it to two validators. */
function leavingChain(): ModuleChain {
  const chain = new ModuleChain(stakedGenesis([100, 100, 100]));
  const act = (people: readonly Address[], work: (on: ModuleContext, who: Address) => void) => {
    for (const who of people) expect(chain.run((context) => work(context, who))).toBeUndefined();
    chain.endBlock();
  };
  const move = (to: Address) => (on: ModuleContext, who: Address) =>
    void redelegate(
      on,
      who,
      { source: validatorOf(on, FROM), destination: validatorOf(on, to) },
      10n,
    );
  const leave = (on: ModuleContext, who: Address) =>
    void undelegate(on, who, validatorOf(on, FROM), 10n);
  act([...MOVERS, ...PEOPLE], (on, who) => {
    chain.mint(who, 1_000n);
    delegate(on, who, validatorOf(on, FROM), 1_000n);
  });
  // More of one kind than a page has, before the first of the other.
  act(MOVERS, move(TO));
  act(PEOPLE, leave);
  act(PEOPLE.toReversed(), move(TO));
  act(PEOPLE, leave);
  act(PEOPLE, move(OTHER));
  return chain;
}

const chain = leavingChain();
const at = () => ({ read: async (work: (state: unknown) => unknown) => work(chain.state) });
const queries = stakingQueries({ modules: { at } } as unknown as ModuleSources);

async function ask(name: string, request: ProtoMessage): Promise<MessageReader> {
  const { signal } = new AbortController();
  const context = { height: 5, signal, client: "", tellHeight: () => undefined };
  return new MessageReader(
    (await queries[`${SERVICE}/${name}`]?.(new MessageReader(request), context)) ?? {},
  );
}

/** All pages of a list by keys. */
async function pages(name: string, list: string, request: ProtoMessage, page: ProtoMessage) {
  const all: MessageReader[][] = [];
  const totals: bigint[] = [];
  let key = new Uint8Array(0);
  do {
    const answer = await ask(name, { ...request, pagination: { ...page, key } });
    all.push([...answer.messages(list)]);
    totals.push(answer.submessage("pagination").bigint("total"));
    key = Uint8Array.from(answer.submessage("pagination").bytes("next_key"));
  } while (key.length > 0);
  return { all, totals };
}

const UNBONDINGS = [
  "ValidatorUnbondingDelegations",
  "unbonding_responses",
  { validator_addr: toBech32(FROM, VALIDATOR_PREFIX) },
] as const;

const REDELEGATIONS = [
  "Redelegations",
  "redelegation_responses",
  { src_validator_addr: toBech32(FROM, VALIDATOR_PREFIX) },
] as const;

const delegatorOf = (one: MessageReader) => parseBech32(one.text("delegator_address"));

it("who unbonds stands on one page, with all entries, in both directions", async () => {
  for (const reverse of [false, true]) {
    const { all, totals } = await pages(...UNBONDINGS, { limit: 3n, count_total: true, reverse });
    expect(all.map((page) => page.length)).toEqual([3, 3, 1]);
    // The total is that of the list, and told with its first page.
    expect(totals).toEqual([7n, 0n, 0n]);
    const found = all.flat();
    expect(found.map(delegatorOf).toSorted()).toEqual(PEOPLE.toSorted());
    for (const one of found) expect(one.messages("entries")).toHaveLength(2);
  }
});

it("a page without limits begins with who is there, whatever else leaves the validator", async () => {
  const answer = await ask(UNBONDINGS[0], UNBONDINGS[2]);
  expect(answer.messages("unbonding_responses")).toHaveLength(7);
  expect(answer.submessage("pagination").bigint("total")).toBe(7n);
  const rest = await ask(UNBONDINGS[0], {
    ...UNBONDINGS[2],
    pagination: { offset: 5n, limit: 9n },
  });
  expect(rest.messages("unbonding_responses")).toHaveLength(2);
});

it("routes of redelegations are counted one by one, those to one validator alone as well", async () => {
  const { all, totals } = await pages(...REDELEGATIONS, { limit: 50n, count_total: true });
  expect(all.map((page) => page.length)).toEqual([50, 50, 34]);
  expect(totals[0]).toBe(134n);
  const to = {
    ...REDELEGATIONS[2],
    dst_validator_addr: toBech32(OTHER, VALIDATOR_PREFIX),
  };
  const others = await pages("Redelegations", "redelegation_responses", to, {
    limit: 5n,
    count_total: true,
  });
  expect(others.all.map((page) => page.length)).toEqual([5, 2]);
  expect(others.totals[0]).toBe(7n);
});

it("a key of another list is refused", async () => {
  const key = new Uint8Array(12).fill(1);
  const asked = ask(UNBONDINGS[0], { ...UNBONDINGS[2], pagination: { key } });
  await expect(asked).rejects.toMatchObject({ code: "INVALID_ARGUMENT" });
});

it("what takes too long to count is told, and every page can be had without a total", async () => {
  const sources = { modules: { at } } as unknown as ModuleSources;
  const wanted = { operator: FROM, kind: "unbonding", destination: undefined } as const;
  const { signal } = new AbortController();
  const context = { height: 5, tellHeight: () => undefined };
  const page = (pagination: ProtoMessage) => {
    const request = pageRequest(new MessageReader({ pagination }));
    return leavingPage(sources, wanted, partRequest(request, context), signal, 40);
  };
  const refused = { code: "RESOURCE_EXHAUSTED" };
  await expect(page({ limit: 3n, count_total: true })).rejects.toMatchObject(refused);
  await expect(page({ limit: 3n, offset: 2n })).rejects.toMatchObject(refused);
  // Without a limit nobody has asked for the total: it is left out.
  expect((await page({})).response["total"]).toBeUndefined();
  const found: Address[] = [];
  let key: ProtoMessage["key"] = new Uint8Array(0);
  for (; key !== undefined; ) {
    const { items, response } = await page({ limit: 3n, key });
    found.push(...items.map(([{ delegator }]) => delegator));
    key = response["next_key"];
  }
  expect(found.toSorted()).toEqual(PEOPLE.toSorted());
});
