/**
 * How far back a store reaches: pruning and state sync leave a node without its oldest heights.
 * The one owner of that knowledge; block 0 is the exception everywhere, because it is what a chain
 * is known by and is never pruned.
 */
import { readHeight } from "../../chain/encoding/height-bytes.js";
import type { Height } from "../../chain/hex.js";
import {
  type Database,
  metaKey,
  readMeta,
  StoreError,
  storeKey,
  type StoreWrite,
} from "./database.js";

/** Oldest heights that are there; 0 where nothing is missing. */
export interface StoreBases {
  /** Blocks, receipts and records of consensus. */
  readonly base: Height;
  /** Balance journals, and the events that follow from them; at least `base`. */
  readonly journalBase: Height;
  /** Balances, nonces and storage after a block of the past. */
  readonly historyBase: Height;
  /**
   * Proofs of accounts and storage: reverse diffs of the tries are there from the next height on; at least
   * `historyBase`.
   */
  readonly proofBase: Height;
}

const NAMES = ["base", "journalBase", "historyBase", "proofBase"] as const;

/** The writes that set bases; they belong in the same atomic write as what they tell of. */
export function baseWrites(bases: Partial<StoreBases>): StoreWrite[] {
  return NAMES.flatMap((name) => {
    const height = bases[name];
    return height === undefined ? [] : [{ key: metaKey(name), value: Buffer.from(`${height}`) }];
  });
}

/** The bases of an open store, kept in memory. */
export class StoreBase {
  private constructor(
    private readonly database: Database,
    private current: StoreBases,
  ) {}

  /** Reads the bases. Throws STORE_CORRUPT when a stored one is no height. */
  static async open(database: Database): Promise<StoreBase> {
    const base = readBase(database, "base") ?? 0;
    const historyBase = readBase(database, "historyBase") ?? 0;
    const proofBase = readBase(database, "proofBase") ?? (await oldestProof(database));
    return new StoreBase(database, {
      base,
      journalBase: Math.max(base, readBase(database, "journalBase") ?? 0),
      historyBase,
      // A block writes where its own window begins, which may be below it.
      proofBase: Math.max(historyBase, proofBase),
    });
  }

  /** The bases now. */
  get(): StoreBases {
    return this.current;
  }

  /** Throws HISTORY_PRUNED where the block of a height up to the head is gone. */
  assertBlock(height: Height): void {
    assertKept(height, height === 0 ? 0 : this.current.base);
  }

  /** Throws HISTORY_PRUNED where the balance journal of a height up to the head is gone. */
  assertJournal(height: Height): void {
    assertKept(height, height === 0 ? 0 : this.current.journalBase);
  }

  /** Throws HISTORY_PRUNED where accounts and storage after a height up to the head are gone. */
  assertState(height: Height): void {
    assertKept(height, this.current.historyBase);
  }

  /** Throws HISTORY_PRUNED where nothing can be proven any more at a height up to the head. */
  assertProof(height: Height): void {
    assertKept(height, this.current.proofBase);
  }

  /** Refuses proofs below a height whose reverse diffs the next write deletes. */
  raiseProofs(height: Height): void {
    const proofBase = Math.max(this.current.proofBase, height);
    this.current = { ...this.current, proofBase };
  }

  /**
   * Raises bases together with the deletions that make them true. Readers are refused first, so
   * that none sees half of a deleted height; a base never goes down. The write is not fsynced:
   * the next block's is, and a power cut before it brings back deletions and bases alike.
   * @throws STORE_WRITE_FAILED
   */
  async advance(wanted: Partial<StoreBases>, deletions: readonly StoreWrite[]): Promise<void> {
    const raised = new Map(
      NAMES.flatMap((name) => {
        const height = wanted[name];
        return height !== undefined && height > this.current[name] ? [[name, height]] : [];
      }),
    );
    const changed: Partial<StoreBases> = Object.fromEntries(raised);
    this.current = { ...this.current, ...changed };
    const journalBase = Math.max(this.current.journalBase, this.current.base);
    this.current = { ...this.current, journalBase };
    await this.database.write([...deletions, ...baseWrites(changed)], { durable: false });
  }
}

function assertKept(height: Height, oldest: Height): void {
  if (height >= oldest) return;
  throw new StoreError("HISTORY_PRUNED", "pruned history unavailable", {
    details: { height, oldest },
  });
}

function readBase(database: Database, name: keyof StoreBases): Height | undefined {
  const text = readMeta(database, name);
  if (text === undefined) return undefined;
  if (!/^[0-9]{1,15}$/.test(text)) {
    throw new StoreError("STORE_CORRUPT", `the store's ${name} is no height`, {
      details: { value: text },
    });
  }
  return Number(text);
}

/** Of a store that was never told: the height below its oldest reverse diff, else its tip. */
async function oldestProof(database: Database): Promise<Height> {
  const end = Buffer.alloc(8, 0xff);
  const range = { from: storeKey("trieDiff"), to: storeKey("trieDiff", end), limit: 1 };
  for await (const [key] of database.entries(range)) return Math.max(0, readHeight(key, 1) - 1);
  const tip = database.get(storeKey("tip"));
  return tip === undefined ? 0 : readHeight(tip, 0);
}
