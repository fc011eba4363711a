/** Keys of other software in a settings file: which are taken although they mean nothing here. */
import { showValue } from "./config-toml.js";

/** Values by "section.key", as the TOML parser gives them. */
export type NeutralValues = Readonly<Record<string, readonly (string | boolean | bigint)[]>>;

/** What a file's schema knows of other software's keys, by "section.key". */
export interface ForeignKeys {
  /** Accepted with any value. */
  readonly inertKeys: ReadonlySet<string>;
  /** Accepted with these values only, which ask for nothing; any other one asks for too much. */
  readonly neutralValues: NeutralValues;
}

/** "inert" is worth a warning, "neutral" nothing; else what would be allowed. */
export function judgeForeignKey(
  { inertKeys, neutralValues }: ForeignKeys,
  key: string,
  raw: unknown,
): "inert" | "neutral" | { readonly allowed: string } {
  if (inertKeys.has(key)) return "inert";
  const neutral = Object.hasOwn(neutralValues, key) ? neutralValues[key] : undefined;
  if (neutral === undefined) return { allowed: "no such key" };
  if (neutral.some((value) => value === raw)) return "neutral";
  return { allowed: `${neutral.map(showValue).join(" or ")}; nothing else is done here` };
}
