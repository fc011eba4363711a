/** The construction endpoints that ask the node: metadata and submit. */
import { bytesToHex } from "../../chain/hex.js";
import type { Network } from "../../chain/networks.js";
import { RpcError } from "../../rpc-client/errors.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import { type SubmitRefusal, submitRefusalOf } from "../../rpc-client/submit-refusal.js";
import type { HttpRoute } from "../../runtime/http-server.js";
import { type EndpointHandler, toRoute } from "../endpoint.js";
import { SidecarError, type SidecarErrorCode } from "../errors.js";
import { tokenAmount } from "../identifiers.js";
import { readItems, readMaybe, readText } from "../request-fields.js";
import type { Intent } from "./intent.js";
import { transactionIdentifier } from "./offline.js";
import { encodeFacts, parseSigned } from "./opaque-tx.js";
import { MAX_GAS, multipliedPrice, type Overrides, parseOptions } from "./options.js";

/** Policy of suggested fees. */
export interface FeePolicy {
  /** Added to every estimate, percent: state may change until the transaction is mined. */
  readonly gasMarginPercent: number;
  /** Lowest price that is suggested, atoken per gas. */
  readonly minimumGasPriceAtoken: bigint;
}

/** The routes over a node. */
export function onlineRoutes(options: {
  readonly network: Network;
  readonly client: EvmClient;
  readonly feePolicy: FeePolicy;
}): HttpRoute[] {
  const { network, client, feePolicy } = options;
  const metadata: EndpointHandler = async (fields, { signal }) => {
    readMaybe(fields["public_keys"], { at: "public_keys" }, readItems);
    const { intent, overrides } = parseOptions(fields["options"]);
    await checkNode(client, network, { signal });
    const chosen = await chooseFees({ client, feePolicy }, intent, overrides, { signal });
    const facts = { ...chosen, chainId: network.evmChainId, data: overrides.data };
    const feeAtoken = chosen.gasLimit * chosen.gasPriceAtoken;
    return { body: { metadata: encodeFacts(facts), suggested_fee: [tokenAmount(feeAtoken)] } };
  };
  const submit: EndpointHandler = async (fields, { signal }) => {
    const text = readText(fields["signed_transaction"], { at: "signed_transaction" });
    const { tx } = parseSigned(text, network);
    const [sent] = await client.sendRawTransactions([bytesToHex(tx.raw)], { signal });
    if (sent === undefined) throw new SidecarError("NODE_FAULT", { reason: "no answer" });
    if (sent.outcome === "accepted") {
      if (sent.hash !== tx.hash) throw new SidecarError("NODE_FAULT", { reason: "another hash" });
    } else if (!(await isKnown(client, tx.hash, sent.error, { signal }))) {
      throw submitError(sent.error);
    }
    return { body: transactionIdentifier(tx.hash) };
  };
  return [
    toRoute(
      { path: "/construction/metadata", fields: ["options", "public_keys"], handler: metadata },
      network,
    ),
    toRoute(
      { path: "/construction/submit", fields: ["signed_transaction"], handler: submit },
      network,
    ),
  ];
}

/** A node of another chain or one that is behind would give a wrong nonce. */
async function checkNode(client: EvmClient, network: Network, rpc: RpcOptions): Promise<void> {
  const [chainId, isSyncing] = await Promise.all([client.chainId(rpc), client.isSyncing(rpc)]);
  if (chainId !== network.evmChainId) {
    throw new SidecarError("NODE_WRONG_CHAIN", {
      got: chainId.toString(),
      expected: network.evmChainId.toString(),
    });
  }
  if (isSyncing) throw new SidecarError("NODE_SYNCING");
}

interface ChosenFees {
  readonly nonce: bigint;
  readonly gasLimit: bigint;
  readonly gasPriceAtoken: bigint;
}

/** Nonce, gas and price as chosen by the caller or told by the node; nothing is reserved. */
async function chooseFees(
  { client, feePolicy }: { client: EvmClient; feePolicy: FeePolicy },
  intent: Intent,
  overrides: Overrides,
  rpc: RpcOptions,
): Promise<ChosenFees> {
  const [nonce, suggestedAtoken, balanceAtoken, gasLimit] = await Promise.all([
    overrides.nonce ?? client.getTransactionCount(intent.from, "pending", rpc),
    overrides.gasPriceAtoken ?? client.gasPrice(rpc),
    client.getBalance(intent.from, "latest", rpc),
    overrides.gasLimit ?? estimate({ client, feePolicy }, intent, overrides, rpc),
  ]);
  const gasPriceAtoken =
    overrides.gasPriceAtoken ??
    larger(
      multipliedPrice(suggestedAtoken, overrides.feeMultiplier),
      feePolicy.minimumGasPriceAtoken,
    );
  const feeAtoken = gasLimit * gasPriceAtoken;
  if (overrides.maxFeeAtoken !== undefined && feeAtoken > overrides.maxFeeAtoken) {
    throw new SidecarError("MAX_FEE_EXCEEDED", {
      fee: feeAtoken.toString(),
      max_fee: overrides.maxFeeAtoken.toString(),
    });
  }
  if (balanceAtoken < intent.valueAtoken + feeAtoken) {
    throw new SidecarError("INSUFFICIENT_FUNDS", {
      balance: balanceAtoken.toString(),
      needed: (intent.valueAtoken + feeAtoken).toString(),
    });
  }
  return { nonce, gasLimit, gasPriceAtoken };
}

