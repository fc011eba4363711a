/**
 * What comes back out of the pool's journal, within the pool's room: a journal may hold more than that, of
 * an older version that counted less. Beyond the room nothing stays decoded before it is known what stays.
 */
import type { Address } from "../../chain/address.js";
import type { AnyTransaction } from "../../chain/cosmos/cosmos-transaction.js";
import type { Hash32 } from "../../chain/hex.js";
import { fundsFor, fundsOf, type PoolRules, type StateAtHead } from "./admission/admission.js";
import { decodeStored, storedFault } from "./admission/stored-transactions.js";
import { bySender, createPoolEntry, type PoolEntry } from "./order/pool-entry.js";
import { DISPLACED, UNDERPRICED } from "./pool-draft.js";
import { PoolError } from "./pool-error.js";
import type { PoolJournal } from "./pool-journal.js";
import type { PoolOutcome } from "./sender-draft.js";

/** An entry whose transaction need not be decoded. */
export type StoredEntry = Omit<PoolEntry, "tx"> & {
  readonly tx: Pick<AnyTransaction, "hash" | "nonce" | "raw">;
};

/** All that a journal holds. */
export interface StoredPool {
  /** In order of receipt. */
  readonly entries: readonly StoredEntry[];
  /** What no block can hold, and why. */
  readonly refused: ReadonlyMap<StoredEntry, PoolOutcome>;
}

/**
 * Reads the journal; what exceeds a weight is not kept decoded.
 * @throws INVALID_TRANSACTION for a damaged one
 */
export async function readStoredPool(
  journal: PoolJournal,
  { rules, totalBytes }: { readonly rules: PoolRules; readonly totalBytes: number },
): Promise<StoredPool> {
  // By hash, because one that was dropped and came back may have been written twice.
  const entries = new Map<Hash32, StoredEntry>();
  const refused = new Map<StoredEntry, PoolOutcome>();
  let decodedWeight = 0;
  for await (const { hash, raw, from, receivedAtMs, sequence } of journal.load()) {
    const tx = decodeStored(raw);
    if (tx.hash !== hash) {
      throw new PoolError("INVALID_TRANSACTION", "the pool's journal is damaged", {
        details: { hash },
      });
    }
    const known = entries.get(hash);
    if (known !== undefined && known.sequence >= sequence) continue;
    const reason = storedFault(tx, rules);
    const entry = createPoolEntry(tx, from, { sequence, receivedAtMs });
    const isKept = reason === undefined && decodedWeight + entry.weightBytes <= totalBytes;
    if (isKept) decodedWeight += entry.weightBytes;
    const stored = isKept ? entry : lean(entry);
    entries.set(hash, stored);
    if (known !== undefined) refused.delete(known);
    if (reason !== undefined) refused.set(stored, { status: "dropped", reason });
  }
  const inOrder = [...entries.values()].toSorted((left, right) => left.sequence - right.sequence);
  return { entries: inOrder, refused };
}

function lean(entry: PoolEntry): StoredEntry {
  const { hash, nonce, raw } = entry.tx;
  return { ...entry, tx: { hash, nonce, raw } };
}

/** The entry with its transaction, which is decoded again where it was not kept. */
export function wholeEntry(entry: StoredEntry): PoolEntry {
  return "type" in entry.tx
    ? (entry as PoolEntry)
    : createPoolEntry(decodeStored(entry.tx.raw), entry.from, entry);
}

/**
 * What has to go so that the others fit, and what becomes of it: the longest gapped first, then the cheapest
 * with the later ones of its sender, as where a newcomer needs room. What holds no place, because its nonce
 * is used or a later one has it, goes before all of them; of that nothing is told (undefined).
 */
export function beyondRoom(
  entries: readonly StoredEntry[],
  {
    state,
    totalBytes,
    totalCount,
  }: { readonly state: StateAtHead; readonly totalBytes: number; readonly totalCount: number },
): ReadonlyMap<StoredEntry, PoolOutcome | undefined> {
  const gone = new Map<StoredEntry, PoolOutcome | undefined>();
  let excessBytes = entries.reduce((sum, { weightBytes }) => sum + weightBytes, 0) - totalBytes;
  const fits = () => excessBytes <= 0 && entries.length - gone.size <= totalCount;
  if (fits()) return gone;
  const leave = (entry: StoredEntry, outcome?: PoolOutcome): void => {
    if (gone.has(entry)) return;
    gone.set(entry, outcome);
    excessBytes -= entry.weightBytes;
  };
  const executable = new Map<Address, readonly StoredEntry[]>();
  const placed = new Set<StoredEntry>();
  for (const [from, own] of bySender(entries)) {
    const places = new Map(own.map((entry) => [entry.tx.nonce, entry]));
    const firstNonce = state.nonce(from);
    for (const entry of own) {
      const hasPlace = entry.tx.nonce >= firstNonce && places.get(entry.tx.nonce) === entry;
      if (hasPlace) placed.add(entry);
      else leave(entry);
    }
    executable.set(from, executableOf(places, firstNonce, fundsOf(state, from)));
  }
  const inTurn = new Set([...executable.values()].flat());
  for (const entry of placed) {
    if (fits()) return gone;
    if (!inTurn.has(entry)) leave(entry, DISPLACED);
  }
  for (const entry of [...inTurn].toSorted(byPrice)) {
    if (fits()) return gone;
    const own = executable.get(entry.from) ?? [];
    for (const later of own) if (later.tx.nonce >= entry.tx.nonce) leave(later, UNDERPRICED);
  }
  return gone;
}

/** Those that follow the account's nonce without a gap, as far as its coins reach. */
function executableOf(
  places: ReadonlyMap<bigint, StoredEntry>,
  firstNonce: bigint,
  funds: ReturnType<typeof fundsOf>,
): StoredEntry[] {
  const list: StoredEntry[] = [];
  let [costAtoken, stakeAtoken] = [0n, 0n];
  for (let nonce = firstNonce; ; nonce++) {
    const entry = places.get(nonce);
    if (entry === undefined) return list;
    costAtoken += entry.costAtoken;
    stakeAtoken += entry.stakeAtoken;
    if (costAtoken > fundsFor(funds, stakeAtoken)) return list;
    list.push(entry);
  }
}

/** The cheapest first, of one price the last one that came. */
function byPrice(left: StoredEntry, right: StoredEntry): number {
  if (left.priceAtoken !== right.priceAtoken) return left.priceAtoken < right.priceAtoken ? -1 : 1;
  return right.sequence - left.sequence;
}
