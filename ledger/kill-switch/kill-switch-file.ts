/**
 * `<home>/config/kill-switch.json`: the signer's own copy of the kill switch, so that a database or
 * a queue that is lost, or lies, does not lift it.
 */
import { existsSync, readFileSync } from "node:fs";
import { parseEditedJson } from "../../chain/encoding/edited-json.js";
import { AppError, errorCode } from "../../chain/errors.js";
import {
  exchangeFile,
  giveBackTaken,
  replaceFile,
  SECRET_MODE,
} from "../../runtime/files/durable-file.js";
import {
  isKillSwitchLevel,
  KILL_SWITCH_LEVELS,
  type KillSwitchState,
} from "./kill-switch-level.js";

/** The file cannot be read or says nothing that can be understood: as good as the highest level. */
export class KillSwitchFileError extends AppError<"KILL_SWITCH_UNREADABLE"> {}

/** Longer files are none of ours. */
const MAX_FILE_CHARACTERS = 65_536;

/**
 * What the file says now; it is read each time.
 * @throws KILL_SWITCH_UNREADABLE
 */
export function readKillSwitchFile(file: string): KillSwitchState {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    throw unreadable(file, errorCode(cause), cause);
  }
  if (text.length > MAX_FILE_CHARACTERS) throw unreadable(file, "too long");
  let value: unknown;
  try {
    value = parseEditedJson(text);
  } catch (cause) {
    throw unreadable(file, "not JSON", cause);
  }
  const read = (name: string): unknown => Reflect.get(Object(value), name);
  const level = read("level");
  if (!isKillSwitchLevel(level)) throw unreadable(file, "it names no level");
  const [reason, by, at] = [read("reason"), read("by"), read("at")];
  return {
    level,
    reason: typeof reason === "string" ? reason : "",
    by: typeof by === "string" ? by : "",
    at: typeof at === "string" ? at : undefined,
  };
}

/** Replaces the file durably. Throws the system's fault. */
export async function writeKillSwitchFile(file: string, state: KillSwitchState): Promise<void> {
  await replaceFile(file, encodeKillSwitch(state), SECRET_MODE);
}

/** The file as it is now, for a comparison only: also one that cannot be read, or that is not there. */
export function lookAtKillSwitchFile(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    return `cannot be read: ${errorCode(error)}`;
  }
}

/**
 * Replaces the file durably while it is what was looked at. Nobody who writes it waits for that; while it is
 * done there is none, which stops everything. Throws the system's fault.
 * @returns false where it is not: what somebody has written meanwhile stays
 */
export function exchangeKillSwitchFile(
  file: string,
  looked: string,
  state: KillSwitchState,
): Promise<boolean> {
  const isSame = (path: string) => lookAtKillSwitchFile(path) === looked;
  return exchangeFile(file, isSame, { content: encodeKillSwitch(state), mode: SECRET_MODE });
}

/**
 * Gives back the file that a `lift` had taken which ended in the middle: what somebody had set at that
 * moment may stand nowhere else. Of several the strictest; one that cannot be read is. Throws the system's
 * fault.
 */
export async function giveBackKillSwitchFile(file: string): Promise<void> {
  if (existsSync(file)) return;
  await giveBackTaken(file, ([first, ...others]) =>
    others.reduce(
      (left, right) => (strictnessOf(right) > strictnessOf(left) ? right : left),
      first,
    ),
  );
}

function strictnessOf(file: string): number {
  try {
    return KILL_SWITCH_LEVELS.indexOf(readKillSwitchFile(file).level);
  } catch {
    return KILL_SWITCH_LEVELS.length;
  }
}

/** The file's text. */
export function encodeKillSwitch({ level, reason, by, at }: KillSwitchState): string {
  return `${JSON.stringify({ level, reason, by, at: at ?? null }, undefined, 2)}\n`;
}

function unreadable(file: string, what: string, cause?: unknown): KillSwitchFileError {
  return new KillSwitchFileError(
    "KILL_SWITCH_UNREADABLE",
    `${file} cannot be used (${what}): nothing is signed until it can; ` +
      "`causeway killswitch set` and `lift` write it",
    { details: { file }, cause, retriable: true },
  );
}
