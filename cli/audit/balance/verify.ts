/** Checks a balance bundle with nothing but the genesis: no network, no clock, no node. */
import { verifyMerkleProof } from "@ethereumjs/mpt";
import { hashConsensusHeader } from "../../../chain/consensus/consensus-header.js";
import { addressToBytes, toBech32, toChecksumAddress } from "../../../chain/address.js";
import { errorMessage } from "../../../chain/errors.js";
import { keccak256, keccak256Hex } from "../../../chain/hashes.js";
import { bytesToHash32, EMPTY_CODE_HASH, type Hash32, type Height } from "../../../chain/hex.js";
import { decodeRlp, rlpBytes, rlpInteger, rlpList } from "../../../chain/encoding/rlp.js";
import type { Atoken } from "../../../chain/units.js";
import type { Genesis } from "../../../node/settings/genesis.js";
import { AuditError } from "../errors.js";
import type { BalanceBundle } from "./bundle.js";
import { verifyPath } from "./header-path.js";

/** What a bundle proves. */
export interface ProvenBalance {
  readonly address: string;
  readonly bech32: string;
  readonly height: Height;
  readonly blockHash: Hash32;
  /** Unix seconds of the block. */
  readonly timestampSeconds: number;
  readonly balanceAtoken: Atoken;
  readonly nonce: bigint;
  /** The consensus header whose app hash is the block; more than two thirds signed it. */
  readonly signedAt: {
    readonly height: Height;
    readonly hash: Hash32;
    readonly validators: number;
    readonly totalPower: bigint;
  };
  /** Headers between the genesis and that one, itself included. */
  readonly headers: number;
}

/** Fields of the EVM header that are read, by place (D19). */
const HEADER_FIELDS = { stateRoot: 3, height: 8, timestamp: 11, count: 15 } as const;

/** Nonce, balance, storage root and code hash. */
const ACCOUNT_FIELDS = 4;

/**
 * Verifies every step from the genesis to the balance.
 * @throws NOT_PROVEN naming the step that does not hold
 */
export async function verifyBundle(
  bundle: BalanceBundle,
  genesis: Genesis,
): Promise<ProvenBalance> {
  const { stateRoot, ...block } = verifyBlock(bundle, genesis);
  const { balanceAtoken, nonce } = await provenAccount(bundle, stateRoot);
  const { address } = bundle;
  const names = { address: toChecksumAddress(address), bech32: toBech32(address) };
  return { ...names, ...block, balanceAtoken, nonce };
}

/** An account as a state has it. */
export interface ProvenAccount extends Pick<ProvenBalance, "balanceAtoken" | "nonce"> {
  /** `EMPTY_CODE_HASH` of all but contracts. */
  readonly codeHash: Hash32;
}

/** A block that the validators signed for. */
export interface ProvenBlock
  extends Omit<ProvenBalance, "address" | "bech32" | "balanceAtoken" | "nonce"> {
  readonly stateRoot: Hash32;
}

/**
 * Verifies the way from the genesis to a block.
 * @throws NOT_PROVEN naming the step that does not hold
 */
export function verifyBlock(
  bundle: Pick<BalanceBundle, "chainId" | "height" | "path" | "header">,
  genesis: Genesis,
): ProvenBlock {
  if (bundle.chainId !== genesis.cosmosChainId) {
    throw notProven(`it is of ${bundle.chainId}, the genesis of ${genesis.cosmosChainId}`);
  }
  const signed = held("the headers", () => verifyPath(bundle.path, genesis));
  const blockHash = keccak256Hex(bundle.header);
  if (signed.header.height !== bundle.height + 1 || signed.header.appHash !== blockHash) {
    throw notProven("the signed header is not the one that names the block");
  }
  const header = held("the block's header", () => readHeader(bundle.header));
  if (header.height !== bundle.height) throw notProven("the block has another height");
  return {
    height: bundle.height,
    blockHash,
    stateRoot: header.stateRoot,
    timestampSeconds: header.timestampSeconds,
    signedAt: {
      height: signed.header.height,
      hash: hashConsensusHeader(signed.header),
      validators: signed.validators.size,
      totalPower: signed.validators.totalPower,
    },
    headers: bundle.path.length,
  };
}

/**
 * The account below the state root; one that is not there has neither coins nor nonce.
 * @throws NOT_PROVEN
 */
export async function provenAccount(
  { address, accountProof }: Pick<BalanceBundle, "address" | "accountProof">,
  stateRoot: Hash32,
): Promise<ProvenAccount> {
  const [root] = accountProof;
  // The library takes the first node's hash for the root; whether it is the block's is ours to ask.
  if (root === undefined || keccak256Hex(root) !== stateRoot) {
    throw notProven("the proof does not begin at the block's state root");
  }
  let leaf: Uint8Array | null;
  try {
    leaf = await verifyMerkleProof(keccak256(addressToBytes(address)), [...accountProof], {
      // The library's own takes three times as long: a proof of reserves has many accounts.
      useKeyHashingFunction: keccak256,
    });
  } catch (cause) {
    throw notProven(`the proof of the account does not hold: ${errorMessage(cause)}`, cause);
  }
  if (leaf === null) return { balanceAtoken: 0n, nonce: 0n, codeHash: EMPTY_CODE_HASH };
  const record = leaf;
  return held("the account's record", () => {
    const fields = rlpList(decodeRlp(record));
    if (fields.length !== ACCOUNT_FIELDS) throw new RangeError("not four fields");
    const [nonce, balance, , code] = fields;
    const codeHash = bytesToHash32(rlpBytes(code));
    return { nonce: rlpInteger(nonce), balanceAtoken: rlpInteger(balance), codeHash };
  });
}

function readHeader(bytes: Uint8Array): {
  readonly height: Height;
  readonly stateRoot: Hash32;
  readonly timestampSeconds: number;
} {
  const fields = rlpList(decodeRlp(bytes));
  if (fields.length !== HEADER_FIELDS.count) throw new RangeError("not fifteen fields");
  return {
    height: Number(rlpInteger(fields[HEADER_FIELDS.height], 6)),
    stateRoot: bytesToHash32(rlpBytes(fields[HEADER_FIELDS.stateRoot])),
    timestampSeconds: Number(rlpInteger(fields[HEADER_FIELDS.timestamp], 6)),
  };
}

/** Runs a step; whatever it throws means that the bundle proves nothing. */
function held<T>(what: string, check: () => T): T {
  try {
    return check();
  } catch (cause) {
    throw notProven(`${what}: ${errorMessage(cause)}`, cause);
  }
}

/** The refusal of a file, with the step that does not hold. */
export function notProven(reason: string, cause?: unknown): AuditError {
  return new AuditError("NOT_PROVEN", `The file proves nothing: ${reason}.`, { cause });
}
