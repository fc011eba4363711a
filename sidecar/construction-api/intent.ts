/** Between a pair of operations and the one transfer they mean. */
import type { Address } from "../../chain/address.js";
import { MAX_ATOKEN } from "../../chain/units.js";
import { SidecarError } from "../errors.js";
import {
  accountIdentifier,
  isTokenCurrency,
  OPERATION_TYPES,
  parseAccount,
  tokenAmount,
} from "../identifiers.js";
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
} from "../request-fields.js";

/** A transfer of native coins, or a call that carries them (possibly none). */
export interface Intent {
  readonly from: Address;
  readonly to: Address;
  readonly valueAtoken: bigint;
}

/** Type of both operations of a native transfer or contract call. */
const CALL_TYPE = "CALL";

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
 * `operations` of a construction request: two CALLs of opposite amounts between two accounts, in
 * either order. Where both amounts are zero the first account pays.
 * @throws INVALID_OPERATIONS, OPERATION_NOT_SUPPORTED, INVALID_ACCOUNT, SUB_ACCOUNT_NOT_SUPPORTED,
 * UNKNOWN_CURRENCY
 */
export function parseIntent(value: unknown): Intent {
  const place: Place = { at: "operations", code: "INVALID_OPERATIONS" };
  const items = readItems(value, place);
  const sides = items.map((item, index) => parseSide(item, index, inside(place, index)));
  const [first, second] = sides;
  if (first === undefined || second === undefined || sides.length !== 2) {
    throw fault(place, "exactly two operations");
  }
  if (first.amountAtoken + second.amountAtoken !== 0n) throw fault(place, "opposite amounts");
  if (first.address === second.address) throw fault(place, "two different accounts");
  const [payer, payee] = first.amountAtoken > 0n ? [second, first] : [first, second];
  return { from: payer.address, to: payee.address, valueAtoken: payee.amountAtoken };
}

/** The operations of an intent as /construction/parse gives them: no status, payer first. */
export function intentOperations(intent: Intent): object[] {
  return [
    {
      operation_identifier: { index: 0 },
      type: CALL_TYPE,
      account: accountIdentifier(intent.from),
      amount: tokenAmount(-intent.valueAtoken),
    },
    {
      operation_identifier: { index: 1 },
      related_operations: [{ index: 0 }],
      type: CALL_TYPE,
      account: accountIdentifier(intent.to),
      amount: tokenAmount(intent.valueAtoken),
    },
  ];
}

interface Side {
  readonly address: Address;
  readonly amountAtoken: bigint;
}

function parseSide(value: unknown, index: number, place: Place): Side {
  const fields = readFields(value, place, OPERATION_FIELDS);
  checkIndex(fields["operation_identifier"], index, inside(place, "operation_identifier"));
  checkRelated(fields["related_operations"], index, inside(place, "related_operations"));
  const type = readText(fields["type"], inside(place, "type"));
  if (type !== CALL_TYPE) {
    const isListed = OPERATION_TYPES.includes(type);
    throw new SidecarError(isListed ? "OPERATION_NOT_SUPPORTED" : "INVALID_OPERATIONS", { type });
  }
  // An intent has not happened: it has no status, which some clients write as "".
  const { status } = fields;
  if (status !== undefined && status !== "") throw fault(inside(place, "status"), "no status");
  for (const key of ["coin_change", "metadata"]) refuseContent(fields[key], inside(place, key));
  return {
    address: parseAccount(fields["account"], inside(place, "account")),
    amountAtoken: parseAmount(fields["amount"], inside(place, "amount")),
  };
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

function parseAmount(value: unknown, place: Place): bigint {
  const fields = readFields(value, place, ["value", "currency", "metadata"]);
  refuseContent(fields["metadata"], inside(place, "metadata"));
  if (!isTokenCurrency(fields["currency"], inside(place, "currency"))) {
    throw new SidecarError("UNKNOWN_CURRENCY", { field: inside(place, "currency").at });
  }
  return readSigned(fields["value"], inside(place, "value"), MAX_ATOKEN);
}
