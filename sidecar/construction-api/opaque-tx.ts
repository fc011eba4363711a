/** What travels between construction calls: metadata, unsigned and signed transaction. */
import type { Address } from "../../chain/address.js";
import { type AppError, ChainError, errorCode } from "../../chain/errors.js";
import { bytesToHex, type Hex, hexToBytes, parseHex } from "../../chain/hex.js";
import type { Network } from "../../chain/networks.js";
import {
  decodeTransaction,
  type LegacyIntent,
  recoverSender,
  type SignedTransaction,
} from "../../chain/transaction.js";
import { MAX_ATOKEN } from "../../chain/units.js";
import { SidecarError, type SidecarErrorCode } from "../errors.js";
import { accountIdentifier, parseAccountAddress, TOKEN_CURRENCY } from "../identifiers.js";
import { memoOfData } from "../memo.js";
import { inside, type Place, readFields, readUnsigned } from "../request-fields.js";
import type { Intent } from "./intent.js";
import { MAX_GAS, MAX_NONCE } from "./options.js";

/** Facts of the network that a transaction needs: the `metadata` of payloads. */
export interface TransactionFacts {
  readonly chainId: bigint;
  readonly nonce: bigint;
  readonly gasPriceAtoken: bigint;
  readonly gasLimit: bigint;
  /** Calldata, `0x` for none. */
  readonly data: Hex;
}

/** A whole legacy transaction that nobody signed yet. */
export interface UnsignedTransaction extends TransactionFacts, Intent {}

/** Version of the unsigned form; a change of its fields raises it. */
const UNSIGNED_VERSION = 1;

const FACT_FIELDS = ["chain_id", "nonce", "gas_price", "gas_limit", "data"];

/** Facts as `metadata`, every number a decimal string. */
export function encodeFacts(facts: TransactionFacts): Record<string, string> {
  return {
    chain_id: facts.chainId.toString(),
    nonce: facts.nonce.toString(),
    gas_price: facts.gasPriceAtoken.toString(),
    gas_limit: facts.gasLimit.toString(),
    data: facts.data,
  };
}

/**
 * `metadata` of a payloads request; `data` may be left out.
 * @throws INVALID_METADATA, WRONG_CHAIN_ID
 */
export function parseFacts(value: unknown, network: Network): TransactionFacts {
  const place: Place = { at: "metadata", code: "INVALID_METADATA" };
  return readFacts(readFields(value, place, FACT_FIELDS), place, network);
}

/** The unsigned transaction as text: the same fields give the same bytes. */
export function encodeUnsigned(unsigned: UnsignedTransaction): string {
  return JSON.stringify({
    version: UNSIGNED_VERSION,
    from: accountIdentifier(unsigned.from).address,
    to: accountIdentifier(unsigned.to).address,
    value: unsigned.valueAtoken.toString(),
    currency: TOKEN_CURRENCY,
    ...encodeFacts(unsigned),
  });
}

/**
 * Text that `encodeUnsigned` made, and only that: anything that would be encoded otherwise is
 * refused, so nothing can hide beside the fields that are read.
 * @throws INVALID_UNSIGNED_TRANSACTION, WRONG_CHAIN_ID
 */
export function parseUnsigned(text: string, network: Network): UnsignedTransaction {
  const place: Place = { at: "unsigned_transaction", code: "INVALID_UNSIGNED_TRANSACTION" };
  const fields = readFields(parseJson(text), place);
  const unsigned = {
    from: readParty(fields["from"], inside(place, "from")),
    to: readParty(fields["to"], inside(place, "to")),
    valueAtoken: readUnsigned(fields["value"], inside(place, "value"), MAX_ATOKEN),
    ...readFacts(fields, place, network),
  };
  if (encodeUnsigned(unsigned) !== text) {
    throw new SidecarError("INVALID_UNSIGNED_TRANSACTION", { expected: "the text of payloads" });
  }
  return unsigned;
}

/** The unsigned transaction as the chain's own primitives take it. */
export function toLegacyIntent(unsigned: UnsignedTransaction): LegacyIntent {
  return { ...unsigned, data: hexToBytes(unsigned.data) };
}

