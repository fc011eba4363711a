/** Settings of app.toml about what a node keeps of the past; names as operators know them. */
import type { ConfigFault } from "../../runtime/config/config.js";
import { field } from "../../runtime/config/config.js";

/** What is kept of past states. */
export interface StateRetention {
  /** States below the head that are kept. */
  readonly keepRecentBlocks: number;
  /** States are pruned each time the head has moved on by so much. */
  readonly intervalBlocks: number;
}

/** `pruning = "everything"`, as in the SDK; a custom setting may not keep less. */
const EVERYTHING: StateRetention = { keepRecentBlocks: 2, intervalBlocks: 10 };

const MAX_BLOCKS = 1_000_000_000;

/** Keys above the first table of app.toml. */
export const PRUNING_SETTINGS = {
  pruning: field.choice({
    default: "default",
    values: ["default", "nothing", "everything", "custom"],
    help:
      "What is kept of past states. default: balances, nonces and storage of every height, proofs " +
      "for the last 1,024 blocks. nothing: proofs of every height as well (an archive). " +
      "everything: states of the last 2 blocks, looked after every 10. custom: as the next two " +
      "keys say. An exchange needs default or nothing.",
  }),
  "pruning-keep-recent": field.integer({
    default: 0,
    min: 0,
    max: MAX_BLOCKS,
    unit: "blocks",
    help: 'States below the newest that are kept; with pruning = "custom" only, then at least 2.',
  }),
  "pruning-interval": field.integer({
    default: 0,
    min: 0,
    max: MAX_BLOCKS,
    unit: "blocks",
    help: 'How often states are pruned; with pruning = "custom" only, then at least 10.',
  }),
  "min-retain-blocks": field.integer({
    default: 0,
    min: 0,
    max: MAX_BLOCKS,
    unit: "blocks",
    help:
      "Older blocks are deleted, with receipts, logs, journals and their indexes, except those " +
      "that evidence, kept states, snapshots or double_sign_check_height need. 0 keeps all.",
  }),
  "halt-height": field.integer({
    default: 0,
    min: 0,
    max: Number.MAX_SAFE_INTEGER,
    help:
      "The node commits the block of this height and then ends with exit code 0; it does not " +
      "start above it, and a kit does not start it again. 0 never halts.",
  }),
} as const;

/** Values of these settings. */
export interface PruningSettings {
  readonly pruning: "default" | "nothing" | "everything" | "custom";
  readonly "pruning-keep-recent": number;
  readonly "pruning-interval": number;
}

/** A custom setting that keeps less than "everything" does (the SDK refuses it too). */
export function pruningFaults(app: PruningSettings): readonly Omit<ConfigFault, "file">[] {
  if (app.pruning !== "custom") return [];
  const wanted = [
    ["pruning-keep-recent", EVERYTHING.keepRecentBlocks],
    ["pruning-interval", EVERYTHING.intervalBlocks],
  ] as const;
  return wanted.flatMap(([key, least]) =>
    app[key] >= least
      ? []
      : [{ key, value: `${app[key]}`, allowed: `at least ${least} with pruning = "custom"` }],
  );
}

/** What is kept of past states; undefined where all are. */
export function stateRetention(app: PruningSettings): StateRetention | undefined {
  if (app.pruning === "everything") return EVERYTHING;
  if (app.pruning !== "custom") return undefined;
  return {
    keepRecentBlocks: app["pruning-keep-recent"],
    intervalBlocks: app["pruning-interval"],
  };
}

/** Whether proofs go by the window of the last blocks, or by the states that are kept. */
export function keepsProofsByWindow(app: PruningSettings): boolean {
  return app.pruning === "default";
}
