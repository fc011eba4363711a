/** The deposit API: addresses, deposits, balances and the event stream (openapi/deposit.yaml). */
import {
  type Address,
  parseStrictAddress,
  toBech32,
  toChecksumAddress,
} from "../../chain/address.js";
import { type Height, parseHash32 } from "../../chain/hex.js";
import { TOKEN_DECIMALS } from "../../chain/units.js";
import { NATIVE_ASSET, parseCustomerId, standsForNobody } from "../../ledger/journal/accounts.js";
import { amountFields } from "../../ledger/journal/amount-fields.js";
import type { TokenAsset } from "../../ledger/assets/asset-registry.js";
import { listSightings, type StoredSighting } from "../../ledger/assets/token-sightings.js";
import { readTokenStates } from "../../ledger/assets/token-state.js";
import {
  type CustomerBalance,
  customerBalances,
  DEPOSIT_STATUSES,
  findDeposit,
  listDeposits,
  type StoredDeposit,
} from "../../ledger/deposits/deposit-queries.js";
import { listEventTexts } from "../../ledger/events.js";
import type { LedgerGuard } from "../../ledger/guard/ledger-guard.js";
import type { HttpReply } from "../../runtime/http/http-reply.js";
import type { HttpRequest, KeyedRoute } from "../../runtime/http/http-route.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import type { AddressDerivation } from "../../chain/derivation/address-derivation.js";
import { confirmationsOf } from "../../chain/confirmations.js";
import { DepositError } from "../errors.js";
import { AddressIssuer } from "./address-issuer.js";
import { type ChainEvidence, collectEvidence, type EvidenceParts } from "./evidence.js";
import { nextCursor, readListQuery } from "./list-query.js";
import { type AssetExplanation, explainAssets } from "./asset-explanations.js";
import { type ExplanationParts, explainTransaction } from "./explanation.js";

/** What the API needs. */
export interface DepositApiParts {
  readonly database: SqlDatabase;
  readonly derivation: AddressDerivation;
  /** The chain, asked anew where somebody wants evidence. */
  readonly chain: Pick<ExplanationParts, "node" | "source" | "watched"> &
    Pick<EvidenceParts, "node">;
  /** Tokens that are followed. */
  readonly tokens: readonly TokenAsset[];
  readonly guard: LedgerGuard;
  /** Index from which on addresses are of this key; default 0. */
  readonly keyFromIndex?: number;
  /** Head as the watcher saw it last; undefined before the node answered. */
  readonly headHeight: () => Height | undefined;
  /** Told after each registration, so that the address's past is looked for at once. */
  readonly onRegistered: () => void;
}

/** Routes of `openapi/deposit.yaml`. */
export function createDepositRoutes(parts: DepositApiParts): readonly KeyedRoute[] {
  const issuer = new AddressIssuer(parts);
  return [
    {
      method: "post",
      path: "/v1/addresses",
      scope: "addresses:write",
      handler: (request) => createAddress(issuer, request),
    },
    reading("/v1/deposits", (request) => getDeposits(parts, request)),
    reading("/v1/deposits/explain", (request) => explain(parts, request)),
    reading("/v1/deposits/{id}", (request) => getDeposit(parts, request)),
    {
      method: "get",
      path: "/v1/deposits/{id}/evidence",
      scope: "audit:read",
      handler: (request) => getEvidence(parts, request),
    },
    reading("/v1/assets", () => getAssets(parts)),
    reading("/v1/token-sightings", (request) => getSightings(parts, request)),
    reading("/v1/customers/{id}/balances", (request) => getBalances(parts, request)),
    reading("/v1/events", (request) => getEvents(parts, request)),
  ];
}

function reading(path: string, handler: KeyedRoute["handler"]): KeyedRoute {
  return { method: "get", path, scope: "deposits:read", handler };
}

async function createAddress(issuer: AddressIssuer, request: HttpRequest): Promise<HttpReply> {
  const body = request.body;
  const given: unknown =
    typeof body === "object" && body !== null ? Reflect.get(body, "customerId") : undefined;
  const customerId = parseField("customerId", () => parseCustomerId(given));
  if (standsForNobody(customerId)) {
    throw invalidField("customerId", "this identifier stands for nobody");
  }
  const registered = await issuer.give(customerId);
  return {
    status: 201,
    body: {
      address: toChecksumAddress(registered.address),
      bech32: toBech32(registered.address),
      customerId: registered.customerId,
      index: registered.index,
    },
  };
}

