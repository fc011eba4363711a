/** Random names of things that people type: API keys, webhooks, their secrets. */
import { randomInt } from "node:crypto";

const LENGTH = 12;
const DIGITS = "abcdefghijklmnopqrstuvwxyz0123456789";

/** 12 lower-case letters and digits, some 62 bits. */
export function newShortId(): string {
  return Array.from({ length: LENGTH }, () => DIGITS[randomInt(DIGITS.length)]).join("");
}
