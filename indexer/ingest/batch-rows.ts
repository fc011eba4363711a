/**
 * From consecutive blocks to the rows of one batch, as texts for COPY. Pure: the same blocks give
 * the same rows. Sums over rows (balances, counts) are made by the database from staged rows.
 */
import type { Address } from "../../chain/address.js";
import type { Height, Hex } from "../../chain/hex.js";
import { allAtOnce, type Steps } from "../../chain/steps/steps.js";
import type { Atoken } from "../../chain/units.js";
import type { RangedBlock, RangedTransaction } from "../../rpc-client/indexing/ranged-block.js";
import { burnedFeesAtoken, paidFeeAtoken } from "../../rpc-client/indexing/paid-fees.js";
import { CopyRows } from "../../runtime/sql/copy-rows.js";
import { type BatchRows, ROW_COLUMNS } from "../store/row-columns.js";
import { NO_TOKEN_ID, UNPROVEN } from "../store/schema.js";
import { type DexEvent, dexEventOf } from "./dex-logs.js";
import { type Transfer, transferSteps } from "./transfers.js";
import { type KnownCoins, WrappedCoins } from "./wrapped-coins.js";

/** Sums since block 0, which each block's row carries on. */
export interface RunningTotals {
  readonly mintedAtoken: Atoken;
  readonly burnedAtoken: Atoken;
}

/** A batch of rows, and what it ends with. */
export interface Batch {
  readonly rows: BatchRows;
  readonly totals: RunningTotals;
  readonly transfers: number;
  /** What was taken for known of wrapped coins, and what the blocks say of them. */
  readonly coins: WrappedCoins;
}

/** The coin's asset. */
const COIN: Hex = "0x";

/** @param totals of the block before the first one */
export function batchOf(blocks: readonly RangedBlock[], totals: RunningTotals): Batch {
  return allAtOnce(batchSteps(blocks, totals));
}

/** The same in steps of a transaction or a transfer. @param known wrapped coins of blocks before */
export function* batchSteps(
  blocks: readonly RangedBlock[],
  totals: RunningTotals,
  known: KnownCoins = new Map(),
): Steps<Batch> {
  const builder = new BatchBuilder(totals, new WrappedCoins(known));
  for (const block of blocks) yield* builder.add(block);
  return builder.finish();
}

/** What is summed for an account's balance of one asset in one block. */
interface Delta {
  readonly address: Address;
  readonly asset: Hex;
  readonly id: bigint;
  credit: bigint;
  debit: bigint;
  fee: bigint;
}

class BatchBuilder {
  private readonly rows: BatchRows = {
    block: new CopyRows(ROW_COLUMNS.block),
    transaction: new CopyRows(ROW_COLUMNS.transaction),
    log: new CopyRows(ROW_COLUMNS.log),
    transfer: new CopyRows(ROW_COLUMNS.transfer),
    address_transaction: new CopyRows(ROW_COLUMNS.address_transaction),
    stage_delta: new CopyRows(ROW_COLUMNS.stage_delta),
    stage_seen: new CopyRows(ROW_COLUMNS.stage_seen),
    stage_token: new CopyRows(ROW_COLUMNS.stage_token),
    stage_pair: new CopyRows(ROW_COLUMNS.stage_pair),
    stage_swap: new CopyRows(ROW_COLUMNS.stage_swap),
    stage_liquidity: new CopyRows(ROW_COLUMNS.stage_liquidity),
    stage_sync: new CopyRows(ROW_COLUMNS.stage_sync),
  };
  private transfers = 0;
  private minted: bigint;
  private burned: bigint;

  constructor(
    totals: RunningTotals,
    private readonly coins: WrappedCoins,
  ) {
    this.minted = totals.mintedAtoken;
    this.burned = totals.burnedAtoken;
  }

  *add(block: RangedBlock): Steps<void> {
    const moved = yield* transferSteps(block, this.coins);
    this.transfers += moved.length;
    this.addBlock(block);
    yield* this.addTransfers(block, moved);
    yield* this.addAccounts(block, moved);
    let logIndex = 0;
    const burned = burnedFeesAtoken(block.transactions);
    for (const transaction of block.transactions) {
      this.addTransaction(block.height, transaction, burned.get(transaction) ?? 0n);
      for (const log of transaction.logs) {
        let topics: Hex = "0x";
        for (const topic of log.topics) topics += topic.slice(2);
        this.rows.log.add(block.height, logIndex, transaction.index, log.address, topics, log.data);
        const event = dexEventOf(log);
        if (event !== undefined) {
          this.addDex(event, log.address, transaction, [block.height, logIndex, transaction.index]);
        }
        logIndex += 1;
      }
      yield;
    }
  }

  finish(): Batch {
    const totals = { mintedAtoken: this.minted, burnedAtoken: this.burned };
    return { rows: this.rows, totals, transfers: this.transfers, coins: this.coins };
  }

  private addBlock(block: RangedBlock): void {
    this.minted += block.mintedAtoken;
    this.burned += block.burnedAtoken;
    const fees = block.transactions.reduce((sum, one) => sum + paidFeeAtoken(one), 0n);
    this.rows.block.add(
      block.height,
      block.hash,
      block.parentHash,
      block.timestampMs,
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
    );
  }

  private addTransaction(
    height: Height,
    transaction: RangedTransaction,
    burnedAtoken: Atoken,
  ): void {
    const failure =
      transaction.status === 1
        ? undefined
        : transaction.changes.find(({ error }) => error !== undefined)?.error;
    const { cosmos } = transaction;
    this.rows.transaction.add(
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
      paidFeeAtoken(transaction),
      burnedAtoken,
      transaction.input,
      failure,
      cosmos?.messages.join(","),
      cosmos?.memo,
    );
  }

