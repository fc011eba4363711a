/** Use case of the watcher: book a run of blocks. */
import { type NewSighting, recordSightings } from "../assets/token-sightings.js";
import {
  IS_OF_OTHER_CODE,
  MAY_GO_ON,
  type ObservedCode,
  observeCodes,
  otherCodeOf,
  readPausedTokens,
  reasonsOf,
  type TokenCode,
  type TokenState,
} from "../assets/token-state.js";
import { CREDIT_CONFIRMATIONS } from "../../chain/confirmations.js";
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import type { Sql, SqlDatabase } from "../../runtime/sql/sql.js";
import {
  DEPOSIT_ADDRESSES,
  walletAccount,
  parseCustomerId,
  SUSPENSE,
} from "../journal/accounts.js";
import { addressesFrom, type DepositAddress } from "../deposits/deposit-addresses.js";
import { depositEntries, withoutUndecided } from "../deposits/deposit-credit.js";
import { creditedEvent } from "../deposits/deposit-events.js";
import type { DepositStatus } from "../deposits/deposit-queries.js";
import { surplusKey } from "../deposits/suspense.js";
import { LedgerError } from "../errors.js";
import { appendEvents, type NewEvent } from "../events.js";
import { postJournals } from "../journal/journal.js";
import {
  storedAddress,
  storedAtoken,
  storedHash,
  storedHeight,
  storedInteger,
} from "../stored-values.js";
import type { PaidTerms } from "../requests/payment-terms.js";
import { bookWalletFlows } from "./wallet-flows.js";
import type { Outflow, WalletInflow } from "../watch/flows.js";
import { noteFound } from "../assets/sweep-due.js";
import { bookTreasuryFlows, withoutLostPayments } from "../treasury/treasury-flows.js";
import { refuseWhileHalted } from "../guard/recovery-incident.js";
import { bookRemined } from "./remined-payments.js";
import {
  depositEvent,
  depositId,
  type FirstRow,
  insertDeposits,
  type NewDeposit,
  placedAfter,
} from "./new-deposits.js";
import { advanceCursor, cursorMoved, lockCursor, type WatchCursor } from "../watch/watch-cursor.js";
import { proveWatchLease, type WatchLease } from "../watch/watch-lease.js";

/** Addresses read at once inside the block step; more are read page by page. */
const ADDRESS_PAGE = 10_000;

/** Everything that a run of consecutive blocks means for the ledger. */
export interface BlockStep {
  /** The right to book, proven in the commit. */
  readonly lease: WatchLease;
  /** Throws, in the commit, where this is not the ledger that was told of, or one behind it. */
  readonly assertStands: (tx: Sql) => Promise<void>;
  /** Hot wallets that the blocks were matched against. */
  readonly walletCount: number;
  /** Tokens that the blocks were matched against. */
  readonly tokenCount: number;
  /** Number of the last assignment of an address that they were matched with. */
  readonly lastAssignment: number;
  /** Where the cursor stood when the blocks were matched. */
  readonly from: WatchCursor;
  /** Last block of the run. */
  readonly height: Height;
  readonly blockHash: Hash32;
  readonly deposits: readonly NewDeposit[];
  readonly walletInflows: readonly WalletInflow[];
  readonly outflows: readonly Outflow[];
  /** What a transaction of the blocks may have paid; absent where nobody has read it. */
  readonly paidBy?: (hash: Hash32) => readonly PaidTerms[];
  /** Absent where no token is looked for. */
  readonly tokens?: TokenFindings | undefined;
}

/** What blocks did to tokens beside deposits and flows. */
export interface TokenFindings {
  /** Code of the tokens that the blocks moved. */
  readonly codes: readonly ObservedCode[];
  readonly sightings: readonly NewSighting[];
  readonly surpluses: readonly TokenSurplus[];
}

/** Units that came to one of our addresses and that no log explains. */
export interface TokenSurplus {
  readonly asset: string;
  readonly address: Address;
  readonly isHotWallet: boolean;
  /** Greater than zero. */
  readonly amountUnits: bigint;
  readonly height: Height;
  /** A transaction of the block that moved the token at this address. */
  readonly txHash: Hash32;
}

