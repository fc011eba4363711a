/** `cosmos.bank.v1beta1.Query`: the native token is the one denomination. */
import { type Address, toBech32 } from "../../../../chain/address.js";
import type { Height } from "../../../../chain/hex.js";
import type { MessageReader, ProtoMessage } from "../../../../chain/protobuf/values.js";
import { type Atoken, BASE_DENOM, TOKEN_DECIMALS, TOKEN_SYMBOL } from "../../../../chain/units.js";
import { accountPage } from "../account-list.js";
import { invalidArgument, notFound } from "../errors.js";
import { pageOf, pageRequest } from "../paging.js";
import type { QueryContext, QueryHandlers } from "../registry.js";
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

/** What an account without locked coins has locked. */
const NO_LOCK = { lockedAtoken: 0n };

/** The queries of this service. */
export function bankQueries(sources: QuerySources): QueryHandlers {
  return {
    ...balanceQueries(sources),
    ...supplyQueries(sources),
    ...ownerQueries(sources),
    ...denomQueries(),
    [`${SERVICE}/Params`]: () => ({ params: { default_send_enabled: true } }),
    // No denomination differs from the default.
    [`${SERVICE}/SendEnabled`]: (request) => ({
      pagination: pageOf([], pageRequest(request), () => Buffer.alloc(0)).response,
    }),
  };
}

function balanceQueries(sources: QuerySources): QueryHandlers {
  const amountOf = async (
    request: MessageReader,
    { height, signal }: QueryContext,
    kind: "all" | "spendable",
  ) => {
    const address = accountOf(request.text("address"));
    const held = await heldBy(sources, address, height);
    if (kind === "all") return held;
    const { lockedAtoken } = (await sources.vesting.account(address, height, signal)) ?? NO_LOCK;
    return held > lockedAtoken ? held - lockedAtoken : 0n;
  };
  const balance = async (...asked: Parameters<typeof amountOf>) => {
    const denom = denomOf(asked[0]);
    const amount = await amountOf(...asked);
    return { balance: { denom, amount: denom === BASE_DENOM ? amount : 0n } };
  };
  const balances = async (...asked: Parameters<typeof amountOf>) => {
    const { items, response } = coinPage(asked[0], await amountOf(...asked));
    return { balances: items, pagination: response };
  };
  return {
    [`${SERVICE}/Balance`]: (request, context) => balance(request, context, "all"),
    [`${SERVICE}/SpendableBalanceByDenom`]: (request, context) =>
      balance(request, context, "spendable"),
    [`${SERVICE}/AllBalances`]: (request, context) => balances(request, context, "all"),
    [`${SERVICE}/SpendableBalances`]: (request, context) => balances(request, context, "spendable"),
  };
}

function supplyQueries(sources: QuerySources): QueryHandlers {
  return {
    [`${SERVICE}/TotalSupply`]: (request, { height }) => {
      const { items, response } = coinPage(request, supplyAtoken(sources, height));
      return { supply: items, pagination: response };
    },
    [`${SERVICE}/SupplyOf`]: (request, { height }) => {
      const denom = denomOf(request);
      const amount = denom === BASE_DENOM ? supplyAtoken(sources, height) : 0n;
      return { amount: { denom, amount } };
    },
  };
}

function ownerQueries(sources: QuerySources): QueryHandlers {
  const owners = async (request: MessageReader, context: QueryContext) => {
    const denom = denomOf(request);
    const page = pageRequest(request);
    const held = (address: Address) => heldBy(sources, address, context.height);
    const isOwner = async (address: Address) => denom === BASE_DENOM && (await held(address)) > 0n;
    const { items, response } = await accountPage(sources, page, context, isOwner);
    const denom_owners = await Promise.all(
      items.map(async (address) => {
        return { address: toBech32(address), balance: { denom, amount: await held(address) } };
      }),
    );
    return { denom_owners, pagination: response };
  };
  return { [`${SERVICE}/DenomOwners`]: owners, [`${SERVICE}/DenomOwnersByQuery`]: owners };
}

function denomQueries(): QueryHandlers {
  const metadata = (request: MessageReader) => {
    const denom = denomOf(request);
    if (denom !== BASE_DENOM) throw notFound(`client metadata for denom ${denom}`);
    return { metadata: METADATA };
  };
  return {
    [`${SERVICE}/DenomMetadata`]: metadata,
    [`${SERVICE}/DenomMetadataByQueryString`]: metadata,
    [`${SERVICE}/DenomsMetadata`]: (request) => {
      const key = () => Buffer.from(BASE_DENOM);
      const { items, response } = pageOf([METADATA], pageRequest(request), key);
      return { metadatas: items, pagination: response };
    },
  };
}

async function heldBy({ chain }: QuerySources, address: Address, height: Height): Promise<Atoken> {
  return (await chain.view.account(address, height))?.balanceAtoken ?? 0n;
}

function denomOf(request: MessageReader): string {
  const denom = request.text("denom");
  if (!DENOM.test(denom)) throw invalidArgument("invalid denom");
  return denom;
}

/** A list of at most one coin. */
function coinPage(request: MessageReader, amountAtoken: Atoken) {
  const coins = amountAtoken > 0n ? [{ denom: BASE_DENOM, amount: amountAtoken }] : [];
  return pageOf(coins, pageRequest(request), ({ denom }) => Buffer.from(denom));
}
