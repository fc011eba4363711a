/** `causeway upgrade ...`: releases that are to go on at the height of a planned upgrade. */
import { dirname } from "node:path";
import { z } from "zod";
import { KIT_VERSION } from "../../chain/version.js";
import { KNOWN_UPGRADES } from "../../node/settings/app-version.js";
import { loadDescriptors } from "../../runtime/files/descriptor-set.js";
import { heirOf } from "../../runtime/files/owner.js";
import { type CommandContext, printJson } from "../command-context.js";
import { CliError, sentenceOf } from "../errors.js";
import { homePaths, isKitHome } from "../home/home.js";
import { assertOneNode } from "../home/network/one-node.js";
import { skippedHeights } from "../home/skip-choice.js";
import { cometRpcUrl, evmRpcUrl } from "../probe/node-status.js";
import { assertOwnNode } from "../probe/own-node.js";
import { queryNode } from "../queries/node-query.js";
import { NOT_MADE } from "../shared-options.js";
import { ownRelease, prospectFault } from "./fitness.js";
import {
  changeRecord,
  readRecord,
  readRecords,
  recordFile,
  type StagedUpgrade,
} from "./records.js";
import { isOpenTo, readRelease } from "./release.js";

/** Flags of `upgrade stage`. */
export interface StageOptions {
  readonly release: string;
  readonly sha256?: string;
  readonly replace?: boolean;
}

/** Flags of `upgrade unstage`. */
export interface UnstageOptions {
  readonly switched?: boolean;
}

/** The plan of the chain, or why it is not known. */
type ChainPlan =
  | { readonly plan: { readonly name: string; readonly height: number } | undefined }
  | { readonly reason: string };

const planAnswer = z.object({
  plan: z
    .object({ name: z.string(), height: z.string().transform(Number) })
    .nullish()
    .transform((plan) => plan ?? undefined),
});

/**
 * Records that a release goes on at the plan's height.
 * @returns 0
 * @throws RELEASE_UNFIT, USAGE; HOME_INCOMPLETE, HOME_UNUSABLE, HOME_LOCKED
 */
export async function runStageUpgrade(
  context: CommandContext,
  name: string,
  { release: folder, sha256, replace = false }: StageOptions,
): Promise<number> {
  const { home, env, signal } = context;
  const paths = homePaths(home);
  assertOneNode(paths);
  if (sha256 !== undefined && !/^[0-9a-f]{64}$/i.test(sha256)) {
    throw new CliError("USAGE", "--sha256 takes the 64 hex digits of a SHA-256.");
  }
  const release = await readRelease(folder, { env, signal });
  if (sha256 !== undefined && sha256.toLowerCase() !== release.sha256) {
    const message =
      `What the release in ${release.folder} runs has the SHA-256 ${release.sha256}, ` +
      `not ${sha256}. Nothing is staged.`;
    throw new CliError("RELEASE_UNFIT", message);
  }
  if (!release.upgrades.some((known) => known.name === name)) {
    const known = release.upgrades.map((one) => one.name).join(", ");
    const message =
      `The release in ${release.folder} does not know the upgrade ${JSON.stringify(name)}; ` +
      `it knows: ${known}.`;
    throw new CliError("RELEASE_UNFIT", message);
  }
  assertOpen(home, release.folder);
  const { version, upgrades } = release;
  const wanted = { name, release: release.folder, version, upgrades, sha256: release.sha256 };
  const record = await changeRecord({ home, name, signal }, (present) => {
    if (present === undefined) return { ...wanted, state: "staged" };
    if (isSame(present, wanted)) return present;
    if (!replace) throw otherStaged(present);
    // Once the plan was met a program without the upgrade cannot run the node: it goes on handing over.
    return { ...present, ...wanted };
  });
  if (record === undefined) throw new RangeError("a staged release is gone");
  if (context.json) printJson(context, { staged: record });
  else {
    context.print(`Staged for the upgrade ${name}: ${record.release}, version ${record.version}.`);
    context.print(`  sha256 ${record.sha256}`);
    context.print(
      "The node of this home, started by `causeway start`, goes on with it at the plan's height; one " +
        "that has halted there already is to be started again. Leave the folder as it is: what is not what " +
        "was staged is not started.",
    );
    if (isKitHome(paths)) context.print(OF_KITS);
  }
  return 0;
}

const OF_KITS =
  "`npm start` does not look at it: stop a kit that it runs, and start the new release's on this home, " +
  "before the height.";

/**
 * What is staged and whether it would go on, the plan of the chain, what this release knows.
 * @returns 1 where a staged release would not be started, or nothing knows the plan of the chain; else 2
 * where that plan is not known, or 0
 * @throws HOME_INCOMPLETE, HOME_UNUSABLE
 */
