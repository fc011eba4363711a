/** Pages of the explorer as somebody is shown them: one route's handler, without a server around it. */
import type { Page, PageRequest, PageRoute } from "../../../explorer/server/page.js";
import { textsOf } from "../../../explorer/text/catalogue.js";
import { type Content, el, renderDocument } from "../../../web/html/element.js";
import { parseHtml, textOf } from "./html.js";

/** What a page is asked with, where it is not the plain address in English. */
export interface AskedPage {
  readonly parameter?: string;
  /** Of the address, as a text or by name. */
  readonly query?: string | Record<string, string>;
  readonly language?: "en" | "de";
  readonly signal?: AbortSignal;
}

/** The request that a route's handler gets. */
export function pageRequest({
  parameter = "",
  query = "",
  language = "en",
  signal = new AbortController().signal,
}: AskedPage = {}): PageRequest {
  return {
    parameter,
    query: new URLSearchParams(query),
    isSent: false,
    language,
    t: textsOf(language),
    signal,
  };
}

/** A content as a reader sees it. */
export function shownContent(content: Content) {
  const html = renderDocument(el("main", {}, content));
  const root = parseHtml(html);
  return { html, root, text: textOf(root) };
}

/** What a route answers with its page. */
export async function openPage(route: PageRoute | undefined, asked: AskedPage = {}): Promise<Page> {
  if (route === undefined) throw new Error("no such page");
  return (await route.handle(pageRequest(asked))) as Page;
}
