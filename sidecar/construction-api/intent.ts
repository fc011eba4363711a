/** Between a pair of operations and the one transfer they mean. */
import { type Address, ZERO_ADDRESS } from "../../chain/address.js";
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
  readIndex,
  readItems,
  readMaybe,
  readSigned,
  readText,
} from "../rosetta/request-fields.js";
import type { Token, TokenRegistry } from "../rosetta/token-registry.js";
import type { Intent } from "../rosetta/evm-call.js";

/** Types of operations that are constructed. */
const CONSTRUCTED_TYPES: readonly string[] = ["CALL", "ERC20_TRANSFER"] satisfies Intent["type"][];

const OPERATION_FIELDS = [
  "operation_identifier",
  "related_operations",
  "type",
  "status",
  "account",
  "amount",
  "coin_change",
  "metadata",
];

/**
 * `operations` of a construction request: two CALLs in the native token or two ERC20_TRANSFERs in
 * one registered token, of opposite amounts between two accounts, in either order. Where both
 * amounts are zero the first account pays.
 * @throws INVALID_OPERATIONS, OPERATION_NOT_SUPPORTED, INVALID_ACCOUNT, SUB_ACCOUNT_NOT_SUPPORTED,
 * UNKNOWN_CURRENCY
 */
export function parseIntent(value: unknown, registry: TokenRegistry): Intent {
  const place: Place = { at: "operations", code: "INVALID_OPERATIONS" };
  const items = readItems(value, place);
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
): Intent {
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

/** What an intent moves, as the receiving side has it. */
export function intentAmount(intent: Intent): Amount {
  return intent.type === "CALL"
    ? tokenAmount(intent.valueAtoken)
    : currencyAmount(intent.amountUnits, intent.token.currency);
}

/** The operations of an intent as /construction/parse gives them: no status, payer first. */
export function intentOperations(intent: Intent): object[] {
  const { type, from, to } = intent;
  const received = intentAmount(intent);
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

interface Side {
  readonly address: Address;
  readonly token: Token | undefined;
  readonly units: bigint;
}

function parseSide(value: unknown, index: number, place: Place, registry: TokenRegistry): Side {
  const fields = readFields(value, place, OPERATION_FIELDS);
  checkIndex(fields["operation_identifier"], index, inside(place, "operation_identifier"));
  checkRelated(fields["related_operations"], index, inside(place, "related_operations"));
  const type = readText(fields["type"], inside(place, "type"));
  if (!CONSTRUCTED_TYPES.includes(type)) {
    const isListed = OPERATION_TYPES.includes(type);
    throw new SidecarError(isListed ? "OPERATION_NOT_SUPPORTED" : "INVALID_OPERATIONS", { type });
  }
  // An intent has not happened: it has no status, which some clients write as "".
  const { status } = fields;
  if (status !== undefined && status !== "") throw fault(inside(place, "status"), "no status");
  for (const key of ["coin_change", "metadata"]) refuseContent(fields[key], inside(place, key));
  const address = parseAccount(fields["account"], inside(place, "account"));
  const amount = parseAmount(fields["amount"], inside(place, "amount"), registry);
  const isToken = amount.token !== undefined;
  if (isToken !== (type === "ERC20_TRANSFER")) {
    throw fault(inside(place, "type"), isToken ? "ERC20_TRANSFER for a token" : "CALL for TOKEN");
  }
  return { address, ...amount };
}

function checkIndex(value: unknown, index: number, place: Place): void {
  const fields = readFields(value, place, ["index"]);
  if (readIndex(fields["index"], inside(place, "index")) !== index) {
    throw fault(place, `index ${index}`);
  }
}

/** Related operations come before the one that names them, each once. */
function checkRelated(value: unknown, index: number, place: Place): void {
  const items = readMaybe(value, place, readItems) ?? [];
  const seen = new Set<number>();
  items.forEach((item, position) => {
    const here = inside(place, position);
    const related = readIndex(readFields(item, here, ["index"])["index"], here);
    if (related >= index || seen.has(related)) throw fault(here, "a smaller index, once");
    seen.add(related);
  });
}

/** What an intent cannot carry is refused rather than lost on the way to the transaction. */
function refuseContent(value: unknown, place: Place): void {
  const content = readMaybe(value, place, readFields) ?? {};
  if (Object.keys(content).length > 0) throw fault(place, "nothing here");
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
