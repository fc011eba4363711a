/** Receipts of a block, of which there may be more than any answer holds: anybody can log that much. */
import { type Height, toQuantity } from "../chain/hex.js";
import { readList, readObject } from "./answer-fields.js";
import { isTooMuch, isTooMuchAtOnce } from "./errors.js";
import { type JsonRpcClient, resultOf, type RpcOptions } from "./json-rpc.js";

/** Receipts in one exchange; with more than fits into an answer there are fewer. */
const RECEIPTS_AT_ONCE = 16;

/**
 * All of a block: at once where that is not too much, else some of them at a time.
 * @param read makes of each what is kept of it
 */
export async function blockReceipts<Receipt>(
  rpc: JsonRpcClient,
  height: Height,
  read: (receipt: unknown) => Receipt,
  options: RpcOptions,
): Promise<Receipt[]> {
  const at = toQuantity(height);
  let whole: unknown;
  try {
    whole = await rpc.request("eth_getBlockReceipts", [at], options);
  } catch (error) {
    if (!isTooMuch(error)) throw error;
    const block = await rpc.request("eth_getBlockByNumber", [at, false], options);
    const receipts: Receipt[] = [];
    for await (const part of receiptsInParts(rpc, block, options)) {
      for (const receipt of part) receipts.push(read(receipt));
    }
    return receipts;
  }
  return readList(whole, "receipts").map(read);
}

/** Those of a block's transactions in order, each in an answer with as many others as fit. */
export async function* receiptsInParts(
  rpc: JsonRpcClient,
  block: unknown,
  options: RpcOptions,
): AsyncGenerator<readonly unknown[]> {
  const hashes = readList(readObject(block, "block")["transactions"], "transactions");
  let most = RECEIPTS_AT_ONCE;
  for (let next = 0; next < hashes.length; ) {
    const receipts = await readFitting(rpc, hashes.slice(next, next + most), options);
    if (receipts === undefined) {
      most = Math.ceil(most / 2);
      continue;
    }
    yield receipts;
    next += receipts.length;
  }
}

/** The first receipts of some transactions, as many as fit; undefined where fewer are to be asked for. */
async function readFitting(
  rpc: JsonRpcClient,
  hashes: readonly unknown[],
  options: RpcOptions,
): Promise<readonly unknown[] | undefined> {
  const [method, [first]] = ["eth_getTransactionReceipt", hashes];
  if (hashes.length === 1) return [await rpc.request(method, [first], options)];
  try {
    const outcomes = await rpc.batch(
      hashes.map((hash) => ({ method, params: [hash] })),
      options,
    );
    const refused = outcomes.findIndex((outcome) => !outcome.ok && isTooMuchAtOnce(outcome.error));
    const fitting = refused === -1 ? outcomes : outcomes.slice(0, refused);
    return fitting.length === 0 ? undefined : fitting.map(resultOf);
  } catch (error) {
    if (!isTooMuchAtOnce(error)) throw error;
    return undefined;
  }
}
