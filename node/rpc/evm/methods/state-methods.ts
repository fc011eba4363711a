/** Balances, nonces, code, storage and proofs at any height. */
import type { Address } from "../../../../chain/address.js";
import {
  bigintToWord,
  bytesToHex,
  type Hash32,
  type Hex,
  toQuantity,
} from "../../../../chain/hex.js";
import { breathe } from "../../../../runtime/process/main-thread.js";
import type { ChainView } from "../../../view/chain-view.js";
import type { TransactionPool } from "../../../mempool/pool-port.js";
import { invalidParams, RpcFault } from "../errors.js";
import { LARGE_BYTES } from "../large-lane.js";
import { type MethodEntries, method } from "../method.js";
import {
  ParamError,
  parseAddressParam,
  parseBlockRef,
  parseList,
  parseObject,
  parseSlot,
  parseStorageKey,
} from "../params.js";
import { stateHeight } from "../reads.js";

/** Storage keys in one eth_getProof, as go-ethereum allows. */
const MAX_PROOF_KEYS = 1_024;

/**
 * A proof of more keys counts as large before it is made, for those that are asked for together share one
 * way through the tries: each key may bring eight nodes of half a KiB, which are twice that as hex.
 */
const MAX_SMALL_PROOF_KEYS = LARGE_BYTES / (8 * 1_024);

/** Storage slots in one eth_getStorageValues, as go-ethereum allows. */
const MAX_STORAGE_VALUES = 1_024;

function parseSlotsByAccount(value: unknown): ReadonlyMap<Address, readonly Hash32[]> {
  const wanted = new Map<Address, readonly Hash32[]>();
  let count = 0;
  for (const [key, list] of Object.entries(parseObject(value))) {
    if (!Array.isArray(list)) throw new ParamError("expected an array");
    count += list.length;
    if (count > MAX_STORAGE_VALUES) {
      throw new RpcFault("CLIENT_LIMIT_EXCEEDED", `too many slots (max ${MAX_STORAGE_VALUES})`);
    }
    wanted.set(parseAddressParam(key), list.map(parseSlot));
  }
  if (count === 0) throw invalidParams("empty request");
  return wanted;
}

/** A storage key with the text that the client wrote: the answer repeats its form. */
interface ProofKey {
  readonly slot: Hash32;
  readonly shown: string;
}

function parseProofKey(value: unknown): ProofKey {
  const { slot, isWhole } = parseStorageKey(value);
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
      const { slot } = params.required(1, parseStorageKey);
      const height = stateHeight(view, params.optional(2, parseBlockRef));
      return bytesToHex(bigintToWord(await view.storageAt(address, slot, height)));
    }),
    method("eth_getStorageValues", 2, async (params, { signal }) => {
      const wanted = params.required(0, parseSlotsByAccount);
      const height = stateHeight(view, params.optional(1, parseBlockRef));
      const found: Record<Address, Hex[]> = {};
      for (const [address, slots] of wanted) {
        const values = [];
        for (const slot of slots) {
          await breathe(signal);
          values.push(await view.storageAt(address, slot, height));
        }
        found[address] = values.map((value) => bytesToHex(bigintToWord(value)));
      }
      return found;
    }),
    method("eth_getProof", 3, async (params, context) => {
      const address = params.required(0, parseAddressParam);
      const keys = params.required(1, (value) => parseList(value, MAX_PROOF_KEYS, parseProofKey));
      const height = stateHeight(view, params.optional(2, parseBlockRef));
      if (keys.length > MAX_SMALL_PROOF_KEYS) await context.becameLarge();
      const proof = await view.proof(
        address,
        keys.map(({ slot }) => slot),
        height,
        context.signal,
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
