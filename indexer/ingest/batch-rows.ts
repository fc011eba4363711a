/**
 * From consecutive blocks to the rows of one batch, as texts for COPY. Pure: the same blocks give
 * the same rows. Sums over rows (balances, counts) are made by the database from staged rows.
 */
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import type { RangedBlock, RangedTransaction } from "../../rpc-client/indexing/block-range.js";
import { copyRow } from "../../runtime/sql/sql-session.js";
import { NO_TOKEN_ID } from "../store/schema.js";
import { type DexEvent, dexEventOf } from "./dex-logs.js";
import { type Transfer, transfersOf } from "./transfers.js";

/** Tables that a batch appends to, and those that it is merged from. */
export interface BatchRows {
  readonly block: string[];
  readonly transaction: string[];
  readonly log: string[];
  readonly transfer: string[];
  readonly activity: string[];
  readonly addressTransaction: string[];
  /** address, asset, token id, height, credit, debit, fee. */
  readonly delta: string[];
  /** address, height, transactions, transfers, is contract. */
  readonly seen: string[];
  /** contract, standard, height, transfers, change of the supply that logs tell of. */
  readonly token: string[];
  readonly pair: string[];
  readonly swap: string[];
  readonly liquidity: string[];
  /** pair, place, reserves. */
  readonly sync: string[];
}

/** Sums since block 0, which each block's row carries on. */
export interface RunningTotals {
  readonly mintedAtoken: bigint;
  readonly burnedAtoken: bigint;
}

/** A batch of rows, and what it ends with. */
export interface Batch {
  readonly rows: BatchRows;
  readonly totals: RunningTotals;
  readonly transfers: number;
}

/** The coin's asset. */
const COIN = "0x";

/** @param totals of the block before the first one */
export function batchOf(blocks: readonly RangedBlock[], totals: RunningTotals): Batch {
  const builder = new BatchBuilder(totals);
  for (const block of blocks) builder.add(block);
  return builder.finish();
}

/** What is summed for an account's balance of one asset in one block. */
interface Delta {
  credit: bigint;
  debit: bigint;
  fee: bigint;
}

class BatchBuilder {
  private readonly rows: BatchRows = {
    block: [],
    transaction: [],
    log: [],
    transfer: [],
    activity: [],
    addressTransaction: [],
    delta: [],
    seen: [],
    token: [],
    pair: [],
    swap: [],
    liquidity: [],
    sync: [],
  };
  private transfers = 0;
  private minted: bigint;
  private burned: bigint;

  constructor(totals: RunningTotals) {
    this.minted = totals.mintedAtoken;
    this.burned = totals.burnedAtoken;
  }

  add(block: RangedBlock): void {
    const moved = transfersOf(block);
    this.transfers += moved.length;
    this.addBlock(block);
    this.addTransfers(block, moved);
    this.addAccounts(block, moved);
    let logIndex = 0;
    for (const transaction of block.transactions) {
      this.addTransaction(block.height, transaction);
      for (const log of transaction.logs) {
        const topics = `0x${log.topics.map((topic) => topic.slice(2)).join("")}`;
        const place = [block.height, logIndex, transaction.index];
        this.rows.log.push(copyRow([...place, log.address, topics, log.data]));
        const event = dexEventOf(log);
        if (event !== undefined) this.addDex(event, log.address, transaction, place);
        logIndex += 1;
      }
    }
  }

  finish(): Batch {
    const totals = { mintedAtoken: this.minted, burnedAtoken: this.burned };
    return { rows: this.rows, totals, transfers: this.transfers };
  }

  private addBlock(block: RangedBlock): void {
    this.minted += block.mintedAtoken;
    this.burned += block.burnedAtoken;
    const fees = block.transactions.reduce((sum, one) => sum + feeAtokenOf(one), 0n);
    this.rows.block.push(
      copyRow([
        block.height,
        block.hash,
        block.parentHash,
        new Date(block.timestampMs).toISOString(),
        block.proposer,
        block.gasUsed,
        block.gasLimit,
        block.transactions.length,
        block.sizeBytes,
        block.mintedAtoken,
        block.burnedAtoken,
        fees,
        this.minted,
        this.burned,
      ]),
    );
  }

  private addTransaction(height: Height, transaction: RangedTransaction): void {
    const failure = transaction.changes.find(({ error }) => error !== undefined)?.error;
    this.rows.transaction.push(
      copyRow([
        height,
        transaction.index,
        transaction.hash,
        transaction.sdkHash,
        transaction.status,
        transaction.from,
        transaction.to,
        transaction.contractAddress,
        transaction.valueAtoken,
        transaction.nonce,
        transaction.type,
        transaction.gasLimit,
        transaction.gasUsed,
        transaction.gasPriceAtoken,
        feeAtokenOf(transaction),
        transaction.input,
        transaction.status === 1 ? undefined : failure,
        transaction.cosmos?.messages.join(","),
        transaction.cosmos?.memo,
      ]),
    );
  }

