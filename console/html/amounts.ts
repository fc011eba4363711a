/** Amounts with their assets, states and times, as pages show them. */
import { type Content, el } from "../../web/html/element.js";
import { unitsAmount, utcTime } from "../../web/html/format.js";
import { badge, time } from "../../web/html/parts.js";

/** Decimals of each asset by its symbol. */
export type AssetDecimals = ReadonlyMap<string, number>;

/** "1.5 TOKEN", exactly; where an asset's decimals are not known its smallest units, and that they are. */
export function amount(units: bigint, asset: string, decimals: AssetDecimals): string {
  const places = decimals.get(asset);
  return places === undefined
    ? `${units} units of ${asset}`
    : `${unitsAmount(units, places)} ${asset}`;
}

const GOOD = new Set(["credited", "settled", "active", "delivered", "done", "none"]);
const BAD = new Set(["held", "suspense", "reversed", "frozen", "failed", "dead", "disabled"]);

/** A state as the APIs call it: never by colour alone. */
export function statusBadge(status: string): Content {
  return badge(GOOD.has(status) ? "good" : BAD.has(status) ? "bad" : "neutral", status);
}

/** An RFC 3339 time. */
export function moment(text: string | null): Content {
  if (text === null) return "—";
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? text : time(Math.floor(ms / 1_000));
}

/** The same as a text: for the ends of a chart, and in a sentence. */
export function momentText(text: string): string {
  return utcTime(Math.floor(Date.parse(text) / 1_000));
}

/** A text of machines that is too long for a line. */
export function block(text: string, label: string): Content {
  return el("pre", { tabindex: 0, role: "region", "aria-label": label }, text);
}
