/**
 * Transactions that are on the Cosmos side alone: the node's journal has what they moved and paid,
 * the consensus RPC what they told.
 */
import { confirmationsOf, CREDIT_CONFIRMATIONS } from "../../chain/confirmations.js";
import type { Hash32 } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import { burnedFeesAtoken, paidFeeAtoken } from "../../rpc-client/indexing/paid-fees.js";
import type { JournaledCosmos } from "../../rpc-client/journal-codec.js";
import { type Content, el } from "../../web/html/element.js";
import { foreignText, tokenAmount } from "../../web/html/format.js";
import { code, type Fact, facts, note, section, table, time } from "../../web/html/parts.js";
import { addressLink, blockLink, transactionLink } from "../html/chain-links.js";
import type { Page } from "../server/page.js";
import type { BlockSummary } from "../sources/chain-source.js";
import type { CosmosTransaction } from "../sources/consensus-source.js";
import type { KeptJournal, KeptTransaction } from "../sources/kept-journals.js";
import type { Texts } from "../text/catalogue.js";
import type { PageContext } from "./context.js";
import { eventSection, MAX_ROWS } from "./moves.js";
import { confirmationText, movesContent, statusBadge, upperHash } from "./transaction-parts.js";

/** A Cosmos transaction as the journal has it. */
export type JournaledCosmosTransaction = KeptTransaction & {
  readonly cosmos: JournaledCosmos;
};

/** A mined Cosmos transaction. */
export interface MinedCosmos {
  /** As consensus tells of it. */
  readonly told: CosmosTransaction;
  readonly hash: Hash32;
  readonly block: BlockSummary;
  readonly confirmations: number;
  /** Undefined where the block's journal is too large to be shown. */
  readonly journaled: JournaledCosmosTransaction | undefined;
  readonly burnedAtoken: Atoken | undefined;
}

/** Those of a block that are on the Cosmos side alone, in its order. */
export function cosmosOf(journal: KeptJournal): readonly JournaledCosmosTransaction[] {
  return journal.transactions.flatMap((one) =>
    one.cosmos === undefined ? [] : [{ ...one, cosmos: one.cosmos }],
  );
}

/** All that is known of one that consensus has; undefined where its block went out of reach. */
export async function minedCosmos(
  { chain }: PageContext,
  found: {
    readonly told: CosmosTransaction;
    readonly hash: Hash32;
    readonly headHeight: number;
  },
  signal: AbortSignal,
): Promise<MinedCosmos | undefined> {
  const { told, hash, headHeight } = found;
  const [block] = await chain.blocks([told.height], { signal });
  if (block === undefined) return undefined;
  const journal = await chain.journal(block.hash, { signal });
  const whole = typeof journal === "object" ? journal : undefined;
  const own = whole?.transactions.find((one) => one.hash === hash);
  return {
    told,
    hash,
    block,
    confirmations: confirmationsOf({
      headHeight: Math.max(headHeight, told.height),
      receiptHeight: told.height,
    }),
    journaled: own?.cosmos === undefined ? undefined : { ...own, cosmos: own.cosmos },
    burnedAtoken:
      whole === undefined || own === undefined
        ? undefined
        : burnedFeesAtoken(whole.transactions).get(own),
  };
}

/** Where it is, and who sent and paid what: on its page, and where a deposit is looked for. */
export function cosmosFacts(found: MinedCosmos, t: Texts): readonly Fact[] {
  const { told, hash, block, confirmations, journaled, burnedAtoken } = found;
  return [
    [t("status"), statusBadge(told.code === 0n, t)],
    [t("confirmations"), confirmationText(confirmations, t)],
    [t("block"), [blockLink(told.height), ` · ${t("position")} ${told.index}`]],
    [t("time"), time(block.timestampSeconds)],
    [t("cosmosHash"), el("a", { href: `/tx/${hash}` }, code(upperHash(hash)))],
    [t("from"), journaled === undefined ? undefined : addressLink(journaled.from, t, false)],
    [t("messages"), journaled === undefined ? undefined : messagesText(journaled)],
    [t("memo"), memoContent(journaled)],
    [t("fee"), journaled === undefined ? undefined : tokenAmount(paidFeeAtoken(journaled))],
    [t("feeBurned"), burnedAtoken === undefined ? undefined : tokenAmount(burnedAtoken)],
  ];
}

function messagesText({ cosmos }: JournaledCosmosTransaction): string {
  return cosmos.messages.map(foreignText).join(", ");
}

function memoContent(journaled: JournaledCosmosTransaction | undefined): Content {
  const memo = foreignText(journaled?.cosmos.memo ?? "");
  return memo === "" ? undefined : el("bdi", {}, memo);
}

/** Why one failed, where it did. */
export function cosmosOutcome({ told }: MinedCosmos, t: Texts): Content {
  if (told.code === 0n) return undefined;
  return note("warning", t("failedBecause"), " ", el("bdi", {}, foreignText(told.log)));
}

/** The page of one. */
export function cosmosPage(found: MinedCosmos, t: Texts): Page {
  const { told, hash, confirmations, journaled } = found;
  const isFinal = confirmations >= CREDIT_CONFIRMATIONS;
  const gasLimit = journaled?.cosmos.gasLimit;
  return {
    title: t("transaction"),
    isFinal: isFinal && journaled !== undefined,
    scripts: isFinal ? [] : ["live"],
    content: [
      el(
        "div",
        isFinal ? {} : { id: "live", "data-live": "" },
        cosmosOutcome(found, t),
        facts([
          ...cosmosFacts(found, t),
          [
            t("gasUsed"),
            gasLimit === undefined ? `${told.gasUsed}` : `${told.gasUsed} / ${gasLimit}`,
          ],
          [t("nonce"), journaled?.nonce.toString()],
        ]),
      ),
      section(t("nativeMoves"), movesContent(journaled?.changes, t)),
      eventSection(told.events, t),
      el("p", {}, el("a", { href: `/deposit?tx=${hash}` }, t("linkToSend"))),
    ],
  };
}

/** Those of a block as a table. */
export function cosmosTable(
  transactions: readonly JournaledCosmosTransaction[],
  t: Texts,
): Content {
  return [
    table({
      caption: t("cosmosTransactions"),
      columns: [t("transaction"), t("status"), t("from"), t("messages"), t("fee")],
      numeric: [4],
      empty: t("noTransactions"),
      rows: transactions
        .slice(0, MAX_ROWS)
        .map((one) => [
          transactionLink(one.hash),
          statusBadge(one.status === 1, t),
          addressLink(one.from, t),
          messagesText(one),
          tokenAmount(paidFeeAtoken(one)),
        ]),
    }),
    transactions.length > MAX_ROWS
      ? el("p", {}, t("moreRows", { count: transactions.length - MAX_ROWS }))
      : undefined,
  ];
}
