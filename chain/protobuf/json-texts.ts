/** Times and durations as protobuf's JSON writes and reads them. */
import { ChainError } from "../errors.js";

const NANOS_PER_SECOND = 1_000_000_000n;
const MAX_NANOS = 999_999_999;

/** Unix seconds with which year 1 begins: Go's zero time. */
export const FIRST_SECOND = -62_135_596_800n;
/** With which year 9999 ends. */
const LAST_SECOND = 253_402_300_799n;

/** Whether it is a time from year 1 to 9999, as `google.protobuf.Timestamp` asks for. */
export function isTime(seconds: bigint, nanos: number): boolean {
  return seconds >= FIRST_SECOND && seconds <= LAST_SECOND && nanos >= 0 && nanos <= MAX_NANOS;
}

/** No fraction, or one of 3, 6 or 9 digits. */
function nanosText(nanos: number): string {
  if (nanos === 0) return "";
  return `.${nanos
    .toString()
    .padStart(9, "0")
    .replace(/(?:000){1,2}$/, "")}`;
}

/**
 * RFC 3339 in UTC. Source: protobuf, JSON mapping of Timestamp.
 * @throws INVALID_MESSAGE before year 1 and after year 9999
 */
export function timeText(seconds: bigint, nanos: number): string {
  if (!isTime(seconds, nanos)) {
    throw new ChainError("INVALID_MESSAGE", "a time is out of range");
  }
  const whole = new Date(Number(seconds) * 1_000).toISOString();
  return `${whole.slice(0, -".000Z".length)}${nanosText(nanos)}Z`;
}

/** The time itself, or the nearest one from year 1 to 9999: what `timeText` can say. */
export function nearestTime(seconds: bigint, nanos: number): readonly [bigint, number] {
  if (seconds < FIRST_SECOND) return [FIRST_SECOND, 0];
  if (seconds > LAST_SECOND) return [LAST_SECOND, 0];
  return [seconds, Math.min(Math.max(nanos, 0), MAX_NANOS)];
}

/** Seconds with an "s" behind. Source: protobuf, JSON mapping of Duration. */
export function durationText(seconds: bigint, nanos: number): string {
  const sign = seconds < 0n || nanos < 0 ? "-" : "";
  const whole = seconds < 0n ? -seconds : seconds;
  return `${sign}${whole}${nanosText(Math.abs(nanos))}s`;
}

/** Date and time, fraction, zone. */
const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[-+]\d\d:\d\d)$/;

/** Seconds and nanoseconds of an RFC 3339 text; undefined where it is none. */
export function parseTime(text: string): readonly [bigint, number] | undefined {
  const match = TIME.exec(text);
  const ms = Date.parse(`${match?.[1]}${match?.[3]}`);
  if (match === null || Number.isNaN(ms)) return undefined;
  return [BigInt(ms / 1_000), Number((match[2] ?? "").padEnd(9, "0"))];
}

/** Seconds and nanoseconds of a text such as "1.5s"; undefined where it is none. */
export function parseDuration(text: string): readonly [bigint, number] | undefined {
  const match = /^(-?)([0-9]{1,12})(?:\.([0-9]{1,9}))?s$/.exec(text);
  if (match === null) return undefined;
  const nanos =
    BigInt(match[2] ?? "0") * NANOS_PER_SECOND + BigInt((match[3] ?? "").padEnd(9, "0"));
  const signed = match[1] === "-" ? -nanos : nanos;
  return [signed / NANOS_PER_SECOND, Number(signed % NANOS_PER_SECOND)];
}
