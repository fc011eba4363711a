/**
 * `causeway killswitch show|set|lift`: what stops payments, in two places. The home's file is what the
 * signer obeys, with or without a database; the ledger's rows are what every process sees.
 */
import { toChecksumAddress } from "../../../chain/address.js";
import { AppError, errorCode, errorMessage } from "../../../chain/errors.js";
import { MAX_REASON_CHARACTERS } from "../../../chain/evm/foreign-text.js";
import { laterMigrations } from "../../../ledger/database.js";
import { LedgerError } from "../../../ledger/errors.js";
import { readKillSwitch, setKillSwitch } from "../../../ledger/kill-switch/kill-switch.js";
import {
  exchangeKillSwitchFile,
  giveBackKillSwitchFile,
  lookAtKillSwitchFile,
  readKillSwitchFile,
  writeKillSwitchFile,
} from "../../../ledger/kill-switch/kill-switch-file.js";
import { killSwitchPath } from "../../../ledger/policy/policy-paths.js";
import {
  isKillSwitchLevel,
  KILL_SWITCH_LEVELS,
  type KillSwitchLevel,
  type KillSwitchState,
  stops,
  stricter,
} from "../../../ledger/kill-switch/kill-switch-level.js";
import { cannotWrite, CliError } from "../../errors.js";
import { AT_ONCE, type LedgerAlone, TO_STOP, withLedgerAlone } from "../../ledger/ledger-alone.js";
import { isOtherTables } from "../../../runtime/sql/sql-errors.js";
import { NOT_MADE } from "../../shared-options.js";
import { operatorName } from "../ledger-decisions.js";
import { toJson } from "../../command-context.js";
import type { LedgerCommand } from "../../ledger/ledger-tools.js";
import { type FrozenWallets, freezeWallets } from "../withdrawals/withdrawals.js";

/** Flags of `killswitch set` and `lift`, as typed. */
export interface SetSwitchOptions {
  readonly reason: string;
  readonly operator?: string;
}

/** Whom the home's file stops by itself: a signer of 0.1.0 does not know it. */
const OBEYED_BY =
  "this home's signer obeys all the same, if it is of this release; one of another release, or of another " +
  "home, may not: end its process";

/** What this cannot lower: the file of a home that it does not see. */
const OTHER_HOMES =
  "A worker with a home of its own that was stopped through its API or the console obeys its own " +
  "config/kill-switch.json as well, and says so on /ready: type this in that home, too. Under compose: " +
  "docker compose run --rm --no-deps withdrawal-worker dist/cli/main.js killswitch lift " +
  "--home /home/causeway --reason TEXT; and once more with treasury for withdrawal-worker, where one runs";

/** What `freezeWallets` says of tables of another release. */
const LACKS: ReadonlySet<string> = new Set(["MIGRATION_NEEDED", "NEWER_LEDGER"]);

/** What one place says, or why it cannot be asked. */
type Place = { readonly state: KillSwitchState } | { readonly fault: string };

/**
 * `killswitch show`: both places.
 * @returns 0 when nothing is stopped; 1 when something is, as by a file that cannot be read; 2 where the
 * ledger alone cannot be asked
 */
export async function runShowSwitch(command: LedgerCommand): Promise<number> {
  const places = { home: readHome(command), ledger: await readLedger(command) };
  if (command.json) command.print(toJson(places));
  else {
    command.print(`home    ${placeLine(places.home)}`);
    command.print(`ledger  ${placeLine(places.ledger)}`);
  }
  const { home, ledger } = places;
  const isStopped = (place: Place) => "state" in place && place.state.level !== "none";
  // The signer takes a file that it cannot read for the highest level.
  if ("fault" in home || isStopped(home) || isStopped(ledger)) return 1;
  return "fault" in ledger ? NOT_MADE : 0;
}

/**
 * `killswitch set LEVEL`: the home's file first, so that the signer stops whatever else is down. A home that
 * cannot be written (read-only, in a container) keeps the ledger from nothing. What stops less than before
 * takes the way of `lift`.
 * @returns 0, or 1 when the ledger could not be told, or somebody has set the home meanwhile
 * @throws HOME_UNUSABLE where neither place could be told; it says which wallets are frozen instead
 */
