/** All validators with their stake, and who decided the newest block and how reliably each signed lately. */
import { LRUCache } from "lru-cache";
import { consensusText, toChecksumAddress } from "../../../chain/address.js";
import type { Atoken } from "../../../chain/units.js";
import { type Content, el } from "../../../web/html/element.js";
import { foreignName, percent, tokenAmount } from "../../../web/html/format.js";
import { code, facts, pager, section, table } from "../../../web/html/parts.js";
import { blockLink } from "../../html/chain-links.js";
import type { Page, PageRequest, PageRoute } from "../../server/page.js";
import type { CommitView, ValidatorView } from "../../sources/consensus-source.js";
import type { RestPage } from "../../sources/modules/rest-fields.js";
import type { SigningRecord, StakedValidator } from "../../sources/modules/staking-source.js";
import type { Texts } from "../../text/catalogue.js";
import type { PageContext } from "../context.js";
import { askModules, isNoAnswer, noAnswerNote, placeIn } from "../modules-asked.js";
import { commissionText, missedText, stateBadges } from "./validator-parts.js";

/** Blocks over which it is counted who signed. */
const WINDOW = 100;

/** "/validators". */
export function validatorRoutes(context: PageContext): readonly PageRoute[] {
  // Canonical commits never change but with the chain: a new block costs one question.
  const signers = new LRUCache<string, ReadonlySet<string>>({ max: 2 * WINDOW });
  return [
    {
      path: "/validators",
      hasParameter: false,
      isCostly: true,
      query: ["after"],
      handle: (request) => validators(context, signers, request),
    },
  ];
}

/** Validators with what is known of their signing. */
interface Staked {
  readonly page: RestPage<StakedValidator>;
  readonly records: ReadonlyMap<string, SigningRecord>;
  readonly window: bigint;
  readonly bondedAtoken: Atoken;
}

async function validators(
  context: PageContext,
  signers: LRUCache<string, ReadonlySet<string>>,
  { t, query, signal }: PageRequest,
): Promise<Page> {
  const { chain, consensus, staking } = context;
  const head = await chain.head({ signal });
  const after = placeIn(query, "after");
  const [set, known, staked] = await Promise.all([
    // A node without these views still has the stake.
    consensus.validators(Math.max(1, head.height), { signal }).catch((): ValidatorView[] => []),
    signersUpTo(context, head.height - 1, signers, signal).catch(() => []),
    askModules(
      Promise.all([
        staking.validators(after, signal),
        staking.signing(signal),
        staking.signingWindow(signal),
        staking.bondedAtoken(signal),
      ]),
    ),
  ]);
  const found: Staked | undefined = isNoAnswer(staked)
    ? undefined
    : { page: staked[0], records: staked[1], window: staked[2], bondedAtoken: staked[3] };
  const power = set.reduce((sum, one) => sum + one.power, 0n);
  return {
    title: t("validators"),
    scripts: ["live"],
    content: el(
      "div",
      { id: "live", "data-live": "" },
      facts([
        [t("asOfBlock"), blockLink(head.height)],
        [t("bondedStake"), found === undefined ? undefined : tokenAmount(found.bondedAtoken)],
        [t("totalPower"), set.length === 0 ? undefined : power.toString()],
      ]),
      isNoAnswer(staked) ? noAnswerNote(staked, t) : undefined,
      found === undefined ? undefined : stakedSection(found, t),
      section(
        t("consensusSet"),
        set.length === 0 ? undefined : el("p", {}, t("validatorsText", { count: known.length })),
        setTable(set, known, found?.page.items ?? [], t),
      ),
    ),
  };
}

function stakedSection({ page, records, window, bondedAtoken }: Staked, t: Texts): Content {
  const byStake = page.items.toSorted((left, right) =>
    left.stakeAtoken < right.stakeAtoken ? 1 : -1,
  );
  const older =
    page.next === undefined ? undefined : `/validators?after=${encodeURIComponent(page.next)}`;
  return section(
    t("stake"),
    table({
      caption: t("validators"),
      columns: [
        t("validator"),
        t("status"),
        t("stake"),
        t("share"),
        t("commissionRate"),
        t("validatorSigns"),
      ],
      numeric: [2, 3, 4, 5],
      empty: t("noValidators"),
      rows: byStake.map((validator) => {
        const record = records.get(consensusText(validator.consensusAddress));
        const isBonded = validator.status === "bonded";
        return [
          validatorName(validator, t),
          stateBadges(validator, record, t),
          tokenAmount(validator.stakeAtoken),
          isBonded ? percent(validator.stakeAtoken, bondedAtoken) : "—",
          commissionText(validator.commission.rate),
          missedText(record, window, t),
        ];
      }),
    }),
    pager(t, { older }),
  );
}

function validatorName({ operator, moniker }: StakedValidator, t: Texts): Content {
  const href = `/validator/${toChecksumAddress(operator)}`;
  const name = foreignName(moniker);
  return el("a", { href }, el("bdi", {}, name === "" ? t("validator") : name));
}

function setTable(
  set: readonly ValidatorView[],
  known: readonly ReadonlySet<string>[],
  staked: readonly StakedValidator[],
  t: Texts,
): Content {
  const total = set.reduce((sum, { power }) => sum + power, 0n);
  const names = new Map(staked.map((one) => [one.consensusAddress, one]));
  return table({
    caption: t("consensusSet"),
    columns: [t("validator"), t("publicKey"), t("power"), t("share"), t("uptime")],
    numeric: [2, 3, 4],
    empty: t("noCommit"),
    rows: set
      .toSorted((left, right) => (left.power < right.power ? 1 : -1))
      .map(({ address, publicKey, power }) => {
        const signed = known.filter((those) => those.has(address)).length;
        const own = names.get(address);
        return [
          own === undefined ? code(address) : [validatorName(own, t), " ", code(address)],
          code(publicKey),
          power.toString(),
          percent(power, total),
          `${signed} / ${known.length} (${percent(BigInt(signed), BigInt(known.length))})`,
        ];
      }),
  });
}

/** Who signed each of the newest blocks that are canonical. */
async function signersUpTo(
  { consensus, generation }: PageContext,
  newest: number,
  signers: LRUCache<string, ReadonlySet<string>>,
  signal: AbortSignal,
): Promise<readonly ReadonlySet<string>[]> {
  // The commit of the newest block may still gain votes.
  const count = Math.max(0, Math.min(WINDOW, newest));
  const window = Array.from({ length: count }, (_, back) => newest - back);
  const now = generation();
  const keyOf = (height: number) => `${now} ${height}`;
  const missing = window.filter((one) => !signers.has(keyOf(one)));
  for (const commit of await consensus.commits(missing, { signal })) {
    if (commit.isCanonical) signers.set(keyOf(commit.height), signersOf(commit));
  }
  return window.flatMap((one) => signers.get(keyOf(one)) ?? []);
}

function signersOf({ votes }: CommitView): ReadonlySet<string> {
  return new Set(
    votes.flatMap(({ validator, vote }) =>
      vote === "commit" && validator !== undefined ? [validator] : [],
    ),
  );
}
