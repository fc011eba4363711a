/** @ethereumjs/evm under this chain's rules: Cancun, base fee 0, no blobs (D7, D19). */
import { createCustomCommon, Hardfork, Mainnet } from "@ethereumjs/common";
import {
  createEVM,
  type EVM,
  EVMError,
  type EVMResult,
  type ExecResult,
  type Message,
  RustBN254,
} from "@ethereumjs/evm";
import { createAddressFromString, type Address as EvmAddress } from "@ethereumjs/util";
import type { Address } from "../../../chain/address.js";
import { secp256k1 } from "../../../chain/crypto.js";
import { present } from "../../../chain/errors.js";
import { keccak256, sha256 } from "../../../chain/hashes.js";
import { PRECOMPILE_ADDRESSES, PRECOMPILES_BY_NAME } from "../../../chain/evm/precompiles.js";
import { hexToBytes } from "../../../chain/hex.js";
import type { BalanceRecorder, FrameStart } from "../../state/balance-recorder.js";
import type { JournaledState } from "../../state/journaled-state.js";
import type { BlockContext, EvmMessage } from "../message.js";
import { bn254Curve } from "../precompiles/bn254.js";
import { PRECOMPILE_TABLE } from "../precompiles/table.js";
import { EvmState, toAddress } from "./evm-state.js";
import { createNativeFrames } from "./native-frames.js";
import { tuneEvm } from "./tuning.js";

/** Where our own replace the library's. MODEXP and BLAKE2F: their time follows their gas. */
const OWN_PRECOMPILES = ["MODEXP", "BLAKE2F", "KZG_POINT_EVALUATION"] as const;

/** Uncompressed public key for the ecrecover precompile, by the fastest back-end. */
function ecrecover(digest: Uint8Array, v: bigint, r: Uint8Array, s: Uint8Array): Uint8Array {
  const compact = Buffer.alloc(64);
  compact.set(r, 32 - r.length);
  compact.set(s, 64 - s.length);
  const key = secp256k1.recover(digest, compact, Number(v) - 27);
  if (key === undefined) throw new Error("no public key");
  return key;
}

const BN254 = new RustBN254(bn254Curve);

/** One of ours in the form of the library; for its EVM and for tests. */
export function libraryPrecompile(name: string): {
  address: EvmAddress;
  function: (call: { readonly data: Uint8Array; readonly gasLimit: bigint }) => ExecResult;
} {
  const address = present(PRECOMPILES_BY_NAME.get(name), `a precompile ${name}`);
  const precompile = present(PRECOMPILE_TABLE.get(address), `the precompile at ${address}`);
  return {
    address: createAddressFromString(address),
    function: ({ data, gasLimit }) => {
      const gas = precompile.gas(data);
      if (!(gas <= Number(gasLimit))) return failed(gasLimit, EVMError.errorMessages.OUT_OF_GAS);
      const returnValue = precompile.run(data);
      return returnValue === undefined
        ? failed(gasLimit, EVMError.errorMessages.OUT_OF_RANGE)
        : { executionGasUsed: BigInt(gas), returnValue };
    },
  };
}

function failed(gasLimit: bigint, error: EVMError["error"]): ExecResult {
  return {
    executionGasUsed: gasLimit,
    returnValue: new Uint8Array(0),
    exceptionError: new EVMError(error),
  };
}

/** What is executed, and where. */
export type { BlockContext, EvmMessage } from "../message.js";

/** One EVM over one state; each concurrent execution needs its own. */
export interface Machine {
  readonly evm: EVM;
  run(message: EvmMessage, block: BlockContext, recorder?: BalanceRecorder): Promise<EVMResult>;
}

