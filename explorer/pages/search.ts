/** Search: whatever is pasted leads to its page, or to a page that says what it could not be. */
import type { TokenEntry } from "../../chain/token-list.js";
import { type Content, el } from "../../web/html/element.js";
import { foreignName } from "../../web/html/format.js";
import { note, section, table } from "../../web/html/parts.js";
import { readIdentifier } from "../decode/identifiers.js";
import { addressLink } from "../html/chain-links.js";
import type { PageAnswer, PageRequest, PageRoute } from "../server/page.js";
import type { IndexedPage, IndexedToken } from "../sources/indexer-source.js";
import type { StakedValidator } from "../sources/modules/staking-source.js";
import type { Texts } from "../text/catalogue.js";
import { type PageContext, tokenLink } from "./context.js";
import { ask, isNoIndex } from "./indexed.js";
import { askModules, isNoAnswer } from "./modules-asked.js";
import { validatorLink } from "./staking/validator-parts.js";
import { lookUp, missingTransaction } from "./transaction.js";

/** Characters that are searched for: the longest identifier has far fewer. */
const MAX_QUERY = 200;

/** Characters of a name that the indexer takes. */
const MAX_NAME = 64;

/** Tokens or validators that a name may find. */
const MAX_FOUND = 50;

/** Looks of the indexer for one name. */
const MAX_LOOKS = 5;

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
  if (found === undefined) return byName(context, text, t, signal);
  switch (found.kind) {
    case "height":
      return { location: `/block/${found.height}` };
    case "address": {
      const { address } = found;
      const asked = await askModules(context.staking.ofConsensus(address, signal));
      const isKey = asked !== undefined && !isNoAnswer(asked);
      return { location: isKey ? `/validator/${asked.operator}` : `/address/${address}` };
    }
    case "validator":
      return { location: `/validator/${found.consensus}` };
    case "proposal":
      return { location: `/proposal/${found.id}` };
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

/** The indexer looks at so many tokens at a time, and says where it would go on. */
async function tokensCalled(
  { indexer }: PageContext,
  name: string,
  signal: AbortSignal,
): Promise<IndexedPage<IndexedToken>> {
  let page = await indexer.tokens(undefined, signal, name);
  for (let looks = 1; looks < MAX_LOOKS && page.items.length === 0; looks++) {
    if (page.next === undefined) break;
    page = await indexer.tokens(page.next, signal, name);
  }
  return page;
}

/** Tokens and validators by what they are called; only names of the home's list are vouched for. */
async function byName(
  context: PageContext,
  text: string,
  t: Texts,
  signal: AbortSignal,
): Promise<PageAnswer> {
  // No name has control characters, and nobody could be asked for one with them.
  const wanted = text
    .replace(/\p{Cc}/gu, " ")
    .trim()
    .toLowerCase();
  if (wanted === "") return { title: t("search"), content: el("p", {}, t("searchHelp")) };
  const listed = [...context.tokens.values()]
    .filter(({ symbol }) => symbol.toLowerCase().includes(wanted))
    .slice(0, MAX_FOUND);
  const isNamed = ({ moniker }: StakedValidator) => moniker.toLowerCase().includes(wanted);
  const [met, asked] = await Promise.all([
    ask(context, tokensCalled(context, wanted.slice(0, MAX_NAME), signal), signal),
    askModules(context.staking.find(isNamed, MAX_FOUND, signal)),
  ]);
  const known = new Set(listed.map(({ contractAddress }) => contractAddress));
  const others = isNoIndex(met) ? [] : met.items.filter((one) => !known.has(one.contract));
  const validators = isNoAnswer(asked) ? [] : asked;
  const isFound = listed.length + others.length + validators.length > 0;
  return {
    status: isFound ? 200 : 404,
    title: t("search"),
    content: [
      isFound ? undefined : note("warning", t("nothingFound")),
      listedSection(listed, t),
      others.length === 0
        ? undefined
        : section(
            t("allTokens"),
            table({
              caption: t("allTokens"),
              columns: [t("token"), t("name"), t("contract")],
              empty: t("noTokens"),
              rows: others.map(({ contract, symbol, name }) => [
                tokenLink(context, contract, t, symbol),
                name === undefined ? "—" : el("bdi", {}, foreignName(name)),
                addressLink(contract, t),
              ]),
            }),
          ),
      validators.length === 0
        ? undefined
        : section(
            t("validators"),
            table({
              caption: t("validators"),
              columns: [t("validatorName"), t("operatorAddress")],
              empty: t("noValidators"),
              rows: validators.map(({ moniker, operator }) => [
                el("bdi", {}, foreignName(moniker)),
                validatorLink(operator),
              ]),
            }),
          ),
      el("p", {}, t("searchHelp")),
    ],
  };
}

function listedSection(tokens: readonly TokenEntry[], t: Texts): Content {
  if (tokens.length === 0) return undefined;
  return section(
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
  );
}
