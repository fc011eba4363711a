/**
 * "Why was this not credited?", by transaction hash: one code for programs, one sentence for people,
 * from what the ledger has, what the node says of the transaction, and what it did to our addresses.
 */
import type { Address } from "../../chain/address.js";
import { CREDIT_CONFIRMATIONS } from "../../chain/confirmations.js";
import type { Hash32, Height } from "../../chain/hex.js";
import { readTokenAssets, type TokenAsset } from "../../ledger/assets/asset-registry.js";
import { readTokenPast } from "../../ledger/assets/token-opening.js";
import { listSightings, type StoredSighting } from "../../ledger/assets/token-sightings.js";
import { readTokenStates } from "../../ledger/assets/token-state.js";
import { depositIdsOfTransaction } from "../../ledger/deposits/deposit-evidence.js";
import { isPastAwaited } from "../../ledger/deposits/deposit-addresses.js";
import { findDeposit, type StoredDeposit } from "../../ledger/deposits/deposit-queries.js";
import { UNASSIGNED } from "../../ledger/journal/accounts.js";
import { type Brought, readTopUps } from "../../ledger/treasury/top-ups.js";
import { readCursor } from "../../ledger/watch/watch-cursor.js";
import { openIncident } from "../../ledger/incidents.js";
import { isDeletedThere } from "../../rpc-client/data-api/data-api-client.js";
import type { DataTransaction } from "../../rpc-client/data-api/data-block.js";
import { isPruned } from "../../rpc-client/errors.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { JournaledTransaction } from "../../rpc-client/journal-codec.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import type { BlockSource } from "../reading/block-source.js";
import { OtherSides, type Watched } from "../deposit-match.js";
import { arrivalsIn, claimsIn } from "./arrivals.js";
import type { ExplanationCode } from "./explanation-codes.js";

/** The answer. */
export interface Explanation {
  readonly code: ExplanationCode;
  /** Some sentences. */
  readonly message: string;
  readonly deposits: readonly StoredDeposit[];
  /** Block of the transaction; undefined while it is in none. */
  readonly height: Height | undefined;
  /** Its own hash where it was asked for by another one, and has no deposits. */
  readonly ownHash?: Hash32;
}

/** How it is asked for. */
export interface Asking {
  readonly signal: AbortSignal;
  /** Whether the hash is the one that the Data API has of the transaction. */
  readonly isOwnHash?: boolean;
}

/** A transaction as the journal of its block tells it. */
type OwnTransaction = Pick<JournaledTransaction, "hash" | "index" | "status">;

/** Where explanations come from. */
export interface ExplanationParts {
  readonly database: SqlDatabase;
  readonly node: Pick<
    EvmClient,
    "transactionStatus" | "getTransactionReceipt" | "getBlockHeader"
  > & {
    /** Of the journal of a block only these are looked at. */
    blockJournal(
      hash: Hash32,
      options: { readonly signal: AbortSignal },
    ): Promise<{ readonly transactions: readonly OwnTransaction[] } | undefined>;
  };
  readonly source: BlockSource;
  readonly watched: Watched;
}

