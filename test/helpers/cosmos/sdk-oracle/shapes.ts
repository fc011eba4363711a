/**
 * How routes are answered, compared between chains: members and kinds of values, statuses, codes and
 * texts of refusals, never values. `test/fixtures/rpc/sdk-rest.json` has the answers of a node of
 * cosmos/evm (SDK 0.54.3, one validator), recorded by `record.ts`.
 */

/** What stands in the places of routes, by name. */
export type Places = Readonly<Record<string, string>>;

/** A shape: a kind of single value, members by name, or a list with the shapes of its elements. */
export type Shape = string | { readonly [member: string]: Shape } | readonly Shape[];

/** How a request is answered. */
export type Answer =
  | { readonly status: number; readonly shape: Shape }
  | { readonly status: number; readonly code: number; readonly message: string };

/** Asks a route. @param places what stands in it */
export async function askRoute(base: string, route: string, places: Places): Promise<Answer> {
  const path = route.replace(/\{(\w+)\}/g, (_all, name: string) => {
    const value = places[name];
    if (value === undefined) throw new RangeError(`nothing for ${name}`);
    return value;
  });
  const reply = await fetch(`${base}${path}`);
  return answerOf(reply.status, await reply.json(), places);
}

/** An answer as it is compared. */
export function answerOf(status: number, body: unknown, places: Places): Answer {
  if (status === 200) return { status, shape: shapeOf(body) };
  const { code, message, details, ...more } = body as {
    code: number;
    message: string;
    details: unknown[];
  };
  const isPlain = Array.isArray(details) && details.length === 0 && Object.keys(more).length === 0;
  if (!isPlain) throw new RangeError(`no refusal of the SDK: ${JSON.stringify(body)}`);
  return { status, code, message: textOf(message, places) };
}

/** A text with names in the places of values: what is left is what clients match on. */
export function textOf(text: string, places: Places): string {
  let named = text;
  for (const [name, value] of Object.entries(places)) {
    if (value.length > 3) named = named.replaceAll(value, `{${name}}`);
  }
  return named.replace(/\d+/g, "#");
}

/** The shape of JSON. */
export function shapeOf(value: unknown): Shape {
  if (Array.isArray(value)) {
    const shapes = (value as readonly unknown[]).map(shapeOf);
    const distinct = new Map(shapes.map((shape) => [JSON.stringify(shape), shape]));
    return [...distinct.values()].slice(0, 4);
  }
  if (typeof value === "string") return kindOf(value);
  if (typeof value !== "object" || value === null) return value === null ? "null" : typeof value;
  const names = Object.keys(value).toSorted();
  return Object.fromEntries(names.map((name) => [name, shapeOf(Reflect.get(value, name))]));
}

/** Kinds of texts, the first one that fits. */
const KINDS: readonly (readonly [string, RegExp])[] = [
  ["empty", /^$/],
  ["integer", /^-?\d+$/],
  ["decimal", /^-?\d+\.\d{18}$/],
  ["short decimal", /^-?\d+\.\d+$/],
  ["seconds", /^\d+(\.\d+)?s$/],
  ["time", /^\d{4}-\d\d-\d\dT[\d:.]+Z$/],
  ["type url", /^\/[a-z0-9_.]+\.v\d+[a-z0-9]*\.[A-Za-z.0-9]+$/],
  ["0x", /^0x[0-9a-fA-F]*$/],
  ["UPPER HEX", /^([0-9A-F]{40}|[0-9A-F]{64})$/],
  ["bech32", /^(cosmos|addr)(valoper|valcons)?1[02-9ac-hj-np-z]{38,}$/],
  ["hash in base64", /^[A-Za-z0-9+/]{43}=$/],
];

function kindOf(text: string): string {
  // Names of enumerations are part of the shape.
  if (/^[A-Z]+(_[A-Z0-9]+)+$/.test(text)) return text;
  return KINDS.find(([, pattern]) => pattern.test(text))?.[0] ?? "text";
}
