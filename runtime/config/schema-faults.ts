/** What a schema has against outside input, in one line for people. */
import { z } from "zod";
import { errorMessage } from "../../chain/errors.js";

/** Faults that are named; a wholly foreign document has dozens. */
const MAX_NAMED = 5;

/** Each fault with its place; of any other error its message. */
export function schemaFaultText(error: unknown): string {
  if (!(error instanceof z.ZodError)) return errorMessage(error);
  const { issues } = error;
  const named = issues.slice(0, MAX_NAMED).map(({ path, message }) => {
    const place = path.join(".");
    return place === "" ? message : `${place}: ${message}`;
  });
  const rest = issues.length - named.length;
  return named.join("; ") + (rest > 0 ? `; and ${rest} more` : "");
}
