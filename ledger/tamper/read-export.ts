/**
 * Everything that a person outside needs to check the books: links in order, each with its row as it
 * stands now, rows without a link, and the balances that are kept. Read from one moment of the
 * database.
 */
import { present } from "../../chain/errors.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { storedInteger } from "../stored-values.js";
import { type ChainHead, readHead, readRoot } from "./chainer.js";
import { type CanonicalValue, type ChainRoot, type Link, LINK_KINDS } from "./link-rules.js";
import { type LinkableRow, readLinked, readNeverLinked } from "./linked-rows.js";

/** A link with the row that it is about; null for a row that is gone. */
export interface ExportedLink extends Link {
  readonly row: readonly CanonicalValue[] | null;
}

/** A row that no link is about. */
export interface UnlinkedRow extends LinkableRow {
  /** It lies below rows that are all linked: it came later than its place says. */
  readonly isLate: boolean;
}

/** What is kept of a customer's coins, in the smallest unit. */
export interface KeptBalance {
  readonly customerId: string;
  readonly asset: string;
  readonly available: string;
  readonly held: string;
}

/** Whose a deposit is, which may be said later: no link is about it, but each word about it is an event. */
export interface KeptDeposit {
  readonly depositId: string;
  readonly customerId: string;
  readonly status: string;
}

/**
 * What became of a withdrawal and which key asked for it: no link is about them, but each step is an event,
 * and the decision that took it says who asked.
 */
export interface KeptWithdrawal {
  readonly withdrawalId: string;
  readonly status: string;
  /** Null where no key is known. */
  readonly requestedBy: string | null;
}

/** How a wallet stands: no link is about it, but each change is a row that is linked. */
export interface KeptWallet {
  readonly address: string;
  readonly status: string;
  readonly reason: string;
  readonly operator: string;
}

/** How a decision stands: what became of it is a row that is linked. */
export interface KeptDecision {
  readonly decisionId: number;
  readonly status: string;
  /** Null while it is a proposal. */
  readonly decidedBy: string | null;
}

/** The first line of an export. */
export interface ExportHead extends ChainRoot {
  readonly chainId: string;
  readonly head: ChainHead;
  /** How many there are. */
  readonly deposits: number;
  readonly withdrawals: number;
  readonly wallets: number;
  readonly decisions: number;
}

/** Rows that one statement reads. */
const PAGE_ROWS = 1_000;

/**
 * Time that a look waits for whoever takes its rows: a disk may take many seconds for gigabytes, and who
 * only reads holds up nobody but a migration.
 */
const LONGEST_PAUSE = "1h";

/** Makes the transaction one look at the database; its first statement. */
export async function beginLook(tx: Sql): Promise<void> {
  await tx.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY");
  await tx.query(`SET LOCAL idle_in_transaction_session_timeout = '${LONGEST_PAUSE}'`);
}

/** Reads of which ledger and chain an export is, its last link, and how many rows of each kind follow. */
export async function readExportHead(tx: Sql): Promise<ExportHead> {
  const [row] = await tx.query<{ value: string }>(`SELECT value FROM meta WHERE key = 'chain_id'`);
  const { value: chainId } = present(row, "chain id of the ledger");
  const [counted] = await tx.query<
    Record<"deposits" | "withdrawals" | "wallets" | "decisions", string>
  >(
    `SELECT (SELECT count(*) FROM deposit) AS deposits, (SELECT count(*) FROM withdrawal) AS withdrawals,
            (SELECT count(*) FROM wallet) AS wallets,
            (SELECT count(*) FROM operator_decision) AS decisions`,
  );
  return {
    ...(await readRoot(tx)),
    chainId,
    head: await readHead(tx),
    deposits: storedInteger(counted?.deposits),
    withdrawals: storedInteger(counted?.withdrawals),
    wallets: storedInteger(counted?.wallets),
    decisions: storedInteger(counted?.decisions),
  };
}

/** All links, in their order. */
export async function* readLinks(tx: Sql): AsyncGenerator<ExportedLink> {
  for (let after = 0; ; ) {
    const page = await readPage(tx, after);
    yield* page;
    if (page.length < PAGE_ROWS) return;
    after += page.length;
  }
}

