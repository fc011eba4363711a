/** Addresses: what they hold, held, moved and signed. */
import { toBech32, toChecksumAddress } from "../../chain/address.js";
import type { Hex } from "../../chain/hex.js";
import type { HttpRoute } from "../../runtime/http/http-route.js";
import { systemClock } from "../../runtime/process/clock.js";
import { binOf, INTERVAL_SECONDS } from "../store/candles.js";
import { isShownAsset, LIVE_SCHEMA as s, NO_TOKEN_ID } from "../store/schema.js";
import { assertCounted, invalidField, readAddressText, readAsset, readRange } from "./inputs.js";
import { directionOf, type Filters, type ListKind, listReply, Where } from "./pages.js";
import { addressOf, BALANCES } from "./held-balances.js";
import { type ApiContext, atOneMoment, bytesOf, metaOf } from "./reads.js";
import {
  TRANSACTION_COLUMNS,
  TRANSACTION_TABLES,
  transactionJson,
  type TransactionRow,
  TRANSFER_COLUMNS,
  TRANSFER_JOINS,
  transferJson,
  type TransferRow,
} from "./row-json.js";
import { StateBalances } from "./state-balances.js";
import { statementReply } from "./statement.js";

const RANGE = ["fromBlock", "toBlock", "from", "to"];

/** The side of a transfer that an account is on, by the direction that a list asks for. */
const SIDES = { out: "sender", in: "recipient" } as const;

function sidesOf({ direction }: Filters): readonly string[] {
  if (direction === "out" || direction === "in") return [SIDES[direction]];
  return Object.values(SIDES);
}

const TRANSFERS: ListKind<TransferRow> = {
  name: "address transfers",
  filters: ["order", "asset", "kind", "direction", "min", ...RANGE],
  rows: async (query) => {
    const { snapshot, filters, ceiling, after, limit } = query;
    const { sign, word } = directionOf(filters);
    const { from, to } = await readRange(snapshot, filters, s);
    const where = new Where().and("f.height BETWEEN ? AND ?", from, Math.min(to, ceiling));
    if (filters["asset"] !== undefined) where.and("f.asset = ?", readAsset(filters["asset"]));
    if (filters["kind"] !== undefined) where.and("f.kind = ?", filters["kind"]);
    if (filters["min"] !== undefined) where.and("f.amount >= ?", filters["min"]);
    if (after !== undefined) where.and(`(f.height, f.tx_index, f.seq) ${sign} (?, ?, ?)`, ...after);
    const address = where.bind(addressOf(query));
    const page = `ORDER BY f.height ${word}, f.tx_index ${word}, f.seq ${word} LIMIT ${limit}`;
    // Of either side as many as the page may have: what is to oneself is on both, and comes once.
    const sides = sidesOf(filters).map(
      (side) =>
        `(SELECT f.* FROM ${s}.transfer f ${where.text()} AND f.${side} = ${address} ${page})`,
    );
    return snapshot.sql.query(
      `SELECT ${TRANSFER_COLUMNS} FROM (${sides.join(" UNION ")}) f ${TRANSFER_JOINS} ${page}`,
      where.parameters,
    );
  },
  item: transferJson,
  position: ({ height, tx_index, seq }) => [height, tx_index, seq],
};

const TRANSACTIONS: ListKind<TransactionRow> = {
  name: "address transactions",
  filters: ["order", ...RANGE],
  rows: async (query) => {
    const { snapshot, filters, ceiling, after, limit } = query;
    const { sign, word } = directionOf(filters);
    const { from, to } = await readRange(snapshot, filters, s);
    const where = new Where()
      .and("a.address = ?", addressOf(query))
      .and("a.height BETWEEN ? AND ?", from, Math.min(to, ceiling));
    if (after !== undefined) where.and(`(a.height, a.tx_index) ${sign} (?, ?)`, ...after);
    return snapshot.sql.query(
      `SELECT ${TRANSACTION_COLUMNS} FROM ${s}.address_transaction a
       JOIN (${TRANSACTION_TABLES}) ON t.height = a.height AND t.tx_index = a.tx_index
       ${where.text()}
       ORDER BY a.height ${word}, a.tx_index ${word} LIMIT ${limit}`,
      where.parameters,
    );
  },
  item: transactionJson,
  position: ({ height, tx_index }) => [height, tx_index],
};

/** Seconds of the width that `interval` names; an hour without it. @throws INVALID_FIELD */
export function readInterval({ interval = "1h" }: Filters): number {
  const found = Object.entries(INTERVAL_SECONDS).find(([name]) => name === interval);
  if (found === undefined) throw invalidField("interval", "1m, 5m, 15m, 1h, 4h, 1d or 1w");
  return found[1];
}

interface PointRow {
  readonly height: number;
  readonly time: Date;
  readonly amount: string;
  /** First block of its interval. */
  readonly first: number;
}

