/**
 * "Verify in this browser": the page where a reader pins a trusted header, and the control on others.
 */
import { type Content, el } from "../../web/html/element.js";
import { code, note, section } from "../../web/html/parts.js";
import type { Page, PageRequest, PageRoute } from "../server/page.js";
import type { Texts } from "../text/catalogue.js";
import type { PageContext } from "./context.js";

/** What is verified, and where its proof is. */
export interface VerifySubject {
  readonly kind: "account" | "transaction";
  /** Path of the explorer at which the proof is. */
  readonly url: string;
}

/** The button and where its answer appears; without JavaScript a sentence stands there. */
export function verifyControl({ kind, url }: VerifySubject, t: Texts): Content {
  return el(
    "div",
    {
      class: "verify",
      "data-verify": kind,
      "data-url": url,
      "data-running": t("verifyRunning"),
      "data-held": t("verifyHeld"),
      "data-refused": t("verifyRefused"),
      "data-unanswered": t("verifyUnanswered"),
      "data-unable": t("verifyUnable"),
      "data-unpinned": t("verifyUnpinned"),
    },
    el("p", {}, t("verifyText"), " ", el("a", { href: "/verify" }, t("verifyPinLink"))),
    el("noscript", {}, note("info", t("verifyNeedsScript"))),
    el("button", { type: "button", hidden: true, "data-start": "" }, t("verifyButton")),
    el("div", { role: "status", "aria-live": "polite", "data-result": "" }),
  );
}

/** "/verify". */
export function verifyRoutes(context: PageContext): readonly PageRoute[] {
  return [
    {
      path: "/verify",
      hasParameter: false,
      query: ["address", "tx"],
      handle: (request) => verify(context, request),
    },
  ];
}

async function verify({ network, commandUrls }: PageContext, { t }: PageRequest): Promise<Page> {
  return {
    title: t("verify"),
    scripts: ["verify"],
    content: [
      el("p", {}, t("verifyIntro")),
      el(
        "ol",
        {},
        ["verifyStep1", "verifyStep2", "verifyStep3", "verifyStep4"].map((key) =>
          el("li", {}, t(key as "verifyStep1")),
        ),
      ),
      section(
        t("trustedHeader"),
        el("p", {}, t("trustedHeaderText")),
        el(
          "p",
          {},
          code(`curl -s ${commandUrls.consensus}/commit | jq .result.signed_header.commit`),
        ),
        el("noscript", {}, note("info", t("verifyNeedsScript"))),
        pinForm(network.cosmosChainId, t),
      ),
      section(t("verifyScripts"), el("p", {}, t("verifyScriptsText"))),
    ],
  };
}

function pinForm(chainId: string, t: Texts): Content {
  const input = (id: string, label: string, attributes: Record<string, string | number>) => [
    el("label", { for: id }, label),
    el("input", { id, name: id, autocomplete: "off", spellcheck: "false", ...attributes }),
  ];
  return el(
    "form",
    {
      class: "ask",
      method: "get",
      action: "/verify",
      hidden: true,
      "data-pin": chainId,
      "data-pinned": t("pinned"),
      "data-unpinned": t("verifyUnpinned"),
      "data-wrong": t("pinWrong"),
      "data-unanswered": t("verifyUnanswered"),
      "data-unable": t("verifyUnable"),
    },
    input("height", t("height"), { inputmode: "numeric", pattern: "[0-9]{1,15}" }),
    input("hash", t("consensusHash"), { maxlength: 66, pattern: "(0x)?[0-9a-fA-F]{64}" }),
    el("button", { type: "submit" }, t("pin")),
    el("button", { type: "button", "data-newest": "" }, t("pinNewest")),
    el("p", {}, t("pinNewestText")),
    el("div", { role: "status", "aria-live": "polite", "data-result": "" }),
  );
}
