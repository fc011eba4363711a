/** JSON-RPC errors: the codes and texts that Ethereum clients match on (go-ethereum's). */
import { AppError, errorCode, errorMessage } from "../../../chain/errors.js";
import { bytesToHex, type Hex } from "../../../chain/hex.js";
import { EVM_ERROR_NUMBERS } from "../../../chain/evm/evm-failure.js";
import { revertText } from "../../../chain/evm/revert-reason.js";
import type { SimulationRefusal } from "../../execution/calls/call-port.js";

/** Faults that these servers report by themselves, with their JSON-RPC numbers. */
export const RPC_ERROR_NUMBERS = {
  PARSE_ERROR: -32700,
  INVALID_REQUEST: -32600,
  METHOD_NOT_FOUND: -32601,
  INVALID_PARAMS: -32602,
  INTERNAL: -32603,
  SERVER_ERROR: -32000,
  HEADER_NOT_FOUND: -32000,
  REQUEST_TIMED_OUT: -32002,
  RESPONSE_TOO_LARGE: -32003,
  LIMIT_EXCEEDED: -32005,
  CLIENT_LIMIT_EXCEEDED: -38026,
  EXECUTION_REVERTED: EVM_ERROR_NUMBERS.reverted,
  SEND_TIMED_OUT: 4,
  HISTORY_PRUNED: 4444,
} as const;

/** One of the codes of `RPC_ERROR_NUMBERS`. */
export type RpcFaultCode = keyof typeof RPC_ERROR_NUMBERS;

/** A fault found by a JSON-RPC server; `message` is sent to the client as it is. */
export class RpcFault extends AppError<RpcFaultCode> {
  /**
   * Sent as `error.data`: a revert's bytes, for clients read it as those, and the hash of what was
   * sent and is not in a block yet.
   */
  readonly data: Hex | undefined;

  constructor(code: RpcFaultCode, message: string, data?: Hex) {
    super(code, message);
    this.data = data;
  }
}

