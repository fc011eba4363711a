/**
 * What `causeway start` does with staged releases: at the height of a planned upgrade that this program does
 * not know it ends its node and has the staged release go on; started again later, it has that go on at once.
 * Where nothing is staged nothing happens.
 */
import { KNOWN_UPGRADES } from "../../node/settings/app-version.js";
import type { Environment } from "../../runtime/config/config.js";
import type { ProcessContext } from "../../runtime/process/lifecycle.js";
import type { Logger } from "../../runtime/process/logger.js";
import { runSuccessor } from "../../runtime/process/successor.js";
import { sentenceOf } from "../errors.js";
import { ownRelease, releaseFault } from "./fitness.js";
import { environmentAt, type MetPlan } from "./next-environment.js";
import { programOf } from "./release.js";
import { changeRecord, readRecord, readRecords, type StagedUpgrade } from "./records.js";

/** How the node of a home was started. */
export interface NodeStart {
  readonly home: string;
  /** Words behind `start`, for whatever goes on in its place. */
  readonly flags: readonly string[];
  /** Heights at which an upgrade is given up, by flags and settings. */
  readonly skipped: () => ReadonlySet<number>;
  readonly env: Environment;
  readonly signal: AbortSignal;
  /** One line for people. */
  readonly warn: (line: string) => void;
}

/**
 * Has the release go on that took over from a program like this one. The store is not opened before.
 * @returns its exit code; undefined where this program runs the node itself, after a warning where the
 * release may not be started
 * @throws HOME_UNUSABLE where the records cannot be read; the signal's reason
 */
export async function resumeHandOver(start: NodeStart, log: Logger): Promise<number | undefined> {
  const record = await newestSwitch(start);
  if (record === undefined) return undefined;
  const fault = await releaseFault(record, await ownRelease(), start.signal);
  start.signal.throwIfAborted();
  if (fault !== undefined) {
    start.warn(`The release that took over is not started, and this one runs the node: ${fault}.`);
    return undefined;
  }
  log.info(fieldsOf(record), "the release that took over goes on");
  const { env, flags } = start;
  return runSuccessor({ script: programOf(record.release), args: ["start", ...flags], env, log });
}

/** The highest upgrade that was met and that this program does not know, unless it is given up. */
async function newestSwitch(start: NodeStart): Promise<StagedUpgrade | undefined> {
  const records = (await readRecords(start.home)).flatMap(({ file, record }) => {
    if (record === undefined) start.warn(`${file} is no record of a staged release.`);
    return record ?? [];
  });
  const foreign = records.filter(({ state, name }) => {
    return state === "switched" && !KNOWN_UPGRADES.some((known) => known.name === name);
  });
  if (foreign.length === 0) return undefined;
  const skipped = start.skipped();
  const left = foreign.filter(({ height = 0 }) => !skipped.has(height));
  return left.toSorted((one, other) => (other.height ?? 0) - (one.height ?? 0))[0];
}

/**
 * Hands over at the height of a plan, where a release is staged for it that is still what was staged; else
 * the node stays as it is, halted, and the log says why. The record says so before anything is ended:
 * whatever happens then, the next start hands over.
 */
export async function handOverAt(
  plan: MetPlan,
  start: NodeStart,
  { log, signal, handOver }: Pick<ProcessContext, "log" | "signal" | "handOver">,
): Promise<void> {
  const { home, flags } = start;
  const { name, height } = plan;
  try {
    const record = await readRecord(home, name);
    if (record === undefined) return;
    const fault = await releaseFault(record, await ownRelease(), signal);
    if (fault !== undefined) {
      log.error({ name, height, reason: fault }, "the staged release is not started: still halted");
      return;
    }
    const { sha256, release } = record;
    const switched = await changeRecord({ home, name, signal }, (present) => {
      const isSame = present?.sha256 === sha256 && present.release === release;
      return isSame ? { ...present, state: "switched", height } : present;
    });
    if (switched?.state !== "switched" || switched.height !== height) {
      log.error({ name, height }, "what is staged was changed just now: still halted");
      return;
    }
    log.info(fieldsOf(switched), "the staged release goes on");
    const env = environmentAt(plan, start.env);
    const script = programOf(release);
    handOver(`upgrade ${name} at height ${height}`, () =>
      runSuccessor({ script, args: ["start", ...flags], env, log }),
    );
  } catch (error) {
    if (signal.aborted) return;
    const reason = sentenceOf(error);
    log.error({ name, height, reason }, "the staged release is not started: still halted");
  }
}

function fieldsOf({ name, height, release, version, sha256 }: StagedUpgrade) {
  return { name, height, release, version, sha256 };
}
