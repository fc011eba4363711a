/**
 * The rules that a Cosmos transaction must meet before its messages run, with the SDK's codes and
 * words (x/auth/ante). Stated once for the pool, for simulations, for who builds a block and for
 * who checks one. Pure.
 */
import { type Address, toBech32 } from "../address.js";
import { secp256k1 } from "../crypto.js";
import { ChainError } from "../errors.js";
import { BASE_DENOM, type Atoken } from "../units.js";
import {
  amountOf,
  type Coin,
  coinsOf,
  type CosmosTransaction,
  listOf,
  PUBLIC_KEY_TYPE_URLS,
  SIGN_MODES,
  signerOf,
} from "./cosmos-transaction.js";
import { typedDataDigest, typedDataOf } from "./eip712.js";
import type { AnyMessage } from "./field-schema.js";
import { SDK_CODE, type SdkFault, sdkFault } from "./sdk-fault.js";
import {
  ACCOUNT_NUMBER,
  aminoSignBytes,
  aminoSignDoc,
  directSignBytes,
  signDigest,
} from "./sign-doc.js";
import { goTime, isPassed, timeoutTimeOf } from "./timeout-time.js";

/** Length of a memo (x/auth `MaxMemoCharacters`). */
const MAX_MEMO = 256;

/** Gas of a byte of the transaction (x/auth `TxSizeCostPerByte`). */
const BYTE_GAS = 10n;

/**
 * Bytes that a simulation counts for a signature that is not there: x/auth's, a key and a signature in amino
 * (106) and 6. What clients leave out besides, which is mode and fee, has room in them.
 * Source: x/auth/ante/basic.go, `ConsumeTxSizeGasDecorator`.
 */
const MISSING_SIGNATURE_BYTES = 112n;

/** Gas of its signature: what Ethereum asks for any transaction. */
const SIGNATURE_GAS = 21_000n;

/** Largest sequence that can be executed, as for EVM transactions (EIP-2681). */
const MAX_SEQUENCE = 2n ** 64n - 2n;

/** r and s: without a recovery id a signature has one form, and a transaction one hash. */
const SIGNATURE_BYTES = 64;

/** What the chain asks of every Cosmos transaction. */
export interface CosmosLimits {
  readonly cosmosChainId: string;
  /** EIP-155 chain id, for EIP-712. */
  readonly chainId: bigint;
  readonly maxTransactionGas: bigint;
}

/** Gas that is used before the first message. */
export function anteGas({ raw }: Pick<CosmosTransaction, "raw">): bigint {
  return SIGNATURE_GAS + BYTE_GAS * BigInt(raw.length);
}

/** The same for a simulation, of bytes that may have no signature yet. */
export function simulatedAnteGas(tx: Pick<CosmosTransaction, "raw" | "signature">): bigint {
  const isSigned = tx.signature.length > 0;
  return anteGas(tx) + (isSigned ? 0n : BYTE_GAS * MISSING_SIGNATURE_BYTES);
}

/** "5atoken,7other", as the SDK writes coins; "" for none. */
export function coinsText(coins: readonly Coin[]): string {
  return coins.map(({ denom, amount }) => `${amount}${denom}`).join(",");
}

/**
 * Everything that depends on neither state nor height nor signature, for ever true or false of
 * the same bytes.
 */
export function staticCosmosFault(
  tx: CosmosTransaction,
  { maxTransactionGas }: Pick<CosmosLimits, "maxTransactionGas">,
): SdkFault | undefined {
  return unsignedCosmosFault(tx) ?? gasFault(tx, maxTransactionGas) ?? signatureFieldsFault(tx);
}

/**
 * What a simulation is held to: what neither a gas limit nor a signature mends. It need not bring a key,
 * and the SDK's client sends an empty one where it has none.
 */
export function simulationFault(tx: CosmosTransaction): SdkFault | undefined {
  const fault = unsignedCosmosFault(tx);
  if (fault !== undefined || tx.publicKey.length === 0 || isNamedAsCosmJsDoes(tx)) return fault;
  return keyFault(tx);
}

/**
 * Whether the signer's own key is named as CosmJS names all keys when it simulates, those of its Ethereum
 * wallets as well; what it signs then has the right name.
 */
function isNamedAsCosmJsDoes({ publicKey, publicKeyTypeUrl, signers }: CosmosTransaction): boolean {
  if (publicKeyTypeUrl !== "/cosmos.crypto.secp256k1.PubKey") return false;
  const [rightName] = PUBLIC_KEY_TYPE_URLS;
  return signerOf({ publicKey, publicKeyTypeUrl: rightName })?.address === signers[0];
}

function unsignedCosmosFault(tx: CosmosTransaction): SdkFault | undefined {
  return optionsFault(tx) ?? feeFieldsFault(tx) ?? signersFault(tx);
}

