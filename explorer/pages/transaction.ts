/**
 * A transaction with both of its sides on one page: what the EVM did, and what the Cosmos side tells.
 */
import { confirmationsOf, CREDIT_CONFIRMATIONS } from "../../chain/confirmations.js";
import type { Hash32 } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import { burnedFeesAtoken } from "../../rpc-client/indexing/paid-fees.js";
import { decodeCall } from "../decode/abi.js";
import { readHash } from "../decode/identifiers.js";
import { badRequest } from "../../web/errors.js";
import { type Content, el } from "../../web/html/element.js";
import { foreignText, tokenAmount } from "../../web/html/format.js";
import { code, facts, note, section, time } from "../../web/html/parts.js";
import { addressLink, blockLink } from "../html/chain-links.js";
import type { Page, PageAnswer, PageRequest, PageRoute } from "../server/page.js";
import type { BlockSummary, ChainSource } from "../sources/chain-source.js";
import type { CosmosTransaction } from "../sources/consensus-source.js";
import type { Place, ReceiptView, TransactionView } from "../sources/evm-json.js";
import type { Texts } from "../text/catalogue.js";
import { type PageContext, verifiedAbis } from "./context.js";
import { cosmosPage, type MinedCosmos, minedCosmos } from "./cosmos-transaction.js";
import {
  decodedContent,
  eventSection,
  logList,
  rawData,
  tokensMovedBy,
  tokenTable,
} from "./moves.js";
import {
  confirmationText,
  type Moves,
  movesContent,
  statusBadge,
  upperHash,
} from "./transaction-parts.js";
import { verifyControl } from "./verify.js";

/** "/tx/<hash>". */
export function transactionRoutes(context: PageContext): readonly PageRoute[] {
  return [
    {
      path: "/tx",
      hasParameter: true,
      isCostly: true,
      handle: (request) => transaction(context, request),
    },
  ];
}

/** A mined transaction with all that is known of it. */
export interface MinedTransaction {
  readonly transaction: TransactionView;
  readonly place: Place;
  readonly receipt: ReceiptView;
  readonly block: BlockSummary;
  readonly headHeight: number;
  readonly confirmations: number;
  readonly changes: Moves;
  /** How much of the fee ceased to be; undefined where the journal is not told. */
  readonly burnedAtoken: Atoken | undefined;
  /** Why it failed; undefined for a successful one, and where the node does not know. */
  readonly failure: string | undefined;
}

/** What a hash led to. */
export type Lookup =
  | { readonly kind: "mined"; readonly mined: MinedTransaction }
  | { readonly kind: "cosmos"; readonly cosmos: MinedCosmos; readonly headHeight: number }
  | { readonly kind: "pending"; readonly transaction: TransactionView; readonly headHeight: number }
  | { readonly kind: "block"; readonly height: number }
  /** In a block, and the node has nothing more of it. */
  | { readonly kind: "bare"; readonly height: number; readonly headHeight: number }
  | {
      readonly kind: "unknown";
      readonly headHeight: number;
      /** What the pool did with it, when it knows. */
      readonly fate: "unknown" | "waiting" | "replaced" | "dropped";
      readonly by: Hash32 | undefined;
    };

/**
 * Finds a transaction by either of its hashes.
 * @throws what the consensus RPC's client throws, where that alone could have it and did not answer
 */
