/**
 * The rules of this chain that @ethereumjs/vm does not have, written a second time from their
 * description and not from the node: what a header binds, what happens at the end of a block, and
 * how much is minted (D3, D13, D19, D22).
 */
import { createCustomCommon, type Common, Hardfork, Mainnet } from "@ethereumjs/common";
import { MerklePatriciaTrie } from "@ethereumjs/mpt";
import { createTxFromRLP, type TypedTransaction } from "@ethereumjs/tx";
import {
  createAddressFromString,
  type KZG,
  type Address as LibraryAddress,
} from "@ethereumjs/util";
import { type Address, bytesToAddress } from "../../chain/address.js";
import { errorMessage } from "../../chain/errors.js";
import { keccak256, keccak256Hex } from "../../chain/hashes.js";
import {
  bigintToBytes,
  bigintToWord,
  bytesToHash32,
  type Hash32,
  hexToBytes,
} from "../../chain/hex.js";
import { verifyKzgProof } from "../../chain/evm/kzg.js";
import { decodeRlp, rlpBytes, rlpInteger, rlpList } from "../../chain/encoding/rlp.js";
import { encodeRlp } from "../../chain/encoding/rlp-writer.js";
import type { Atoken } from "../../chain/units.js";

/** Addresses that the end of a block names; genesis has them. */
export interface SystemAccounts {
  readonly feeCollector: Address;
  readonly treasury: Address;
  readonly validatorsPool: Address;
  readonly developmentFund: Address;
}

/** A header as its bytes say it. */
export interface AuditedHeader {
  readonly hash: Hash32;
  readonly parentHash: Hash32;
  readonly coinbase: Uint8Array;
  readonly stateRoot: Hash32;
  readonly transactionsRoot: Hash32;
  readonly receiptsRoot: Hash32;
  readonly logsBloom: Uint8Array;
  readonly height: number;
  readonly gasLimit: bigint;
  readonly gasUsed: bigint;
  readonly timestampSeconds: bigint;
  readonly moduleRoot: Hash32;
  readonly mixHash: Uint8Array;
}

/** A block as its bytes say it. */
export interface AuditedBlock {
  readonly header: AuditedHeader;
  /** Raw transactions, type byte included. */
  readonly transactions: readonly Uint8Array[];
}

function noBlobs(): never {
  throw new TypeError("there are no blobs on this chain");
}

/** What point evaluation (0x0a) asks for; all else is about blobs (D19). */
const PROOFS: KZG = {
  verifyProof: (commitment, z, y, proof) =>
    verifyKzgProof({
      commitment: hexToBytes(commitment),
      point: BigInt(z),
      value: BigInt(y),
      proof: hexToBytes(proof),
    }),
  blobToKzgCommitment: noBlobs,
  computeBlobProof: noBlobs,
  verifyBlobProofBatch: noBlobs,
  computeCells: noBlobs,
  computeCellsAndProofs: noBlobs,
  recoverCellsAndProofs: noBlobs,
  verifyCellKzgProofBatch: noBlobs,
};

/** Rules of the VM: Cancun and the chain's own id; signatures are checked by @noble, as it comes. */
export function createChainCommon(chainId: bigint): Common {
  return createCustomCommon({ chainId: chainId.toString(), name: "causeway" }, Mainnet, {
    hardfork: Hardfork.Cancun,
    customCrypto: { keccak256, kzg: PROOFS },
  });
}

/** RLP of `[header, transactions, uncles]`. Throws INVALID_RLP. */
export function parseRawBlock(bytes: Uint8Array): AuditedBlock {
  const [header, transactions] = rlpList(decodeRlp(bytes));
  return {
    header: parseRawHeader(encodeRlp(rlpList(header))),
    // A typed transaction travels as bytes, a legacy one as the list that it is.
    transactions: rlpList(transactions).map((item) =>
      item instanceof Uint8Array ? item : encodeRlp(item),
    ),
  };
}

/** RLP of a header; its hash is worked out, never taken from the node. Throws INVALID_RLP. */
export function parseRawHeader(bytes: Uint8Array): AuditedHeader {
  const items = rlpList(decodeRlp(bytes));
  const hash = (index: number) => bytesToHash32(rlpBytes(items[index]));
  return {
    hash: keccak256Hex(bytes),
    parentHash: hash(0),
    coinbase: rlpBytes(items[2]),
    stateRoot: hash(3),
    transactionsRoot: hash(4),
    receiptsRoot: hash(5),
    logsBloom: rlpBytes(items[6]),
    height: Number(rlpInteger(items[8], 6)),
    gasLimit: rlpInteger(items[9], 8),
    gasUsed: rlpInteger(items[10], 8),
    timestampSeconds: rlpInteger(items[11], 8),
    moduleRoot: hash(12),
    mixHash: rlpBytes(items[13]),
  };
}

/** A raw transaction with its sender; what the VM has against it where it can be none. */
export function parseTransaction(raw: Uint8Array, common: Common): TypedTransaction | Error {
  try {
    const tx = createTxFromRLP(raw, { common });
    // A signature that is nobody's is found here, and not where the sender is first needed.
    tx.getSenderAddress();
    return tx;
  } catch (error) {
    return error instanceof Error ? error : new Error(errorMessage(error));
  }
}

/** Root of the trie of a list: transactions or receipts of a block, by their index. */
export async function listRoot(items: readonly Uint8Array[]): Promise<Hash32> {
  const trie = new MerklePatriciaTrie();
  for (const [index, item] of items.entries()) {
    await trie.put(encodeRlp(bigintToBytes(BigInt(index))), item);
  }
  return bytesToHash32(trie.root());
}