export async function runSetSwitch(
  command: LedgerCommand,
  options: SetSwitchOptions & { readonly level: string },
): Promise<number> {
  const { level } = options;
  if (!isKillSwitchLevel(level) || level === "none") {
    const levels = KILL_SWITCH_LEVELS.filter((known) => known !== "none").join(", ");
    throw new CliError("USAGE", `LEVEL is one of ${levels}; \`killswitch lift\` ends it.`);
  }
  const state = newState(level, options);
  const looked = lookAtKillSwitchFile(killSwitchPath(command.home));
  const before = readHome(command);
  // Never looser in between: what is lowered is lowered last in the file.
  const isRaised = "fault" in before || stricter(before.state, state) === state;
  const homeFault = isRaised ? await raiseHome(command, state) : undefined;
  const isLowered = !isRaised && before.state.level !== level;
  const told = await tellLedger(command, state, { how: isLowered ? AT_ONCE : TO_STOP });
  if ("sentence" in told) {
    const untold = `The ledger could not be told (${told.sentence})`;
    if (homeFault !== undefined) throw withMore(homeFault, untold);
    const obeyed = stops(level, "stop-sign") ? OBEYED_BY : `this home alone is at ${level}`;
    const kept = isLowered ? "this home stays as it was" : obeyed;
    return refuse(command, `${untold}: ${kept}.${told.isPassing ? " Try again." : ""}`);
  }
  const change = { state, homeBefore: before, ledgerBefore: told.before };
  if (!isRaised) return lowerHome(command, looked, change);
  // What was set by others at the same time, and stops less, may have replaced the file before the ledger
  // could tell them; from now on it does.
  const now = readHome(command);
  const isLower = "state" in now && stricter(now.state, state) === state;
  const lastFault = isLower ? await raiseHome(command, state) : homeFault;
  return report(command, change, lastFault);
}

/**
 * `killswitch lift`: the ledger first; while it cannot be told, nothing is lifted. Nor is what somebody has
 * set meanwhile, there or in this home: whoever types this has not seen it.
 */
export async function runLiftSwitch(
  command: LedgerCommand,
  options: SetSwitchOptions,
): Promise<number> {
  const state = newState("none", options);
  const file = killSwitchPath(command.home);
  await giveBackKillSwitchFile(file).catch((cause: unknown) => {
    throw cannotWrite(file, cause);
  });
  const looked = lookAtKillSwitchFile(file);
  const homeBefore = readHome(command);
  const told = await tellLedger(command, state, { how: AT_ONCE, isSeenFirst: true });
  if ("sentence" in told) {
    if (told.now !== undefined) return refuse(command, setMeanwhile({ state: told.now }));
    return refuse(command, `The ledger could not be told (${told.sentence}): nothing is lifted.`);
  }
  return lowerHome(command, looked, { state, homeBefore, ledgerBefore: told.before });
}

/**
 * The file, where it is what was looked at, behind the ledger.
 * @returns 0, or 1 where somebody has set it meanwhile
 * @throws HOME_UNUSABLE where it cannot be written and stops more; it says that the ledger is lowered already
 */
async function lowerHome(
  command: LedgerCommand,
  looked: string,
  change: SwitchChange,
): Promise<number> {
  const { state } = change;
  const file = killSwitchPath(command.home);
  let homeFault: CliError | undefined;
  const isLowered = await exchangeKillSwitchFile(file, looked, state).catch((cause: unknown) => {
    homeFault = cannotWrite(file, cause);
    // One that stops no more than this need not be written.
    const now = readHome(command);
    if ("fault" in now || stricter(state, now.state) !== state) {
      const kept = `this home still stops: ${placeLine(now)}`;
      throw withMore(homeFault, `${loweredAlready(state)}; ${kept}`);
    }
    return lookAtKillSwitchFile(file) === looked;
  });
  if (isLowered) return report(command, change, homeFault);
  // Whoever has set it tells the ledger behind the home, so that it may be anywhere by now.
  const lowered = `The ledger had been lowered to ${state.level} before`;
  return refuse(command, `${setMeanwhile(readHome(command))} ${lowered}.`);
}