export async function lookUp(
  context: PageContext,
  hash: Hash32,
  signal: AbortSignal,
): Promise<Lookup> {
  const { chain, consensus } = context;
  const head = await chain.head({ signal });
  const found = await chain.transaction(hash, { signal });
  if (found?.place !== undefined) {
    return mined(
      context,
      { transaction: found, place: found.place, headHeight: head.height },
      signal,
    );
  }
  const headHeight = head.height;
  if (found !== undefined) return { kind: "pending", transaction: found, headHeight };
  let fault: unknown;
  const cosmos = await consensus.transaction(hash, { signal }).catch((error: unknown) => {
    fault = error;
    return undefined;
  });
  if (cosmos !== undefined) {
    const inside = await evmInside(context, { told: cosmos, hash }, signal);
    if (inside !== undefined) return mined(context, { ...inside, headHeight }, signal);
    const own = await minedCosmos(context, { told: cosmos, hash, headHeight }, signal);
    if (own === undefined) return { kind: "unknown", headHeight, fate: "unknown", by: undefined };
    return { kind: "cosmos", cosmos: own, headHeight };
  }
  const block = await chain.headerByHash(hash, { signal });
  if (block !== undefined) return { kind: "block", height: block.height };
  const fate = await chain.evm.transactionStatus(hash, { signal });
  const isMined = fate.status === "included" && fate.height <= headHeight;
  // Who was not asked may have it: "in no block" would be said of coins that came.
  if (fault !== undefined && (isMined || fate.status === "unknown")) throw fault;
  if (isMined) return { kind: "bare", height: fate.height, headHeight };
  const by = fate.status === "replaced" ? fate.by : undefined;
  return { kind: "unknown", headHeight, fate: FATES[fate.status], by };
}

/**
 * The EVM transaction that a transaction of the Cosmos side is around; undefined for one without. By the
 * hash that its events name: its place counts Cosmos transactions, too, which the EVM's places do not.
 */
async function evmInside(
  { chain }: PageContext,
  { told, hash }: { readonly told: CosmosTransaction; readonly hash: Hash32 },
  signal: AbortSignal,
): Promise<Pick<MinedTransaction, "transaction" | "place"> | undefined> {
  const named = told.events
    .find(({ type }) => type === "ethereum_tx")
    ?.attributes.find(({ key }) => key === "ethereumTxHash");
  const evmHash = readHash(named?.value ?? "");
  const found = evmHash === undefined ? undefined : await chain.transaction(evmHash, { signal });
  if (found?.place === undefined) return undefined;
  const isSame = (await chain.cosmosHash(found, { signal })) === hash;
  return isSame ? { transaction: found, place: found.place } : undefined;
}

/** What a pool says of what JSON-RPC does not give: of the Cosmos side, or gone meanwhile. */
const FATES = {
  pending: "waiting",
  queued: "waiting",
  // Of a block that came between two questions.
  included: "waiting",
  replaced: "replaced",
  dropped: "dropped",
  unknown: "unknown",
} as const;

async function mined(
  { chain }: PageContext,
  known: Pick<MinedTransaction, "transaction" | "place" | "headHeight">,
  signal: AbortSignal,
): Promise<Lookup> {
  const { transaction: found, place, headHeight } = known;
  const [[receipt], [block]] = await Promise.all([
    chain.receipts([found.hash], { signal }),
    chain.blocks([place.height], { signal }),
  ]);
  if (receipt === undefined || block === undefined) return pendingAfterAll(known);
  const [told, failure] = await Promise.all([
    chain.journal(block.hash, { signal }).then((journal) => toldOf(journal, place)),
    receipt.isSuccess ? undefined : chain.failure(found.hash, { signal }),
  ]);
  const receiptHeight = place.height;
  return {
    kind: "mined",
    mined: {
      ...known,
      receipt,
      block,
      confirmations: confirmationsOf({
        headHeight: Math.max(headHeight, receiptHeight),
        receiptHeight,
      }),
      ...told,
      failure,
    },
  };
}

/** What a journal tells of one transaction: nobody waits for anything else with all of a block in hand. */
function toldOf(
  journal: Awaited<ReturnType<ChainSource["journal"]>>,
  { index }: Place,
): Pick<MinedTransaction, "changes" | "burnedAtoken"> {
  if (typeof journal !== "object") return { changes: journal, burnedAtoken: undefined };
  const own = journal.transactions[index];
  if (own === undefined) return { changes: undefined, burnedAtoken: undefined };
  const { changes } = own;
  return { changes, burnedAtoken: burnedFeesAtoken(journal.transactions).get(own) };
}

/** Mined between two questions, and not yet readable: shown as it was. */
function pendingAfterAll({
  transaction: found,
  headHeight,
}: Pick<MinedTransaction, "transaction" | "headHeight">): Lookup {
  return { kind: "pending", transaction: found, headHeight };
}