/** Explains one transaction. Throws the faults of ledger, node and Data API. */
export async function explainTransaction(
  parts: ExplanationParts,
  hash: Hash32,
  options: Asking,
): Promise<Explanation> {
  const { database, node } = parts;
  const { ids, hasMore } = await depositIdsOfTransaction(database, hash);
  const found = await Promise.all(ids.map((id) => findDeposit(database, id)));
  const deposits = found.filter((deposit) => deposit !== undefined);
  // Mined again, it has a deposit of its own beside the reversed one.
  const standing = deposits.filter(({ status }) => status !== "reversed");
  const [first] = standing;
  if (first !== undefined) {
    const explained = withMore(await ofDeposits(parts, standing, first), hasMore);
    return besideDeposits(parts, hash, explained);
  }
  if (deposits.length > 0) {
    const message =
      "The chain came back without its block and what it brought was undone; mined again, it is " +
      "a deposit again.";
    const { height } = deposits[0] ?? {};
    return withMore({ code: "REVERSED", message, deposits, height }, hasMore);
  }
  const answer: Answer = (code, message, height) => {
    return { code, message, deposits: [], height, ownHash: hash };
  };
  const status = await node.transactionStatus(hash, options);
  switch (status.status) {
    case "unknown":
      return ofUnknown(parts, hash, answer, options);
    case "pending":
      return answer("PENDING", "The transaction waits in the pool for a block.");
    case "queued": {
      const { missingNonce, reason } = status;
      const message =
        reason === undefined
          ? `It waits for the sender's transaction with nonce ${missingNonce}.`
          : `It is the sender's next one, and no block can have it yet: ${reason}.`;
      return answer("QUEUED", message);
    }
    case "replaced":
      return answer("REPLACED", `The sender replaced it by ${status.by}: ask for that one.`);
    case "dropped":
      return answer(
        "DROPPED",
        `The pool let it go: ${status.reason}. The sender may send it again.`,
      );
    case "included":
      return ofIncluded(parts, { hash, ...status }, answer, options);
  }
  return status satisfies never;
}

/** Words of one transaction without deposits. */
type Answer = (code: ExplanationCode, message: string, height?: Height) => Explanation;

/** With a block a node deletes that it had its transactions; what the ledger recorded of them stands. */
async function ofUnknown(
  parts: ExplanationParts,
  hash: Hash32,
  answer: Answer,
  options: Asking,
): Promise<Explanation> {
  const { database, node } = parts;
  const [sighting] = await listSightings(database, { txHash: hash, afterId: 0, limit: 1 });
  if (sighting !== undefined) {
    return answer(...(await ofSighting(parts, sighting)), sighting.height);
  }
  // Block 0 is never deleted.
  const first = node.getBlockHeader(1, options).then(() => "kept");
  const message =
    (await unlessPruned(first)) === undefined
      ? "Neither the pool nor a block that the node still has knows it; the node has deleted its oldest " +
        "blocks, and one of those may have had it."
      : "The node has never seen a transaction of this hash.";
  return answer("UNKNOWN_TRANSACTION", message);
}

/** What became of deposits of one transaction. @param first of them, at least one */
export async function ofDeposits(
  parts: ExplanationParts,
  deposits: readonly StoredDeposit[],
  first: StoredDeposit,
): Promise<Explanation> {
  const found = (code: ExplanationCode, message: string): Explanation => {
    return { code, message, deposits, height: first.height };
  };
  const states = new Set(deposits.map(({ status }) => status));
  if (states.has("detected")) {
    const incident = await openIncident(parts.database);
    if (incident !== undefined) return found("HALTED", haltText(incident.message));
    const due = first.height + CREDIT_CONFIRMATIONS - 1;
    return found("CONFIRMING", `It is credited when block ${due} is there.`);
  }
  const held = deposits.find(({ status }) => status === "held");
  if (held !== undefined) return found("HELD", await heldText(parts.database, held.asset));
  const waiting = deposits.filter(({ status }) => status === "suspense");
  if (waiting.length > 0) return found("SUSPENSE", suspenseText(waiting, parts.watched));
  return found("CREDITED", "Its deposits are credited.");
}

/** Whoever adds up what is listed has to know that it is not all. */
function withMore(explained: Explanation, hasMore: boolean): Explanation {
  if (!hasMore) return explained;
  const { message, deposits } = explained;
  const more = `It made more deposits than the ${deposits.length} that are listed here.`;
  return { ...explained, message: `${message} ${more}` };
}

/** One transaction may bring coins and what is not credited: whoever asks may mean the latter. */
async function besideDeposits(
  parts: ListedParts,
  txHash: Hash32,
  explained: Explanation,
): Promise<Explanation> {
  const [sighting] = await listSightings(parts.database, { txHash, afterId: 0, limit: 1 });
  if (sighting === undefined) return explained;
  const [, words] = await ofSighting(parts, sighting);
  return { ...explained, message: `${explained.message} Beside that: ${words}` };
}

