/** Transactions: of the chain, of a block, by hash, many at once. */
import type { Hash32 } from "../../chain/hex.js";
import type { HttpReply } from "../../runtime/http/http-reply.js";
import type { HttpRoute } from "../../runtime/http/http-route.js";
import { IndexerError } from "../errors.js";
import { LIVE_SCHEMA as s } from "../store/schema.js";
import { heightOf } from "./block-routes.js";
import type { Asker } from "./index-reads.js";
import { readHashText } from "./inputs.js";
import { directionOf, type ListKind, listReply, Where } from "./pages.js";
import {
  type ApiContext,
  atOneMoment,
  blockHashAt,
  bytesOf,
  hexOf,
  metaOf,
  type Snapshot,
} from "./reads.js";
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

const position = ({ height, tx_index }: TransactionRow) => [height, tx_index];

const TRANSACTIONS: ListKind<TransactionRow> = {
  name: "transactions",
  filters: ["order"],
  rows: ({ snapshot, filters, ceiling, after, limit }) => {
    const { sign, word } = directionOf(filters);
    const where = new Where().and("t.height <= ?", ceiling);
    if (after !== undefined) where.and(`(t.height, t.tx_index) ${sign} (?, ?)`, ...after);
    return snapshot.sql.query(
      `SELECT ${TRANSACTION_COLUMNS} FROM ${TRANSACTION_TABLES} ${where.text()}
       ORDER BY t.height ${word}, t.tx_index ${word} LIMIT ${limit}`,
      where.parameters,
    );
  },
  item: transactionJson,
  position,
};

const OF_BLOCK: ListKind<TransactionRow> = {
  name: "block transactions",
  filters: [],
  rows: async ({ snapshot, ceiling, after, limit, params }) => {
    const height = await heightOf(snapshot, params["id"], ceiling);
    const where = new Where().and("t.height = ?", height);
    if (after !== undefined) where.and("(t.height, t.tx_index) > (?, ?)", ...after);
    return snapshot.sql.query(
      `SELECT ${TRANSACTION_COLUMNS} FROM ${TRANSACTION_TABLES} ${where.text()}
       ORDER BY t.height, t.tx_index LIMIT ${limit}`,
      where.parameters,
    );
  },
  item: transactionJson,
  position,
};

/** Bytes of a topic. */
const WORD_BYTES = 32;

/** Handlers of everything about transactions. */
export function transactionRoutes(context: ApiContext): readonly HttpRoute[] {
  return [
    {
      method: "get",
      path: "/v1/transactions",
      handler: (request) => listReply(context, TRANSACTIONS, request),
    },
    {
      method: "get",
      path: "/v1/blocks/{id}/transactions",
      handler: (request) => listReply(context, OF_BLOCK, request),
    },
    {
      method: "post",
      path: "/v1/transactions/lookup",
      handler: (request) =>
        atOneMoment(context, request, async (snapshot) => {
          const hashes = readHashes(request.body);
          const rows = await findAll(snapshot, hashes);
          const items = hashes.map((hash) => {
            const row = rows.get(hash);
            return row === undefined ? null : transactionJson(row, snapshot);
          });
          return { body: { meta: metaOf(snapshot), items } };
        }),
    },
    {
      method: "get",
      path: "/v1/transactions/{hash}",
      handler: async (request) => {
        const hash = readHashText(request.params["hash"]);
        const found = await atOneMoment(context, request, async (snapshot) => {
          const row = (await findAll(snapshot, [hash])).get(hash);
          if (row === undefined) return { indexedHeight: snapshot.progress.height };
          return detail(snapshot, row);
        });
        if ("indexedHeight" in found) {
          throw await unknownHash(context, hash, found.indexedHeight, request.signal);
        }
        return transactionReply(context, request, found);
      },
    },
  ];
}

function readHashes(body: unknown): readonly Hash32[] {
  const hashes: unknown =
    typeof body === "object" && body !== null && "hashes" in body ? body.hashes : undefined;
  return Array.isArray(hashes) ? hashes.map((hash) => readHashText(hash, "hashes")) : [];
}

/** Transactions by either hash, each under the hash it was asked by. */
async function findAll(
  { sql }: Snapshot,
  hashes: readonly Hash32[],
): Promise<ReadonlyMap<string, TransactionRow>> {
  const rows = await sql.query<TransactionRow>(
    `SELECT ${TRANSACTION_COLUMNS} FROM ${TRANSACTION_TABLES}
     WHERE t.hash = ANY($1::bytea[]) OR t.sdk_hash = ANY($1::bytea[])`,
    [hashes.map(bytesOf)],
  );
  return new Map(
    rows.flatMap((row) => [[hexOf(row.sdk_hash), row] as const, [hexOf(row.hash), row] as const]),
  );
}

interface LogRow {
  readonly log_index: number;
  readonly address: Buffer;
  readonly topics: Buffer;
  readonly data: Buffer;
}

/** A transaction, and the first of its logs and transfers. */
interface Detail {
  readonly row: TransactionRow;
  readonly meta: ReturnType<typeof metaOf>;
  readonly told: object;
  readonly logs: readonly LogRow[];
  readonly transfers: readonly TransferRow[];
}