async function transaction(context: PageContext, request: PageRequest): Promise<PageAnswer> {
  const { parameter, t, signal } = request;
  const hash = readHash(parameter);
  if (hash === undefined) throw badRequest("not a transaction hash");
  const found = await lookUp(context, hash, signal);
  switch (found.kind) {
    case "mined":
      return minedPage(context, found.mined, request);
    case "cosmos":
      return cosmosPage(found.cosmos, t);
    case "pending":
      return pendingPage(found, t);
    case "block":
      return { location: `/block/${found.height}` };
    case "bare":
      return { title: t("transaction"), content: [el("p", {}, code(hash)), bareContent(found, t)] };
    default:
      return missingTransaction(found, hash, t);
  }
}

/** The page of a hash that no block has. */
export function missingTransaction(
  found: Extract<Lookup, { kind: "unknown" }>,
  hash: Hash32,
  t: Texts,
): Page {
  const { headHeight, fate } = found;
  if (fate === "waiting") {
    const live = el("div", { id: "live", "data-live": "" }, waitingNote(headHeight, t));
    return { title: t("transaction"), content: [el("p", {}, code(hash)), live], scripts: ["live"] };
  }
  return {
    status: 404,
    title: t("unknownTransaction"),
    content: [
      el("p", {}, code(hash)),
      note("warning", t("notInBlocks", { height: headHeight, pending: t("no") })),
      endContent(found, t),
      el("p", {}, t("unknownAdvice")),
    ],
    scripts: ["live"],
  };
}

/** How one ended that no block will have, where the pool knows. */
export function endContent(
  { fate, by }: Pick<Extract<Lookup, { kind: "unknown" }>, "fate" | "by">,
  t: Texts,
): Content {
  return [
    by === undefined
      ? undefined
      : el("p", {}, t("replacedBy"), " ", el("a", { href: `/tx/${by}` }, code(by))),
    fate === "dropped" ? el("p", {}, t("droppedText")) : undefined,
  ];
}

/** Where one is of which the node does not say more. */
export function bareContent(
  { height, headHeight }: Extract<Lookup, { kind: "bare" }>,
  t: Texts,
): Content {
  const confirmations = confirmationsOf({ headHeight, receiptHeight: height });
  return [
    note("info", t("prunedText")),
    facts([
      [t("includedIn"), blockLink(height)],
      [t("confirmations"), confirmationText(confirmations, t)],
    ]),
  ];
}

function waitingNote(headHeight: number, t: Texts): Content {
  return note("info", t("notInBlocks", { height: headHeight, pending: t("yes") }));
}

function pendingPage(found: Extract<Lookup, { kind: "pending" }>, t: Texts): Page {
  const { transaction: waiting, headHeight } = found;
  return {
    title: t("transaction"),
    content: el(
      "div",
      { id: "live", "data-live": "" },
      waitingNote(headHeight, t),
      facts([[t("evmHash"), code(waiting.hash)], ...sentFacts(waiting, t)]),
    ),
    scripts: ["live"],
  };
}

function sentFacts(sent: TransactionView, t: Texts): readonly (readonly [string, Content])[] {
  return [
    [t("from"), addressLink(sent.from, t, false)],
    [t("to"), sent.to === undefined ? t("newContract") : addressLink(sent.to, t, false)],
    [t("value"), tokenAmount(sent.valueAtoken)],
    [t("nonce"), sent.nonce.toString()],
    [t("gasLimit"), sent.gasLimit.toString()],
  ];
}