/** Whether a run of blocks was booked, with what it brought, or has to be matched again. */
export type BlockStepResult =
  | {
      readonly outcome: "committed";
      readonly newAddresses: readonly DepositAddress[];
      readonly detected: number;
      readonly credited: number;
      readonly foreignOutflows: readonly Outflow[];
      /** Why tokens were stopped by this step, one sentence each. */
      readonly pausedTokens: readonly string[];
      readonly isOtherwise: false;
    }
  /**
   * An address registered meanwhile is touched by these blocks, or there is another wallet or token, or a
   * customer was named: match and verify again.
   */
  | {
      readonly outcome: "match-again";
      readonly newAddresses: readonly DepositAddress[];
      /** There are other wallets, tokens or assignments. */
      readonly isOtherwise: boolean;
    };

/**
 * Books a run of blocks in one transaction: cursor, deposits, credits that are due, postings and
 * events.
 * @param isTouched whether the blocks touch an address that was registered after the matching
 * @throws WATCH_LEASE_LOST, CURSOR_MOVED, DEPOSIT_CONFLICT; RECOVERY and INCIDENT_OPEN, as nothing is
 *   credited before a person has looked, however long ago the blocks were read
 */
export async function commitBlockStep(
  database: SqlDatabase,
  given: BlockStep,
  isTouched: (address: DepositAddress) => boolean,
): Promise<BlockStepResult> {
  const result = await database.transaction<BlockStepResult>(async (tx) => {
    await proveWatchLease(tx, given.lease);
    const cursor = await lockCursor(tx);
    const placed = { ...given, deposits: given.deposits.map(placedAfter(cursor)) };
    if (cursor.height !== placed.from.height || cursor.blockHash !== placed.from.blockHash) {
      throw cursorMoved(placed.from.height);
    }
    await refuseWhileHalted(tx);
    await given.assertStands(tx);
    const newAddresses = await readNewAddresses(tx, placed.from, cursor);
    // Rare, so that nobody asks whether the blocks touch it.
    const isOtherwise = await followsOthers(tx, placed);
    if (isOtherwise || newAddresses.some(isTouched)) {
      return { outcome: "match-again", newAddresses, isOtherwise };
    }
    await advanceCursor(tx, placed);
    failpoint("watcher.in-block-commit");
    // First: what we moved ourselves is nobody's deposit and no foreign outflow.
    const others = await bookTreasuryFlows(tx, { ...placed, rewinds: cursor.rewinds });
    const kept = await withoutLostPayments(tx, others);
    const deposits = await withoutUndecided(tx, kept, cursor.rewinds);
    const outflows = await bookRemined(tx, { ...others, rewinds: cursor.rewinds });
    const step = { ...placed, ...others, outflows, deposits };
    // Before flows and deposits of the same blocks: it decides about both.
    const tokenEvents = await observeCodes(tx, step.tokens?.codes ?? []);
    const paused = await readPausedTokens(tx);
    const otherCode = otherCodes(step.tokens, paused);
    const { paidBy = () => [] } = given;
    const isOfOtherCode = (outflow: Outflow) => otherCode(outflow) !== undefined;
    const flows = { ...step, paidBy, isOfOtherCode, rewinds: cursor.rewinds };
    const foreignOutflows = await bookWalletFlows(tx, flows);
    await bookTokens(tx, step.tokens, cursor.rewinds);
    const known = { paused, otherCode, rewinds: cursor.rewinds };
    const { detected, credited, events } = await bookDeposits(tx, step, known);
    await appendEvents(tx, [...tokenEvents, ...events]);
    failpoint("watcher.before-block-commit");
    return {
      outcome: "committed",
      newAddresses,
      detected,
      credited,
      foreignOutflows,
      pausedTokens: reasonsOf(tokenEvents),
      isOtherwise: false,
    };
  });
  if (result.outcome === "committed") failpoint("watcher.after-block-commit");
  return result;
}

/**
 * Books the step's deposits, and those of before that are due by it.
 * @returns how many of either there were, and the events to append
 */
