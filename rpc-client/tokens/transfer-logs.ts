/**
 * Transfers of tokens as contracts log them, of any contract: ERC-20, ERC-721 and ERC-1155. A log is
 * what a contract says, not what happened; nothing here judges it.
 */
import { type Address, ZERO_ADDRESS } from "../../chain/address.js";
import { ERC1155_TOPICS, ERC20_TOPICS } from "../../chain/evm/erc20.js";
import { type Hash32, type Height, type Hex, hexToBytes, toQuantity } from "../../chain/hex.js";
import { bloomBits, mayHaveLog } from "../../chain/receipt.js";
import {
  readAddress,
  readHash,
  readHex,
  readList,
  readObject,
  readOptional,
  readSafeQuantity,
} from "../answer-fields.js";
import { badAnswer, isTooMuch, isTooMuchAtOnce } from "../errors.js";
import { assertHasBlock, headerCall, type KnownBlock } from "../at.js";
import { receiptsInParts } from "../block-receipts.js";
import { type JsonRpcClient, resultOf, type RpcOptions } from "../json-rpc.js";

/** One transfer that a contract logged. */
export interface TransferLog {
  readonly height: Height;
  readonly blockHash: Hash32;
  readonly txHash: Hash32;
  readonly txIndex: number;
  /** Position among the logs of the block. */
  readonly logIndex: number;
  readonly contract: Address;
  readonly standard: "erc20" | "erc721" | "erc1155";
  /** Undefined for a mint. */
  readonly from: Address | undefined;
  /** Undefined for a burn. */
  readonly to: Address | undefined;
  /** Units of an ERC-20, or the id of an NFT; undefined where the log names several or none. */
  readonly value: bigint | undefined;
  /** False where topics or data are not as the standard has them. */
  readonly isStandard: boolean;
}

/** Reads of transfers. */
export interface TransferLogCalls {
  /** Transfers in blocks `from` to `to`, both included, in the order of the chain. */
  transferLogs(
    range: { readonly from: Height; readonly to: Height },
    options: RpcOptions & {
      /** Only those of these contracts. */
      readonly contracts?: readonly Address[];
      /** Only well-formed ERC-20 transfers from or to this account. */
      readonly account?: Address;
      /**
       * Where one block has more than an answer can hold, only those of these contracts are read; without
       * them such a block is refused. Where an answer has none at all, and is of all contracts, blocks whose
       * blooms name these are read by their receipts.
       */
      readonly atLeast?: readonly Address[];
      /** Told of each block of which only `atLeast` was read. */
      readonly onLeftOut?: (height: Height) => void;
      /**
       * Only those for which it is true are kept; asked once of each. A range may have more than memory,
       * while one answer is bounded.
       */
      readonly isWanted?: (log: TransferLog) => boolean;
      /** Hash of block `to`: another node behind a balancer may not have it, and finds nothing. */
      readonly lastHash?: Hash32;
    },
  ): Promise<TransferLog[]>;
}

/** The calls over a JSON-RPC client. */
export function transferLogCalls(rpc: JsonRpcClient): TransferLogCalls {
  return {
    async transferLogs(range, options) {
      const { contracts, account, atLeast, onLeftOut, isWanted, lastHash } = options;
      const filters = filtersFor(account).map((topics) => ({
        topics,
        ...(contracts === undefined ? {} : { address: contracts }),
      }));
      const logs: TransferLog[] = [];
      // One by one: as arguments of a call they would have to fit on the stack.
      const take = (log: TransferLog) => {
        if (isWanted?.(log) !== false) logs.push(log);
      };
      for (const filter of filters) {
        const last = { height: range.to, hash: lastHash };
        await search(rpc, range, { filter, atLeast, onLeftOut, take, options, last });
      }
      if (filters.length === 1) return logs;
      const unique = new Map(logs.map((log) => [`${log.height} ${log.logIndex}`, log]));
      return [...unique.values()].toSorted(
        (left, right) => left.height - right.height || left.logIndex - right.logIndex,
      );
    },
  };
}

const SIGNATURES = [
  ERC20_TOPICS.transfer,
  ERC1155_TOPICS.transferSingle,
  ERC1155_TOPICS.transferBatch,
];

type Topics = readonly (Hex | readonly Hex[] | null)[];

function filtersFor(account: Address | undefined): readonly Topics[] {
  if (account === undefined) return [[SIGNATURES]];
  const word: Hex = `0x${"00".repeat(12)}${account.slice(2)}`;
  return [
    [ERC20_TOPICS.transfer, word],
    [ERC20_TOPICS.transfer, null, word],
  ];
}

