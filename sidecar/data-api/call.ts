/**
 * /call: what the chain knows and Rosetta has no words for. Results are the node's own objects
 * (quantities stay hex); `idempotent` is true only where the answer can never change.
 */
import { type Address, operatorText, toBech32 } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Network } from "../../chain/networks.js";
import {
  areParamsInvalid,
  isAnswerTooLarge,
  isHeaderMissing,
  lacksFunds,
  NodeFault,
  RpcError,
} from "../../rpc-client/errors.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import { isExecutionFailure } from "../../rpc-client/tokens/token-balances.js";
import type { HttpRoute } from "../../runtime/http/http-route.js";
import { type Asker, ClientTurns } from "../rosetta/client-turns.js";
import { type EndpointHandler, toRoute } from "../rosetta/endpoint.js";
import type { IndexReader } from "../index/index-reader.js";
import { missingBlockFault } from "../index/missing-block.js";
import { revertDetails, SidecarError } from "../rosetta/errors.js";
import { accountIdentifier, type BlockReference } from "../rosetta/identifiers.js";
import { type Fields, readText } from "../rosetta/request-fields.js";
import type { TokenRegistry } from "../rosetta/token-registry.js";
import { blockAccounts, blockTransactions, type ReadBlocks } from "./call-blocks.js";
import { CALL_METHODS, type CallMethod } from "./call-methods.js";
import {
  readConvertParameters,
  readEthCall,
  readProofParameters,
  readReceiptParameters,
  readTokenParameters,
  readTraceParameters,
} from "./call-parameters.js";

/** Which tokens are not believed; the sidecar's index knows. */
export interface TokenQuarantines {
  /** First block without the token's operations, and why; undefined while it is believed. */
  quarantineOf(contract: Address): { readonly height: Height; readonly reason: string } | undefined;
  /**
   * The newest block whose tokens were judged: a token that is believed may lie behind it.
   * @throws INDEX_BEHIND before there is one; NODE_FAULT
   */
  judgedTo(): Promise<Height>;
}

/** What the methods ask. */
export interface CallPorts {
  readonly network: Network;
  readonly client: Pick<
    EvmClient,
    "call" | "receiptObject" | "proofObject" | "traceObject" | "getBlockHeader"
  >;
  /** Names blocks as every endpoint does, and has what they hold. */
  readonly blocks: ReadBlocks;
  readonly registry: TokenRegistry;
  readonly quarantines: TokenQuarantines;
  /** What is mined, whoever can tell more of it. */
  readonly placeOf: IndexReader["placeOf"];
  /** Throws while the node contradicts the index, or is behind it: so would its receipts be. */
  readonly assertCurrent: () => Promise<void>;
}

/**
 * Longest answer of the node that is passed on: a trace can have any size, and reading, checking
 * and writing this much keeps the process from everybody else for some 200 ms.
 */
const MAX_ANSWER_BYTES = 8 * 1024 * 1024;

/** Questions to the node that run at once, by kind: together well below the connections to it. */
const CALLS_AT_ONCE = 24;
const PROOFS_AT_ONCE = 8;
const TRACES_AT_ONCE = 4;

/** Of a mined transaction of another kind, and of what a block does by itself. */
const NO_RECEIPT = "mined, and no transaction of the EVM: it has no receipt and no trace";

interface CallResult {
  readonly result: Fields;
  readonly idempotent: boolean;
}

/** What a handler may wait for, who asks, and how long its answer may be. */
type CallOptions = RpcOptions & Asker & { readonly maxResponseBytes: number };

/** Gives a result, or a finished reply with one. */
type CallHandler = (
  parameters: unknown,
  options: CallOptions,
) => Promise<CallResult | Uint8Array> | CallResult;

/** The route over a node, the registry and what the index knows of its tokens. */
export function callRoutes(ports: CallPorts): HttpRoute[] {
  const handlers: Readonly<Record<CallMethod, CallHandler>> = {
    ...chainMethods(ports),
    ...ownMethods(ports),
    block_accounts: (parameters, bounds) => blockAccounts(ports.blocks, parameters, bounds),
    block_transactions: (parameters, bounds) => blockTransactions(ports.blocks, parameters, bounds),
  };
  const handler: EndpointHandler = async (fields, { signal, remoteAddress }) => {
    const name = readText(fields["method"], { at: "method" });
    const method = CALL_METHODS.find((known) => known === name);
    if (method === undefined) throw new SidecarError("CALL_METHOD_UNKNOWN", { method: name });
    try {
      const options = { signal, remoteAddress, maxResponseBytes: MAX_ANSWER_BYTES };
      const answer = await handlers[method](fields["parameters"], options);
      return answer instanceof Uint8Array ? { bytes: answer } : { body: { ...answer } };
    } catch (error) {
      throw toCallError(error);
    }
  };
  return [toRoute({ path: "/call", fields: ["method", "parameters"], handler }, ports.network)];
}

type OwnMethod = "address_convert" | "token_status";
type ChainMethod = Exclude<CallMethod, OwnMethod | "block_accounts" | "block_transactions">;

