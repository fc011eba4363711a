/** Parameters of the modules as the chain has them, and the upgrade that is planned. */
import { DECIMAL_ONE } from "../../../chain/encoding/decimal.js";
import { BASE_DENOM } from "../../../chain/units.js";
import { type Content, el } from "../../../web/html/element.js";
import { foreignText, percent, tokenAmount } from "../../../web/html/format.js";
import { code, facts, section, table } from "../../../web/html/parts.js";
import type { PageAnswer, PageRequest, PageRoute } from "../../server/page.js";
import type { ModuleParameters } from "../../sources/modules/governance-source.js";
import type { Texts } from "../../text/catalogue.js";
import type { PageContext } from "../context.js";
import { askModules, isNoAnswer, noAnswerPage } from "../modules-asked.js";

/** Characters of one value. */
const MAX_VALUE = 400;

/** Parameters that are prices of a unit of gas, in atoken: decimal numbers as shares are, and no shares. */
const PRICES: ReadonlySet<string> = new Set(["base_fee", "min_gas_price"]);

/** "/parameters". */
export function parameterRoutes(context: PageContext): readonly PageRoute[] {
  return [
    {
      path: "/parameters",
      hasParameter: false,
      isCostly: true,
      handle: (request) => parameters(context, request),
    },
  ];
}

async function parameters(
  { governance }: PageContext,
  { t, signal }: PageRequest,
): Promise<PageAnswer> {
  const [modules, plan] = await Promise.all([
    askModules(governance.parameters(signal)),
    askModules(governance.plan(signal)),
  ]);
  if (isNoAnswer(modules)) return noAnswerPage(modules, t("parameters"), t);
  return {
    title: t("parameters"),
    content: [
      el("p", {}, t("parametersText")),
      isNoAnswer(plan)
        ? undefined
        : facts([
            [
              t("plannedUpgrade"),
              plan === undefined
                ? t("noPlan")
                : el(
                    "bdi",
                    {},
                    t("upgradeAtBlock", {
                      name: foreignText(plan.name),
                      height: String(plan.height),
                    }),
                  ),
            ],
          ]),
      modules.map((module) => moduleSection(module, t)),
    ],
  };
}

function moduleSection({ module, values }: ModuleParameters, t: Texts): Content {
  const title = t("moduleParameters", { module });
  return section(
    title,
    table({
      caption: title,
      columns: [t("parameter"), t("value")],
      empty: "—",
      rows: values.map(([name, value]) => [
        code(foreignText(name)),
        PRICES.has(name) ? priceText(value) : valueText(value),
      ]),
    }),
  );
}

/** Coins as TOKEN, fractions in per cent, everything else as the node writes it. */
function valueText(value: unknown): string {
  if (typeof value === "string") {
    const [, whole = "", digits = ""] = /^([01])\.(\d{18})$/.exec(value) ?? [];
    return whole === ""
      ? foreignText(value) || "—"
      : percent(BigInt(`${whole}${digits}`), DECIMAL_ONE);
  }
  const [coin, ...others] = Array.isArray(value) ? (value as readonly unknown[]) : [];
  if (others.length === 0 && typeof coin === "object" && coin !== null) {
    const { denom, amount } = coin as { readonly denom?: unknown; readonly amount?: unknown };
    if (denom === BASE_DENOM && typeof amount === "string" && /^\d{1,80}$/.test(amount)) {
      return tokenAmount(BigInt(amount));
    }
  }
  return foreignText(JSON.stringify(value).slice(0, MAX_VALUE));
}

function priceText(value: unknown): string {
  return typeof value === "string" && /^\d{1,80}\.\d{18}$/.test(value)
    ? `${value.replace(/\.?0+$/, "")} ${BASE_DENOM}`
    : valueText(value);
}