async function ofIncluded(
  parts: ExplanationParts,
  {
    hash,
    height,
    index,
  }: { readonly hash: Hash32; readonly height: Height; readonly index: number },
  answer: Answer,
  options: Asking,
): Promise<Explanation> {
  const { database, node, source, watched } = parts;
  const receipt = await node.getTransactionReceipt(hash, options);
  const own = receipt === undefined ? await journaled(node, { height, index }, options) : undefined;
  if (own !== undefined && own.hash !== hash) return explainTransaction(parts, own.hash, options);
  if ((receipt ?? own)?.status === 0) {
    return answer("FAILED", "The transaction is in a block and failed: it moved nothing.", height);
  }
  const cursor = await readCursor(database);
  if (cursor.height < height) {
    const incident = await openIncident(database);
    if (incident !== undefined) return answer("HALTED", haltText(incident.message), height);
    const message = `The watcher has read the blocks up to ${cursor.height}; this is in ${height}.`;
    return answer("NOT_READ_YET", message, height);
  }
  const [sighting] = await listSightings(database, { txHash: hash, afterId: 0, limit: 1 });
  if (sighting !== undefined) return answer(...(await ofSighting(parts, sighting)), height);
  const isOurs = (address: Address) => watched.customerOf(address) !== undefined;
  // Whose journal is deleted may have been asked for by its hash in consensus: the block has its own.
  const mayBeOther = receipt === undefined && own === undefined && options.isOwnHash !== true;
  const isWanted = mayBeOther ? () => true : isOurs;
  const transactions = await transactionsOf(source, height, isWanted, options);
  if (transactions === "behind") {
    // It was read here: who serves it has fallen behind since, and does not say what it holds.
    const message = `The Data API does not have block ${height} at the moment: ask again later.`;
    return answer("NOT_READ_YET", message, height);
  }
  const isDeleted = transactions === "deleted";
  const transaction = isDeleted ? undefined : transactions.find((one) => one.index === index);
  if (mayBeOther && transaction !== undefined && transaction.hash !== hash) {
    return explainTransaction(parts, transaction.hash, { ...options, isOwnHash: true });
  }
  const arrived = arrivalsIn(transaction, isOurs);
  if (arrived.length > 0) return answer(...(await ofArrivals(database, arrived)), height);
  const claims = claimsIn(transaction, receipt, isOurs);
  const listed = new Map((await readTokenAssets(database)).map((one) => [one.contract, one]));
  for (const { contract, address } of claims) {
    const token = listed.get(contract);
    if (token === undefined) continue;
    return answer(...(await ofListed(parts, token, { address, height })), height);
  }
  const told = isDeleted ? ofDeleted(height) : ofOperations(transaction, isOurs);
  if (!isDeleted && told[0] !== "NOT_OURS") return answer(...told, height);
  // A block may have more transfers of strangers' tokens than are recorded: the logs tell of each.
  const [unlisted] = claims;
  return answer(...(unlisted === undefined ? told : ofUnlisted(unlisted.contract)), height);
}

/** Those of a block that concern somebody; "behind" and "deleted" where the Data API does not have it. */
export async function transactionsOf(
  source: BlockSource,
  height: Height,
  isWanted: (address: Address) => boolean,
  options: Asking,
): Promise<readonly DataTransaction[] | "behind" | "deleted"> {
  try {
    const block = await source.block(height, options);
    return block === undefined ? "behind" : await block.transactions(isWanted, options);
  } catch (error) {
    if (isDeletedThere(error)) return "deleted";
    throw error;
  }
}

function ofDeleted(height: Height): [ExplanationCode, string] {
  const message =
    `What it brought cannot be looked at: the Data API does not have block ${height} ready, and its node ` +
    "has deleted what that, or one before it, is made of; with an archive node behind it it could be told.";
  return ["BLOCK_DELETED", message];
}

