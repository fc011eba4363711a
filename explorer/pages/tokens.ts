/** Tokens: those of the home's list, what contracts say of themselves, who holds them. */
import { type Address, toChecksumAddress } from "../../chain/address.js";
import { readAddress } from "../decode/identifiers.js";
import { badRequest } from "../../web/errors.js";
import { type Content, el } from "../../web/html/element.js";
import { foreignName } from "../../web/html/format.js";
import { badge, code, facts, note, pager, section, table } from "../../web/html/parts.js";
import { addressLink } from "../html/chain-links.js";
import type { Page, PageRequest, PageRoute } from "../server/page.js";
import type { TokenClaims } from "../sources/chain-source.js";
import type { IndexedHolder } from "../sources/indexer-source.js";
import type { Texts } from "../text/catalogue.js";
import { transfersContent } from "./address.js";
import { listedToken, type PageContext, tokenLink } from "./context.js";
import { ask, type Indexed, indexedNote, isNoIndex } from "./indexed.js";
import { amountByClaim, amountOfId } from "./moves.js";

/** "/tokens" and "/token/<contract>". */
export function tokenRoutes(context: PageContext): readonly PageRoute[] {
  return [
    {
      path: "/tokens",
      hasParameter: false,
      query: ["cursor"],
      handle: (request) => tokens(context, request),
    },
    {
      path: "/token",
      hasParameter: true,
      isCostly: true,
      query: ["cursor", "holders"],
      handle: (request) => token(context, request),
    },
  ];
}

async function tokens(context: PageContext, { t, query, signal }: PageRequest): Promise<Page> {
  const found = await ask(
    context,
    context.indexer.tokens(query.get("cursor") ?? undefined, signal),
    signal,
  );
  return {
    title: t("tokens"),
    content: [
      section(
        t("listedTokens"),
        el("p", {}, t("listedTokensText")),
        table({
          caption: t("listedTokens"),
          columns: [t("symbol"), t("contract"), t("decimals")],
          numeric: [2],
          empty: t("noListedTokens"),
          rows: [...context.tokens.values()].map(({ contractAddress, symbol, decimals }) => [
            el("a", { href: `/token/${contractAddress}` }, symbol),
            addressLink(contractAddress, t),
            decimals,
          ]),
        }),
      ),
      section(
        t("allTokens"),
        indexedNote(found, t),
        isNoIndex(found)
          ? undefined
          : table({
              caption: t("allTokens"),
              columns: [t("token"), t("name"), t("contract"), t("holders")],
              numeric: [3],
              empty: t("noTokens"),
              rows: found.items.map(({ contract, name, symbol, holders }) => [
                tokenLink(context, contract, t, symbol),
                name === undefined ? "—" : el("bdi", {}, foreignName(name)),
                addressLink(contract, t),
                holders ?? "—",
              ]),
            }),
      ),
      !isNoIndex(found) && found.next !== undefined
        ? pager(t, { older: `/tokens?cursor=${encodeURIComponent(found.next)}` })
        : undefined,
    ],
  };
}

async function token(context: PageContext, request: PageRequest): Promise<Page> {
  const { parameter, query, t, signal } = request;
  const contract = readAddress(parameter);
  if (contract === undefined) throw badRequest("not an address");
  const { chain, indexer } = context;
  const contractCode = await chain.evm.getCode(contract, "latest", { signal });
  if (contractCode === "0x") return notAToken(contract, t);
  const cursor = query.get("cursor") ?? undefined;
  const [claims, holders, transfers] = await Promise.all([
    chain.tokenClaims(contract, { signal }),
    ask(context, indexer.holders(contract, query.get("holders") ?? undefined, signal), signal),
    ask(context, indexer.tokenTransfers(contract, cursor, signal), signal),
  ]);
  const listed = listedToken(context, contract);
  const decimals = listed.decimals ?? claims.decimals;
  return {
    title: t("token"),
    content: [
      listed.symbol === undefined
        ? note("warning", t("claimsText"))
        : note("info", t("isListed", { symbol: listed.symbol })),
      claimFacts(contract, { listedSymbol: listed.symbol, claims, decimals }, t),
      section(t("holders"), indexedNote(holders, t), holdersContent(holders, decimals, t)),
      !isNoIndex(holders) && holders.next !== undefined
        ? pager(t, {
            of: t("holders"),
            older: `/token/${contract}?holders=${encodeURIComponent(holders.next)}`,
          })
        : undefined,
      section(t("transfers"), indexedNote(transfers, t), transfersContent(context, transfers, t)),
      !isNoIndex(transfers) && transfers.next !== undefined
        ? pager(t, {
            of: t("transfers"),
            older: `/token/${contract}?cursor=${encodeURIComponent(transfers.next)}`,
          })
        : undefined,
    ],
  };
}

/** What the contract says of itself, beside what the exchange calls it. */
function claimFacts(
  contract: Address,
  told: {
    readonly listedSymbol: string | undefined;
    readonly claims: TokenClaims;
    readonly decimals: number | undefined;
  },
  t: Texts,
): Content {
  const { listedSymbol, claims, decimals } = told;
  const { totalSupplyUnits } = claims;
  const claimed = (text: string | undefined): Content =>
    text === undefined ? undefined : el("bdi", {}, foreignName(text));
  return facts([
    [t("contract"), el("a", { href: `/address/${contract}` }, code(toChecksumAddress(contract)))],
    [t("listedAs"), listedSymbol],
    [t("claimedName"), claimed(claims.name)],
    [t("claimedSymbol"), claimed(claims.symbol)],
    [t("claimedDecimals"), claims.decimals],
    [
      t("claimedSupply"),
      totalSupplyUnits === undefined ? undefined : amountByClaim(totalSupplyUnits, decimals, t),
    ],
  ]);
}

function holdersContent(
  holders: Indexed<IndexedHolder>,
  decimals: number | undefined,
  t: Texts,
): Content {
  if (isNoIndex(holders)) return undefined;
  return table({
    caption: t("holders"),
    columns: [t("account"), t("amount")],
    numeric: [1],
    empty: t("noHolders"),
    rows: holders.items.map(({ account, units, tokenId }) => [
      addressLink(account, t, false),
      tokenId === undefined ? amountByClaim(units, decimals, t) : amountOfId(units, tokenId),
    ]),
  });
}

function notAToken(contract: string, t: Texts): Page {
  return {
    status: 404,
    title: t("notFoundTitle"),
    content: [
      el("p", {}, badge("neutral", t("noContract")), " ", code(contract)),
      el("p", {}, el("a", { href: `/address/${contract}` }, t("account"))),
    ],
  };
}