async function bookDeposits(
  tx: Sql,
  step: Pick<BlockStep, "deposits" | "height">,
  {
    rewinds,
    ...known
  }: {
    readonly rewinds: number;
    readonly paused: ReadonlyMap<string, TokenState>;
    readonly otherCode: OtherCodes;
  },
): Promise<{
  readonly detected: number;
  readonly credited: number;
  readonly events: readonly NewEvent[];
}> {
  const dueHeight = step.height - CREDIT_CONFIRMATIONS + 1;
  const { credited: waited, setAside } = await takeDue(tx, dueHeight);
  const rows = firstRows(step, { dueHeight, ...known });
  await insertDeposits(tx, rows);
  const due = rows.filter(({ status }) => status === "credited");
  const credited = [...waited, ...due.map(({ deposit }) => deposit)];
  const strayed = [...setAside, ...step.deposits.filter((deposit) => !deposit.creditable)];
  const named = (deposit: NewDeposit) => ({ ...deposit, id: depositId(deposit) });
  const booked = { strayed: strayed.map(named), credited: credited.map(named) };
  const { entries, givenUnits } = await depositEntries(tx, booked, rewinds);
  await postJournals(tx, entries);
  const detected = step.deposits.filter((deposit) => deposit.creditable);
  const isHeld = new Set(rows.flatMap((row) => (row.status === "held" ? [row.deposit] : [])));
  const events = [
    ...strayed.map((deposit) => depositEvent("deposit.suspense", deposit)),
    ...detected.map((deposit) =>
      depositEvent(isHeld.has(deposit) ? "deposit.held" : "deposit.detected", deposit),
    ),
    ...credited.map((deposit) =>
      creditedEvent(named(deposit), givenUnits.get(depositId(deposit)) ?? deposit.amountUnits),
    ),
  ];
  return { detected: detected.length, credited: credited.length, events };
}

async function readNewAddresses(
  tx: Sql,
  known: WatchCursor,
  now: WatchCursor,
): Promise<DepositAddress[]> {
  const addresses: DepositAddress[] = [];
  let firstIndex = known.nextAddressIndex;
  while (firstIndex < now.nextAddressIndex) {
    const page = await addressesFrom(tx, { firstIndex, limit: ADDRESS_PAGE });
    const last = page.at(-1);
    if (last === undefined) throw new LedgerError("CORRUPT_ROW", "an address index is missing");
    addresses.push(...page);
    firstIndex = last.index + 1;
  }
  return addresses;
}

/** Whether the ledger has wallets, tokens or assignments that the blocks were not matched against. */
async function followsOthers(
  tx: Sql,
  step: Pick<BlockStep, "walletCount" | "tokenCount" | "lastAssignment">,
): Promise<boolean> {
  const [row] = await tx.query<Record<"wallets" | "tokens" | "assignment", string>>(
    `SELECT (SELECT count(*) FROM wallet)::text AS wallets,
            (SELECT count(*) FROM asset WHERE contract IS NOT NULL)::text AS tokens,
            (SELECT coalesce(max(id), 0) FROM address_assignment)::text AS assignment`,
  );
  return (
    storedInteger(row?.wallets) !== step.walletCount ||
    storedInteger(row?.tokens) !== step.tokenCount ||
    storedInteger(row?.assignment) !== step.lastAssignment
  );
}

/**
 * Which code told of what a token did in a block, where it is paused and that was not the accepted one;
 * undefined of everything else.
 */
type OtherCodes = (place: {
  readonly asset: string;
  readonly height: Height;
}) => TokenCode | undefined;

function otherCodes(
  tokens: Pick<TokenFindings, "codes"> | undefined,
  paused: ReadonlyMap<string, TokenState>,
): OtherCodes {
  const placeOf = (asset: string, height: Height) => `${height} ${asset}`;
  const codes = new Map(
    tokens?.codes.map((seen) => [placeOf(seen.asset, seen.height), seen] as const),
  );
  return ({ asset, height }) => {
    const state = paused.get(asset);
    return state && otherCodeOf(state, codes.get(placeOf(asset, height)));
  };
}

