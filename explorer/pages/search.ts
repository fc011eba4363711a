/** Search: whatever is pasted leads to its page, or to a page that says what it could not be. */
import { readIdentifier } from "../decode/identifiers.js";
import { el } from "../../web/html/element.js";
import { note, section, table } from "../../web/html/parts.js";
import { addressLink } from "../html/chain-links.js";
import type { PageAnswer, PageRequest, PageRoute } from "../server/page.js";
import { type PageContext } from "./context.js";
import { lookUp, missingTransaction } from "./transaction.js";

/** Characters that are searched for: the longest identifier has far fewer. */
const MAX_QUERY = 200;

/** Tokens that a name may find. */
const MAX_FOUND = 50;

/** "/search?q=". */
export function searchRoutes(context: PageContext): readonly PageRoute[] {
  return [
    {
      path: "/search",
      hasParameter: false,
      isCostly: true,
      query: ["q"],
      handle: (request) => search(context, request),
    },
  ];
}

async function search(
  context: PageContext,
  { t, query, signal }: PageRequest,
): Promise<PageAnswer> {
  const text = (query.get("q") ?? "").slice(0, MAX_QUERY);
  const found = readIdentifier(text);
  if (found === undefined) return byName(context, text, t);
  switch (found.kind) {
    case "height":
      return { location: `/block/${found.height}` };
    case "address":
      return { location: `/address/${found.address}` };
    default: {
      const seen = await lookUp(context, found.hash, signal);
      if (seen.kind === "block") return { location: `/block/${seen.height}` };
      if (seen.kind !== "unknown") return { location: `/tx/${found.hash}` };
      const height = await context.consensus
        .heightOfHash(found.hash, { signal })
        .catch(() => undefined);
      if (height !== undefined) return { location: `/block/${height}` };
      return missingTransaction(seen, found.hash, t);
    }
  }
}

/** Tokens of the home's list by their symbol. */
function byName(context: PageContext, text: string, t: PageRequest["t"]): PageAnswer {
  const wanted = text.trim().toLowerCase();
  const tokens = [...context.tokens.values()]
    .filter(({ symbol }) => wanted !== "" && symbol.toLowerCase().includes(wanted))
    .slice(0, MAX_FOUND);
  return {
    status: tokens.length > 0 || wanted === "" ? 200 : 404,
    title: t("search"),
    content: [
      tokens.length > 0
        ? section(
            t("listedTokens"),
            table({
              caption: t("listedTokens"),
              columns: [t("symbol"), t("contract")],
              empty: t("noTokens"),
              rows: tokens.map(({ symbol, contractAddress }) => [
                el("a", { href: `/token/${contractAddress}` }, symbol),
                addressLink(contractAddress, t),
              ]),
            }),
          )
        : wanted === ""
          ? undefined
          : note("warning", t("nothingFound")),
      el("p", {}, t("searchHelp")),
    ],
  };
}