export async function runListUpgrades(context: CommandContext): Promise<number> {
  const { home, env, signal } = context;
  assertOneNode(homePaths(home));
  const own = await ownRelease();
  const staged = await Promise.all(
    (await readRecords(home)).map(async ({ file, record }) => {
      if (record === undefined) return { file, fault: `${file} is no record of a staged release` };
      return { file, ...record, fault: await prospectFault(record, own, signal) };
    }),
  );
  const chain = await chainPlan(context);
  const plan = "plan" in chain ? chain.plan : undefined;
  const givenUp = plan !== undefined && skippedHeights({ home, env }, []).has(plan.height);
  const missing = plan === undefined || givenUp ? undefined : missingFault(plan, staged);
  const isWell = missing === undefined && staged.every(({ fault }) => fault === undefined);
  if (context.json) printJson(context, { staged, chain, givenUp, known: KNOWN_UPGRADES, missing });
  else {
    for (const one of staged) context.print(stagedLine(one));
    if (staged.length === 0) context.print("Nothing is staged.");
    context.print(planLine(chain, givenUp));
    if (missing !== undefined) context.print(`  ${missing}`);
    const known = KNOWN_UPGRADES.map(({ name, appVersion }) => `${name} (version ${appVersion})`);
    context.print(`This release, ${KIT_VERSION}, knows: ${known.join(", ")}.`);
  }
  if (!isWell) return 1;
  return "reason" in chain ? NOT_MADE : 0;
}

/**
 * Takes back what was staged.
 * @returns 0
 * @throws USAGE where nothing is, or it has taken over already; HOME_UNUSABLE, HOME_LOCKED
 */
export async function runUnstageUpgrade(
  context: CommandContext,
  name: string,
  { switched = false }: UnstageOptions,
): Promise<number> {
  const { home, signal } = context;
  // Looked at first: the folder of the records is not made for nothing.
  if ((await readRecord(home, name)) === undefined) throw nothingStaged(name);
  await changeRecord({ home, name, signal }, (present) => {
    if (present === undefined) throw nothingStaged(name);
    if (present.state === "switched" && !switched) throw tookOver(present);
    return undefined;
  });
  if (context.json) printJson(context, { unstaged: name });
  else context.print(`Nothing is staged any more for the upgrade ${name}.`);
  return 0;
}

/**
 * What this release knows: another one reads the JSON before it stages this one.
 * @returns 0
 */
export function runKnownUpgrades(context: CommandContext): number {
  if (context.json) printJson(context, { release: KIT_VERSION, upgrades: KNOWN_UPGRADES });
  else {
    for (const { name, appVersion } of KNOWN_UPGRADES) {
      context.print(`  ${name}  version ${appVersion} of the rules`);
    }
  }
  return 0;
}

/**
 * Root reads everything, and the node, at the height, what its user may.
 * @throws RELEASE_UNFIT
 */
function assertOpen(home: string, folder: string): void {
  const user = heirOf(dirname(recordFile(home, "")));
  if (user === undefined || isOpenTo(folder, user)) return;
  const message =
    `The release in ${folder} is not open to the user of ${home} (${user.uid}), which the node runs as: ` +
    "open it and the folders above it to that user, or stage it as that user.";
  throw new CliError("RELEASE_UNFIT", message);
}

function isSame(
  { release, sha256 }: StagedUpgrade,
  wanted: Pick<StagedUpgrade, "release" | "sha256">,
): boolean {
  return release === wanted.release && sha256 === wanted.sha256;
}

function otherStaged({ name, release, sha256 }: StagedUpgrade): CliError {
  const message =
    `For the upgrade ${name} ${release} is staged, SHA-256 ${sha256}: with --replace the other one takes ` +
    "its place.";
  return new CliError("USAGE", message);
}

function nothingStaged(name: string): CliError {
  return new CliError("USAGE", `Nothing is staged for the upgrade ${JSON.stringify(name)}.`);
}

function tookOver({ name, release }: StagedUpgrade): CliError {
  const message =
    `${release} has taken over at the upgrade ${name}: without the record an older program that is started ` +
    "on this home halts. Where your service starts a release that knows the upgrade, add --switched.";
  return new CliError("USAGE", message);
}

/** As the node of the home tells it. */
async function chainPlan(context: CommandContext): Promise<ChainPlan> {
  const { home, signal } = context;
  try {
    await assertOwnNode(home, evmRpcUrl(context), signal);
    const target = { url: cometRpcUrl(context), height: 0, signal };
    const path = "/cosmos.upgrade.v1beta1.Query/CurrentPlan";
    return planAnswer.parse(await queryNode(loadDescriptors(), path, {}, target));
  } catch (error) {
    signal.throwIfAborted();
    return { reason: sentenceOf(error) };
  }
}

/** Why a node of this release on the home does not get over the plan; undefined where it does. */
function missingFault(
  { name }: { readonly name: string },
  staged: readonly { readonly name?: string; readonly fault: string | undefined }[],
): string | undefined {
  if (KNOWN_UPGRADES.some((known) => known.name === name)) return undefined;
  if (staged.some((one) => one.name === name && one.fault === undefined)) return undefined;
  return (
    "this release does not know it, and none that may be started is staged: the node will halt " +
    "before it"
  );
}

function stagedLine(
  one: { readonly file: string; readonly fault: string | undefined } & Partial<StagedUpgrade>,
): string {
  if (one.name === undefined) return `  ${one.fault}`;
  const state = one.state === "switched" ? `has taken over at height ${one.height}` : "staged";
  const fault = one.fault === undefined ? "as it was staged" : `NOT STARTED: ${one.fault}`;
  return `  ${one.name}  ${state}  ${one.release} (${one.version}), sha256 ${one.sha256}: ${fault}`;
}

function planLine(chain: ChainPlan, givenUp: boolean): string {
  if ("reason" in chain) return `The plan of the chain is not known: ${chain.reason}`;
  const { plan } = chain;
  if (plan === undefined) return "The chain plans no upgrade.";
  const here = givenUp ? ", which the settings give up here (skip-upgrades)" : "";
  return `The chain plans ${plan.name} at height ${plan.height}${here}.`;
}