  private addTransfers({ height }: RangedBlock, moved: readonly Transfer[]): void {
    const deltas = new Map<string, Delta>();
    const tokens = new Map<string, { standard: string; count: number; supply: bigint }>();
    for (const one of moved) {
      const { from, to, amountUnits, kind, tokenId, asset = COIN } = one;
      const place = [height, one.txIndex, one.seq];
      this.rows.transfer.push(
        copyRow([
          ...place,
          kind,
          one.reason,
          asset,
          from,
          to,
          amountUnits,
          tokenId,
          one.logIndex,
          one.tracePath,
        ]),
      );
      if (from !== undefined) {
        const role = from === to ? "self" : "out";
        this.rows.activity.push(copyRow([from, ...place, role, asset]));
      }
      if (to !== undefined && to !== from) {
        this.rows.activity.push(copyRow([to, ...place, "in", asset]));
      }
      const id = kind === "erc1155" ? (tokenId ?? NO_TOKEN_ID) : NO_TOKEN_ID;
      const isPaidFee = kind === "fee" && one.reason === "FEE";
      if (from !== undefined) {
        const delta = deltaOf(deltas, `${from} ${asset} ${id}`);
        if (isPaidFee) delta.fee += amountUnits;
        else delta.debit += amountUnits;
      }
      if (to !== undefined) deltaOf(deltas, `${to} ${asset} ${id}`).credit += amountUnits;
      if (one.asset !== undefined) {
        const token = tokens.get(asset) ?? { standard: kind, count: 0, supply: 0n };
        token.count += 1;
        if (from === undefined) token.supply += amountUnits;
        else if (to === undefined) token.supply -= amountUnits;
        tokens.set(asset, token);
      }
    }
    for (const [key, { credit, debit, fee }] of deltas) {
      const [address, asset, id] = key.split(" ");
      this.rows.delta.push(copyRow([address, asset, id, height, credit, debit, fee]));
    }
    for (const [contract, { standard, count, supply }] of tokens) {
      this.rows.token.push(copyRow([contract, standard, height, count, supply]));
    }
  }

  /** Who was part of which transaction, and how often who was seen. */
  private addAccounts(block: RangedBlock, moved: readonly Transfer[]): void {
    const seen = new Map<Address, { transactions: number; transfers: number; contract: boolean }>();
    const of = (address: Address) => {
      const known = seen.get(address) ?? { transactions: 0, transfers: 0, contract: false };
      seen.set(address, known);
      return known;
    };
    const parties = new Map<number, Set<Address>>();
    for (const { from, to, txIndex, kind } of moved) {
      for (const address of new Set([from, to])) {
        if (address === undefined) continue;
        of(address).transfers += 1;
        // What the collector got of fees is no transaction of its own.
        if (kind !== "fee" && txIndex < block.transactions.length) {
          partiesOf(parties, txIndex).add(address);
        }
      }
    }
    for (const { index, from, to, contractAddress, status, logs } of block.transactions) {
      const all = partiesOf(parties, index).add(from);
      if (to !== undefined) all.add(to);
      if (contractAddress !== undefined && status === 1) {
        all.add(contractAddress);
        of(contractAddress).contract = true;
      }
      for (const { address } of logs) of(address).contract = true;
    }
    for (const [index, addresses] of parties) {
      for (const address of addresses) {
        of(address).transactions += 1;
        this.rows.addressTransaction.push(copyRow([address, block.height, index]));
      }
    }
    for (const [address, { transactions, transfers, contract }] of seen) {
      this.rows.seen.push(copyRow([address, block.height, transactions, transfers, contract]));
    }
  }

  private addDex(
    event: DexEvent,
    address: Address,
    { from: origin }: RangedTransaction,
    place: readonly number[],
  ): void {
    const [height = 0, logIndex = 0] = place;
    switch (event.type) {
      case "pair": {
        const { pair, factory, token0, token1 } = event;
        this.rows.pair.push(copyRow([pair, factory, token0, token1, height, logIndex]));
        return;
      }
      case "sync":
        this.rows.sync.push(copyRow([address, height, logIndex, ...event.reserves]));
        return;
      case "swap":
        this.rows.swap.push(
          copyRow([address, ...place, event.sender, event.to, origin, ...event.amounts]),
        );
        return;
      default: {
        const { type, sender, to, amounts } = event;
        this.rows.liquidity.push(
          copyRow([address, ...place, type, sender, to, origin, ...amounts]),
        );
      }
    }
  }
}

/** A Cosmos transaction pays what it offers, whatever it uses. */
function feeAtokenOf({ cosmos, gasUsed, gasPriceAtoken }: RangedTransaction): bigint {
  return cosmos === undefined ? gasUsed * gasPriceAtoken : cosmos.feeAtoken;
}

function deltaOf(deltas: Map<string, Delta>, key: string): Delta {
  const known = deltas.get(key);
  if (known !== undefined) return known;
  const fresh = { credit: 0n, debit: 0n, fee: 0n };
  deltas.set(key, fresh);
  return fresh;
}

function partiesOf(parties: Map<number, Set<Address>>, index: number): Set<Address> {
  const known = parties.get(index) ?? new Set<Address>();
  parties.set(index, known);
  return known;
}
