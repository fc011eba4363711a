/** The form of the sources: limits that only ever go down (see docs/style.md). */
import { describe, expect, it } from "@jest/globals";
import { functionLines } from "../helpers/sources/function-lines.js";
import { productSources, testSources } from "../helpers/sources/source-tree.js";

const MAX_FILE_LINES = 500;
/** Goes down only; the aim is 70. */
const MAX_FUNCTION_LINES = 75;
const MAX_LINE_COLUMNS = 110;
/** Side by side in one folder; more than this is two ideas. */
const MAX_FOLDER_FILES = 21;

const sources = productSources();

/** Lines that match, as "file:line". */
function find(pattern: RegExp): string[] {
  return sources.flatMap(({ path, text }) =>
    text
      .split("\n")
      .map((line, index) => ({ line, place: `${path}:${index + 1}` }))
      .filter(({ line }) => pattern.test(line))
      .map(({ place }) => place),
  );
}

/** Exports whose line before is not the end of a comment or a decorator. */
function undocumented(): string[] {
  const isExport =
    /^export (default )?(async )?(abstract )?(function|class|const|let|type|interface)\b/;
  return sources.flatMap(({ path, text }) => {
    const lines = text.split("\n");
    return lines.flatMap((line, index) => {
      const before = (lines[index - 1] ?? "").trimEnd();
      const documented = before.endsWith("*/") || before.startsWith("@") || before === "})";
      return isExport.test(line) && !documented ? [`${path}:${index + 1}`] : [];
    });
  });
}

/** Statements that sort by a number's text: the name of a column that is cast is that of its text. */
function sortedByText(): string[] {
  return sources.flatMap(({ path, text }) =>
    [...text.matchAll(/`[^`]*`/g)].flatMap(([statement]) =>
      [...statement.matchAll(/\b([a-z_]+)::text(?!\s+AS\b)/gi)].flatMap(([, column = ""]) => {
        const sorted = new RegExp(`ORDER BY (?:[\\w.]+(?: DESC)?, )*${column}\\b(?!::)`);
        return sorted.test(statement) ? [`${path}: ${column}`] : [];
      }),
    ),
  );
}

describe("sources", () => {
  it("sort rows by columns, not by their texts", () => {
    expect(sortedByText()).toEqual([]);
  });

  it("stay below the length of a file", () => {
    const long = sources
      .map(({ path, text }) => ({ path, lines: text.split("\n").length }))
      .filter(({ lines }) => lines > MAX_FILE_LINES);
    expect(long).toEqual([]);
  });

  it("stay below the length of a function", () => {
    const functions = sources.flatMap(({ path, text }) => functionLines(path, text));
    // Were none found, none would be long.
    expect(functions.length).toBeGreaterThan(10_000);
    expect(functions.filter(({ count }) => count > MAX_FUNCTION_LINES)).toEqual([]);
  });

  it("lie in folders that can be looked over", () => {
    const counts = new Map<string, number>();
    for (const { path } of sources) {
      const folder = path.slice(0, path.lastIndexOf("/"));
      counts.set(folder, (counts.get(folder) ?? 0) + 1);
    }
    expect([...counts].filter(([, count]) => count > MAX_FOLDER_FILES)).toEqual([]);
  });

  it("stay below the width of a line", () => {
    expect(find(new RegExp(`^.{${MAX_LINE_COLUMNS + 1},}$`))).toEqual([]);
  });

  it("document every export", () => {
    expect(undocumented()).toEqual([]);
  });

  it("silence no check and leave nothing for later", () => {
    expect(find(/@ts-ignore|@ts-expect-error|@ts-nocheck|oxlint-disable|biome-ignore/)).toEqual([]);
    expect(find(/\b(TODO|FIXME|XXX)\b/)).toEqual([]);
    expect(find(/\bas any\b|: any\b|<any>/)).toEqual([]);
  });

  it("say of what is money that it is", () => {
    // `Atoken` of chain/units.ts.
    expect(find(/Atoken\??: bigint\b|Atoken\([^()]*\): bigint\b/)).toEqual([]);
  });

  it("say what an amount is of, and what a bound counts", () => {
    expect(find(/\bamount\??: (bigint|Atoken)\b/)).toEqual([]);
    const bare = "AT_ONCE|BATCH|ENTRIES|FEW|PAGE|RECORDS|ROUND|ROWS";
    expect(find(new RegExp(`^(export )?const (${bare}) = [\\d_]+;`))).toEqual([]);
    expect(find(/\bconst MAX_(REASON|SUMMARY|DATA|DESCRIPTION) =/)).toEqual([]);
  });

  it("read the environment in one place", () => {
    const files = sources.filter(({ text }) => /process\.env\b/.test(text)).map(({ path }) => path);
    expect(files.filter((path) => path !== "runtime/config/config.ts")).toEqual([]);
  });

  it("take time limits from one place: Node loses those of its own", () => {
    // See `limitedSignal`.
    expect(find(/AbortSignal\.timeout\(/)).toEqual([]);
  });

  it("start with a header comment that says what the file is for", () => {
    const bare = sources.filter(({ text }) => !/^(#!.*\n)?\/\*\*/.test(text));
    expect(bare.map(({ path }) => path)).toEqual([]);
  });
});

describe("tests", () => {
  it("compare no time of the machine and no memory of the process", () => {
    // What takes time is the benchmark's, and the long networks'; in virtual time it is exact.
    const timed = testSources().filter(({ path, text }) => {
      if (path.startsWith("test/network/") || path === "test/architecture/tidy.test.ts")
        return false;
      const isVirtual = text.includes("helpers/virtual-time.js");
      const compares = /expect\((performance\.now\(\)|Date\.now\(\))|expect\(\w*([tT]ook|elapsed)/;
      return /cpuUsage\(|memoryUsage\(/.test(text) || (compares.test(text) && !isVirtual);
    });
    expect(timed.map(({ path }) => path)).toEqual([]);
  });
});
