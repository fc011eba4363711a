/** /account/balance at any height, atomic with the block it names. */
import type { Network } from "../../chain/networks.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { HttpRoute } from "../../runtime/http-server.js";
import { type EndpointHandler, toRoute } from "../endpoint.js";
import { SidecarError } from "../errors.js";
import { isTokenCurrency, parseAccount, parseBlockReference, tokenAmount } from "../identifiers.js";
import { fault, inside, readItems, readMaybe } from "../request-fields.js";
import type { BlockSource } from "./block-source.js";

/** The route over a node and a source of block identifiers. */
export function accountRoutes(options: {
  readonly network: Network;
  readonly client: EvmClient;
  readonly source: BlockSource;
}): HttpRoute[] {
  const { network, client, source } = options;
  const balance: EndpointHandler = async (fields, { signal }) => {
    const address = parseAccount(fields["account_identifier"], { at: "account_identifier" });
    checkCurrencies(fields["currencies"]);
    const place = { at: "block_identifier" };
    const reference = readMaybe(fields["block_identifier"], place, parseBlockReference);
    const block = await source.resolve(reference ?? { index: undefined, hash: undefined });
    // Both are read at the resolved height: blocks are final, so a newer head changes nothing.
    const [amountAtoken, nonce] = await Promise.all([
      client.getBalance(address, block.index, { signal }),
      client.getTransactionCount(address, block.index, { signal }),
    ]);
    return {
      body: {
        block_identifier: block,
        balances: [tokenAmount(amountAtoken)],
        metadata: { nonce: nonce.toString() },
      },
    };
  };
  const fields = ["account_identifier", "block_identifier", "currencies"];
  return [toRoute({ path: "/account/balance", fields, handler: balance }, network)];
}

/**
 * A currency that went unanswered would look like an empty account, so unknown ones are refused;
 * the same one twice as well. An absent or empty list means all currencies.
 */
function checkCurrencies(value: unknown): void {
  const place = { at: "currencies" };
  const items = readMaybe(value, place, readItems) ?? [];
  items.forEach((item, index) => {
    if (!isTokenCurrency(item, inside(place, index))) {
      throw new SidecarError("UNKNOWN_CURRENCY", { field: inside(place, index).at });
    }
    if (index > 0) throw fault(inside(place, index), "each currency once");
  });
}
