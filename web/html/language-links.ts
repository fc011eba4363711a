/** Ways to the same page in another language: links, so that choosing one works without a script. */
import { LANGUAGE_NAMES, type Language } from "../text/languages.js";
import { type Content, el } from "./element.js";

/** A paragraph with a link for each other language. @param address path and query of this page */
export function languageLinks(address: string, language: Language): Content {
  const all: readonly Language[] = ["en", "de"];
  return el(
    "p",
    {},
    all
      .filter((one) => one !== language)
      .map((one) =>
        el(
          "a",
          { href: withLanguage(address, one), lang: one, hreflang: one },
          LANGUAGE_NAMES[one],
        ),
      ),
  );
}

function withLanguage(address: string, language: Language): string {
  const [path = "/", search = ""] = address.split("?", 2);
  const query = new URLSearchParams(search);
  query.set("lang", language);
  return `${path}?${query.toString()}`;
}
