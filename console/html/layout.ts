/** The frame of every page of the console: who is logged in, the ways through it, language. */
import { type Content, el } from "../../web/html/element.js";
import { brand, mainNavigation, pageDocument } from "../../web/html/frame.js";
import { languageLinks } from "../../web/html/language-links.js";
import type { Language } from "../../web/text/languages.js";
import type { Texts } from "../text/catalogue.js";
import type { ConsoleRole } from "../users/roles.js";

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
  readonly asset: (name: string) => string;
  /** Undefined on the page of the login. */
  readonly who:
    | { readonly user: string; readonly role: ConsoleRole; readonly hiddenFields: () => Content }
    | undefined;
}

/** The document. */
export function layout(frame: Frame): ReturnType<typeof el> {
  const { title, content, language, t, network, asset, address } = frame;
  return pageDocument({
    language,
    windowTitle: `${title} · ${t("console")} ${network}`,
    asset,
    meta: el("meta", { name: "robots", content: "noindex" }),
    skipText: t("contents"),
    header: [brand(t("console"), network), whoParts(frame)],
    title,
    content,
    footer: languageLinks(address, language),
  });
}

function whoParts({ who, t, address }: Frame): Content {
  if (who === undefined) return undefined;
  const links = [
    ["/", t("overview")],
    ["/deposits", t("deposits")],
    ["/withdrawals", t("withdrawals")],
    ["/approvals", t("approvals")],
    ["/wallets", t("wallets")],
    ["/treasury", t("treasury")],
    ["/reconciliation", t("reconciliation")],
    ["/incidents", t("incidents")],
    ["/fees", t("fees")],
    ["/policy", t("policy")],
    ["/webhooks", t("webhooks")],
    ["/audit", t("audit")],
  ] as const;
  return [
    el(
      "form",
      { action: "/logout", method: "post" },
      who.hiddenFields(),
      el("a", { href: "/account" }, `${who.user} (${who.role})`),
      el("button", { type: "submit" }, t("logout")),
    ),
    mainNavigation(t("mainNavigation"), links, address.split("?", 1)[0]),
  ];
}
