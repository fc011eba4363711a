/** What a page is, and what it is made from: the contract between the pages and the server. */
import type { Content } from "../../web/html/element.js";
import type { Texts } from "../text/catalogue.js";
import type { Language } from "../../web/text/languages.js";

/** A request that found its page. */
export interface PageRequest {
  /** Segments of the path behind the page's own, decoded. */
  readonly parameter: string;
  readonly query: URLSearchParams;
  readonly language: Language;
  readonly t: Texts;
  /** Fires when nobody waits any more. */
  readonly signal: AbortSignal;
}

/** A finished page, not yet in its frame. */
export interface Page {
  /** Default 200. */
  readonly status?: number;
  readonly title: string;
  readonly content: Content;
  /** True where nothing on it can ever change: it is of a block that is final. */
  readonly isFinal?: boolean;
  /** Scripts that it uses where there is JavaScript. */
  readonly scripts?: readonly ("live" | "verify")[];
}

/** An answer that is no page. */
export interface Download {
  readonly json: unknown;
  /** Name under which it is kept. */
  readonly fileName: string;
  readonly isFinal: boolean;
}

/** Leads to another page. */
export interface Redirect {
  readonly location: string;
}

/** What a handler answers. */
export type PageAnswer = Page | Download | Redirect;

/** One kind of page. */
export interface PageRoute {
  /** "/block" takes "/block/<parameter>" where `hasParameter`, else exactly that path. */
  readonly path: string;
  readonly hasParameter: boolean;
  /** True for those that ask much of the node. */
  readonly isCostly?: boolean;
  /** Names that a query may have; others are dropped, so that they make no pages of their own. */
  readonly query?: readonly string[];
  readonly handle: (request: PageRequest) => Promise<PageAnswer>;
}
