/**
 * What a caller may choose (the overrides in the metadata of preprocess), and how it travels to
 * /construction/metadata as `options`. Amounts are decimal strings on the wire.
 */
import type { Hex } from "../../chain/hex.js";
import { MAX_GAS, MAX_NONCE } from "../../chain/transaction-rules.js";
import { MAX_ATOKEN, type Atoken } from "../../chain/units.js";
import { SidecarError } from "../rosetta/errors.js";
import { accountIdentifier, parseAccountAddress } from "../rosetta/identifiers.js";
import { memoToData } from "../rosetta/memo.js";
import {
  type Fields,
  fault,
  inside,
  type Place,
  readFields,
  readHex,
  readItems,
  readMaybe,
  readText,
  readUnsigned,
} from "../rosetta/request-fields.js";
import type { TokenRegistry } from "../rosetta/token-registry.js";
import { callOf, checkChosenData, type Intent } from "../rosetta/evm-call.js";
import { createIntent, intentTarget, meantIntent, readToken } from "./intent.js";
import { checkStaticRules } from "./static-rules.js";

/** The caller's choices; what is undefined is asked from the node. */
export interface Overrides {
  readonly nonce: bigint | undefined;
  /** Exact price per gas; the multiplier does not apply to it. */
  readonly gasPriceAtoken: Atoken | undefined;
  readonly gasLimit: bigint | undefined;
  /** Highest fee (gas limit x price) that is acceptable. */
  readonly maxFeeAtoken: Atoken | undefined;
  /** Factor on the node's suggested price. */
  readonly feeMultiplier: number | undefined;
  /** Calldata of a CALL, from `data` or `memo`; `0x` for none. */
  readonly data: Hex;
}

/** A larger factor is a mistake; at 25,000,000 atoken it would already be 2.5 gwei. */
const MAX_FEE_MULTIPLIER = 100;

const OVERRIDE_FIELDS = [
  "nonce",
  "gas_price",
  "gas_limit",
  "max_fee",
  "suggested_fee_multiplier",
  "memo",
  "data",
];

/**
 * Overrides of a preprocess request: in `metadata`, and at the top level the two that older
 * Rosetta versions have there.
 * @throws INVALID_METADATA, UNKNOWN_CURRENCY
 */
export function parseOverrides(request: Fields, registry: TokenRegistry): Overrides {
  const place: Place = { at: "metadata", code: "INVALID_METADATA" };
  const metadata = readMaybe(request["metadata"], place, readFields) ?? {};
  const inner = parseOverrideFields(readFields(metadata, place, OVERRIDE_FIELDS), place);
  const multiplierPlace: Place = { at: "suggested_fee_multiplier", code: "INVALID_METADATA" };
  const outerMultiplier = readMaybe(
    request["suggested_fee_multiplier"],
    multiplierPlace,
    readMultiplier,
  );
  const feePlace: Place = { at: "max_fee", code: "INVALID_METADATA" };
  const outerFee = readMaybe(request["max_fee"], feePlace, (value, at) =>
    readMaxFee(value, at, registry),
  );
  return {
    ...inner,
    feeMultiplier: agree(inner.feeMultiplier, outerMultiplier, "suggested_fee_multiplier"),
    maxFeeAtoken: agree(inner.maxFeeAtoken, outerFee, "max_fee"),
  };
}

/** `options` of the reply of preprocess: the intent and every choice, in a fixed order. */
export function encodeOptions(intent: Intent, overrides: Overrides): Record<string, unknown> {
  return {
    from: accountIdentifier(intent.from).address,
    ...intentTarget(intent),
    data: "call" in intent ? callOf(intent, "0x").data : overrides.data,
    ...decimal("nonce", overrides.nonce),
    ...decimal("gas_price", overrides.gasPriceAtoken),
    ...decimal("gas_limit", overrides.gasLimit),
    ...decimal("max_fee", overrides.maxFeeAtoken),
    ...(overrides.feeMultiplier === undefined
      ? {}
      : { suggested_fee_multiplier: overrides.feeMultiplier }),
  };
}

/**
 * `options` of a metadata request, as `encodeOptions` wrote them.
 * @throws INVALID_METADATA, INVALID_ACCOUNT, UNKNOWN_CURRENCY, INTRINSIC_GAS_TOO_LOW,
 * TRANSACTION_TOO_LARGE
 */
