/**
 * The logs of a simulated call, with moved coins among them as logs of ERC-7528's address for the
 * native coin. Frames that fail take their logs with them. Order and content are geth's.
 */
import { type Address, parseAddress, ZERO_ADDRESS } from "../../../../chain/address.js";
import { bigintToWord, bytesToHash32, type Hash32, parseHash32 } from "../../../../chain/hex.js";
import type { Log } from "../../../../chain/receipt.js";
import type { Atoken } from "../../../../chain/units.js";
import type { Message } from "../../interpreter/frame-message.js";
import { EXACT_STEPS, type Watcher } from "../../interpreter/watcher.js";
import type { TraceBudget } from "../../tracers/tracer.js";

/** ERC-7528: stands for the native coin where an address of a token is asked for. */
const NATIVE_COIN = parseAddress(`0x${"ee".repeat(20)}`);
/** keccak256("Transfer(address,address,uint256)"). */
const TRANSFER_TOPIC = parseHash32(
  "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
);
/** JSON of a log without its data. */
const LOG_BYTES = 600;

/** Collects the logs of transactions, one after the other. */
export class TransferLogs {
  readonly watcher: Watcher = {
    enter: (message, address) => this.enter(message, address),
    leave: (_message, { halt }) => this.leave(halt !== undefined),
    log: (log) => this.add(log),
    selfdestruct: (self, heir, balanceAtoken) => this.moved(self, heir, balanceAtoken),
    moved: (from, to, amountAtoken) => this.moved(from, to ?? ZERO_ADDRESS, amountAtoken),
    // Failures are told with what was found.
    steps: EXACT_STEPS,
  };
  /** Logs of each open frame, the outermost first. */
  private readonly frames: Log[][] = [];
  private finished: readonly Log[] = [];

  constructor(
    private readonly options: { readonly traceTransfers: boolean; readonly budget: TraceBudget },
  ) {}

  /** The logs of the transaction that ended since the last time; none if it failed. */
  take(): readonly Log[] {
    const logs = this.finished;
    this.finished = [];
    return logs;
  }

  private enter({ kind, caller, valueAtoken }: Message, address: Address): void {
    this.frames.push([]);
    // DELEGATECALL only shows its parent's value, CALLCODE gives it back to who sent it.
    const moves = kind !== "NO_TRANSFER" && kind !== "CALLCODE";
    if (moves) this.moved(caller, address, valueAtoken);
  }

  private leave(hasFailed: boolean): void {
    const logs = this.frames.pop();
    const parent = this.frames.at(-1);
    if (logs === undefined || hasFailed) return;
    if (parent === undefined) this.finished = logs;
    else for (const log of logs) parent.push(log);
  }

  private moved(from: Address, to: Address, valueAtoken: Atoken): void {
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