/** What must not be missed where only half of it could be done. */
function loweredAlready({ level }: KillSwitchState): string {
  return `The ledger is at ${level} already, and workers of other homes go by it`;
}

function setMeanwhile(now: Place): string {
  return `It was set again meanwhile: ${placeLine(now)}; look, then type this again.`;
}

function newState(level: KillSwitchLevel, { reason, operator }: SetSwitchOptions): KillSwitchState {
  if (reason.trim() === "" || reason.length > MAX_REASON_CHARACTERS.record) {
    throw new CliError(
      "USAGE",
      `--reason must say why, in at most ${MAX_REASON_CHARACTERS.record} characters.`,
    );
  }
  return { level, reason, by: operatorName(operator), at: new Date().toISOString() };
}

function readHome({ home }: LedgerCommand): Place {
  try {
    return { state: readKillSwitchFile(killSwitchPath(home)) };
  } catch (error) {
    return { fault: errorMessage(error) };
  }
}

async function readLedger(command: LedgerCommand): Promise<Place> {
  try {
    const read = async ({ database }: LedgerAlone) => ({ state: await readKillSwitch(database) });
    return await withLedgerAlone(command, read, AT_ONCE);
  } catch (error) {
    return { fault: errorMessage(error) };
  }
}

/** @returns why the file cannot be written; undefined where it was */
async function raiseHome(
  { home }: LedgerCommand,
  state: KillSwitchState,
): Promise<CliError | undefined> {
  const file = killSwitchPath(home);
  try {
    await writeKillSwitchFile(file, state);
    return undefined;
  } catch (cause) {
    return cannotWrite(file, cause);
  }
}

/** A fault of the home with what became of the ledger. */
function withMore({ code, message, retriable, cause }: CliError, more: string): CliError {
  return new CliError(code, `${message} ${more}.`, { retriable, cause });
}

/** What was set, and what both places said before. */
interface SwitchChange {
  readonly state: KillSwitchState;
  readonly homeBefore: Place;
  readonly ledgerBefore: KillSwitchState;
}

/** Why the ledger could not be told. */
interface LedgerFault {
  readonly sentence: string;
  /** Whether it may be told when this is typed again. */
  readonly isPassing: boolean;
  /** What somebody has set there meanwhile, where that is why. */
  readonly now?: KillSwitchState;
}

/**
 * @param options `isSeenFirst`: nothing is lowered that was set since this looked
 * @returns what it said before, or why it could not be told
 */
async function tellLedger(
  command: LedgerCommand,
  state: KillSwitchState,
  options: { readonly how: typeof AT_ONCE; readonly isSeenFirst?: boolean },
): Promise<LedgerFault | { readonly before: KillSwitchState }> {
  const { how, isSeenFirst = false } = options;
  const tell = async (opened: LedgerAlone) => {
    const { database } = opened;
    try {
      const bounds = isSeenFirst ? { seen: await readKillSwitch(database) } : {};
      return await setKillSwitch(database, state, bounds);
    } catch (error) {
      if (errorCode(error) === "SWITCH_LOWERED") {
        const sentence = errorMessage(error);
        return { sentence, isPassing: false, now: await readKillSwitch(database) };
      }
      throw isOtherTables(error) ? await freezeInstead(opened, command.home, state) : error;
    }
  };
  try {
    return await withLedgerAlone(command, tell, how);
  } catch (error) {
    const isPassing = error instanceof AppError && error.retriable;
    return { sentence: errorMessage(error), isPassing };
  }
}

