/**
 * Module queries as SDK nodes serve them over `abci_query`: protobuf in, protobuf out, by the
 * path of the gRPC method. CosmJS reads balances, supply and accounts this way and no other.
 */
import { type Address, parseBech32, toBech32 } from "../../../../chain/address.js";
import { ProtoReader, ProtoWriter } from "../../../../chain/consensus/protobuf.js";
import { AppError, errorMessage } from "../../../../chain/errors.js";
import type { Height } from "../../../../chain/hex.js";
import { BASE_DENOM, TOKEN_DECIMALS, TOKEN_SYMBOL } from "../../../../chain/units.js";
import type { ChainView } from "../../../view/chain-view.js";

/** What a query is answered with. */
export interface QueryAnswer {
  /** 0, or one of the SDK's root codes. */
  readonly code: number;
  readonly log: string;
  readonly codespace: string;
  readonly value: Uint8Array;
}

/** Codes of the SDK's root codespace. */
const UNKNOWN_REQUEST = 6;
/** A query that cannot be answered as it was asked. */
export const INVALID_REQUEST = 18;
const KEY_NOT_FOUND = 22;
const NOT_FOUND = 38;

/** Codes of faults in a query. */
type QueryFaultCode = "NOT_FOUND" | "INVALID_ARGUMENT";

class QueryFault extends AppError<QueryFaultCode> {}

type Method = (view: ChainView, data: Uint8Array, height: Height) => Promise<Buffer> | Buffer;

/** SDK methods that are served; further ones come with the gRPC services. */
const METHODS: ReadonlyMap<string, Method> = new Map<string, Method>([
  ["/cosmos.bank.v1beta1.Query/Balance", balance],
  ["/cosmos.bank.v1beta1.Query/SpendableBalanceByDenom", balance],
  ["/cosmos.bank.v1beta1.Query/AllBalances", allBalances],
  ["/cosmos.bank.v1beta1.Query/SpendableBalances", allBalances],
  ["/cosmos.bank.v1beta1.Query/SupplyOf", supplyOf],
  ["/cosmos.bank.v1beta1.Query/TotalSupply", totalSupply],
  ["/cosmos.bank.v1beta1.Query/DenomMetadata", denomMetadata],
  ["/cosmos.auth.v1beta1.Query/Account", account],
]);

/** Answers a query as of a height; what is wrong with it is a code, never an exception. */
export async function queryModule(
  view: ChainView,
  query: { readonly path: string; readonly data: Uint8Array; readonly height: Height },
): Promise<QueryAnswer> {
  const method = METHODS.get(query.path);
  if (method === undefined) {
    return queryFailure(UNKNOWN_REQUEST, `unknown query path: ${query.path}: unknown request`);
  }
  try {
    const value = await method(view, query.data, query.height);
    return { code: 0, log: "", codespace: "", value };
  } catch (error) {
    const code = error instanceof AppError ? error.code : "";
    if (code === "HISTORY_PRUNED") {
      const { height } = query;
      const text = `failed to load state at height ${height}; version does not exist`;
      const latest = view.head().height;
      return queryFailure(NOT_FOUND, `${text} (latest height: ${latest}): not found`);
    }
    if (code === "NOT_FOUND") {
      const text = `rpc error: code = NotFound desc = ${errorMessage(error)}`;
      return queryFailure(KEY_NOT_FOUND, `${text}: key not found`);
    }
    if (!["INVALID_ARGUMENT", "INVALID_MESSAGE", "INVALID_ADDRESS"].includes(code)) throw error;
    const text = `rpc error: code = InvalidArgument desc = ${errorMessage(error)}`;
    return queryFailure(INVALID_REQUEST, `${text}: invalid request`);
  }
}

/** An answer that refuses, with a code of the SDK's root codespace. */
export function queryFailure(code: number, log: string): QueryAnswer {
  return { code, log, codespace: "sdk", value: new Uint8Array(0) };
}

function coin(amountAtoken: bigint): Buffer {
  return new ProtoWriter().bytes(1, BASE_DENOM).bytes(2, amountAtoken.toString()).finish();
}

