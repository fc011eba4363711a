/** The explorer in a real browser: axe-core, keyboard, phone, without scripts, live, and its own verification. */
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { getAddress } from "ethers";
import type { Browser } from "playwright-core";
import {
  axeFindings,
  chartTextPixels,
  expectWalkable,
  type Eye,
  type EyeOptions,
  keepPicture,
  LOOKS,
  openChromium,
  openEye,
  overhangPixels,
} from "../helpers/pages/chromium.js";
import {
  ExplorerStage,
  openExplorer,
  pagesOf,
  type Scene,
  STAKE_PARAMS,
} from "../helpers/pages/explorer.js";
import { openStageIndexer, playMarket, type StageIndexer } from "../helpers/pages/indexed.js";
import { until } from "../helpers/until.js";

let stage: ExplorerStage;
let scene: Scene;
let pages: Readonly<Record<string, string>>;
let indexer: StageIndexer;
let browser: Browser;

/** Opens a window on the explorer, and closes it when the look is over. */
async function look<Seen>(
  options: Omit<EyeOptions, "origin">,
  see: (eye: Eye) => Promise<Seen>,
): Promise<Seen> {
  const eye = await openEye(browser, { origin: stage.url, ...options });
  try {
    return await see(eye);
  } finally {
    await eye.context.close();
  }
}

beforeAll(async () => {
  browser = await openChromium();
  stage = await ExplorerStage.open(0, {}, STAKE_PARAMS);
  scene = await stage.play();
  const plain = pagesOf(scene, await stage.playStake());
  const market = await playMarket(stage);
  indexer = await openStageIndexer(stage);
  pages = {
    ...plain,
    tradedPair: `/pair/${market.pair}?interval=1m`,
    tradedToken: `/token/${market.token}`,
  };
});

afterAll(async () => {
  await browser?.close();
  await indexer?.close();
  await stage?.close();
});

describe("every page of the explorer", () => {
  for (const { device, scheme, size } of LOOKS) {
    it(`has no fault for axe-core and fits its window: ${scheme}, ${device}`, async () => {
      await look({ scheme, size }, async ({ page, complaints }) => {
        for (const [name, target] of Object.entries(pages)) {
          await page.goto(target);
          const findings = await axeFindings(page);
          expect({ name, findings }).toEqual({ name, findings: [] });
          expect({ name, overhang: await overhangPixels(page) }).toEqual({ name, overhang: 0 });
          expect({ name, complaints }).toEqual({ name, complaints: [] });
          await keepPicture(page, `explorer-${name}-${scheme}-${device}`);
        }
      });
    });
  }

  it("has no fault for axe-core in the other language, either, and its longer words fit a phone", async () => {
    await look({ language: "de", size: LOOKS[1].size }, async ({ page, complaints }) => {
      for (const [name, target] of Object.entries(pages)) {
        await page.goto(target);
        expect(await page.locator("html").getAttribute("lang")).toBe("de");
        expect({ name, findings: await axeFindings(page) }).toEqual({ name, findings: [] });
        expect({ name, overhang: await overhangPixels(page) }).toEqual({ name, overhang: 0 });
      }
      expect(complaints).toEqual([]);
    });
  });

  it("has words on its charts that can be read on a phone", async () => {
    await look({ size: LOOKS[1].size }, async ({ page }) => {
      const sizes: number[] = [];
      for (const target of Object.values(pages)) {
        await page.goto(target);
        sizes.push(...(await chartTextPixels(page)));
      }
      expect(sizes.length).toBeGreaterThan(4);
      expect(Math.min(...sizes)).toBeGreaterThan(8);
    });
  });

  it("can be walked through with a keyboard, in order, and one sees where one is", async () => {
    await look({}, async ({ page }) => {
      // New heads bring other rows between the counting of the stops and the walk.
      await page.route("**/live", (route) => route.abort());
      for (const [name, target] of Object.entries(pages)) {
        await page.goto(target);
        await expectWalkable(page, name);
      }
    });
  });
});

