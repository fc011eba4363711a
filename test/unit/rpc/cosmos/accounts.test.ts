/** Accounts of the chain itself are there by name, also before they have held anything. */
import { expect, it } from "@jest/globals";
import { toBech32 } from "../../../../chain/address.js";
import { MessageReader } from "../../../../chain/protobuf/values.js";
import { authQueries } from "../../../../node/rpc/cosmos/modules/auth.js";
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
    query?.(new MessageReader(request), { height: 1, signal, tellHeight: () => undefined });
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
