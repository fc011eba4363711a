/**
 * What is owed at a block, read when what was paid in it is booked. The worker books a payment some moments
 * behind its block: until then it is owed still, and wallets would sign that more is owed than is.
 */
import type { Height } from "../../../chain/hex.js";
import {
  type LiabilityBooks,
  type OpenPayment,
  readLiabilities,
  readOpenPayments,
} from "../../../ledger/books/liabilities.js";
import { readCursor } from "../../../ledger/watch/watch-cursor.js";
import { sleep } from "../../../runtime/process/task.js";
import type { SqlDatabase } from "../../../runtime/sql/sql.js";
import type { AuditNode } from "../audit-node.js";

/** Time between two looks at what is not booked yet. */
const LOOK_MS = 250;

/** Looks before the proof is made all the same: a frozen payment waits for a person, perhaps for days. */
const MAX_LOOKS = 40;

/** A payment of the block, or of one before it, that is not booked: what it paid is owed in these books. */
export interface UnbookedPayment {
  readonly withdrawalId: string;
  readonly height: Height;
}

/** The block whose books are asked for, and how often they are looked at for it. */
interface Wanted {
  /** A booked block; undefined for the last one. */
  readonly height: Height | undefined;
  readonly looks?: number;
}

/** Where books and chain are asked. */
interface Sources {
  readonly database: SqlDatabase;
  readonly node: Pick<AuditNode, "minedIn">;
  readonly signal: AbortSignal;
}

/**
 * Reads the books, and says what of the block is not in them yet.
 * @throws HEIGHT_NOT_BOOKED, NEGATIVE_LIABILITY; what the node throws, BAD_ANSWER while it does not have the
 *   block; the signal's reason
 */
export async function readSettledBooks(
  { database, node, signal }: Sources,
  { height: wanted, looks = MAX_LOOKS }: Wanted,
): Promise<{ readonly books: LiabilityBooks; readonly unbooked: readonly UnbookedPayment[] }> {
  const { height: last } = await readCursor(database);
  const height = wanted ?? last;
  // A block that is not booked is refused below.
  const most = height <= last ? looks : 0;
  for (let look = 1; look < most; look += 1) {
    const open = await readOpenPayments(database);
    if ((await minedUpTo(node, open, height)).length === 0) break;
    await sleep(LOOK_MS, { signal });
  }
  const books = await readLiabilities(database, { height });
  return { books, unbooked: await minedUpTo(node, books.openPayments, height) };
}

async function minedUpTo(
  node: Sources["node"],
  open: readonly OpenPayment[],
  height: Height,
): Promise<UnbookedPayment[]> {
  const heights = await node.minedIn(
    open.map(({ hash }) => hash),
    height,
  );
  return open.flatMap(({ withdrawalId }, index) => {
    const minedHeight = heights[index];
    if (minedHeight === undefined || minedHeight > height) return [];
    return [{ withdrawalId, height: minedHeight }];
  });
}