async function getDeposits(parts: DepositApiParts, request: HttpRequest): Promise<HttpReply> {
  const { address, customerId, status } = request.query;
  const { limit, after: afterSeq, order } = readListQuery(request.query);
  const rows = await listDeposits(parts.database, {
    address: address === undefined ? undefined : readAddress(address),
    customerId:
      customerId === undefined
        ? undefined
        : parseField("customerId", () => parseCustomerId(customerId)),
    status: status === undefined ? undefined : readStatus(status),
    afterSeq,
    order,
    limit: limit + 1,
  });
  const page = rows.slice(0, limit);
  const headHeight = parts.headHeight();
  return {
    body: {
      deposits: page.map((deposit) => encodeDeposit(deposit, headHeight)),
      next: nextCursor(rows, limit),
    },
  };
}

async function getDeposit(parts: DepositApiParts, request: HttpRequest): Promise<HttpReply> {
  const deposit = await findDeposit(parts.database, request.params["id"] ?? "");
  if (deposit === undefined) throw new DepositError("NOT_FOUND", "no deposit has this id");
  return { body: encodeDeposit(deposit, parts.headHeight()) };
}

async function getEvidence(parts: DepositApiParts, request: HttpRequest): Promise<HttpReply> {
  const deposit = await findDeposit(parts.database, request.params["id"] ?? "");
  if (deposit === undefined) throw new DepositError("NOT_FOUND", "no deposit has this id");
  const { database, chain } = parts;
  const contractOf = (asset: string) =>
    parts.tokens.find(({ symbol }) => symbol === asset)?.contract;
  const evidence = await collectEvidence({ database, contractOf, ...chain }, deposit, request);
  return {
    body: {
      deposit: encodeDeposit(deposit, parts.headHeight()),
      chain:
        evidence.chain === undefined ? null : encodeChainEvidence(evidence.chain, deposit.asset),
      chainFault: evidence.chainFault ?? null,
      differences: evidence.differences,
      journal: evidence.entries.map((entry) => ({
        kind: entry.kind,
        key: entry.idemKey,
        effectiveHeight: entry.effectiveHeight,
        postedAt: entry.postedAt.toISOString(),
        postings: entry.postings.map(({ amountUnits, ...posting }) => ({
          ...posting,
          ...amountFields(posting.asset, amountUnits),
        })),
      })),
      balanceProof:
        deposit.asset === NATIVE_ASSET
          ? `causeway audit balance ${toChecksumAddress(deposit.address)} --height ${deposit.height}`
          : null,
    },
  };
}

function encodeChainEvidence(chain: ChainEvidence, asset: string) {
  const { operation } = chain;
  const [before, after, operations] = [
    chain.balanceBeforeUnits,
    chain.balanceAfterUnits,
    chain.operationsUnits,
  ].map(String);
  const units = {
    balanceBeforeUnits: before,
    balanceAfterUnits: after,
    operationsUnits: operations,
  };
  const atoken = {
    balanceBeforeAtoken: before,
    balanceAfterAtoken: after,
    operationsAtoken: operations,
  };
  return {
    blockHash: chain.blockHash,
    parentHash: chain.parentHash,
    timestamp: new Date(chain.timestampSeconds * 1_000).toISOString(),
    operation:
      operation === undefined
        ? null
        : {
            type: operation.type,
            status: operation.status,
            address: toChecksumAddress(operation.address),
            ...amountFields(asset, operation.amountAtoken),
            relatedIndexes: operation.relatedIndexes,
          },
    ...units,
    ...(asset === NATIVE_ASSET ? atoken : {}),
    agrees: chain.agrees,
  };
}

async function explain(parts: DepositApiParts, request: HttpRequest): Promise<HttpReply> {
  const txHash = parseField("txHash", () => parseHash32(request.query["txHash"]));
  const { database, chain, headHeight } = parts;
  const explained = await explainTransaction({ database, ...chain }, txHash, request);
  const assets = await explainAssets({ database, ...chain }, txHash, explained, request);
  const { code, message, deposits, height } = explained;
  return {
    body: {
      txHash,
      code,
      message,
      blockNumber: height ?? null,
      assets: assets.map(encodeAssetExplanation),
      deposits: deposits.map((deposit) => encodeDeposit(deposit, headHeight())),
    },
  };
}

function encodeAssetExplanation({ asset, contract, code, message }: AssetExplanation) {
  const contractAddress = contract === undefined ? null : toChecksumAddress(contract);
  return { asset: asset ?? null, contractAddress, code, message };
}

async function getBalances(parts: DepositApiParts, request: HttpRequest): Promise<HttpReply> {
  const id = request.params["id"];
  const balances = isCustomerId(id)
    ? await customerBalances(parts.database, parseCustomerId(id))
    : undefined;
  if (balances === undefined) throw new DepositError("NOT_FOUND", "no customer has this id");
  return {
    body: {
      customerId: id,
      balances: balances.map(encodeBalance),
    },
  };
}