describe("pages of an index", () => {
  it("show what was indexed: holders, transfers, candles, all tokens and pairs", async () => {
    await look({}, async ({ page }) => {
      const seen: Record<string, string> = {};
      for (const name of ["tokens", "pairs", "token", "tradedPair", "tradedToken", "account"]) {
        await page.goto(pages[name] ?? "");
        seen[name] = await page.locator("main").innerText();
        expect({ name, text: seen[name] }).not.toEqual({
          name,
          text: expect.stringContaining("The indexer does not answer"),
        });
      }
      expect(await page.locator("main table tbody tr").count()).toBeGreaterThan(3);
      await page.goto(pages["tradedPair"] ?? "");
      expect(await page.locator("main svg").count()).toBeGreaterThan(0);
    });
  });

  it("say what is missing where no indexer answers, and have no fault, either", async () => {
    const stopping = new AbortController();
    const env = { CAUSEWAY_EXPLORER_INDEXER_URL: "http://127.0.0.1:9" };
    const bare = await openExplorer(stage.home, stage.offset, stopping.signal, env);
    const eye = await openEye(browser, {
      origin: `http://127.0.0.1:${bare.server.port}`,
      ...LOOKS[1],
    });
    try {
      for (const name of ["tokens", "pairs", "token", "pair", "account", "supply"]) {
        await eye.page.goto(pages[name] ?? "");
        expect(await eye.page.locator("main").innerText()).toContain("The indexer does not answer");
        expect({ name, findings: await axeFindings(eye.page) }).toEqual({ name, findings: [] });
        expect({ name, overhang: await overhangPixels(eye.page) }).toEqual({ name, overhang: 0 });
        await keepPicture(eye.page, `explorer-bare-${name}`);
      }
    } finally {
      await eye.context.close();
      stopping.abort();
      for (const service of bare.services.toReversed()) await service.stop();
    }
  });
});

