/** Pieces that many pages have: lists of facts, tables, notes, ways through a list. */
import { type Content, el } from "./element.js";
import { machineTime, utcTime } from "./format.js";

/** A hash, an address or other text of machines. */
export function code(text: string): Content {
  return el("code", {}, text);
}

/** A time as people and as programs read it. */
export function time(timestampSeconds: number): Content {
  return el("time", { datetime: machineTime(timestampSeconds) }, utcTime(timestampSeconds));
}

/** A fact and what it is called; undefined values are left out. */
export type Fact = readonly [name: string, value: Content];

/** Facts as a list of terms. */
export function facts(items: readonly Fact[]): Content {
  const shown = items.filter(([, value]) => value !== undefined);
  return el(
    "dl",
    { class: "facts" },
    shown.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))),
  );
}

/** A table with a caption that says what it is. */
export interface Table {
  readonly caption: string;
  readonly columns: readonly string[];
  /** Each as long as the columns. */
  readonly rows: readonly (readonly Content[])[];
  /** Shown where there is no row. */
  readonly empty: string;
  /** Columns with numbers, which stand to the right. */
  readonly numeric?: readonly number[];
}

/** The table; it scrolls sideways by itself, and can be reached by keyboard for that. */
export function table({ caption, columns, rows, empty, numeric = [] }: Table): Content {
  if (rows.length === 0) return el("p", { class: "empty" }, empty);
  const kind = (index: number) => (numeric.includes(index) ? "number" : undefined);
  return el(
    "div",
    { class: "scroll", role: "region", tabindex: 0, "aria-label": caption },
    el(
      "table",
      {},
      el("caption", {}, caption),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          columns.map((name, index) => el("th", { scope: "col", class: kind(index) }, name)),
        ),
      ),
      el(
        "tbody",
        {},
        rows.map((row) =>
          el(
            "tr",
            {},
            row.map((cell, index) => el("td", { class: kind(index) }, cell)),
          ),
        ),
      ),
    ),
  );
}

/** A part of a page under a heading. */
export function section(title: string, ...content: Content[]): Content {
  return el("section", {}, el("h2", {}, title), ...content);
}

/** A sentence that must not be overlooked. */
export function note(kind: "info" | "warning", ...content: Content[]): Content {
  return el("p", { class: `note ${kind}` }, ...content);
}

/** A state in a word: never by colour alone. */
export function badge(kind: "good" | "warn" | "bad" | "neutral", text: string): Content {
  return el("span", { class: `badge ${kind}` }, text);
}

/** The words of `pager`. */
export type PagerTexts = (key: "pages" | "newer" | "older") => string;

/**
 * Ways to the neighbouring pages of a list.
 * @param links.of the list's name, where a page has several: who hears the page tells them apart by it
 */
export function pager(
  t: PagerTexts,
  links: {
    readonly newer?: string | undefined;
    readonly older?: string | undefined;
    readonly of?: string;
  },
): Content {
  const { newer, older, of } = links;
  if (newer === undefined && older === undefined) return undefined;
  return el(
    "nav",
    { class: "pager", "aria-label": of === undefined ? t("pages") : `${of}: ${t("pages")}` },
    newer === undefined ? undefined : el("a", { href: newer, rel: "prev" }, `← ${t("newer")}`),
    older === undefined ? undefined : el("a", { href: older, rel: "next" }, `${t("older")} →`),
  );
}
