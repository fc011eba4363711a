/** What the frame of a page has on every server: its head, the way past what repeats, the ways through. */
import { type Content, el } from "./element.js";

/** A whole page, its texts in its language. */
export interface PageDocument {
  readonly language: string;
  /** What the window is called, the site's name with it. */
  readonly windowTitle: string;
  /** Address of a file. */
  readonly asset: (name: string) => string;
  /** Further parts of the head, before the files and behind them. */
  readonly meta?: Content;
  readonly scripts?: Content;
  /** Text of the link that leads past the header. */
  readonly skipText: string;
  readonly header: Content;
  readonly title: string;
  readonly content: Content;
  readonly footer: Content;
}

/** The document. */
export function pageDocument(page: PageDocument): ReturnType<typeof el> {
  const { language, windowTitle, asset, meta, scripts } = page;
  return el(
    "html",
    { lang: language },
    el(
      "head",
      {},
      el("meta", { charset: "utf-8" }),
      el("title", {}, windowTitle),
      el("meta", { name: "viewport", content: "width=device-width, initial-scale=1" }),
      el("meta", { name: "color-scheme", content: "light dark" }),
      meta,
      el("link", { rel: "stylesheet", href: asset("style.css") }),
      el("link", { rel: "icon", type: "image/svg+xml", href: asset("icon.svg") }),
      scripts,
    ),
    el(
      "body",
      {},
      el("a", { class: "skip", href: "#content" }, page.skipText),
      el("header", {}, page.header),
      el("main", { id: "content", tabindex: "-1" }, el("h1", {}, page.title), page.content),
      el("footer", {}, page.footer),
    ),
  );
}

/** The site's name and its network, which lead to the first page. */
export function brand(site: string, network: string): Content {
  return el("a", { class: "brand", href: "/" }, `${site} `, el("span", { class: "tag" }, network));
}

/**
 * The ways through a site.
 * @param current path of this page, where the site marks it
 */
export function mainNavigation(
  name: string,
  links: readonly (readonly [href: string, text: string])[],
  current?: string,
): Content {
  const items = links.map(([href, text]) =>
    el("li", {}, el("a", { href, "aria-current": href === current ? "page" : undefined }, text)),
  );
  return el("nav", { "aria-label": name }, el("ul", {}, items));
}
