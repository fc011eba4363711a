/** Arguments and flags of `causeway tx` as values; what is not one is refused before anything is asked. */
import { z } from "zod";
import {
  type Address,
  operatorText,
  parseAnyAddress,
  parseStrictAddress,
  VALIDATOR_PREFIX,
} from "../../chain/address.js";
import { DECIMAL_ONE, parseDecimal } from "../../chain/encoding/decimal.js";
import { ChainError } from "../../chain/errors.js";
import type { ProtoMessage } from "../../chain/protobuf/values.js";
import { BASE_DENOM, MAX_ATOKEN, type Atoken } from "../../chain/units.js";
import { CliError } from "../errors.js";

/** Flags as commander gives them: texts, or true. */
export type Flags = Readonly<Record<string, unknown>>;

/** What is wrong with a command line. */
export function usage(message: string): CliError {
  return new CliError("USAGE", message);
}

/**
 * An account: bech32, or 0x hex with a right checksum where it has one.
 * @throws USAGE
 */
export function accountIn(text: string, what: string): Address {
  try {
    return parseAnyAddress(text, { parseHex: parseStrictAddress });
  } catch {
    throw usage(`${what} must be an account, addr1... or 0x hex, not "${shown(text)}".`);
  }
}

/**
 * A validator's operator as bech32, typed so or as 0x hex of its account.
 * @throws USAGE
 */
export function operatorIn(text: string): string {
  try {
    const known = { prefixes: [VALIDATOR_PREFIX], parseHex: parseStrictAddress };
    return operatorText(parseAnyAddress(text, known));
  } catch {
    throw usage(
      `The validator must be a validator, ${VALIDATOR_PREFIX}1..., not "${shown(text)}".`,
    );
  }
}

/**
 * Coins such as "1000atoken": one amount above zero, without decimals.
 * @throws USAGE
 */
export function amountIn(text: string, what: string): bigint {
  const [, digits] = new RegExp(`^([1-9][0-9]{0,77})${BASE_DENOM}$`).exec(text) ?? [];
  const amountAtoken = BigInt(digits ?? "0");
  if (amountAtoken > 0n && amountAtoken <= MAX_ATOKEN) return amountAtoken;
  throw usage(
    `${what} must be a whole number above 0 with its denomination, such as 1000${BASE_DENOM}, ` +
      `not "${shown(text)}".`,
  );
}

/**
 * A whole number of atoken without its denomination, as where the SDK takes an `Int`; 0 for none.
 * @throws USAGE
 */
export function atokenIn(text: string, what: string): Atoken {
  const amountAtoken = /^[0-9]{1,78}$/.test(text) ? BigInt(text) : -1n;
  if (amountAtoken >= 0n && amountAtoken <= MAX_ATOKEN) return amountAtoken;
  throw usage(`${what} must be a whole number of ${BASE_DENOM}, not "${shown(text)}".`);
}

/**
 * A number between 0 and 1 in 10^-18.
 * @throws USAGE
 */
export function fractionIn(text: string, what: string): bigint {
  const value = parseDecimal(text);
  if (value !== undefined && value >= 0n && value <= DECIMAL_ONE) return value;
  throw usage(`${what} must be a number from 0 to 1, such as 0.1, not "${shown(text)}".`);
}

/**
 * A whole number below 2^63.
 * @throws USAGE
 */
export function integerIn(text: string, what: string): bigint {
  const value = /^[0-9]{1,19}$/.test(text) ? BigInt(text) : -1n;
  if (value >= 0n && value < 2n ** 63n) return value;
  throw usage(`${what} must be a whole number, not "${shown(text)}".`);
}

/** The text of a flag; undefined where it is not given. */
export function flagText(flags: Flags, name: string): string | undefined {
  const value = flags[name];
  return typeof value === "string" ? value : undefined;
}

/** `cosmos.base.v1beta1.Coin`. */
export function coin(amountAtoken: Atoken): ProtoMessage {
  return { denom: BASE_DENOM, amount: amountAtoken };
}

/** Name of the keys that validators sign blocks with. */
export const ED25519 = "cosmos.crypto.ed25519.PubKey";

/** A consensus key as the SDK's command line writes one. */
export const consensusKeySchema = z.object({ "@type": z.string(), key: z.string() });

/**
 * The 32 bytes of a consensus key.
 * @throws USAGE
 */
export function consensusKeyBytes(given: z.infer<typeof consensusKeySchema>): Uint8Array {
  const key = Buffer.from(given.key, "base64");
  if (given["@type"] === `/${ED25519}` && key.length === 32) return key;
  throw usage(`A consensus key is {"@type":"/${ED25519}","key":"..."} with 32 bytes in base64.`);
}

/** Untrusted JSON in the form of a schema. Throws USAGE naming the first fault. */
export function parseJson<Value>(text: string, file: string, schema: z.ZodType<Value>): Value {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw usage(`${file} holds no JSON.`);
  }
  try {
    return schema.parse(json);
  } catch (error) {
    if (!(error instanceof z.ZodError) && !(error instanceof ChainError)) throw error;
    const [issue] = error instanceof z.ZodError ? error.issues : [];
    const where = issue === undefined ? "" : ` at ${issue.path.join(".") || "its top"}`;
    throw usage(`${file} is not of the expected form${where}: ${issue?.message ?? ""}.`);
  }
}

/** What may be shown of a text that could be anything, even a key. */
function shown(text: string): string {
  return looksLikeKey(text) ? "(a private key?)" : text.slice(0, 100);
}

/** Whether a text could be a private key. */
export function looksLikeKey(text: string): boolean {
  return /^(0x)?[0-9a-fA-F]{64}$/.test(text.trim());
}
