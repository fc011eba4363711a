/** The validators of now, and how reliably each has signed lately. */
import { LRUCache } from "lru-cache";
import { el } from "../../web/html/element.js";
import { percent } from "../../web/html/format.js";
import { code, facts, table } from "../../web/html/parts.js";
import { blockLink } from "../html/chain-links.js";
import type { Page, PageRequest, PageRoute } from "../server/page.js";
import type { CommitView } from "../sources/consensus-source.js";
import type { PageContext } from "./context.js";

/** Blocks over which it is counted who signed. */
const WINDOW = 100;

/** "/validators". */
export function validatorRoutes(context: PageContext): readonly PageRoute[] {
  // Canonical commits never change: a new block costs one question.
  const signers = new LRUCache<number, ReadonlySet<string>>({ max: 2 * WINDOW });
  return [
    {
      path: "/validators",
      hasParameter: false,
      isCostly: true,
      handle: (request) => validators(context, signers, request),
    },
  ];
}

async function validators(
  { chain, consensus }: PageContext,
  signers: LRUCache<number, ReadonlySet<string>>,
  { t, signal }: PageRequest,
): Promise<Page> {
  const head = await chain.head({ signal });
  const height = Math.max(1, head.height);
  const set = await consensus.validators(height, { signal });
  // The commit of the newest block may still gain votes.
  const count = Math.max(0, Math.min(WINDOW, head.height - 1));
  const window = Array.from({ length: count }, (_, back) => head.height - 1 - back);
  const missing = window.filter((one) => !signers.has(one));
  for (const commit of await consensus.commits(missing, { signal })) {
    if (commit.isCanonical) signers.set(commit.height, signersOf(commit));
  }
  const known = window.flatMap((one) => signers.get(one) ?? []);
  const total = set.reduce((sum, { power }) => sum + power, 0n);
  return {
    title: t("validators"),
    scripts: ["live"],
    content: el(
      "div",
      { id: "live", "data-live": "" },
      el("p", {}, t("validatorsText", { count: known.length })),
      facts([
        [t("asOfBlock"), blockLink(head.height)],
        [t("validators"), set.length],
        [t("totalPower"), total.toString()],
      ]),
      table({
        caption: t("validators"),
        columns: [t("validator"), t("publicKey"), t("power"), t("share"), t("uptime")],
        numeric: [2, 3, 4],
        empty: t("noCommit"),
        rows: set
          .toSorted((left, right) => (left.power < right.power ? 1 : -1))
          .map(({ address, publicKey, power }) => {
            const signed = known.filter((those) => those.has(address)).length;
            return [
              code(address),
              code(publicKey),
              power.toString(),
              percent(power, total),
              `${signed} / ${known.length} (${percent(BigInt(signed), BigInt(known.length))})`,
            ];
          }),
      }),
    ),
  };
}

function signersOf({ votes }: CommitView): ReadonlySet<string> {
  return new Set(
    votes.flatMap(({ validator, vote }) =>
      vote === "commit" && validator !== undefined ? [validator] : [],
    ),
  );
}
