/** Words in the reader's language. Every language has the same keys: the types and a test hold that. */
import { fillText, type Language, type TextValues } from "../../web/text/languages.js";
import { type Catalogue, ENGLISH, type TextKey } from "./english.js";
import { GERMAN } from "./german.js";

/** Looks a text up and fills it in. */
export type Texts = (key: TextKey, values?: TextValues) => string;

/** The texts of each language. */
export const CATALOGUES: Readonly<Record<Language, Catalogue>> = { en: ENGLISH, de: GERMAN };

/** The texts of a language. */
export function textsOf(language: Language): Texts {
  return (key, values) => fillText(CATALOGUES[language][key], values);
}
