/** What pages write of a validator: its state, its commission, how it signs, a link to it. */
import { type Address, operatorText, toChecksumAddress } from "../../../chain/address.js";
import { DECIMAL_ONE } from "../../../chain/encoding/decimal.js";
import { type Content, el } from "../../../web/html/element.js";
import { percent, shortHex } from "../../../web/html/format.js";
import { badge } from "../../../web/html/parts.js";
import type { SigningRecord, StakedValidator } from "../../sources/modules/staking-source.js";
import type { Texts } from "../../text/catalogue.js";

/** Link to a validator by its operator's address. */
export function validatorLink(operator: Address): Content {
  const text = operatorText(operator);
  const href = `/validator/${toChecksumAddress(operator)}`;
  return el("a", { href }, el("code", { title: text }, shortHex(text)));
}

/** Whether it takes part, and why not. */
export function stateBadges(
  { status, isJailed }: Pick<StakedValidator, "status" | "isJailed">,
  record: SigningRecord | undefined,
  t: Texts,
): Content {
  const state =
    status === "bonded"
      ? badge("good", t("activeValidator"))
      : status === "unbonding"
        ? badge("warn", t("leavingValidator"))
        : badge("neutral", t("notInSet"));
  if (record?.isTombstoned === true) return [state, " ", badge("bad", t("barred"))];
  return isJailed ? [state, " ", badge("bad", t("jailed"))] : state;
}

/** A fraction with 18 decimals in per cent. */
export function commissionText(rate: bigint): string {
  return percent(rate, DECIMAL_ONE);
}

/** Blocks missed of those that are counted, and the share that was signed. */
export function missedText(record: SigningRecord | undefined, window: bigint, t: Texts): string {
  if (record === undefined) return "—";
  const { missedBlocks, countedBlocks } = record;
  // The count begins with the next block: one more may be missed than are behind it.
  const least = countedBlocks < window ? countedBlocks : window;
  const count = missedBlocks > least ? missedBlocks : least;
  const text = t("missedBlocks", { missed: String(missedBlocks), count: String(count) });
  return `${text} (${percent(count - missedBlocks, count)})`;
}

/** A text of an operator's or proposer's; undefined for none. */
export function ownWords(text: string): Content {
  return text === "" ? undefined : el("bdi", {}, text);
}
