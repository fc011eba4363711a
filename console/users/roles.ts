/** Roles of the console, and the scopes of the API keys that stand behind them. */

/** Roles by what they may do; everybody may look. */
export const CONSOLE_ROLES = ["viewer", "operator", "approver", "admin"] as const;

/** One of `CONSOLE_ROLES`. */
export type ConsoleRole = (typeof CONSOLE_ROLES)[number];

/** What a page may let a role do beside looking. */
export type Ability = "operate" | "approve";

const ABILITIES: Readonly<Record<ConsoleRole, readonly Ability[]>> = {
  viewer: [],
  operator: ["operate"],
  approver: ["approve"],
  admin: ["operate", "approve"],
};

const READ_SCOPES = ["deposits:read", "withdrawals:read", "audit:read"] as const;

const SCOPES_OF = {
  operate: ["withdrawals:write", "operations:write"],
  approve: ["approvals:write"],
} as const;

/** One scope that a user's key may have. */
export type ConsoleScope =
  | (typeof READ_SCOPES)[number]
  | (typeof SCOPES_OF)["operate"][number]
  | (typeof SCOPES_OF)["approve"][number];

/** Whether a role may do something. The API asks the user's key again. */
export function isAble(role: ConsoleRole, ability: Ability): boolean {
  return ABILITIES[role].includes(ability);
}

/** Scopes of the API key of a user with a role. */
export function scopesOf(role: ConsoleRole): readonly ConsoleScope[] {
  return [...READ_SCOPES, ...ABILITIES[role].flatMap((ability) => SCOPES_OF[ability])];
}

/** A role by its name; undefined for none. */
export function parseRole(text: string): ConsoleRole | undefined {
  return CONSOLE_ROLES.find((role) => role === text);
}
