/**
 * Deposit addresses that a lost ledger had given out. An index that was told to a customer must not be told
 * to another one: what the first one sends would be credited to the second.
 */
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";
import { LedgerError } from "../errors.js";
import { readLedgerState } from "../guard/ledger-state.js";
import { declareRecovery } from "../guard/recovery-incident.js";

/** Addresses without activity, one after the other, at which the search for more ends. */
const ADDRESS_GAP = 20;

/**
 * The same where nobody remembers how many were given out, and so many behind the last one with activity are
 * given to nobody else: most customers of a day have an address and have sent nothing yet.
 */
export const UNREMEMBERED_ADDRESSES = 1_000;

/** Addresses that one recovery finds at most; a ledger with more needs its backup. */
const MAX_ADDRESSES = 1_000_000;

/** Addresses asked about at once. */
const ADDRESS_BATCH = 250;

/** What a search asks of the chain. */
export interface AddressChain {
  readonly headHeight: () => Promise<Height>;
  /**
   * Whether anything ever moved the coins of each address, up to a block, or it holds a token of the list
   * then; in the order of the addresses.
   */
  readonly areActive: (addresses: readonly Address[], upTo: Height) => Promise<readonly boolean[]>;
  /** The deposit address of an index. */
  readonly addressAt: (index: number) => Address;
}

/** An address that was given out, or may have been, and that the ledger does not know. */
export interface LostAddress {
  readonly index: number;
  readonly address: Address;
}

/** All that is remembered, and beyond it up to the last address that the chain knows. */
export async function findLostAddresses(
  chain: AddressChain,
  range: { readonly known: number; readonly remembered: number; readonly headHeight: Height },
): Promise<LostAddress[]> {
  const { known, headHeight } = range;
  const from = Math.max(known, range.remembered);
  const end = await endOfActive(chain, { known, from, gap: ADDRESS_GAP, upTo: headHeight });
  return indexesFrom(known, end).map((index) => ({ index, address: chain.addressAt(index) }));
}

/** An operator's word that a ledger is older than what was answered from it. */
export interface DeclaredLoss {
  readonly reason: string;
  readonly operator: string;
  /** Of when the backup is that was put back; undefined where nobody says it. */
  readonly backupAt?: Date | undefined;
}

/**
 * Closes a ledger by an operator's word, where no home remembers. Without an index the addresses behind the
 * ledger's last one are kept at once, whatever ends the search of the chain that follows: the ledger is
 * closed then, and the next `recover` may be one that declares nothing.
 * @param lastAddressIndex of the last address that the operator's own records have
 * @throws CORRUPT_ROW where that is further from the ledger's last one than any recovery goes; RECOVERY where
 *   the backup is of a time that is to come
 */
export async function declareLost(
  database: SqlDatabase,
  loss: DeclaredLoss,
  lastAddressIndex: number | undefined,
): Promise<void> {
  const { nextAddressIndex: known, readAt } = await readLedgerState(database);
  const { backupAt } = loss;
  if (backupAt !== undefined && readAt !== undefined && backupAt > new Date(readAt)) {
    throw new LedgerError("RECOVERY", "no backup is of a time that is to come");
  }
  const nextAddressIndex =
    lastAddressIndex === undefined ? known + UNREMEMBERED_ADDRESSES : lastAddressIndex + 1;
  assertFewLost(known, nextAddressIndex);
  await declareRecovery(database, { ...loss, nextAddressIndex });
}

/**
 * Where no record says how many addresses were given out: all that the chain knows may have been, and some
 * behind them. A repeat changes nothing.
 */
export async function keepUnremembered(
  database: SqlDatabase,
  chain: AddressChain,
  loss: DeclaredLoss,
): Promise<void> {
  const { nextAddressIndex: known } = await readLedgerState(database);
  const upTo = await chain.headHeight();
  const range = { known, from: known, gap: UNREMEMBERED_ADDRESSES, upTo };
  const end = await endOfActive(chain, range);
  await declareRecovery(database, { ...loss, nextAddressIndex: end + UNREMEMBERED_ADDRESSES });
}

/** Index behind the last active address from `from` on, before the first gap; `from` where there is none. */
async function endOfActive(
  chain: AddressChain,
  range: {
    readonly known: number;
    readonly from: number;
    readonly gap: number;
    readonly upTo: Height;
  },
): Promise<number> {
  const { known, gap, upTo } = range;
  let end = range.from;
  for (let index = end; index < end + gap; ) {
    assertFewLost(known, end);
    const batch = indexesFrom(index, Math.min(index + ADDRESS_BATCH, end + gap));
    const active = await chain.areActive(
      batch.map((each) => chain.addressAt(each)),
      upTo,
    );
    const last = active.lastIndexOf(true);
    if (last >= 0) end = index + last + 1;
    index += batch.length;
  }
  return end;
}

function assertFewLost(known: number, next: number): void {
  if (next - known <= MAX_ADDRESSES) return;
  throw new LedgerError("CORRUPT_ROW", `more than ${MAX_ADDRESSES} addresses are lost`);
}

function indexesFrom(from: number, end: number): readonly number[] {
  return Array.from({ length: Math.max(0, end - from) }, (_, place) => from + place);
}
