/** Parts of pages that come from the indexer, and what stands there where it does not answer. */
import { errorCode } from "../../chain/errors.js";
import type { Content } from "../../web/html/element.js";
import { note } from "../../web/html/parts.js";
import type { Texts } from "../text/catalogue.js";
import type { IndexedPage } from "../sources/indexer-source.js";

/** An answer of the indexer, or that there is none. */
export type Indexed<Item> = IndexedPage<Item> | "unavailable";

/** Asks the indexer; that it does not answer is no fault of the page. */
export async function ask<Item>(answer: Promise<IndexedPage<Item>>): Promise<Indexed<Item>> {
  try {
    return await answer;
  } catch (error) {
    if (errorCode(error) === "UNAVAILABLE") return "unavailable";
    throw error;
  }
}

/** Up to where the indexer has read, or that it is not there. */
export function indexedNote(found: Indexed<unknown>, t: Texts): Content {
  if (found === "unavailable") return note("warning", t("indexerUnavailable"));
  const { indexedHeight } = found;
  return note(
    "info",
    indexedHeight === undefined ? t("fromIndexer") : t("indexedTo", { height: indexedHeight }),
  );
}
