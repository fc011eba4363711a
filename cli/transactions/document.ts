/**
 * A Cosmos transaction from messages to signed bytes, and its JSON as the SDK's command line writes
 * and reads it. Bytes are made by the published descriptors and read back by the node's own decoder
 * and rules before anybody sees them: two encoders have to agree.
 */
import { type Address, toBech32 } from "../../chain/address.js";
import { signatureFault, staticCosmosFault } from "../../chain/cosmos/ante.js";
import {
  type CosmosTransaction,
  decodeCosmosTransaction,
  PUBLIC_KEY_TYPE_URLS,
  SIGN_MODES,
} from "../../chain/cosmos/cosmos-transaction.js";
import {
  aminoSignBytes,
  aminoSignDoc,
  directSignBytes,
  signDigest,
} from "../../chain/cosmos/sign-doc.js";
import { publicKeyOf, secp256k1 } from "../../chain/crypto.js";
import { ChainError, errorMessage } from "../../chain/errors.js";
import { NETWORKS } from "../../chain/networks.js";
import { decodeMessage, encodeMessage } from "../../chain/protobuf/codec.js";
import type { Descriptors } from "../../chain/protobuf/descriptors.js";
import { JsonWriter } from "../../chain/protobuf/json.js";
import { JsonReader } from "../../chain/protobuf/json-reader.js";
import { MessageReader, type ProtoMessage } from "../../chain/protobuf/values.js";
import { BASE_DENOM, type Atoken } from "../../chain/units.js";
import { parseJsonBody } from "../../runtime/http/http-body.js";
import { CliError } from "../errors.js";
import { coin, usage } from "./values.js";

const TX = "cosmos.tx.v1beta1.Tx";
const BODY = "cosmos.tx.v1beta1.TxBody";
const AUTH_INFO = "cosmos.tx.v1beta1.AuthInfo";
const RAW = "cosmos.tx.v1beta1.TxRaw";

/** Bytes of a signature: r and s. */
const SIGNATURE_BYTES = 64;

/** Largest gas limit that signing holds a transaction against; the chain's own bound is lower. */
const MOST_GAS = 2n ** 63n;

/** A message: its full name and its fields. */
export interface TxMessage {
  readonly name: string;
  readonly fields: ProtoMessage;
}

/** A transaction that nobody has signed. */
export interface Draft {
  readonly messages: readonly ProtoMessage[];
  readonly memo: string;
  /** 0 for none. */
  readonly timeoutHeight: bigint;
  /** `google.protobuf.Timestamp`; absent for none. */
  readonly timeoutTimestamp?: ProtoMessage | undefined;
  readonly gasLimit: bigint;
  readonly feeAtoken: Atoken;
}

/** What a signature is over, beside the draft. */
export interface SigningPlace {
  readonly chainId: string;
  readonly sequence: bigint;
  readonly mode: keyof typeof SIGN_MODES;
}

/** Messages in Any. */
export function packMessages(
  types: Descriptors,
  messages: readonly TxMessage[],
): readonly ProtoMessage[] {
  return messages.map(({ name, fields }) => {
    return { type_url: `/${name}`, value: encodeMessage(types.message(name), fields) };
  });
}

function bodyOf({ messages, memo, timeoutHeight, timeoutTimestamp }: Draft): ProtoMessage {
  const timeouts = { timeout_height: timeoutHeight, timeout_timestamp: timeoutTimestamp };
  return { messages, memo, ...timeouts };
}

function feeOf({ gasLimit, feeAtoken }: Draft): ProtoMessage {
  return { amount: feeAtoken === 0n ? [] : [coin(feeAtoken)], gas_limit: gasLimit };
}

/** JSON of a draft, as `--generate-only` prints it. */
export function draftJson(types: Descriptors, draft: Draft): string {
  const tx = { body: bodyOf(draft), auth_info: { fee: feeOf(draft) } };
  return new JsonWriter(types).text(types.message(TX), tx);
}

/**
 * Bytes of a transaction for a simulation: with a key, and with a signature of nothing, so that they
 * are as long as those that will be signed.
 */
export function simulatedBytes(
  types: Descriptors,
  draft: Draft,
  { publicKey, sequence }: { readonly publicKey: Uint8Array; readonly sequence: bigint },
): Uint8Array {
  const place = { sequence, mode: "direct" as const };
  return rawBytes(types, draft, { ...place, publicKey, signature: new Uint8Array(64) });
}

/**
 * Signs a draft. What it gives was read back and fulfils every rule that does not depend on state.
 * @throws USAGE where the chain would refuse it, with the reason
 */
export function signDraft(
  types: Descriptors,
  draft: Draft,
  place: SigningPlace,
  privateKey: Uint8Array,
): Buffer {
  const publicKey = compressedKey(privateKey);
  const { sequence, mode, chainId } = place;
  const whole = (signature: Uint8Array) =>
    rawBytes(types, draft, { sequence, mode, publicKey, signature });
  const unsigned = readTransaction(whole(new Uint8Array(SIGNATURE_BYTES)));
  const document =
    mode === "direct"
      ? directSignBytes(unsigned, chainId)
      : aminoSignBytes(aminoSignDoc(unsigned, chainId));
  const { r, s } = secp256k1.sign(signDigest(document), privateKey);
  const signed = whole(Buffer.concat([r, s]));
  assertSigned(readTransaction(signed), chainId);
  return signed;
}

