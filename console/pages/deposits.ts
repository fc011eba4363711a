/** Deposits: the list, one with what stands behind it, and why something was not credited. */
import { parseAnyAddress, parseStrictAddress } from "../../chain/address.js";
import { badRequest } from "../../web/errors.js";
import { type Content, el } from "../../web/html/element.js";
import { badge, code, facts, section, table } from "../../web/html/parts.js";
import { amount, type AssetDecimals, block, moment, statusBadge } from "../html/amounts.js";
import { field, filterForm } from "../html/forms.js";
import type { ConsolePage, ConsoleRequest, ConsoleRoutes } from "../server/route.js";
import {
  depositPage,
  type DepositView,
  type EvidenceView,
  evidence,
  explanation,
} from "../sources/answers.js";
import type { Texts } from "../text/catalogue.js";
import {
  decimalsOf,
  listFilter,
  newestPage,
  olderPager,
  segment,
  short,
  warning,
} from "./context.js";

const STATUSES = ["detected", "credited", "held", "suspense", "reversed"];

const FILTERS = ["status", "customerId", "address"] as const;

/** "/deposits", "/deposits/{id}", "/explain". */
export function depositRoutes(): ConsoleRoutes {
  return {
    pages: [
      { path: "/deposits", query: [...FILTERS, "after"], show: list },
      { path: "/deposits/{id}", show: one },
      { path: "/explain", query: ["txHash"], show: explain },
    ],
  };
}

async function list(request: ConsoleRequest): Promise<ConsolePage> {
  const { query, t } = request;
  const [status, customerId, address] = FILTERS.map((name) => query.get(name) ?? undefined);
  const [{ deposits, next }, decimals] = await newestPage(
    request,
    { api: "deposit", path: "/v1/deposits", schema: depositPage },
    { status, customerId, address: asHex(address) },
  );
  const byAddress = field("filter", { name: "address", label: t("addressHint"), value: address });
  return {
    title: t("deposits"),
    content: [
      listFilter(request, "/deposits", STATUSES, byAddress),
      el("p", {}, el("a", { href: "/explain" }, t("explain"))),
      depositTable(deposits, decimals, t),
      olderPager(request, "/deposits", next, FILTERS),
    ],
  };
}

/** Customers are told their addresses in both forms, and the API looks for the hex one. */
function asHex(address: string | undefined): string | undefined {
  try {
    return address && parseAnyAddress(address, { parseHex: parseStrictAddress });
  } catch {
    // For the API to refuse, in its own words.
    return address;
  }
}

function depositTable(
  deposits: readonly DepositView[],
  decimals: AssetDecimals,
  t: Texts,
): Content {
  return table({
    caption: t("deposits"),
    columns: [t("id"), t("status"), t("amount"), t("customer"), t("address"), t("block")],
    numeric: [2, 5],
    empty: t("noDeposits"),
    rows: deposits.map((deposit) => [
      el("a", { href: `/deposits/${segment(deposit.id)}` }, deposit.id),
      statusBadge(deposit.status),
      amount(deposit.amountUnits, deposit.asset, decimals),
      deposit.customerId,
      short(deposit.address),
      deposit.blockNumber,
    ]),
  });
}

async function one(request: ConsoleRequest): Promise<ConsolePage> {
  const { api, params, t, signal } = request;
  const path = `/v1/deposits/${segment(params["id"] ?? "")}/evidence`;
  const [found, decimals] = await Promise.all([
    api.get({ api: "deposit", path, schema: evidence }, signal),
    decimalsOf(request),
  ]);
  const { deposit, balanceProof } = found;
  return {
    title: `${t("deposit")} ${deposit.id}`,
    content: [
      facts([
        [t("status"), statusBadge(deposit.status)],
        [t("amount"), amount(deposit.amountUnits, deposit.asset, decimals)],
        [t("customer"), deposit.customerId],
        [t("address"), code(deposit.address)],
        [t("transaction"), code(deposit.txHash)],
        [t("block"), `${deposit.blockNumber} (${deposit.txIndex}, ${deposit.opIndex})`],
        [t("confirmations"), deposit.confirmations],
      ]),
      el("p", {}, el("a", { href: `/explain?txHash=${segment(deposit.txHash)}` }, t("explain"))),
      chainSection(found, decimals, t),
      journalSection(found, decimals, t),
      balanceProof === null
        ? undefined
        : section(t("balanceProof"), block(balanceProof, t("balanceProof"))),
    ],
  };
}

