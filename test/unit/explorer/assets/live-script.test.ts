/** The script that keeps a page up to date, run beside a server that has no page to give for a moment. */
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";
import { expect, it } from "@jest/globals";

const SCRIPT = path.join(process.cwd(), "explorer", "assets", "live.mjs");

/** What became of a page with a live part when a new head came, and the page was answered so. */
async function refreshed(status: number, hasLivePart: boolean): Promise<string[]> {
  const happened: string[] = [];
  let onHead: ((event: { readonly lastEventId: string }) => void) | undefined;
  const fresh = hasLivePart ? {} : null;
  const shown = {
    contains: () => false,
    replaceWith: () => happened.push("replaced"),
  };
  const done = new Promise<void>((resolve) => {
    const context = {
      location: { href: "/", reload: () => happened.push("reloaded") },
      document: {
        hidden: false,
        activeElement: null,
        querySelector: () => shown,
        adoptNode: (node: unknown) => node,
        addEventListener: () => undefined,
      },
      EventSource: class {
        addEventListener(_name: string, listener: typeof onHead): void {
          onHead = listener;
        }
      },
      DOMParser: class {
        parseFromString(): unknown {
          return { querySelector: () => fresh };
        }
      },
      fetch: () => Promise.resolve({ status, ok: status < 400, text: () => Promise.resolve("") }),
      // The pause behind a fetch: whatever it came to is done by then.
      setTimeout: () => resolve(),
    };
    vm.runInNewContext(fs.readFileSync(SCRIPT, "utf8"), context);
  });
  onHead?.({ lastEventId: "7" });
  onHead?.({ lastEventId: "8" });
  await done;
  return happened;
}

it("puts the fresh part in the place of the shown one", async () => {
  expect(await refreshed(200, true)).toEqual(["replaced"]);
});

it("loads the page anew where it has become another one", async () => {
  expect(await refreshed(200, false)).toEqual(["reloaded"]);
  // As that of a transaction which waited, and which no block will have.
  expect(await refreshed(404, false)).toEqual(["reloaded"]);
});

it("leaves the page as it is while there is none to be had: another head brings another try", async () => {
  for (const status of [429, 500, 503]) {
    expect({ status, happened: await refreshed(status, false) }).toEqual({ status, happened: [] });
  }
});
