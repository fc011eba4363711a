/** Why a contract was not verified: outcomes that readers are told, none of them a fault. */
import { AppError } from "../../chain/errors.js";

/** All reasons; each has a text in every language. */
const REFUSALS = [
  "BAD_INPUT",
  "NO_CODE",
  "NO_COMPILER",
  "OTHER_COMPILER",
  "COMPILER_FAILED",
  "COMPILE_ERRORS",
  "NO_SUCH_CONTRACT",
  "AMBIGUOUS",
  "ABI_TOO_LARGE",
  "MISMATCH",
  "WRONG_ARGUMENTS",
  "ALREADY_VERIFIED",
  "TOO_LONG",
  "TOO_MUCH_MEMORY",
  "TOO_MUCH_SENT_ALONG",
  "STORE_FULL",
  "NODE_AWAY",
  "STOPPED",
] as const;

/** One reason. */
export type RefusalCode = (typeof REFUSALS)[number];

/** A verification that ends without a verified contract; `message` is the detail, in English. */
export class VerificationRefusal extends AppError<RefusalCode> {}

/** Makes one. @param detail what was found, a stranger's text for all that is known */
export function refused(code: RefusalCode, detail: string): VerificationRefusal {
  return new VerificationRefusal(code, detail);
}