/** Signatures over typed data as ethermint had them, in an option of the transaction. */
const OLDER_TYPED_DATA = /\.ExtensionOptionsWeb3Tx$/;

/** What their signers do instead: those types follow from the first message, and cover no other one. */
const OLDER_TYPED_DATA_TEXT =
  "ExtensionOptionsWeb3Tx, the older form of EIP-712 (msgs: Msg[]), signs the fields of its first " +
  "message alone: sign typed data with msg0, msg1, ... or amino JSON, with the signature in its own " +
  "place and no option";

function optionsFault(tx: CosmosTransaction): SdkFault | undefined {
  if (tx.messages.length === 0) {
    return sdkFault(SDK_CODE.invalidRequest, "must contain at least one message");
  }
  if (tx.extensionOptions.length > 0) {
    const isOlderForm = tx.extensionOptions.some((url) => OLDER_TYPED_DATA.test(url));
    return sdkFault(SDK_CODE.unknownExtension, isOlderForm ? OLDER_TYPED_DATA_TEXT : "");
  }
  if (tx.isUnordered) {
    return sdkFault(SDK_CODE.notSupported, "unordered transactions are not supported");
  }
  // Blocks of version 1 of the rules may hold memos of so many characters, whatever their bytes.
  return Array.from(tx.memo).length > MAX_MEMO ? memoFault(tx) : undefined;
}

/**
 * The rule about the memo: its bytes, which the SDK calls characters. For blocks from version 2 of
 * the rules on, and for every pool.
 * Source: x/auth/ante/basic.go, `ValidateMemoDecorator`.
 */
export function memoFault({ memo }: Pick<CosmosTransaction, "memo">): SdkFault | undefined {
  const sizeBytes = Buffer.byteLength(memo);
  if (sizeBytes <= MAX_MEMO) return undefined;
  const text = `maximum number of characters is ${MAX_MEMO} but received ${sizeBytes} characters`;
  return sdkFault(SDK_CODE.memoTooLarge, text);
}

function feeFieldsFault({ fee, feeGranter, feePayer, signers }: CosmosTransaction) {
  if (feeGranter !== "") {
    return sdkFault(SDK_CODE.notSupported, "fee grants are not supported: leave fee.granter empty");
  }
  for (const coin of fee) {
    if (amountOf(coin) === undefined) {
      const text = `the fee ${coinsText([coin]).slice(0, 200)} is not an amount of ${BASE_DENOM}`;
      return sdkFault(SDK_CODE.insufficientFee, text);
    }
  }
  if (fee.length > 1) return sdkFault(SDK_CODE.insufficientFee, "a denomination is named twice");
  const [signer] = signers;
  if (feePayer !== "" && (signer === undefined || feePayer !== toBech32(signer))) {
    // Whoever pays has to sign, and there is one signer.
    const text = "a fee payer who is not the signer is not supported: leave fee.payer empty";
    return sdkFault(SDK_CODE.notSupported, text);
  }
  return undefined;
}

function gasFault(tx: CosmosTransaction, most: bigint): SdkFault | undefined {
  if (tx.nonce > MAX_SEQUENCE) return sdkFault(SDK_CODE.wrongSequence, "the sequence is too high");
  if (tx.gasLimit > most) {
    const text = `tx gas limit ${tx.gasLimit} exceeds block max gas ${most}`;
    return sdkFault(SDK_CODE.invalidGasLimit, text);
  }
  const needed = anteGas(tx);
  return tx.gasLimit < needed ? outOfGas("txSize", tx.gasLimit, needed) : undefined;
}

/** Code 11, in the SDK's words. */
export function outOfGas(location: string, gasWanted: bigint, gasUsed: bigint): SdkFault {
  const text = `out of gas in location: ${location}; gasWanted: ${gasWanted}, gasUsed: ${gasUsed}`;
  return sdkFault(SDK_CODE.outOfGas, text);
}

function signersFault({ signers }: CosmosTransaction): SdkFault | undefined {
  if (signers.length === 1) return undefined;
  return sdkFault(SDK_CODE.notSupported, "messages of several signers are not supported");
}

function signatureFieldsFault(tx: CosmosTransaction): SdkFault | undefined {
  if (tx.signature.length === 0) return sdkFault(SDK_CODE.noSignatures, "");
  const fault = keyFault(tx);
  if (fault !== undefined) return fault;
  if (signerOf(tx)?.address !== tx.signers[0]) {
    const text = "pubKey does not match signer address";
    return sdkFault(SDK_CODE.invalidPublicKey, text);
  }
  if (tx.signMode !== SIGN_MODES.direct && tx.signMode !== SIGN_MODES.aminoJson) {
    return sdkFault(SDK_CODE.notSupported, `sign mode ${tx.signMode} is not supported`);
  }
  return undefined;
}

