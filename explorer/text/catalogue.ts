/** Words in the reader's language. Every language has the same keys: the types and a test hold that. */
import { type Catalogue, ENGLISH, type TextKey } from "./english.js";
import { GERMAN } from "./german.js";

/** Language of a page, as in `lang`. */
export type Language = "en" | "de";

/** Looks a text up and fills it in. */
export type Texts = (key: TextKey, values?: Readonly<Record<string, string | number>>) => string;

/** All languages with the name that their readers know. */
export const LANGUAGES: Readonly<Record<Language, { name: string; catalogue: Catalogue }>> = {
  en: { name: "English", catalogue: ENGLISH },
  de: { name: "Deutsch", catalogue: GERMAN },
};

/** The texts of a language. */
export function textsOf(language: Language): Texts {
  const { catalogue } = LANGUAGES[language];
  return (key, values = {}) =>
    catalogue[key].replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
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