async function detail(snapshot: Snapshot, row: TransactionRow): Promise<Detail> {
  const { sql } = snapshot;
  const place = [row.height, row.tx_index];
  const [more] = await sql.query<{
    input: Buffer;
    burned: string;
    failure: string | null;
    messages: string | null;
    memo: string | null;
  }>(
    `SELECT input, burned, failure, messages, memo FROM ${s}.transaction
     WHERE height = $1 AND tx_index = $2`,
    place,
  );
  const told = {
    ...transactionJson(row, snapshot),
    input: hexOf(more?.input ?? Buffer.alloc(0)),
    failure: more?.failure ?? null,
    messages: more?.messages?.split(",").filter((type) => type !== "") ?? [],
    memo: more?.memo ?? null,
    feeBurned: more?.burned ?? null,
  };
  const logs = await logsBehind(snapshot, row, -1);
  const transfers = await transfersBehind(snapshot, row, -1);
  return { row, meta: metaOf(snapshot), told, logs, transfers };
}

/**
 * Logs, and transfers, that are read at a time. One transaction may have tens of thousands: put together
 * and held against the API file at once they would keep everybody else waiting for a second.
 */
const PIECE_ROWS = 1_000;

function logsBehind({ sql }: Snapshot, row: TransactionRow, last: number): Promise<LogRow[]> {
  return sql.query(
    `SELECT log_index, address, topics, data FROM ${s}.log
     WHERE height = $1 AND tx_index = $2 AND log_index > $3 ORDER BY log_index LIMIT ${PIECE_ROWS}`,
    [row.height, row.tx_index, last],
  );
}

function transfersBehind(
  { sql }: Snapshot,
  row: TransactionRow,
  last: number,
): Promise<TransferRow[]> {
  return sql.query(
    `SELECT ${TRANSFER_COLUMNS} FROM ${s}.transfer f ${TRANSFER_JOINS}
     WHERE f.height = $1 AND f.tx_index = $2 AND f.seq > $3 ORDER BY f.seq LIMIT ${PIECE_ROWS}`,
    [row.height, row.tx_index, last],
  );
}

function logJson({ log_index, address, topics, data }: LogRow) {
  return {
    logIndex: log_index,
    address: hexOf(address),
    topics: Array.from({ length: topics.length / WORD_BYTES }, (_, index) =>
      hexOf(topics.subarray(index * WORD_BYTES, (index + 1) * WORD_BYTES)),
    ),
    data: hexOf(data),
  };
}

/** The answer: at once, or in pieces where there is more than one of them. */
function transactionReply(context: ApiContext, asker: Asker, found: Detail): HttpReply {
  const { meta, told, logs, transfers } = found;
  if (logs.length === PIECE_ROWS || transfers.length === PIECE_ROWS) {
    const headers = { "content-type": "application/json; charset=utf-8" };
    return { headers, stream: detailPieces(context, asker, found) };
  }
  const lists = { logs: logs.map(logJson), transfers: transfers.map(transferJson) };
  return { body: { meta, transaction: { ...told, ...lists } } };
}

/** The same body, at the reader's pace; cut off where the index has another block by now. */
async function* detailPieces(
  context: ApiContext,
  asker: Asker,
  { row, meta, told, logs, transfers }: Detail,
): AsyncGenerator<Buffer, void> {
  const behind = <Row>(
    read: (snapshot: Snapshot, row: TransactionRow, last: number) => Promise<Row[]>,
    last: number,
  ) =>
    atOneMoment(context, asker, async (snapshot) => {
      await assertSameBlock(snapshot, row);
      return read(snapshot, row, last);
    });
  yield Buffer.from(`${JSON.stringify({ meta, transaction: told }).slice(0, -2)},"logs":[`);
  yield* listPieces(logs, logJson, ({ log_index }) => behind(logsBehind, log_index));
  yield Buffer.from('],"transfers":[');
  yield* listPieces(transfers, transferJson, ({ seq }) => behind(transfersBehind, seq));
  yield Buffer.from("]}}");
}

async function* listPieces<Row>(
  first: readonly Row[],
  json: (row: Row) => object,
  behind: (last: Row) => Promise<readonly Row[]>,
): AsyncGenerator<Buffer, void> {
  let rows = first;
  for (let comma = ""; ; comma = ",") {
    const last = rows.at(-1);
    if (last === undefined) return;
    yield Buffer.from(comma + rows.map((row) => JSON.stringify(json(row))).join(","));
    if (rows.length < PIECE_ROWS) return;
    rows = await behind(last);
  }
}

/** @throws NOT_FOUND where the index was made anew of a chain that has another block there */
async function assertSameBlock(
  { sql }: Snapshot,
  { height, block_hash: wanted }: TransactionRow,
): Promise<void> {
  if ((await blockHashAt(sql, height)) === hexOf(wanted)) return;
  throw new IndexerError("NOT_FOUND", `block ${height} is another one by now`);
}

/** Whether the pool has it is asked of the node, which may not answer. */
async function unknownHash(
  { node }: ApiContext,
  hash: Hash32,
  indexedHeight: number,
  signal: AbortSignal,
): Promise<IndexerError> {
  const pending = await node.transactionStatus(hash, { signal }).then(
    ({ status }) => status === "pending" || status === "queued" || status === "included",
    () => null,
  );
  const word = pending === null ? "unknown" : pending ? "yes" : "no";
  const message = `no such transaction in blocks up to ${indexedHeight}; pending: ${word}`;
  return new IndexerError("NOT_FOUND", message, { details: { indexedHeight, pending } });
}
