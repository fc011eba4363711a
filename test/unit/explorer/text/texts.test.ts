/** The explorer's words: every language whole, and the reader's choice understood. */
import { describe, expect, it } from "@jest/globals";
import { CATALOGUES, textsOf } from "../../../../explorer/text/catalogue.js";
import { preferredLanguage } from "../../../../web/text/languages.js";

const placeholders = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);

describe("the catalogues", () => {
  const { en, ...others } = CATALOGUES;

  it("have the same keys and the same places to fill in", () => {
    for (const [language, catalogue] of Object.entries(others)) {
      expect(new Set(Object.keys(catalogue))).toEqual(new Set(Object.keys(en)));
      for (const [key, text] of Object.entries(en)) {
        const theirs = Object.entries(catalogue).find(([name]) => name === key)?.[1] ?? "";
        expect({ language, key, places: new Set(placeholders(theirs)) }).toEqual({
          language,
          key,
          places: new Set(placeholders(text)),
        });
        expect({ language, key, isEmpty: theirs.trim() === "" }).toEqual({
          language,
          key,
          isEmpty: false,
        });
      }
    }
  });

  it("fill in what is given and leave what is not", () => {
    const t = textsOf("en");
    expect(t("indexedTo", { height: 7 })).toContain("block 7.");
    expect(t("indexedTo")).toContain("{height}");
  });
});

describe("the language of a browser", () => {
  it("is the one that it likes best of those that there are", () => {
    const cases = [
      ["de-DE,de;q=0.9,en;q=0.8", "de"],
      ["fr,de;q=0.4,en;q=0.7", "en"],
      ["en;q=0,de;q=0.1", "de"],
      ["fr", "en"],
      ["", "en"],
      [";;;q=x,,", "en"],
      [undefined, "en"],
    ] as const;
    for (const [header, language] of cases) {
      expect({ header, language: preferredLanguage(header) }).toEqual({ header, language });
    }
  });
});
