/**
 * The rows that are linked, read as they are hashed. Columns that change by design (a deposit's status, its
 * customer until a person has said it; a withdrawal's state and wallet; how a wallet or a decision stands)
 * are left out: each of their changes is an event, or a row that is linked, and, where coins move, an entry
 * of its own. An export says beside the links whose each deposit is, which its events have to say, too, which
 * key asked for each withdrawal, as the decision has to that took it, and how wallets and decisions stand.
 */
import type { Sql } from "../../runtime/sql/sql.js";
import { storedInteger, timeTextSql } from "../stored-values.js";
import { type CanonicalValue, LINK_KINDS, type LinkKind } from "./link-rules.js";

/** A row before it is linked. */
export interface LinkableRow {
  readonly kind: LinkKind;
  readonly key: number;
  readonly row: readonly CanonicalValue[];
}

interface RowSource {
  /** Table with its alias `r`. */
  readonly from: string;
  /** Rising key. */
  readonly key: string;
  /** The fields, in the order in which they are hashed: texts, NULL and arrays of them. */
  readonly fields: readonly string[];
}

/** Postings of an entry, in their order. */
const POSTINGS = `(SELECT coalesce(json_agg(json_build_array(p.id::text, p.place::text, p.asset,
    p.debit, p.credit, p.amount_units::text) ORDER BY p.place), '[]')
  FROM posting p WHERE p.journal_id = r.id)`;

const SOURCES: Readonly<Record<LinkKind, RowSource>> = {
  event: {
    from: "event r",
    key: "r.seq",
    fields: ["r.seq::text", "r.epoch::text", "r.type", "r.data::text", timeTextSql("r.at")],
  },
  entry: {
    from: "journal_entry r",
    key: "r.id",
    fields: [
      "r.id::text",
      "r.kind",
      "r.idem_key",
      "r.effective_height::text",
      "r.memo",
      timeTextSql("r.posted_at"),
      POSTINGS,
    ],
  },
  deposit: {
    from: "deposit r",
    key: "r.seq",
    fields: [
      "r.seq::text",
      "r.id",
      "r.address",
      "r.asset",
      "r.amount_units::text",
      "r.height::text",
      "r.block_hash",
      "r.tx_hash",
      "r.tx_index::text",
      "r.op_index::text",
      "r.rewind::text",
      timeTextSql("r.seen_at"),
    ],
  },
  withdrawal: {
    from: "withdrawal r",
    key: "r.position",
    fields: [
      "r.position::text",
      "r.id",
      "r.idempotency_key",
      "r.request_hash",
      "r.customer_id",
      "r.asset",
      "r.destination",
      "r.destination_text",
      "r.amount_units::text",
      timeTextSql("r.expires_at"),
      timeTextSql("r.created_at"),
    ],
  },
  asset: {
    from: "asset r",
    key: "r.id",
    fields: [
      "r.id::text",
      "r.symbol",
      "r.contract",
      "r.decimals::text",
      "r.from_height::text",
      timeTextSql("r.registered_at"),
    ],
  },
  token_state: {
    from: "token_state_change r",
    key: "r.id",
    fields: [
      "r.id::text",
      "r.asset",
      "r.code_hash",
      "r.implementation",
      "r.paused::text",
      "r.reason",
      "r.changed_by",
      timeTextSql("r.at"),
    ],
  },
  sighting: {
    from: "token_sighting r",
    key: "r.id",
    fields: [
      "r.id::text",
      "r.tx_hash",
      "r.height::text",
      "r.block_hash",
      "r.tx_index::text",
      "r.op_index::text",
      "r.rewind::text",
      "r.contract",
      "r.standard",
      "r.address",
      "r.sender",
      "r.claimed::text",
      "r.reason",
      timeTextSql("r.seen_at"),
    ],
  },
  // The text of a policy is bound by its hash, which is what decisions and activations name.
  activation: {
    from: "policy_activation r",
    key: "r.id",
    fields: ["r.id::text", "r.policy_hash", timeTextSql("r.at")],
  },
  listing: {
    from: "policy_listing r",
    key: "r.id",
    fields: ["r.id::text", "r.customer_id", "r.destination", "r.listed::text", timeTextSql("r.at")],
  },
  decision: {
    from: "policy_decision r",
    key: "r.id",
    fields: [
      "r.id::text",
      "r.withdrawal_id",
      "r.policy_hash",
      "r.stage",
      "r.outcome",
      "r.rules::text",
      timeTextSql("r.at"),
    ],
  },
  approval: {
    from: "withdrawal_approval r",
    key: "r.id",
    fields: [
      "r.id::text",
      "r.withdrawal_id",
      "r.key_id",
      "r.decision",
      "r.reason",
      "r.policy_hash",
      "r.digest",
      "r.public_key",
      "r.signature",
      timeTextSql("r.at"),
    ],
  },
  verdict: {
    from: "screening_verdict r",
    key: "r.id",
    fields: ["r.id::text", "r.withdrawal_id", "r.verdict", "r.reference", timeTextSql("r.at")],
  },
  kill_switch: {
    from: "kill_switch r",
    key: "r.id",
    fields: ["r.id::text", "r.level", "r.reason", "r.set_by", timeTextSql("r.at")],
  },
  address: {
    from: "deposit_address r",
    // Indexes begin at 0, and keys of links at 1.
    key: "(r.index + 1)",
    fields: [
      "r.index::text",
      "r.address",
      "r.customer_id",
      "r.from_height::text",
      timeTextSql("r.registered_at"),
    ],
  },
  assignment: {
    from: "address_assignment r",
    key: "r.id",
    fields: ["r.id::text", "r.address", "r.customer_id", timeTextSql("r.assigned_at")],
  },
  // What is proposed never changes; what became of it is a row of its own.
  proposal: {
    from: "operator_decision r",
    key: "r.id",
    fields: [
      "r.id::text",
      "r.kind",
      "r.key",
      "r.terms::text",
      "r.reason",
      "r.needs_second::text",
      "r.proposed_by",
      timeTextSql("r.proposed_at"),
    ],
  },
  outcome: {
    from: "operator_decision_outcome r",
    key: "r.id",
    fields: ["r.id::text", "r.decision_id::text", "r.status", "r.decided_by", timeTextSql("r.at")],
  },
  // Its status has changes of its own.
  wallet: {
    from: "wallet r",
    key: "r.place",
    fields: ["r.place::text", "r.address", "r.label", "r.from_height::text"],
  },
  wallet_change: {
    from: "wallet_change r",
    key: "r.id",
    fields: [
      "r.id::text",
      "r.address",
      "r.former",
      "r.status",
      "r.reason",
      "r.operator",
      timeTextSql("r.at"),
    ],
  },
  acknowledgement: {
    from: "foreign_transaction_acknowledged r",
    key: "r.id",
    fields: [
      "r.id::text",
      "r.tx_hash",
      "r.wallet",
      "r.acknowledged_by",
      "r.reason",
      timeTextSql("r.at"),
    ],
  },
  rewind: {
    from: "chain_rewind r",
    key: "r.id",
    fields: [
      "r.id::text",
      "r.operator",
      "r.from_height::text",
      "r.from_hash",
      "r.to_height::text",
      "r.to_hash",
      "r.evidence::text",
      timeTextSql("r.at"),
    ],
  },
};

