/**
 * What the chain mints, owns and takes: `cosmos.mint.v1beta1`, `cosmos.evm.feemarket.v1`, the
 * supply of the token.
 */
import { DECIMAL_ONE } from "../../../../chain/encoding/decimal.js";
import type { Height } from "../../../../chain/hex.js";
import { BLOCKS_PER_YEAR, INFLATION_PERCENT } from "../../../../chain/networks.js";
import { BASE_DENOM, parseMinimumGasPrices } from "../../../../chain/units.js";
import { cosmosOf } from "../../../view/cosmos-items.js";
import type { QueryHandlers } from "../registry.js";
import { type QuerySources, supplyAtoken } from "../sources.js";

const MINT = "/cosmos.mint.v1beta1.Query";
const FEE_MARKET = "/cosmos.evm.feemarket.v1.Query";

/** The queries of these services. */
export function economyQueries(sources: QuerySources): QueryHandlers {
  const { node } = sources;
  const inflation = (height: Height) => (sources.inflationPercent(height + 1) * DECIMAL_ONE) / 100n;
  const price = parseMinimumGasPrices(node.minimumGasPrices);
  const minGasPrice = (price.numerator * DECIMAL_ONE) / price.denominator;
  return {
    [`${MINT}/Params`]: () => ({
      params: {
        mint_denom: BASE_DENOM,
        inflation_rate_change: 0n,
        // Inflation follows the height and nothing else: the SDK's bounds are its two rates.
        inflation_max: (INFLATION_PERCENT.first * DECIMAL_ONE) / 100n,
        inflation_min: (INFLATION_PERCENT.later * DECIMAL_ONE) / 100n,
        goal_bonded: 0n,
        blocks_per_year: BLOCKS_PER_YEAR,
      },
    }),
    [`${MINT}/Inflation`]: (_request, { height }) => ({ inflation: inflation(height) }),
    [`${MINT}/AnnualProvisions`]: (_request, { height }) => ({
      annual_provisions: supplyAtoken(sources, height) * inflation(height),
    }),
    [`${FEE_MARKET}/Params`]: () => ({
      params: {
        no_base_fee: true,
        base_fee_change_denominator: 8,
        elasticity_multiplier: 2,
        base_fee: 0n,
        min_gas_price: minGasPrice,
        min_gas_multiplier: 0n,
      },
    }),
    [`${FEE_MARKET}/BaseFee`]: () => ({ base_fee: 0n }),
    [`${FEE_MARKET}/BlockGas`]: async (_request, { height, signal }) => ({
      gas: await blockGas(sources, height, signal),
    }),
    "/causeway.supply.v1.Query/Supply": (_request, { height }) => supply(sources, height),
  };
}

/** Gas of both kinds of transactions; the header tells of the EVM's alone. */
async function blockGas(
  { chain: { view } }: QuerySources,
  height: Height,
  signal: AbortSignal,
): Promise<bigint> {
  let gas = view.outline(height)?.header.gasUsed ?? 0n;
  for await (const { result } of cosmosOf(view, height, signal)) gas += result.gasUsed;
  return gas;
}

/** Total, burned, locked and circulating (D14). */
async function supply(sources: QuerySources, height: Height) {
  const total = supplyAtoken(sources, height);
  const burned = (await sources.chain.view.account(sources.burnAddress, height))?.balanceAtoken;
  const locked = sources.vesting.lockedSupplyAtoken(height);
  return {
    height: BigInt(height),
    total: total.toString(),
    burned: (burned ?? 0n).toString(),
    locked: locked.toString(),
    circulating: (total - (burned ?? 0n) - locked).toString(),
  };
}
