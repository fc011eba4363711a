/** Between the operations of a request and the one thing they mean. */
import { type Address, ZERO_ADDRESS } from "../../chain/address.js";
import type { Hex } from "../../chain/hex.js";
import { MAX_ATOKEN } from "../../chain/units.js";
import { SidecarError } from "../rosetta/errors.js";
import {
  accountIdentifier,
  type Amount,
  currencyAmount,
  OPERATION_TYPES,
  parseAccount,
  parseCurrency,
  tokenAmount,
} from "../rosetta/identifiers.js";
import {
  fault,
  inside,
  type Place,
  readFields,
  readItems,
  readSigned,
  readText,
} from "../rosetta/request-fields.js";
import { STAKE_TYPES, stakeOperations } from "../rosetta/stake-intent.js";
import type { Token, TokenRegistry } from "../rosetta/token-registry.js";
import {
  type CallIntent,
  callOf,
  type Intent,
  intentOf,
  type TokenIntent,
} from "../rosetta/evm-call.js";
import { commonType, readOperation, refuseContent } from "./operation-fields.js";
import { parseStakeIntent } from "./stake-operations.js";

/** Types of operations that move coins or tokens from one account to another. */
const TRANSFER_TYPES: readonly string[] = ["CALL", "ERC20_TRANSFER"] satisfies Intent["type"][];

/**
 * `operations` of a construction request: two CALLs in the native token or two ERC20_TRANSFERs in
 * one registered token, of opposite amounts between two accounts, in either order. Where both
 * amounts are zero the first account pays. Or the operations of one intent of stake.
 * @throws INVALID_OPERATIONS, OPERATION_NOT_SUPPORTED, INVALID_ACCOUNT, SUB_ACCOUNT_NOT_SUPPORTED,
 * UNKNOWN_CURRENCY
 */
export function parseIntent(value: unknown, registry: TokenRegistry): Intent {
  const place: Place = { at: "operations", code: "INVALID_OPERATIONS" };
  const items = readItems(value, place);
  const common = commonType(items, place);
  const staking = STAKE_TYPES.find((type) => type === common);
  if (staking !== undefined) return parseStakeIntent(staking, items, place);
  const sides = items.map((item, index) => parseSide(item, index, inside(place, index), registry));
  const [first, second] = sides;
  if (first === undefined || second === undefined || sides.length !== 2) {
    throw fault(place, "exactly two operations");
  }
  if (first.token !== second.token) throw fault(place, "one currency");
  if (first.units + second.units !== 0n) throw fault(place, "opposite amounts");
  if (first.address === second.address) throw fault(place, "two different accounts");
  const [payer, payee] = first.units > 0n ? [second, first] : [first, second];
  return createIntent({ from: payer.address, to: payee.address, ...payee }, place);
}

/**
 * The intent of a movement of units of a token, or of atoken where there is no token.
 * @throws the place's error for tokens to the zero address: every ordinary token reverts there
 */
export function createIntent(
  movement: {
    readonly from: Address;
    readonly to: Address;
    readonly token: Token | undefined;
    readonly units: bigint;
  },
  place: Place,
): CallIntent | TokenIntent {
  const { from, to, token, units } = movement;
  if (token === undefined) return { type: "CALL", from, to, valueAtoken: units };
  if (to === ZERO_ADDRESS) throw fault(place, "a recipient other than the zero address");
  return { type: "ERC20_TRANSFER", from, to, token, amountUnits: units };
}

/**
 * The token of a `Currency`, undefined for the native one.
 * @throws UNKNOWN_CURRENCY, and the place's error on another shape
 */
export function readToken(
  value: unknown,
  place: Place,
  registry: TokenRegistry,
): Token | undefined {
  const known = registry.resolve(parseCurrency(value, place));
  if (known === undefined) throw new SidecarError("UNKNOWN_CURRENCY", { field: place.at });
  return known.kind === "token" ? known.token : undefined;
}

/** Where an intent goes and what it carries: the part of it that is written between the calls. */
export function intentTarget(intent: Intent): { readonly to: string } & Amount {
  if ("call" in intent) {
    const { to, valueAtoken } = callOf(intent, "0x");
    return { to: accountIdentifier(to).address, ...tokenAmount(valueAtoken) };
  }
  return { to: accountIdentifier(intent.to).address, ...movedAmount(intent) };
}

function movedAmount(intent: CallIntent | TokenIntent): Amount {
  return intent.type === "CALL"
    ? tokenAmount(intent.valueAtoken)
    : currencyAmount(intent.amountUnits, intent.token.currency);
}

/** An intent that was written as a call: what its calldata says, where it has a meaning. */
export function meantIntent(intent: Intent, data: unknown, registry: TokenRegistry): Intent {
  if (intent.type !== "CALL" || typeof data !== "string" || !/^0x([0-9a-f]{2})+$/.test(data)) {
    return intent;
  }
  const meant = intentOf(intent.from, callOf(intent, data as Hex), registry);
  return "call" in meant ? meant : intent;
}

/** The operations of an intent as /construction/parse gives them: no status, payer first. */
export function intentOperations(intent: Intent): object[] {
  if ("call" in intent) return stakeOperations(intent);
  const { type, from, to } = intent;
  const received = movedAmount(intent);
  const paid = { ...received, value: (-BigInt(received.value)).toString() };
  return [
    {
      operation_identifier: { index: 0 },
      type,
      account: accountIdentifier(from),
      amount: paid,
    },
    {
      operation_identifier: { index: 1 },
      related_operations: [{ index: 0 }],
      type,
      account: accountIdentifier(to),
      amount: received,
    },
  ];
}

/**
 * Refuses an intent that no operations ask for, as bytes may carry one: no stake at all, an account
 * that pays itself.
 * @throws the place's error, with what the operations would have to be
 */
export function checkIntent(intent: Intent, place: Place, registry: TokenRegistry): void {
  try {
    parseIntent(intentOperations(intent), registry);
  } catch (cause) {
    if (!(cause instanceof SidecarError)) throw cause;
    const { field, expected } = cause.details;
    throw fault(place, `${String(field)}: ${String(expected)}`);
  }
}

interface Side {
  readonly address: Address;
  readonly token: Token | undefined;
  readonly units: bigint;
}

function parseSide(value: unknown, index: number, place: Place, registry: TokenRegistry): Side {
  const fields = readOperation(value, index, place);
  const type = readText(fields["type"], inside(place, "type"));
  if (!TRANSFER_TYPES.includes(type)) {
    const isListed = OPERATION_TYPES.includes(type);
    throw new SidecarError(isListed ? "OPERATION_NOT_SUPPORTED" : "INVALID_OPERATIONS", { type });
  }
  refuseContent(fields["metadata"], inside(place, "metadata"));
  const address = parseAccount(fields["account"], inside(place, "account"));
  const amount = parseAmount(fields["amount"], inside(place, "amount"), registry);
  const isToken = amount.token !== undefined;
  if (isToken !== (type === "ERC20_TRANSFER")) {
    throw fault(inside(place, "type"), isToken ? "ERC20_TRANSFER for a token" : "CALL for TOKEN");
  }
  return { address, ...amount };
}

function parseAmount(
  value: unknown,
  place: Place,
  registry: TokenRegistry,
): Pick<Side, "token" | "units"> {
  const fields = readFields(value, place, ["value", "currency", "metadata"]);
  refuseContent(fields["metadata"], inside(place, "metadata"));
  return {
    token: readToken(fields["currency"], inside(place, "currency"), registry),
    units: readSigned(fields["value"], inside(place, "value"), MAX_ATOKEN),
  };
}
