/** What a block used of gas is told of transactions of both kinds, as the SDK's block gas meter counts it. */
import { expect, it } from "@jest/globals";
import { MessageReader } from "../../../../chain/protobuf/values.js";
import { economyQueries } from "../../../../node/rpc/cosmos/modules/economy.js";
import type { QuerySources } from "../../../../node/rpc/cosmos/sources.js";

/** `BlockGas` of a block with 42,000 gas of the EVM, and of Cosmos transactions with these. */
async function blockGas(...cosmos: readonly bigint[]): Promise<unknown> {
  const outline = { header: { gasUsed: 42_000n }, cosmosPlaces: cosmos.map((_, index) => index) };
  const view = {
    outline: () => outline,
    cosmosTransaction: (_height: number, item: number) => ({ result: { gasUsed: cosmos[item] } }),
  };
  const sources = { chain: { view }, node: { minimumGasPrices: "0.025atoken" } };
  const query = economyQueries(sources as unknown as QuerySources);
  const { signal } = new AbortController();
  const context = { height: 7, signal, client: "", tellHeight: () => undefined };
  return query["/cosmos.evm.feemarket.v1.Query/BlockGas"]?.(new MessageReader({}), context);
}

it("counts the gas of Cosmos transactions beside that of the EVM's", async () => {
  expect(await blockGas()).toEqual({ gas: 42_000n });
  expect(await blockGas(65_000n, 1n)).toEqual({ gas: 107_001n });
});
