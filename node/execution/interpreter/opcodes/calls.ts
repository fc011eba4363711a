/** What sends a message to another account: calls, creations, SELFDESTRUCT. */
import { contractAddress2Of, contractAddressOf } from "../../../../chain/evm/contract-address.js";
import type { Atoken } from "../../../../chain/units.js";
import { EMPTY_ACCOUNT } from "../../../store/account-record.js";
import { chargeAccount, livingAccount, spendOnColdAccount } from "./accounts.js";
import type { Frame } from "../frame.js";
import { type Message, MESSAGE_OPCODES } from "../frame-message.js";
import {
  type Halt,
  initCodeTooLarge,
  INSUFFICIENT_BALANCE,
  NONCE_SPENT,
  STATIC_STATE_CHANGE,
  TOO_DEEP,
} from "../halt.js";
import {
  allButOne64th,
  COLD_ACCOUNT_GAS,
  HASH_WORD_GAS,
  INIT_CODE_WORD_GAS,
  MAX_DEPTH,
  MAX_INIT_CODE_BYTES,
  NEW_ACCOUNT_GAS,
  STIPEND_GAS,
  VALUE_GAS,
  wordsOf,
} from "../schedule.js";
import { wordToSize } from "../words.js";

const NO_BYTES = new Uint8Array(0);
/** EIP-2681: an account with this nonce makes no contract any more. */
const LAST_NONCE = 0xffff_ffff_ffff_ffffn;

/** CALL: a message with gas, value and input. */
export function call(frame: Frame): void {
  const { gasWanted, target } = takeTarget(frame);
  const valueAtoken = frame.pop();
  const ranges = takeRanges(frame);
  chargeAccount(frame, target);
  if (valueAtoken > 0n && livingAccount(frame, target) === undefined) frame.charge(NEW_ACCOUNT_GAS);
  const { isStatic } = frame.message;
  const opcode = MESSAGE_OPCODES.CALL;
  const terms = { kind: "CALL" as const, opcode, caller: frame.self, to: target, isStatic };
  send(frame, { ...terms, codeAddress: target, valueAtoken }, gasWanted, ranges);
}

/** The target's code on the frame's own account. */
export function callcode(frame: Frame): void {
  const { gasWanted, target } = takeTarget(frame);
  const valueAtoken = frame.pop();
  const ranges = takeRanges(frame);
  chargeAccount(frame, target);
  const { isStatic } = frame.message;
  const opcode = MESSAGE_OPCODES.CALLCODE;
  const terms = { kind: "CALLCODE" as const, opcode, caller: frame.self, to: frame.self, isStatic };
  send(frame, { ...terms, codeAddress: target, valueAtoken }, gasWanted, ranges);
}

/** As CALLCODE, with the caller and the value that the frame itself was called with. */
export function delegatecall(frame: Frame): void {
  const { gasWanted, target } = takeTarget(frame);
  const ranges = takeRanges(frame);
  chargeAccount(frame, target);
  const { caller, valueAtoken, isStatic } = frame.message;
  const opcode = MESSAGE_OPCODES.DELEGATECALL;
  const terms = { kind: "NO_TRANSFER" as const, opcode, caller, to: frame.self, isStatic };
  send(frame, { ...terms, codeAddress: target, valueAtoken }, gasWanted, ranges);
}

/** STATICCALL (EIP-214): nothing below may change the state. */
export function staticcall(frame: Frame): void {
  const { gasWanted, target } = takeTarget(frame);
  const ranges = takeRanges(frame);
  chargeAccount(frame, target);
  const opcode = MESSAGE_OPCODES.STATICCALL;
  const terms = { kind: "CALL" as const, opcode, caller: frame.self, to: target, isStatic: true };
  send(frame, { ...terms, codeAddress: target, valueAtoken: 0n }, gasWanted, ranges);
}

function takeTarget(frame: Frame): {
  readonly gasWanted: number;
  readonly target: ReturnType<Frame["popAddress"]>;
} {
  return { gasWanted: wordToSize(frame.pop()), target: frame.popAddress() };
}

interface Ranges {
  readonly input: Uint8Array;
  readonly outOffset: number;
  readonly outSize: number;
}

/** Takes the ranges of input and output from the stack and pays for their memory. */
function takeRanges(frame: Frame): Ranges {
  const offset = wordToSize(frame.pop());
  const size = wordToSize(frame.pop());
  const outOffset = wordToSize(frame.pop());
  const outSize = wordToSize(frame.pop());
  frame.reserve(offset, size);
  frame.reserve(outOffset, outSize);
  frame.spend(frame.weights.copyWordNs * wordsOf(size));
  return { input: frame.memory.copy(offset, size), outOffset, outSize };
}

/** Pays for the message and leaves it for the interpreter, or answers 0 where it cannot be sent. */
function send(
  frame: Frame,
  terms: Omit<Message, "input" | "gas" | "depth">,
  gasWanted: number,
  { input, outOffset, outSize }: Ranges,
): void {
  const moves = terms.kind !== "NO_TRANSFER" && terms.valueAtoken > 0n;
  if (moves) {
    frame.charge(VALUE_GAS);
    frame.spend(frame.weights.valueMoveNs);
  }
  const passed = Math.min(gasWanted, allButOne64th(frame.gas));
  frame.charge(passed);
  // After its gas, as go-ethereum has it: traces show what the call would have cost.
  const isChange = terms.opcode === MESSAGE_OPCODES.CALL && terms.valueAtoken > 0n;
  if (isChange && frame.message.isStatic) throw STATIC_STATE_CHANGE;
  const gas = passed + (moves ? STIPEND_GAS : 0);
  const message = { ...terms, input, gas, depth: frame.message.depth + 1 };
  const refusal = refusalOf(frame, moves ? terms.valueAtoken : 0n);
  if (refusal === undefined) frame.child = { message, outOffset, outSize };
  else refuse(frame, message, refusal);
}

