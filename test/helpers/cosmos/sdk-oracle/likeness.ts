/** Where our answers differ from another chain's in what clients rely on. */
import type { Answer, Shape } from "./shapes.js";

/** Kinds of texts that are read as more than text. */
const READ_KINDS: readonly Shape[] = ["integer", "decimal", "short decimal", "seconds", "time"];

/** Kinds that say nothing of the others: nothing there, or a text without characters. */
const NOTHING: readonly Shape[] = ["null", "empty"];

type Members = { readonly [member: string]: Shape };

/**
 * Differences in words, none where clients of the other find all they know: the same status and
 * code; every member, of the same kind. Members of ours that the other has not are no difference.
 */
export function differences(ours: Answer, theirs: Answer): string[] {
  if (ours.status !== theirs.status) return [`status ${ours.status}, not ${theirs.status}`];
  if ("shape" in ours && "shape" in theirs) return shapeDifferences("", ours.shape, theirs.shape);
  if (!("code" in ours && "code" in theirs)) return ["one is a refusal"];
  if (ours.code !== theirs.code) return [`code ${ours.code}, not ${theirs.code}`];
  return [];
}

function shapeDifferences(path: string, ours: Shape, theirs: Shape): string[] {
  if (NOTHING.includes(ours) || NOTHING.includes(theirs)) return [];
  if (typeof ours === "string" || typeof theirs === "string") {
    const [one, other] = [kindOf(ours), kindOf(theirs)];
    return one === other ? [] : [`${path} is ${one}, not ${other}`];
  }
  const [list, otherList] = [asList(ours), asList(theirs)];
  if (list !== undefined || otherList !== undefined) {
    if (list === undefined || otherList === undefined) return [`${path}: one is no list`];
    const [first] = list;
    if (first === undefined) return [];
    // Elements may have several shapes: each of theirs is compared with the likest of ours.
    return otherList.flatMap((element) => {
      const found = list.map((own) => shapeDifferences(`${path}[]`, own, element));
      return found.reduce((least, one) => (one.length < least.length ? one : least));
    });
  }
  const own = ours as Members;
  return Object.entries(theirs as Members).flatMap(([name, shape]) => {
    const value = own[name];
    const inner = path === "" ? name : `${path}.${name}`;
    return value === undefined ? [`${inner} is missing`] : shapeDifferences(inner, value, shape);
  });
}

function asList(shape: Shape): readonly Shape[] | undefined {
  return Array.isArray(shape) ? (shape as readonly Shape[]) : undefined;
}

function kindOf(shape: Shape): string {
  if (typeof shape !== "string") return "an object or a list";
  if (READ_KINDS.includes(shape) || shape === "boolean" || shape === "number") return shape;
  return "text";
}