/** Tables that the rows lie in. */
export const LINKED_TABLES: readonly string[] = LINK_KINDS.map((kind) =>
  SOURCES[kind].from.replace(/ r$/, ""),
);

/**
 * Where rows without a link are looked for: behind the cursor, or, in a small part of the time, among
 * the last ones. A transaction that took long may have left one further back.
 */
export type LinkReach = "all" | "recent";

/** Keys before the last linked one that are looked at again: what commits at the same time is near. */
const RECENT_KEYS = 1_000;

/** Rows of a kind that have no link yet, by key. */
export async function readUnlinked(
  sql: Sql,
  kind: LinkKind,
  { limit, reach }: { readonly limit: number; readonly reach: LinkReach },
): Promise<readonly LinkableRow[]> {
  const { from, key } = SOURCES[kind];
  return read(
    sql,
    kind,
    `WITH reach AS MATERIALIZED (
       SELECT greatest(
         (SELECT row_key FROM chain_cursor WHERE kind = '${kind}'),
         -- Nothing, and left out, where all are looked at.
         (SELECT max(row_key) - $2::bigint FROM chain_link WHERE kind = '${kind}')) AS after)
     SELECT ${key}::text AS key, ${columnsOf(kind)} FROM ${from}
      WHERE ${key} > (SELECT after FROM reach)
        -- The reach once more: else all links of the kind may be read to find those of a few rows.
        AND NOT EXISTS (SELECT 1 FROM chain_link l WHERE l.kind = '${kind}' AND l.row_key = ${key}
                           AND l.row_key > (SELECT after FROM reach))
      ORDER BY ${key} LIMIT $1`,
    [limit, reach === "all" ? null : RECENT_KEYS],
  );
}

