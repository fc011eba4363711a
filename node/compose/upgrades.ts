/** What a node is ready for at the height of an upgrade, and the file that tells a supervisor. */
import path from "node:path";
import { PLAIN_MODE, replaceFile } from "../../runtime/files/durable-file.js";
import type { Logger } from "../../runtime/process/logger.js";
import { UPGRADE_HANDLERS, type Upgrades } from "../modules/upgrade/upgrades.js";
import type { UpgradePlan } from "../modules/upgrade/plan.js";
import type { AppConfig } from "../settings/config.js";

/** Go's zero time, which the SDK's plans have. */
const NO_TIME = "0001-01-01T00:00:00Z";

/** A planned upgrade that stops this node. */
export interface MetUpgrade extends UpgradePlan {
  /** See `Consensus.hasSignedHere`: the key's signatures in the last blocks are this very process'. */
  readonly hasSignedHere: boolean;
}

/**
 * Handlers of this release, heights of the settings, and who is told of a plan that stops this node: the
 * file that cosmovisor waits for, and `onUpgradeNeeded`.
 */
export function nodeUpgrades(parts: {
  readonly home: string;
  readonly app: AppConfig;
  readonly log: Logger;
  readonly onUpgradeNeeded?: (plan: MetUpgrade) => void;
  readonly hasSignedHere: () => boolean;
}): Upgrades {
  const { home, app, log, onUpgradeNeeded, hasSignedHere } = parts;
  const skipHeights = new Set(app[""]["skip-upgrades"].map(Number));
  return {
    handlers: UPGRADE_HANDLERS,
    skipHeights,
    onNeeded: (plan) => {
      writePlan(path.join(home, "data", "upgrade-info.json"), plan, log);
      onUpgradeNeeded?.({ ...plan, hasSignedHere: hasSignedHere() });
    },
  };
}

/** The plan in the SDK's JSON; the halt itself does not depend on the file. */
function writePlan(file: string, { name, height, info }: UpgradePlan, log: Logger): void {
  const text = JSON.stringify({ name, time: NO_TIME, height, info });
  replaceFile(file, text, PLAIN_MODE).catch((error: unknown) => {
    log.error({ err: error, file }, "the plan of the upgrade cannot be written");
  });
}
