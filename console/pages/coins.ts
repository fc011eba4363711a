/** Where the exchange's coins are, what the policy wants of the hot wallets, and sweeps on their way. */
import { type Content, el } from "../../web/html/element.js";
import { badge, code, pager, section, table } from "../../web/html/parts.js";
import { amount, type AssetDecimals, block, moment, statusBadge } from "../html/amounts.js";
import { choice, filterForm } from "../html/forms.js";
import type { ConsolePage, ConsoleRequest, ConsoleRoutes } from "../server/route.js";
import {
  sweepPage,
  type SweepView,
  treasuryAnswer,
  type TreasuryAssetView,
  treasuryTerms,
  type TreasuryTerms,
} from "../sources/answers.js";
import { cursorOf, decimalsOf, PAGE_ROWS, policyOf, short, warning } from "./context.js";

const STATES = [
  "needs-gas",
  "ready",
  "signed",
  "sent",
  "frozen",
  "settled",
  "failed",
  "void",
  "foreign",
];

/** No API releases a sweep: who does has looked at its address with other programs. */
const COMMANDS = [
  "npm run causeway -- treasury status",
  "npm run causeway -- sweeps list --state frozen",
  'npm run causeway -- sweeps release ID --reason "..."',
].join("\n");

/** "/treasury". */
export function coinRoutes(): ConsoleRoutes {
  return { pages: [{ path: "/treasury", query: ["state", "after"], show }] };
}

async function show(request: ConsoleRequest): Promise<ConsolePage> {
  const { api, query, t, signal } = request;
  const state = query.get("state") || undefined;
  const after = cursorOf(request);
  const asked = { state, after, limit: PAGE_ROWS };
  const [{ assets }, policy, { sweeps, next }, decimals] = await Promise.all([
    api.get({ api: "withdrawal", path: "/v1/treasury", schema: treasuryAnswer }, signal),
    policyOf(request),
    api.get({ api: "withdrawal", path: "/v1/sweeps", query: asked, schema: sweepPage }, signal),
    decimalsOf(request),
  ]);
  const terms = treasuryTerms.parse(policy?.terms["treasury"] ?? { assets: {} }).assets;
  return {
    title: t("treasury"),
    content: [
      ...assets.flatMap((asset) => warningsOf(request, { asset, terms, decimals })),
      placesTable(request, assets, decimals),
      section(
        t("bands"),
        el("p", {}, t("bandsText")),
        policy === undefined
          ? warning(t("policyAway"))
          : bandTable(request, assets, terms, decimals),
      ),
      section(
        t("sweeps"),
        filterForm(
          "/treasury",
          t("filter"),
          choice("filter", {
            name: "state",
            label: t("state"),
            value: state,
            options: [["", t("allStatuses")], ...STATES.map((one) => [one, one] as const)],
          }),
        ),
        sweepTable(request, sweeps, decimals),
        // The list begins with the oldest.
        pager(t, {
          older: after === undefined ? undefined : placeOf(state, undefined),
          newer: next === null ? undefined : placeOf(state, next),
        }),
      ),
      block(COMMANDS, t("commandLine")),
    ],
  };
}

function placeOf(state: string | undefined, after: string | undefined): string {
  const query = new URLSearchParams();
  if (state !== undefined) query.set("state", state);
  if (after !== undefined) query.set("after", after);
  const text = query.toString();
  return text === "" ? "/treasury" : `/treasury?${text}`;
}

function warningsOf(
  { t }: ConsoleRequest,
  {
    asset: { asset, refill, frozenSweeps, strandedUnits = 0n },
    terms,
    decimals,
  }: {
    readonly asset: TreasuryAssetView;
    readonly terms: TreasuryTerms;
    readonly decimals: AssetDecimals;
  },
): readonly Content[] {
  return [
    refill === null ? undefined : refillWarning(t, refill, { asset, terms, decimals }),
    frozenSweeps === 0 ? undefined : warning(t("frozenSweeps", { count: frozenSweeps, asset })),
    strandedUnits === 0n
      ? undefined
      : warning(t("stranded", { amount: amount(strandedUnits, asset, decimals) })),
  ];
}