async function minedPage(
  context: PageContext,
  found: MinedTransaction,
  { t, signal }: PageRequest,
): Promise<Page> {
  const { chain, consensus } = context;
  const { transaction: sent, receipt, confirmations } = found;
  const cosmosHash = await chain.cosmosHash(sent, { signal });
  const cosmos =
    cosmosHash === undefined
      ? undefined
      : await consensus.transaction(cosmosHash, { signal }).catch(() => undefined);
  const isFinal = confirmations >= CREDIT_CONFIRMATIONS;
  const called = sent.to === undefined || sent.input === "0x" ? [] : [sent.to];
  const contracts = new Set([...called, ...receipt.logs.map(({ address }) => address)]);
  const abis = await verifiedAbis(context, [...contracts], signal);
  const tokens = await tokensMovedBy(context, receipt.logs, signal);
  // Whoever verifies one of the others changes what is shown of it.
  const isRead = [...contracts].every((contract) => abis.has(contract));
  const abi = sent.to === undefined ? undefined : abis.get(sent.to);
  const ownCall = abi === undefined ? undefined : decodeCall(sent.input, abi);
  const call = ownCall ?? (sent.to === undefined ? undefined : decodeCall(sent.input));
  return {
    title: t("transaction"),
    isFinal: isFinal && isRead && cosmos !== undefined && isToldWhole(found),
    scripts: isFinal ? ["verify"] : ["live", "verify"],
    content: [
      el(
        "div",
        isFinal ? {} : { id: "live", "data-live": "" },
        outcomeNote(found, t),
        minedFacts(found, cosmosHash, t),
      ),
      section(t("nativeMoves"), movesContent(found.changes, t)),
      section(t("tokenMoves"), tokenTable(context, tokens, t)),
      sent.input === "0x"
        ? undefined
        : section(
            t("calldata"),
            call === undefined ? undefined : decodedContent(call, t, ownCall !== undefined),
            el("details", {}, el("summary", {}, t("rawData")), rawData(sent.input, t)),
          ),
      section(
        `${t("logs")} (${receipt.logs.length})`,
        logList(receipt.logs, t, (contract) => abis.get(contract)),
      ),
      cosmos === undefined ? note("info", t("noCosmosView")) : eventSection(cosmos.events, t),
      section(
        t("proofs"),
        el("p", {}, el("a", { href: `/proof/tx/${sent.hash}` }, t("downloadProof"))),
        el("p", {}, el("a", { href: `/deposit?tx=${sent.hash}` }, t("linkToSend"))),
        verifyControl({ kind: "transaction", url: `/proof/tx/${sent.hash}` }, t),
      ),
    ],
  };
}

function minedFacts(found: MinedTransaction, cosmosHash: Hash32 | undefined, t: Texts): Content {
  const { transaction: sent, receipt, confirmations, place, block } = found;
  return facts([
    [t("status"), statusBadge(receipt.isSuccess, t)],
    [t("confirmations"), confirmationText(confirmations, t)],
    [t("block"), [blockLink(place.height), ` · ${t("position")} ${place.index}`]],
    [t("time"), time(block.timestampSeconds)],
    [t("evmHash"), code(sent.hash)],
    [t("cosmosHash"), cosmosHash === undefined ? undefined : code(upperHash(cosmosHash))],
    ...sentFacts(sent, t),
    [
      t("createdContract"),
      // Receipts name the address that it would have had, too.
      receipt.contractAddress === undefined || !receipt.isSuccess
        ? undefined
        : addressLink(receipt.contractAddress, t, false),
    ],
    ...feeFacts(found, t),
  ]);
}

function feeFacts(
  { transaction: sent, receipt, burnedAtoken }: MinedTransaction,
  t: Texts,
): readonly (readonly [string, Content])[] {
  const feeAtoken = receipt.gasUsed * receipt.gasPriceAtoken;
  return [
    [t("gasUsed"), `${receipt.gasUsed} / ${sent.gasLimit}`],
    [t("gasPrice"), `${receipt.gasPriceAtoken} atoken`],
    [t("fee"), tokenAmount(feeAtoken)],
    [t("feeBurned"), burnedAtoken === undefined ? undefined : tokenAmount(burnedAtoken)],
  ];
}

/** Whether all that its pages show was told: a busy node may say later what moved, and why it failed. */
export function isToldWhole({ receipt, changes, failure }: MinedTransaction): boolean {
  return typeof changes === "object" && (receipt.isSuccess || failure !== undefined);
}

/** Why a transaction failed, where it did. */
export function outcomeNote({ receipt, failure }: MinedTransaction, t: Texts): Content {
  if (receipt.isSuccess) return undefined;
  if (failure === undefined) return note("warning", t("failedUnknown"));
  return note("warning", t("failedBecause"), " ", el("bdi", {}, foreignText(failure)));
}
