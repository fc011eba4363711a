/**
 * The code that a token was accepted with, and the switch that stops it: a contract that runs other
 * code may do anything with balances. Its deposits are held and its withdrawals wait until a person
 * accepts the new code; other assets go on.
 */
import { type Hash32, type Height, ZERO_HASH } from "../../chain/hex.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import { lockCursor } from "../watch/watch-cursor.js";
import { proveWatchLease, type WatchLease } from "../watch/watch-lease.js";
import { LedgerError } from "../errors.js";
import { appendEvents, type NewEvent } from "../events.js";
import { parseCustomerId } from "../journal/accounts.js";
import { waitingEvent } from "../deposits/deposit-events.js";
import {
  storedAddress,
  storedAtoken,
  storedHash,
  storedHeight,
  storedTime,
} from "../stored-values.js";

/** The code that a token's contract runs, and whose code it borrows where it is a proxy. */
export interface TokenCode {
  /** Keccak-256 of its code. */
  readonly codeHash: Hash32;
  /** What stands where proxies keep their implementation; zeros where it is none that is known. */
  readonly implementation: Hash32;
}

/** Code as it was seen after a block. */
export interface ObservedCode extends TokenCode {
  readonly asset: string;
  readonly height: Height;
}

/** Which code a token is served with, and whether it is paused as another was seen. */
export interface TokenState {
  readonly asset: string;
  /** Undefined before any code was seen or named. */
  readonly codeHash: Hash32 | undefined;
  /** Undefined likewise, and where only the list named the code. */
  readonly implementation: Hash32 | undefined;
  /** In how many slots the implementation was looked for; see `READ_SLOTS`. */
  readonly readSlots: number;
  /** What was there before it was registered is booked. */
  readonly isOpened: boolean;
  readonly isPaused: boolean;
  /** Why it is paused; empty while it is not. */
  readonly reason: string;
  readonly changedBy: string;
  readonly changedAt: string;
}

/**
 * Slots in which implementations are looked for (`rpc-client/tokens/token-codes.ts`): what was seen in fewer
 * says nothing of the others.
 */
const READ_SLOTS = 4;

/** Of `deposit.held_for`: deposits that wait for the token. */
export const HELD_FOR_TOKEN = "token-paused";

/** Code of a block that nobody knows: no contract's hash is zero. */
const UNKNOWN_CODE: TokenCode = { codeHash: ZERO_HASH, implementation: ZERO_HASH };

/** SQL: whether a deposit `d` waits for a token that is not paused. */
export const MAY_GO_ON = `d.status = 'held' AND d.held_for = '${HELD_FOR_TOKEN}'
  AND NOT EXISTS (SELECT 1 FROM token_state t WHERE t.asset = d.asset AND t.paused)`;

/**
 * SQL: whether a deposit `d` was told of by other code than was accepted then, is accepted now, or has been
 * accepted between. A person who accepts code has read that one, and its balances say nothing of what another
 * one had told. That the token was paused once more before the deposit was credited takes no word back.
 */
export const IS_OF_OTHER_CODE = `(d.other_code_hash IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM token_state t
   WHERE t.asset = d.asset AND t.code_hash = d.other_code_hash
     AND t.implementation = d.other_implementation
  UNION ALL
  SELECT 1 FROM token_state_change c
   WHERE c.asset = d.asset AND c.code_hash = d.other_code_hash
     AND c.implementation = d.other_implementation AND NOT c.paused AND c.at >= d.seen_at))`;

/** SQL: whether the token of a symbol is paused. @param asset SQL of the symbol */
export const isPausedSql = (asset: string) =>
  `EXISTS (SELECT 1 FROM token_state t WHERE t.asset = ${asset} AND t.paused)`;

/** How the reason begins of a paused token; the block's number follows. */
const OTHER_CODE_AFTER = "its contract runs other code after block ";

