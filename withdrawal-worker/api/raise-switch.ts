/**
 * The kill switch over the API, which only raises it: this home first, then the record of the call and the
 * ledger, as far as they can be told.
 */
import { existsSync } from "node:fs";
import { AppError, errorMessage, present } from "../../chain/errors.js";
import { LedgerError } from "../../ledger/errors.js";
import { readKillSwitch, setKillSwitch } from "../../ledger/kill-switch/kill-switch.js";
import {
  exchangeKillSwitchFile,
  lookAtKillSwitchFile,
  writeKillSwitchFile,
} from "../../ledger/kill-switch/kill-switch-file.js";
import {
  isKillSwitchLevel,
  isSameSwitch,
  type KillSwitchState,
  stricter,
} from "../../ledger/kill-switch/kill-switch-level.js";
import { callerName } from "../../runtime/http/http-access.js";
import { HttpError, requestError } from "../../runtime/http/http-errors.js";
import type { HttpReply } from "../../runtime/http/http-reply.js";
import type { HttpRequest } from "../../runtime/http/http-route.js";
import type { Clock } from "../../runtime/process/clock.js";
import type { Logger } from "../../runtime/process/logger.js";
import { withTimeout } from "../../runtime/process/task.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { ApiError } from "../errors.js";
import { fileSwitch } from "../kill-switch.js";
import { invalidField, readReason } from "./fields.js";

/** What these routes need. */
export interface SwitchParts {
  readonly database: SqlDatabase;
  /** The home's kill switch. */
  readonly switchFile: string;
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
}

/** Looks at a file that others keep writing: each write is a person's word, of which so many never meet. */
const MAX_LOOKS = 10;

/** Longest name of who set the switch, as in the ledger's table. */
const MAX_BY_LENGTH = 100;

/*
 * Whoever stops payments is told soon: all of these begin once the home is stopped. With the look for the key
 * of the call (2 s at most) the database is waited for for less than 9 s; the console waits for 10 s.
 */

/** By then the ledger is told, whether the call is on record or not: who keeps a lock may keep it for 5 s. */
const RECORD_PATIENCE_MS = 3_000;

/** By then the ledger has been told, or has not. */
const LEDGER_PATIENCE_MS = 6_000;

/** By then it is answered what somebody else may have set in the ledger meanwhile. */
const LOOK_PATIENCE_MS = 6_500;

/** What `GET /v1/kill-switch` shows. @throws database faults */
export async function showSwitch({
  database,
  switchFile,
}: Pick<SwitchParts, "database" | "switchFile">) {
  return encodePlaces(fileSwitch(switchFile), await readKillSwitch(database));
}

function encodePlaces(home: KillSwitchState, ledger: KillSwitchState) {
  return { level: stricter(home, ledger).level, home: encode(home), ledger: encode(ledger) };
}

function encode({ level, reason, by, at }: KillSwitchState) {
  return { level, reason, by, at: at ?? null };
}

/**
 * Stops more than is stopped. This home first, which needs nobody; then the call is written down and the
 * ledger told, where they can be, and whoever asked is told what was done. The ledger is told also where it
 * takes no record of the call: the switch's own row names who set it. Payments go on by a person's word at
 * the command line alone: whoever has a key, or a browser of somebody who has one, can only stop.
 * @throws ApiError 409 SWITCH_LOWERED, 422 INVALID_FIELD, 503 UNAVAILABLE; refusals of who writes calls down
 */
export async function raiseSwitch(parts: SwitchParts, request: HttpRequest): Promise<HttpReply> {
  const caller = present(request.caller, "caller of a gated route");
  const by = callerName(caller, request.headers).slice(0, MAX_BY_LENGTH);
  const level: unknown = Reflect.get(Object(request.body), "level");
  if (!isKillSwitchLevel(level) || level === "none") {
    throw invalidField("level", "expected stop-new, stop-sign or stop-broadcast");
  }
  const at = new Date(parts.clock.nowMs()).toISOString();
  const wanted = { level, reason: readReason(request.body), by, at };
  const { switchFile } = parts;
  const first = await stopHome(switchFile, wanted, { evenAbsent: false });
  const startMs = performance.now();
  const write = () => request.unwritten?.write() ?? Promise.resolve();
  const { fault: unwritten } = await outcomeOf(write, startMs + RECORD_PATIENCE_MS);
  if (unwritten !== undefined) {
    const { call } = present(request.unwritten, "a call that could not be written down");
    parts.log.warn({ call, wanted, reason: errorMessage(unwritten) }, "a stop is not on record");
  }
  if (unwritten instanceof HttpError) throw refusal(unwritten, fileSwitch(switchFile));
  const sent = { isCommit: false };
  const onCommit = () => {
    sent.isCommit = true;
  };
  const { value: set, fault: untold } = await outcomeOf(
    (signal) => setKillSwitch(parts.database, wanted, { neverLower: true, signal, onCommit }),
    startMs + LEDGER_PATIENCE_MS,
  );
  if (untold instanceof LedgerError && untold.code === "SWITCH_LOWERED") {
    const raised = `; this home's own file is at ${level} as of now`;
    const told = `${untold.message}: a person lowers it with \`causeway killswitch set\` or \`lift\``;
    const isRaised = first.state === wanted;
    throw new ApiError(409, "SWITCH_LOWERED", isRaised ? `${told}${raised}` : told);
  }
  // Whatever is wrong with the ledger: who wants it stopped has it stopped here.
  if (set === undefined) {
    const told = await stopHome(switchFile, wanted, { evenAbsent: true });
    const isUnwritten = unwritten !== undefined;
    throw untoldLedger(told, untold, { isUnwritten, isCommitSent: sent.isCommit });
  }
  const homeFault = await raiseHome(parts, wanted, startMs + LOOK_PATIENCE_MS);
  if (unwritten === undefined) {
    return { body: { ...encodePlaces(fileSwitch(switchFile), set.now), homeFault } };
  }
  const who = homeFault === null ? "this home and the ledger are" : "the ledger is";
  const told = `${who} at ${level}; the call could not be written down: see the log`;
  throw new ApiError(503, "UNAVAILABLE", told, withFault(homeFault), unwritten);
}

