/** The frame of every page: what it is called, the ways through the explorer, search, language. */
import { brand, mainNavigation, pageDocument } from "../../web/html/frame.js";
import { languageLinks } from "../../web/html/language-links.js";
import type { Language } from "../../web/text/languages.js";
import type { Texts } from "../text/catalogue.js";
import { type Content, el } from "../../web/html/element.js";

/** What the frame needs to know. */
export interface Frame {
  readonly title: string;
  readonly content: Content;
  readonly language: Language;
  readonly t: Texts;
  /** Name of the network, for every page. */
  readonly network: string;
  /** Path and query of this page, to come back to in another language. */
  readonly address: string;
  /** What was searched for. */
  readonly searched?: string | undefined;
  /** Address of a file. */
  readonly asset: (name: string) => string;
  readonly scripts: readonly string[];
}

/** The document. */
export function layout(frame: Frame): ReturnType<typeof el> {
  const { title, content, language, t, network, asset, scripts } = frame;
  const links = [
    ["/", t("home")],
    ["/blocks", t("blocks")],
    ["/validators", t("validators")],
    ["/proposals", t("proposals")],
    ["/parameters", t("parameters")],
    ["/supply", t("supply")],
    ["/tokens", t("tokens")],
    ["/pairs", t("pairs")],
    ["/deposit", t("whereIsMyDeposit")],
    ["/verify", t("verify")],
  ] as const;
  return pageDocument({
    language,
    windowTitle: `${title} · Causeway ${network}`,
    asset,
    scripts: scripts.map((name) => el("script", { type: "module", src: asset(name) })),
    skipText: t("skipToContent"),
    header: [
      brand("Causeway", network),
      searchForm(t, frame.searched),
      mainNavigation(t("mainNavigation"), links),
    ],
    title,
    content,
    footer: [el("p", {}, t("ownNodeAdvice")), languageLinks(frame.address, language)],
  });
}

function searchForm(t: Texts, searched: string | undefined): Content {
  return el(
    "form",
    { role: "search", action: "/search", method: "get" },
    el("label", { for: "q" }, t("searchLabel")),
    el("input", {
      id: "q",
      name: "q",
      type: "search",
      maxlength: 200,
      autocomplete: "off",
      spellcheck: "false",
      value: searched,
    }),
    el("button", { type: "submit" }, t("search")),
  );
}
