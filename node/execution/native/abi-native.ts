/** A contract of the chain behind a Solidity interface: from call data to a function and back. */
import { type Address, toChecksumAddress } from "../../../chain/address.js";
import { SDK_CODE } from "../../../chain/cosmos/sdk-fault.js";
import { present } from "../../../chain/errors.js";
import type { AbiContract, AbiFunction } from "../../../chain/evm/abi/abi-contract.js";
import {
  AbiError,
  type AbiValue,
  decodeAbi,
  encodeAbi,
} from "../../../chain/evm/abi/abi-values.js";
import { bytesToHex } from "../../../chain/hex.js";
import { messageFailure } from "../../modules/message-fields.js";
import { hasModules } from "../../modules/modules.js";
import { SDK_REFUSALS_VERSION } from "../../settings/app-version.js";
import { STATIC_STATE_CHANGE } from "../interpreter/halt.js";
import { wordsOf } from "../interpreter/schedule.js";
import { Arguments } from "./arguments.js";
import type { NativeContract } from "./native.js";
import type { NativeCall } from "./native-call.js";
import { CALL_GAS, CALL_NS, DATA_WORD_GAS, DATA_WORD_NS } from "./native-gas.js";

const SELECTOR_BYTES = 4;

/** A function: its answers in the order of its outputs. Throws `MessageFailure`. */
export type NativeFunction = (args: Arguments, call: NativeCall) => readonly AbiValue[];

/** What a contract is made of. */
export interface AbiNativeOptions {
  readonly abi: AbiContract;
  /** A function for each of the interface's. */
  readonly functions: Readonly<Record<string, NativeFunction>>;
  /** The module that it acts on: chains without stake refuse. Undefined for one that needs none. */
  readonly module?: string;
  /** Whether its answers follow from the input alone: then it may be called in any way. */
  readonly isPure?: boolean;
}

/** A contract of an interface. Throws RangeError where functions and interface differ. */
export function abiNative({
  abi,
  functions,
  module,
  isPure = false,
}: AbiNativeOptions): NativeContract {
  const bySelector = new Map(
    abi.functions.map((one) => [
      one.selector,
      { ...one, run: present(functions[one.name], `a function ${one.name}`) },
    ]),
  );
  return {
    answer(call) {
      const { input, isDirect, isStatic } = call.message;
      call.charge(CALL_GAS, CALL_NS);
      chargeData(call, input.length);
      assertNoValue(call);
      if (!isDirect && !isPure) {
        throw refusal("call it directly: it does not run for another account");
      }
      if (module !== undefined && !hasModules(call.host.state)) {
        throw refusal("this chain has a fixed set of validators");
      }
      const found = bySelector.get(bytesToHex(input.subarray(0, SELECTOR_BYTES)));
      if (found === undefined) throw refusal("unknown method");
      if (isStatic && !found.isView) throw STATIC_STATE_CHANGE;
      if (!found.isView && module !== undefined) call.announce(module);
      const output = encodeAbi(found.outputs, found.run(argumentsOf(found, input), call));
      chargeData(call, output.length);
      return output;
    },
  };
}

function chargeData(call: NativeCall, bytes: number): void {
  const words = wordsOf(bytes);
  call.charge(DATA_WORD_GAS * words, DATA_WORD_NS * words);
}

/**
 * Refuses coins: nobody could get them back. DELEGATECALL only shows those of its caller, and CALLCODE
 * gives them back to it; by the first rules they counted all the same.
 */
export function assertNoValue({ message, appVersion }: NativeCall): void {
  const counts = message.isDirect || appVersion < SDK_REFUSALS_VERSION;
  if (counts && message.valueAtoken > 0n) throw refusal("this contract takes no coins");
}

function argumentsOf({ inputs }: AbiFunction, input: Uint8Array): Arguments {
  try {
    return new Arguments(decodeAbi(inputs, input.subarray(SELECTOR_BYTES)));
  } catch (error) {
    if (error instanceof AbiError) throw refusal(`invalid input: ${error.message}`);
    throw error;
  }
}

/** Everybody acts for itself alone. Throws `MessageFailure` where the account is another one. */
export function assertCaller(account: Address, { message }: NativeCall): void {
  if (account === message.caller) return;
  const [sender, requester] = [message.caller, account].map(toChecksumAddress);
  throw refusal(`msg.sender address ${sender} does not match the requester address ${requester}`);
}

/** Who acts, as an argument names it: the sender, and nobody else. Throws `MessageFailure`. */
export function actorOf(args: Arguments, name: string, call: NativeCall): Address {
  const account = args.address(name);
  assertCaller(account, call);
  return account;
}

/** What a function answers that does something and has nothing to tell. */
export const SUCCESS: readonly AbiValue[] = [true];

/** Only a transaction to the contract itself may do this. Throws `MessageFailure`. */
export function assertNoContract({ message, host }: NativeCall): void {
  if (message.caller === host.origin) return;
  throw refusal(
    "this method can only be called directly to the precompile, not from a smart contract",
  );
}

/** A refusal that is none of a module's own. */
export function refusal(text: string) {
  return messageFailure(SDK_CODE.invalidRequest, text);
}
