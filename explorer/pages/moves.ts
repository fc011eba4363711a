/** What moved, as tables: native coins from the balance journal, tokens from logs, logs themselves. */
import type { Address } from "../../chain/address.js";
import type { BalanceChange } from "../../chain/balance-change.js";
import { type TokenMove, tokensMoved } from "../../rpc-client/indexing/token-moves.js";
import { MAX_QUERIES_AT_ONCE } from "../../rpc-client/tokens/token-balances.js";
import { withTimeout } from "../../runtime/process/task.js";
import { type Decoded, decodeLog } from "../decode/abi.js";
import type { AbiValue, NamedValue } from "../decode/abi-codec.js";
import type { AbiItem } from "../decode/abi-items.js";
import { type Content, el } from "../../web/html/element.js";
import {
  foreignName,
  foreignText,
  hasWholeTokens,
  shortHex,
  tokenAmount,
  unitsAmount,
} from "../../web/html/format.js";
import { badge, code, section, table } from "../../web/html/parts.js";
import { addressLink } from "../html/chain-links.js";
import type { LogView } from "../sources/evm-json.js";
import type { Texts } from "../text/catalogue.js";
import { listedToken, type PageContext, tokenLink } from "./context.js";

/** Rows of one table on a page; the rest is in the download. */
export const MAX_ROWS = 200;

/** Characters of calldata and of a log's data that are shown. */
const MAX_DATA_CHARACTERS = 2_050;

/** Changes of the balance journal. */
export function changeTable(changes: readonly BalanceChange[], t: Texts): Content {
  return [
    table({
      caption: t("nativeMoves"),
      columns: [t("reason"), t("from"), t("to"), t("amount"), t("place"), t("effect")],
      numeric: [3],
      empty: t("noMoves"),
      rows: changes
        .slice(0, MAX_ROWS)
        .map((change) => [
          change.reason,
          change.from === undefined ? t("nobodyFrom") : addressLink(change.from, t),
          change.to === undefined ? t("nobodyTo") : addressLink(change.to, t),
          tokenAmount(change.amountAtoken),
          placeOf(change, t),
          change.effective
            ? badge("good", t("moved"))
            : [badge("bad", t("notMoved")), " ", foreignText(change.error ?? "")],
        ]),
    }),
    more(changes.length, t),
  ];
}

function placeOf({ tracePath }: BalanceChange, t: Texts): string {
  if (tracePath === undefined) return "—";
  return tracePath === "" ? t("topLevel") : t("internal", { path: tracePath.replaceAll("_", ".") });
}

/** How many rows are left out, where some are: a short table would be taken for the whole. */
export function more(count: number, t: Texts): Content {
  return count > MAX_ROWS ? el("p", {}, t("moreRows", { count: count - MAX_ROWS })) : undefined;
}

/** Longest wait for what contracts say of themselves. */
const ANSWERS_MS = 2_000;

/**
 * Tokens that the logs of a transaction say were moved. Escrows and vaults log Deposits and Withdrawals as
 * wrapped coins do: those alone are a token's where it is listed, or says what somebody has. Where that is
 * not answered in time the logs are shown as they are: the page is about more than that.
 */
export async function tokensMovedBy(
  { tokens, chain }: PageContext,
  logs: readonly LogView[],
  signal: AbortSignal,
): Promise<readonly TokenMove[]> {
  const moves = tokensMoved(logs, 0);
  const sure = new Set(moves.flatMap((one) => (one.wrapping === undefined ? [one.asset] : [])));
  const doubtful = new Map<Address, Address>();
  for (const { asset, from, to } of moves) {
    const account = from ?? to;
    if (account === undefined || sure.has(asset) || tokens.has(asset)) continue;
    doubtful.set(asset, account);
  }
  if (doubtful.size === 0) return moves;
  // As many as are asked in one exchange: others keep what they say.
  const queries = [...doubtful]
    .slice(0, MAX_QUERIES_AT_ONCE)
    .map(([token, account]) => ({ token, account, at: "latest" as const }));
  const ask = (each: AbortSignal) => chain.evm.tokenBalanceAnswers(queries, { signal: each });
  const answers = await withTimeout(ask, { timeoutMs: ANSWERS_MS, signal }).catch(() => []);
  signal.throwIfAborted();
  const silent = new Set(
    queries.flatMap(({ token }, at) => {
      const answer = answers[at];
      return answer?.ok === true && answer.units === undefined ? [token] : [];
    }),
  );
  return moves.filter(({ asset }) => !silent.has(asset));
}

/** Token transfers as a table. @param isToShort false where the whole recipient is needed */
export function tokenTable(
  context: PageContext,
  transfers: readonly TokenMove[],
  t: Texts,
  isToShort = true,
): Content {
  return [
    table({
      caption: t("tokenMoves"),
      columns: [t("token"), t("from"), t("to"), t("amount")],
      numeric: [3],
      empty: t("noTokenMoves"),
      rows: transfers
        .slice(0, MAX_ROWS)
        .map((move) => [
          tokenLink(context, move.asset, t),
          move.from === undefined ? t("nobodyFrom") : addressLink(move.from, t),
          move.to === undefined ? t("nobodyTo") : addressLink(move.to, t, isToShort),
          move.wrapping === "echoed"
            ? [movedAmount(context, move, t), " ", el("small", {}, t("perhapsSame"))]
            : movedAmount(context, move, t),
        ]),
    }),
    more(transfers.length, t),
  ];
}