/**
 * SQL: after which block other code was first seen of a paused token; '0' where nobody knows, NULL
 * while it goes on. Whoever looks again may name a later block: its first word since it last went on counts.
 * On a chain that came back to a block before it other code may run from there on.
 * @param asset SQL of the symbol
 */
export const pausedAfterSql = (asset: string) => `(
  SELECT CASE WHEN t.paused THEN coalesce((
           SELECT least(
                    coalesce(
                      substring(c.reason FROM '^${OTHER_CODE_AFTER}([0-9]+) ')::bigint, 0),
                    (SELECT min(r.to_height) + 1 FROM chain_rewind r WHERE r.at >= c.at))
             FROM token_state_change c
            WHERE c.asset = t.asset AND c.paused AND NOT EXISTS (
              SELECT 1 FROM token_state_change later
               WHERE later.asset = t.asset AND NOT later.paused AND later.id > c.id)
            ORDER BY c.id LIMIT 1), 0)::text END
    FROM token_state t WHERE t.asset = ${asset})`;

/** States of all tokens, by their symbols. */
export function readTokenStates(sql: Sql): Promise<ReadonlyMap<string, TokenState>> {
  return readStates(sql, "");
}

/** States of the paused tokens, by their symbols. */
export function readPausedTokens(sql: Sql): Promise<ReadonlyMap<string, TokenState>> {
  return readStates(sql, "WHERE paused");
}

async function readStates(sql: Sql, where: string): Promise<ReadonlyMap<string, TokenState>> {
  const rows = await sql.query<{
    asset: string;
    opened: boolean;
    code_hash: string | null;
    implementation: string | null;
    read_slots: number;
    paused: boolean;
    reason: string;
    changed_by: string;
    changed_at: unknown;
  }>(`SELECT * FROM token_state ${where} ORDER BY asset`);
  return new Map(
    rows.map((row) => [
      row.asset,
      {
        asset: row.asset,
        codeHash: row.code_hash === null ? undefined : storedHash(row.code_hash),
        implementation: row.implementation === null ? undefined : storedHash(row.implementation),
        readSlots: row.read_slots,
        isOpened: row.opened,
        isPaused: row.paused,
        reason: row.reason,
        changedBy: row.changed_by,
        changedAt: storedTime(row.changed_at),
      },
    ]),
  );
}

/**
 * Holds what was seen against what was accepted: the first code that is seen is pinned, and the first word
 * of a proxy that was taken for none, as former releases did where it has its implementation elsewhere;
 * another one stops the token and holds its deposits that are not credited yet. What a person has accepted
 * says nothing of code that ran in blocks before, of which nobody may have been told: a watcher that is
 * behind and comes to it stops the token again, for the balances of those blocks are that code's word. The
 * caller appends the events last.
 */
export async function observeCodes(
  tx: Sql,
  observed: readonly ObservedCode[],
): Promise<readonly NewEvent[]> {
  const events: NewEvent[] = [];
  for (const seen of observed) {
    const states = await tx.query<PinnedRow & { readonly paused: boolean }>(
      `SELECT code_hash, implementation, read_slots, paused FROM token_state WHERE asset = $1`,
      [seen.asset],
    );
    const [state] = states;
    if (state === undefined || state.paused) continue;
    const { code_hash: codeHash, implementation, read_slots: readSlots } = state;
    if (isAccepted(asFarAsSeen({ codeHash, implementation, readSlots }), seen)) {
      await pin(tx, seen, state);
    } else events.push(...(await pause(tx, seen)));
  }
  return events;
}

/** Pure: accepted code without an implementation that nobody has looked for in all slots. */
function asFarAsSeen({
  codeHash,
  implementation,
  readSlots,
}: MaybeCode & { readonly readSlots: number }): MaybeCode {
  const isNoneOfFew = implementation === ZERO_HASH && readSlots < READ_SLOTS;
  return { codeHash, implementation: isNoneOfFew ? undefined : implementation };
}

