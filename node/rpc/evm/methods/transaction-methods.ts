/** Transactions by hash and by place, receipts, and sending. */
import { bytesToHex, type Hash32, type Height } from "../../../../chain/hex.js";
import { type BlockTransaction, isEvm } from "../../../../chain/block.js";
import { isCosmosBytes } from "../../../../chain/cosmos/cosmos-transaction.js";
import { AppError, errorCode } from "../../../../chain/errors.js";
import { breathe, doBreathing } from "../../../../runtime/process/main-thread.js";
import { poolRefusal, RefusedTransaction, RpcFault } from "../errors.js";
import type { Steps } from "../../../../chain/steps/steps.js";
import type { PlacedReceipt } from "../../../view/block-pages.js";
import type { ChainView } from "../../../view/chain-view.js";
import type { TransactionPool } from "../../../mempool/pool-port.js";
import {
  logTexts,
  minedTransactionJson,
  pendingTransactionJson,
  placeOf,
  receiptTexts,
} from "../../../view/evm-json.js";
import { LARGE_BYTES } from "../large-lane.js";
import {
  type CallContext,
  JsonPieces,
  type MethodEntries,
  method,
  RawJson,
  type RpcResult,
} from "../method.js";
import {
  parseBlockNumberOrTag,
  parseBytes,
  parseHashParam,
  parseIndex,
  parseMilliseconds,
} from "../params.js";
import { findBlock } from "../reads.js";
import type { ReceiptWaits } from "../receipt-waits.js";
import type { SubmitQueue } from "../submit-queue.js";

/** So much gas pays for some thousand logs at most: such a receipt is made at once. */
const SMALL_GAS = 1_000_000n;

/** What these methods read and write. */
export interface TransactionMethodPorts {
  readonly view: ChainView;
  readonly pool: TransactionPool;
  readonly submits: SubmitQueue;
  readonly waits: ReceiptWaits;
}

/** A transaction that is mined or waits; those of the Cosmos side have hashes of another kind. */
export function transactionOf(
  { view, pool }: Pick<TransactionMethodPorts, "view" | "pool">,
  hash: Hash32,
): BlockTransaction | undefined {
  const location = view.locate(hash);
  if (location !== undefined) return view.transaction(location.height, location.index);
  const pending = pool.get(hash);
  return pending !== undefined && isEvm(pending) ? pending : undefined;
}

/** Methods about single transactions; unknown ones are null, never an error. */
export function transactionMethods(ports: TransactionMethodPorts): MethodEntries {
  return [
    ...readMethods(ports),
    ...receiptMethods(ports),
    ...rawMethods(ports),
    ...sendMethods(ports),
  ];
}

function readMethods({ view, pool }: TransactionMethodPorts): MethodEntries {
  const byPlace = (height: Height | undefined, index: number): RpcResult => {
    const outline = height === undefined ? undefined : view.outline(height);
    const mined = transactionAt(view, height, index);
    if (outline === undefined || mined === undefined) return null;
    return new RawJson(minedTransactionJson(mined, placeOf(outline), index));
  };
  return [
    method("eth_getTransactionByHash", 1, (params) => {
      const hash = params.required(0, parseHashParam);
      const location = view.locate(hash);
      if (location !== undefined) return byPlace(location.height, location.index);
      const pending = pool.get(hash);
      return pending === undefined || !isEvm(pending)
        ? null
        : new RawJson(pendingTransactionJson(pending));
    }),
    method("eth_getTransactionByBlockNumberAndIndex", 2, (params) => {
      const height = findBlock(view, params.required(0, parseBlockNumberOrTag));
      return byPlace(height, params.required(1, parseIndex));
    }),
    method("eth_getTransactionByBlockHashAndIndex", 2, (params) => {
      const height = view.heightOfHash(params.required(0, parseHashParam));
      return byPlace(height, params.required(1, parseIndex));
    }),
  ];
}

function receiptMethods({ view }: TransactionMethodPorts): MethodEntries {
  return [
    method("eth_getTransactionReceipt", 1, (params, context) =>
      receiptIn(view, params.required(0, parseHashParam), receiptTexts, context),
    ),
    method("eth_getTransactionLogs", 1, (params, context) =>
      receiptIn(view, params.required(0, parseHashParam), logTexts, context),
    ),
  ];
}