/** Code 8 for a key that no account of this chain can have. */
function keyFault(tx: CosmosTransaction): SdkFault | undefined {
  if (tx.publicKeyTypeUrl === undefined) {
    return sdkFault(SDK_CODE.invalidPublicKey, "PubKey not found: the signer info must have it");
  }
  if (signerOf(tx) !== undefined) return undefined;
  const url = tx.publicKeyTypeUrl.slice(0, 100);
  // Its owner's wallet has made an address that nobody can sign for here: it has to be set up anew.
  const remedy = "accounts of this chain have Ethereum's keys (coin type 60)";
  return sdkFault(
    SDK_CODE.invalidPublicKey,
    `${url} is no ethsecp256k1 key of 33 bytes: ${remedy}`,
  );
}

/**
 * Code 13 under a node's own floor: what is in a block need not meet it. The least fee is
 * ceil(gas limit x price), as the SDK has it.
 * @param price atoken per gas as a fraction
 */
export function feeFault(
  { fee, feeAtoken, gasLimit }: Pick<CosmosTransaction, "fee" | "feeAtoken" | "gasLimit">,
  price: { readonly numerator: bigint; readonly denominator: bigint },
): SdkFault | undefined {
  const { numerator, denominator } = price;
  const required = (gasLimit * numerator + denominator - 1n) / denominator;
  if (feeAtoken >= required) return undefined;
  const text = `insufficient fees; got: ${coinsText(fee)} required: ${required}${BASE_DENOM}`;
  return sdkFault(SDK_CODE.insufficientFee, text);
}

/** Code 30 when the height after which the transaction is void has passed. */
export function timeoutFault(
  { timeoutHeight }: Pick<CosmosTransaction, "timeoutHeight">,
  height: number,
): SdkFault | undefined {
  if (timeoutHeight === 0n || BigInt(height) <= timeoutHeight) return undefined;
  const text = `block height: ${height}, timeout height: ${timeoutHeight}`;
  return sdkFault(SDK_CODE.timeoutHeight, text);
}

/**
 * Code 42 when the time after which the transaction is void has passed, 2 for what is no time.
 * @param blockTimeMs of the block that is to hold it, Unix milliseconds
 */
export function timestampFault(
  tx: Pick<CosmosTransaction, "timeoutTimestamp">,
  blockTimeMs: number,
): SdkFault | undefined {
  let time;
  try {
    time = timeoutTimeOf(tx);
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    return sdkFault(SDK_CODE.txDecode, error.message);
  }
  if (time === undefined || !isPassed(time, blockTimeMs)) return undefined;
  const block = goTime({
    seconds: BigInt(Math.floor(blockTimeMs / 1_000)),
    nanos: (blockTimeMs % 1_000) * 1_000_000,
  });
  return sdkFault(SDK_CODE.timeout, `block time: ${block}, timeout timestamp: ${goTime(time)}`);
}

/** Code 32 unless the sequence is the account's next one. */
export function sequenceFault(expected: bigint, got: bigint): SdkFault | undefined {
  if (expected === got) return undefined;
  const text = `account sequence mismatch, expected ${expected}, got ${got}`;
  return sdkFault(SDK_CODE.wrongSequence, text);
}

/** Code 5 when the balance does not cover what is to be paid. */
export function balanceFault(balanceAtoken: Atoken, neededAtoken: Atoken): SdkFault | undefined {
  if (balanceAtoken >= neededAtoken) return undefined;
  const have = `spendable balance ${balanceAtoken}${BASE_DENOM}`;
  return sdkFault(
    SDK_CODE.insufficientFunds,
    `${have} is smaller than ${neededAtoken}${BASE_DENOM}`,
  );
}

/** Fields whose coins leave the signer's account, by message. */
const SPENT_FIELDS: Readonly<Record<string, string>> = {
  "cosmos.bank.v1beta1.MsgSend": "amount",
  "cosmos.staking.v1beta1.MsgDelegate": "amount",
  "cosmos.staking.v1beta1.MsgCreateValidator": "value",
  "cosmos.distribution.v1beta1.MsgFundCommunityPool": "amount",
  "cosmos.gov.v1.MsgDeposit": "amount",
  "cosmos.gov.v1beta1.MsgDeposit": "amount",
  "cosmos.gov.v1.MsgSubmitProposal": "initial_deposit",
  "cosmos.gov.v1beta1.MsgSubmitProposal": "initial_deposit",
};

/**
 * Most that a transaction may take from its signer: fee and what its messages name. The pool holds
 * senders to it, as it does for EVM transactions, so that what follows can still be paid.
 */
export function mostCosmosCostAtoken({ feeAtoken, messages }: CosmosTransaction): Atoken {
  return messages.reduce((sum, message) => sum + spentAtoken(message), feeAtoken);
}