/** Why the frame can send nothing. */
function refusalOf(frame: Frame, valueAtoken: Atoken): Halt | undefined {
  if (frame.message.depth >= MAX_DEPTH) return TOO_DEEP;
  const balanceAtoken = frame.execution.state.accountNow(frame.self)?.balanceAtoken ?? 0n;
  return balanceAtoken < valueAtoken ? INSUFFICIENT_BALANCE : undefined;
}

/** Nothing was sent: the gas comes back. */
function refuse(frame: Frame, message: Message, halt: Halt): void {
  frame.gas += message.gas;
  frame.returnData = NO_BYTES;
  frame.push(0n);
  const { watcher } = frame.execution;
  if (watcher === undefined) return;
  watcher.enter?.(message, message.codeAddress ?? frame.self);
  watcher.leave?.(message, { halt, gasUsed: 0, output: NO_BYTES });
}

/** CREATE: a contract at an address that follows from the nonce. */
export function create(frame: Frame): void {
  makeContract(frame, false);
}

/** EIP-1014: the address follows from a salt and the code. */
export function create2(frame: Frame): void {
  makeContract(frame, true);
}

function makeContract(frame: Frame, isSalted: boolean): void {
  const valueAtoken = frame.pop();
  const offset = wordToSize(frame.pop());
  const size = wordToSize(frame.pop());
  const salt = isSalted ? frame.pop() : undefined;
  frame.reserve(offset, size);
  if (size > MAX_INIT_CODE_BYTES) throw initCodeTooLarge(size);
  const words = wordsOf(size);
  frame.charge(words * (INIT_CODE_WORD_GAS + (isSalted ? HASH_WORD_GAS : 0)));
  const { copyWordNs, hashWordNs } = frame.weights;
  frame.spend(words * (copyWordNs + (isSalted ? hashWordNs : 0)));
  const input = frame.memory.copy(offset, size);
  if (frame.message.isStatic) throw STATIC_STATE_CHANGE;
  const gas = allButOne64th(frame.gas);
  frame.gas -= gas;
  const { state, substate } = frame.execution;
  const self = state.accountNow(frame.self) ?? EMPTY_ACCOUNT;
  const made =
    salt === undefined
      ? contractAddressOf(frame.self, self.nonce)
      : contractAddress2Of(frame.self, salt, input);
  const message: Message = {
    kind: isSalted ? "CREATE2" : "CREATE",
    opcode: isSalted ? MESSAGE_OPCODES.CREATE2 : MESSAGE_OPCODES.CREATE,
    caller: frame.self,
    to: undefined,
    codeAddress: made,
    valueAtoken,
    input,
    gas,
    isStatic: false,
    depth: frame.message.depth + 1,
  };
  const spent = self.nonce >= LAST_NONCE ? NONCE_SPENT : undefined;
  const refusal = refusalOf(frame, valueAtoken) ?? spent;
  if (refusal !== undefined) {
    refuse(frame, message, refusal);
    return;
  }
  state.putAccount(frame.self, { ...self, nonce: self.nonce + 1n });
  // Warm from now on, also where the creation fails (EIP-2929).
  substate.warmAddress(made);
  frame.child = { message, outOffset: 0, outSize: 0 };
}

/** EIP-6780: the coins go; the contract only where this transaction made it. */
export function selfdestruct(frame: Frame): void {
  const { self, execution } = frame;
  const { state, substate } = execution;
  const heir = frame.popAddress();
  if (substate.warmAddress(heir)) {
    frame.charge(COLD_ACCOUNT_GAS);
    spendOnColdAccount(frame, heir);
  }
  const balanceAtoken = state.accountNow(self)?.balanceAtoken ?? 0n;
  if (balanceAtoken > 0n && livingAccount(frame, heir) === undefined) frame.charge(NEW_ACCOUNT_GAS);
  if (frame.message.isStatic) throw STATIC_STATE_CHANGE;
  execution.watcher?.selfdestruct?.(self, heir, balanceAtoken);
  const isNew = substate.created.has(self);
  if (isNew) substate.markDestroyed(self);
  if (balanceAtoken > 0n) {
    if (heir !== self) {
      state.moveBalance(heir, balanceAtoken);
      takeAll(frame, balanceAtoken);
    } else if (isNew) {
      // Named itself: the coins are burned with it.
      takeAll(frame, balanceAtoken);
    }
  }
  frame.end(NO_BYTES);
}

/** What was given to an heir is gone: coins that stay as well would be new ones. */
function takeAll({ self, execution }: Frame, balanceAtoken: Atoken): void {
  if (execution.state.moveBalance(self, -balanceAtoken)) return;
  throw new RangeError("a contract that destroys itself cannot give its coins away");
}