/** Builds the EVM for a chain id over a state. */
export async function createMachine(chainId: bigint, state: JournaledState): Promise<Machine> {
  const common = createCustomCommon({ chainId: Number(chainId), name: "causeway" }, Mainnet, {
    hardfork: Hardfork.Cancun,
    customCrypto: { keccak256, sha256, ecrecover },
  });
  const context: { block: BlockContext | undefined } = { block: undefined };
  const evm = await createEVM({
    common,
    stateManager: new EvmState(state),
    customPrecompiles: OWN_PRECOMPILES.map((name) => libraryPrecompile(name)),
    blockchain: {
      getBlock: async (height) => {
        const hash = await context.block?.blockHash(height);
        return { hash: () => hexToBytes(hash ?? "0x") };
      },
      putBlock: () => Promise.reject(new TypeError("the EVM stores no blocks")),
      shallowCopy() {
        return this;
      },
    },
  });
  // The factory overwrites an option of this name.
  evm["_bn254"] = BN254;
  const running: { recorder: BalanceRecorder | undefined } = { recorder: undefined };
  tuneEvm(
    evm,
    createNativeFrames(evm, state, () => ({ ...context, ...running })),
  );
  const watch = attachRecorder(evm, state);
  return {
    evm,
    async run(message, block, recorder) {
      context.block = block;
      warmUp(evm, message, block);
      state.beginTransaction();
      evm.transientStorage.clear();
      watch(recorder);
      running.recorder = recorder;
      try {
        return await evm.runCall(callOptions(message, block));
      } finally {
        watch(undefined);
        running.recorder = undefined;
      }
    },
  };
}

function evmAddress(address: Address): EvmAddress {
  return createAddressFromString(address);
}

function callOptions(message: EvmMessage, block: BlockContext): Parameters<EVM["runCall"]>[0] {
  return {
    caller: evmAddress(message.from),
    ...(message.to === undefined ? {} : { to: evmAddress(message.to) }),
    value: message.valueAtoken,
    data: message.data,
    gasLimit: message.gasLimit,
    gasPrice: message.gasPriceAtoken,
    block: {
      header: {
        number: BigInt(block.height),
        coinbase: evmAddress(block.coinbase),
        timestamp: BigInt(block.timestampSeconds),
        difficulty: 0n,
        prevRandao: hexToBytes(block.mixHash),
        gasLimit: block.gasLimit,
        baseFeePerGas: block.baseFeeAtoken ?? 0n,
        slotNumber: 0n,
        getBlobGasPrice: () => block.blobBaseFeeAtoken ?? 1n,
      },
    },
  };
}

const FORK_ADDRESSES = [...PRECOMPILES_BY_NAME.values()];

/** EIP-2929 and EIP-3651: what is warm before the first opcode. */
function warmUp(evm: EVM, message: EvmMessage, block: BlockContext): void {
  const { journal } = evm;
  const precompiles = block.native === undefined ? FORK_ADDRESSES : PRECOMPILE_ADDRESSES;
  for (const address of precompiles) journal.addAlwaysWarmAddress(address);
  journal.addAlwaysWarmAddress(message.from);
  if (message.to !== undefined) journal.addAlwaysWarmAddress(message.to);
  journal.addAlwaysWarmAddress(block.coinbase);
  for (const { address, storageKeys } of message.accessList) {
    journal.addAlwaysWarmAddress(address, true);
    for (const slot of storageKeys) journal.addAlwaysWarmSlot(address, slot, true);
  }
}

/**
 * How the frame moves value. CALLCODE runs named code as the caller itself, also the caller's own:
 * that the code is named at all tells it from a CALL.
 */
function frameKind(message: Message): FrameStart["kind"] {
  if (message.to === undefined) return message.salt === undefined ? "CREATE" : "CREATE2";
  if (message.delegatecall) return "NO_TRANSFER";
  return message["_codeAddress"] === undefined ? "CALL" : "CALLCODE";
}

/** Connects the EVM's frame events and the state's balance differences to a recorder. */
function attachRecorder(
  evm: EVM,
  state: JournaledState,
): (recorder: BalanceRecorder | undefined) => void {
  let current: BalanceRecorder | undefined;
  evm.events.on("beforeMessage", (message) => {
    current?.enter({
      caller: toAddress(message.caller),
      to: message.to === undefined ? undefined : toAddress(message.to),
      valueAtoken: message.value,
      kind: frameKind(message),
    });
  });
  evm.events.on("newContract", ({ address }) => current?.created(toAddress(address)));
  evm.events.on("afterMessage", ({ execResult }) => {
    current?.leave(execResult.exceptionError?.error);
  });
  return (recorder) => {
    current = recorder;
    state.balanceListener =
      recorder === undefined
        ? undefined
        : (address, delta) => {
            recorder.balanceChanged(address, delta);
          };
  };
}
