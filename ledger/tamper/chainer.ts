/**
 * Appends links for rows that have none, off the path of payments. Links of one batch are one
 * statement; two chainers at once cannot both append, because each hash is followed once.
 */
import { present } from "../../chain/errors.js";
import { breathe } from "../../runtime/process/main-thread.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { SqlError } from "../../runtime/sql/sql-errors.js";
import { storedInteger } from "../stored-values.js";
import {
  type ChainRoot,
  type Link,
  LINK_KINDS,
  type LinkKind,
  nextLink,
  rootHash,
  rowDigest,
} from "./link-rules.js";
import { advanceCursor, type LinkReach, readUnlinked } from "./linked-rows.js";

/** Rows of one kind in one batch: their hashes take some 20 ms. */
const BATCH_ROWS = 2_000;

/** What linking one batch of each kind came to. */
export interface LinkRound {
  /** Rows that were linked; fewer than there are while another chainer is at work. */
  readonly linked: number;
  /** More rows wait for certain: a batch was full, or another chainer came first. */
  readonly hasMore: boolean;
}

/** The last link. */
export type ChainHead = Pick<Link, "n" | "hash">;

/** What the chain of this ledger stands on. */
export async function readRoot(sql: Sql): Promise<ChainRoot> {
  const rows = await sql.query<{ key: string; value: string }>(
    `SELECT key, value FROM meta WHERE key IN ('ledger_id', 'genesis_hash')`,
  );
  const values = new Map(rows.map(({ key, value }) => [key, value]));
  return {
    ledgerId: present(values.get("ledger_id"), "identity of the ledger"),
    genesisHash: present(values.get("genesis_hash"), "genesis of the ledger's chain"),
  };
}

/** The last link; number 0 and the root's hash before the first. */
export async function readHead(sql: Sql): Promise<ChainHead> {
  const rows = await sql.query<{ n: string; hash: string }>(
    `SELECT n, hash FROM chain_link ORDER BY n DESC LIMIT 1`,
  );
  const [row] = rows;
  if (row !== undefined) return { n: storedInteger(row.n), hash: row.hash };
  return { n: 0, hash: rootHash(await readRoot(sql)) };
}

/**
 * Links one batch of each kind: events first, because they are in the order of commits.
 * @param reach "recent" looks among the last rows alone
 * @param settled keys that were settled before this round began: cursors move up to them
 */
export async function linkRows(
  database: SqlDatabase,
  reach: LinkReach = "all",
  settled: ReadonlyMap<LinkKind, number> = new Map(),
): Promise<LinkRound> {
  let linked = 0;
  let hasMore = false;
  for (const kind of LINK_KINDS) {
    const rows = await readUnlinked(database, kind, { limit: BATCH_ROWS, reach });
    if (rows.length > 0) {
      let head: ChainHead = await readHead(database);
      const links: Link[] = [];
      for (const { key, row } of rows) {
        await breathe();
        const link = nextLink(head, { kind, key, digest: rowDigest(row) });
        head = link;
        links.push(link);
      }
      if (!(await append(database, links))) return { linked, hasMore: true };
      linked += links.length;
      hasMore ||= rows.length === BATCH_ROWS;
    }
    const settledKey = settled.get(kind);
    // What is left over is looked for in the next batch.
    if (settledKey !== undefined && reach === "all" && rows.length < BATCH_ROWS) {
      await advanceCursor(database, kind, settledKey);
    }
  }
  return { linked, hasMore };
}

/**
 * Links what is there. What is written meanwhile is left to the next look: on a busy ledger there is
 * always something.
 */
export async function linkAll(
  database: SqlDatabase,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  // First behind the last links: a look at all there is passes over what the batches before it have linked.
  for (const reach of ["recent", "all"] as const) {
    // Where another chainer came first, nothing was linked, and all may be waiting still.
    while ((await linkRows(database, reach)).hasMore) signal.throwIfAborted();
  }
}

/** @returns false when another chainer was there first: nothing was appended then */
async function append(sql: Sql, links: readonly Link[]): Promise<boolean> {
  try {
    await sql.query(
      `INSERT INTO chain_link (n, kind, row_key, digest, previous, hash)
       SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::text[],
                            $6::text[]) AS link (n, kind, row_key, digest, previous, hash)
        ORDER BY n`,
      [
        links.map(({ n }) => n),
        links.map(({ kind }) => kind),
        links.map(({ key }) => key),
        links.map(({ digest }) => digest),
        links.map(({ previous }) => previous),
        links.map(({ hash }) => hash),
      ],
    );
    return true;
  } catch (error) {
    if (error instanceof SqlError && error.code === "UNIQUE_VIOLATION") return false;
    throw error;
  }
}
