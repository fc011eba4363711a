/** The call object of a client, parsed. */
import { ZERO_ADDRESS } from "../../../../chain/address.js";
import { bytesEqual, type Hash32 } from "../../../../chain/hex.js";
import {
  type AccessListEntry,
  effectiveGasPriceAtoken,
  type GasFees,
} from "../../../../chain/transaction.js";
import type { CallRequest } from "../../../execution/calls/call-port.js";
import { RpcFault } from "../errors.js";
import {
  optionalField,
  ParamError,
  parseAddressParam,
  parseBytes,
  parseHashParam,
  parseList,
  parseObject,
  parseUint256,
  parseUint64,
} from "../params.js";

/** Entries of an access list, and slots of an entry. */
const MAX_ACCESS_LIST = 16_384;

type Fields = Readonly<Record<string, unknown>>;

/**
 * Parser of call objects for one chain. The type follows from the members that are there, a named
 * one is dropped; `input` wins over its old name `data`, but both must agree.
 */
export function callRequestParser(chainId: bigint): (value: unknown) => CallRequest {
  return (value) => {
    const fields = parseObject(value);
    const named = optionalField(fields, "chainId", parseUint256);
    if (named !== undefined && named !== chainId) {
      throw new RpcFault(
        "SERVER_ERROR",
        `chainId does not match node's (have=${named}, want=${chainId})`,
      );
    }
    const blobs = optionalField(fields, "blobVersionedHashes", (list) => list);
    if (blobs !== undefined) throw new ParamError("blob transactions are not supported");
    // What is not done must not be answered as if it were: accounts would be without their code.
    const delegations = optionalField(fields, "authorizationList", (list) => list);
    if (delegations !== undefined) throw new ParamError("EIP-7702 is not supported");
    const from = optionalField(fields, "from", parseAddressParam) ?? ZERO_ADDRESS;
    return {
      from,
      to: optionalField(fields, "to", parseAddressParam),
      valueAtoken: optionalField(fields, "value", parseUint256) ?? 0n,
      ...parsePrice(fields),
      nonce: optionalField(fields, "nonce", parseUint64),
      gasLimit: optionalField(fields, "gas", parseUint64),
      data: parseCalldata(fields),
      accessList: optionalField(fields, "accessList", parseAccessList) ?? [],
    };
  };
}

function parsePrice(fields: Fields): Pick<CallRequest, "gasPriceAtoken" | "dynamicFees"> {
  const price = optionalField(fields, "gasPrice", parseUint256);
  const maxFee = optionalField(fields, "maxFeePerGas", parseUint256);
  const tip = optionalField(fields, "maxPriorityFeePerGas", parseUint256);
  if (price !== undefined && (maxFee !== undefined || tip !== undefined)) {
    throw new RpcFault(
      "SERVER_ERROR",
      "both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified",
    );
  }
  if (maxFee === undefined && tip === undefined) return { gasPriceAtoken: price ?? 0n };
  if (maxFee !== undefined && tip !== undefined && maxFee < tip) {
    throw new RpcFault("SERVER_ERROR", `maxFeePerGas (${maxFee}) < maxPriorityFeePerGas (${tip})`);
  }
  const dynamicFees: GasFees = {
    maxFeePerGasAtoken: maxFee ?? 0n,
    maxPriorityFeePerGasAtoken: tip ?? 0n,
  };
  return { gasPriceAtoken: effectiveGasPriceAtoken(dynamicFees), dynamicFees };
}

function parseCalldata(fields: Fields): Uint8Array {
  const input = optionalField(fields, "input", parseBytes);
  const data = optionalField(fields, "data", parseBytes);
  if (input !== undefined && data !== undefined && !bytesEqual(input, data)) {
    throw new RpcFault(
      "SERVER_ERROR",
      'both "data" and "input" are set and not equal. Please use "input" to pass transaction ' +
        "call data",
    );
  }
  return input ?? data ?? new Uint8Array(0);
}

function parseAccessList(value: unknown): readonly AccessListEntry[] {
  return parseList(value, MAX_ACCESS_LIST, (item) => {
    const entry = parseObject(item);
    const address = optionalField(entry, "address", parseAddressParam) ?? leftOut("address");
    const storageKeys = optionalField(entry, "storageKeys", parseKeys) ?? leftOut("storageKeys");
    return { address, storageKeys };
  });
}

/** go-ethereum's text: an entry without keys has an empty list of them. */
function leftOut(name: string): never {
  throw new ParamError(`missing required field '${name}' for AccessTuple`);
}

function parseKeys(value: unknown): readonly Hash32[] {
  return parseList(value, MAX_ACCESS_LIST, parseHashParam);
}
