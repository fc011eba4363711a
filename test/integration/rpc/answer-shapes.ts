/** Answers of different faces, brought into one shape to be compared. */

/** Names of the .proto file for those of CosmJS; numbers as digits; times as they are compared. */
export function plain(value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      plain(one),
    ]),
  );
}

/** Names of the members of JSON, all the way down; of lists those of their first element. */
export function shape(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? [] : [shape(value[0])];
  if (typeof value !== "object" || value === null) return "";
  // What REST writes as one text, messages have as an object.
  if ("seconds" in value && "nanos" in value) return "";
  if ("type_url" in value) return "any";
  if ("@type" in value) return "any";
  const names = Object.keys(value).toSorted();
  return Object.fromEntries(names.map((name) => [name, shape(Reflect.get(value, name))]));
}

/** Two lists that the published files have and CosmJS' older ones have not; pages that may be empty. */
export function without(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(without);
  if (typeof value !== "object" || value === null) return value;
  const left = Object.entries(value).filter(
    ([name]) => name !== "pagination" && name !== "next_key",
  );
  return Object.fromEntries(left.map(([name, one]) => [name, without(one)]));
}