/** Messages that move locked coins, too. */
const STAKING_MESSAGES: ReadonlySet<string> = new Set([
  "cosmos.staking.v1beta1.MsgDelegate",
  "cosmos.staking.v1beta1.MsgCreateValidator",
]);

/** The part of it that becomes stake: coins that are locked may be among it (D14). */
export function mostStakedAtoken({ messages }: Pick<CosmosTransaction, "messages">): Atoken {
  return messages.reduce((sum, message) => {
    return STAKING_MESSAGES.has(message.schema.name) ? sum + spentAtoken(message) : sum;
  }, 0n);
}

function spentAtoken({ schema, message }: AnyMessage): Atoken {
  const field = SPENT_FIELDS[schema.name];
  const coins =
    schema.name === "cosmos.bank.v1beta1.MsgMultiSend"
      ? listOf(message["inputs"]).flatMap((input) => coinsOf(input["coins"]))
      : field === undefined
        ? []
        : coinsOf(message[field]);
  return coins.reduce((sum, coin) => sum + (amountOf(coin) ?? 0n), 0n);
}

/** What is asked of the curve. */
export interface SignatureCheck {
  /** 32 bytes. */
  readonly digest: Uint8Array;
  /** 64 bytes, r then s. */
  readonly signature: Uint8Array;
  /** 64 bytes, x then y. */
  readonly publicKey: Uint8Array;
}

/**
 * The check that a transaction passes whose signature is of the usual form, for those who have it made
 * elsewhere; undefined where no signature can pass. One that does not pass may still be of another form:
 * `signatureFault` knows.
 */
export function usualSignatureCheck(
  tx: CosmosTransaction,
  limits: CosmosLimits,
): SignatureCheck | undefined {
  const signer = signerOf(tx);
  if (signer === undefined || tx.signature.length !== SIGNATURE_BYTES) return undefined;
  const [digest] = digests(tx, limits);
  if (digest === undefined) return undefined;
  return { digest, signature: tx.signature, publicKey: signer.point };
}

/**
 * Code 4 unless the named key signed this transaction for this chain. `s` must be in the lower
 * half and the signature exactly 64 bytes, r then s: nobody can make another one of it.
 */
export function signatureFault(tx: CosmosTransaction, limits: CosmosLimits): SdkFault | undefined {
  const signer = signerOf(tx);
  if (signer !== undefined && tx.signature.length === SIGNATURE_BYTES) {
    for (const digest of digests(tx, limits)) {
      if (secp256k1.verify(digest, tx.signature, signer.point)) return undefined;
    }
  }
  const text =
    "signature verification failed; please verify account number " +
    `(${ACCOUNT_NUMBER}), sequence (${tx.nonce}) and chain-id (${limits.cosmosChainId})`;
  return sdkFault(SDK_CODE.unauthorized, `${text}: (${reasonOf(tx.signature)})`);
}

/** Why a signature does not count, for those who can mend it. */
function reasonOf({ length }: Uint8Array): string {
  const usual = "unable to verify single signer signature";
  // What Go's ethsecp256k1 keys and Ethereum wallets make.
  const isRecoverable = length === SIGNATURE_BYTES + 1;
  return isRecoverable
    ? `${usual}: it has 65 bytes, send the first 64, r and s, without the recovery id`
    : usual;
}

/** Digests that count, the usual one first; the others are made only if it does not fit. */
function* digests(tx: CosmosTransaction, limits: CosmosLimits): Generator<Uint8Array> {
  const { cosmosChainId, chainId } = limits;
  const isDirect = tx.signMode === SIGN_MODES.direct;
  if (isDirect) yield signDigest(directSignBytes(tx, cosmosChainId));
  // Types of EIP-712 have no field for these, so nobody would have signed them.
  const isTyped =
    tx.timeoutHeight === 0n && tx.timeoutTimestamp === undefined && tx.feePayer === "";
  if (isDirect && !isTyped) return;
  const document = documentOf(tx, cosmosChainId);
  if (document === undefined) return;
  if (!isDirect) yield signDigest(aminoSignBytes(document));
  if (!isTyped) return;
  const typed = typedDataOf(document, chainId);
  if (typed !== undefined) yield typedDataDigest(typed);
}

/** The document of amino JSON; undefined for a transaction that has none: nobody can sign it so. */
function documentOf(tx: CosmosTransaction, cosmosChainId: string) {
  try {
    return aminoSignDoc(tx, cosmosChainId);
  } catch (error) {
    if (error instanceof ChainError) return undefined;
    throw error;
  }
}

/** The signer of a transaction that has none of the faults above. */
export function senderOf(tx: CosmosTransaction): Address {
  const [signer] = tx.signers;
  if (signer === undefined) throw new RangeError("a transaction without a signer");
  return signer;
}
