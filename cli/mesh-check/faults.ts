/** What mesh-check finds: faults that name block, account and currency, in a bounded list. */

/** What can be wrong; stable, for scripts. */
const MESH_FAULT_CODES = [
  "NETWORK_OPTIONS",
  "BLOCK_UNREADABLE",
  "BLOCK_MALFORMED",
  "BLOCK_IDENTIFIER",
  "PARENT_BLOCK",
  "TIMESTAMP",
  "HASH_CASE",
  "DUPLICATE_TRANSACTION",
  "OPERATION_INDEX",
  "RELATED_OPERATION",
  "OPERATION_TYPE",
  "OPERATION_STATUS",
  "OPERATION_AMOUNT",
  "SUPPLY",
  "NEGATIVE_BALANCE",
  "BALANCE_REFUSED",
  "BALANCE_MALFORMED",
  "BALANCE_AT_BLOCK",
  "BALANCE_WITHOUT_OPERATION",
  "BALANCE_BY_HASH",
  "BALANCE_OF_NODE",
  "BLOCK_OF_NODE",
] as const;

/** What is wrong, in one word; stable, for scripts. */
export type MeshFaultCode = (typeof MESH_FAULT_CODES)[number];

/** One thing that is wrong. */
export interface MeshFault {
  readonly code: MeshFaultCode;
  /** Height of the block that it lies in; undefined for faults of the whole server. */
  readonly blockIndex: number | undefined;
  readonly transaction?: string;
  readonly account?: string;
  /** Symbol, and the contract where there is one. */
  readonly currency?: string;
  /** A sentence for people, with the figures. */
  readonly message: string;
}

/** Faults kept; a chain that has more is not worth walking further. */
const MAX_FAULTS = 1_000;

/** Collects faults in the order in which they are found. */
export class FaultList {
  readonly #faults: MeshFault[] = [];

  /** Adds a fault while there is room. */
  add(fault: MeshFault): void {
    if (!this.isFull) this.#faults.push(fault);
  }

  /** True when the walk should end: nothing more would be kept. */
  get isFull(): boolean {
    return this.#faults.length >= MAX_FAULTS;
  }

  get count(): number {
    return this.#faults.length;
  }

  /** By block; those of the whole server first. */
  sorted(): MeshFault[] {
    return this.#faults.toSorted(
      (left, right) => (left.blockIndex ?? -1) - (right.blockIndex ?? -1),
    );
  }
}
