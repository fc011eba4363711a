/**
 * Calls and the frames of the interpreter, in place of the library's: the same steps under this
 * chain's rules, without copying a message and an interpreter's state property by property for
 * every frame.
 */
import { type EVM, EVMError, type EVMResult, type ExecResult } from "@ethereumjs/evm";
import { Account, type Address, createZeroAddress } from "@ethereumjs/util";
import { createInterpreter } from "./loop.js";

/** A message to an address, as the library has it. */
export type CallMessage = Parameters<EVM["_executeCall"]>[0];
type FrameMessage = Parameters<EVM["runInterpreter"]>[0];

const NO_BYTES = new Uint8Array(0);

/** Answers a call of a contract of the chain; undefined for all other calls. */
export type NativeFrames = (message: CallMessage) => EVMResult | undefined;

/** Puts the frames into an EVM. */
export function installFrames(evm: EVM, natives: NativeFrames): void {
  evm["_executeCall"] = (message) => executeCall(evm, message, natives);
  evm["runInterpreter"] = (message) => runFrame(evm, message);
}

/** A message to an existing address: value, then code or precompile. */
async function executeCall(
  evm: EVM,
  message: CallMessage,
  natives: NativeFrames,
): Promise<EVMResult> {
  const transferError = message.delegatecall ? undefined : await moveValue(evm, message);
  const native = transferError === undefined ? natives(message) : undefined;
  if (native !== undefined) return native;
  await evm["_loadCode"](message);
  const { code, gasLimit, gasRefund } = message;
  const hasCode = typeof code === "function" || (code !== undefined && code.length > 0);
  if (transferError !== undefined || !hasCode) {
    const execResult = { gasRefund, executionGasUsed: 0n, returnValue: NO_BYTES };
    return { execResult: { ...execResult, exceptionError: transferError } };
  }
  let execResult: ExecResult;
  if (typeof code === "function") {
    execResult = await evm["runPrecompile"](code, message.data, gasLimit);
    execResult.gasRefund = gasRefund;
  } else {
    execResult = await runFrame(evm, message);
  }
  if (message.depth === 0) evm.transientStorage.clear();
  return { execResult };
}

/** Moves the value from caller to callee; both become "touched" even where it is zero. */
async function moveValue(evm: EVM, message: CallMessage): Promise<EVMError | undefined> {
  try {
    await evm["_reduceSenderBalance"](await accountOf(evm, message.caller), message);
    await evm["_addToBalance"](await accountOf(evm, message.to), message);
    return undefined;
  } catch (error) {
    if (error instanceof EVMError) return error;
    throw error;
  }
}

async function accountOf(evm: EVM, address: Address): Promise<Account> {
  return (await evm.stateManager.getAccount(address)) ?? new Account();
}

/** Runs code in a frame of its own. */
async function runFrame(evm: EVM, message: FrameMessage): Promise<ExecResult> {
  const address = message.to ?? createZeroAddress();
  const code = message.code instanceof Uint8Array ? message.code : NO_BYTES;
  const transaction = evm["_tx"];
  const block = evm["_block"];
  if (transaction === undefined || block === undefined) {
    throw new TypeError("a frame runs inside a call");
  }
  const env = {
    address,
    caller: message.caller,
    callData: message.data,
    callValue: message.value,
    code,
    isStatic: message.isStatic,
    isCreate: message.isCreate ?? false,
    depth: message.depth,
    gasPrice: transaction.gasPrice,
    origin: transaction.origin,
    block,
    contract: await accountOf(evm, address),
    codeAddress: message["_codeAddress"] ?? address,
    gasRefund: message.gasRefund,
    chargeCodeAccesses: message.chargeCodeAccesses,
    blobVersionedHashes: message.blobVersionedHashes ?? [],
    createdAddresses: message.createdAddresses,
  };
  const interpreter = createInterpreter(evm, env, message.gasLimit);
  const result = interpreter["_result"];
  if (message.selfdestruct !== undefined) result.selfdestruct = message.selfdestruct;
  result.createdAddresses = message.createdAddresses;
  const { runState, exceptionError } = await interpreter.run(code);
  const isHalted = exceptionError !== undefined;
  const isRevert = exceptionError?.error === EVMError.errorMessages.REVERT;
  const gasLeft = runState?.gasLeft ?? 0n;
  return {
    logs: isHalted ? [] : result.logs,
    selfdestruct: isHalted ? new Map() : result.selfdestruct,
    createdAddresses: isHalted ? new Set() : result.createdAddresses,
    runState: interpreter["_runState"],
    exceptionError,
    gas: gasLeft,
    // All of it is gone after any exception but a revert.
    executionGasUsed: isHalted && !isRevert ? message.gasLimit : message.gasLimit - gasLeft,
    gasRefund: interpreter["_runState"].gasRefund,
    returnValue: result.returnValue ?? NO_BYTES,
  };
}
