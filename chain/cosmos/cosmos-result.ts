/** What execution made of a Cosmos transaction, and the one order of a block's transactions. */
import type { BalanceChange } from "../balance-change.js";
import type { AbciEvent } from "../consensus/abci-types.js";
import type { Address } from "../address.js";
import type { CosmosTransaction } from "./cosmos-transaction.js";

/** The result of a Cosmos transaction. */
export interface CosmosResult {
  /** 0 for success; else a code of `codespace`: its messages had no effect, its fee is paid. */
  readonly code: number;
  readonly codespace: string;
  /** In words; "" for success. */
  readonly log: string;
  /** `cosmos.base.abci.v1beta1.TxMsgData`; empty for failures. */
  readonly data: Uint8Array;
  readonly gasUsed: bigint;
  readonly events: readonly AbciEvent[];
}

/** A Cosmos transaction with its signer. */
export interface CosmosBlockTransaction {
  readonly tx: CosmosTransaction;
  readonly from: Address;
}

/** A Cosmos transaction of a block with all that belongs to it. */
export interface MinedCosmosTransaction extends CosmosBlockTransaction {
  /** Place among all transactions of the block, those of the EVM included: that in `data.txs`. */
  readonly index: number;
  readonly result: CosmosResult;
  readonly changes: readonly BalanceChange[];
}

/**
 * Place in `data.txs` of an EVM transaction, by its place among the EVM transactions.
 * @param places places of the Cosmos transactions in `data.txs`, ascending
 */
export function dataIndexOf(evmIndex: number, places: readonly number[]): number {
  let index = evmIndex;
  for (const place of places) {
    if (place > index) break;
    index += 1;
  }
  return index;
}

/** Which transaction has a place in `data.txs`: one of the EVM's, or one of the Cosmos ones. */
export function transactionAt(
  dataIndex: number,
  places: readonly number[],
): { readonly evm: number } | { readonly cosmos: number } {
  let before = 0;
  for (const place of places) {
    if (place === dataIndex) return { cosmos: before };
    if (place > dataIndex) break;
    before += 1;
  }
  return { evm: dataIndex - before };
}

/** Both kinds in the order of `data.txs`. */
export function inDataOrder<Evm, Cosmos extends { readonly index: number }>(
  evm: readonly Evm[],
  cosmos: readonly Cosmos[] = [],
): (Evm | Cosmos)[] {
  if (cosmos.length === 0) return [...evm];
  const ordered: (Evm | Cosmos)[] = [];
  let next = 0;
  for (const one of evm) {
    for (let other = cosmos[next]; other?.index === ordered.length; other = cosmos[++next]) {
      ordered.push(other);
    }
    ordered.push(one);
  }
  return [...ordered, ...cosmos.slice(next)];
}