/** Methods that the node answers. */
function chainMethods(ports: CallPorts): Record<ChainMethod, CallHandler> {
  const { client, blocks, placeOf, assertCurrent } = ports;
  // What can be made dear waits for its turn; what the exchange's own parts ask is not among it.
  const calls = new ClientTurns("calls", CALLS_AT_ONCE);
  const proofs = new ClientTurns("proofs", PROOFS_AT_ONCE);
  const traces = new ClientTurns("traces", TRACES_AT_ONCE);
  /** Asks by the block's hash: another chain's node must not answer with a state of its own. */
  const after = async <T>(
    reference: BlockReference,
    read: (hash: Hash32) => Promise<T>,
    options: RpcOptions,
  ): Promise<T> => {
    const block = await blocks.resolve(reference);
    try {
      return await read(block.hash);
    } catch (error) {
      throw isHeaderMissing(error) ? await missingBlockFault(client, block, options) : error;
    }
  };
  const receiptOf = async (hash: Hash32, options: RpcOptions) => {
    await assertCurrent();
    // Looked up first: what is mined meanwhile has a receipt a moment later.
    const place = placeOf(hash);
    const receipt = await client.receiptObject(hash, options);
    if (receipt !== undefined) return receipt;
    if (place === undefined) throw new SidecarError("TRANSACTION_NOT_MINED", { hash });
    const block = await blocks.resolve({ index: place.height, hash: undefined });
    // A node that has deleted the block says so; one that has it not yet may have the receipt later.
    const header = await client.getBlockHeader(block.index, options);
    if (header?.hash !== block.hash) throw await missingBlockFault(client, block, options);
    throw new SidecarError("CALL_FAILED", { reason: NO_RECEIPT, hash });
  };
  return {
    async eth_call(parameters, options) {
      const { message, block } = readEthCall(parameters);
      const read = (hash: Hash32) => calls.run(options, () => client.call(message, hash, options));
      const data = await after(block, read, options);
      return { result: { data }, ...fixed(block) };
    },
    async eth_getTransactionReceipt(parameters, options) {
      const receipt = await receiptOf(readReceiptParameters(parameters), options);
      return { result: receipt, idempotent: true };
    },
    async eth_getProof(parameters, options) {
      const { block, ...account } = readProofParameters(parameters);
      const read = (hash: Hash32) =>
        proofs.run(options, () => client.proofObject(account, hash, options));
      return { result: await after(block, read, options), ...fixed(block) };
    },
    async debug_traceTransaction(parameters, options) {
      const { hash, trace } = readTraceParameters(parameters);
      await receiptOf(hash, options);
      const read = () => client.traceObject(hash, trace, options);
      return { result: await traces.run(options, read), idempotent: true };
    },
  };
}

/** A block that was named by index or hash is final; the tip is another one soon. */
function fixed({ index, hash }: BlockReference): { readonly idempotent: boolean } {
  return { idempotent: index !== undefined || hash !== undefined };
}

/** Methods that the node is not asked for. */
function ownMethods({ registry, quarantines }: CallPorts): Record<OwnMethod, CallHandler> {
  return {
    address_convert(parameters) {
      const address = readConvertParameters(parameters);
      const forms = {
        address: accountIdentifier(address).address,
        bech32: toBech32(address),
        bech32_validator: operatorText(address),
      };
      return { result: forms, idempotent: true };
    },
    async token_status(parameters) {
      const contract = readTokenParameters(parameters);
      const token = registry.byAddress(contract);
      if (token === undefined) {
        throw new SidecarError("UNKNOWN_CURRENCY", { field: "parameters.contract_address" });
      }
      const judgedTo = await quarantines.judgedTo();
      const quarantine = quarantines.quarantineOf(contract);
      const result = {
        currency: token.currency,
        registry_version: registry.version,
        quarantined: quarantine !== undefined,
        judged_to_index: judgedTo,
        ...(quarantine === undefined
          ? {}
          : { quarantined_from_index: quarantine.height, reason: quarantine.reason }),
      };
      return { result, idempotent: false };
    },
  };
}

/** Outcomes of a call are listed errors of their own; everything else stays what it is. */
function toCallError(error: unknown): unknown {
  if (error instanceof NodeFault && error.code === "ANSWER_TOO_LARGE") return tooLarge(error);
  if (!(error instanceof RpcError)) return error;
  if (isAnswerTooLarge(error)) return tooLarge(error);
  const reason = error.nodeMessage;
  if (areParamsInvalid(error)) {
    return new SidecarError("CALL_PARAMETERS_INVALID", { reason }, error);
  }
  if (!isExecutionFailure(error) && !lacksFunds(error)) return error;
  return new SidecarError("CALL_FAILED", { reason, ...revertDetails(error.rpc.data) }, error);
}

function tooLarge(cause: Error): SidecarError {
  const details = { reason: "the answer is too large", max_bytes: MAX_ANSWER_BYTES };
  return new SidecarError("CALL_FAILED", details, cause);
}