/** Rows of a kind by their keys; what is not there is left out. */
export function readLinked(
  sql: Sql,
  kind: LinkKind,
  keys: readonly number[],
): Promise<readonly LinkableRow[]> {
  const { from, key } = SOURCES[kind];
  return read(
    sql,
    kind,
    `SELECT ${key}::text AS key, ${columnsOf(kind)} FROM ${from} WHERE ${key} = ANY ($1)`,
    [keys],
  );
}

/**
 * Rows of a kind without a link, by key, wherever they are; `isLate` for those that should have one.
 * @param page behind a key, or from the first on, which who forges one may have put anywhere
 */
export async function readNeverLinked(
  sql: Sql,
  kind: LinkKind,
  { after, limit }: { readonly after: number | undefined; readonly limit: number },
): Promise<readonly (LinkableRow & { readonly isLate: boolean })[]> {
  const { from, key } = SOURCES[kind];
  const rows = await sql.query<StoredFields & { readonly is_late: boolean }>(
    `SELECT ${key}::text AS key, ${columnsOf(kind)},
            ${key} <= (SELECT row_key FROM chain_cursor WHERE kind = '${kind}') AS is_late
       FROM ${from}
      WHERE ($2::bigint IS NULL OR ${key} > $2)
        AND NOT EXISTS (SELECT 1 FROM chain_link l WHERE l.kind = '${kind}' AND l.row_key = ${key})
      ORDER BY ${key} LIMIT $1`,
    [limit, after ?? null],
  );
  return rows.map((found) => ({ ...toLinkable(kind, found), isLate: found.is_late }));
}

/** The newest keys at one moment. */
export interface NewestKeys {
  /** By kind; kinds without a row are left out. */
  readonly keys: ReadonlyMap<LinkKind, number>;
  /** What another server, another database and tables that were put back have otherwise. */
  readonly place: string;
}

/** The newest key of each kind, and where it was read. */
export async function newestKeys(sql: Sql): Promise<NewestKeys> {
  const newest = LINK_KINDS.map((kind) => `SELECT '${kind}' AS kind, ${newestKeyOf(kind)} AS key`);
  // A server that started anew has no transaction of before, and costs a look at most.
  const rows = await sql.query<{ place: string; kind: LinkKind; key: string | null }>(
    `SELECT kind, key::text, concat_ws(' ', extract(epoch FROM pg_postmaster_start_time()),
            (SELECT oid FROM pg_database WHERE datname = current_database()),
            'chain_cursor'::regclass::oid) AS place
       FROM (${newest.join(" UNION ALL ")}) AS newest`,
  );
  return {
    keys: new Map(
      rows.flatMap(({ kind, key }) => (key === null ? [] : [[kind, storedInteger(key)] as const])),
    ),
    place: rows[0]?.place ?? "",
  };
}

/**
 * Moves the cursor of a kind over rows that are linked and that nothing can come before any more; never over
 * keys that this database has not given yet.
 */
export async function advanceCursor(sql: Sql, kind: LinkKind, settledKey: number): Promise<void> {
  await sql.query(
    `UPDATE chain_cursor c SET row_key = reach.row_key
       FROM (SELECT least($2::bigint, coalesce(${newestKeyOf(kind)}, 0)) AS row_key) AS reach
      WHERE c.kind = $1 AND c.row_key < reach.row_key`,
    [kind, settledKey],
  );
}

/** SQL: the newest key of a kind; NULL where there is no row. */
function newestKeyOf(kind: LinkKind): string {
  const { from, key } = SOURCES[kind];
  return `(SELECT max(${key}) FROM ${from})`;
}

/** Each field as a column: written as JSON and read again, a row costs twice as much. */
function columnsOf(kind: LinkKind): string {
  return SOURCES[kind].fields.map((field, place) => `${field} AS f${place}`).join(", ");
}

/** A row with its key and the columns of `columnsOf`. */
type StoredFields = Readonly<Record<`f${number}`, CanonicalValue>> & { readonly key: string };

function toLinkable(kind: LinkKind, stored: StoredFields): LinkableRow {
  const row = SOURCES[kind].fields.map((_, place) => stored[`f${place}`] ?? null);
  return { kind, key: storedInteger(stored.key), row };
}

async function read(
  sql: Sql,
  kind: LinkKind,
  text: string,
  parameters: readonly unknown[],
): Promise<readonly LinkableRow[]> {
  const rows = await sql.query<StoredFields>(text, parameters);
  return rows.map((stored) => toLinkable(kind, stored));
}