function movedAmount(
  context: PageContext,
  { asset, amountUnits, tokenId }: TokenMove,
  t: Texts,
): Content {
  return tokenId === undefined
    ? amountOf(context, asset, amountUnits, t)
    : amountOfId(amountUnits, tokenId);
}

/** How many of a token with ids: its id alone where there is one. */
export function amountOfId(units: bigint, tokenId: bigint): Content {
  const id = el("span", { class: "breakable" }, `#${tokenId}`);
  return units === 1n ? id : [`${units} × `, id];
}

/** An amount by the home's list; whole units where nobody vouches for the decimals. */
export function amountOf(context: PageContext, contract: Address, units: bigint, t: Texts): string {
  const { symbol, decimals } = listedToken(context, contract);
  if (symbol === undefined) return `${units} ${t("units")}`;
  return `${unitsAmount(units, decimals)} ${symbol}`;
}

/** An amount by decimals that nobody may vouch for; it says so where it is in the smallest units. */
export function amountByClaim(units: bigint, decimals: number | undefined, t: Texts): string {
  return hasWholeTokens(decimals) ? unitsAmount(units, decimals) : `${units} ${t("units")}`;
}

/** Events of verified contracts. */
export type AbiOf = (contract: Address) => readonly AbiItem[] | undefined;

/** Logs of a receipt, decoded by the ABI of a verified contract, else where their event is known. */
export function logList(logs: readonly LogView[], t: Texts, abiOf: AbiOf): Content {
  if (logs.length === 0) return el("p", { class: "empty" }, t("noLogs"));
  return [
    el(
      "ol",
      { class: "logs" },
      logs.slice(0, MAX_ROWS).map((log) => {
        const abi = abiOf(log.address);
        const own = abi === undefined ? undefined : decodeLog(log.topics, log.data, abi);
        const decoded = own ?? decodeLog(log.topics, log.data);
        return el(
          "li",
          {},
          el("p", {}, `#${log.logIndex} `, addressLink(log.address, t)),
          decoded === undefined ? undefined : decodedContent(decoded, t, own !== undefined),
          el(
            "details",
            {},
            el("summary", {}, t("rawLog")),
            el(
              "ul",
              { class: "raw" },
              log.topics.map((topic) => el("li", {}, code(topic))),
              el("li", {}, rawData(log.data, t)),
            ),
          ),
        );
      }),
    ),
    more(logs.length, t),
  ];
}

/** A decoded call or event. @param isVerified by the ABI of a verified contract, not by signature */
export function decodedContent(decoded: Decoded, t: Texts, isVerified = false): Content {
  const how = isVerified ? t("byVerifiedAbi") : t("bySignature");
  return [
    el("p", {}, el("strong", {}, foreignName(decoded.name)), " ", el("small", {}, how)),
    valueList(decoded.values, t),
  ];
}

/** Values with their names; both are strangers'. */
export function valueList(values: readonly NamedValue[], t: Texts): Content {
  if (values.length === 0) return undefined;
  return el(
    "ul",
    { class: "values" },
    values.map(({ name, value }, index) =>
      el("li", {}, `${foreignName(name) || index}: `, valueContent(value, t)),
    ),
  );
}

function valueContent(value: AbiValue, t: Texts): Content {
  switch (value.kind) {
    case "address":
      return addressLink(value.address, t);
    case "number":
      return value.number.toString();
    case "list":
      return [
        "[",
        value.items.map((item, index) => [index === 0 ? "" : ", ", valueContent(item, t)]),
        value.left === undefined ? "]" : `, …] ${t("moreRows", { count: value.left })}`,
      ];
    case "fields":
      return valueList(value.fields, t);
    default:
      return el("bdi", {}, foreignText(value.text));
  }
}

/** Bytes as hex, cut where they are long. */
export function rawData(data: string, t: Texts): Content {
  if (data.length <= MAX_DATA_CHARACTERS) return code(data);
  const sizeBytes = (data.length - 2) / 2;
  return [code(`${data.slice(0, MAX_DATA_CHARACTERS)}…`), " ", t("bytes", { count: sizeBytes })];
}

/** Events of the Cosmos side. */
export function eventSection(
  events: readonly {
    readonly type: string;
    readonly attributes: readonly { readonly key: string; readonly value: string }[];
  }[],
  t: Texts,
): Content {
  return section(
    t("cosmosEvents"),
    table({
      caption: t("cosmosEvents"),
      columns: [t("eventType"), t("attributes")],
      empty: t("noEvents"),
      rows: events.map(({ type, attributes }) => [
        el("bdi", {}, foreignText(type)),
        attributes.map(({ key, value }) => {
          const said = `${foreignText(key)} = ${shorten(foreignText(value))}`;
          return el("div", {}, el("bdi", { class: "breakable" }, said));
        }),
      ]),
    }),
  );
}

function shorten(text: string): string {
  return /^0x[0-9a-f]{64,}$/.test(text) ? shortHex(text) : text;
}
