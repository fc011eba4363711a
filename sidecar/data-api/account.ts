/** /account/balance of any currency at any height, atomic with the block it names. */
import { present } from "../../chain/errors.js";
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import type { Network } from "../../chain/networks.js";
import type { HttpRoute } from "../../runtime/http/http-route.js";
import { type EndpointHandler, toRoute } from "../rosetta/endpoint.js";
import { SidecarError } from "../rosetta/errors.js";
import {
  type Amount,
  currencyAmount,
  parseBlockReference,
  parseCurrency,
  tokenAmount,
} from "../rosetta/identifiers.js";
import type { IndexReader } from "../index/index-reader.js";
import { type Fields, fault, inside, readItems, readMaybe } from "../rosetta/request-fields.js";
import { parseAccountKey } from "../rosetta/sub-accounts.js";
import type { KnownCurrency, Token, TokenRegistry } from "../rosetta/token-registry.js";
import type { BalanceReader } from "./balance-reader.js";
import type { BlockSource } from "./block-source.js";
import { claimBalances, explain, parseClaimCurrencies } from "./claim-balance.js";

/** What the route reads. */
export interface AccountRouteOptions {
  readonly network: Network;
  readonly registry: TokenRegistry;
  readonly source: Pick<BlockSource, "resolve">;
  readonly index: Pick<IndexReader, "holdings">;
  readonly balances: BalanceReader;
}

const NATIVE: KnownCurrency = { kind: "native" };

/** The route. Balances come in the order in which they were asked for. */
export function accountRoutes(options: AccountRouteOptions): HttpRoute[] {
  const { network, registry, source, index, balances } = options;

  /** The native one and every token that operations up to the height name the account in. */
  const allOf = async (account: Address, at: Height): Promise<KnownCurrency[]> => {
    if (registry.tokens.length === 0) return [NATIVE];
    const held = new Set(await index.holdings(account, at));
    const tokens = registry.tokens.filter(({ contractAddress }) => held.has(contractAddress));
    return [NATIVE, ...tokens.map((token): KnownCurrency => ({ kind: "token", token }))];
  };

  const blockOf = (fields: Fields) => {
    const place = { at: "block_identifier" };
    const reference = readMaybe(fields["block_identifier"], place, parseBlockReference);
    return source.resolve(reference ?? { index: undefined, hash: undefined });
  };

  const balance: EndpointHandler = async (fields) => {
    const place = { at: "account_identifier" };
    const { address: account, sub } = parseAccountKey(fields["account_identifier"], place);
    if (sub !== undefined) {
      const wanted = parseClaimCurrencies(fields["currencies"], sub);
      const block = await blockOf(fields);
      const claim = await balances.claim(account, sub, block);
      const answer = { balances: claimBalances(claim, sub, wanted), metadata: explain(claim, sub) };
      return { body: { block_identifier: block, ...answer } };
    }
    const wanted = parseCurrencies(fields["currencies"], registry);
    const block = await blockOf(fields);
    const currencies = wanted.length === 0 ? await allOf(account, block.index) : wanted;
    // All are read after the resolved block: blocks are final, so a newer head changes nothing.
    const [state, ...tokenUnits] = await Promise.all([
      balances.native(account, block),
      ...tokensOf(currencies).map((token) => balances.token(token, account, block)),
    ]);
    const native = tokenAmount(state.balanceAtoken);
    const tokens = tokensOf(currencies).map((token, position) =>
      currencyAmount(present(tokenUnits[position], "balance of a token"), token.currency),
    );
    return {
      body: {
        block_identifier: block,
        balances: inOrder(currencies, native, tokens),
        metadata: { nonce: state.nonce.toString() },
      },
    };
  };
  const fields = ["account_identifier", "block_identifier", "currencies"];
  return [toRoute({ path: "/account/balance", fields, handler: balance }, network)];
}

function tokensOf(currencies: readonly KnownCurrency[]): Token[] {
  return currencies.flatMap((currency) => (currency.kind === "token" ? [currency.token] : []));
}

/** The amounts as the currencies were asked for; `tokens` in the order of the tokens among them. */
function inOrder(
  currencies: readonly KnownCurrency[],
  native: Amount,
  tokens: readonly Amount[],
): Amount[] {
  const left = [...tokens];
  return currencies.flatMap(({ kind }) => (kind === "native" ? [native] : left.splice(0, 1)));
}

/**
 * A currency that went unanswered would look like an empty account, so unknown ones are refused;
 * the same one twice as well. An absent or empty list means all currencies.
 */
function parseCurrencies(value: unknown, registry: TokenRegistry): KnownCurrency[] {
  const place = { at: "currencies" };
  const seen = new Set<string>();
  return (readMaybe(value, place, readItems) ?? []).map((item, position) => {
    const at = inside(place, position);
    const currency = registry.resolve(parseCurrency(item, at));
    if (currency === undefined) throw new SidecarError("UNKNOWN_CURRENCY", { field: at.at });
    const name = currency.kind === "native" ? "" : currency.token.contractAddress;
    if (seen.has(name)) throw fault(at, "each currency once");
    seen.add(name);
    return currency;
  });
}