  private *addTransfers({ height }: RangedBlock, moved: readonly Transfer[]): Steps<void> {
    const deltas = new Deltas();
    const tokens = new Map<Hex, { standard: string; count: number; supply: bigint }>();
    for (const one of moved) {
      const { txIndex, seq, from, to, amountUnits, kind, tokenId, asset = COIN } = one;
      this.rows.transfer.add(
        height,
        txIndex,
        seq,
        kind,
        one.reason,
        asset,
        from,
        to,
        amountUnits,
        tokenId,
        one.logIndex,
        one.tracePath,
      );
      const id = kind === "erc1155" ? (tokenId ?? NO_TOKEN_ID) : NO_TOKEN_ID;
      const isPaidFee = kind === "fee" && one.reason === "FEE";
      if (from !== undefined) {
        const delta = deltas.of(from, asset, id);
        if (isPaidFee) delta.fee += amountUnits;
        else delta.debit += amountUnits;
      }
      if (to !== undefined) deltas.of(to, asset, id).credit += amountUnits;
      if (one.asset !== undefined) {
        let token = tokens.get(asset);
        if (token === undefined) {
          token = { standard: UNPROVEN, count: 0, supply: 0n };
          tokens.set(asset, token);
        }
        if (token.standard === UNPROVEN && !one.isWrapping) token.standard = kind;
        token.count += 1;
        if (from === undefined) token.supply += amountUnits;
        else if (to === undefined) token.supply -= amountUnits;
      }
      yield;
    }
    for (const { address, asset, id, credit, debit, fee } of deltas.all()) {
      this.rows.stage_delta.add(address, asset, id, height, credit, debit, fee);
    }
    for (const [contract, { standard, count, supply }] of tokens) {
      this.rows.stage_token.add(contract, standard, height, count, supply);
    }
  }

  /** Who was part of which transaction, and how often who was seen. */
  private *addAccounts(block: RangedBlock, moved: readonly Transfer[]): Steps<void> {
    const seen = new Map<Address, Seen>();
    const parties = new Set<Address>();
    let next = 0;
    for (const { index, from, to, contractAddress, status, logs } of block.transactions) {
      parties.clear();
      for (; moved[next]?.txIndex === index; next++) addSides(seen, moved[next], parties);
      parties.add(from);
      if (to !== undefined) parties.add(to);
      if (contractAddress !== undefined && status === 1) {
        parties.add(contractAddress);
        seenOf(seen, contractAddress).contract = true;
      }
      for (const { address } of logs) seenOf(seen, address).contract = true;
      for (const address of parties) {
        seenOf(seen, address).transactions += 1;
        this.rows.address_transaction.add(address, block.height, index);
      }
      yield;
    }
    for (; next < moved.length; next++) addSides(seen, moved[next], undefined);
    for (const [address, { transactions, transfers, contract }] of seen) {
      this.rows.stage_seen.add(address, block.height, transactions, transfers, contract);
    }
  }

  private addDex(
    event: DexEvent,
    address: Address,
    { from: origin }: RangedTransaction,
    place: readonly [height: number, logIndex: number, txIndex: number],
  ): void {
    const [height, logIndex] = place;
    switch (event.type) {
      case "pair": {
        const { pair, factory, token0, token1 } = event;
        this.rows.stage_pair.add(pair, factory, token0, token1, height, logIndex);
        return;
      }
      case "sync":
        this.rows.stage_sync.add(address, height, logIndex, ...event.reserves);
        return;
      case "swap":
        this.rows.stage_swap.add(
          address,
          ...place,
          event.sender,
          event.to,
          origin,
          ...event.amounts,
        );
        return;
      default: {
        const { type, sender, to, amounts } = event;
        this.rows.stage_liquidity.add(address, ...place, type, sender, to, origin, ...amounts);
      }
    }
  }
}

/** Sums of a block, by asset, then by account and id. */
class Deltas {
  private readonly ofAsset = new Map<Hex, Map<string, Delta>>();

  of(address: Address, asset: Hex, id: bigint): Delta {
    const accounts = this.ofAsset.get(asset) ?? new Map<string, Delta>();
    if (accounts.size === 0) this.ofAsset.set(asset, accounts);
    const key = id === NO_TOKEN_ID ? address : `${address} ${id}`;
    const known = accounts.get(key);
    if (known !== undefined) return known;
    const fresh = { address, asset, id, credit: 0n, debit: 0n, fee: 0n };
    accounts.set(key, fresh);
    return fresh;
  }

  *all(): Generator<Delta> {
    for (const accounts of this.ofAsset.values()) yield* accounts.values();
  }
}

/** How often an account was seen in a block. */
interface Seen {
  transactions: number;
  transfers: number;
  contract: boolean;
}

function seenOf(seen: Map<Address, Seen>, address: Address): Seen {
  const known = seen.get(address);
  if (known !== undefined) return known;
  const fresh = { transactions: 0, transfers: 0, contract: false };
  seen.set(address, fresh);
  return fresh;
}

/** Counts a transfer for both sides; they are parties of the transaction that made it. */
function addSides(
  seen: Map<Address, Seen>,
  transfer: Transfer | undefined,
  parties: Set<Address> | undefined,
): void {
  if (transfer === undefined) return;
  const { from, to, kind } = transfer;
  // What the collector got of fees is no transaction of its own.
  const isPart = parties !== undefined && kind !== "fee";
  if (from !== undefined) {
    seenOf(seen, from).transfers += 1;
    if (isPart) parties.add(from);
  }
  if (to !== undefined && to !== from) {
    seenOf(seen, to).transfers += 1;
    if (isPart) parties.add(to);
  }
}
