/** What pages write of mined transactions of either kind. */
import type { BalanceChange } from "../../chain/balance-change.js";
import { CREDIT_CONFIRMATIONS } from "../../chain/confirmations.js";
import type { Hash32 } from "../../chain/hex.js";
import type { Content } from "../../web/html/element.js";
import { badge, note } from "../../web/html/parts.js";
import type { Texts } from "../text/catalogue.js";
import { changeTable } from "./moves.js";

/** Whether it did what it was to do. */
export function statusBadge(isSuccess: boolean, t: Texts): Content {
  return badge(isSuccess ? "good" : "bad", isSuccess ? t("success") : t("failed"));
}

/** Confirmations against what exchanges wait for; a block that is there is final at once. */
export function confirmationText(confirmations: number, t: Texts): string {
  const shown = Math.min(confirmations, CREDIT_CONFIRMATIONS);
  return `${shown}/${CREDIT_CONFIRMATIONS} · ${t("final")}`;
}

/** A transaction's moves of native coins. */
export function movesContent(changes: readonly BalanceChange[] | undefined, t: Texts): Content {
  return changes === undefined ? note("warning", t("journalTooLarge")) : changeTable(changes, t);
}

/** Hash as the Cosmos side writes it. */
export function upperHash(hash: Hash32): string {
  return hash.slice(2).toUpperCase();
}
