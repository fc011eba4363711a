/** What contracts run: their code's hash, and the implementation that a proxy of EIP-1967 names. */
import type { Address } from "../../chain/address.js";
import { keccak256Hex } from "../../chain/hashes.js";
import { type Hash32, hexToBytes } from "../../chain/hex.js";
import { readHash, readHex } from "../answer-fields.js";
import { type At, encodeAt } from "../at.js";
import { type JsonRpcClient, resultOf, type RpcOptions } from "../json-rpc.js";

/** keccak256("eip1967.proxy.implementation") - 1. */
const IMPLEMENTATION_SLOT = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc";

/** Contracts asked about in one exchange: 24 KiB of code each, as hex. */
const CONTRACTS_AT_ONCE = 50;

/** What a contract runs after a block. */
export interface NodeTokenCode {
  readonly codeHash: Hash32;
  /** The word in the implementation's slot; zeros where it is no such proxy. */
  readonly implementation: Hash32;
}

/** Reads of code. */
export interface TokenCodeCalls {
  /** In the order of the queries; undefined where no code is. */
  tokenCodes(
    queries: readonly { readonly contract: Address; readonly at: At }[],
    options: RpcOptions,
  ): Promise<(NodeTokenCode | undefined)[]>;
}

/** The calls over a JSON-RPC client. */
export function tokenCodeCalls(rpc: JsonRpcClient): TokenCodeCalls {
  return {
    async tokenCodes(queries, options) {
      const found: (NodeTokenCode | undefined)[] = [];
      for (let start = 0; start < queries.length; start += CONTRACTS_AT_ONCE) {
        const part = queries.slice(start, start + CONTRACTS_AT_ONCE);
        const outcomes = await rpc.batch(
          part.flatMap(({ contract, at }) => [
            { method: "eth_getCode", params: [contract, encodeAt(at)] },
            {
              method: "eth_getStorageAt",
              params: [contract, IMPLEMENTATION_SLOT, encodeAt(at)],
            },
          ]),
          options,
        );
        part.forEach((_, index) => {
          const code = readHex(resultOf(outcomes[2 * index]), "code");
          const implementation = readHash(resultOf(outcomes[2 * index + 1]), "storage");
          const codeHash = keccak256Hex(hexToBytes(code));
          found.push(code === "0x" ? undefined : { codeHash, implementation });
        });
      }
      return found;
    },
  };
}
