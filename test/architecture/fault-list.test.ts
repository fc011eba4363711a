/** The faults that tests elsewhere show: each is where the list of `npm run test:faults` looks for it. */
import { describe, expect, it } from "@jest/globals";
import { testSources } from "../helpers/sources/source-tree.js";

interface ShownElsewhere {
  readonly number: number;
  /** Beginnings of the files' paths. */
  readonly files: readonly string[];
  /** Words of the tests' full names. */
  readonly tests: readonly string[];
}

const BIN = "../../bin";
const { SHOWN_ELSEWHERE }: { readonly SHOWN_ELSEWHERE: readonly ShownElsewhere[] } = await import(
  `${BIN}/testing/fault-list.mjs`
);

/** Texts of a file, among them the names of its tests and of their groups. */
const TEXT = /(["`])((?:(?!\1)[^\\\n]|\\.)+)\1/g;

/** What `it.each` puts into a name. */
const PLACE = /%[sij]|\$\w+/g;

const tests = testSources().filter(({ path }) => path.endsWith(".test.ts"));

/** A name as a pattern of the end of full names: what `it.each` puts in may be anything. */
function patternOf(name: string): RegExp {
  const plain = name.replaceAll(/[.*+?^{}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(`(^| )${plain.replaceAll(PLACE, ".+")}$`);
}

/** Whether a test of these files is called so, as far as its name stands in the source. */
function isShown(words: string, files: readonly string[]): boolean {
  const sources = tests.filter(({ path }) => files.some((file) => path.startsWith(file)));
  return sources.some(({ text }) => {
    const names = [...text.matchAll(TEXT)].map(([, , name = ""]) => name);
    const groups = ["", ...names.filter((name) => words.startsWith(name))];
    return names.some((name) => {
      const parts = name.split(PLACE).flatMap((part) => groups.map((group) => `${group} ${part}`));
      const isPart = parts.some((part) => part.includes(words));
      return isPart || (name.includes(" ") && patternOf(name).test(words));
    });
  });
}

describe("a fault that a test elsewhere shows", () => {
  it("has its tests in the files that are run for it", () => {
    const named = SHOWN_ELSEWHERE.flatMap(({ number, files, tests: names }) =>
      names.map((name) => ({ number, name, files })),
    );
    expect(named.length).toBeGreaterThan(60);
    const missing = named.filter(({ name, files }) => !isShown(name, files));
    expect(missing.map(({ number, name }) => `${number}: ${name}`)).toEqual([]);
  });
});
