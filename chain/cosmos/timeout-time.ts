/**
 * The time after which a transaction is void, as its signer has set it (`TxBody.timeout_timestamp`,
 * SDK 0.53): read, compared and written as Go does.
 */
import { ProtoReader } from "../protobuf/wire.js";
import { ChainError } from "../errors.js";
import { FIRST_SECOND, isTime } from "../protobuf/json-texts.js";
import type { CosmosTransaction } from "./cosmos-transaction.js";

const NS_PER_SECOND = 1_000_000_000n;

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

/** Whether a time has passed at a block's time; one in 1970's first second is none, as in the SDK. */
export function isPassed({ seconds, nanos }: TimeoutTime, blockTimeMs: number): boolean {
  if (seconds === 0n || seconds === FIRST_SECOND) return false;
  return seconds * NS_PER_SECOND + BigInt(nanos) < BigInt(blockTimeMs) * 1_000_000n;
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
