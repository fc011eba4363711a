/** The fake chain in the words of JSON-RPC and of the Data API. */
import { type Address, parseAddress, ZERO_ADDRESS } from "../../../chain/address.js";
import type { BalanceChange } from "../../../chain/balance-change.js";
import {
  decodeTransfer,
  ERC20_SELECTORS,
  ERC20_TOPICS,
  type TokenTransfer,
} from "../../../chain/evm/erc20.js";
import {
  bytesToHex,
  type Hex,
  parseSafeQuantity,
  toQuantity,
  ZERO_HASH,
} from "../../../chain/hex.js";
import { operationsOf } from "../../../chain/operations.js";
import type { FakeBlock, FakeChain, FakeTokenMove, FakeTransaction } from "./fake-chain.js";
import { type Method, RpcFault } from "./fake-node.js";

/** Every method that the exchange's processes ask. */
export function fakeChainMethods(chain: FakeChain): Record<string, Method> {
  const heightOf = (tag: unknown) => heightOfState(chain, tag);
  const known = <T>(value: T | undefined): T => {
    if (value === undefined) throw new RpcFault(-32000, "header not found");
    return value;
  };
  return {
    eth_chainId: () => toQuantity(chain.chainId),
    eth_syncing: () => (chain.isSyncing ? { currentBlock: "0x0" } : false),
    eth_blockNumber: () => toQuantity(chain.toldHead ?? chain.head),
    eth_gasPrice: () => toQuantity(chain.gasPriceAtoken),
    eth_getBlockByNumber: ([tag]) => headerJson(chain.blocks[heightOf(tag)]),
    eth_getBalance: ([account, tag]) => {
      const [address, height] = [parseAddress(account), heightOf(tag)];
      const lie = chain.balanceLies.get(`${address}@${height}`) ?? 0n;
      return toQuantity(known(chain.balanceAt(address, height)) + lie);
    },
    eth_getTransactionCount: ([account, tag]) => {
      const at = tag === "pending" ? tag : heightOf(tag);
      return toQuantity(known(chain.nonceAt(parseAddress(account), at)));
    },
    eth_getCode: ([given, tag]) => {
      const address = parseAddress(given);
      known(chain.blocks[heightOf(tag)]);
      return address === chain.token || chain.withCode.has(address) ? "0x00" : "0x";
    },
    eth_getStorageAt: ([, , tag]) => {
      known(chain.blocks[heightOf(tag)]);
      return ZERO_HASH;
    },
    eth_call: ([message, at]) => call(chain, message as CallMessage, at),
    eth_capabilities: () => {
      if (!chain.namesTransactionGas) throw new RpcFault(-32601, "the method does not exist");
      return { transactionGas: toQuantity(chain.maxTransactionGas) };
    },
    eth_estimateGas: ([message]) => estimate(chain, message as EstimateMessage),
    eth_sendRawTransaction: ([raw]) => chain.submit(String(raw)),
    txpool_contentFrom: ([account]) => {
      const nonces = chain.queuedNonces(parseAddress(account));
      const queued = nonces.map((nonce) => [nonce, { nonce: toQuantity(nonce) }]);
      return { pending: {}, queued: Object.fromEntries(queued) };
    },
    eth_getTransactionReceipt: ([hash]) => receiptJson(chain, hash),
    eth_getLogs: ([filter]) => logsOf(chain, filter as LogFilter),
    causeway_getAccountJournal: ([account, from, to]) =>
      accountJournal(chain, parseAddress(account), [from, to].map(heightOf)),
    // A height on each page: records are written where an operation is.
    causeway_getAccountHeights: ([account, from, to]) => {
      const range = [from, to].map(heightOf);
      const { entries, next } = accountJournal(chain, parseAddress(account), range);
      const heights = entries.map(({ blockNumber }) => Number(blockNumber));
      return { heights: [...new Set(heights)], next };
    },
    causeway_getBlockJournal: ([hash]) => {
      const block = chain.blocks.find((entry) => entry.hash === hash);
      return block === undefined ? null : journalJson(block, chain.gasPerPayment);
    },
  };
}