/** Those that wait each with the code that told of it, where that was not the accepted one. */
function firstRows(
  { deposits }: Pick<BlockStep, "deposits">,
  known: {
    readonly dueHeight: Height;
    readonly paused: ReadonlyMap<string, TokenState>;
    readonly otherCode: OtherCodes;
  },
): readonly FirstRow[] {
  return deposits.map((deposit) => {
    const status = firstStatus(deposit, known);
    return status === "held"
      ? { deposit, status, otherCode: known.otherCode(deposit) }
      : { deposit, status };
  });
}

/** When catching up, a deposit may have its confirmations already when it is first seen. */
function firstStatus(
  deposit: NewDeposit,
  {
    dueHeight,
    paused,
  }: { readonly dueHeight: Height; readonly paused: ReadonlyMap<string, unknown> },
): DepositStatus {
  if (!deposit.creditable) return "suspense";
  if (paused.has(deposit.asset)) return "held";
  return deposit.height <= dueHeight ? "credited" : "detected";
}

async function bookTokens(
  tx: Sql,
  tokens: TokenFindings | undefined,
  rewinds: number,
): Promise<void> {
  if (tokens === undefined) return;
  await recordSightings(tx, tokens.sightings, rewinds);
  await postJournals(
    tx,
    tokens.surpluses.map(({ asset, address, isHotWallet, amountUnits, height, txHash }) => ({
      kind: isHotWallet ? "wallet.inflow" : "deposit.surplus",
      idemKey: surplusKey({ height, asset, address }, rewinds),
      effectiveHeight: height,
      memo: `${txHash} ${address}`,
      postings: [
        {
          asset,
          debit: isHotWallet ? walletAccount(address) : DEPOSIT_ADDRESSES,
          credit: SUSPENSE,
          amountUnits,
        },
      ],
    })),
  );
  await noteFound(
    tx,
    tokens.surpluses.filter(({ isHotWallet }) => !isHotWallet),
  );
}

/**
 * Deposits up to a height that wait no more, in the order in which they were seen: they become credited, but
 * for those that only other code told of, which nobody has accepted: they go to suspense.
 */
async function takeDue(
  tx: Sql,
  upToHeight: Height,
): Promise<{ readonly credited: readonly NewDeposit[]; readonly setAside: readonly NewDeposit[] }> {
  const rows = await tx.query<TakenRow>(
    `WITH due AS (
       UPDATE deposit d
          SET status = CASE WHEN ${IS_OF_OTHER_CODE} THEN 'suspense' ELSE 'credited' END
        WHERE seq IN (
         SELECT seq FROM deposit WHERE status = 'detected' AND height <= $1
          UNION ALL
         SELECT seq FROM deposit d WHERE height <= $1 AND ${MAY_GO_ON})
       RETURNING status, seq, address, customer_id, asset, amount_units, height, block_hash, tx_hash,
                 tx_index, op_index, rewind
     ) SELECT * FROM due ORDER BY seq`,
    [upToHeight],
  );
  const taken = (status: DepositStatus) =>
    rows.filter((row) => row.status === status).map(toDeposit);
  return {
    credited: taken("credited"),
    setAside: taken("suspense").map((deposit) => ({ ...deposit, creditable: false })),
  };
}

interface TakenRow {
  readonly status: string;
  readonly address: string;
  readonly customer_id: string;
  readonly asset: string;
  readonly amount_units: string;
  readonly height: string;
  readonly block_hash: string;
  readonly tx_hash: string;
  readonly tx_index: number;
  readonly op_index: number;
  readonly rewind: number;
}

function toDeposit(row: TakenRow): NewDeposit {
  return {
    address: storedAddress(row.address),
    customerId: parseCustomerId(row.customer_id),
    asset: row.asset,
    amountUnits: storedAtoken(row.amount_units),
    height: storedHeight(row.height),
    blockHash: storedHash(row.block_hash),
    txHash: storedHash(row.tx_hash),
    txIndex: row.tx_index,
    opIndex: row.op_index,
    rewind: row.rewind,
    creditable: true,
  };
}
