/** The words in which messages are described: fields, coins, messages of transactions. */
import type { FieldSchema, MessageSchema } from "./field-schema.js";

/** Elements of lists in messages: a bound on what one transaction asks for. */
export const MAX_ITEMS = 1_000;

type Options = Omit<FieldSchema, "number" | "name" | "kind">;

/** One field. */
export function field(
  number: number,
  name: string,
  kind: FieldSchema["kind"] = "string",
  options: Options = {},
): FieldSchema {
  return { number, name, kind, ...options };
}

/** `cosmos.base.v1beta1.Coin`. */
const COIN: MessageSchema = {
  name: "cosmos.base.v1beta1.Coin",
  fields: [field(1, "denom"), field(2, "amount", "string", { keep: true })],
};

/** A field with one coin. */
export const coin = (number: number, name: string) =>
  field(number, name, "message", { schema: COIN, keep: true });
/** A field with coins. */
export const coins = (number: number, name: string) =>
  field(number, name, "message", { schema: COIN, most: MAX_ITEMS, keep: true });

/** A message that transactions carry. */
export function message(
  name: string,
  amino: string,
  signer: string,
  fields: readonly FieldSchema[],
): MessageSchema {
  return { name, amino, signer, fields };
}