function rawMethods(ports: TransactionMethodPorts): MethodEntries {
  const { view } = ports;
  return [
    method("eth_getRawTransactionByHash", 1, (params) => {
      return raw(transactionOf(ports, params.required(0, parseHashParam)));
    }),
    method("eth_getRawTransactionByBlockNumberAndIndex", 2, (params) => {
      const height = findBlock(view, params.required(0, parseBlockNumberOrTag));
      return raw(transactionAt(view, height, params.required(1, parseIndex)));
    }),
    method("eth_getRawTransactionByBlockHashAndIndex", 2, (params) => {
      const height = view.heightOfHash(params.required(0, parseHashParam));
      return raw(transactionAt(view, height, params.required(1, parseIndex)));
    }),
  ];
}

function sendMethods({ view, submits, waits }: TransactionMethodPorts): MethodEntries {
  return [
    method(SEND_METHOD, 1, (params) => submits.add(evmBytes(params.required(0, parseBytes)))),
    method(SYNC_SEND_METHOD, 2, async (params, context) => {
      const bytes = evmBytes(params.required(0, parseBytes));
      const waitMs = params.optional(1, parseMilliseconds);
      const hash = await waits.sent(() => submits.add(bytes), waitMs, context.signal);
      try {
        return await receiptIn(view, hash, receiptTexts, context);
      } catch (error) {
        throw withoutReceipt(hash, error);
      }
    }),
  ];
}

function transactionAt(
  view: ChainView,
  height: Height | undefined,
  index: number,
): BlockTransaction | undefined {
  return height === undefined ? undefined : view.transaction(height, index);
}

/** A receipt, or its logs alone, as text; null for a transaction that is in no block. */
function receiptIn(
  view: ChainView,
  hash: Hash32,
  texts: typeof receiptTexts,
  context: CallContext,
): RpcResult | Promise<RpcResult> {
  const location = view.locate(hash);
  if (location === undefined) return null;
  const { height, index } = location;
  const outline = view.outline(height);
  const mined = view.transaction(height, index);
  if (outline === undefined || mined === undefined) return null;
  const make = (receipt: PlacedReceipt) =>
    texts(mined, receipt, { place: placeOf(outline), index });
  if (mined.tx.gasLimit > SMALL_GAS) {
    return inSlices(view.receiptSteps(height, index), make, context);
  }
  const receipt = view.receipt(height, index);
  return receipt === undefined ? null : new RawJson([...make(receipt)].join(""));
}

/** Whoever has sent is told the hash: told only that there was no time, or no room, he might send again. */
function withoutReceipt(hash: Hash32, error: unknown): unknown {
  const code = errorCode(error);
  if (code !== "REQUEST_TIMED_OUT" && code !== "LIMIT_EXCEEDED") return error;
  const text = "The transaction is in a block, but its receipt could not be made in time";
  return new RpcFault("SEND_TIMED_OUT", text, hash);
}

/** What a receipt is read and made of in its turn, and a piece at a time. */
async function inSlices(
  steps: Steps<PlacedReceipt | undefined>,
  make: (receipt: PlacedReceipt) => Iterable<string>,
  context: CallContext,
): Promise<RpcResult> {
  await breathe(context.signal);
  const receipt = await doBreathing(steps, context.signal);
  if (receipt === undefined) return null;
  const answer = new JsonPieces();
  for (const text of make(receipt)) {
    answer.add(text);
    if (answer.sizeBytes > LARGE_BYTES) await context.becameLarge();
    await breathe(context.signal);
  }
  return answer;
}

/** Cosmos transactions come by the consensus RPC: their hash is another kind of hash. */
function evmBytes(bytes: Uint8Array): Uint8Array {
  if (!isCosmosBytes(bytes)) return bytes;
  const refusal = new AppError("TYPE_NOT_SUPPORTED", "transaction type not supported");
  const answer = poolRefusal(refusal);
  throw answer === undefined ? refusal : new RefusedTransaction(answer);
}

function raw(found: { tx: { raw: Uint8Array } } | undefined): RpcResult {
  return found === undefined ? null : bytesToHex(found.tx.raw);
}

/** Its calls of a batch are handed to the pool together, as are those of `SYNC_SEND_METHOD`. */
export const SEND_METHOD = "eth_sendRawTransaction";

/** The other one that sends; its calls wait for a block each. */
export const SYNC_SEND_METHOD = "eth_sendRawTransactionSync";
