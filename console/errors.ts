/** Faults of the console's own, beside those that every page may have. */
import { AppError } from "../chain/errors.js";

/**
 * NOT_LOGGED_IN: no session, or one that ended; WRONG_LOGIN: name or password; FORM_REFUSED: a form that
 * was not made for this session; FORBIDDEN: the user's role; WRONG_HOST: asked under a name that is not
 * the console's; PASSWORD_UNFIT: a new password that cannot be taken; TOO_LARGE, NO_FORM: what was sent
 * is no form; API_REFUSED: what an API said to a call, with its status, code and message in details.
 */
export type ConsoleErrorCode =
  | "NOT_LOGGED_IN"
  | "WRONG_LOGIN"
  | "FORM_REFUSED"
  | "FORBIDDEN"
  | "WRONG_HOST"
  | "PASSWORD_UNFIT"
  | "TOO_LARGE"
  | "NO_FORM"
  | "API_REFUSED";

/** A request that is not done. */
export class ConsoleError extends AppError<ConsoleErrorCode> {}

/** HTTP status of each code; that of API_REFUSED is the API's. */
export const CONSOLE_STATUS: Readonly<Record<ConsoleErrorCode, number>> = {
  NOT_LOGGED_IN: 401,
  WRONG_LOGIN: 401,
  FORM_REFUSED: 403,
  FORBIDDEN: 403,
  WRONG_HOST: 421,
  PASSWORD_UNFIT: 422,
  TOO_LARGE: 413,
  NO_FORM: 415,
  API_REFUSED: 422,
};
