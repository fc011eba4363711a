/** Whole numbers as they are typed behind flags and as arguments. */
import { CliError } from "./errors.js";

/** What may be typed, both ends included. */
export interface NumberBounds {
  readonly least: number;
  /** Left out, any that JavaScript counts exactly. */
  readonly most?: number;
}

/** @param flag what it was typed for, as the fault names it @throws USAGE */
export function readWholeNumber(
  flag: string,
  text: string,
  { least, most = Number.MAX_SAFE_INTEGER }: NumberBounds,
): number {
  const value = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  const bounds = most === Number.MAX_SAFE_INTEGER ? `${least} on` : `${least} to ${most}`;
  throw new CliError("USAGE", `${flag} takes a whole number from ${bounds}, not "${text}".`);
}