/** A signed transaction whose signature was checked, with what it does. */
export interface ParsedTransaction {
  readonly tx: SignedTransaction;
  /** Recovered signer, recipient and value. */
  readonly intent: Intent;
  readonly facts: TransactionFacts;
}

/**
 * Raw RLP as hex, with or without `0x`, from /construction/combine or any other signer.
 * @throws INVALID_SIGNED_TRANSACTION, WRONG_CHAIN_ID, TRANSACTION_TYPE_NOT_SUPPORTED,
 * TRANSACTION_UNPROTECTED, INVALID_SIGNATURE, OPERATION_NOT_SUPPORTED (contract creation)
 */
export function parseSigned(text: string, network: Network): ParsedTransaction {
  const { tx, from } = decodeSigned(text);
  if (tx.type !== 0) throw new SidecarError("TRANSACTION_TYPE_NOT_SUPPORTED", { type: tx.type });
  checkChainId(tx.chainId, network);
  if (tx.to === undefined) {
    throw new SidecarError("OPERATION_NOT_SUPPORTED", { type: "CREATE" });
  }
  return {
    tx,
    intent: { from, to: tx.to, valueAtoken: tx.valueAtoken },
    facts: {
      chainId: tx.chainId,
      nonce: tx.nonce,
      gasPriceAtoken: tx.maxFeePerGasAtoken,
      gasLimit: tx.gasLimit,
      data: bytesToHex(tx.data),
    },
  };
}

/** Facts for people and programs that parse: with the memo, where the calldata is one. */
export function describeFacts(facts: TransactionFacts): Record<string, string> {
  const memo = memoOfData(facts.data);
  return { ...encodeFacts(facts), ...(memo === undefined ? {} : { memo }) };
}

function decodeSigned(text: string): { tx: SignedTransaction; from: Address } {
  try {
    const tx = decodeTransaction(hexToBytes(parseHex(text.startsWith("0x") ? text : `0x${text}`)));
    return { tx, from: recoverSender(tx) };
  } catch (error) {
    throw error instanceof ChainError ? signedFault(error) : error;
  }
}

const SIGNED_FAULTS: Readonly<Record<string, SidecarErrorCode>> = {
  UNSUPPORTED_TRANSACTION_TYPE: "TRANSACTION_TYPE_NOT_SUPPORTED",
  UNPROTECTED_TRANSACTION: "TRANSACTION_UNPROTECTED",
  INVALID_SIGNATURE: "INVALID_SIGNATURE",
};

function signedFault(error: AppError): SidecarError {
  const code = SIGNED_FAULTS[errorCode(error)] ?? "INVALID_SIGNED_TRANSACTION";
  return new SidecarError(code, { reason: error.message }, error);
}

function checkChainId(chainId: bigint, network: Network): void {
  if (chainId !== network.evmChainId) {
    throw new SidecarError("WRONG_CHAIN_ID", {
      got: chainId.toString(),
      expected: network.evmChainId.toString(),
    });
  }
}

function readFacts(
  fields: Readonly<Record<string, unknown>>,
  place: Place,
  network: Network,
): TransactionFacts {
  const number = (key: string, max: bigint) => readUnsigned(fields[key], inside(place, key), max);
  const facts = {
    chainId: number("chain_id", MAX_ATOKEN),
    nonce: number("nonce", MAX_NONCE),
    gasPriceAtoken: number("gas_price", MAX_ATOKEN),
    gasLimit: number("gas_limit", MAX_GAS),
    data: readCalldata(fields["data"], inside(place, "data")),
  };
  checkChainId(facts.chainId, network);
  return facts;
}

function readCalldata(value: unknown, place: Place): Hex {
  if (value === undefined) return "0x";
  try {
    return parseHex(value);
  } catch (cause) {
    throw new SidecarError(place.code ?? "INVALID_REQUEST", { field: place.at }, cause);
  }
}

function readParty(value: unknown, place: Place): Address {
  try {
    return parseAccountAddress(value, place);
  } catch (cause) {
    throw new SidecarError("INVALID_UNSIGNED_TRANSACTION", { field: place.at }, cause);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new SidecarError("INVALID_UNSIGNED_TRANSACTION", { expected: "JSON" }, cause);
  }
}
