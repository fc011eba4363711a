/**
 * Legacy transactions of this kit's own making: @ethereumjs/tx builds and signs them, and the
 * encoder and decoder of `chain/transaction.ts` check what it made. Two implementations that share no
 * line have to agree byte for byte and field for field; where they do not, nothing leaves here.
 * Sources: EIP-155, EIP-2681.
 */
import { type Common, createCustomCommon, Hardfork, Mainnet } from "@ethereumjs/common";
import { createLegacyTx, type LegacyTx, paramsTx } from "@ethereumjs/tx";
import { Address as LibraryAddress } from "@ethereumjs/util";
import { addressToBytes } from "../address.js";
import { type RecoverableSignature, secp256k1 } from "../crypto.js";
import { keccak256 } from "../hashes.js";
import { AppError, ChainError, errorMessage } from "../errors.js";
import { bigintToWord, bytesEqual } from "../hex.js";
import {
  decodeTransaction,
  encodeSignedLegacy,
  type LegacyIntent,
  legacySigningDigest,
  type SignedTransaction,
} from "../transaction.js";

/**
 * keccak256 of the EIP-155 payload of a transaction that somebody else is going to sign, 32 bytes.
 * @throws INVALID_TRANSACTION where @ethereumjs/tx refuses a field, IMPLEMENTATIONS_DISAGREE
 */
export function buildSigningDigest(intent: LegacyIntent): Uint8Array {
  const digest = withLibrary(() => buildUnsigned(intent).getHashedMessageToSign());
  if (!bytesEqual(digest, legacySigningDigest(intent))) throw disagreement(["signing digest"]);
  return digest;
}

/**
 * The transaction with somebody's signature over `buildSigningDigest`. Whose signature it is, the
 * caller checks.
 * @throws INVALID_TRANSACTION, INVALID_SIGNATURE, IMPLEMENTATIONS_DISAGREE
 */
export function buildSigned(
  intent: LegacyIntent,
  { r, s, recoveryId }: RecoverableSignature,
): SignedTransaction {
  const built = withLibrary(() =>
    buildUnsigned(intent).addSignature(BigInt(recoveryId), r, s, true),
  );
  return checkBuilt(built.serialize(), intent);
}

/**
 * Builds and signs: the same intent and key give the same bytes (RFC 6979). The caller holds the
 * recovered sender against the account that pays, which also proves the digest that was signed.
 * @param privateKey 32 bytes
 * @throws INVALID_TRANSACTION, IMPLEMENTATIONS_DISAGREE
 */
export function buildAndSign(intent: LegacyIntent, privateKey: Uint8Array): SignedTransaction {
  // By default the library adds entropy, and the same payment would get a second hash.
  const built = withLibrary(() => buildUnsigned(intent).sign(privateKey, false));
  return checkBuilt(built.serialize(), intent);
}

/**
 * Holds what the library built against the intent: every field as our decoder reads it, and the bytes
 * as our encoder writes them. The hash is made of these bytes: the library's comes of the same function.
 * @throws IMPLEMENTATIONS_DISAGREE naming what differs, and the decoder's errors
 */
export function checkBuilt(raw: Uint8Array, intent: LegacyIntent): SignedTransaction {
  const tx = decodeTransaction(raw);
  const signature = {
    r: bigintToWord(tx.r),
    s: bigintToWord(tx.s),
    recoveryId: Number((tx.v - 35n) & 1n),
  };
  const wrong: string[] = [];
  if (tx.type !== 0) wrong.push("type");
  if (tx.chainId !== intent.chainId) wrong.push("chainId");
  if (tx.nonce !== intent.nonce) wrong.push("nonce");
  if (tx.maxFeePerGasAtoken !== intent.gasPriceAtoken) wrong.push("gasPrice");
  if (tx.gasLimit !== intent.gasLimit) wrong.push("gasLimit");
  if (tx.to !== intent.to) wrong.push("to");
  if (tx.valueAtoken !== intent.valueAtoken) wrong.push("value");
  if (!bytesEqual(tx.data, intent.data)) wrong.push("data");
  if (!bytesEqual(raw, encodeSignedLegacy(intent, signature))) wrong.push("bytes");
  if (wrong.length > 0) throw disagreement(wrong);
  return tx;
}

function disagreement(wrong: readonly string[]): ChainError {
  return new ChainError(
    "IMPLEMENTATIONS_DISAGREE",
    "@ethereumjs/tx and this kit's own encoding differ: nothing is signed",
    { details: { wrong } },
  );
}

function buildUnsigned(intent: LegacyIntent): LegacyTx {
  const { nonce, gasPriceAtoken: gasPrice, gasLimit, valueAtoken: value, data } = intent;
  const to = intent.to === undefined ? undefined : new LibraryAddress(addressToBytes(intent.to));
  return createLegacyTx(
    { nonce, gasPrice, gasLimit, value, data, ...(to === undefined ? {} : { to }) },
    { common: rulesOf(intent.chainId), freeze: false },
  );
}

/** The library's rules of the last chain: a process makes transactions for one. */
let lastRules: { readonly chainId: bigint; readonly rules: Common } | undefined;

function rulesOf(chainId: bigint): Common {
  if (lastRules?.chainId !== chainId) lastRules = { chainId, rules: createRules(chainId) };
  return lastRules.rules;
}

/**
 * Hashes and signs with the back-ends of `crypto.ts`, in a tenth of the time of its own script. The
 * library gives every transaction a copy of its rules, so that their fork can be changed one by
 * one; here nobody changes it, and one transaction after the other gets the same.
 */
function createRules(chainId: bigint): Common {
  const rules = createCustomCommon({ chainId: chainId.toString(), name: "causeway" }, Mainnet, {
    hardfork: Hardfork.Cancun,
    customCrypto: {
      keccak256,
      ecsign(digest, privateKey) {
        const { r, s, recoveryId } = secp256k1.sign(digest, privateKey);
        return Buffer.concat([Uint8Array.of(recoveryId), r, s]);
      },
    },
  });
  rules.updateParams(paramsTx);
  return Object.assign(rules, { copy: () => rules, updateParams: () => undefined });
}

/** The library throws plain errors for fields beyond their range. */
function withLibrary<T>(build: () => T): T {
  try {
    return build();
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw new ChainError("INVALID_TRANSACTION", errorMessage(cause), { cause });
  }
}