/** Pure: whether code is what a token was accepted with; it is where nobody has seen or named any. */
function isAccepted(accepted: MaybeCode, seen: TokenCode): boolean {
  return (
    (accepted.codeHash ?? seen.codeHash) === seen.codeHash &&
    (accepted.implementation ?? seen.implementation) === seen.implementation
  );
}

/** What is accepted of a token's code: nothing yet, its hash alone, or both. */
interface MaybeCode {
  readonly codeHash: Hash32 | string | null | undefined;
  readonly implementation: Hash32 | string | null | undefined;
}

/**
 * Pure: which other code than the accepted one told of what a paused token did in a block;
 * undefined where it was the accepted one. What nobody has looked at may be any code's word.
 * @param seen what it ran after that block
 */
export function otherCodeOf(state: TokenState, seen: TokenCode | undefined): TokenCode | undefined {
  if (seen === undefined) return UNKNOWN_CODE;
  return isAccepted(state, seen) ? undefined : seen;
}

/**
 * Tokens of which code was seen that is not accepted and never was: nobody's word is behind what it tells.
 * @param seen one of each token
 */
export async function withCodeOfNobody(
  sql: Sql,
  seen: readonly Omit<ObservedCode, "height">[],
): Promise<ReadonlySet<string>> {
  const states = await readTokenStates(sql);
  const others = seen.filter((code) => {
    const state = states.get(code.asset);
    return state !== undefined && !isAccepted(asFarAsSeen(state), code);
  });
  if (others.length === 0) return new Set();
  const rows = await sql.query<{ asset: string }>(
    `SELECT asset FROM unnest($1::text[], $2::text[], $3::text[])
              AS seen (asset, code_hash, implementation)
      WHERE NOT EXISTS (SELECT 1 FROM token_state_change c
                         WHERE c.asset = seen.asset AND c.code_hash = seen.code_hash
                           AND c.implementation = seen.implementation AND NOT c.paused)`,
    [
      others.map(({ asset }) => asset),
      others.map(({ codeHash }) => codeHash),
      others.map(({ implementation }) => implementation),
    ],
  );
  return new Set(rows.map(({ asset }) => asset));
}

/**
 * Observations outside of blocks' commits, for tokens that nothing moves: under the watcher's lease and the
 * cursor's lock, as in those. What a watcher saw before another one took over stops nothing: a person may
 * have accepted other code since.
 * @throws WATCH_LEASE_LOST
 */
export function observeCodesNow(
  database: SqlDatabase,
  lease: WatchLease,
  observed: readonly ObservedCode[],
): Promise<readonly NewEvent[]> {
  return database.transaction(async (tx) => {
    await proveWatchLease(tx, lease);
    await lockCursor(tx);
    const events = await observeCodes(tx, observed);
    await appendEvents(tx, events);
    return events;
  });
}

interface PinnedRow {
  readonly code_hash: string | null;
  readonly implementation: string | null;
  readonly read_slots: number;
}

async function pin(
  tx: Sql,
  { asset, codeHash, implementation }: ObservedCode,
  { code_hash: pinned, implementation: named, read_slots: slots }: PinnedRow,
): Promise<void> {
  if (pinned !== null && named !== null && slots >= READ_SLOTS) return;
  await tx.query(
    `UPDATE token_state SET code_hash = $2, implementation = $3, read_slots = $4,
            changed_by = 'watcher', changed_at = now() WHERE asset = $1`,
    [asset, codeHash, implementation, READ_SLOTS],
  );
}

