/** Wallets, the comparison of books and chain, and fees. */
import { errorCode } from "../../chain/errors.js";
import { el } from "../../web/html/element.js";
import { badge, code, section, table } from "../../web/html/parts.js";
import { amount, moment, momentText, statusBadge } from "../html/amounts.js";
import type { ConsolePage, ConsoleRequest, ConsoleRoutes } from "../server/route.js";
import {
  type CoinsView,
  feeList,
  figures,
  lacksKey,
  reconciliationPage,
  walletList,
} from "../sources/answers.js";
import { cursorOf, decimalsOf, olderPager, segment, warning } from "./context.js";
import { accountName, balanceChart } from "./figures.js";

/** The asset in which wallets pay fees. */
const NATIVE = "TOKEN";

/** Rows of the list of reconciliations: each has its accounts. */
const RUN_ROWS = 20;

/** Days of fees. */
const FEE_DAYS = 31;

/** "/wallets", "/reconciliation", "/fees". */
export function treasuryRoutes(): ConsoleRoutes {
  return {
    pages: [
      { path: "/wallets", show: wallets },
      { path: "/reconciliation", query: ["after"], show: reconciliation },
      { path: "/fees", show: fees },
    ],
  };
}

async function wallets(request: ConsoleRequest): Promise<ConsolePage> {
  const { api, t, signal } = request;
  const [found, charts, decimals] = await Promise.all([
    api.get({ api: "withdrawal", path: "/v1/wallets", schema: walletList }, signal),
    coinsOf(request),
    decimalsOf(request),
  ]);
  const show = (units: bigint | null) => (units === null ? "—" : amount(units, NATIVE, decimals));
  const frozen = found.wallets.filter((wallet) => wallet.frozen);
  return {
    title: t("wallets"),
    content: [
      el("p", {}, t("walletsText")),
      ...frozen.map(({ label, frozenReason }) =>
        warning(`${label}: ${t("frozen")}: ${frozenReason ?? ""}`),
      ),
      table({
        caption: t("wallets"),
        columns: [
          t("label"),
          t("address"),
          t("status"),
          t("since"),
          t("balance"),
          t("reserved"),
          t("free"),
          t("height"),
          t("openSlots"),
          t("oldestSlot"),
          t("holder"),
        ],
        numeric: [4, 5, 6, 7, 8],
        empty: t("noWallets"),
        rows: found.wallets.map((wallet) => [
          wallet.label,
          code(wallet.address),
          [
            statusBadge(wallet.status),
            wallet.frozen ? [" ", badge("bad", t("frozen"))] : undefined,
            lacksKey(wallet) ? [" ", badge("bad", t("noKey"))] : undefined,
          ],
          moment(wallet.since),
          show(wallet.balanceAtoken),
          show(wallet.reservedAtoken),
          show(wallet.freeAtoken),
          wallet.balanceHeight ?? "—",
          wallet.openSlots,
          wallet.oldestSlot === null
            ? "—"
            : el(
                "a",
                { href: `/withdrawals/${segment(wallet.oldestSlot.withdrawalId)}` },
                String(wallet.oldestSlot.nonce),
              ),
          wallet.leaseHolder === null ? t("no") : t("yes"),
        ]),
      }),
      charts === undefined
        ? undefined
        : section(t("balances"), balanceChart(charts, { t, decimals })),
    ],
  };
}

/** What there was of coins; undefined while the API that knows it does not answer. */
async function coinsOf({ api, signal }: ConsoleRequest): Promise<readonly CoinsView[] | undefined> {
  try {
    return (await api.get({ api: "deposit", path: "/v1/figures", schema: figures }, signal)).coins;
  } catch (error) {
    if (errorCode(error) !== "UNAVAILABLE") throw error;
    return undefined;
  }
}

async function reconciliation(request: ConsoleRequest): Promise<ConsolePage> {
  const { api, t, signal } = request;
  const query = { order: "newest", limit: RUN_ROWS, after: cursorOf(request) };
  const question = { api: "deposit", path: "/v1/reconciliations", query } as const;
  const [{ reconciliations, next }, decimals] = await Promise.all([
    api.get({ ...question, schema: reconciliationPage }, signal),
    decimalsOf(request),
  ]);
  const [newest] = reconciliations;
  return {
    title: t("reconciliation"),
    content: [
      table({
        caption: t("reconciliation"),
        columns: [t("time"), t("block"), t("state"), t("findings")],
        numeric: [1],
        empty: t("noReconciliations"),
        rows: reconciliations.map((run) => [
          moment(run.at),
          run.blockNumber,
          badge(run.clean ? "good" : "bad", run.clean ? t("clean") : t("notClean")),
          run.findings.length === 0
            ? "—"
            : el(
                "ul",
                {},
                run.findings.map((finding) => el("li", {}, finding)),
              ),
        ]),
      }),
      olderPager(request, "/reconciliation", next, []),
      newest === undefined
        ? undefined
        : section(
            t("balances"),
            el("p", {}, t("accountsText")),
            table({
              caption: `${t("block")} ${newest.blockNumber}`,
              columns: [t("asset"), t("accountName"), t("chain"), t("books"), t("inFlight")],
              numeric: [2, 3, 4],
              empty: t("noEntries"),
              rows: newest.assets.flatMap(({ asset, accounts }) =>
                accounts.map((account) => [
                  asset,
                  accountName(account.account, t),
                  amount(account.chainUnits, asset, decimals),
                  amount(account.ledgerUnits, asset, decimals),
                  amount(account.inFlightUnits, asset, decimals),
                ]),
              ),
            }),
          ),
      section(t("commandLine"), el("p", {}, code("npm run causeway -- reconcile"))),
    ],
  };
}

async function fees(request: ConsoleRequest): Promise<ConsolePage> {
  const { api, t, signal } = request;
  const query = { days: FEE_DAYS };
  const [found, decimals] = await Promise.all([
    api.get({ api: "deposit", path: "/v1/fees", query, schema: feeList }, signal),
    decimalsOf(request),
  ]);
  return {
    title: t("fees"),
    content: [
      el("p", {}, t("feesText"), " ", t("feesFrom", { time: momentText(found.from) })),
      table({
        caption: t("fees"),
        columns: [t("day"), t("asset"), t("networkFee"), t("serviceFees"), t("failedPayouts")],
        numeric: [2, 3, 4],
        empty: t("noFees"),
        rows: found.fees.map((fee) => [
          fee.day,
          fee.asset,
          amount(fee.networkFeeUnits, fee.asset, decimals),
          amount(fee.serviceFeeUnits, fee.asset, decimals),
          amount(fee.failedPayoutUnits, fee.asset, decimals),
        ]),
      }),
    ],
  };
}
