/**
 * Which upgrades this program can make, and what it does at the height of one (x/upgrade
 * `abci.go`). A program that has no handler for the plan stops before the block, so that nothing is
 * decided by rules that the network has left. Rules go by the version in the state: a program that
 * knows an upgrade may run before its height, and reads all older blocks.
 */
import { AppError } from "../../../chain/errors.js";
import {
  KNOWN_UPGRADES,
  type KnownUpgrade,
  NEWEST_APP_VERSION,
} from "../../settings/app-version.js";
import type { JournaledState } from "../../state/journaled-state.js";
import type { BlockEndContext } from "../module-context.js";
import { appVersion, clearPlan, completePlan, upgradePlan, type UpgradePlan } from "./plan.js";

/** Codes of upgrades that this program cannot follow. */
export type UpgradeErrorCode = "UPGRADE_NEEDED" | "VERSION_UNKNOWN";

/** This program must not make the next block. */
export class UpgradeError extends AppError<UpgradeErrorCode> {}

/** What this program does for one plan. */
export interface UpgradeHandler extends KnownUpgrade {
  /** Changes the state, before the transactions of the block at the plan's height. */
  run(context: BlockEndContext): void;
}

/** What a node is ready for. */
export interface Upgrades {
  readonly handlers: readonly UpgradeHandler[];
  /** Heights at which a plan is given up in place of carried out: all validators must agree. */
  readonly skipHeights: ReadonlySet<number>;
  /** Told of a plan that stops this node. */
  readonly onNeeded?: (plan: UpgradePlan) => void;
}

/** What the upgrades of this release change in the state. */
const CHANGES: Readonly<Record<(typeof KNOWN_UPGRADES)[number]["name"], UpgradeHandler["run"]>> = {
  // Only rules change: what the state holds is as before.
  "sdk-refusals": () => undefined,
};

/** Upgrades of this release. */
export const UPGRADE_HANDLERS: readonly UpgradeHandler[] = KNOWN_UPGRADES.map((known) => ({
  ...known,
  run: CHANGES[known.name],
}));

/** Nothing to skip, nobody to tell. */
export const PLAIN_UPGRADES: Upgrades = { handlers: UPGRADE_HANDLERS, skipHeights: new Set() };

/**
 * Whether this program may make the block of a height on a state.
 * @throws UPGRADE_NEEDED with the plan in `details`, VERSION_UNKNOWN
 */
export function assertUpgraded(state: JournaledState, height: number, upgrades: Upgrades): void {
  const { handlers, skipHeights } = upgrades;
  const known = Math.max(NEWEST_APP_VERSION, ...handlers.map((handler) => handler.appVersion));
  const version = appVersion(state);
  if (version > known) {
    throw new UpgradeError(
      "VERSION_UNKNOWN",
      `this chain runs by version ${version} of its rules, this program knows up to version ` +
        `${known}: start the release that the network runs`,
      { details: { version, known } },
    );
  }
  const plan = duePlan(state, height);
  if (plan === undefined || skipHeights.has(height) || handlerOf(plan, handlers)) return;
  upgrades.onNeeded?.(plan);
  const { name, info } = plan;
  throw new UpgradeError(
    "UPGRADE_NEEDED",
    `UPGRADE "${name}" NEEDED at height: ${height}: ${info === "" ? "" : `${info}: `}this ` +
      "program has no handler for it. Stop this node and start the release that has it; it goes " +
      `on from block ${height - 1}. Only if the validators have agreed to go on without it, ` +
      `write ${height} into skip-upgrades of app.toml, where it stays, or start with ` +
      `--skip-upgrade ${height}`,
    { details: { name, height, info } },
  );
}

/** Does what is planned for the block, before its transactions; the block may be made. */
export function beginUpgrade(context: BlockEndContext, upgrades: Upgrades): void {
  const { state, height } = context;
  const plan = duePlan(state, height);
  if (plan === undefined) return;
  const { name } = plan;
  if (upgrades.skipHeights.has(height)) {
    clearPlan(state);
    context.emit("skip_upgrade", { name, height: height.toString() });
    return;
  }
  const handler = handlerOf(plan, upgrades.handlers);
  if (handler === undefined) throw new RangeError("an upgrade without a handler");
  handler.run(context);
  const version = completePlan(state, plan, handler.appVersion);
  context.emit("upgrade", { name, height: height.toString(), app_version: version.toString() });
}

function duePlan(state: JournaledState, height: number): UpgradePlan | undefined {
  const plan = upgradePlan(state);
  return plan?.height === height ? plan : undefined;
}

function handlerOf({ name }: UpgradePlan, handlers: readonly UpgradeHandler[]) {
  return handlers.find((handler) => handler.name === name);
}