describe("somebody with a keyboard alone", () => {
  it("skips the head, and finds a transaction", async () => {
    await look({}, async ({ page }) => {
      await page.goto("/");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await page.waitForURL(/#content$/);
      expect(await page.evaluate("document.activeElement.id")).toBe("content");
      await page.goto("/");
      for (let presses = 0; presses < 10; presses += 1) {
        await page.keyboard.press("Tab");
        if ((await page.evaluate("document.activeElement.id")) === "q") break;
      }
      await page.keyboard.type(scene.plain.hash);
      await page.keyboard.press("Enter");
      await page.waitForURL(new RegExp(`/tx/${scene.plain.hash}$`, "i"));
      expect(await page.locator("main").innerText()).toContain("1.5 TOKEN");
    });
  });
});

describe("somebody without scripts", () => {
  it("walks from the first page over search, transaction, block and address to its end", async () => {
    await look({ hasScripts: false }, async ({ page, complaints }) => {
      await page.goto("/");
      await page.locator("#q").fill(String(scene.plain.blockNumber));
      await page.locator("form[role=search] button").click();
      await page.waitForURL(`**/block/${scene.plain.blockNumber}`);
      await page.locator("main table a[href^='/tx/']").first().click();
      await page.waitForURL(/\/tx\//);
      await page
        .locator(`main a[href='/address/${getAddress(scene.other)}']`)
        .first()
        .click();
      await page.waitForURL(/\/address\//);
      expect(await page.locator("main").innerText()).toContain("1.500000000000000007 TOKEN");
      await page.locator("main details summary").first().click();
      await page.locator("header a[href='/verify']").click();
      await page.waitForURL(/\/verify$/);
      // What cannot work without scripts says so instead of standing there dead.
      expect(await page.locator("main noscript").first().innerText()).not.toBe("");
      expect(await page.locator("main form").count()).toBe(1);
      expect(await page.locator("main form").isVisible()).toBe(false);
      await page.locator("footer button, footer a").first().click();
      expect(await page.locator("html").getAttribute("lang")).toMatch(/^(de|en)$/);
      expect(complaints).toEqual([]);
    });
  });
});

describe("the first page", () => {
  it("follows the chain by itself", async () => {
    await look({}, async ({ page, complaints }) => {
      await page.goto("/");
      const newest = async () =>
        Number(await page.locator("[data-live] a[href^='/block/']").first().innerText());
      const before = await newest();
      await page.evaluate("window.sameDocument = true");
      await until(async () => (await newest()) >= before + 2, {
        timeoutMs: 60_000,
        what: "two blocks appear",
      });
      expect(await page.evaluate("window.sameDocument")).toBe(true);
      expect(complaints).toEqual([]);
    });
  });
});

describe("texts of strangers", () => {
  it("do nothing but stand there", async () => {
    await look({}, async ({ page, complaints }) => {
      for (const name of ["token", "contract", "failed", "proposal", "proposals", "transaction"]) {
        await page.goto(pages[name] ?? "");
        expect(await page.locator("main script, main img").count()).toBe(0);
      }
      for (const target of [
        "/search?q=%22%3E%3Csvg%20onload=alert(1)%3E",
        "/%3Cscript%3E",
        "/tx/x",
      ]) {
        const answer = await page.goto(target);
        expect([400, 404]).toContain(answer?.status());
        expect(await page.locator("main script, main svg").count()).toBe(0);
      }
      expect(complaints).toEqual([]);
    });
  });
});

describe("the verification in the browser", () => {
  /** Height and hash of a header, from the node and not from the explorer. */
  async function trusted(height: number) {
    const answer = await fetch(`http://127.0.0.1:${26657 + stage.offset}/commit?height=${height}`);
    const { result } = (await answer.json()) as {
      result: { signed_header: { commit: { block_id: { hash: string } } } };
    };
    return result.signed_header.commit.block_id.hash;
  }

  it("asks for a trusted header, keeps it, and proves a balance and a transaction from it", async () => {
    await look({}, async ({ page, complaints }) => {
      const start = page.locator("[data-start]").first();
      const said = page.locator("[data-result]").first();
      await page.goto(`/address/${scene.other}`);
      await start.click();
      await page.locator("[data-result].refused").first().waitFor();
      await page.goto("/verify");
      await page.locator("#height").fill("2");
      await page.locator("#hash").fill(await trusted(2));
      await page.locator("[data-pin] button[type=submit]").click();
      await page.locator("[data-pin] .held").waitFor();
      await keepPicture(page, "explorer-verify-pinned");
      await page.goto(`/address/${scene.other}`);
      await start.click();
      await page.locator("[data-result].held").first().waitFor();
      expect(await said.innerText()).toContain("1500000000000000007");
      expect(await axeFindings(page)).toEqual([]);
      await keepPicture(page, "explorer-verified-account");
      await page.goto(`/tx/${scene.plain.hash}`);
      await start.click();
      await page.locator("[data-result].held").first().waitFor();
      await keepPicture(page, "explorer-verified-transaction");
      expect(complaints).toEqual([]);
    });
  });

  it("says that nothing was refuted where a proof cannot be had", async () => {
    await look({}, async ({ page }) => {
      await page.goto("/verify");
      await page.locator("[data-pin] [data-newest]").click();
      await page.locator("[data-pin] .held").waitFor();
      await page.route("**/proof/**", (route) => route.fulfill({ status: 503 }));
      await page.goto(`/address/${scene.other}`);
      await page.locator("[data-start]").first().click();
      const said = page.locator("[data-result].refused").first();
      await said.waitFor();
      expect(await said.innerText()).toContain("Nothing is proven and nothing refuted");
    });
  });

  it("refuses a header that the chain does not have", async () => {
    await look({}, async ({ page }) => {
      await page.goto("/verify");
      await page.locator("#height").fill("2");
      await page.locator("#hash").fill("ab".repeat(32));
      await page.locator("[data-pin] button[type=submit]").click();
      await page.locator("[data-pin] .refused").waitFor();
    });
  });
});
