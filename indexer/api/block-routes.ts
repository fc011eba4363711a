/** Blocks, the chain's supply, and the way from a block's name to its height. */
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import type { HttpRoute } from "../../runtime/http/http-route.js";
import { IndexerError } from "../errors.js";
import { LIVE_SCHEMA as s, NO_TOKEN_ID } from "../store/schema.js";
import { invalidField, readAt, readHashText, readTime } from "./inputs.js";
import { directionOf, type ListKind, listReply, Where } from "./pages.js";
import { type ApiContext, atOneMoment, bytesOf, hexOf, metaOf, type Snapshot } from "./reads.js";

/** A block's row. */
interface BlockRow {
  readonly height: number;
  readonly hash: Buffer;
  readonly parent_hash: Buffer;
  readonly time: Date;
  readonly proposer: Buffer;
  readonly gas_used: string;
  readonly gas_limit: string;
  readonly transactions: number;
  readonly size_bytes: number;
  readonly minted: string;
  readonly burned: string;
  readonly fees: string;
}

const BLOCKS: ListKind<BlockRow> = {
  name: "blocks",
  filters: ["order"],
  rows: ({ snapshot, filters, ceiling, after, limit }) => {
    const { sign, word } = directionOf(filters);
    const where = new Where().and("height <= ?", ceiling);
    if (after !== undefined) where.and(`height ${sign} ?`, after[0]);
    return snapshot.sql.query(
      `SELECT * FROM ${s}.block ${where.text()} ORDER BY height ${word} LIMIT ${limit}`,
      where.parameters,
    );
  },
  item: blockJson,
  position: ({ height }) => [height],
};

function blockJson(row: BlockRow) {
  return {
    height: row.height,
    hash: hexOf(row.hash),
    parentHash: hexOf(row.parent_hash),
    time: row.time.toISOString(),
    proposer: hexOf(row.proposer),
    gasUsed: row.gas_used,
    gasLimit: row.gas_limit,
    transactions: row.transactions,
    sizeBytes: row.size_bytes,
    minted: row.minted,
    burned: row.burned,
    fees: row.fees,
  };
}

interface SupplyRow {
  readonly height: number;
  readonly time: Date;
  readonly total_minted: string;
  readonly total_burned: string;
}

function supplyPointJson({ height, time, total_minted, total_burned }: SupplyRow) {
  return {
    height,
    time: time.toISOString(),
    total: (BigInt(total_minted) - BigInt(total_burned)).toString(),
    minted: total_minted,
    burned: total_burned,
  };
}

/**
 * The usual one would be an account like any other on a chain whose genesis names another one.
 * @throws BURN_ADDRESS_UNKNOWN
 */
function burnAddressOf({ burnAddress }: ApiContext): Address {
  const told = burnAddress();
  if (told !== undefined) return told;
  const message =
    "the node has not told yet at which address coins are burned on this chain: ask again when it answers";
  throw new IndexerError("BURN_ADDRESS_UNKNOWN", message);
}

/** What there is at a height, and what of it lies where nobody reaches it. */
async function supplyJson({ sql }: Snapshot, height: Height, burnAddress: Address) {
  const [row] = await sql.query<{
    total_minted: string;
    total_burned: string;
    out_of_reach: string | null;
  }>(
    `SELECT total_minted, total_burned, (
       SELECT amount FROM ${s}.balance_history h
       WHERE h.address = $2 AND h.asset = ''::bytea AND h.token_id = ${NO_TOKEN_ID}
         AND h.height <= $1 ORDER BY h.height DESC LIMIT 1) AS out_of_reach
     FROM ${s}.block WHERE height = $1`,
    [height, bytesOf(burnAddress)],
  );
  const minted = BigInt(row?.total_minted ?? "0");
  const burned = BigInt(row?.total_burned ?? "0");
  return {
    height,
    total: (minted - burned).toString(),
    minted: minted.toString(),
    burned: burned.toString(),
    burnAddress: BigInt(row?.out_of_reach ?? "0").toString(),
  };
}

