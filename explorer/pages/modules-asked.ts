/** Parts of pages that come from the modules' REST, and what stands there where it does not answer. */
import { errorCode } from "../../chain/errors.js";
import { note } from "../../web/html/parts.js";
import type { Content } from "../../web/html/element.js";
import { badRequest } from "../../web/errors.js";
import type { Texts } from "../text/catalogue.js";

/** Why there is no answer: the chain has no such modules, or the node does not answer now. */
export type NoAnswer = "unserved" | "unavailable";

/** Asks; that nobody answers is no fault of the page. */
export async function askModules<Answer>(answer: Promise<Answer>): Promise<Answer | NoAnswer> {
  try {
    return await answer;
  } catch (error) {
    const code = errorCode(error);
    if (code === "NOT_SERVED") return "unserved";
    // A node that is asked too often by others answers again in a moment.
    if (code === "UNAVAILABLE" || code === "EXHAUSTED") return "unavailable";
    throw error;
  }
}

/** Whether there is no answer. */
export function isNoAnswer(found: unknown): found is NoAnswer {
  return found === "unserved" || found === "unavailable";
}

/** Why a part is missing. */
export function noAnswerNote(why: NoAnswer, t: Texts): Content {
  return note("info", why === "unserved" ? t("stakingUnserved") : t("restUnavailable"));
}

/** A whole page without its answer: later it may be there. */
export function noAnswerPage(why: NoAnswer, title: string, t: Texts) {
  return { status: why === "unserved" ? 404 : 503, title, content: noAnswerNote(why, t) };
}

/** The place in a list that a query names; undefined for its beginning. */
export function placeIn(query: URLSearchParams, name: string): string | undefined {
  return query.get(name) ?? undefined;
}

/** The number of a proposal. @throws BAD_REQUEST */
export function proposalId(text: string): bigint {
  if (!/^[1-9][0-9]{0,18}$/.test(text)) throw badRequest("proposals have numbers");
  return BigInt(text);
}