export function parseOptions(
  value: unknown,
  registry: TokenRegistry,
): { intent: Intent; overrides: Overrides } {
  const place: Place = { at: "options", code: "INVALID_METADATA" };
  const fields = readFields(value, place, ["from", "to", "value", "currency", ...OVERRIDE_FIELDS]);
  const movement = {
    from: parseAccountAddress(fields["from"], inside(place, "from")),
    to: parseAccountAddress(fields["to"], inside(place, "to")),
    token: readToken(fields["currency"], inside(place, "currency"), registry),
    units: readUnsigned(fields["value"], inside(place, "value"), MAX_ATOKEN),
  };
  const transfer = createIntent(movement, inside(place, "to"));
  const intent = meantIntent(transfer, fields["data"], registry);
  const chosen = parseOverrideFields(fields, place);
  const overrides: Overrides = "call" in intent ? { ...chosen, data: "0x" } : chosen;
  checkChosenData(intent, overrides.data, { registry, place: inside(place, "data") });
  checkStaticRules(intent, overrides);
  return { intent, overrides };
}

/**
 * The suggested price times the factor, rounded up. The factor is read to six decimals; beyond
 * that a JSON number is not exact anyway.
 */
export function multipliedPrice(priceAtoken: Atoken, multiplier: number | undefined): bigint {
  if (multiplier === undefined) return priceAtoken;
  const millionths = BigInt(Math.round(multiplier * 1_000_000));
  return (priceAtoken * millionths + 999_999n) / 1_000_000n;
}

function parseOverrideFields(fields: Fields, place: Place): Overrides {
  const amount = (key: string, max: bigint) =>
    readMaybe(fields[key], inside(place, key), (value, at) => readUnsigned(value, at, max));
  return {
    nonce: amount("nonce", MAX_NONCE),
    gasPriceAtoken: amount("gas_price", MAX_ATOKEN),
    gasLimit: amount("gas_limit", MAX_GAS),
    maxFeeAtoken: amount("max_fee", MAX_ATOKEN),
    feeMultiplier: readMaybe(
      fields["suggested_fee_multiplier"],
      inside(place, "suggested_fee_multiplier"),
      readMultiplier,
    ),
    data: parseCalldata(fields, place),
  };
}

function parseCalldata(fields: Fields, place: Place): Hex {
  const memo = readMaybe(fields["memo"], inside(place, "memo"), readText);
  const data = readMaybe(fields["data"], inside(place, "data"), readHex);
  if (memo === undefined) return data ?? "0x";
  if (data !== undefined) throw fault(inside(place, "memo"), "no memo beside data");
  const encoded = memoToData(memo);
  if (encoded === undefined) {
    throw fault(inside(place, "memo"), "text of at most 1024 bytes without control characters");
  }
  return encoded;
}

function readMultiplier(value: unknown, place: Place): number {
  if (typeof value !== "number" || !(value >= 0 && value <= MAX_FEE_MULTIPLIER)) {
    throw fault(place, `a number from 0 to ${MAX_FEE_MULTIPLIER}`);
  }
  return value;
}

/** The older form: a list of one amount in TOKEN. */
function readMaxFee(value: unknown, place: Place, registry: TokenRegistry): bigint {
  const [amount, ...rest] = readItems(value, place);
  if (amount === undefined || rest.length > 0) throw fault(place, "one amount");
  const fields = readFields(amount, place, ["value", "currency"]);
  if (readToken(fields["currency"], inside(place, "currency"), registry) !== undefined) {
    throw fault(inside(place, "currency"), "TOKEN, in which fees are paid");
  }
  return readUnsigned(fields["value"], inside(place, "value"), MAX_ATOKEN);
}

function agree<T>(inner: T | undefined, outer: T | undefined, key: string): T | undefined {
  if (inner !== undefined && outer !== undefined && inner !== outer) {
    throw new SidecarError("INVALID_METADATA", { field: key, expected: "the same value twice" });
  }
  return inner ?? outer;
}

function decimal(key: string, value: bigint | undefined): Record<string, string> {
  return value === undefined ? {} : { [key]: value.toString() };
}
