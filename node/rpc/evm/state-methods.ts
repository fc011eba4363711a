/** Balances, nonces, code, storage and proofs at any height. */
import { bigintToWord, bytesToHex, type Hash32, toQuantity } from "../../../chain/hex.js";
import type { ChainView } from "../../chain-view.js";
import type { TransactionPool } from "../../mempool/pool-port.js";
import { type MethodEntries, method } from "./method.js";
import { parseAddressParam, parseBlockRef, parseList, parseSlot } from "./params.js";
import { stateHeight } from "./reads.js";

/** Storage keys in one eth_getProof, as go-ethereum allows. */
const MAX_PROOF_KEYS = 1_024;

/** A storage key with the text that the client wrote: the answer repeats its form. */
interface ProofKey {
  readonly slot: Hash32;
  readonly shown: string;
}

function parseProofKey(value: unknown): ProofKey {
  const slot = parseSlot(value);
  const isWhole = typeof value === "string" && value.length === slot.length;
  return { slot, shown: isWhole ? slot : toQuantity(BigInt(slot)) };
}

/** Reads of state; a block that the node does not have is the error "header not found". */
export function stateMethods(view: ChainView, pool: TransactionPool): MethodEntries {
  return [
    method("eth_getBalance", 2, async (params) => {
      const address = params.required(0, parseAddressParam);
      const height = stateHeight(view, params.optional(1, parseBlockRef));
      const account = await view.account(address, height);
      return toQuantity(account?.balanceAtoken ?? 0n);
    }),
    method("eth_getTransactionCount", 2, async (params) => {
      const address = params.required(0, parseAddressParam);
      const ref = params.optional(1, parseBlockRef);
      if (ref?.kind === "pending") return toQuantity(pool.pendingNonce(address));
      const account = await view.account(address, stateHeight(view, ref));
      return toQuantity(account?.nonce ?? 0n);
    }),
    method("eth_getCode", 2, async (params) => {
      const address = params.required(0, parseAddressParam);
      const height = stateHeight(view, params.optional(1, parseBlockRef));
      return bytesToHex(await view.code(address, height));
    }),
    method("eth_getStorageAt", 3, async (params) => {
      const address = params.required(0, parseAddressParam);
      const slot = params.required(1, parseSlot);
      const height = stateHeight(view, params.optional(2, parseBlockRef));
      return bytesToHex(bigintToWord(await view.storageAt(address, slot, height)));
    }),
    method("eth_getProof", 3, async (params) => {
      const address = params.required(0, parseAddressParam);
      const keys = params.required(1, (value) => parseList(value, MAX_PROOF_KEYS, parseProofKey));
      const height = stateHeight(view, params.optional(2, parseBlockRef));
      const proof = await view.proof(
        address,
        keys.map(({ slot }) => slot),
        height,
      );
      return {
        address,
        accountProof: proof.accountProof,
        balance: toQuantity(proof.account.balanceAtoken),
        codeHash: proof.account.codeHash,
        nonce: toQuantity(proof.account.nonce),
        storageHash: proof.account.storageRoot,
        storageProof: proof.storageProof.map((entry, index) => ({
          key: keys[index]?.shown ?? entry.key,
          value: toQuantity(entry.value),
          proof: entry.proof,
        })),
      };
    }),
  ];
}
