/** Calls of the chain's own contracts in the library's EVM: the same code as in our own engine. */
import { NEWEST_WEIGHTS, weightsOf } from "../../../chain/evm/compute-weights.js";
import { type EVM, EVMError } from "@ethereumjs/evm";
import { addressToBytes } from "../../../chain/address.js";
import { bigintToWord, hexToBytes } from "../../../chain/hex.js";
import type { Log } from "../../../chain/receipt.js";
import type { BalanceRecorder } from "../../state/balance-recorder.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { type Halt, REVERTED, STATIC_STATE_CHANGE } from "../interpreter/halt.js";
import type { BlockContext } from "../message.js";
import { runNative } from "../native/native.js";
import { ALL_PRECOMPILES, isNative } from "../native/table.js";
import type { NativeFrames } from "./frames.js";
import { toAddress } from "./evm-state.js";

/** Of tables, since one is asked for: the library counts no compute units (`MeasuredEngine` does). */
const UNCOUNTED = weightsOf(NEWEST_WEIGHTS);

/** What runs now. */
export interface Running {
  readonly block: BlockContext | undefined;
  readonly recorder: BalanceRecorder | undefined;
}

/** Frames of native contracts over a state. The value of the message has moved already. */
export function createNativeFrames(
  evm: EVM,
  state: JournaledState,
  running: () => Running,
): NativeFrames {
  return (message) => {
    const { block, recorder } = running();
    if (block?.native === undefined) return undefined;
    const contract = ALL_PRECOMPILES.get(toAddress(message.codeAddress));
    if (contract === undefined || !isNative(contract)) return undefined;
    const logs: Log[] = [];
    const { journal } = evm;
    const origin = evm["_tx"]?.origin ?? message.caller;
    const end = runNative(
      contract,
      {
        caller: toAddress(message.caller),
        input: message.data,
        gas: Number(message.gasLimit),
        valueAtoken: message.value,
        isStatic: message.isStatic,
        isDirect: !message.delegatecall && message["_codeAddress"] === undefined,
      },
      {
        state,
        block,
        facts: block.native,
        weights: UNCOUNTED,
        origin: toAddress(origin),
        recorder,
        watcher: undefined,
        warmAddress: (address) => {
          const bytes = addressToBytes(address);
          const isCold = !journal.isWarmedAddress(bytes);
          if (isCold) journal.addWarmedAddress(bytes);
          return isCold;
        },
        warmSlot: (address, slot) => {
          const [bytes, key] = [addressToBytes(address), bigintToWord(slot)];
          const isCold = !journal.isWarmedStorage(bytes, key);
          if (isCold) journal.addWarmedStorage(bytes, key);
          return isCold;
        },
        spend: () => undefined,
        log: (log) => void logs.push(log),
      },
    );
    const { halt, gasUsed, output } = end;
    return {
      execResult: {
        executionGasUsed: BigInt(gasUsed),
        returnValue: output,
        gasRefund: message.gasRefund,
        logs: halt === undefined ? logs.map(fromLog) : [],
        ...(halt === undefined ? {} : { exceptionError: new EVMError(errorOf(halt)) }),
      },
    };
  };
}

/** The library's name for the end of a frame. */
function errorOf(halt: Halt): EVMError["error"] {
  const { REVERT, STATIC_STATE_CHANGE: STATIC, OUT_OF_GAS } = EVMError.errorMessages;
  if (halt === REVERTED) return REVERT;
  return halt === STATIC_STATE_CHANGE ? STATIC : OUT_OF_GAS;
}

function fromLog({ address, topics, data }: Log): [Uint8Array, Uint8Array[], Uint8Array] {
  return [addressToBytes(address), topics.map((topic) => hexToBytes(topic)), data];
}
