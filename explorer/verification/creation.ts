/**
 * The transaction that created a contract, and the arguments that it gave: found by the block in
 * which the code appeared, and proven by the compiled creation code, which it must begin with.
 */
import type { Address } from "../../chain/address.js";
import { parseHex } from "../../chain/hex.js";
import { RpcError } from "../../rpc-client/errors.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import type { ChainSource } from "../sources/chain-source.js";
import { type CodeMatch, type CodeSettings, readTail } from "./code-match.js";
import type { CompiledContract } from "./compilers.js";
import type { ProvenCreation } from "./verified-store.js";

/** Transactions of the block that are looked at; what is in larger ones stays unknown. */
const MAX_TRANSACTIONS = 2_000;

/** Transactions that are asked for at once. */
const TRANSACTIONS_PER_BATCH = 200;

/** What is known of the contract. */
export interface CreatedContract {
  readonly address: Address;
  readonly headHeight: number;
  readonly found: Pick<CompiledContract, "creationCode" | "runtimeCode">;
  readonly match: Pick<CodeMatch, "kind">;
  readonly settings: CodeSettings;
}

/** Finds it; undefined for contracts that others created, and where the node has no state so old. */
export async function findCreation(
  chain: ChainSource,
  contract: CreatedContract,
  options: RpcOptions,
): Promise<ProvenCreation | undefined> {
  try {
    const height = await birthOf(chain, contract, options);
    return height === undefined ? undefined : await inBlock(chain, contract, height, options);
  } catch (error) {
    // Pruned states: nothing is proven, and nothing is claimed.
    if (error instanceof RpcError) return undefined;
    throw error;
  }
}

/** The first block after which there is code, by halves. */
async function birthOf(
  chain: ChainSource,
  { address, headHeight }: CreatedContract,
  options: RpcOptions,
): Promise<number | undefined> {
  let [without, withCode] = [-1, headHeight];
  while (withCode - without > 1) {
    const middle = Math.floor((without + withCode) / 2);
    const code = await chain.evm.getCode(address, middle, options);
    if (code === "0x") without = middle;
    else withCode = middle;
  }
  return withCode === 0 ? undefined : withCode;
}

async function inBlock(
  chain: ChainSource,
  contract: CreatedContract,
  height: number,
  options: RpcOptions,
): Promise<ProvenCreation | undefined> {
  const [block] = await chain.blocks([height], options);
  const count = Math.min(block?.transactionCount ?? 0, MAX_TRANSACTIONS);
  for (let first = 0; first < count; first += TRANSACTIONS_PER_BATCH) {
    const places = Array.from(
      { length: Math.min(TRANSACTIONS_PER_BATCH, count - first) },
      (_, index) => ({
        height,
        index: first + index,
      }),
    );
    const creating = (await chain.transactionsAt(places, options)).filter(
      ({ to }) => to === undefined,
    );
    const receipts = await chain.receipts(
      creating.map(({ hash }) => hash),
      options,
    );
    const at = receipts.findIndex((receipt) => receipt?.contractAddress === contract.address);
    const transaction = creating[at];
    if (transaction === undefined) continue;
    const given = argumentsOf(transaction.input.slice(2), contract);
    if (given === undefined) return undefined;
    return { transactionHash: transaction.hash, constructorArguments: parseHex(`0x${given}`) };
  }
  return undefined;
}

/** What follows the creation code; the metadata in it may differ where the match is partial. */
function argumentsOf(
  input: string,
  { found, match, settings }: CreatedContract,
): string | undefined {
  const code = found.creationCode.toLowerCase();
  if (code === "" || code.includes("_") || input.length < code.length) return undefined;
  const given = input.slice(0, code.length);
  if (given === code) return input.slice(code.length);
  const tail = settings.hasTail ? readTail(found.runtimeCode) : undefined;
  if (match.kind === "exact" || tail === undefined) return undefined;
  const digits = found.runtimeCode.slice(-2 * tail.lengthBytes).toLowerCase();
  const at = code.lastIndexOf(digits);
  const end = at + digits.length;
  const isSame =
    at >= 0 && given.slice(0, at) === code.slice(0, at) && given.slice(end) === code.slice(end);
  return isSame ? input.slice(code.length) : undefined;
}