interface CallMessage {
  readonly from?: string;
  readonly to: string;
  readonly data: Hex;
}

interface EstimateMessage extends CallMessage {
  readonly from: string;
  readonly value?: string;
  readonly gas?: string;
}

const word = (value: bigint) => `0x${value.toString(16).padStart(64, "0")}`;

/** `balanceOf` and `transfer` of the token, as it stands after a block. */
function call(chain: FakeChain, { from, to, data }: CallMessage, at: unknown): string {
  if (parseAddress(to) !== chain.token) return "0x";
  const transfer = decodeTransfer(data);
  if (transfer !== undefined) {
    return word(isCovered(chain, parseAddress(from), transfer) ? 1n : 0n);
  }
  if (!data.startsWith(ERC20_SELECTORS.balanceOf)) throw new RpcFault(3, "execution reverted");
  const units = chain.unitsAt(parseAddress(`0x${data.slice(-40)}`), heightOfState(chain, at));
  if (units === undefined) throw new RpcFault(-32000, "header not found");
  return word(units);
}

/** Of a height, a tag, or EIP-1898's hash; -1 for a block that is not there. */
function heightOfState(chain: FakeChain, tag: unknown): number {
  const hash: unknown = Reflect.get(Object(tag), "blockHash");
  if (typeof hash === "string") return chain.blocks.findIndex((block) => block.hash === hash);
  return parseHeight(chain, tag);
}

function parseHeight(chain: FakeChain, tag: unknown): number {
  return tag === "latest" ? chain.head : parseSafeQuantity(tag);
}

function isCovered(chain: FakeChain, from: Address, { to, amountUnits }: TokenTransfer): boolean {
  return !chain.reverting.has(to) && amountUnits <= (chain.units.get(from) ?? 0n);
}

function estimate(
  chain: FakeChain,
  { from, to, value = "0x0", gas, data }: EstimateMessage,
): string {
  const transfer = parseAddress(to) === chain.token ? decodeTransfer(data) : undefined;
  if (transfer !== undefined && !isCovered(chain, parseAddress(from), transfer)) {
    throw new RpcFault(3, "execution reverted: no");
  }
  if (chain.reverting.has(parseAddress(to))) throw new RpcFault(3, "execution reverted: no");
  if (BigInt(value) > (chain.balances.get(parseAddress(from)) ?? 0n)) {
    throw new RpcFault(-32000, "insufficient funds for transfer");
  }
  const needed = chain.gasOf.get(parseAddress(to)) ?? chain.gasPerPayment;
  const allowance = gas === undefined ? chain.maxTransactionGas : BigInt(gas);
  if (needed > allowance || needed > chain.maxTransactionGas) {
    throw new RpcFault(-32000, `gas required exceeds allowance (${allowance})`);
  }
  return toQuantity(needed);
}

function headerJson(block: FakeBlock | undefined): unknown {
  if (block === undefined) return null;
  return {
    number: toQuantity(block.height),
    hash: block.hash,
    parentHash: block.parentHash,
    gasLimit: toQuantity(600_000_000n),
    timestamp: toQuantity(1_700_000_000 + 2 * block.height),
  };
}

/** Of a signed transaction as it was executed; else the fee says everything, at a price of 1. */
function receiptJson(chain: FakeChain, hash: unknown): unknown {
  for (const block of chain.blocks) {
    const index = block.transactions.findIndex((transaction) => transaction.hash === hash);
    const transaction = block.transactions[index];
    if (transaction === undefined) continue;
    if (transaction.cosmos !== undefined) return null;
    const { changes, signed } = transaction;
    const fee = changes.find(({ reason }) => reason === "FEE");
    const gasUsed = signed === undefined ? (fee?.amountAtoken ?? 0n) : chain.gasPerPayment;
    return {
      transactionHash: hash,
      blockHash: block.hash,
      blockNumber: toQuantity(block.height),
      transactionIndex: toQuantity(index),
      from: fee?.from,
      to: signed?.tx.to ?? changes.at(-1)?.to ?? null,
      contractAddress: null,
      status: isSuccess(transaction) ? "0x1" : "0x0",
      gasUsed: toQuantity(gasUsed),
      cumulativeGasUsed: toQuantity(gasUsed),
      effectiveGasPrice: toQuantity(signed?.tx.maxFeePerGasAtoken ?? 1n),
      logs: logsIn(chain, block).filter(({ transactionHash }) => transactionHash === hash),
    };
  }
  return null;
}

