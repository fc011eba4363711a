/** Whether an index that was made with one token registry is also right for another. */
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { parseTokenList, type TokenEntry } from "../../../chain/token-list.js";
import type { Height } from "../../../chain/hex.js";
import type { EvmClient } from "../../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../../rpc-client/json-rpc.js";
import { isPruned, WHOLE_NODE } from "../../../rpc-client/errors.js";
import type { LevelWrite } from "../../../runtime/files/level-store.js";
import type { TokenRegistry } from "../../rosetta/token-registry.js";
import { IndexError } from "../index-store.js";
import { indexKey } from "../key-spaces.js";
import { oldestOf } from "../missing-block.js";

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

/** An index, and the list that it is to be of. */
export interface RegistryChange {
  /** The registry of the index as `registryText`. */
  readonly before: string;
  readonly now: TokenRegistry;
  /** Newest block of the index. */
  readonly tip: Height;
  readonly folder: string;
}

/**
 * Contracts that were added, removed or changed since, and that did anything up to the index' tip:
 * their operations are missing, too many, or called otherwise. Empty: the index can be kept.
 * @throws INDEX_NODE_PRUNED where the node cannot tell, or could not make another index: the one that
 *   is there would be thrown away for none
 */
export async function contractsToIndexAnew(
  client: Pick<EvmClient, "accountHeights" | "oldestHeight">,
  change: RegistryChange,
  rpc: RpcOptions,
): Promise<Address[]> {
  const changed = [...differing(parseTokenList(change.before), change.now.tokens)];
  const found: Address[] = [];
  for (const contract of changed) {
    const range = { from: 0, to: change.tip };
    const { heights } = await client.accountHeights(contract, range, rpc).catch((error) => {
      throw isPruned(error) ? nodeLacks(change, changed, error) : error;
    });
    if (heights.length > 0) found.push(contract);
  }
  // Block 0 is there always; the next one has to be, with the state before it.
  if (found.length > 0 && (await oldestOf(client, rpc)) > 1) throw nodeLacks(change, found);
  return found;
}

function nodeLacks(
  { folder }: RegistryChange,
  contracts: readonly Address[],
  cause?: unknown,
): IndexError {
  const names = contracts.map(toChecksumAddress).join(", ");
  const message =
    `config/tokens.json says something else of ${names} than the list that the index in ${folder} ` +
    "was made with, and the node has deleted blocks or states of which it would be made anew; " +
    `nothing of it was changed: put the former list back, or connect ${WHOLE_NODE}`;
  return new IndexError("INDEX_NODE_PRUNED", message, { details: { contracts }, cause });
}

function differing(before: readonly TokenEntry[], now: readonly TokenEntry[]): Set<Address> {
  const textOf = ({ contractAddress, symbol, decimals }: TokenEntry) =>
    `${contractAddress} ${decimals} ${symbol}`;
  const both = [...before, ...now];
  const [old, recent] = [new Set(before.map(textOf)), new Set(now.map(textOf))];
  const changed = both.filter((entry) => !old.has(textOf(entry)) || !recent.has(textOf(entry)));
  return new Set(changed.map(({ contractAddress }) => contractAddress));
}