/** @returns what is told: that it is paused, and of each deposit that waits for it from now on */
async function pause(tx: Sql, seen: ObservedCode): Promise<readonly NewEvent[]> {
  const event = await pauseFor(tx, seen, "watcher");
  const rows = await tx.query<
    Record<"id" | "customer_id" | "address" | "amount" | "height" | "tx_hash", string>
  >(
    `WITH waiting AS (
       UPDATE deposit SET status = 'held', held_for = $2 WHERE asset = $1 AND status = 'detected'
       RETURNING seq, id, customer_id, address, amount_units::text AS amount, height, tx_hash)
     SELECT * FROM waiting ORDER BY seq`,
    [seen.asset, HELD_FOR_TOKEN],
  );
  return [
    event,
    ...rows.map((row) =>
      waitingEvent("deposit.held", {
        id: row.id,
        customerId: parseCustomerId(row.customer_id),
        address: storedAddress(row.address),
        asset: seen.asset,
        amountUnits: storedAtoken(row.amount),
        height: storedHeight(row.height),
        txHash: storedHash(row.tx_hash),
      }),
    ),
  ];
}

/** Why tokens were paused, one sentence each, by what is told of it. */
export function reasonsOf(events: readonly NewEvent[]): readonly string[] {
  return events.flatMap(({ type, data }) =>
    type === "token.paused" ? [String(data["reason"])] : [],
  );
}

/** The token is paused for this code: that is what persons are told to look at. */
async function pauseFor(tx: Sql, seen: ObservedCode, by: string): Promise<NewEvent> {
  const { asset, height } = seen;
  const reason =
    `${OTHER_CODE_AFTER}${height} than was accepted (${nameCode(seen)}): ` +
    `causeway tokens accept-code ${asset}`;
  await tx.query(
    `UPDATE token_state SET paused = true, reason = $2, changed_by = $3, changed_at = now()
      WHERE asset = $1`,
    [asset, reason, by],
  );
  return { type: "token.paused", data: { asset, reason, blockNumber: height } };
}

function nameCode({ codeHash, implementation }: TokenCode): string {
  return `code ${codeHash}, implementation ${implementation}`;
}

/**
 * A person's word that a token may go on with the code that it is paused for, or went on with before. Held
 * deposits are credited by the watcher's next commit, as far as their confirmations allow; those of other
 * code (`IS_OF_OTHER_CODE`) go to suspense there. Where the contract runs yet another by now, of which nobody
 * was told, it is paused for that one.
 * @param accepted what the chain shows at this moment
 * @returns deposits that will go to suspense
 * @throws INVALID_DECISION when it is not paused, or not for this code
 */
export async function acceptCode(
  database: SqlDatabase,
  accepted: ObservedCode & { readonly by: string },
): Promise<number> {
  const { asset, codeHash, implementation, by, height } = accepted;
  const setAside = await database.transaction(async (tx) => {
    // The watcher writes states under the cursor's lock.
    await lockCursor(tx);
    const state = (await readTokenStates(tx)).get(asset);
    if (state?.isPaused !== true) {
      throw new LedgerError("INVALID_DECISION", `${asset} is not paused`);
    }
    const isFormer = state.codeHash === codeHash && state.implementation === implementation;
    if (!isFormer && !state.reason.includes(nameCode(accepted))) {
      await appendEvents(tx, [await pauseFor(tx, accepted, by)]);
      return undefined;
    }
    await tx.query(
      `UPDATE token_state SET paused = false, reason = '', code_hash = $2, implementation = $3,
              read_slots = $4, changed_by = $5, changed_at = now() WHERE asset = $1`,
      [asset, codeHash, implementation, READ_SLOTS, by],
    );
    const data = { asset, codeHash, implementation, blockNumber: height };
    const [others] = await tx.query<{ count: number }>(
      `SELECT count(*)::integer AS count FROM deposit d
        WHERE d.asset = $1 AND d.status = 'held' AND d.held_for = $2 AND ${IS_OF_OTHER_CODE}`,
      [asset, HELD_FOR_TOKEN],
    );
    await appendEvents(tx, [{ type: "token.resumed", data }]);
    return others?.count ?? 0;
  });
  if (setAside !== undefined) return setAside;
  throw new LedgerError(
    "INVALID_DECISION",
    `${asset} runs other code by now than it was paused for (${nameCode(accepted)}): look at that, ` +
      "and type this again",
  );
}
