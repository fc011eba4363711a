/**
 * The time after which a transaction is void, as its signer has set it (`TxBody.timeout_timestamp`,
 * SDK 0.53): read, compared and written as Go does; and the last block that can hold it.
 */
import { ProtoReader } from "../protobuf/wire.js";
import { ChainError } from "../errors.js";
import { FIRST_SECOND, isTime } from "../protobuf/json-texts.js";
import type { CosmosTransaction } from "./cosmos-transaction.js";

const NS_PER_MS = 1_000_000;

/** A time as protobuf has it. */
interface TimeoutTime {
  /** Unix seconds. */
  readonly seconds: bigint;
  readonly nanos: number;
}

/**
 * The time that a transaction names; undefined where it names none.
 * @throws INVALID_MESSAGE for what is no time
 */
export function timeoutTimeOf({
  timeoutTimestamp,
}: Pick<CosmosTransaction, "timeoutTimestamp">): TimeoutTime | undefined {
  if (timeoutTimestamp === undefined) return undefined;
  const reader = new ProtoReader(timeoutTimestamp, [1, 2]);
  const [seconds, nanos] = [reader.int64(1), Number(reader.int64(2))];
  if (isTime(seconds, nanos)) return { seconds, nanos };
  throw new ChainError("INVALID_MESSAGE", "the timeout timestamp is no time");
}

/** Whether a time has passed at a block's time. */
export function isPassed(time: TimeoutTime, blockTimeMs: number): boolean {
  return lastBlockTimeMs(time) < blockTimeMs;
}

/**
 * The last time of a block at which a time has not passed, Unix milliseconds; Infinity for one in 1970's
 * first second, which is none, as in the SDK.
 */
function lastBlockTimeMs({ seconds, nanos }: TimeoutTime): number {
  if (seconds === 0n || seconds === FIRST_SECOND) return Number.POSITIVE_INFINITY;
  return Number(seconds) * 1_000 + Math.floor(nanos / NS_PER_MS);
}

/** The last block that can hold a transaction; what it does not limit is Infinity. */
export interface Deadline {
  readonly height: number;
  /** The block's time, Unix milliseconds. */
  readonly timeMs: number;
}

/** A transaction's deadline; undefined where any block can hold it. What names no time is always late. */
export function deadlineOf(
  tx: Pick<CosmosTransaction, "timeoutHeight" | "timeoutTimestamp">,
): Deadline | undefined {
  const { timeoutHeight, timeoutTimestamp } = tx;
  if (timeoutHeight === 0n && timeoutTimestamp === undefined) return undefined;
  const height = timeoutHeight === 0n ? Number.POSITIVE_INFINITY : Number(timeoutHeight);
  return { height, timeMs: lastTimeMsOf(tx) };
}

function lastTimeMsOf(tx: Pick<CosmosTransaction, "timeoutTimestamp">): number {
  try {
    const time = timeoutTimeOf(tx);
    return time === undefined ? Number.POSITIVE_INFINITY : lastBlockTimeMs(time);
  } catch (error) {
    if (error instanceof ChainError) return Number.NEGATIVE_INFINITY;
    throw error;
  }
}

/** A time as Go prints it: "2026-11-22 05:00:00.5 +0000 UTC". */
export function goTime(time: TimeoutTime): string {
  const [date = "", clock = ""] = rfc3339Nano(time).slice(0, -1).split("T");
  return `${date} ${clock} +0000 UTC`;
}

/** Go's RFC3339Nano, as amino JSON has it: "2026-11-22T05:00:00.5Z". */
export function rfc3339Nano({ seconds, nanos }: TimeoutTime): string {
  const whole = new Date(Number(seconds) * 1_000).toISOString().slice(0, 19);
  const part = nanos === 0 ? "" : `.${nanos.toString().padStart(9, "0").replace(/0+$/, "")}`;
  return `${whole}${part}Z`;
}
