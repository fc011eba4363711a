/**
 * Data that an answer left out, because its block holds more than any answer may: they are asked for
 * by transaction, one at a time, so that no more than one transaction's are on their way.
 */
import type { Hex } from "../../chain/hex.js";
import { readHex, readList, readObject } from "../answer-fields.js";
import { badAnswer } from "../errors.js";
import { type JournaledLog, type JournaledTransaction, parseLog } from "../journal-codec.js";
import type { JsonRpcClient, RpcOptions } from "../json-rpc.js";

/**
 * The transactions with all their data.
 * @throws BAD_ANSWER where the node tells another transaction than it told before
 */
export async function withLeftOut<Transaction extends JournaledTransaction>(
  rpc: JsonRpcClient,
  transactions: readonly Transaction[],
  options: RpcOptions,
): Promise<readonly Transaction[]> {
  const whole: Transaction[] = [];
  for (const transaction of transactions) {
    const input = isInputCut(transaction) ? await readInput(rpc, transaction, options) : undefined;
    const logs = areLogsCut(transaction) ? await readLogs(rpc, transaction, options) : undefined;
    whole.push({
      ...transaction,
      ...(input === undefined ? {} : { input }),
      ...(logs === undefined ? {} : { logs }),
    });
  }
  return whole;
}

/** Whether anything of a transaction was left out. */
export function isCut(transaction: JournaledTransaction): boolean {
  return isInputCut(transaction) || areLogsCut(transaction);
}

function isInputCut({ input, inputSizeBytes }: JournaledTransaction): boolean {
  return sizeOf(input) !== inputSizeBytes;
}

function areLogsCut({ logs }: JournaledTransaction): boolean {
  return logs.some(({ leftOutBytes }) => leftOutBytes !== undefined);
}

async function readInput(
  rpc: JsonRpcClient,
  { hash, input, inputSizeBytes }: JournaledTransaction,
  options: RpcOptions,
): Promise<Hex> {
  const answer = await rpc.request("eth_getTransactionByHash", [hash], options);
  const whole = readHex(readObject(answer, "transaction")["input"], "input");
  if (sizeOf(whole) === inputSizeBytes && whole.startsWith(input)) return whole;
  throw badAnswer(`another input of ${hash} than in its block`);
}

async function readLogs(
  rpc: JsonRpcClient,
  { hash, logs }: JournaledTransaction,
  options: RpcOptions,
): Promise<readonly JournaledLog[]> {
  const answer = await rpc.request("eth_getTransactionReceipt", [hash], options);
  const whole = readList(readObject(answer, "receipt")["logs"], "logs").map(parseLog);
  const isSame = whole.length === logs.length && logs.every((log, at) => agrees(log, whole[at]));
  if (isSame) return whole;
  throw badAnswer(`other logs of ${hash} than in its block`);
}

function agrees(told: JournaledLog, whole: JournaledLog | undefined): boolean {
  return (
    whole !== undefined &&
    whole.address === told.address &&
    whole.topics.join() === told.topics.join() &&
    (told.leftOutBytes === undefined
      ? whole.data === told.data
      : sizeOf(whole.data) === told.leftOutBytes)
  );
}

function sizeOf(hex: Hex): number {
  return (hex.length - 2) / 2;
}