/** Tables of 0.1.0 have no kill switch, but one for each wallet. @returns what to say */
async function freezeInstead(
  opened: LedgerAlone,
  home: string,
  { level, reason }: KillSwitchState,
): Promise<LedgerError> {
  const isFrozenInstead = stops(level, "stop-sign");
  const meant = { reason: `kill switch ${level}: ${reason}`, wallet: undefined };
  const freeze = isFrozenInstead ? await freezeWallets(opened, home, meant) : undefined;
  const later = await laterMigrations(opened.database);
  const isLater = later.length > 0;
  const lack = isLater
    ? `its tables are of a later release, which made ${later.join(", ")}, and have no such kill switch`
    : "its tables are older than this program and have no kill switch";
  const remedy = isLater ? "type it with that release" : "run `causeway migrate`";
  const instead = level === "none" ? "" : ", or set stop-sign, which freezes each wallet";
  const done = freeze === undefined ? `: ${remedy}${instead}` : frozenWords(freeze);
  const retriable = freeze?.fault instanceof AppError && freeze.fault.retriable;
  const code = isLater ? "NEWER_LEDGER" : "MIGRATION_NEEDED";
  return new LedgerError(code, `${lack}${done}`, { retriable });
}

/** Which of the wallets are frozen that were to be, and why others are not. */
function frozenWords({ switches, fault }: FrozenWallets): string {
  const named = (wanted: boolean) =>
    switches
      .filter(({ frozen }) => frozen === wanted)
      .map(({ wallet }) => toChecksumAddress(wallet))
      .join(", ");
  const [frozen, others] = [named(true), named(false)];
  const done = "; by a switch of its own nothing more is signed for";
  // That the tables lack something has been said.
  const isSaid = fault instanceof LedgerError && LACKS.has(fault.code);
  return [
    ...(frozen === "" ? [] : [`${done} ${frozen} until \`withdrawals release\``]),
    ...(others === "" ? [] : [`; NOT frozen: ${others}`]),
    ...(fault === undefined || isSaid ? [] : [`; ${errorMessage(fault)}`]),
  ].join("");
}

/** What was not done; as JSON, where the answer is read by a program. */
function refuse(command: LedgerCommand, sentence: string): number {
  command.print(command.json ? toJson({ refused: sentence }) : sentence);
  return 1;
}

function report(command: LedgerCommand, change: SwitchChange, homeFault?: CliError): number {
  const { state, ledgerBefore: before } = change;
  if (command.json) {
    command.print(toJson({ ...state, before, homeFault: homeFault?.message ?? null }));
    return 0;
  }
  if (state.level === "none") command.print("The kill switch is lifted.");
  else command.print(`The kill switch is at ${state.level}; running workers obey within a second.`);
  if (homeFault !== undefined) {
    command.print(`It is so in the ledger alone, which they ask: ${homeFault.message}`);
  }
  if (state.level !== "none") tellLowered(command, change);
  const isLower = state.level === "none" || isMore(before, state);
  const isOfOthers = homeFault !== undefined || isMoreThanHome(change);
  if (isLower && isOfOthers) command.print(OTHER_HOMES);
  return 0;
}

/** Whoever types `set` to stop something must see that something else is not stopped any more. */
function tellLowered(command: LedgerCommand, change: SwitchChange): void {
  const { state, homeBefore, ledgerBefore } = change;
  const places: readonly (readonly [string, Place])[] = [
    ["", homeBefore],
    [" in the ledger", { state: ledgerBefore }],
  ];
  const said = new Set<string>();
  for (const [where, place] of places) {
    if ("fault" in place || !isMore(place.state, state)) continue;
    const { level, by, reason } = place.state;
    // One word of one person in both places is said once: their times differ.
    const word = JSON.stringify([level, by, reason]);
    if (!said.has(word)) command.print(`It stops less than before${where}: ${placeLine(place)}.`);
    said.add(word);
  }
}

/** Whether the ledger stopped more than this home did: it was set elsewhere. */
function isMoreThanHome({ homeBefore, ledgerBefore }: SwitchChange): boolean {
  return "state" in homeBefore && isMore(ledgerBefore, homeBefore.state);
}

/** Whether a state stops more than another. */
function isMore(state: KillSwitchState, other: KillSwitchState): boolean {
  return state !== other && stricter(other, state) === state;
}

function placeLine(place: Place): string {
  if ("fault" in place) return `cannot be read: ${place.fault}`;
  const { level, reason, by, at } = place.state;
  return at === undefined ? level : `${level} since ${at}, by ${by}: ${reason}`;
}
