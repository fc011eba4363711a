/** Pure: the levels of the kill switch. */

/**
 * Each stops what those before it stop, and more: new requests; taking nonces and signing; sending.
 * What is mined is always booked.
 */
export const KILL_SWITCH_LEVELS = ["none", "stop-new", "stop-sign", "stop-broadcast"] as const;

/** One of `KILL_SWITCH_LEVELS`. */
export type KillSwitchLevel = (typeof KILL_SWITCH_LEVELS)[number];

/** What the switch says, and who set it when and why. */
export interface KillSwitchState {
  readonly level: KillSwitchLevel;
  readonly reason: string;
  /** Who set or lifted it; empty where nobody ever did. */
  readonly by: string;
  /** RFC 3339, UTC; undefined where nobody ever did. */
  readonly at: string | undefined;
}

/** The switch that was never touched. */
export const SWITCH_UNTOUCHED: KillSwitchState = {
  level: "none",
  reason: "",
  by: "",
  at: undefined,
};

/** Whether a level stops what `wanted` stops. */
export function stops(level: KillSwitchLevel, wanted: Exclude<KillSwitchLevel, "none">): boolean {
  return KILL_SWITCH_LEVELS.indexOf(level) >= KILL_SWITCH_LEVELS.indexOf(wanted);
}

/** The stricter of two states. */
export function stricter(left: KillSwitchState, right: KillSwitchState): KillSwitchState {
  const rank = ({ level }: KillSwitchState) => KILL_SWITCH_LEVELS.indexOf(level);
  return rank(right) > rank(left) ? right : left;
}

/** Whether two states are one person's one word. */
export function isSameSwitch(left: KillSwitchState, right: KillSwitchState): boolean {
  const fields = ["level", "reason", "by", "at"] as const;
  return fields.every((field) => left[field] === right[field]);
}

/** Whether untrusted text names a level. */
export function isKillSwitchLevel(text: unknown): text is KillSwitchLevel {
  return KILL_SWITCH_LEVELS.some((level) => level === text);
}