function denomOf(reader: ProtoReader, field: number): string {
  const denom = reader.text(field);
  if (denom === "") throw new QueryFault("INVALID_ARGUMENT", "invalid denom");
  return denom;
}

async function balanceAtoken(view: ChainView, address: Address, height: Height): Promise<bigint> {
  return (await view.account(address, height))?.balanceAtoken ?? 0n;
}

/** `QueryBalanceRequest{address, denom}` -> `{balance}`; zero of a denomination nobody has. */
async function balance(view: ChainView, data: Uint8Array, height: Height): Promise<Buffer> {
  const reader = new ProtoReader(data, [1, 2]);
  const address = parseBech32(reader.text(1));
  const denom = denomOf(reader, 2);
  const amount = denom === BASE_DENOM ? await balanceAtoken(view, address, height) : 0n;
  const content = new ProtoWriter().bytes(1, denom).bytes(2, amount.toString()).finish();
  return new ProtoWriter().message(1, content).finish();
}

/** A list of at most one coin, with the page that says it is the last. */
function coinPage(amountAtoken: bigint): Buffer {
  const writer = new ProtoWriter();
  if (amountAtoken > 0n) writer.message(1, coin(amountAtoken));
  const page = new ProtoWriter().integer(2, amountAtoken > 0n ? 1 : 0).finish();
  return writer.message(2, page).finish();
}

async function allBalances(view: ChainView, data: Uint8Array, height: Height): Promise<Buffer> {
  const address = parseBech32(new ProtoReader(data, [1, 2, 3]).text(1));
  return coinPage(await balanceAtoken(view, address, height));
}

function supplyAtoken(view: ChainView, height: Height): bigint {
  const supply = view.supply(height);
  if (supply === undefined) throw new RangeError(`the supply after block ${height} is missing`);
  return supply.totalAtoken;
}

function supplyOf(view: ChainView, data: Uint8Array, height: Height): Buffer {
  const denom = denomOf(new ProtoReader(data, [1]), 1);
  const amount = denom === BASE_DENOM ? supplyAtoken(view, height) : 0n;
  const content = new ProtoWriter().bytes(1, denom).bytes(2, amount.toString()).finish();
  return new ProtoWriter().message(1, content).finish();
}

/** The page that the request asks for does not matter: there is one denomination. */
function totalSupply(view: ChainView, _data: Uint8Array, height: Height): Buffer {
  return coinPage(supplyAtoken(view, height));
}

function denomMetadata(_view: ChainView, data: Uint8Array): Buffer {
  const denom = denomOf(new ProtoReader(data, [1]), 1);
  if (denom !== BASE_DENOM) {
    throw new QueryFault("NOT_FOUND", `client metadata for denom ${denom}`);
  }
  const display = TOKEN_SYMBOL.toLowerCase();
  const unit = (name: string, exponent: number) =>
    new ProtoWriter().bytes(1, name).integer(2, exponent).finish();
  const metadata = new ProtoWriter()
    .bytes(1, "The native token")
    .message(2, unit(BASE_DENOM, 0))
    .message(2, unit(display, TOKEN_DECIMALS))
    .bytes(3, BASE_DENOM)
    .bytes(4, display)
    .bytes(5, TOKEN_SYMBOL)
    .bytes(6, TOKEN_SYMBOL)
    .finish();
  return new ProtoWriter().message(1, metadata).finish();
}

/** `BaseAccount` in an Any; the chain numbers no accounts, and keys are known by address only. */
async function account(view: ChainView, data: Uint8Array, height: Height): Promise<Buffer> {
  const address = parseBech32(new ProtoReader(data, [1]).text(1));
  const state = await view.account(address, height);
  const text = toBech32(address);
  if (state === undefined) throw new QueryFault("NOT_FOUND", `account ${text} not found`);
  const base = new ProtoWriter().bytes(1, text).integer(4, state.nonce).finish();
  const any = new ProtoWriter()
    .bytes(1, "/cosmos.auth.v1beta1.BaseAccount")
    .message(2, base)
    .finish();
  return new ProtoWriter().message(1, any).finish();
}
