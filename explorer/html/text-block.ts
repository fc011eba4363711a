/** Longer texts of strangers as they are: lines kept, nothing in them hidden or turned. */
import { type Content, el } from "../../web/html/element.js";
import { INVISIBLE } from "../../web/html/format.js";

/**
 * A text that scrolls by itself; characters that hide or turn letters are shown by their numbers.
 * @param label what it is, for those who do not see it
 */
export function textBlock(text: string, label: string, kind: "code" | "prose" = "code"): Content {
  const shown = visibleText(text);
  return el(
    "pre",
    { tabindex: 0, role: "region", "aria-label": label, class: kind },
    kind === "code" ? el("code", {}, shown) : shown,
  );
}

/** What hides or turns letters would make a text look like another. */
const DECEIVING = new RegExp(`${INVISIBLE.source}|(?![\\n\\t])\\p{Cc}|\\p{Cs}`, "gu");

function visibleText(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replace(DECEIVING, (one) => `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`);
}
