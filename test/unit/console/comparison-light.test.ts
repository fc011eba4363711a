/** Lights with an age on the console's first page: the last comparison of books and chain, the newest block. */
import { expect, it } from "@jest/globals";
import { overviewRoutes } from "../../../console/pages/overview.js";
import type { PageContext } from "../../../console/pages/context.js";
import type { ApiQuestion } from "../../../console/sources/exchange-api.js";
import { PageError } from "../../../web/errors.js";
import { shownPage } from "../../helpers/pages/console-page.js";
import { all, textOf } from "../../helpers/pages/html.js";

const AT = "2026-01-01T00:00:00.000Z";

/** The light's words so long after the last comparison. */
async function lightAfter(seconds: number, clean: boolean): Promise<string | undefined> {
  const nowMs = () => Date.parse(AT) + seconds * 1_000;
  const context = {
    parts: [],
    evm: { getBlockHeader: async () => undefined },
    clock: { nowMs, monotonicMs: nowMs },
  } as unknown as PageContext;
  const run = { id: 1, at: AT, blockNumber: 7, clean, findings: [], assets: [] };
  const answer = ({ path }: ApiQuestion<unknown>) => {
    if (path !== "/v1/reconciliations") throw new PageError("UNAVAILABLE", "no answer");
    return { reconciliations: [run], next: null };
  };
  const { root } = await shownPage(overviewRoutes(context), "/", { role: "viewer", answer });
  return all(root, "li")
    .map((light) => textOf(light))
    .find((text) => text.startsWith("Reconciliation"));
}

it("says when it was, and warns where that is as long ago as the alarm on its age has it", async () => {
  const words = "block 7, 2026-01-01 00:00:00 UTC";
  expect(await lightAfter(900, true)).toMatch(new RegExp(`well ?They match, ${words}$`, "i"));
  expect(await lightAfter(901, true)).toMatch(new RegExp(`look at it ?They match, ${words}$`, "i"));
  for (const seconds of [1, 901]) {
    expect(await lightAfter(seconds, false)).toMatch(
      new RegExp(`failed ?They do not match, ${words}$`, "i"),
    );
  }
});

it("of the newest block tells of a chain whose time is ahead of the clock as of one that is late", async () => {
  const nowMs = () => Date.parse(AT);
  const blockLight = async (ageSeconds: number, intervalSeconds = 2) => {
    const newest = nowMs() / 1_000 - ageSeconds;
    const header = (at: number | "latest") => {
      const height = at === "latest" ? 7 : at;
      return { height, timestampSeconds: newest - (7 - height) * intervalSeconds };
    };
    const context = {
      parts: [],
      evm: { getBlockHeader: async (at: number | "latest") => header(at) },
      clock: { nowMs, monotonicMs: nowMs },
    } as unknown as PageContext;
    const answer = () => {
      throw new PageError("UNAVAILABLE", "no answer");
    };
    const { root } = await shownPage(overviewRoutes(context), "/", { role: "viewer", answer });
    return all(root, "li").map((light) => textOf(light))[0];
  };
  expect(await blockLight(10)).toMatch(/well ?7, 10 s old$/i);
  expect(await blockLight(11)).toMatch(/look at it ?7, 11 s old$/i);
  expect(await blockLight(-10)).toMatch(/well ?7, 10 s ahead of the clock$/i);
  expect(await blockLight(-11)).toMatch(/look at it ?7, 11 s ahead of the clock$/i);
  expect(await blockLight(-31)).toMatch(/failed ?7, 31 s ahead of the clock$/i);
  // A chain whose blocks come less often is late later.
  expect(await blockLight(59, 30)).toMatch(/well ?7, 59 s old$/i);
  expect(await blockLight(151, 30)).toMatch(/look at it ?7, 151 s old$/i);
});
