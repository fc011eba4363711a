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

/** Both, at each look. */
export function createKillSwitch(parts: { readonly sql: Sql; readonly file: string }): KillSwitch {
  const { sql, file } = parts;
  return { read: async () => stricter(fileSwitch(file), await readKillSwitch(sql)) };
}
