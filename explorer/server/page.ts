/** What a page is, and what it is made from: the contract between the pages and the server. */
import type { Content } from "../../web/html/element.js";
import type { Texts } from "../text/catalogue.js";
import type { Language } from "../../web/text/languages.js";

/** A request that found its page. */
export interface PageRequest {
  /** Segments of the path behind the page's own, decoded. */
  readonly parameter: string;
  /** Of the address; of a form that was sent, its fields. */
  readonly query: URLSearchParams;
  /** True where a form was sent (POST). */
  readonly isSent: boolean;
  /** Of who sent a form; undefined for what is only read, as others may get the same answer. */
  readonly remoteAddress?: string | undefined;
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
  readonly scripts?: readonly ("live" | "verify" | "wallet")[];
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

/** A form that a page takes. */
export interface PageForm {
  /** A longer body is refused with 413. */
  readonly maxBytes: number;
  /** What it counts for a client, where a page counts one. */
  readonly cost: number;
  /**
   * What its fields count instead, where they may ask for less: a short form is read before it counts, a long
   * one counts `cost` for being read.
   */
  readonly costOf?: (query: URLSearchParams) => number;
  /** True where its work waits in a queue of its own: it takes no turn from pages meanwhile. */
  readonly hasOwnQueue?: boolean;
}

/** What went wrong. */
export interface RouteFault {
  readonly status: number;
  /** For people, in English. */
  readonly text: string;
}

/** One kind of page. */
export interface PageRoute {
  /** "/block" takes "/block/<parameter>" where `hasParameter`, else exactly that path. */
  readonly path: string;
  readonly hasParameter: boolean;
  /** True for those that ask much of the node. */
  readonly isCostly?: boolean;
  /** Names that a query may have; others are dropped, so that they make no pages of their own. */
  readonly query?: readonly string[];
  /** What its clients are told of a fault, as JSON; undefined where a page says it. */
  readonly refusal?: (fault: RouteFault) => unknown;
  /** Undefined for pages that are only read. What a form answers is never kept. */
  readonly form?: PageForm;
  readonly handle: (request: PageRequest) => Promise<PageAnswer>;
}