function refillWarning(
  t: ConsoleRequest["t"],
  { amountUnits, cameUnits, wallet, wallets }: NonNullable<TreasuryAssetView["refill"]>,
  {
    asset,
    terms,
    decimals,
  }: {
    readonly asset: string;
    readonly terms: TreasuryTerms;
    readonly decimals: AssetDecimals;
  },
): Content {
  const missing = amount(amountUnits - cameUnits, asset, decimals);
  const from = terms[asset]?.coldAddress ?? undefined;
  return warning(
    wallet === null || wallet === undefined
      ? t("refillAsked", { amount: missing, wallets: wallets?.join(", ") ?? "—" })
      : t("refillOfOne", { amount: missing, wallet }),
    from === undefined ? undefined : [" ", code(from)],
  );
}

function placesTable(
  { t }: ConsoleRequest,
  assets: readonly TreasuryAssetView[],
  decimals: AssetDecimals,
): Content {
  return table({
    caption: t("treasuryText"),
    columns: [
      t("asset"),
      t("wallets"),
      t("depositAddresses"),
      t("inTransit"),
      t("coldStorage"),
      t("openSweeps"),
    ],
    numeric: [1, 2, 3, 4, 5],
    empty: t("noEntries"),
    rows: assets.map((one) => [
      one.asset,
      amount(one.hotUnits, one.asset, decimals),
      amount(one.depositAddressesUnits, one.asset, decimals),
      amount(one.inTransitUnits, one.asset, decimals),
      amount(one.coldUnits, one.asset, decimals),
      one.openSweeps,
    ]),
  });
}

function bandTable(
  { t }: ConsoleRequest,
  assets: readonly TreasuryAssetView[],
  terms: TreasuryTerms,
  decimals: AssetDecimals,
): Content {
  return table({
    caption: t("bands"),
    columns: [
      t("asset"),
      t("walletsByBooks"),
      t("bandLow"),
      t("bandTarget"),
      t("bandHigh"),
      t("state"),
      t("coldStorage"),
    ],
    numeric: [1, 2, 3, 4],
    empty: t("noBands"),
    // Whether they are within it the treasury alone knows: it does not count all that the books have.
    rows: assets.flatMap(({ asset, hotUnits, refill }) => {
      const { band, coldAddress } = terms[asset] ?? {};
      if (band === undefined || band === null) return [];
      const { lowUnits, targetUnits, highUnits } = band;
      return [
        [
          asset,
          amount(hotUnits, asset, decimals),
          amount(lowUnits, asset, decimals),
          amount(targetUnits, asset, decimals),
          amount(highUnits, asset, decimals),
          refill === null ? "—" : badge("warn", t("refillWaits")),
          coldAddress === undefined || coldAddress === null ? "—" : code(coldAddress),
        ],
      ];
    }),
  });
}

function sweepTable(
  { t }: ConsoleRequest,
  sweeps: readonly SweepView[],
  decimals: AssetDecimals,
): Content {
  return table({
    caption: t("sweeps"),
    columns: [
      t("number"),
      t("time"),
      t("address"),
      t("wallet"),
      t("amount"),
      t("state"),
      t("transaction"),
      t("reason"),
    ],
    numeric: [0, 4],
    empty: t("noSweeps"),
    rows: sweeps.map((sweep) => [
      sweep.id,
      moment(sweep.createdAt),
      short(sweep.address),
      short(sweep.wallet),
      amount(sweep.amountUnits, sweep.asset, decimals),
      statusBadge(sweep.state),
      sweep.txHash === null ? "—" : short(sweep.txHash),
      sweep.reason ?? "—",
    ]),
  });
}