interface LogFilter {
  readonly fromBlock: string;
  readonly toBlock: string;
  readonly topics: readonly (string | readonly string[] | null)[];
  readonly address?: readonly string[];
}

function logsOf(chain: FakeChain, { fromBlock, toBlock, topics, address }: LogFilter): unknown {
  const [from, to] = [fromBlock, toBlock].map((tag) => parseHeight(chain, tag));
  return chain.blocks.slice(from, (to ?? 0) + 1).flatMap((block) =>
    logsIn(chain, block).filter((log) => {
      const isAsked = address?.includes(log.address) ?? true;
      return (
        isAsked &&
        topics.every((wanted, index) => {
          const topic = log.topics[index];
          return wanted === null || (topic !== undefined && [wanted].flat().includes(topic));
        })
      );
    }),
  );
}

/** What the token logs in a block. */
function logsIn(chain: FakeChain, block: FakeBlock) {
  const moves = block.transactions.flatMap(({ hash, tokenMoves = [] }, transactionIndex) =>
    tokenMoves.map((move) => ({ hash, transactionIndex, move })),
  );
  return moves.map(({ hash, transactionIndex, move }, logIndex) => ({
    address: chain.token ?? "",
    ...logOf(move),
    blockNumber: toQuantity(block.height),
    blockHash: block.hash,
    transactionHash: hash,
    transactionIndex: toQuantity(transactionIndex),
    logIndex: toQuantity(logIndex),
    removed: false,
  }));
}

function logOf({ from = ZERO_ADDRESS, to, units }: FakeTokenMove) {
  const topicOf = (address: Address) => word(BigInt(address));
  return { topics: [ERC20_TOPICS.transfer, topicOf(from), topicOf(to)], data: word(units) };
}

/** Pages of one block each, so that paging is always exercised. */
function accountJournal(
  chain: FakeChain,
  address: Address,
  [from = 0, to = 0]: readonly number[],
): { readonly entries: readonly { readonly blockNumber: string }[]; readonly next: number | null } {
  for (let height = from; height <= to; height += 1) {
    const block = chain.blocks[height];
    if (block === undefined) break;
    const entries = groupsOf(block).flatMap((group, transactionIndex) =>
      operationsOf(group.changes)
        .filter((operation) => operation.address === address)
        .map((operation) => ({
          blockNumber: toQuantity(height),
          blockHash: block.hash,
          transactionHash: group.hash === block.hash ? null : group.hash,
          transactionIndex,
          operationIndex: operation.index,
          delta: operation.amountAtoken.toString(),
          change: changeJson(operation.change),
        })),
    );
    if (entries.length > 0) return { entries, next: height < to ? height + 1 : null };
  }
  return { entries: [], next: null };
}

