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
import { MAX_GAS, MAX_NONCE } from "../../chain/transaction-rules.js";
import { MAX_ATOKEN, type Atoken } from "../../chain/units.js";
import { SidecarError, type SidecarErrorCode } from "../rosetta/errors.js";
import { accountIdentifier, parseAccountAddress } from "../rosetta/identifiers.js";
import { memoOfData } from "../rosetta/memo.js";
import {
  fault,
  inside,
  type Place,
  readFields,
  readHex,
  readMaybe,
  readUnsigned,
} from "../rosetta/request-fields.js";
import type { TokenRegistry } from "../rosetta/token-registry.js";
import { callOf, checkChosenData, type Intent, intentOf } from "../rosetta/evm-call.js";
import { checkIntent, createIntent, intentTarget, meantIntent, readToken } from "./intent.js";
import { checkStaticRules } from "./static-rules.js";

/** What every reading depends on: the chain, and the tokens that have names. */
export interface ConstructionContext {
  readonly network: Network;
  readonly registry: TokenRegistry;
}

/** Facts of the network that a transaction needs: the `metadata` of payloads. */
export interface TransactionFacts {
  readonly chainId: bigint;
  readonly nonce: bigint;
  readonly gasPriceAtoken: Atoken;
  readonly gasLimit: bigint;
  /** Calldata, `0x` for none; that of a token transfer follows from its intent. */
  readonly data: Hex;
}

/** A whole legacy transaction as people mean it. */
export interface Construction {
  readonly intent: Intent;
  readonly facts: TransactionFacts;
}

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
 * `metadata` of a payloads request for an intent. `data` may be left out; where it is given for a
 * token transfer, it must be that transfer's.
 * @throws INVALID_METADATA, WRONG_CHAIN_ID, INTRINSIC_GAS_TOO_LOW, TRANSACTION_TOO_LARGE
 */
export function parseFacts(
  value: unknown,
  intent: Intent,
  context: ConstructionContext,
): TransactionFacts {
  const place: Place = { at: "metadata", code: "INVALID_METADATA" };
  return readFacts(readFields(value, place, FACT_FIELDS), { place, intent, ...context });
}

/** The unsigned transaction as text: the same fields give the same bytes. */
export function encodeUnsigned({ intent, facts }: Construction): string {
  return JSON.stringify({
    version: UNSIGNED_VERSION,
    from: accountIdentifier(intent.from).address,
    ...intentTarget(intent),
    ...encodeFacts(facts),
  });
}

/**
 * Text that `encodeUnsigned` made, and only that: anything that would be encoded otherwise is
 * refused, so nothing can hide beside the fields that are read, and what no operations ask for.
 * @throws INVALID_UNSIGNED_TRANSACTION, UNKNOWN_CURRENCY, WRONG_CHAIN_ID, INTRINSIC_GAS_TOO_LOW,
 * TRANSACTION_TOO_LARGE
 */
export function parseUnsigned(text: string, context: ConstructionContext): Construction {
  const place: Place = { at: "unsigned_transaction", code: "INVALID_UNSIGNED_TRANSACTION" };
  // Unsigned RLP names no sender, so it cannot be read back to an intent.
  if (/^(0x)?[0-9a-fA-F]+$/.test(text)) throw fault(place, "the text of payloads, not bare RLP");
  const fields = readFields(parseJson(text), place);
  const movement = {
    from: readParty(fields["from"], inside(place, "from")),
    to: readParty(fields["to"], inside(place, "to")),
    token: readToken(fields["currency"], inside(place, "currency"), context.registry),
    units: readUnsigned(fields["value"], inside(place, "value"), MAX_ATOKEN),
  };
  const transfer = createIntent(movement, inside(place, "to"));
  const intent = meantIntent(transfer, fields["data"], context.registry);
  const facts = readFacts(fields, { place, intent, ...context });
  if (encodeUnsigned({ intent, facts }) !== text) throw fault(place, "the text of payloads");
  checkIntent(intent, place, context.registry);
  return { intent, facts };
}

/** The unsigned transaction as the chain's own primitives take it. */
export function toLegacyIntent({ intent, facts }: Construction): LegacyIntent {
  const { to, valueAtoken, data } = callOf(intent, facts.data);
  return { ...facts, to, valueAtoken, data: hexToBytes(data) };
}

/** A signed transaction whose signature was checked, with what it does. */
export interface ParsedTransaction extends Construction {
  readonly tx: SignedTransaction;
}

/**
 * Raw RLP as hex, with or without `0x`, from /construction/combine or any other signer.
 * @throws INVALID_SIGNED_TRANSACTION, WRONG_CHAIN_ID, TRANSACTION_TYPE_NOT_SUPPORTED,
 * TRANSACTION_UNPROTECTED, INVALID_SIGNATURE, OPERATION_NOT_SUPPORTED (contract creation)
 */
export function parseSigned(text: string, context: ConstructionContext): ParsedTransaction {
  const { tx, from } = decodeSigned(text);
  if (tx.type !== 0) throw new SidecarError("TRANSACTION_TYPE_NOT_SUPPORTED", { type: tx.type });
  checkChainId(tx.chainId, context.network);
  if (tx.to === undefined) {
    throw new SidecarError("OPERATION_NOT_SUPPORTED", { type: "CREATE" });
  }
  const call = { to: tx.to, valueAtoken: tx.valueAtoken, data: bytesToHex(tx.data) };
  return {
    tx,
    intent: intentOf(from, call, context.registry),
    facts: {
      chainId: tx.chainId,
      nonce: tx.nonce,
      gasPriceAtoken: tx.maxFeePerGasAtoken,
      gasLimit: tx.gasLimit,
      data: call.data,
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
  meaning: ConstructionContext & { readonly place: Place; readonly intent: Intent },
): TransactionFacts {
  const { place } = meaning;
  const number = (key: string, max: bigint) => readUnsigned(fields[key], inside(place, key), max);
  const facts = {
    chainId: number("chain_id", MAX_ATOKEN),
    nonce: number("nonce", MAX_NONCE),
    gasPriceAtoken: number("gas_price", MAX_ATOKEN),
    gasLimit: number("gas_limit", MAX_GAS),
    data: readCalldata(fields["data"], { ...meaning, place: inside(place, "data") }),
  };
  checkChainId(facts.chainId, meaning.network);
  if (facts.gasPriceAtoken * facts.gasLimit > MAX_ATOKEN) {
    throw fault(inside(place, "gas_price"), "a fee below 2^256 atoken");
  }
  checkStaticRules(meaning.intent, facts);
  return facts;
}

function readCalldata(
  value: unknown,
  meaning: ConstructionContext & { readonly place: Place; readonly intent: Intent },
): Hex {
  const { place, intent } = meaning;
  const given = readMaybe(value, place, readHex);
  if (intent.type === "CALL") {
    const data = given ?? "0x";
    checkChosenData(intent, data, meaning);
    return data;
  }
  const { data } = callOf(intent, "0x");
  if (given !== undefined && given !== data) throw fault(place, "the calldata of this intent");
  return data;
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
