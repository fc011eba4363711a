/** Ranges of blocks with transactions, logs and balance changes, as an index of the chain reads them. */
import { type Hash32, type Height, toQuantity } from "../../chain/hex.js";
import { RECORDS_VERSION } from "../../chain/records/records-version.js";
import {
  readAddress,
  readHash,
  readList,
  readObject,
  readOptional,
  readQuantity,
  readSafeQuantity,
} from "../answer-fields.js";
import type { Steps } from "../../chain/steps/steps.js";
import { doBreathing } from "../../runtime/process/main-thread.js";
import { areParamsInvalid, badAnswer } from "../errors.js";
import {
  type JournaledCosmos,
  type JournaledTransaction,
  parseJournaledBlock,
} from "../journal-codec.js";
import type { JsonRpcClient, RpcOptions } from "../json-rpc.js";
import type { RangedBlock, RangedTransaction } from "./ranged-block.js";
import { isCut, withLeftOut } from "./left-out.js";

/** Consecutive blocks from the first one asked for. */
export interface BlockRange {
  readonly blocks: readonly RangedBlock[];
  /** Where to go on; undefined when the range is done. */
  readonly next: Height | undefined;
  readonly head: { readonly height: Height; readonly hash: Hash32 };
}

/** Reads of ranges. */
export interface BlockRangeCalls {
  /**
   * Blocks `from` to `to`, both included, as many as fit into about `maxBytes` (at least one, where
   * there is one).
   */
  blockRange(
    range: { readonly from: Height; readonly to: Height; readonly maxBytes: number },
    options: RpcOptions,
  ): Promise<BlockRange>;
}

/** The calls over a JSON-RPC client. */
export function blockRangeCalls(rpc: JsonRpcClient): BlockRangeCalls {
  return {
    async blockRange({ from, to, maxBytes }, options) {
      const ask = (...more: readonly number[]) =>
        rpc.request(
          "causeway_getBlockRange",
          [toQuantity(from), toQuantity(to), maxBytes, ...more],
          options,
        );
      // A node of before takes no fourth argument.
      const answer = await ask(RECORDS_VERSION).catch((error: unknown) => {
        if (areParamsInvalid(error)) return ask();
        throw error;
      });
      // What decodes transactions is loaded by whoever reads ranges, and not by `causeway status`.
      const { recordSteps } = await import("./record-parser.js");
      const steps = rangeSteps(answer, { from, to }, recordSteps);
      const range = await doBreathing(steps, options.signal);
      const blocks: RangedBlock[] = [];
      for (const block of range.blocks) {
        const { transactions } = block;
        const isWhole = !transactions.some(isCut);
        blocks.push(
          isWhole
            ? block
            : { ...block, transactions: await withLeftOut(rpc, transactions, options) },
        );
      }
      return { ...range, blocks };
    },
  };
}

/**
 * Untrusted answer, in steps: blocks that do not follow each other are refused. Large data may be left out
 * (`isCut`). Throws BAD_ANSWER.
 */
function* rangeSteps(
  value: unknown,
  { from, to }: { readonly from: Height; readonly to: Height },
  recordSteps: (record: unknown) => Steps<RangedBlock>,
): Steps<BlockRange> {
  const answer = readObject(value, "block range");
  const { records } = answer;
  const blocks: RangedBlock[] = [];
  if (records === undefined) {
    for (const block of readList(answer["blocks"], "blocks")) {
      blocks.push(parseRangedBlock(block));
      yield;
    }
  } else {
    for (const block of readList(records, "records")) blocks.push(yield* recordSteps(block));
  }
  blocks.forEach((block, index) => {
    const before = blocks[index - 1];
    if (block.height !== from + index) throw badAnswer("blocks of a range are out of order");
    if (before !== undefined && block.parentHash !== before.hash) {
      throw badAnswer("blocks of a range do not follow each other");
    }
  });
  const next = readOptional(answer["next"], "next", readSafeQuantity);
  if (next !== undefined && (next !== from + blocks.length || next > to || blocks.length === 0)) {
    throw badAnswer("the range goes on where it should not");
  }
  const head = readObject(answer["head"], "head");
  return {
    blocks,
    next,
    head: {
      height: readSafeQuantity(head["height"], "head height"),
      hash: readHash(head["hash"], "head hash"),
    },
  };
}

function parseRangedBlock(value: unknown): RangedBlock {
  const block = readObject(value, "block");
  const journal = parseJournaledBlock(value);
  const raw = readList(block["transactions"], "transactions");
  return {
    ...journal,
    transactions: journal.transactions.map((transaction, index) => {
      const { cosmos, hash } = transaction;
      return cosmos === undefined
        ? withExtras(transaction, parseExtras(raw[index]))
        : { ...withExtras(transaction, extrasOfCosmos(hash, cosmos)), cosmos };
    }),
    proposer: readAddress(block["proposer"], "proposer"),
    gasUsed: readQuantity(block["gasUsed"], "gasUsed"),
    gasLimit: readQuantity(block["gasLimit"], "gasLimit"),
    sizeBytes: readSafeQuantity(block["size"], "size"),
  };
}

type Extras = Omit<RangedTransaction, keyof JournaledTransaction>;

/**
 * Named one by one: an object that is put together of two others by spreading is a table of names to
 * the engine, and this one is read some fifty times.
 */
function withExtras(transaction: JournaledTransaction, extras: Extras): RangedTransaction {
  return {
    hash: transaction.hash,
    index: transaction.index,
    status: transaction.status,
    from: transaction.from,
    to: transaction.to,
    contractAddress: transaction.contractAddress,
    gasUsed: transaction.gasUsed,
    gasPriceAtoken: transaction.gasPriceAtoken,
    nonce: transaction.nonce,
    input: transaction.input,
    inputSizeBytes: transaction.inputSizeBytes,
    changes: transaction.changes,
    logs: transaction.logs,
    valueAtoken: extras.valueAtoken,
    gasLimit: extras.gasLimit,
    type: extras.type,
    sdkHash: extras.sdkHash,
  };
}

/** A Cosmos transaction has no value of its own: its journal says what its messages moved. */
function extrasOfCosmos(sdkHash: Hash32, { gasLimit }: JournaledCosmos): Extras {
  return { valueAtoken: 0n, gasLimit, type: undefined, sdkHash };
}

function parseExtras(value: unknown): Extras {
  const transaction = readObject(value, "transaction");
  return {
    valueAtoken: readQuantity(transaction["value"], "value"),
    gasLimit: readQuantity(transaction["gas"], "gas"),
    type: readSafeQuantity(transaction["type"], "type"),
    sdkHash: readHash(transaction["sdkHash"], "sdkHash"),
  };
}
