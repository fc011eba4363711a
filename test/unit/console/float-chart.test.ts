/** The console's first chart: coins against what customers are owed. */
import { expect, it } from "@jest/globals";
import { floatChart } from "../../../console/pages/figures.js";
import { figures } from "../../../console/sources/answers.js";
import { textsOf } from "../../../console/text/catalogue.js";
import { el, renderDocument } from "../../../web/html/element.js";
import { all, parseHtml, textOf } from "../../helpers/pages/html.js";

const ONE = 10n ** 18n;
const units = (coins: bigint) => `${coins * ONE}`;

/** As an API of before answers: a move to cold storage is held like a customer's withdrawal. */
const former = (minute: number) => ({
  at: `2026-01-01T00:0${minute}:00.000Z`,
  availableUnits: units(1_000n),
  heldUnits: units(700n),
  accounts: [{ account: "asset:wallet:0x70", chainUnits: units(300n) }],
});

/** The table's rows behind the chart, the newest first, and the chart's lines. */
function chartOf(coins: readonly object[]) {
  const seen = figures.parse({ coins, depositDelays: [], withdrawalLatencies: [] }).coins;
  const decimals = new Map([["TOKEN", 18]]);
  const content = floatChart(seen, { t: textsOf("en"), decimals });
  const root = parseHtml(renderDocument(el("main", {}, content)));
  const rows = all(root, "tr").map((row) => all(row, "td").slice(1).map(textOf));
  return { rows: rows.slice(1), lines: all(root, "polyline").length, text: textOf(root) };
}

it("owes customers nothing of the exchange's own moves, and has what lies in cold storage", () => {
  const whole = { owedUnits: units(1_000n), coldUnits: units(600n), inTransitUnits: units(100n) };
  const { rows, lines, text } = chartOf([
    former(0),
    ...[1, 2].map((at) => ({ ...former(at), ...whole })),
  ]);
  expect(rows).toEqual([
    ["300 TOKEN", "1000 TOKEN", "1000 TOKEN"],
    ["300 TOKEN", "1000 TOKEN", "1000 TOKEN"],
    ["300 TOKEN", "—", "1700 TOKEN"],
  ]);
  expect(lines).toBe(3);
  expect(text).toContain("In hot wallets and on deposit addresses");
});
