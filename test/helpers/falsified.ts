/**
 * A document with one thing falsified: each member and each element dropped, doubled, moved, given
 * another value and another type, all the way down.
 */
import { isDeepStrictEqual } from "node:util";
import type { Random } from "./random.js";

/** A falsified copy. */
export interface Falsified {
  /** Where, with `*` for places in lists: `path.*.commit.signed_header`. */
  readonly place: string;
  readonly path: readonly (string | number)[];
  readonly how: string;
  readonly value: unknown;
}

type Path = readonly (string | number)[];

/** Every single change of a JSON value; which characters change is random. */
export function* falsifications(value: unknown, random: Random): Generator<Falsified> {
  for (const path of pathsOf(value, [])) {
    const key = path.at(-1);
    if (key === undefined) continue;
    const place = path.map((step) => (typeof step === "number" ? "*" : step)).join(".");
    for (const [how, change] of changesAt(read(value, path), random)) {
      const copy = structuredClone(value);
      write(copy, path, change);
      yield { place, path, how, value: copy };
    }
    yield { place, path, how: "dropped", value: without(value, path) };
    if (typeof key !== "number") continue;
    for (const how of ["doubled", "moved"] as const) {
      const copy = structuredClone(value);
      const list = read(copy, path.slice(0, -1));
      if (!Array.isArray(list)) throw new Error(`no list at ${place}`);
      if (how === "doubled") list.splice(key, 0, structuredClone(list[key]));
      else if (isDeepStrictEqual(list[key], list[key + 1]) || key + 1 === list.length) continue;
      else list.splice(key, 2, list[key + 1], list[key]);
      yield { place, path, how, value: copy };
    }
  }
}

/** Other values for one; none of them equals it. */
function changesAt(present: unknown, random: Random): [string, unknown][] {
  const other: [string, unknown][] = [null, {}, [], "", 0, true, -1, 1.5, "-1", [present]]
    .filter((value) => JSON.stringify(value) !== JSON.stringify(present))
    .map((value) => [`now ${JSON.stringify(value).slice(0, 20)}`, value]);
  if (typeof present === "boolean") return [...other, ["flipped", !present]];
  if (typeof present === "number") {
    return [...other, ["raised", present + 1], ["lowered", present - 1], ["text", `${present}`]];
  }
  if (typeof present !== "string" || present === "") return other;
  const at = random.integer(present.length);
  const digit = present[at] === "1" ? "2" : "1";
  return [
    ...other,
    ["a character changed", `${present.slice(0, at)}${digit}${present.slice(at + 1)}`],
    ["the last one changed", `${present.slice(0, -1)}${present.endsWith("1") ? "2" : "1"}`],
    ["shorter", present.slice(0, -1)],
    ["longer", `${present}0`],
    ["number", Number(present)],
  ];
}

function pathsOf(value: unknown, path: Path): Path[] {
  if (typeof value !== "object" || value === null) return [path];
  const keys = Array.isArray(value) ? value.keys() : Object.keys(value);
  return [path, ...[...keys].flatMap((key) => pathsOf(Reflect.get(value, key), [...path, key]))];
}

function read(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((inner, key) => Reflect.get(Object(inner), key), value);
}

function write(root: unknown, path: Path, value: unknown): void {
  Reflect.set(Object(read(root, path.slice(0, -1))), path.at(-1) ?? "", value);
}

function without(value: unknown, path: Path): unknown {
  const copy = structuredClone(value);
  const parent = read(copy, path.slice(0, -1));
  const key = path.at(-1) ?? "";
  if (Array.isArray(parent)) parent.splice(Number(key), 1);
  else Reflect.deleteProperty(Object(parent), key);
  return copy;
}
