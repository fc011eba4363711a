/** Pages in a real Chromium: what it complains about, what axe-core and a keyboard find. */
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { expect } from "@jest/globals";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";

const axeSource = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core"), "utf8");

/** WCAG 2.2, levels A and AA. */
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** The usual window. */
const DESK = { width: 1_280, height: 800 } as const;

/** As wide as a small phone, and as the usual window at a zoom of 400 % (WCAG 1.4.10). */
const PHONE = { width: 320, height: 640 } as const;

/** Each width and each scheme of colours once. */
export const LOOKS = [
  { device: "desk", scheme: "light", size: DESK },
  { device: "phone", scheme: "dark", size: PHONE },
] as const;

/** What a person has in front of them. */
export interface Eye {
  readonly context: BrowserContext;
  readonly page: Page;
  /** What the browser complained about: scripts that failed, policies broken, strangers asked, boxes opened. */
  readonly complaints: string[];
}

/** How somebody looks. */
export interface EyeOptions {
  readonly origin: string;
  readonly scheme?: "light" | "dark";
  readonly size?: { readonly width: number; readonly height: number };
  readonly hasScripts?: boolean;
  readonly language?: string;
}

/** @throws Error when the environment names no Chromium: bin/test.mjs looks for one */
export async function openChromium(): Promise<Browser> {
  const executablePath = process.env["CAUSEWAY_TEST_CHROMIUM"];
  if (executablePath === undefined) throw new Error("run these tests by `npm run test:browser`");
  const isRoot = process.getuid?.() === 0;
  return chromium.launch({ executablePath, args: isRoot ? ["--no-sandbox"] : [] });
}

/** A window of its own, with cookies and storage of its own. */
export async function openEye(browser: Browser, options: EyeOptions): Promise<Eye> {
  const { origin, scheme = "light", size = DESK, hasScripts = true, language = "en" } = options;
  const context = await browser.newContext({
    baseURL: origin,
    colorScheme: scheme,
    viewport: size,
    javaScriptEnabled: hasScripts,
    locale: language,
  });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(`script: ${error.message}`));
  page.on("console", (message) => {
    // A page that is a 404 or a 422 is what some tests ask for; they look at its status themselves.
    const isStatus = message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isStatus) complaints.push(`console: ${message.text()}`);
  });
  page.on("dialog", (dialog) => {
    complaints.push(`box: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const { origin: asked, protocol } = new URL(request.url());
    const isOwn = asked === origin || protocol === "data:" || protocol === "about:";
    if (!isOwn) complaints.push(`asked a stranger: ${request.url()}`);
  });
  page.on("response", (response) => {
    const isNavigation = response.request().isNavigationRequest();
    if (!isNavigation && response.status() >= 400) {
      complaints.push(`${response.status()} for ${response.url()}`);
    }
  });
  return { context, page, complaints };
}

/** What axe-core finds on the page: rule, what is wrong, and where. */
export async function axeFindings(page: Page): Promise<string[]> {
  // By the debugger, which the page's policy does not bind; the page itself may not do that.
  await page.evaluate(axeSource);
  const options = { runOnly: TAGS, rules: { "target-size": { enabled: true } } };
  const result = (await page.evaluate(`axe.run(document, ${JSON.stringify(options)})`)) as {
    readonly passes: readonly unknown[];
    readonly violations: readonly {
      readonly id: string;
      readonly help: string;
      readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
    }[];
  };
  if (result.passes.length === 0) throw new Error("axe-core looked at nothing");
  return result.violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id} (${help}): ${html}\n${failureSummary}`),
  );
}

/** How far the page is wider than its window, in pixels: a person would have to scroll sideways. */
export async function overhangPixels(page: Page): Promise<number> {
  return (await page.evaluate(
    "document.documentElement.scrollWidth - document.documentElement.clientWidth",
  )) as number;
}

/** Texts in cells of tables that are broken into more lines than a person reads as one name. */
export async function crumbledTexts(page: Page): Promise<readonly string[]> {
  return (await page.evaluate(
    `[...document.querySelectorAll("td > code")]
      .filter((code) => code.getClientRects().length > 5)
      .map((code) => code.textContent)`,
  )) as string[];
}

/** Sizes of the words in charts as they are on the screen, in pixels: a drawing is made to fit its column. */
export async function chartTextPixels(page: Page): Promise<readonly number[]> {
  return (await page.evaluate(
    `[...document.querySelectorAll(".chart text")].map(
      (text) => Number.parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a,
    )`,
  )) as number[];
}

/** One stop of the tabulator. */
interface Stop {
  readonly what: string;
  readonly isMarked: boolean;
  readonly isInView: boolean;
}

/** Names an element as people would point at it. */
const NAME_OF = `(element) => element.tagName.toLowerCase() +
  (element.id ? "#" + element.id : "") +
  " " + (element.getAttribute("href") || element.getAttribute("name") || "") +
  " " + (element.textContent || "").trim().slice(0, 40)`;

/** Where the keyboard stands: null on the page itself, and when it is back at the first stop. */
const STOP = `(() => {
  const at = document.activeElement;
  if (at === null || at === document.body || at === document.documentElement) return null;
  if (at === window.firstStop) return null;
  window.firstStop ??= at;
  const { outlineStyle, outlineWidth } = getComputedStyle(at);
  const box = at.getBoundingClientRect();
  const x = Math.min(Math.max(box.left + Math.min(box.width, 24) / 2, 0), innerWidth - 1);
  const y = Math.min(Math.max(box.top + box.height / 2, 0), innerHeight - 1);
  const top = document.elementFromPoint(x, y);
  return {
    what: (${NAME_OF})(at),
    isMarked: outlineStyle !== "none" && parseFloat(outlineWidth) >= 2,
    isInView: top !== null && (at.contains(top) || top.contains(at)),
  };
})()`;

/** What can be operated, in the order in which it stands. */
const OPERABLE = `[...document.querySelectorAll("a[href], button, input, select, textarea, summary")]
  .filter((element) => !element.disabled && element.type !== "hidden" && element.checkVisibility())
  .map(${NAME_OF})`;

/**
 * Presses the tabulator until the page is through: every part that can be operated is a stop, in the order
 * in which it stands, shows that it is one (WCAG 2.4.7), and lies in the window below nothing (2.4.11).
 * @param name of the page, for the report
 */
export async function expectWalkable(page: Page, name: string): Promise<void> {
  const operable = (await page.evaluate(OPERABLE)) as string[];
  const stops: Stop[] = [];
  // Boxes that scroll are stops, too, hence more than what can be operated.
  for (let presses = 0; presses < operable.length * 2 + 20; presses += 1) {
    await page.keyboard.press("Tab");
    const stop = (await page.evaluate(STOP)) as Stop | null;
    if (stop === null) break;
    stops.push(stop);
  }
  const known = new Set(operable);
  const passed = stops.map(({ what }) => what).filter((what) => known.has(what));
  expect({ name, stops: passed }).toEqual({ name, stops: operable });
  const hidden = stops.filter(({ isMarked, isInView }) => !isMarked || !isInView);
  expect({ name, hidden }).toEqual({ name, hidden: [] });
}

/** Keeps a picture where CAUSEWAY_SCREENSHOTS names a folder, for people to look at. */
export async function keepPicture(page: Page, name: string): Promise<void> {
  const folder = process.env["CAUSEWAY_SCREENSHOTS"];
  if (folder === undefined) return;
  fs.mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true });
}
