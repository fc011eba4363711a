/**
 * Parts of pages that come from the indexer, and what stands there where it does not answer, or tells of
 * other blocks than the node: after a chain has lost blocks, or was made anew, an index goes on to serve
 * what it has, and whoever looks for a deposit would be shown those of blocks that are gone.
 */
import { errorCode } from "../../chain/errors.js";
import { NodeFault, RpcError } from "../../rpc-client/errors.js";
import type { Content } from "../../web/html/element.js";
import { note } from "../../web/html/parts.js";
import type { Texts } from "../text/catalogue.js";
import type { IndexedPage } from "../sources/indexer-source.js";
import type { PageContext } from "./context.js";

/** Why nothing of it is shown: it does not answer, or its newest block is another one at the node. */
export type NoIndex = "unavailable" | "foreign";

/** A page of the indexer; `isAhead`: the node does not have its newest block. */
type ComparedPage<Item> = IndexedPage<Item> & { readonly isAhead: boolean };

/** An answer of the indexer, or that there is none to be shown. */
export type Indexed<Item> = ComparedPage<Item> | NoIndex;

/** Whether nothing is to be shown. */
export function isNoIndex(found: Indexed<unknown>): found is NoIndex {
  return typeof found === "string";
}

/** Asks the indexer, and the node for its newest block; that it does not answer is no fault of the page. */
export async function ask<Item>(
  context: Pick<PageContext, "chain">,
  answer: Promise<IndexedPage<Item>>,
  signal: AbortSignal,
): Promise<Indexed<Item>> {
  let page;
  try {
    page = await answer;
  } catch (error) {
    if (errorCode(error) === "UNAVAILABLE") return "unavailable";
    throw error;
  }
  const place = await placeOf(context, page, signal);
  return place === "foreign" ? place : { ...page, isAhead: place === "ahead" };
}

/** Where the newest block of an index is; that of a node that does not answer, or deleted it, may be any. */
async function placeOf(
  { chain }: Pick<PageContext, "chain">,
  { indexedHeight, indexedHash }: IndexedPage<unknown>,
  signal: AbortSignal,
): Promise<"known" | "ahead" | "foreign"> {
  if (indexedHeight === undefined || indexedHash === undefined) return "known";
  try {
    const hash = await chain.hashAt(indexedHeight, { signal });
    if (hash === undefined) return "ahead";
    return hash === indexedHash ? "known" : "foreign";
  } catch (error) {
    if (error instanceof NodeFault || error instanceof RpcError) return "known";
    throw error;
  }
}

/** Up to where the indexer has read, or why nothing of it is shown. */
export function indexedNote(found: Indexed<unknown>, t: Texts): Content {
  if (found === "foreign") return note("warning", t("indexerForeign"));
  if (found === "unavailable") return note("warning", t("indexerUnavailable"));
  const { indexedHeight, isAhead } = found;
  if (indexedHeight === undefined) return note("info", t("fromIndexer"));
  return isAhead
    ? note("warning", t("indexedAhead", { height: indexedHeight }))
    : note("info", t("indexedTo", { height: indexedHeight }));
}