/**
 * A transaction that has no receipt by the hash that was asked for: one of the Cosmos side has none, and one
 * of the EVM has another hash in consensus, by which explorers and wallets of Cosmos name it, and the node
 * finds it by both. Undefined where the node has deleted the block's journal.
 */
async function journaled(
  node: ExplanationParts["node"],
  { height, index }: { readonly height: Height; readonly index: number },
  options: { readonly signal: AbortSignal },
): Promise<OwnTransaction | undefined> {
  const header = await node.getBlockHeader(height, options);
  const block = header && (await unlessPruned(node.blockJournal(header.hash, options)));
  return block?.transactions.find((one) => one.index === index);
}

/** Undefined where the node has deleted what is read. */
async function unlessPruned<T>(read: Promise<T>): Promise<T | undefined> {
  try {
    return await read;
  } catch (error) {
    if (isPruned(error)) return undefined;
    throw error;
  }
}

/** A token that nobody listed, of which nothing is recorded. */
export function ofUnlisted(contract: Address): [ExplanationCode, string] {
  const message =
    `It says that it brought a token of ${contract}, which is not listed here: it is not credited, and not ` +
    "recorded, as its block has more of such transfers than are kept.";
  return ["TOKEN_NOT_CREDITED", message];
}

/** Where it is found out what became of units of a listed token. */
export type ListedParts = Pick<ExplanationParts, "database" | "watched">;

/** Units of a listed token that make no deposit, and of which nothing was sighted since it is listed. */
export async function ofListed(
  { database, watched }: ListedParts,
  token: TokenAsset,
  { address, height }: { readonly address: Address; readonly height: Height },
): Promise<[ExplanationCode, string]> {
  const { symbol } = token;
  if (watched.walletFrom(address) !== undefined) {
    return ["NOT_A_DEPOSIT", `It brought ${symbol} to a hot wallet: it is nobody's deposit.`];
  }
  const past = await readTokenPast(database, token, address);
  if (past === undefined || height >= past.fromHeight) {
    const message =
      `It brought ${symbol} to a deposit address, and the ledger has no deposit of it: ask again later; ` +
      "if that stays so, causeway reconcile shows whether the books lack it.";
    return ["NOT_READ_YET", message];
  }
  const early = `Its ${symbol} arrived before the address or the token was registered`;
  switch (past.state) {
    case "booked":
      return [
        "SUSPENSE",
        `${early}; it lies in suspense as a part of one sum, and an operator decides whose it is ` +
          "(causeway ledger adjust).",
      ];
    case "awaited":
      return [
        "NOT_READ_YET",
        `${early}, and what came then is still being booked: ask again later.`,
      ];
    case "none":
      return [
        "TOKEN_NOT_ARRIVED",
        `${early}, and nothing of it is booked: the address had none any more by then, or the ` +
          "contract does not tell what it had.",
      ];
  }
  return past.state satisfies never;
}

/** What tokens did that are not credited, in words. */
export async function ofSighting(
  parts: ListedParts,
  sighting: StoredSighting,
): Promise<[ExplanationCode, string]> {
  const { contract, claimed, reason } = sighting;
  switch (reason) {
    case "UNKNOWN_TOKEN": {
      // It was seen before the token was listed: what it brought is in the opening.
      const tokens = await readTokenAssets(parts.database);
      const token = tokens.find((one) => one.contract === contract);
      if (token !== undefined) return ofListed(parts, token, sighting);
      return [
        "TOKEN_NOT_CREDITED",
        `It brought a token of ${contract}, which is not listed here: it is recorded, not credited.`,
      ];
    }
    case "MALFORMED":
      return [
        "TOKEN_NOT_CREDITED",
        `It says that it brought a token of ${contract}, otherwise than the standard has it: it is ` +
          "recorded, not credited.",
      ];
    case "NFT":
      return ["TOKEN_NOT_CREDITED", "It brought an NFT: it is recorded, not credited."];
    case "UNREADABLE":
      return [
        "TOKEN_NOT_ARRIVED",
        "The token does not tell the balance of the address: nothing proves that anything came.",
      ];
    case "NOT_LEFT":
      return [
        "NOTHING_ARRIVED",
        `The token claims that ${claimed ?? 0n} more units left an address of ours than its balance fell by.`,
      ];
    case "NOT_ARRIVED":
    case "SHORTFALL":
      return [
        "TOKEN_NOT_ARRIVED",
        `The token claims ${claimed ?? 0n} units that the balance of the address did not rise by.`,
      ];
  }
  return reason satisfies never;
}