/** What came of a work, or why it failed or has not ended by then, a time of `performance.now`. */
async function outcomeOf<T>(
  work: (signal: AbortSignal) => Promise<T>,
  endMs: number,
): Promise<{ readonly value?: T; readonly fault?: unknown }> {
  try {
    // Who asked may be gone: that ends nothing.
    const { signal } = new AbortController();
    const timeoutMs = Math.max(endMs - performance.now(), 0);
    return { value: await withTimeout(work, { timeoutMs, signal, what: "the ledger" }) };
  } catch (error) {
    return { fault: error ?? new Error("a fault that says nothing") };
  }
}

/** What became of the home. */
interface HomeState {
  /** What it obeys. */
  readonly state: KillSwitchState;
  /** Whether that stops as much as was wanted. */
  readonly isStopped: boolean;
  /** Why the file is not what it should be; null where it is. */
  readonly homeFault: string | null;
}

/**
 * The home's file alone, where it becomes stricter: that is never wrong, whatever the ledger says. What
 * somebody sets meanwhile is looked at anew.
 * @param evenAbsent writes a file that is not there, too. That stops everything, as whoever `lift`s or sets
 * it leaves it for a moment; where it stays away the next start would make it as the ledger says
 */
async function stopHome(
  switchFile: string,
  wanted: KillSwitchState,
  { evenAbsent }: { readonly evenAbsent: boolean },
): Promise<HomeState> {
  let homeFault = "others write its file at the same moment";
  for (let looks = 0; looks < MAX_LOOKS; looks += 1) {
    const looked = lookAtKillSwitchFile(switchFile);
    const state = stricter(fileSwitch(switchFile), wanted);
    const isDue = state === wanted || (evenAbsent && !existsSync(switchFile));
    if (!isDue) return { state, isStopped: true, homeFault: null };
    const written = state === wanted ? wanted : { ...wanted, level: state.level };
    try {
      if (await exchangeKillSwitchFile(switchFile, looked, written)) {
        return { state: written, isStopped: true, homeFault: null };
      }
    } catch (error) {
      homeFault = errorMessage(error);
      break;
    }
  }
  const state = fileSwitch(switchFile);
  return { state, isStopped: stricter(state, wanted) === state, homeFault };
}

/**
 * What is said where the ledger has not answered that it is told. A COMMIT on its way cannot be called back:
 * a database that keeps it waiting may let it count later.
 */
function untoldLedger(
  { state, isStopped, homeFault }: HomeState,
  cause: unknown,
  { isUnwritten, isCommitSent }: { readonly isUnwritten: boolean; readonly isCommitSent: boolean },
): ApiError {
  const next = cause instanceof AppError && cause.retriable ? "set it again" : "see the log";
  const record = isUnwritten ? "; the call could not be written down" : "";
  const ledger = isCommitSent
    ? "it is not known whether the ledger was told"
    : "the ledger could not be told";
  const unstopped = isCommitSent
    ? `this home could not be told, and ${ledger}`
    : "neither the ledger nor this home could be told: nothing more is stopped";
  const told = isStopped
    ? `this home is at ${state.level} and obeys; ${ledger}: ${next}${record}`
    : unstopped;
  return new ApiError(503, "UNAVAILABLE", told, withFault(homeFault), cause);
}

const withFault = (homeFault: string | null) => (homeFault === null ? {} : { homeFault });

/** The refusal of a call whose key has ended by now, or that was let through before. */
function refusal(error: HttpError, { level }: KillSwitchState): HttpError {
  if (level === "none") return error;
  const told = `${error.message}; this home is at ${level} all the same`;
  return requestError(error.status, told, { details: error.details, cause: error });
}

/**
 * The home's file, as high as the ledger and with the reason of now: a level that was told it meanwhile may
 * have had its file replaced by this one's. No look behind `endMs`.
 * @returns why it cannot be written; null where it can
 */
async function raiseHome(
  { database, switchFile }: SwitchParts,
  wanted: KillSwitchState,
  endMs: number,
): Promise<string | null> {
  const home = fileSwitch(switchFile);
  let state = wanted;
  let isDue = stricter(state, home) === state && !isSameSwitch(state, home);
  while (isDue) {
    try {
      await writeKillSwitchFile(switchFile, state);
    } catch (error) {
      return errorMessage(error);
    }
    const { value: ledger } = await outcomeOf(() => readKillSwitch(database), endMs);
    // What was wanted is in the file; the ledger's own level counts beside it.
    if (ledger === undefined) return null;
    state = ledger;
    isDue = stricter(fileSwitch(switchFile), state) === state;
  }
  return null;
}
