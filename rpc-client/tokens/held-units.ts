/** What accounts hold of tokens after a block, of contracts that may not be there yet, or may not tell. */
import type { Address } from "../../chain/address.js";
import type { StateAt } from "../at.js";
import type { EvmClient } from "../evm-client.js";
import type { RpcOptions } from "../json-rpc.js";

/** What an account holds of a token after a block. */
export interface HeldQuery {
  readonly token: Address;
  readonly account: Address;
  readonly at: StateAt;
}

/**
 * Balances in the order of the queries: 0 of a contract that is not there yet, undefined of one that is there
 * and does not tell.
 * @throws the node's faults
 */
export async function heldUnits(
  node: Pick<EvmClient, "tokenBalances" | "tokenCodes">,
  queries: readonly HeldQuery[],
  options: { readonly signal: AbortSignal },
): Promise<readonly (bigint | undefined)[]> {
  if (queries.length === 0) return [];
  return zeroWithoutCode(node, queries, await node.tokenBalances(queries, options), options);
}

/**
 * These balances, with 0 for those that are undefined because no contract is there, of which nobody has any.
 * @throws the node's faults
 */
export async function zeroWithoutCode(
  node: Pick<EvmClient, "tokenCodes">,
  queries: readonly HeldQuery[],
  balances: readonly (bigint | undefined)[],
  options: Pick<RpcOptions, "signal" | "known">,
): Promise<readonly (bigint | undefined)[]> {
  const untold = queries.filter((_, index) => balances[index] === undefined);
  const places = new Map(
    untold.map((query) => [placeOf(query), { contract: query.token, at: query.at }]),
  );
  if (places.size === 0) return balances;
  const codes = await node.tokenCodes([...places.values()], options);
  const absent = new Set([...places.keys()].filter((_, index) => codes[index] === undefined));
  return queries.map(
    (query, index) => balances[index] ?? (absent.has(placeOf(query)) ? 0n : undefined),
  );
}

function placeOf({ token, at }: HeldQuery): string {
  return `${token} ${at}`;
}
