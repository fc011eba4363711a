/**
 * Reads HTML strictly, by rules of its own: whatever is not written out (an open element, a quote
 * that is missing, an entity that nobody knows) is a fault. It shares nothing with what makes pages.
 */

/** An element with what is in it. */
export interface HtmlElement {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: (HtmlElement | string)[];
}

const VOID = new Set(["meta", "link", "input", "br", "hr", "img", "wbr"]);

/** SVG's elements may close themselves. */
const SVG = new Set(["line", "polyline", "rect"]);

const TAG = /^<([a-z][a-z0-9]*)((?:\s+[a-zA-Z_:][-a-zA-Z0-9_:.]*(?:="[^"]*")?)*)\s*(\/?)>/;
const ATTRIBUTE = /([a-zA-Z_:][-a-zA-Z0-9_:.]*)(?:="([^"]*)")?/g;
const ENTITIES = new Map([
  ["amp", "&"],
  ["lt", "<"],
  ["gt", ">"],
  ["quot", '"'],
  ["#39", "'"],
]);

function unescape(text: string): string {
  if (/[<>]/.test(text.replace(/>/g, ""))) throw new Error(`a tag in a text: ${text.slice(0, 80)}`);
  return text.replace(/&([^;\s]*);?/g, (whole, name: string) => {
    const character = ENTITIES.get(name);
    if (character === undefined || !whole.endsWith(";")) throw new Error(`an entity: ${whole}`);
    return character;
  });
}

/** The root of a whole document. Throws where it is not well formed. */
export function parseHtml(text: string): HtmlElement {
  const start = "<!doctype html>\n";
  if (!text.startsWith(start)) throw new Error("the document type is missing");
  const top: HtmlElement = { name: "#document", attributes: new Map(), children: [] };
  const open = [top];
  let rest = text.slice(start.length);
  while (rest !== "") {
    const parent = open.at(-1) ?? top;
    const end = /^<\/([a-z][a-z0-9]*)>/.exec(rest);
    const tag = TAG.exec(rest);
    if (end !== null) {
      if (open.pop()?.name !== end[1]) throw new Error(`closed out of order: ${end[0]}`);
      rest = rest.slice(end[0].length);
    } else if (tag !== null) {
      const [whole, name = "", written = "", slash] = tag;
      const attributes = new Map<string, string>();
      for (const [, key = "", value = ""] of written.matchAll(ATTRIBUTE)) {
        if (attributes.has(key)) throw new Error(`twice in one element: ${key}`);
        attributes.set(key, unescape(value));
      }
      const element: HtmlElement = { name, attributes, children: [] };
      parent.children.push(element);
      const isClosed = VOID.has(name) || (slash === "/" && SVG.has(name));
      if (slash === "/" && !isClosed) throw new Error(`it cannot close itself: ${whole}`);
      if (!isClosed) open.push(element);
      rest = rest.slice(whole.length);
    } else {
      const next = rest.indexOf("<");
      const piece = next < 0 ? rest : rest.slice(0, next);
      if (piece === "") throw new Error(`no tag: ${rest.slice(0, 80)}`);
      parent.children.push(unescape(piece));
      rest = rest.slice(piece.length);
    }
  }
  const [root] = top.children;
  if (open.length !== 1 || root === undefined || typeof root === "string") {
    throw new Error("elements are left open");
  }
  return root;
}

/** All elements below one, itself included, in the document's order. */
export function elements(root: HtmlElement): HtmlElement[] {
  return [
    root,
    ...root.children.flatMap((child) => (typeof child === "string" ? [] : elements(child))),
  ];
}

/** All elements of a name. */
export function all(root: HtmlElement, name: string): HtmlElement[] {
  return elements(root).filter((element) => element.name === name);
}

/** The text of an element, as a reader sees it. */
export function textOf(element: HtmlElement): string {
  return element.children
    .map((child) => (typeof child === "string" ? child : textOf(child)))
    .join("");
}
