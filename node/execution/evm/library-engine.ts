/** @ethereumjs/evm as an engine of transactions: slower, and the other opinion (`--evm`). */
import { EVMError } from "@ethereumjs/evm";
import { bytesToAddress, parseAddress } from "../../../chain/address.js";
import { bytesToHash32 } from "../../../chain/hex.js";
import type { Log } from "../../../chain/receipt.js";
import type { RunResult, RunTerms, TransactionEngine } from "../transaction-engine.js";
import type { BlockContext, EvmMessage } from "../message.js";
import type { Machine } from "./evm.js";

/** It counts no compute units: blocks have it in a `MeasuredEngine`. */
export class LibraryEngine implements TransactionEngine {
  constructor(private readonly machine: Machine) {}

  async run(message: EvmMessage, block: BlockContext, terms: RunTerms): Promise<RunResult> {
    const { execResult, createdAddress } = await this.machine.run(message, block, terms.recorder);
    const isWell = execResult.exceptionError === undefined;
    const created = execResult.createdAddresses ?? new Set();
    const destroyed = [...(execResult.selfdestruct?.keys() ?? [])].filter((key) =>
      created.has(key),
    );
    return {
      error: execResult.exceptionError?.error,
      errorText: execResult.exceptionError?.error,
      isRevert: execResult.exceptionError?.error === EVMError.errorMessages.REVERT,
      gasUsed: execResult.executionGasUsed,
      gasRefund: execResult.gasRefund ?? 0n,
      output: execResult.returnValue,
      logs: isWell ? (execResult.logs ?? []).map(toLog) : [],
      createdAddress: createdAddress && bytesToAddress(createdAddress.bytes),
      destroyed: destroyed.map((text) => parseAddress(text)),
      computeNs: 0,
      isOutOfCompute: false,
    };
  }

  /** Touched accounts that are empty go (EIP-161), and what the transaction warmed is cold again. */
  async finish(isIncluded: boolean): Promise<void> {
    const { journal } = this.machine.evm;
    if (isIncluded) await journal.cleanup();
    else journal.cleanJournal();
  }
}

function toLog([address, topics, data]: readonly [Uint8Array, Uint8Array[], Uint8Array]): Log {
  return {
    address: bytesToAddress(address),
    topics: topics.map((topic) => bytesToHash32(topic)),
    data: data.slice(),
  };
}