/** The `error` member of a JSON-RPC answer. */
export interface RpcErrorObject {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** The answer to a method that is not served. */
export function methodNotFound(name: string): RpcFault {
  // The name is echoed as go-ethereum does, but bounded: it comes from the client.
  const shown = name.length > 100 ? `${name.slice(0, 100)}...` : name;
  return new RpcFault("METHOD_NOT_FOUND", `the method ${shown} does not exist/is not available`);
}

/** A parameter that cannot be understood. */
export function invalidParams(message: string): RpcFault {
  return new RpcFault("INVALID_PARAMS", message);
}

/** The error of a reverted call: code 3, the reason where it can be read, the bytes as data. */
export function revertFault(returnData: Uint8Array): RpcFault {
  return new RpcFault("EXECUTION_REVERTED", revertText(returnData), bytesToHex(returnData));
}

/** An answer that is larger than what one may be, or than what is left of its batch's. */
export function responseTooLarge(): RpcFault {
  return new RpcFault("RESPONSE_TOO_LARGE", "response too large");
}

/** State of a block that this node does not have. */
export function headerNotFound(): RpcFault {
  return new RpcFault("HEADER_NOT_FOUND", "header not found");
}

/** What this node had and has no more, or never got (EIP-4444, as go-ethereum answers it). */
export function historyPruned(): RpcFault {
  return new RpcFault("HISTORY_PRUNED", "pruned history unavailable");
}

/**
 * Refusals of a transaction: -32000 is the only number that clients treat as a node error, so the
 * number that execution-apis drafts for the case travels in `data`.
 */
const POOL_DRAFT_NUMBERS: ReadonlyMap<string, number | undefined> = new Map([
  ["NONCE_TOO_LOW", 1],
  ["NONCE_TOO_HIGH", 2],
  ["ALREADY_KNOWN", 1000],
  ["INSUFFICIENT_FUNDS", 809],
  ["INTRINSIC_GAS_TOO_LOW", 800],
  ["GAS_LIMIT_EXCEEDED", undefined],
  ["GAS_PRICE_BELOW_MINIMUM", 802],
  ["REPLACEMENT_UNDERPRICED", undefined],
  ["TIP_ABOVE_FEE_CAP", undefined],
  ["UNDERPRICED", undefined],
  ["POOL_FULL", undefined],
  ["ACCOUNT_LIMIT", undefined],
  ["INVALID_CHAIN_ID", undefined],
  ["UNPROTECTED", undefined],
  ["TYPE_NOT_SUPPORTED", undefined],
  ["INVALID_SENDER", undefined],
  ["SENDER_NOT_EOA", undefined],
  ["TRANSACTION_TOO_LARGE", undefined],
  ["INITCODE_TOO_LARGE", undefined],
  ["INVALID_TRANSACTION", undefined],
  ["NODE_HALTED", undefined],
]);

/** The answer to a refused raw transaction: the pool's text, -32000, and its code in `data`. */
export function poolRefusal(error: Error): RpcErrorObject | undefined {
  const reason = errorCode(error);
  if (!POOL_DRAFT_NUMBERS.has(reason)) return undefined;
  const code = POOL_DRAFT_NUMBERS.get(reason);
  return {
    code: RPC_ERROR_NUMBERS.SERVER_ERROR,
    message: error.message,
    data: code === undefined ? { reason } : { code, reason },
  };
}

/** A refused raw transaction on its way to the client. */
export class RefusedTransaction extends AppError<"TRANSACTION_REFUSED"> {
  constructor(readonly answer: RpcErrorObject) {
    super("TRANSACTION_REFUSED", answer.message);
  }
}

/** JSON-RPC answer to any thrown value; undefined for a fault of ours, which must be logged. */
export function toRpcError(error: unknown): RpcErrorObject | undefined {
  if (error instanceof RefusedTransaction) return error.answer;
  if (error instanceof RpcFault) {
    const { message, data } = error;
    const code = RPC_ERROR_NUMBERS[error.code];
    return data === undefined ? { code, message } : { code, message, data };
  }
  switch (errorCode(error)) {
    case "CALL_TIMEOUT":
      return { code: RPC_ERROR_NUMBERS.REQUEST_TIMED_OUT, message: "request timed out" };
    case "CALL_QUEUE_FULL":
      return { code: RPC_ERROR_NUMBERS.LIMIT_EXCEEDED, message: errorMessage(error) };
    case "HEADER_NOT_FOUND":
      return { code: RPC_ERROR_NUMBERS.HEADER_NOT_FOUND, message: "header not found" };
    case "HISTORY_PRUNED":
      return { code: RPC_ERROR_NUMBERS.HISTORY_PRUNED, message: "pruned history unavailable" };
    case "TRACE_TOO_LARGE":
      return { code: RPC_ERROR_NUMBERS.RESPONSE_TOO_LARGE, message: errorMessage(error) };
    case "SIMULATION_REFUSED":
      return simulationRefusal(error);
    case "INSUFFICIENT_FUNDS":
    case "INVALID_OVERRIDE":
    case "GAS_ALLOWANCE_EXCEEDED":
    case "INVALID_MESSAGE":
    case "CALL_POOL_CLOSED":
      return { code: RPC_ERROR_NUMBERS.SERVER_ERROR, message: errorMessage(error) };
    default:
      return undefined;
  }
}

/** go-ethereum's numbers for simulations that cannot be carried out. */
const SIMULATION_NUMBERS: ReadonlyMap<unknown, number> = new Map<SimulationRefusal, number>([
  ["NONCE_TOO_LOW", -38010],
  ["NONCE_TOO_HIGH", -38011],
  ["FEE_BELOW_BASE_FEE", -38012],
  ["INTRINSIC_GAS_TOO_LOW", -38013],
  ["INSUFFICIENT_FUNDS", -38014],
  ["BLOCK_GAS_LIMIT_REACHED", -38015],
  ["BLOCK_NUMBER_ORDER", -38020],
  ["BLOCK_TIMESTAMP_ORDER", -38021],
  ["INITCODE_TOO_LARGE", -38025],
  ["TOO_MANY_BLOCKS", RPC_ERROR_NUMBERS.CLIENT_LIMIT_EXCEEDED],
  ["TIP_ABOVE_FEE", RPC_ERROR_NUMBERS.INVALID_PARAMS],
  ["NONCE_EXHAUSTED", RPC_ERROR_NUMBERS.INTERNAL],
  ["GAS_CAP_EXHAUSTED", RPC_ERROR_NUMBERS.SERVER_ERROR],
]);

function simulationRefusal(error: unknown): RpcErrorObject | undefined {
  const code = error instanceof AppError && SIMULATION_NUMBERS.get(error.details["refusal"]);
  if (typeof code !== "number") return undefined;
  return { code, message: errorMessage(error) };
}

/** What a client is told about a fault of ours; the cause goes to the log only. */
export const INTERNAL_ERROR: RpcErrorObject = {
  code: RPC_ERROR_NUMBERS.INTERNAL,
  message: "internal error",
};
