/** `cosmos.bank.v1beta1.Query`: the native token is the one denomination. */
import type { Height } from "../../../../chain/hex.js";
import type { MessageReader, ProtoMessage } from "../../../../chain/protobuf/values.js";
import { BASE_DENOM, TOKEN_DECIMALS, TOKEN_SYMBOL } from "../../../../chain/units.js";
import { invalidArgument, notFound } from "../errors.js";
import { pageOf, pageRequest } from "../paging.js";
import type { QueryHandlers } from "../registry.js";
import { accountOf, type QuerySources, supplyAtoken } from "../sources.js";

const SERVICE = "/cosmos.bank.v1beta1.Query";

/** The SDK's form of a denomination. */
const DENOM = /^[a-zA-Z][a-zA-Z0-9/:._-]{2,127}$/;

/** What wallets show of the token. */
const METADATA: ProtoMessage = {
  description: "The native token",
  denom_units: [
    { denom: BASE_DENOM, exponent: 0 },
    { denom: TOKEN_SYMBOL.toLowerCase(), exponent: TOKEN_DECIMALS },
  ],
  base: BASE_DENOM,
  display: TOKEN_SYMBOL.toLowerCase(),
  name: TOKEN_SYMBOL,
  symbol: TOKEN_SYMBOL,
};

/** The queries of this service. */
export function bankQueries(sources: QuerySources): QueryHandlers {
  const balance = async (request: MessageReader, height: Height) => {
    const address = accountOf(request.text("address"));
    const denom = denomOf(request);
    if (denom !== BASE_DENOM) return { balance: { denom, amount: 0n } };
    const state = await sources.chain.view.account(address, height);
    return { balance: { denom, amount: state?.balanceAtoken ?? 0n } };
  };
  const balances = async (request: MessageReader, height: Height) => {
    const address = accountOf(request.text("address"));
    const amount = (await sources.chain.view.account(address, height))?.balanceAtoken ?? 0n;
    const { items, response } = coinPage(request, amount);
    return { balances: items, pagination: response };
  };
  const metadata = (request: MessageReader) => {
    const denom = denomOf(request);
    if (denom !== BASE_DENOM) throw notFound(`client metadata for denom ${denom}`);
    return { metadata: METADATA };
  };
  return {
    [`${SERVICE}/Balance`]: (request, { height }) => balance(request, height),
    // What genesis locks is shown by the supply; a locked account spends what the ante allows.
    [`${SERVICE}/SpendableBalanceByDenom`]: (request, { height }) => balance(request, height),
    [`${SERVICE}/AllBalances`]: (request, { height }) => balances(request, height),
    [`${SERVICE}/SpendableBalances`]: (request, { height }) => balances(request, height),
    [`${SERVICE}/TotalSupply`]: (request, { height }) => {
      const { items, response } = coinPage(request, supplyAtoken(sources, height));
      return { supply: items, pagination: response };
    },
    [`${SERVICE}/SupplyOf`]: (request, { height }) => {
      const denom = denomOf(request);
      const amount = denom === BASE_DENOM ? supplyAtoken(sources, height) : 0n;
      return { amount: { denom, amount } };
    },
    [`${SERVICE}/Params`]: () => ({ params: { default_send_enabled: true } }),
    [`${SERVICE}/DenomMetadata`]: metadata,
    [`${SERVICE}/DenomMetadataByQueryString`]: metadata,
    [`${SERVICE}/DenomsMetadata`]: (request) => {
      const key = () => Buffer.from(BASE_DENOM);
      const { items, response } = pageOf([METADATA], pageRequest(request), key);
      return { metadatas: items, pagination: response };
    },
    // No denomination differs from the default.
    [`${SERVICE}/SendEnabled`]: (request) => ({
      pagination: pageOf([], pageRequest(request), () => Buffer.alloc(0)).response,
    }),
  };
}

function denomOf(request: MessageReader): string {
  const denom = request.text("denom");
  if (!DENOM.test(denom)) throw invalidArgument("invalid denom");
  return denom;
}

/** A list of at most one coin. */
function coinPage(request: MessageReader, amount: bigint) {
  const coins = amount > 0n ? [{ denom: BASE_DENOM, amount }] : [];
  return pageOf(coins, pageRequest(request), ({ denom }) => Buffer.from(denom));
}
