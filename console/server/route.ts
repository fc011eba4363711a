/** What a page of the console is, and what it is made from: the contract between pages and server. */
import type { Content } from "../../web/html/element.js";
import type { Language } from "../../web/text/languages.js";
import type { ExchangeApi } from "../sources/exchange-api.js";
import type { Texts } from "../text/catalogue.js";
import type { Ability, ConsoleRole } from "../users/roles.js";
import type { FormFields } from "./form-body.js";

/** A request of somebody who is logged in. */
export interface ConsoleRequest {
  /** Parts of the path in braces, decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly user: string;
  readonly role: ConsoleRole;
  /** Calls with the user's own key. */
  readonly api: ExchangeApi;
  /** The word of what was just done, where an action has led here; told once. */
  readonly takeDone: () => string | undefined;
  /** What every form of this page carries, each form a key of its own. */
  readonly hiddenFields: () => Content;
  readonly language: Language;
  readonly t: Texts;
  /** Fires when nobody waits any more. */
  readonly signal: AbortSignal;
}

/** A form that was sent, its token checked. */
export interface ConsolePost extends ConsoleRequest {
  readonly form: FormFields;
  /** Names this form: the idempotency key of the call that it becomes. */
  readonly formKey: string;
}

/** A finished page, not yet in its frame. */
export interface ConsolePage {
  /** Default 200. */
  readonly status?: number;
  readonly title: string;
  readonly content: Content;
}

/** One kind of page. */
export interface PageRoute {
  /** "/withdrawals/{id}". */
  readonly path: string;
  /** Names that a query may have. */
  readonly query?: readonly string[];
  readonly show: (request: ConsoleRequest) => Promise<ConsolePage>;
  /** What is shown where no turn comes soon: it asks no API. Without one the reader is told to come again. */
  readonly showBusy?: (request: ConsoleRequest) => ConsolePage;
}

/** One thing that can be done. */
export interface ActionRoute {
  readonly path: string;
  readonly needs: Ability;
  /** Does it, and says where to go on: a path with `?done=` and the word of what was done. */
  readonly act: (post: ConsolePost) => Promise<string>;
}

/** Pages and actions of one subject. */
export interface ConsoleRoutes {
  readonly pages: readonly PageRoute[];
  readonly actions?: readonly ActionRoute[];
}