/** Why coins that arrived are no deposit. */
export async function ofArrivals(
  database: SqlDatabase,
  arrived: readonly Brought[],
): Promise<[ExplanationCode, string]> {
  const topUps = await readTopUps(database, arrived);
  const others = arrived.filter((one) => !topUps.has(one));
  if (others.length === 0) {
    const message =
      "It brought gas for a sweep, paid by a hot wallet of the exchange: it is nobody's deposit.";
    return ["NOT_A_DEPOSIT", message];
  }
  const addresses = others.map(({ address }) => address);
  if (await isPastAwaited(database, addresses)) {
    const message =
      "Its coins came before the address was registered, and what came then is still being booked: " +
      "ask again later.";
    return ["NOT_READ_YET", message];
  }
  const message =
    "It brought coins to a deposit address, and the ledger has no deposit of them: ask again later; " +
    "if that stays so, causeway reconcile shows whether the books lack them.";
  return ["NOT_READ_YET", message];
}

/** Why a successful transaction of a block that was read made no deposit. */
function ofOperations(
  transaction: DataTransaction | undefined,
  isOurs: (address: Address) => boolean,
): [ExplanationCode, string] {
  const { operations = [] } = transaction ?? {};
  const sides = new OtherSides({ operations });
  const own = operations.filter(({ address }) => isOurs(address));
  if (own.length === 0) {
    return ["NOT_OURS", "It gave coins to no deposit address: look at the address it was sent to."];
  }
  if (
    own.some((operation) => {
      const { isNative, amountAtoken, status } = operation;
      const isArrival = !isNative && amountAtoken > 0n && status === "SUCCESS";
      return isArrival && !sides.isSelfPaid(operation);
    })
  ) {
    return ["TOKEN_NOT_CREDITED", "It brought tokens; deposits of this token are not credited."];
  }
  return [
    "NOTHING_ARRIVED",
    "It left the deposit address no richer: of value 0, undone inside, or paid to itself.",
  ];
}

/** What it is that waits for a person. @param waiting in suspense, at least one */
function suspenseText(waiting: readonly StoredDeposit[], watched: Watched): string {
  const ofNobody = waiting.find(({ customerId }) => customerId === UNASSIGNED);
  if (ofNobody === undefined) {
    return (
      "The coins arrived before the address was registered, or were not sent as a payment, or a person has " +
      "to decide about them after a loss, or their token ran other code than was accepted; an operator " +
      "decides whose they are."
    );
  }
  const { address } = ofNobody;
  const isAssigned = watched.customerOf(address) !== UNASSIGNED;
  return isAssigned
    ? `The coins arrived before anybody had said whose ${address} is; an operator gives them to ` +
        "its customer (causeway ledger assign-deposit)."
    : `Nobody has said yet whose ${address} is; an operator says it, and credits what came so far ` +
        "(causeway ledger assign-address, with --with-deposits).";
}

/** A paused token says why. */
async function heldText(database: SqlDatabase, asset: string): Promise<string> {
  const state = (await readTokenStates(database)).get(asset);
  if (state?.isPaused === true) return `The deposit is held: ${asset} is paused: ${state.reason}.`;
  return "The deposit is held; an operator decides about it.";
}

function haltText(message: string): string {
  return `Crediting is halted until an operator resumes it: ${message}.`;
}