async function getAssets({ database, tokens }: DepositApiParts): Promise<HttpReply> {
  const states = await readTokenStates(database);
  const native = { asset: NATIVE_ASSET, contractAddress: null, decimals: TOKEN_DECIMALS };
  return {
    body: {
      assets: [
        { ...native, paused: false, reason: null, codeHash: null, implementation: null },
        ...tokens.map(({ symbol, contract, decimals }) => {
          const state = states.get(symbol);
          return {
            asset: symbol,
            contractAddress: toChecksumAddress(contract),
            decimals,
            paused: state?.isPaused ?? false,
            reason: state?.isPaused === true ? state.reason : null,
            codeHash: state?.codeHash ?? null,
            implementation: state?.implementation ?? null,
          };
        }),
      ],
    },
  };
}

async function getSightings(parts: DepositApiParts, request: HttpRequest): Promise<HttpReply> {
  const { address } = request.query;
  const { limit, after: afterId } = readListQuery(request.query);
  const found = await listSightings(parts.database, {
    address: address === undefined ? undefined : readAddress(address),
    afterId,
    limit: limit + 1,
  });
  const rows = found.map((row) => ({ ...row, seq: row.id }));
  return {
    body: {
      sightings: rows.slice(0, limit).map(encodeSighting),
      next: nextCursor(rows, limit),
    },
  };
}

function encodeSighting(sighting: StoredSighting) {
  const { height: blockNumber, contract, address, sender, claimed, ...row } = sighting;
  const { id, blockHash, txHash, txIndex, opIndex, standard, reason } = row;
  return {
    id,
    address: toChecksumAddress(address),
    contractAddress: toChecksumAddress(contract),
    standard,
    reason,
    from: sender === undefined ? null : toChecksumAddress(sender),
    claimed: claimed?.toString() ?? null,
    blockNumber,
    blockHash,
    txHash,
    txIndex,
    opIndex,
  };
}

/** In units on every asset, in atoken beside it on the native one. */
function encodeBalance({ asset, ...units }: CustomerBalance) {
  const availableUnits = units.availableUnits.toString();
  const heldUnits = units.heldUnits.toString();
  const pendingUnits = units.pendingUnits.toString();
  const native = {
    availableAtoken: availableUnits,
    heldAtoken: heldUnits,
    pendingAtoken: pendingUnits,
  };
  const isNative = asset === NATIVE_ASSET;
  return { asset, availableUnits, heldUnits, pendingUnits, ...(isNative ? native : {}) };
}

async function getEvents(parts: DepositApiParts, request: HttpRequest): Promise<HttpReply> {
  const { limit, after: afterSeq } = readListQuery(request.query);
  const page = { afterSeq, limit: limit + 1 };
  let rows = await listEventTexts(parts.database, page);
  // In an older ledger numbers that were told may stand for other events: met, these are left out.
  if ((await parts.guard.check()) !== undefined) rows = await listEventTexts(parts.database, page);
  await parts.guard.beforeTelling({ eventSeq: rows.at(-1)?.seq ?? 0 });
  // Whoever polls reads most events soon after they are written: each would be parsed to be written again.
  const events = rows.slice(0, limit).map(({ json }) => json);
  const next = JSON.stringify(nextCursor(rows, limit));
  return { bytes: Buffer.from(`{"events":[${events.join(",")}],"next":${next}}`) };
}

function encodeDeposit(deposit: StoredDeposit, headHeight: Height | undefined) {
  return {
    id: deposit.id,
    address: toChecksumAddress(deposit.address),
    customerId: deposit.customerId,
    asset: deposit.asset,
    ...amountFields(deposit.asset, deposit.amountUnits),
    status: deposit.status,
    blockNumber: deposit.height,
    blockHash: deposit.blockHash,
    txHash: deposit.txHash,
    txIndex: deposit.txIndex,
    opIndex: deposit.opIndex,
    confirmations: confirmationsOf({
      // A booked block is committed, so it is a lower bound where the head is not known yet.
      headHeight: Math.max(
        headHeight ?? 0,
        deposit.height + (deposit.status === "credited" ? 1 : 0),
      ),
      receiptHeight: deposit.height,
    }),
  };
}

function readAddress(value: unknown): Address {
  return parseField("address", () => parseStrictAddress(value));
}

function readStatus(value: unknown) {
  const status = DEPOSIT_STATUSES.find((known) => known === value);
  if (status === undefined) throw invalidField("status", "not a state of a deposit");
  return status;
}

function isCustomerId(id: string | undefined): boolean {
  return id !== undefined && /^[A-Za-z0-9_.:-]{1,64}$/.test(id);
}

/** The API's own refusal for whatever a field's parser throws. */
function parseField<T>(field: string, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    throw invalidField(field, cause instanceof Error ? cause.message : "malformed", cause);
  }
}

function invalidField(field: string, message: string, cause?: unknown): DepositError {
  return new DepositError("INVALID_FIELD", `${field}: ${message}`, { details: { field }, cause });
}
