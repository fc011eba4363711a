/**
 * The logs of a simulated call, with moved coins among them as logs of ERC-7528's address for the
 * native coin. Frames that fail take their logs with them. Order and content are geth's.
 */
import type { Message } from "@ethereumjs/evm";
import { type Address, bytesToAddress, parseAddress } from "../../../../chain/address.js";
import { bigintToWord, bytesToHash32, type Hash32, parseHash32 } from "../../../../chain/hex.js";
import type { Log } from "../../../../chain/receipt.js";
import { toAddress } from "../../evm/evm-state.js";
import { frameKind, type Machine } from "../../evm/evm.js";
import { readMemory, type RunState, type TraceBudget, watchOpcode } from "../../tracers/tracer.js";

/** ERC-7528: stands for the native coin where an address of a token is asked for. */
const NATIVE_COIN = parseAddress(`0x${"ee".repeat(20)}`);
/** keccak256("Transfer(address,address,uint256)"). */
const TRANSFER_TOPIC = parseHash32(
  "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
);
const OPCODE_LOG0 = 0xa0;
const OPCODE_SELFDESTRUCT = 0xff;
/** JSON of a log without its data. */
const LOG_BYTES = 600;

/** Collects the logs of one EVM's transactions, one after the other. */
export class TransferLogs {
  /** Logs of each open frame, the outermost first. */
  private readonly frames: Log[][] = [];
  /** The creation that has not told its address yet. */
  private creation: Message | undefined;
  private finished: readonly Log[] = [];

  constructor(
    { evm }: Machine,
    private readonly options: { readonly traceTransfers: boolean; readonly budget: TraceBudget },
  ) {
    evm.events.on("beforeMessage", (message) => this.enter(message));
    evm.events.on("newContract", ({ address }) => this.created(toAddress(address)));
    evm.events.on("afterMessage", ({ execResult }) => {
      this.leave(execResult.exceptionError !== undefined);
    });
    for (let topics = 0; topics <= 4; topics++) {
      watchOpcode(evm, OPCODE_LOG0 + topics, (runState) => this.logged(runState, topics));
    }
    if (!options.traceTransfers) return;
    watchOpcode(evm, OPCODE_SELFDESTRUCT, (runState) => this.destructed(runState));
  }

  /** The logs of the transaction that ended since the last time; none if it failed. */
  take(): readonly Log[] {
    const logs = this.finished;
    this.finished = [];
    return logs;
  }

  private enter(message: Message): void {
    this.frames.push([]);
    const { to } = message;
    this.creation = to === undefined ? message : undefined;
    // DELEGATECALL only shows its parent's value, CALLCODE gives it back to who sent it.
    const moves = to !== undefined && frameKind(message) === "CALL";
    if (moves) this.moved(toAddress(message.caller), toAddress(to), message.value);
  }

  private created(address: Address): void {
    const { creation } = this;
    this.creation = undefined;
    if (creation !== undefined) this.moved(toAddress(creation.caller), address, creation.value);
  }

  private leave(hasFailed: boolean): void {
    const logs = this.frames.pop();
    const parent = this.frames.at(-1);
    if (logs === undefined || hasFailed) return;
    if (parent === undefined) this.finished = logs;
    else for (const log of logs) parent.push(log);
  }

  private logged(runState: RunState, topicCount: number): void {
    const [offset = 0n, length = 0n, ...topics] = runState.stack.peek(2 + topicCount);
    this.add({
      address: toAddress(runState.env.address),
      topics: topics.map(toWord),
      data: readMemory(runState, offset, length).slice(),
    });
  }

  private destructed({ env, stack }: RunState): void {
    const [beneficiary = 0n] = stack.peek(1);
    const to = bytesToAddress(bigintToWord(beneficiary).subarray(12));
    this.moved(toAddress(env.address), to, env.contract.balance);
  }

  private moved(from: Address, to: Address, valueAtoken: bigint): void {
    if (!this.options.traceTransfers || valueAtoken === 0n) return;
    this.add({
      address: NATIVE_COIN,
      topics: [TRANSFER_TOPIC, toWord(BigInt(from)), toWord(BigInt(to))],
      data: bigintToWord(valueAtoken),
    });
  }

  private add(log: Log): void {
    this.options.budget.take(LOG_BYTES + 2 * log.data.length);
    this.frames.at(-1)?.push(log);
  }
}

function toWord(value: bigint): Hash32 {
  return bytesToHash32(bigintToWord(value));
}
