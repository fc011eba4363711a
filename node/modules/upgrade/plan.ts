/**
 * The upgrade that governance has planned, and those that were made (x/upgrade `keeper/keeper.go`).
 * Layout of the upgrade account's storage:
 *
 *  0 version of the rules, 0 where the genesis names none | 1 height of the plan, 0 where there is none
 *  2 its name | 3 its info | 4 mapping keccak256(name) -> height at which it was made
 */
import { keccak256 } from "../../../chain/hashes.js";
import { bytesToBigint } from "../../../chain/hex.js";
import { SDK_CODE } from "../../../chain/cosmos/sdk-fault.js";
import { FIRST_APP_VERSION } from "../../settings/app-version.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { messageFailure } from "../message-fields.js";
import type { ModuleContext } from "../module-context.js";
import { mapSlot, MODULE_ACCOUNTS, slotHash, SystemStorage } from "../system-storage.js";

const VERSION = 0n;
const HEIGHT = 1n;
const NAME = 2n;
const INFO = 3n;
const DONE = 4n;

/** Bytes of name and info: what fits an operator's screen and a list of downloads. */
const MAX_NAME = 140;
const MAX_INFO = 8_192;

/** What is to happen before the block of a height is executed. */
export interface UpgradePlan {
  readonly name: string;
  readonly height: number;
  /** For operators: where the release is, as cosmovisor reads it. */
  readonly info: string;
}

function storageOf(state: JournaledState): SystemStorage {
  return new SystemStorage(state, "upgrade");
}

/**
 * Version of the rules by which the next block is made: `version.app` of its header. Reading it costs
 * nobody anything: rules that ask for it charge what they charged before there were versions.
 */
export function appVersion(state: JournaledState): number {
  const value = state.storageNow(MODULE_ACCOUNTS.upgrade, slotHash(VERSION));
  return value.length === 0 ? FIRST_APP_VERSION : Number(bytesToBigint(value));
}

/** From the next block on the rules are of this version. */
export function setAppVersion(state: JournaledState, version: number): void {
  storageOf(state).setWord(VERSION, BigInt(version));
}

/** The plan; undefined where there is none. */
export function upgradePlan(state: JournaledState): UpgradePlan | undefined {
  const storage = storageOf(state);
  const height = Number(storage.word(HEIGHT));
  if (height === 0) return undefined;
  return { name: storage.text(NAME), height, info: storage.text(INFO) };
}

/** Height at which an upgrade was made; undefined for others. */
export function upgradeHeight(state: JournaledState, name: string): number | undefined {
  const height = Number(storageOf(state).word(doneSlot(name)));
  return height === 0 ? undefined : height;
}

/** Throws `MessageFailure` for what cannot be planned in this block. */
export function assertPlannable({ state, height }: ModuleContext, plan: UpgradePlan): void {
  const refuse = (text: string) => messageFailure(SDK_CODE.invalidRequest, text);
  const { name, info } = plan;
  if (name === "") throw refuse("name cannot be empty");
  if (Buffer.byteLength(name) > MAX_NAME) throw refuse(`a name has at most ${MAX_NAME} bytes`);
  if (Buffer.byteLength(info) > MAX_INFO) throw refuse(`info has at most ${MAX_INFO} bytes`);
  if (plan.height <= 0) throw refuse("height must be greater than 0");
  if (plan.height <= height) throw refuse("upgrade cannot be scheduled in the past");
  if (upgradeHeight(state, name) !== undefined) {
    throw refuse(`upgrade with name ${name} has already been completed`);
  }
}

/** Plans an upgrade, in place of what was planned before. Throws `MessageFailure`. */
export function scheduleUpgrade(context: ModuleContext, plan: UpgradePlan): void {
  assertPlannable(context, plan);
  const { name, height, info } = plan;
  write(context.state, plan);
  context.emit("schedule_upgrade", { name, height: height.toString(), info });
}

/** Gives the plan up, where there is one. */
export function cancelUpgrade(context: ModuleContext): void {
  const plan = upgradePlan(context.state);
  if (plan === undefined) return;
  clearPlan(context.state);
  context.emit("cancel_upgrade", { name: plan.name, height: plan.height.toString() });
}

/** Forgets the plan. */
export function clearPlan(state: JournaledState): void {
  write(state, { name: "", height: 0, info: "" });
}

/**
 * Notes that the plan was carried out: from the next block on the rules are of its version. A chain
 * that began with newer ones, and plans the upgrade of an older release all the same, keeps them.
 * @returns the version of the next block
 */
export function completePlan(
  state: JournaledState,
  { name, height }: UpgradePlan,
  version: number,
): number {
  const storage = storageOf(state);
  storage.setWord(doneSlot(name), BigInt(height));
  const next = Math.max(appVersion(state), version);
  setAppVersion(state, next);
  clearPlan(state);
  return next;
}

function write(state: JournaledState, { name, height, info }: UpgradePlan): void {
  const storage = storageOf(state);
  storage.setWord(HEIGHT, BigInt(height));
  storage.setText(NAME, name);
  storage.setText(INFO, info);
}

function doneSlot(name: string): bigint {
  return mapSlot(DONE, bytesToBigint(keccak256(Buffer.from(name, "utf8"))));
}
