/**
 * Methods of /call for readers of many blocks who look for a few accounts: which accounts each
 * transaction names, and whole transactions by their positions. Answers are pieces of what the
 * index keeps. They end where they would become too long or too much would have to be read for them, and
 * before a second block that has to be made again of the node's journal: whoever asked asks again for the
 * rest.
 */
import { breathe } from "../../runtime/process/main-thread.js";
import type { BlockIdentifier } from "../rosetta/identifiers.js";
import { fault, inside } from "../rosetta/request-fields.js";
import { type BlockSource, MAX_READ_BYTES } from "./block-source.js";
import { PARAMETERS, readBlockRange, readWantedTransactions } from "./call-parameters.js";

/** Where the blocks come from. */
export type ReadBlocks = Pick<
  BlockSource,
  "resolve" | "accountsOf" | "keptAccounts" | "block" | "kept"
>;

interface Bounds {
  readonly signal: AbortSignal;
  readonly maxResponseBytes: number;
}

const COMMA = Buffer.from(",");

/**
 * Answer of `block_accounts`: the blocks of a range from its first on, each as `BlockAccounts`. The
 * first is waited for as everywhere, those behind it come if they are there.
 * @throws CALL_PARAMETERS_INVALID; BLOCK_ABOVE_TIP, INDEX_BEHIND of the first block
 */
export async function blockAccounts(
  blocks: ReadBlocks,
  parameters: unknown,
  bounds: Bounds,
): Promise<Buffer> {
  const { from, to } = readBlockRange(parameters);
  const answer = new ListAnswer("blocks", bounds);
  const first = await blocks.resolve({ index: from, hash: undefined });
  await answer.add(await blocks.accountsOf(first));
  for (let index = from + 1; index <= to; index += 1) {
    const record = blocks.keptAccounts(index);
    if (record === undefined) return answer.bytes({ idempotent: false });
    if (!(await answer.add(record))) break;
  }
  return answer.bytes();
}

/**
 * Answer of `block_transactions`: the transactions in the order in which they were asked for, as
 * /block has them.
 * @throws CALL_PARAMETERS_INVALID, BLOCK_NOT_FOUND, BLOCK_ABOVE_TIP, BLOCK_IDENTIFIER_MISMATCH
 */
export async function blockTransactions(
  blocks: ReadBlocks,
  parameters: unknown,
  bounds: Bounds,
): Promise<Buffer> {
  const answer = new ListAnswer("transactions", bounds);
  let readBytes = 0;
  for (const [place, { block, positions }] of readWantedTransactions(parameters).entries()) {
    if (readBytes > MAX_READ_BYTES && !answer.isEmpty) return answer.bytes();
    const identifier = await blocks.resolve(block);
    // Both bounds hold behind a first piece: what gives none is not read at all.
    if (positions.length === 0) continue;
    const kept = blocks.kept(identifier);
    if (kept === undefined && !answer.isEmpty) return answer.bytes({ idempotent: false });
    const encoded = kept ?? (await blocks.block(identifier));
    readBytes += encoded.sizeBytes;
    for (const [number, position] of positions.entries()) {
      if (position >= encoded.transactionCount) throw noPosition(block, place, number);
      // A copy: a part of the block would keep all of it in memory until the answer is complete.
      const piece = Buffer.from(encoded.transactionAt(position));
      if (!(await answer.add(piece))) return answer.bytes();
    }
  }
  return answer.bytes();
}

function noPosition({ index }: BlockIdentifier, place: number, number: number): Error {
  const at = inside(inside(PARAMETERS, "blocks"), place);
  return fault(inside(inside(at, "positions"), number), `a position in block ${index}`);
}

/** A result with one list of finished JSON; the first piece always has room. */
class ListAnswer {
  private readonly pieces: Buffer[] = [];
  private sizeBytes = 0;

  constructor(
    private readonly name: string,
    private readonly bounds: Bounds,
  ) {}

  get isEmpty(): boolean {
    return this.pieces.length === 0;
  }

  /** @returns false where there is no room for the piece */
  async add(piece: Buffer): Promise<boolean> {
    const { signal, maxResponseBytes } = this.bounds;
    const isFirst = this.isEmpty;
    if (!isFirst && this.sizeBytes + piece.length > maxResponseBytes) return false;
    if (!isFirst) this.pieces.push(COMMA);
    this.pieces.push(piece);
    this.sizeBytes += piece.length + COMMA.length;
    await breathe(signal);
    return true;
  }

  /** @param options.idempotent false where the same question may have a longer answer later */
  bytes({ idempotent } = { idempotent: true }): Buffer {
    const opening = Buffer.from(`{"result":{"${this.name}":[`);
    const ending = Buffer.from(`]},"idempotent":${idempotent}}`);
    return Buffer.concat([opening, ...this.pieces, ending]);
  }
}
