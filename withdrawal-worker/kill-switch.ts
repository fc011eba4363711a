/** The kill switch as this process obeys it: the home's file and the ledger, the stricter of both. */
import { existsSync } from "node:fs";
import { errorMessage } from "../chain/errors.js";
import { readKillSwitch } from "../ledger/kill-switch/kill-switch.js";
import {
  encodeKillSwitch,
  giveBackKillSwitchFile,
  readKillSwitchFile,
} from "../ledger/kill-switch/kill-switch-file.js";
import { type KillSwitchState, stricter } from "../ledger/kill-switch/kill-switch-level.js";
import { createFileOnce, SECRET_MODE } from "../runtime/files/durable-file.js";
import type { Logger } from "../runtime/process/logger.js";
import { sleep } from "../runtime/process/task.js";
import type { Sql } from "../runtime/sql/sql.js";
import type { KillSwitch } from "./lane/lane-context.js";

/**
 * Makes the file where a home has none: the one that a `lift` had taken which ended in the middle, else as
 * the ledger says. A lost file lifts nothing.
 * Throws the system's and the database's faults.
 */
export async function ensureKillSwitchFile(file: string, sql: Sql): Promise<void> {
  await giveBackKillSwitchFile(file);
  if (existsSync(file)) return;
  createFileOnce(file, encodeKillSwitch(await readKillSwitch(sql)), SECRET_MODE);
}

/** What the file says; one that cannot be read stops everything. */
export function fileSwitch(file: string): KillSwitchState {
  try {
    return readKillSwitchFile(file);
  } catch (error) {
    const reason = errorMessage(error);
    return { level: "stop-broadcast", reason, by: "withdrawal-worker", at: undefined };
  }
}

/** The kill switch of home and ledger, read anew each time; the stricter of the two. */
export function createKillSwitch(parts: { readonly sql: Sql; readonly file: string }): KillSwitch {
  const { sql, file } = parts;
  return { read: async () => stricter(fileSwitch(file), await readKillSwitch(sql)) };
}

/** Between two looks at both places. */
const LOOK_MS = 1_000;

/** Tells of a home whose own file stops more than the ledger does: no `lift` in another home reaches it. */
export class HomeSwitch {
  readonly #parts: { readonly sql: Sql; readonly file: string; readonly log: Pick<Logger, "warn"> };
  #seen: string | undefined;
  #trouble: string | undefined;

  constructor(parts: {
    readonly sql: Sql;
    readonly file: string;
    readonly log: Pick<Logger, "warn">;
  }) {
    this.#parts = parts;
  }

  /** What this home stops by itself; undefined where it stops no more than the ledger. */
  trouble(): string | undefined {
    return this.#trouble;
  }

  /** Holds the file against the ledger once. @throws database faults */
  async look(): Promise<void> {
    const { sql, file, log } = this.#parts;
    const seen = ownStop(fileSwitch(file), await readKillSwitch(sql));
    // Who sets or lifts it writes one place behind the other: only what is so at two looks is told.
    const trouble = seen === this.#seen ? seen : undefined;
    this.#seen = seen;
    if (trouble !== undefined && trouble !== this.#trouble) {
      log.warn({ file, reason: trouble }, "this home stops more than the ledger says");
    }
    this.#trouble = trouble;
  }

  /** Looks again and again until the signal fires. */
  async follow({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    for (;;) {
      await sleep(LOOK_MS, { signal });
      // What is wrong with the ledger is told by who needs it.
      await this.look().catch(() => undefined);
    }
  }
}

function ownStop(home: KillSwitchState, ledger: KillSwitchState): string | undefined {
  if (stricter(ledger, home) === ledger) return undefined;
  const { level, reason, by, at } = home;
  const since = at === undefined ? "" : `since ${at}, by ${by}: `;
  return (
    `kill switch ${level} by this home's own kill-switch.json (${since}${reason}); ` +
    `the ledger is at ${ledger.level}: \`causeway killswitch lift --reason TEXT\` in this home, or set ` +
    "it anew"
  );
}