const HISTORY: ListKind<PointRow> = {
  name: "balance history",
  filters: ["asset", "interval", ...RANGE],
  rows: async (query) => {
    const { snapshot, filters, ceiling, after, limit } = query;
    const { from, to } = await readRange(snapshot, filters, s);
    const [address, asset] = [addressOf(query), readAsset(filters["asset"] ?? "TOKEN")];
    await assertCounted(snapshot, s, { address, asset });
    const where = new Where()
      .and("h.address = ?", address)
      .and("h.asset = ?", asset)
      .and("h.token_id = ?", NO_TOKEN_ID)
      .and("h.height >= ?", from);
    where.and(isShownAsset(s, where.bind(asset)));
    const last = where.bind(Math.min(to, ceiling, Number(after?.[0] ?? ceiling + 1) - 1));
    const width = where.bind(readInterval(filters));
    const pointUpTo = (height: string) =>
      `SELECT h.height, b.time, h.amount, (SELECT k.height FROM ${s}.block k
           WHERE k.time >= ${binOf(`${width}::integer`, "b.time")}
           ORDER BY k.time, k.height LIMIT 1) AS first
       FROM ${s}.balance_history h JOIN ${s}.block b USING (height)
       ${where.text()} AND h.height <= ${height} ORDER BY h.height DESC LIMIT 1`;
    // From the last point of one interval to the last one before it, however many are between.
    return snapshot.sql.query(
      `WITH RECURSIVE p AS ((${pointUpTo(last)}) UNION ALL
         SELECT n.* FROM p CROSS JOIN LATERAL (${pointUpTo("p.first - 1")}) n)
       SELECT * FROM p LIMIT ${limit}`,
      where.parameters,
    );
  },
  item: ({ height, time, amount }) => ({ height, time: time.toISOString(), balance: amount }),
  position: ({ first }) => [first],
};

/**
 * Tokens of which an account has something, as a query: one look for each, however many ids there are.
 * @param account as SQL has it
 */
function heldAssets(account: string): string {
  const next = (condition: string) =>
    `SELECT asset FROM ${s}.balance WHERE address = ${account} AND asset <> ''::bytea
       AND amount <> 0${condition} ORDER BY asset LIMIT 1`;
  return `WITH RECURSIVE held AS (
      (${next("")}) UNION ALL
      SELECT n.asset FROM held h CROSS JOIN LATERAL (${next(" AND asset > h.asset")}) n)
    SELECT asset FROM held WHERE ${isShownAsset(s, "held.asset")}`;
}

/** What an account has in place of code that lets a contract act for it (EIP-7702). */
const DELEGATION = /^0xef0100[0-9a-f]{40}$/;

function isContractCode(code: Hex): boolean {
  return code !== "0x" && !DELEGATION.test(code);
}

/** Handlers of `/v1/addresses`. */
export function addressRoutes(context: ApiContext): readonly HttpRoute[] {
  const states = new StateBalances(context.node, systemClock);
  const list = <Row>(path: string, kind: ListKind<Row>): HttpRoute => ({
    method: "get",
    path: `/v1/addresses/{address}/${path}`,
    handler: (request) => listReply(context, kind, request),
  });
  return [
    {
      method: "get",
      path: "/v1/addresses/{address}",
      handler: async (request) => {
        const { signal } = request;
        const address = readAddressText(request.params["address"]);
        const [nonce, code] = await Promise.all([
          context.node.getTransactionCount(address, "latest", { signal }).catch(() => undefined),
          context.node.getCode(address, "latest", { signal }).catch(() => undefined),
        ]);
        return atOneMoment(context, request, async (snapshot) => {
          const [row] = await snapshot.sql.query<{
            first_seen: number | null;
            last_seen: number | null;
            transactions: string | null;
            transfers: string | null;
            is_contract: boolean | null;
            balance: string | null;
            tokens: string;
          }>(
            `SELECT a.*, b.amount AS balance,
               (SELECT count(*) FROM (${heldAssets("$1::bytea")}) o) AS tokens
             FROM (SELECT $1::bytea AS address) i
             LEFT JOIN ${s}.address a USING (address)
             LEFT JOIN ${s}.balance b ON b.address = i.address AND b.asset = ''::bytea`,
            [bytesOf(address)],
          );
          const shown = {
            evm: toChecksumAddress(address),
            bech32: toBech32(address),
            isContract: code === undefined ? (row?.is_contract ?? false) : isContractCode(code),
            nonce: nonce?.toString() ?? null,
            balance: row?.balance ?? "0",
            firstSeen: row?.first_seen ?? null,
            lastSeen: row?.last_seen ?? null,
            transactions: Number(row?.transactions ?? 0),
            transfers: Number(row?.transfers ?? 0),
            tokens: Number(row?.tokens ?? 0),
          };
          return { body: { meta: metaOf(snapshot), address: shown } };
        });
      },
    },
    list("balances", BALANCES),
    list("balance-history", HISTORY),
    list("transfers", TRANSFERS),
    list("transactions", TRANSACTIONS),
    {
      method: "get",
      path: "/v1/addresses/{address}/statement",
      handler: (request) => statementReply(context, request, states),
    },
  ];
}
