/** Prices as decimal texts: exact, because tokens may differ by more digits than a number has. */

/** Digits that a price is shown with. */
const SHOWN_DIGITS = 12;

/** Digits of a price that is taken; longer ones are no prices. */
const MAX_LENGTH = 400;

/** Whether a text is a price: digits, and perhaps a point with more of them. */
export function isPrice(text: unknown): text is string {
  return (
    typeof text === "string" &&
    text.length <= MAX_LENGTH &&
    /^(0|[1-9][0-9]*)(\.[0-9]+)?$/.test(text)
  );
}

/** A price times 10^places, exactly; places may be negative. */
export function shiftPoint(price: string, places: number): string {
  const [whole = "0", fraction = ""] = price.split(".");
  const digits = `${whole}${fraction}`;
  const point = whole.length + places;
  const padded = point <= 0 ? `${"0".repeat(1 - point)}${digits}` : digits.padEnd(point, "0");
  const place = Math.max(1, point);
  return trimmed(`${padded.slice(0, place)}.${padded.slice(place)}`);
}

/** A price with as many digits as people read, cut off behind the point. */
export function shownPrice(price: string): string {
  const [whole = "0", fraction = ""] = price.split(".");
  const zeros = whole === "0" ? (/^0*/.exec(fraction)?.[0].length ?? 0) : 0;
  const kept = Math.max(0, SHOWN_DIGITS + zeros - (whole === "0" ? 0 : whole.length));
  return trimmed(`${whole}.${fraction.slice(0, kept)}`);
}

function trimmed(text: string): string {
  const [whole = "", fraction = ""] = text.split(".");
  const kept = fraction.replace(/0+$/, "");
  const digits = whole.replace(/^0+(?=[0-9])/, "");
  return kept === "" ? digits : `${digits}.${kept}`;
}