async function estimate(
  { client, feePolicy }: { client: EvmClient; feePolicy: FeePolicy },
  intent: Intent,
  overrides: Overrides,
  rpc: RpcOptions,
): Promise<bigint> {
  try {
    const gas = await client.estimateGas({ ...intent, data: overrides.data }, rpc);
    const gasLimit = (gas * BigInt(100 + feePolicy.gasMarginPercent) + 99n) / 100n;
    return gasLimit < MAX_GAS ? gasLimit : MAX_GAS;
  } catch (error) {
    throw error instanceof RpcError ? estimateError(error) : error;
  }
}

/** JSON-RPC number of a revert (geth). */
const REVERT_CODE = 3;

function estimateError(error: RpcError): SidecarError | RpcError {
  const reason = error.nodeMessage;
  if (error.rpc.rpcCode === REVERT_CODE) {
    return new SidecarError("CALL_REVERTED", { reason, data: error.rpc.data }, error);
  }
  if (/insufficient funds/i.test(reason)) {
    return new SidecarError("INSUFFICIENT_FUNDS", { reason }, error);
  }
  if (/gas required exceeds allowance/i.test(reason)) {
    return new SidecarError("GAS_LIMIT_EXCEEDED", { reason }, error);
  }
  return error;
}

/** True when the refusal only says that these very bytes were taken before. */
async function isKnown(
  client: EvmClient,
  hash: Parameters<EvmClient["getTransactionReceipt"]>[0],
  error: RpcError,
  rpc: RpcOptions,
): Promise<boolean> {
  const refusal = submitRefusalOf(error);
  if (refusal === "ALREADY_KNOWN") return true;
  // Its own nonce is too low once it is mined: the receipt tells that case from a real conflict.
  if (refusal !== "NONCE_TOO_LOW") return false;
  return (await client.getTransactionReceipt(hash, rpc)) !== undefined;
}

const SUBMIT_ERRORS: Readonly<Record<SubmitRefusal, SidecarErrorCode>> = {
  ALREADY_KNOWN: "INTERNAL",
  NONCE_TOO_LOW: "NONCE_TOO_LOW",
  NONCE_TOO_HIGH: "NONCE_TOO_HIGH",
  REPLACEMENT_UNDERPRICED: "REPLACEMENT_UNDERPRICED",
  GAS_PRICE_TOO_LOW: "GAS_PRICE_TOO_LOW",
  INTRINSIC_GAS_TOO_LOW: "INTRINSIC_GAS_TOO_LOW",
  GAS_LIMIT_EXCEEDED: "GAS_LIMIT_EXCEEDED",
  INSUFFICIENT_FUNDS: "INSUFFICIENT_FUNDS",
  // The configured chain id was checked before: a node that refuses it is another chain's.
  WRONG_CHAIN_ID: "NODE_WRONG_CHAIN",
  TYPE_NOT_SUPPORTED: "TRANSACTION_TYPE_NOT_SUPPORTED",
  POOL_FULL: "MEMPOOL_FULL",
  ACCOUNT_LIMIT: "ACCOUNT_LIMIT_EXCEEDED",
  TRANSACTION_TOO_LARGE: "TRANSACTION_TOO_LARGE",
  NODE_HALTED: "NODE_HALTED",
  OTHER: "TRANSACTION_REFUSED",
};

function submitError(error: RpcError): SidecarError {
  const { rpcCode } = error.rpc;
  // A limit that was hit says nothing about the transaction.
  const isBusy = rpcCode === -32005 || rpcCode === -32002;
  const code = isBusy ? "NODE_BUSY" : SUBMIT_ERRORS[submitRefusalOf(error)];
  return new SidecarError(code, { reason: error.nodeMessage }, error);
}

function larger(left: bigint, right: bigint): bigint {
  return left > right ? left : right;
}
