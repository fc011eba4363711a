/** What pages write of mined transactions of either kind. */
import type { BalanceChange } from "../../chain/balance-change.js";
import { CREDIT_CONFIRMATIONS } from "../../chain/confirmations.js";
import type { Hash32 } from "../../chain/hex.js";
import type { Content } from "../../web/html/element.js";
import { badge, note } from "../../web/html/parts.js";
import type { NoJournal } from "../sources/chain-source.js";
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

/** Moves of native coins, or why they are not told. */
export type Moves = readonly BalanceChange[] | NoJournal | undefined;

/** A transaction's moves of native coins. */
export function movesContent(changes: Moves, t: Texts): Content {
  return typeof changes === "object" ? changeTable(changes, t) : noMovesNote(changes, t);
}

/** What stands in the place of moves that were not told. */
export function noMovesNote(reason: NoJournal | undefined, t: Texts): Content {
  return reason === "pruned"
    ? note("info", t("prunedText"))
    : note("warning", t("journalTooLarge"));
}

/** Hash as the Cosmos side writes it. */
export function upperHash(hash: Hash32): string {
  return hash.slice(2).toUpperCase();
}
