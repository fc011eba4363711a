/** The newest block as subscriptions are sent it: what they share is made once, bit by bit. */
import type { Height } from "../../../../chain/hex.js";
import type { Log } from "../../../../chain/receipt.js";
import { breathe } from "../../../../runtime/process/main-thread.js";
import { OWN_WORK } from "../../../../runtime/process/work-owner.js";
import { placedReceipt } from "../../../view/block-pages.js";
import type { CommittedBlock } from "../../../view/event-bus.js";
import { headerJson, logJson, type MinedReceipt, placeOf } from "../../../view/evm-json.js";
import type { WaitingHashes } from "./waiting-hashes.js";

/** A log of a new block; its text is made when the first subscription wants it. */
export interface LiveLog {
  readonly log: Log;
  readonly text: () => string;
}

/** A block that was just committed, and who waits for transactions that may be in it. */
export class LiveBlock<Waiter> {
  readonly height: Height;
  private headerText: string | undefined;
  private madeLogs: Promise<readonly LiveLog[]> | undefined;
  private found: ReadonlyMap<Waiter, readonly number[]> | undefined;

  constructor(
    private readonly committed: CommittedBlock,
    private readonly waiting: Pick<WaitingHashes<Waiter>, "found">,
  ) {
    this.height = committed.block.header.height;
  }

  get logsBloom(): Uint8Array {
    return this.committed.block.header.logsBloom;
  }

  get transactionCount(): number {
    return this.committed.block.transactions.length;
  }

  header(): string {
    this.headerText ??= headerJson(this.committed.block);
    return this.headerText;
  }

  /** All of its logs, in order. */
  logs(): Promise<readonly LiveLog[]> {
    this.madeLogs ??= liveLogs(this.committed);
    return this.madeLogs;
  }

  /** Receipts that the waiter waits for, in order. */
  receipts(waiter: Waiter): readonly MinedReceipt[] {
    this.found ??= this.waiting.found(this.committed.block.transactions.map(({ tx }) => tx.hash));
    return (this.found.get(waiter) ?? []).map((index) => this.receipt(index));
  }

  private receipt(index: number): MinedReceipt {
    const { block } = this.committed;
    const [mined, placed] = [block.transactions[index], placedReceipt(this.committed, index)];
    if (mined === undefined || placed === undefined) {
      throw new RangeError(`the block has no transaction ${index}`);
    }
    return { mined, placed, at: { place: placeOf(block), index } };
  }
}

async function liveLogs({ block, receipts }: CommittedBlock): Promise<readonly LiveLog[]> {
  const place = placeOf(block);
  const logs: LiveLog[] = [];
  for (const [transactionIndex, receipt] of receipts.entries()) {
    const mined = block.transactions[transactionIndex];
    if (mined === undefined) throw new Error("a receipt has no transaction");
    for (const log of receipt.logs) {
      const at = { transactionHash: mined.tx.hash, transactionIndex, logIndex: logs.length };
      let text: string | undefined;
      logs.push({ log, text: () => (text ??= logJson(log, { ...at, place })) });
      // Nobody's client may end what all others wait for: no signal.
      await breathe(undefined, OWN_WORK);
    }
  }
  return logs;
}