/** At most `points` heights from 0 to the last one, both among them. */
function evenHeights(last: Height, points: number): Height[] {
  const steps = Math.min(points - 1, last);
  if (steps === 0) return [last];
  return Array.from({ length: steps + 1 }, (_, index) => Math.round((index * last) / steps));
}

/** Handlers of `/v1/blocks` and `/v1/supply`; transactions of a block are elsewhere. */
export function blockRoutes(context: ApiContext): readonly HttpRoute[] {
  return [
    {
      method: "get",
      path: "/v1/blocks",
      handler: (request) => listReply(context, BLOCKS, request),
    },
    {
      method: "get",
      path: "/v1/blocks/by-time",
      handler: (request) =>
        atOneMoment(context, request, async (snapshot) => {
          const time = readTime(request.query["t"], "t");
          const [row] = await snapshot.sql.query<BlockRow>(
            `SELECT * FROM ${s}.block WHERE time <= $1 ORDER BY time DESC, height DESC LIMIT 1`,
            [time],
          );
          if (row === undefined) throw new IndexerError("NOT_FOUND", "the chain is younger");
          return { body: { meta: metaOf(snapshot), block: blockJson(row) } };
        }),
    },
    {
      method: "get",
      path: "/v1/blocks/{id}",
      handler: (request) =>
        atOneMoment(context, request, async (snapshot) => {
          const height = await heightOf(snapshot, request.params["id"]);
          const [row] = await snapshot.sql.query<BlockRow>(
            `SELECT * FROM ${s}.block WHERE height = $1`,
            [height],
          );
          if (row === undefined) throw noBlock(snapshot);
          return { body: { meta: metaOf(snapshot), block: blockJson(row) } };
        }),
    },
    {
      method: "get",
      path: "/v1/supply",
      handler: (request) =>
        atOneMoment(context, request, async (snapshot) => {
          const at = readAt(snapshot, request.query["at"]) ?? snapshot.progress.height;
          const supply = await supplyJson(snapshot, at, burnAddressOf(context));
          return { body: { meta: metaOf(snapshot), supply } };
        }),
    },
    {
      method: "get",
      path: "/v1/supply/history",
      handler: (request) =>
        atOneMoment(context, request, async (snapshot) => {
          const heights = evenHeights(snapshot.progress.height, Number(request.query["points"]));
          const rows = await snapshot.sql.query<SupplyRow>(
            `SELECT height, time, total_minted, total_burned FROM ${s}.block
             WHERE height = ANY($1::integer[]) ORDER BY height`,
            [heights],
          );
          return { body: { meta: metaOf(snapshot), items: rows.map(supplyPointJson) } };
        }),
    },
  ];
}

/**
 * The height that a block's name means.
 * @param latest what `latest` means: the newest one, but for who has begun to read it earlier
 * @throws NOT_FOUND for a hash that is not indexed or a height above the tip, INVALID_FIELD
 */
export async function heightOf(
  snapshot: Snapshot,
  id: string | undefined,
  latest = snapshot.progress.height,
): Promise<Height> {
  const { progress, sql } = snapshot;
  if (id === "latest") return latest;
  if (id !== undefined && /^[0-9]{1,10}$/.test(id)) {
    const height = Number(id);
    if (height > progress.height) throw noBlock(snapshot);
    return height;
  }
  if (!/^(0x)?[0-9a-f]{64}$/i.test(id ?? "")) {
    throw invalidField("id", "a block is named by its height, its hash, or latest");
  }
  const [row] = await sql.query<{ height: number }>(
    `SELECT height FROM ${s}.block WHERE hash = $1`,
    [bytesOf(readHashText(id))],
  );
  if (row === undefined) throw noBlock(snapshot);
  return row.height;
}

function noBlock({ progress }: Snapshot): IndexerError {
  const message = `no such block up to ${progress.height}`;
  return new IndexerError("NOT_FOUND", message, { details: { indexedHeight: progress.height } });
}