/** Adds the bits of a bloom filter to others, in place. */
export function addBloom(sum: Uint8Array, bloom: Uint8Array): void {
  bloom.forEach((byte, index) => {
    sum[index] = (sum[index] ?? 0) | byte;
  });
}

/** Coins that came into being and ceased to be since genesis; the header commits to them. */
export interface SupplyTotals {
  readonly mintedAtoken: Atoken;
  readonly burnedAtoken: Atoken;
}

/** What no header can hold: a forged journal may burn more than there ever was. */
const NO_SUPPLY = "none: the supply would be below zero";

/** Root over the supply that `extraData` of a header holds, or why there is none. */
export async function supplyRoot({ mintedAtoken, burnedAtoken }: SupplyTotals): Promise<string> {
  if (burnedAtoken > mintedAtoken) return NO_SUPPLY;
  const trie = new MerklePatriciaTrie({ useKeyHashing: true });
  const values: readonly (readonly [string, bigint])[] = [
    ["bank/totalSupply", mintedAtoken - burnedAtoken],
    ["bank/minted", mintedAtoken],
    ["bank/burned", burnedAtoken],
  ];
  for (const [name, valueAtoken] of values) {
    await trie.put(Buffer.from(name, "ascii"), encodeRlp(bigintToBytes(valueAtoken)));
  }
  return bytesToHash32(trie.root());
}

/** 12 % a year in the first 7,884,000 blocks, then 8 %; a year has 15,768,000 blocks of 2 s. */
const FIRST_PHASE_BLOCKS = 7_884_000;
const BLOCKS_PER_YEAR = 15_768_000n;

/** Share of the supply that a block mints, as a fraction. */
function mintRate(height: number): { readonly numerator: bigint; readonly denominator: bigint } {
  const percent = height <= FIRST_PHASE_BLOCKS ? 12n : 8n;
  return { numerator: percent, denominator: 100n * BLOCKS_PER_YEAR };
}

/**
 * The supply as far as it is known: exactly from genesis on. An audit that begins later knows it
 * from what its first block minted, to within the rounding of one mint.
 */
export class SupplyRange {
  #lowestAtoken: Atoken;
  #highestAtoken: Atoken;

  private constructor(lowestAtoken: Atoken, highestAtoken: Atoken) {
    this.#lowestAtoken = lowestAtoken;
    this.#highestAtoken = highestAtoken;
  }

  /** A supply that is known to the last atoken. */
  static exactly(valueAtoken: Atoken): SupplyRange {
    return new SupplyRange(valueAtoken, valueAtoken);
  }

  /** Every supply of which the block of this height mints this much. */
  static fromMint(height: number, mintedAtoken: Atoken): SupplyRange {
    const { numerator, denominator } = mintRate(height);
    const lowest = (mintedAtoken * denominator + numerator - 1n) / numerator;
    const next = ((mintedAtoken + 1n) * denominator + numerator - 1n) / numerator;
    return new SupplyRange(lowest, next - 1n);
  }

  /**
   * What the block of this height mints: the claim where a supply in range gives it, else what the
   * range allows. The range shrinks to supplies that agree.
   */
  mintOf(height: number, claimedAtoken: Atoken): bigint {
    const { numerator, denominator } = mintRate(height);
    const least = (this.#lowestAtoken * numerator) / denominator;
    const most = (this.#highestAtoken * numerator) / denominator;
    if (claimedAtoken < least) return least;
    if (claimedAtoken > most) return most;
    const implied = SupplyRange.fromMint(height, claimedAtoken);
    if (implied.#lowestAtoken > this.#lowestAtoken) this.#lowestAtoken = implied.#lowestAtoken;
    if (implied.#highestAtoken < this.#highestAtoken) this.#highestAtoken = implied.#highestAtoken;
    return claimedAtoken;
  }

  /** After a block that changed the supply. */
  add(deltaAtoken: Atoken): void {
    this.#lowestAtoken += deltaAtoken;
    this.#highestAtoken += deltaAtoken;
  }
}

/** What moves when a block ends, by account; the fees lie with the collector until then. */
export interface EndOfBlock {
  readonly changes: ReadonlyMap<Address, bigint>;
  readonly burnedAtoken: Atoken;
}

/** Half of the fees is burned (an odd unit too), half goes to the treasury; the mint is shared. */
export function endOfBlock(
  feesAtoken: Atoken,
  mintAtoken: Atoken,
  accounts: SystemAccounts,
): EndOfBlock {
  const changes = new Map<Address, bigint>();
  const add = (address: Address, deltaAtoken: Atoken) =>
    changes.set(address, (changes.get(address) ?? 0n) + deltaAtoken);
  const burnedAtoken = (feesAtoken + 1n) / 2n;
  const fundAtoken = mintAtoken / 10n;
  add(accounts.feeCollector, -feesAtoken);
  add(accounts.treasury, feesAtoken - burnedAtoken);
  add(accounts.developmentFund, fundAtoken);
  add(accounts.validatorsPool, mintAtoken - fundAtoken);
  return { changes, burnedAtoken };
}

/**
 * Accounts whose storage is the state of the modules, on chains that have them: 0x...0800 to 0x...0810.
 */
export const MODULE_ACCOUNTS: readonly Address[] = Array.from({ length: 17 }, (_, index) =>
  bytesToAddress(bigintToWord(0x800n + BigInt(index)).subarray(12)),
);

/** Changes of a block's end that follow from fees and supply alone; all others are the modules'. */
export const RULED_REASONS: ReadonlySet<string> = new Set(["FEE_BURN", "TREASURY", "MINT"]);

/** An address as the library has it. */
export function toLibraryAddress(address: Address): LibraryAddress {
  return createAddressFromString(address);
}
