/** Values of fields as the SDK's command line takes them, which the REST interface does not. */
import type { EnumType, FieldType } from "../../chain/protobuf/descriptor-file.js";

/** The text as the field's own form has it; any other as it is. */
export function ownForm(field: FieldType | undefined, text: string): string {
  if (field?.enumeration !== undefined) return valueName(field.enumeration, text) ?? text;
  if (field?.kind === "bytes" && field.form !== "hex") return base64OfHex(text) ?? text;
  return text;
}

/** `voting_period`, `voting-period` and `VotingPeriod` for `PROPOSAL_STATUS_VOTING_PERIOD`. */
function valueName({ name, numbers }: EnumType, text: string): string | undefined {
  const snake = (words: string) => words.replace(/(?<=[a-z])(?=[A-Z])|-/g, "_").toUpperCase();
  const full = `${snake(name.slice(name.lastIndexOf(".") + 1))}_${snake(text)}`;
  return numbers.has(full) ? full : undefined;
}

/** Digits that are hex are never read as base64, which they might be as well. */
function base64OfHex(text: string): string | undefined {
  const [, digits] = /^(?:0x)?((?:[0-9a-fA-F]{2})+)$/.exec(text) ?? [];
  return digits === undefined ? undefined : Buffer.from(digits, "hex").toString("base64");
}
