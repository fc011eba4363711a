/** Whether events satisfy a query, as CometBFT decides it; numbers are compared exactly. */
import type { AbciEvent } from "../../../../chain/consensus/abci-types.js";
import { type Argument, type Condition, dateMs, type EventQuery, timeOfDayMs } from "./query.js";

/** Values by composite key `type.attribute`, in the order of the events. */
export type EventValues = ReadonlyMap<string, readonly string[]>;

/** Collects the values of events, with what the server itself adds (`tm.event`, `tx.hash`). */
export function eventValues(
  events: readonly AbciEvent[],
  added: Readonly<Record<string, string>>,
): Map<string, string[]> {
  const values = new Map<string, string[]>();
  const add = (key: string, value: string) => {
    const list = values.get(key);
    if (list === undefined) values.set(key, [value]);
    else list.push(value);
  };
  for (const { type, attributes } of events) {
    for (const { key, value } of attributes) add(`${type}.${key}`, value);
  }
  for (const [key, value] of Object.entries(added)) add(key, value);
  return values;
}

/** How subscriptions decide it: true when each condition holds for at least one value of its tag. */
export function matchesQuery(query: EventQuery, values: EventValues): boolean {
  return values.size > 0 && query.conditions.every((condition) => holds(condition, values));
}

function holds(condition: Condition, values: EventValues): boolean {
  const { tag } = condition;
  if (values.get(tag)?.some((value) => isMatch(condition, value)) === true) return true;
  // A tag that is only an event's type stands for an empty value: for existence. Few conditions match that,
  // and a transaction has many keys.
  if (!isMatch(condition, "")) return false;
  return [...values.keys()].some((key) => key.slice(0, key.lastIndexOf(".")) === tag);
}

/** What something is found by. */
export interface Findable {
  readonly events: readonly AbciEvent[];
  /** What the server adds by itself (`tx.height`): no event. */
  readonly added: Readonly<Record<string, string>>;
}

/**
 * How searches decide it: conditions on one type of event hold for one event of that type, as CometBFT's
 * index finds them. Otherwise a payment of 7 beside a fee of 5 would be found as one of 5.
 */
export function searchMatcher({ conditions }: EventQuery): (found: Findable) => boolean {
  const types = new Set(conditions.map(({ tag }) => typeOfTag(tag)));
  const byType = [...types].map(
    (type) => [type, conditions.filter(({ tag }) => typeOfTag(tag) === type)] as const,
  );
  return ({ events, added }) => {
    const own = eventValues([], added);
    return byType.every(([type, all]) => {
      const asked = all.filter((condition) => !holds(condition, own));
      return (
        asked.length === 0 || events.some((event) => event.type === type && hold(asked, event))
      );
    });
  };
}

/** The type of event that a condition is about. */
export function typeOfTag(tag: string): string {
  return tag.split(".")[0] ?? "";
}

function hold(conditions: readonly Condition[], { type, attributes }: AbciEvent): boolean {
  return conditions.every((condition) =>
    condition.tag === type
      ? isMatch(condition, "")
      : attributes.some(
          ({ key, value }) => condition.tag === `${type}.${key}` && isMatch(condition, value),
        ),
  );
}

function isMatch({ operator, argument }: Condition, value: string): boolean {
  if (operator === "EXISTS" || argument === undefined) return true;
  if (operator === "CONTAINS") return value.includes(argument.text);
  if (argument.kind === "string") return value === argument.text;
  const order = compare(argument, value);
  if (order === undefined) return false;
  const isEqual = operator.endsWith("=") && order === 0;
  return isEqual || (operator[0] === "<" && order < 0) || (operator[0] === ">" && order > 0);
}

/** Sign of value - argument; undefined when the value is not of the argument's kind. */
function compare(argument: Argument, value: string): number | undefined {
  if (argument.kind === "number") return compareNumbers(value, argument.text);
  const read = argument.kind === "date" ? dateMs : timeOfDayMs;
  const [left, right] = [read(value), read(argument.text)];
  return left === undefined || right === undefined ? undefined : Math.sign(left - right);
}

/** A number in front of a unit, as in `8atoken`. */
const LEADING_NUMBER = /^([0-9]+)(?:\.([0-9]*))?/;

function compareNumbers(value: string, wanted: string): number | undefined {
  const [left, right] = [LEADING_NUMBER.exec(value), LEADING_NUMBER.exec(wanted)];
  if (left === null || right === null) return undefined;
  const places = Math.max(left[2]?.length ?? 0, right[2]?.length ?? 0);
  const difference = scaled(left, places) - scaled(right, places);
  if (difference === 0n) return 0;
  return difference > 0n ? 1 : -1;
}

function scaled(match: RegExpExecArray, places: number): bigint {
  return BigInt(`${match[1] ?? "0"}${(match[2] ?? "").padEnd(places, "0")}`);
}