/** What the chain says of a deposit: its operation, and the balances around it. */
function chainSection(
  { deposit, chain, chainFault, differences }: EvidenceView,
  decimals: AssetDecimals,
  t: Texts,
): Content {
  const show = (units: bigint) => amount(units, deposit.asset, decimals);
  return section(
    t("evidence"),
    chainFault === null ? undefined : warning(`${chainFault.message} (${chainFault.code})`),
    ...differences.map(({ code: what, message, nextStep }) =>
      warning(`${message} ${nextStep} (${what})`),
    ),
    chain === null
      ? undefined
      : facts([
          [t("agrees"), badge(chain.agrees ? "good" : "bad", chain.agrees ? t("yes") : t("no"))],
          [t("time"), moment(chain.timestamp)],
          [t("block"), code(chain.blockHash)],
          [
            t("operation"),
            chain.operation === null
              ? undefined
              : `${chain.operation.type} ${chain.operation.status} ` +
                show(chain.operation.amountUnits),
          ],
          [
            t("balance"),
            `${show(chain.balanceBeforeUnits)} → ${show(chain.balanceAfterUnits)} ` +
              `(${show(chain.operationsUnits)})`,
          ],
        ]),
  );
}

/** What the books say of it. */
function journalSection({ journal }: EvidenceView, decimals: AssetDecimals, t: Texts): Content {
  return section(
    t("journal"),
    table({
      caption: t("journal"),
      columns: [t("time"), t("type"), t("key"), t("debit"), t("credit"), t("amount")],
      numeric: [5],
      empty: t("noEntries"),
      rows: journal.flatMap((entry) =>
        entry.postings.map((posting) => [
          moment(entry.postedAt),
          entry.kind,
          entry.key,
          posting.debit,
          posting.credit,
          amount(posting.amountUnits, posting.asset, decimals),
        ]),
      ),
    }),
  );
}

/** A hash as the EVM writes it, or in capitals and without 0x as the Cosmos side does. */
const HASH_PATTERN = "(0[xX])?[0-9a-fA-F]{64}";

function hashIn(text: string): string {
  return `0x${text.replace(/^0x/i, "").toLowerCase()}`;
}

async function explain(request: ConsoleRequest): Promise<ConsolePage> {
  const { query, t } = request;
  const text = query.get("txHash") ?? "";
  if (text !== "" && !new RegExp(`^${HASH_PATTERN}$`).test(text)) {
    throw badRequest("txHash is no hash of a transaction");
  }
  return {
    title: t("explain"),
    content: [
      el("p", {}, t("explainText")),
      filterForm(
        "/explain",
        t("send"),
        field("explain", {
          name: "txHash",
          label: t("transactionHint"),
          value: text,
          isRequired: true,
          pattern: HASH_PATTERN,
        }),
      ),
      text === "" ? undefined : await answer(request, hashIn(text)),
    ],
  };
}

async function answer(request: ConsoleRequest, txHash: string): Promise<Content> {
  const { api, t, signal } = request;
  const [said, decimals] = await Promise.all([
    api.get(
      {
        api: "deposit",
        path: "/v1/deposits/explain",
        query: { txHash },
        schema: explanation,
      },
      signal,
    ),
    decimalsOf(request),
  ]);
  return [
    facts([
      [t("code"), badge(said.code === "CREDITED" ? "good" : "neutral", said.code)],
      [t("message"), said.message],
      [t("transaction"), code(said.txHash)],
      [t("block"), said.blockNumber ?? undefined],
    ]),
    depositTable(said.deposits, decimals, t),
  ];
}
