/** What an API key may be good for. */
import { LedgerError } from "../errors.js";

/** All scopes, by what they open; the file `config/api.key` of a home has all of them. */
export const ACCESS_SCOPES = [
  "deposits:read",
  "addresses:write",
  "withdrawals:read",
  "withdrawals:write",
  "approvals:write",
  "operations:write",
  "audit:read",
  "metrics:read",
] as const;

/** One of `ACCESS_SCOPES`. */
export type AccessScope = (typeof ACCESS_SCOPES)[number];

/**
 * A comma-separated list of a person, without doubles.
 * @throws INVALID_KEY naming what is unknown and what there is
 */
export function parseScopes(text: string): readonly AccessScope[] {
  const wanted = new Set(text.split(",").map((part) => part.trim()));
  const known = ACCESS_SCOPES.filter((scope) => wanted.has(scope));
  const unknown = [...wanted].filter((part) => !known.some((scope) => scope === part));
  if (unknown.length === 0 && known.length > 0) return known;
  throw new LedgerError(
    "INVALID_KEY",
    `--scope does not know ${unknown.map((part) => `"${part}"`).join(", ")}: ` +
      `any of ${ACCESS_SCOPES.join(", ")}, separated by commas`,
  );
}
