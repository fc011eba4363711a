/**
 * go-ethereum's texts for calls that were executed and failed otherwise than by REVERT. Who
 * executes writes them, who asks reads them: the JSON-RPC number that they come with (-32000) also
 * stands for faults of the node, and `data` only ever is what a REVERT gave back.
 */

/** Numbers of JSON-RPC errors of calls that were executed and failed. */
export const EVM_ERROR_NUMBERS = {
  /** Its data is what the REVERT gave back. */
  reverted: 3,
  /** Whatever else went wrong in a simulated call; of any other call it is -32000. */
  failedInSimulation: -32_015,
} as const;

/** Whole texts. */
export const EVM_FAILURE = {
  outOfGas: "out of gas",
  /** Of this chain (D21): go-ethereum has no compute units. */
  outOfCompute: "out of compute",
  gasOverflow: "gas uint64 overflow",
  nonceOverflow: "nonce uint64 overflow",
  codeTooLarge: "max code size exceeded",
  initcodeTooLarge: "max initcode size exceeded",
  writeProtection: "write protection",
  addressCollision: "contract address collision",
  insufficientBalance: "insufficient balance for transfer",
  invalidCode: "invalid code: must not begin with 0xef",
  invalidJump: "invalid jump destination",
  depthExceeded: "max call depth exceeded",
  returnDataOutOfBounds: "return data out of bounds",
  codeStoreOutOfGas: "contract creation code storage out of gas",
} as const;

/** Beginnings of texts that go on with what was found. */
export const EVM_FAILURE_START = {
  stackUnderflow: "stack underflow (",
  stackOverflow: "stack limit reached ",
  invalidOpcode: "invalid opcode: ",
  /** An instruction whose gas cannot be reckoned, and why. */
  outOfGasBecause: "out of gas: ",
  /** What go-ethereum has no text of its own for. */
  other: "vm execution error: ",
} as const;

const TEXTS: ReadonlySet<string> = new Set(Object.values(EVM_FAILURE));

/** True for the message of a call that was executed and failed; false for every other fault. */
export function isEvmFailure(message: string): boolean {
  return (
    TEXTS.has(message) ||
    Object.values(EVM_FAILURE_START).some((start) => message.startsWith(start))
  );
}
