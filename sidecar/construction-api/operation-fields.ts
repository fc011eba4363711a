/** What the operations of every construction request have in common. */
import {
  type Fields,
  fault,
  inside,
  type Place,
  readFields,
  readIndex,
  readItems,
  readMaybe,
  readText,
} from "../rosetta/request-fields.js";

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
 * The fields of an operation at its place in the list.
 * @throws the place's error for an index out of order, relations forward, a status, a coin
 */
export function readOperation(value: unknown, index: number, place: Place): Fields {
  const fields = readFields(value, place, OPERATION_FIELDS);
  checkIndex(fields["operation_identifier"], index, inside(place, "operation_identifier"));
  checkRelated(fields["related_operations"], index, inside(place, "related_operations"));
  // An intent has not happened: it has no status, which some clients write as "".
  const { status } = fields;
  if (status !== undefined && status !== "") throw fault(inside(place, "status"), "no status");
  refuseContent(fields["coin_change"], inside(place, "coin_change"));
  return fields;
}

/** The type that all operations of a request have; undefined where they have several, or none. */
export function commonType(items: readonly unknown[], place: Place): string | undefined {
  const types = items.map((item, index) => {
    const at = inside(place, index);
    return readText(readFields(item, at)["type"], inside(at, "type"));
  });
  return new Set(types).size === 1 ? types[0] : undefined;
}

/** What an intent cannot carry is refused rather than lost on the way to the transaction. */
export function refuseContent(value: unknown, place: Place): void {
  const content = readMaybe(value, place, readFields) ?? {};
  if (Object.keys(content).length > 0) throw fault(place, "nothing here");
}

function checkIndex(value: unknown, index: number, place: Place): void {
  if (readOperationIndex(value, place) !== index) throw fault(place, `index ${index}`);
}

/** `network_index` is Rosetta's for chains with shards: taken, and without meaning here. */
function readOperationIndex(value: unknown, place: Place): number {
  const fields = readFields(value, place, ["index", "network_index"]);
  readMaybe(fields["network_index"], inside(place, "network_index"), readIndex);
  return readIndex(fields["index"], inside(place, "index"));
}

/** Related operations come before the one that names them, each once. */
function checkRelated(value: unknown, index: number, place: Place): void {
  const items = readMaybe(value, place, readItems) ?? [];
  const seen = new Set<number>();
  items.forEach((item, position) => {
    const here = inside(place, position);
    const related = readOperationIndex(item, here);
    if (related >= index || seen.has(related)) throw fault(here, "a smaller index, once");
    seen.add(related);
  });
}