/** A key as transactions carry it, 33 bytes. */
export function compressedKey(privateKey: Uint8Array): Uint8Array {
  const point = publicKeyOf(privateKey);
  const isOdd = ((point[63] ?? 0) & 1) === 1;
  return Buffer.concat([Buffer.from([isOdd ? 3 : 2]), point.subarray(0, 32)]);
}

function rawBytes(
  types: Descriptors,
  draft: Draft,
  signer: {
    readonly sequence: bigint;
    readonly mode: keyof typeof SIGN_MODES;
    readonly publicKey: Uint8Array;
    readonly signature: Uint8Array;
  },
): Buffer {
  const [typeUrl = ""] = PUBLIC_KEY_TYPE_URLS;
  const key = encodeMessage(types.message(typeUrl.slice(1)), { key: signer.publicKey });
  const info = {
    public_key: { type_url: typeUrl, value: key },
    mode_info: { single: { mode: SIGN_MODES[signer.mode] } },
    sequence: signer.sequence,
  };
  const auth = { signer_infos: [info], fee: feeOf(draft) };
  return encodeMessage(types.message(RAW), {
    body_bytes: encodeMessage(types.message(BODY), bodyOf(draft)),
    auth_info_bytes: encodeMessage(types.message(AUTH_INFO), auth),
    signatures: [signer.signature],
  });
}

function readTransaction(bytes: Uint8Array): CosmosTransaction {
  try {
    return decodeCosmosTransaction(bytes);
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    throw usage(`The chain would refuse this transaction: ${errorMessage(error)}.`);
  }
}

function assertSigned(tx: CosmosTransaction, chainId: string): void {
  const networks = Object.values(NETWORKS);
  const network = networks.find(({ cosmosChainId }) => cosmosChainId === chainId);
  const limits = {
    cosmosChainId: chainId,
    chainId: network?.evmChainId ?? 0n,
    maxTransactionGas: MOST_GAS,
  };
  const fault = staticCosmosFault(tx, limits) ?? signatureFault(tx, limits);
  if (fault !== undefined) throw usage(`The chain would refuse this transaction: ${fault.log}.`);
}

/** JSON of a signed transaction, as `tx sign` prints it. */
export function signedJson(types: Descriptors, bytes: Uint8Array): string {
  const type = types.message(TX);
  return new JsonWriter(types).text(type, decodeMessage(type, bytes));
}

/**
 * A transaction's JSON as bytes of its `Tx`.
 * @throws USAGE
 */
export function parseTransaction(types: Descriptors, text: string, file: string): Buffer {
  let json: unknown;
  try {
    json = parseJsonBody(Buffer.from(text));
  } catch (cause) {
    throw new CliError("USAGE", `${file} holds no JSON: ${errorMessage(cause)}.`, { cause });
  }
  try {
    const type = types.message(TX);
    return encodeMessage(type, new JsonReader(types).message(type, json));
  } catch (error) {
    if (!(error instanceof ChainError)) throw error;
    throw usage(`${file} holds no transaction: ${errorMessage(error)}.`);
  }
}

/**
 * A transaction of a file as a draft: its signatures are left out.
 * @throws USAGE for what signing would silently lose
 */
export function draftOf(types: Descriptors, bytes: Uint8Array): Draft {
  const tx = new MessageReader(decodeMessage(types.message(TX), bytes));
  const body = tx.submessage("body");
  const fee = tx.submessage("auth_info").submessage("fee");
  const amounts = fee.messages("amount");
  if (amounts.length > 1 || fee.text("payer") !== "" || fee.text("granter") !== "") {
    throw usage("A fee is one coin, paid by who signs: this transaction names another.");
  }
  const draft = {
    messages: body.messages("messages").map(({ value }) => value),
    memo: body.text("memo"),
    timeoutHeight: body.bigint("timeout_height"),
    timeoutTimestamp: body.has("timeout_timestamp")
      ? body.submessage("timeout_timestamp").value
      : undefined,
    gasLimit: fee.bigint("gas_limit"),
    feeAtoken: amounts[0]?.bigint("amount") ?? 0n,
  };
  const [denom] = amounts.map((one) => one.text("denom"));
  if (denom !== undefined && denom !== BASE_DENOM) {
    throw usage(`Fees are paid in ${BASE_DENOM}, not in ${denom.slice(0, 100)}.`);
  }
  const again = encodeMessage(types.message(BODY), bodyOf(draft));
  if (Buffer.compare(again, encodeMessage(types.message(BODY), body.value)) !== 0) {
    throw usage("This transaction has options that the chain refuses: leave them out.");
  }
  return draft;
}

/**
 * The account that has to sign a draft.
 * @throws USAGE where that is not one account
 */
export function signerOfDraft(types: Descriptors, draft: Draft): Address {
  const bytes = simulatedBytes(types, draft, { publicKey: new Uint8Array(33), sequence: 0n });
  const [signer, ...others] = readTransaction(bytes).signers;
  if (signer === undefined || others.length > 0) {
    throw usage("Messages of several signers cannot be in one transaction on this chain.");
  }
  return signer;
}

/** Who a draft belongs to, where the key given is another's. Throws USAGE. */
export function assertSigner(types: Descriptors, draft: Draft, signer: Address): void {
  const wanted = signerOfDraft(types, draft);
  if (wanted === signer) return;
  const [has, needs] = [toBech32(signer), toBech32(wanted)];
  throw usage(`This transaction is signed by ${needs}, and --from is ${has}.`);
}
