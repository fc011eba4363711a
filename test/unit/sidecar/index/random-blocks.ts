/** Random blocks as the Data API serves them, and a search over them that reads every operation. */
import { type Address, toChecksumAddress } from "../../../../chain/address.js";
import type { RosettaBlock, RosettaOperation } from "../../../../sidecar/rosetta/operations.js";
import { type Currency, TOKEN_CURRENCY } from "../../../../sidecar/rosetta/identifiers.js";
import { TokenRegistry } from "../../../../sidecar/rosetta/token-registry.js";
import type { Random } from "../../../helpers/random.js";
import { hashOf } from "../../../helpers/chains/journal-chain.js";

export const addressOf = (index: number) =>
  `0x${(0xa11ce000 + index).toString(16).padStart(40, "0")}` as Address;

/** Two tokens with the same symbol and decimals: only the contract tells them apart. */
export const TOKENS = new TokenRegistry(
  [7_001, 7_002].map((index) => ({
    contractAddress: addressOf(index),
    symbol: "USDX",
    decimals: 6,
  })),
);

export const TYPES = ["CALL", "FEE", "FEE_BURN", "MINT", "ERC20_TRANSFER"] as const;

export interface ChainShape {
  readonly heights: number;
  readonly maxTransactions: number;
  readonly accounts: number;
}

/** A chain in which some properties are in every transaction, some in a few, some in none. */
export function randomChain(random: Random, shape: ChainShape): RosettaBlock[] {
  return Array.from({ length: shape.heights }, (_unused, index) => {
    // Busy stretches and quiet ones, so that posting lists have gaps of every size.
    const busy = random.integer(4) === 0 ? shape.maxTransactions : 3;
    const hash = hashOf(`random block ${index}`);
    return {
      block_identifier: { index, hash },
      parent_block_identifier: {
        index: Math.max(0, index - 1),
        hash: hashOf(`random block ${Math.max(0, index - 1)}`),
      },
      timestamp: 1_790_000_000_000 + index,
      metadata: {
        minted: "0",
        burned: "0",
        consensus_block_hash: undefined,
        operations_sum: "0",
        accounts_changed: 0,
        quarantined: undefined,
      },
      transactions: Array.from({ length: 1 + random.integer(busy) }, (_none, position) => ({
        transaction_identifier: {
          hash: position === 0 ? hash : hashOf(`random transaction ${index} ${position}`),
        },
        operations: randomOperations(random, shape, index),
      })).toReversed(),
    };
  });
}

function randomOperations(random: Random, shape: ChainShape, height: number): RosettaOperation[] {
  const operations: RosettaOperation[] = [];
  const add = (type: string, account: number, more: Partial<RosettaOperation> = {}) =>
    operations.push({
      operation_identifier: { index: operations.length },
      related_operations: undefined,
      type,
      status: "SUCCESS",
      account: { address: toChecksumAddress(addressOf(account)) },
      amount: { value: "1", currency: TOKEN_CURRENCY },
      metadata: undefined,
      ...more,
    });
  // A few accounts do most of the work; account 0 is in nearly every transaction.
  const someone = () => random.integer(1 + random.integer(shape.accounts));
  if (random.integer(20) > 0) add("FEE", 0);
  for (let left = random.integer(3); left > 0; left -= 1) {
    const status = random.integer(5) === 0 ? "FAILURE" : "SUCCESS";
    add("CALL", someone(), { status });
    add("CALL", someone(), { status });
  }
  if (random.integer(10) === 0) {
    const currency: Currency = random.pick(TOKENS.tokens).currency;
    add("ERC20_TRANSFER", someone(), { amount: { value: "-5", currency } });
  }
  // In one stretch of the chain only.
  if (height % 97 < 5) add("MINT", 1);
  return operations;
}

export interface Found {
  readonly height: number;
  readonly position: number;
}

/** Newest first, every transaction for which the test holds. */
export function bruteForce(
  blocks: readonly RosettaBlock[],
  maxHeight: number,
  holds: (transaction: RosettaBlock["transactions"][number]) => boolean,
): Found[] {
  const found: Found[] = [];
  for (const { block_identifier, transactions } of blocks.slice(0, maxHeight + 1).toReversed()) {
    for (let position = transactions.length - 1; position >= 0; position -= 1) {
      const transaction = transactions[position];
      if (transaction === undefined || !holds(transaction)) continue;
      found.push({ height: block_identifier.index, position });
    }
  }
  return found;
}
