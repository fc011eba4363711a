/** Whether an index that was made with one token registry is also right for another. */
import type { Address } from "../../chain/address.js";
import { parseTokenList, type TokenEntry } from "../../chain/token-list.js";
import type { Height } from "../../chain/hex.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import type { LevelWrite } from "../../runtime/files/level-store.js";
import type { TokenRegistry } from "../rosetta/token-registry.js";
import { indexKey } from "./key-spaces.js";

/** The registry as the index remembers it: the same text for the same tokens in any order. */
export function registryText({ tokens }: TokenRegistry): string {
  const entries = tokens
    .map(({ contractAddress, symbol, decimals }) => ({ contractAddress, symbol, decimals }))
    .toSorted((left, right) => (left.contractAddress < right.contractAddress ? -1 : 1));
  return JSON.stringify(entries);
}

/** The write that makes the index one of this registry. */
export function registryWrite(registry: TokenRegistry): LevelWrite {
  const key = indexKey("meta", Buffer.from("registry"));
  return { key, value: Buffer.from(registryText(registry)) };
}

/**
 * Contracts that were added, removed or changed since, and that did anything up to the index' tip:
 * their operations are missing, too many, or called otherwise. Empty: the index can be kept.
 */
export async function contractsToIndexAnew(
  client: Pick<EvmClient, "accountHeights">,
  change: { readonly before: string; readonly now: TokenRegistry; readonly tip: Height },
  rpc: RpcOptions,
): Promise<Address[]> {
  const found: Address[] = [];
  for (const contract of differing(parseTokenList(change.before), change.now.tokens)) {
    const range = { from: 0, to: change.tip };
    const { heights } = await client.accountHeights(contract, range, rpc);
    if (heights.length > 0) found.push(contract);
  }
  return found;
}

function differing(before: readonly TokenEntry[], now: readonly TokenEntry[]): Set<Address> {
  const textOf = ({ contractAddress, symbol, decimals }: TokenEntry) =>
    `${contractAddress} ${decimals} ${symbol}`;
  const both = [...before, ...now];
  const [old, recent] = [new Set(before.map(textOf)), new Set(now.map(textOf))];
  const changed = both.filter((entry) => !old.has(textOf(entry)) || !recent.has(textOf(entry)));
  return new Set(changed.map(({ contractAddress }) => contractAddress));
}