async function readPage(tx: Sql, after: number): Promise<readonly ExportedLink[]> {
  const rows = await tx.query<{
    n: string;
    kind: string;
    row_key: string;
    digest: string;
    previous: string;
    hash: string;
  }>(
    `SELECT n, kind, row_key, digest, previous, hash FROM chain_link WHERE n > $1
       ORDER BY n LIMIT ${PAGE_ROWS}`,
    [after],
  );
  const links = rows.map((row) => ({
    n: storedInteger(row.n),
    kind: present(
      LINK_KINDS.find((kind) => kind === row.kind),
      "kind of a link",
    ),
    key: storedInteger(row.row_key),
    digest: row.digest,
    previous: row.previous,
    hash: row.hash,
  }));
  const found = new Map<string, LinkableRow["row"]>();
  for (const kind of LINK_KINDS) {
    const keys = links.filter((link) => link.kind === kind).map(({ key }) => key);
    if (keys.length === 0) continue;
    for (const { key, row } of await readLinked(tx, kind, keys)) found.set(`${kind} ${key}`, row);
  }
  return links.map((link) => ({ ...link, row: found.get(`${link.kind} ${link.key}`) ?? null }));
}

/** Rows that no link is about, of all kinds: all of them, for a balance follows from each. */
export async function* readUnlinkedRows(tx: Sql): AsyncGenerator<UnlinkedRow> {
  for (const kind of LINK_KINDS) {
    for (let after: number | undefined; ; ) {
      const page = await readNeverLinked(tx, kind, { after, limit: PAGE_ROWS });
      yield* page;
      const end = page.at(-1);
      if (end === undefined || page.length < PAGE_ROWS) break;
      after = end.key;
    }
  }
}

/** All balances that are kept, by customer and asset. */
export async function* readKeptBalances(tx: Sql): AsyncGenerator<KeptBalance> {
  for (let last: readonly [string, string] = ["", ""]; ; ) {
    const rows = await tx.query<{ customer_id: string; asset: string; a: string; h: string }>(
      `SELECT customer_id, asset, available_units::text AS a, held_units::text AS h
         FROM customer_balance WHERE (customer_id, asset) > ($1, $2)
        ORDER BY customer_id, asset LIMIT ${PAGE_ROWS}`,
      [...last],
    );
    for (const row of rows) {
      yield { customerId: row.customer_id, asset: row.asset, available: row.a, held: row.h };
    }
    const end = rows.at(-1);
    if (end === undefined || rows.length < PAGE_ROWS) return;
    last = [end.customer_id, end.asset];
  }
}

/** All deposits as they stand, in the order in which they were seen. */
export async function* readKeptDeposits(tx: Sql): AsyncGenerator<KeptDeposit> {
  for (let last = "0"; ; ) {
    const rows = await tx.query<Record<"seq" | "id" | "customer_id" | "status", string>>(
      `SELECT seq::text, id, customer_id, status FROM deposit WHERE seq > $1::bigint
        ORDER BY deposit.seq LIMIT ${PAGE_ROWS}`,
      [last],
    );
    for (const { id: depositId, customer_id: customerId, status } of rows) {
      yield { depositId, customerId, status };
    }
    const end = rows.at(-1);
    if (end === undefined || rows.length < PAGE_ROWS) return;
    last = end.seq;
  }
}

/** All withdrawals as they stand, in the order in which they were accepted. */
export async function* readKeptWithdrawals(tx: Sql): AsyncGenerator<KeptWithdrawal> {
  for (let last: string | undefined; ; ) {
    const rows = await tx.query<
      Record<"place" | "id" | "status", string> & { readonly by: string | null }
    >(
      `SELECT w.position::text AS place, w.id, w.status, w.requested_by AS by FROM withdrawal w
        WHERE $1::bigint IS NULL OR w.position > $1::bigint
        ORDER BY w.position LIMIT ${PAGE_ROWS}`,
      [last ?? null],
    );
    for (const { id, status, by } of rows) yield { withdrawalId: id, status, requestedBy: by };
    const end = rows.at(-1);
    if (end === undefined || rows.length < PAGE_ROWS) return;
    last = end.place;
  }
}

/** All wallets as they stand: there are a thousand at most. */
export async function* readKeptWallets(tx: Sql): AsyncGenerator<KeptWallet> {
  yield* await tx.query<KeptWallet>(
    `SELECT address, status, reason, operator FROM wallet ORDER BY place`,
  );
}

/** All decisions of operators as they stand, in the order in which they were proposed. */
export async function* readKeptDecisions(tx: Sql): AsyncGenerator<KeptDecision> {
  for (let last = 0; ; ) {
    const rows = await tx.query<{ id: string; status: string; by: string | null }>(
      `SELECT id, status, decided_by AS by FROM operator_decision WHERE id > $1
        ORDER BY id LIMIT ${PAGE_ROWS}`,
      [last],
    );
    for (const { id, status, by } of rows) {
      yield { decisionId: storedInteger(id), status, decidedBy: by };
    }
    const end = rows.at(-1);
    if (end === undefined || rows.length < PAGE_ROWS) return;
    last = storedInteger(end.id);
  }
}
