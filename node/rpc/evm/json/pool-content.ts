/**
 * The pool as JSON. It may hold 200,000 transactions, so lists of it are made in slices, and given
 * up where they become larger than an answer may be: each is of its moment, the whole of the time
 * that it took.
 */
import { type Address, toChecksumAddress } from "../../../../chain/address.js";
import { type BlockTransaction, isEvm } from "../../../../chain/block.js";
import { effectiveGasPriceAtoken } from "../../../../chain/transaction.js";
import { breathe } from "../../../../runtime/process/main-thread.js";
import type { SenderContent, TransactionPool } from "../../../mempool/pool-port.js";
import type { PendingTransaction } from "../../../view/event-bus.js";
import { responseTooLarge } from "../errors.js";
import { LARGE_BYTES } from "../large-lane.js";
import { type CallContext, RawJson } from "../method.js";

/** How a transaction of the pool is shown, as JSON text. */
export type Describe = (pending: BlockTransaction) => string;

/** Bounds of one list. */
export interface ListBounds {
  readonly maxBytes: number;
  readonly context: Pick<CallContext, "signal" | "becameLarge">;
}

const PARTS = ["pending", "queued"] as const;

/** Texts that are turned into bytes at a stretch. */
const TEXTS_PER_PIECE = 256;

/** txpool_inspect's line. */
export function summary({ tx }: BlockTransaction): string {
  const gas = `${tx.gasLimit} gas × ${effectiveGasPriceAtoken(tx)} wei`;
  const target = tx.to === undefined ? "contract creation" : toChecksumAddress(tx.to);
  return JSON.stringify(`${target}: ${tx.valueAtoken} wei + ${gas}`);
}

/** txpool_content and txpool_inspect: by sender and nonce. Throws RESPONSE_TOO_LARGE. */
export function contentJson(
  pool: TransactionPool,
  describe: Describe,
  bounds: ListBounds,
): Promise<RawJson> {
  return listsJson(bounds, ["{", "}"], async (lists) => {
    for (const [sender, content] of sendersOnce(pool)) {
      const name = `"${toChecksumAddress(sender)}"`;
      for (const part of PARTS) {
        const own = content[part].filter(isEvm);
        if (own.length > 0) await lists[part].add(`${name}:{`, byNonce(own, describe), "}");
      }
      await breathe(bounds.context.signal);
    }
  });
}

/** txpool_contentFrom. Throws RESPONSE_TOO_LARGE. */
export function contentFromJson(
  { pending, queued }: SenderContent,
  describe: Describe,
  bounds: ListBounds,
): Promise<RawJson> {
  return listsJson(bounds, ["{", "}"], async (lists) => {
    await lists.pending.add("", byNonce(pending.filter(isEvm), describe), "");
    await lists.queued.add("", byNonce(queued.filter(isEvm), describe), "");
  });
}

/** All hashes of EVM transactions in the pool; a sender's in nonce order. */
export function poolHashesJson(pool: TransactionPool, bounds: ListBounds): Promise<RawJson> {
  return listsJson(bounds, ["[", "]"], async (lists) => {
    for (const [, content] of sendersOnce(pool)) {
      for (const part of PARTS) await lists[part].add("", hashes(content[part]), "");
      await breathe(bounds.context.signal);
    }
  });
}

/** A sender that left the pool and came again meanwhile is listed as it was first. */
function* sendersOnce(pool: TransactionPool): Generator<readonly [Address, SenderContent]> {
  const seen = new Set<Address>();
  for (const entry of pool.senders()) {
    const [sender] = entry;
    if (seen.has(sender)) continue;
    seen.add(sender);
    yield entry;
  }
}

function* byNonce(own: readonly BlockTransaction[], describe: Describe): Generator<string> {
  for (const pending of own) yield `"${pending.tx.nonce}":${describe(pending)}`;
}

function* hashes(own: readonly PendingTransaction[]): Generator<string> {
  for (const { tx } of own.filter(isEvm)) yield `"${tx.hash}"`;
}

type Lists = Readonly<Record<(typeof PARTS)[number], PartText>>;

/** The answer's two lists, filled by what is given. */
async function listsJson(
  bounds: ListBounds,
  [open, close]: readonly [string, string],
  fill: (lists: Lists) => Promise<void>,
): Promise<RawJson> {
  const size = { bytes: 0 };
  const lists = { pending: new PartText(size, bounds), queued: new PartText(size, bounds) };
  await fill(lists);
  const between = Buffer.from(`${close},"queued":${open}`);
  return new RawJson(
    Buffer.concat([
      Buffer.from(`{"pending":${open}`),
      ...lists.pending.finish(),
      between,
      ...lists.queued.finish(),
      Buffer.from(`${close}}`),
    ]),
  );
}

/** One list as it grows. */
class PartText {
  private readonly pieces: Buffer[] = [];
  private texts: string[] = [];
  private isEmpty = true;

  constructor(
    /** Size of both lists together. */
    private readonly size: { bytes: number },
    private readonly bounds: ListBounds,
  ) {}

  /** Adds items, separated by commas, with something before the first and behind the last one. */
  async add(before: string, items: Iterable<string>, behind: string): Promise<void> {
    let lead = before;
    for (const item of items) {
      this.push(`${this.isEmpty ? "" : ","}${lead}${item}`);
      this.isEmpty = false;
      lead = "";
      if (this.size.bytes > LARGE_BYTES) await this.bounds.context.becameLarge();
      await breathe(this.bounds.context.signal);
    }
    if (behind !== "") this.push(behind);
  }

  finish(): readonly Buffer[] {
    this.pieces.push(Buffer.from(this.texts.join("")));
    this.texts = [];
    return this.pieces;
  }

  private push(text: string): void {
    this.size.bytes += text.length;
    if (this.size.bytes > this.bounds.maxBytes) throw responseTooLarge();
    this.texts.push(text);
    if (this.texts.length >= TEXTS_PER_PIECE) this.finish();
  }
}