interface Search {
  readonly filter: { readonly topics: Topics; readonly address?: readonly Address[] };
  readonly atLeast: readonly Address[] | undefined;
  readonly onLeftOut: ((height: Height) => void) | undefined;
  /** Told of each that is found, in the order of the chain. */
  readonly take: (log: TransferLog) => void;
  readonly options: RpcOptions;
  /** Block that whoever answers must have. */
  readonly last: KnownBlock;
}

/** Halves a range that has too much; a single block is read by its receipts. */
async function search(
  rpc: JsonRpcClient,
  { from, to }: { readonly from: Height; readonly to: Height },
  wanted: Search,
): Promise<void> {
  let found: unknown;
  let lastBlock: unknown;
  try {
    const bounds = { fromBlock: toQuantity(from), toBlock: toQuantity(to) };
    // In one exchange: the same node says what it knows and what it found.
    const [header, logs] = await rpc.batch(
      [
        headerCall(wanted.last.height),
        { method: "eth_getLogs", params: [{ ...wanted.filter, ...bounds }] },
      ],
      wanted.options,
    );
    // A node that is behind answers with no logs, as if there were none.
    lastBlock = resultOf(header);
    assertHasBlock(lastBlock, wanted.last);
    found = resultOf(logs);
  } catch (error) {
    if (!(from < to ? isTooMuchAtOnce(error) : isTooMuch(error))) throw error;
    if (from === to) return searchLargeBlock(rpc, from, wanted);
    const middle = Math.floor((from + to) / 2);
    await search(rpc, { from, to: middle }, wanted);
    return search(rpc, { from: middle + 1, to }, wanted);
  }
  if (takeLogs(found, { from, to }, wanted) > 0) return;
  for (const height of await doubtful(rpc, { from, to }, { ...wanted, lastBlock })) {
    await searchLargeBlock(rpc, height, wanted);
  }
}

/**
 * Blocks of a range of which no transfer was told, and whose blooms say that a followed contract may have
 * logged one: who does not keep logs, or leaves them out, may have the right headers all the same.
 */
async function doubtful(
  rpc: JsonRpcClient,
  { from, to }: { readonly from: Height; readonly to: Height },
  { filter, atLeast = [], last, lastBlock, options }: Search & { readonly lastBlock: unknown },
): Promise<readonly Height[]> {
  // In a block that has more than receipts give the search for these contracts alone is the last word.
  if (atLeast.length === 0 || filter.address !== undefined) return [];
  const heights = Array.from({ length: to - from + 1 }, (_, index) => from + index);
  const others = heights.filter((height) => height !== last.height);
  const headers = others.length === 0 ? [] : await rpc.batch(others.map(headerCall), options);
  const blocks = new Map(others.map((height, index) => [height, resultOf(headers[index])]));
  blocks.set(last.height, lastBlock);
  const topics = filter.topics.flatMap((one) => (one === null ? [] : [[one].flat()]));
  const places = [atLeast, ...topics].map((alternatives) =>
    alternatives.map((value) => bloomBits(hexToBytes(value))),
  );
  return heights.filter((height) => {
    const bloom = readOptional(blocks.get(height), "block", readObject)?.["logsBloom"];
    const bits = readOptional(bloom, "logsBloom", readHex);
    return bits !== undefined && mayHaveLog(hexToBytes(bits), places);
  });
}

/**
 * By its receipts; where they are too much as well, only what is wanted at least. Of wanted contracts
 * anybody can log more than a search gives, and beside it more than all receipts may be: then each is asked
 * for by itself.
 */
async function searchLargeBlock(rpc: JsonRpcClient, height: Height, wanted: Search): Promise<void> {
  const { filter, atLeast, onLeftOut } = wanted;
  let receipts: unknown;
  try {
    receipts = await rpc.request("eth_getBlockReceipts", [toQuantity(height)], wanted.options);
  } catch (error) {
    if (!isTooMuch(error)) throw error;
    if (filter.address !== undefined) return searchReceipts(rpc, height, wanted);
    if (atLeast === undefined) throw error;
    onLeftOut?.(height);
    if (atLeast.length === 0) return;
    const least = { ...wanted, filter: { ...filter, address: atLeast } };
    return search(rpc, { from: height, to: height }, least);
  }
  takeReceipts(readList(receipts, "receipts"), height, wanted);
}

async function searchReceipts(rpc: JsonRpcClient, height: Height, wanted: Search): Promise<void> {
  const { options, last } = wanted;
  const block = await rpc.request("eth_getBlockByNumber", [toQuantity(height), false], options);
  if (height === last.height) assertHasBlock(block, last);
  for await (const receipts of receiptsInParts(rpc, block, options)) {
    takeReceipts(receipts, height, wanted);
  }
}

