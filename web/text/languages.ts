/** Languages that pages are written in, and which one a reader likes best. */

/** Language of a page, as in `lang`. */
export type Language = "en" | "de";

/** All languages with the name that their readers know. */
export const LANGUAGE_NAMES: Readonly<Record<Language, string>> = { en: "English", de: "Deutsch" };

/** What stands in a text's places, by their names. */
export type TextValues = Readonly<Record<string, string | number>>;

/** A text with its places filled in; what is not given stays as it is. */
export function fillText(text: string, values: TextValues = {}): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** A text as a language that there is; undefined for any other. */
export function parseLanguage(text: string | undefined): Language | undefined {
  return text === "en" || text === "de" ? text : undefined;
}

/** Ranges of one header that are looked at. */
const MAX_RANGES = 16;

/** The language that a reader's browser likes best (RFC 9110, Accept-Language); English otherwise. */
export function preferredLanguage(acceptLanguage: string | undefined): Language {
  const ranges = (acceptLanguage ?? "").split(",", MAX_RANGES).map((range) => {
    const [tag = "", ...parameters] = range.trim().toLowerCase().split(";");
    const weight = parameters.map((parameter) => /^\s*q=([0-9.]{1,5})$/.exec(parameter)?.[1]);
    return { language: parseLanguage(tag.split("-")[0]), weight: Number(weight[0] ?? 1) };
  });
  const best = ranges
    .filter(({ language, weight }) => language !== undefined && weight > 0)
    .toSorted((left, right) => right.weight - left.weight)[0];
  return best?.language ?? "en";
}
