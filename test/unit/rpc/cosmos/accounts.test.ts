/** Accounts of the chain itself are there by name, also before they have held anything. */
import { expect, it } from "@jest/globals";
import { type Address, addressToBytes, toBech32, ZERO_ADDRESS } from "../../../../chain/address.js";
import { MessageReader, type ProtoMessage } from "../../../../chain/protobuf/values.js";
import { accountPage } from "../../../../node/rpc/cosmos/account-list.js";
import { authQueries } from "../../../../node/rpc/cosmos/modules/auth.js";
import { pageRequest } from "../../../../node/rpc/cosmos/paging.js";
import type { QuerySources } from "../../../../node/rpc/cosmos/sources.js";
import { loadDescriptors } from "../../../../runtime/files/descriptor-set.js";
import { accountAt } from "../../../helpers/cosmos/module-state.js";

const [TREASURY, NOBODY] = [accountAt(0), accountAt(1)];

/** Queries of a node whose state has no accounts. */
function answerOf(name: string, request: Readonly<Record<string, string>>) {
  const sources = {
    types: loadDescriptors(),
    chain: { view: { account: async () => undefined } },
    moduleAccounts: [{ name: "treasury", address: TREASURY, permissions: [] }],
    vesting: { account: async () => undefined },
  };
  const query = authQueries(sources as unknown as QuerySources)[
    `/cosmos.auth.v1beta1.Query/${name}`
  ];
  const signal = new AbortController().signal;
  return async () =>
    query?.(new MessageReader(request), {
      height: 1,
      signal,
      client: "",
      tellHeight: () => undefined,
    });
}

it("an account of the chain is shown by each query that names one, before it has held anything", async () => {
  const address = toBech32(TREASURY);
  expect(await answerOf("AccountInfo", { address })()).toEqual({ info: { address, sequence: 0n } });
  expect(await answerOf("Account", { address })()).toMatchObject({
    account: { type_url: "/cosmos.auth.v1beta1.ModuleAccount" },
  });
});

it("anybody else is not", async () => {
  const address = toBech32(NOBODY);
  for (const name of ["AccountInfo", "Account"]) {
    await expect(answerOf(name, { address })()).rejects.toMatchObject({ code: "NOT_FOUND" });
  }
});

/** A page of 200 accounts of which at most 150 are looked at for one answer. */
function page(pagination: ProtoMessage, isWanted = (_address: Address) => true) {
  const accounts = Array.from({ length: 200 }, (_, index) => accountAt(index)).toSorted();
  const sources = {
    chain: {
      view: {
        head: () => ({ height: 1 }),
        async *addresses(from = accounts[0]) {
          yield* accounts.slice(accounts.indexOf(from ?? ZERO_ADDRESS));
        },
      },
    },
  };
  const { signal } = new AbortController();
  const context = { height: 1, signal, client: "", tellHeight: () => undefined };
  const request = pageRequest(new MessageReader({ pagination }));
  const wanted = async (address: Address) => isWanted(address);
  const made = accountPage(sources as unknown as QuerySources, request, context, wanted, 150);
  return { made, accounts };
}

it("more of them than one answer looks at have a first page, and no total that nobody has asked for", async () => {
  const { made, accounts } = page({});
  const keyAt = (index: number) => addressToBytes(accounts[index] ?? ZERO_ADDRESS);
  expect(await made).toEqual({ items: accounts.slice(0, 100), response: { next_key: keyAt(100) } });
  const rest = { items: accounts.slice(100), response: {} };
  expect(await page({ key: keyAt(100) }).made).toEqual(rest);
  expect((await page({ limit: 2n }).made).response).toEqual({ next_key: keyAt(2) });
});

it("where few of them are wanted a page may have fewer, and goes on all the same", async () => {
  const isLast = (address: Address) => address === accounts.at(-1);
  const { made, accounts } = page({ limit: 1n }, (address) => isLast(address));
  const { items, response } = await made;
  expect(items).toEqual([]);
  const rest = page({ limit: 1n, key: response["next_key"] }, isLast);
  expect(await rest.made).toEqual({ items: accounts.slice(-1), response: {} });
});

it("a total that is asked for, or an offset that is out of reach, is refused instead", async () => {
  for (const pagination of [
    { count_total: true },
    { limit: 2n, count_total: true },
    { offset: 151n },
  ]) {
    await expect(page(pagination).made).rejects.toMatchObject({
      code: "RESOURCE_EXHAUSTED",
      message: "more than 150 accounts: go on by pagination.key and leave count_total",
    });
  }
});