function takeReceipts(receipts: readonly unknown[], height: Height, wanted: Search): void {
  const { filter } = wanted;
  const logs = receipts.flatMap((receipt) =>
    readList(readObject(receipt, "receipt")["logs"], "logs"),
  );
  const contracts = filter.address === undefined ? undefined : new Set<string>(filter.address);
  const matching = logs.filter((value) => {
    const log = readObject(value, "log");
    const topics = readList(log["topics"], "topics");
    const isOurs = contracts?.has(readAddress(log["address"], "address")) ?? true;
    return isOurs && filter.topics.every((one, index) => matches(one, topics[index]));
  });
  takeLogs(matching, { from: height, to: height }, wanted);
}

function matches(wanted: Topics[number], topic: unknown): boolean {
  if (wanted === null) return topic !== undefined;
  return [wanted].flat().some((one) => one === topic);
}

/** @returns how many there were */
function takeLogs(
  answer: unknown,
  range: { readonly from: Height; readonly to: Height },
  { take }: Pick<Search, "take">,
): number {
  const logs = readList(answer, "logs");
  for (const value of logs) {
    const log = parseTransferLog(value);
    if (log.height < range.from || log.height > range.to) throw badAnswer("log of another block");
    take(log);
  }
  return logs.length;
}

/** Untrusted log with one of the known signatures. Throws BAD_ANSWER. */
function parseTransferLog(value: unknown): TransferLog {
  const log = readObject(value, "log");
  const topics = readList(log["topics"], "topics").map((topic) => readHash(topic, "topic"));
  const data = readHex(log["data"], "data");
  const place = {
    height: readSafeQuantity(log["blockNumber"], "blockNumber"),
    blockHash: readHash(log["blockHash"], "blockHash"),
    txHash: readHash(log["transactionHash"], "transactionHash"),
    txIndex: readSafeQuantity(log["transactionIndex"], "transactionIndex"),
    logIndex: readSafeQuantity(log["logIndex"], "logIndex"),
    contract: readAddress(log["address"], "address"),
  };
  return { ...place, ...transferOf(topics, data) };
}

type Transfer = Pick<TransferLog, "standard" | "from" | "to" | "value" | "isStandard">;

/** Characters of hex words with their prefix. */
const ONE_WORD = 2 + 64;
const TWO_WORDS = 2 + 2 * 64;
const THREE_WORDS = 2 + 3 * 64;

/** Pure: what the topics and data of a log say of a transfer. */
export function transferOf(topics: readonly Hash32[], data: Hex): Transfer {
  const [signature, first, second, third]: readonly (string | undefined)[] = topics;
  if (signature === ERC1155_TOPICS.transferSingle || signature === ERC1155_TOPICS.transferBatch) {
    const isSingle = signature === ERC1155_TOPICS.transferSingle;
    const id = isSingle && data.length === TWO_WORDS ? wordAt(data, 0) : undefined;
    const isStandard = third !== undefined && (!isSingle || id !== undefined);
    return transfer("erc1155", second, third, id, isStandard);
  }
  if (third !== undefined) return transfer("erc721", first, second, BigInt(third), data === "0x");
  if (first === undefined && data.length === THREE_WORDS) {
    // Nothing is indexed: tokens older than the standard.
    const [from, to] = [wordText(data, 0), wordText(data, 1)];
    return transfer("erc20", from, to, wordAt(data, 2), false);
  }
  // Each of three arguments is a topic or a word: with fewer it is no transfer, and of nobody.
  const units = second !== undefined && data.length === ONE_WORD ? wordAt(data, 0) : undefined;
  return transfer("erc20", first, second, units, units !== undefined);
}

/** Put together at once: an index reads one of each log of the chain. */
function transfer(
  standard: Transfer["standard"],
  fromWord: string | undefined,
  toWord: string | undefined,
  value: bigint | undefined,
  isStandard: boolean,
): Transfer {
  const isClean = fromWord?.startsWith(PADDING) !== false && toWord?.startsWith(PADDING) !== false;
  return {
    standard,
    from: accountOf(fromWord),
    to: accountOf(toWord),
    value,
    isStandard: isStandard && isClean,
  };
}

/** What is before an address in its word. */
const PADDING = `0x${"00".repeat(12)}`;

/** A word (lower-case hex) as an account. The zero address stands for nobody. */
function accountOf(word: string | undefined): Address | undefined {
  if (word === undefined) return undefined;
  const address = `0x${word.slice(PADDING.length)}` as Address;
  return address === ZERO_ADDRESS ? undefined : address;
}

function wordText(data: Hex, index: number): string {
  return `0x${data.slice(2 + 64 * index, 2 + 64 * (index + 1))}`;
}

function wordAt(data: Hex, index: number): bigint {
  return BigInt(wordText(data, index));
}
