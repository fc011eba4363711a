/** Whether a staged release may go on in the place of this program. */
import { access, constants, realpath } from "node:fs/promises";
import { KNOWN_UPGRADES, type KnownUpgrade } from "../../node/settings/app-version.js";
import { sentenceOf, systemCode } from "../errors.js";
import { cloneFolder } from "../home/home.js";
import type { StagedUpgrade } from "./records.js";
import { digestOf, releaseNodeFault } from "./release.js";

/** The release of this program. */
export interface OwnRelease {
  /** Absolute, without links. */
  readonly folder: string;
  readonly upgrades: readonly KnownUpgrade[];
  /** The program of Node that runs it, and will run what goes on in its place. */
  readonly node: { readonly path: string; readonly version: string };
}

/** The release that this program is of. */
export async function ownRelease(): Promise<OwnRelease> {
  const node = { path: process.execPath, version: process.versions.node };
  return { folder: await realpath(cloneFolder()), upgrades: KNOWN_UPGRADES, node };
}

/**
 * Why a staged release may not go on in the place of another; undefined where it may. What it runs is read
 * again, whole.
 * @throws the signal's reason
 */
export async function releaseFault(
  staged: StagedUpgrade,
  own: OwnRelease,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { name, release, upgrades } = staged;
  const knows = (wanted: string) => upgrades.some((one) => one.name === wanted);
  if (release === own.folder) return `${release} is this very release`;
  if (!knows(name)) return `the release in ${release} does not know the upgrade "${name}"`;
  const lost = own.upgrades.find((one) => !knows(one.name));
  if (lost !== undefined) {
    return `the release in ${release} is older than this one: it does not know the upgrade "${lost.name}"`;
  }
  return (await digestFault(staged, signal)) ?? nodeFault(release, own.node);
}

/** Why the Node that would run a release will not; undefined where it will. */
async function nodeFault(
  release: string,
  { path, version }: OwnRelease["node"],
): Promise<string | undefined> {
  try {
    await access(path, constants.X_OK);
  } catch (error) {
    return `${path}, the Node that runs this, cannot be started (${systemCode(error)})`;
  }
  try {
    const fault = await releaseNodeFault(release, version);
    return fault === undefined ? undefined : `the release in ${release} ${fault}`;
  } catch (error) {
    return sentenceOf(error).replace(/\.$/, "");
  }
}

/**
 * Why a staged release would not go on in the place of another, before the plan is met; undefined where it
 * would. Over an upgrade that the other one knows it gets by itself, whatever is staged: that takes over from
 * older releases alone, and has to be what was staged.
 * @throws the signal's reason
 */
export function prospectFault(
  staged: StagedUpgrade,
  own: OwnRelease,
  signal: AbortSignal,
): Promise<string | undefined> {
  const isKnown = own.upgrades.some(({ name }) => name === staged.name);
  return isKnown ? digestFault(staged, signal) : releaseFault(staged, own, signal);
}

/**
 * Why a release is not what was staged; undefined where it is.
 * @throws the signal's reason
 */
export async function digestFault(
  { release, sha256 }: StagedUpgrade,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const found = await digestOf(release, signal);
    if (found === sha256) return undefined;
    return (
      `what the release in ${release} runs is not what was staged: its SHA-256 is ${found}, ` +
      `not ${sha256}`
    );
  } catch (error) {
    signal.throwIfAborted();
    return sentenceOf(error).replace(/\.$/, "");
  }
}
