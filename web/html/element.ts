/**
 * The only way to HTML: elements of Preact, rendered to text, in which every text and attribute is
 * escaped. What could carry a program (handlers, inline styles, raw HTML, links with a scheme) is
 * refused here, whatever a page was made to say.
 */
import { h, type VNode } from "preact";
import { renderToString } from "preact-render-to-string";

/** What may stand inside an element. */
export type Content = VNode<Attributes> | string | number | undefined | readonly Content[];

/** Attributes; undefined and false are left out. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** Attributes that are programs, styles or raw HTML. */
const FORBIDDEN = /^(on.*|style|srcdoc|formaction|dangerouslySetInnerHTML|ref|key)$/i;

/** Attributes that name another resource. */
const ADDRESSES = new Set(["href", "src", "action"]);

/**
 * Of this origin: a path, a query or a fragment; `//host` and `/\\host` are another's. Browsers leave
 * tabs and line ends out before they look, so that none may be there.
 */
const OWN_ADDRESS = /^(\/(?![/\\])|\?|#)[^\t\n\r]*$/;

/** An element. @throws TypeError for an attribute that no page may have */
export function el(
  name: string,
  attributes: Attributes = {},
  ...content: Content[]
): VNode<Attributes> {
  for (const [key, value] of Object.entries(attributes)) {
    if (FORBIDDEN.test(key)) throw new TypeError(`no page may have the attribute ${key}`);
    if (ADDRESSES.has(key) && !OWN_ADDRESS.test(String(value))) {
      throw new TypeError(`${key} leads away from these pages`);
    }
  }
  return h<Attributes>(name, attributes, ...content);
}

/** A whole document as text. */
export function renderDocument(root: VNode<Attributes>): string {
  return `<!doctype html>\n${renderToString(root)}`;
}