function journalJson(block: FakeBlock, gasUsed: bigint): unknown {
  return {
    blockHash: block.hash,
    blockNumber: toQuantity(block.height),
    parentHash: block.parentHash,
    gasLimit: toQuantity(600_000_000n),
    timestampMs: 1_700_000_000_000 + 2_000 * block.height,
    transactions: block.transactions.flatMap(({ signed, ...transaction }, index) =>
      signed === undefined
        ? []
        : {
            hash: transaction.hash,
            index,
            status: isSuccess(transaction) ? "0x1" : "0x0",
            from: signed.from,
            to: signed.tx.to ?? null,
            contractAddress: null,
            gasUsed: toQuantity(gasUsed),
            gasPrice: toQuantity(signed.tx.maxFeePerGasAtoken),
            nonce: toQuantity(signed.tx.nonce),
            input: bytesToHex(signed.tx.data),
            logs: (transaction.tokenMoves ?? []).map((move) => ({
              address: signed.tx.to,
              ...logOf(move),
            })),
            changes: transaction.changes.map(changeJson),
          },
    ),
    cosmosTransactions: block.transactions.flatMap(({ cosmos, hash, changes }, index) =>
      cosmos === undefined
        ? []
        : {
            hash,
            index,
            dataIndex: index,
            status: "0x1",
            from: cosmos.from,
            gas: toQuantity(gasUsed),
            gasUsed: toQuantity(gasUsed),
            fee: toQuantity(changes.find(({ reason }) => reason === "FEE")?.amountAtoken ?? 0n),
            nonce: toQuantity(cosmos.nonce),
            memo: "",
            messages: ["/cosmos.bank.v1beta1.MsgSend"],
            changes: changes.map(changeJson),
          },
    ),
    blockChanges: block.blockChanges.map(changeJson),
    minted: "0x0",
    burned: "0x0",
  };
}

const isSuccess = ({ changes }: FakeTransaction) => changes.every(({ effective }) => effective);

/** Transactions and, last, the block-level one under the block's hash. */
function groupsOf(block: FakeBlock): readonly FakeTransaction[] {
  return block.blockChanges.length === 0
    ? block.transactions
    : [...block.transactions, { hash: block.hash, changes: block.blockChanges }];
}

function changeJson(each: BalanceChange): unknown {
  return {
    reason: each.reason,
    from: each.from ?? null,
    to: each.to ?? null,
    amount: toQuantity(each.amountAtoken),
    effective: each.effective,
    tracePath: each.tracePath ?? null,
    error: each.error ?? null,
  };
}

/**
 * A block of the Data API.
 * @param holder whose operations are given out as those of a token called TOKEN
 */
export function dataApiBlock(
  block: FakeBlock,
  holder: Address | undefined,
  token: Address,
): unknown {
  const native = { symbol: "TOKEN", decimals: 18 };
  const lookAlike = { ...native, metadata: { contractAddress: token } };
  return {
    block_identifier: { index: block.height, hash: block.hash },
    parent_block_identifier: {
      index: Math.max(0, block.height - 1),
      hash: block.height === 0 ? block.hash : block.parentHash,
    },
    timestamp: 1_700_000_000_000 + 2_000 * block.height,
    transactions: groupsOf(block).map((group) => ({
      transaction_identifier: { hash: group.hash },
      operations: [
        ...operationsOf(group.changes).map((operation) => ({
          operation_identifier: { index: operation.index },
          related_operations:
            operation.relatedIndex === undefined ? undefined : [{ index: operation.relatedIndex }],
          type: operation.type,
          status: operation.status,
          account: { address: operation.address },
          amount: {
            value: operation.amountAtoken.toString(),
            currency: operation.address === holder ? lookAlike : native,
          },
        })),
        ...tokenOperations(group, token),
      ],
    })),
  };
}

/** Both sides of each transfer of the token, behind what the transaction does with coins. */
function tokenOperations({ changes, tokenMoves = [] }: FakeTransaction, token: Address): unknown[] {
  const currency = { symbol: "PLAIN", decimals: 6, metadata: { contractAddress: token } };
  const sides = tokenMoves.flatMap(({ from, to, units }) => [
    ...(from === undefined ? [] : [{ address: from, units: -units }]),
    { address: to, units },
  ]);
  const first = operationsOf(changes).length;
  return sides.map(({ address, units }, index) => ({
    operation_identifier: { index: first + index },
    type: "ERC20_TRANSFER",
    status: "SUCCESS",
    related_operations: units > 0n && index > 0 ? [{ index: first + index - 1 }] : undefined,
    account: { address },
    amount: { value: units.toString(), currency },
  }));
}
