/** An in-memory chain of hand-built blocks behind the ports, for tests of the JSON-RPC servers. */
import { encodeRlp } from "../../../../chain/encoding/rlp-writer.js";
import { transactionItem } from "../../../../chain/records/block-items.js";
import type { BlockRecordBytes } from "../../../../chain/records/block-records.js";
import { encodeOutline } from "../../../../chain/records/outline.js";
import {
  encodeBlockChanges,
  encodeHashPage,
  encodeJournalPage,
  encodeReceiptPage,
} from "../../../../chain/records/pages.js";
import { Wallet } from "ethers";
import {
  type Address,
  addressToBytes,
  parseAddress,
  ZERO_ADDRESS,
} from "../../../../chain/address.js";
import type { BalanceChange } from "../../../../chain/balance-change.js";
import { type Block, type BlockHeader, hashHeader } from "../../../../chain/block.js";
import {
  EMPTY_CODE_HASH,
  EMPTY_TRIE_ROOT,
  type Hash32,
  type Height,
  hexToBytes,
  parseHash32,
  parseHexBytes,
  ZERO_HASH,
} from "../../../../chain/hex.js";
import { USUAL_ACCOUNTS } from "../../../../chain/chain-accounts.js";
import { NETWORKS } from "../../../../chain/networks.js";
import { type Log, logsToBloom, mergeBlooms, type Receipt } from "../../../../chain/receipt.js";
import {
  decodeTransaction,
  effectiveGasPriceAtoken,
  recoverSender,
} from "../../../../chain/transaction.js";
import type {
  AccountJournalEntry,
  AccountState,
  ChainView,
  LogTerm,
  LogTest,
  PlacedLog,
} from "../../../../node/view/chain-view.js";
import { outlineOf, pagesOf, placedReceipt } from "../../../../node/view/block-pages.js";
import {
  type CommittedBlock,
  EventBus,
  type PendingTransaction,
  type TransactionLocation,
} from "../../../../node/view/event-bus.js";
import type {
  CallRequest,
  CallResult,
  CallWorkers,
} from "../../../../node/execution/calls/call-port.js";
import type { RefusedBlock } from "../../../../node/consensus/consensus-ports.js";
import type { SenderContent, TransactionPool } from "../../../../node/mempool/pool-port.js";
import { createEvmApi, type EvmApi } from "../../../../node/rpc/evm/api.js";
import { DEFAULT_EVM_RPC_LIMITS, type EvmRpcLimits } from "../../../../node/rpc/evm/options.js";
import { RequestContext } from "../../../../node/rpc/evm/request-context.js";
import { createLogger, type Logger } from "../../../../runtime/process/logger.js";
import { createMetrics } from "../../../../runtime/process/metrics.js";

/** Coin base of all test blocks. */
export const MINER = parseAddress("0x00000000000000000000000000000000000000c0");
/** Hash of the consensus header of every block behind genesis. */
export const CONSENSUS_BLOCK_HASH = parseHash32(`0x${"c2".repeat(32)}`);
/** Where the genesis of this chain lets coins be burned. */
export const BURNER = parseAddress("0x00000000000000000000000000000000000000c1");

/** Two accounts that sign. */
export const ALICE = new Wallet(`0x${"11".repeat(32)}`);
export const BOB = new Wallet(`0x${"22".repeat(32)}`);

/** A mined transaction to be: signed bytes, its logs and what it changed. */
export interface TestTransaction {
  readonly raw: string;
  readonly status?: 0 | 1;
  readonly logs?: readonly Log[];
  readonly contractAddress?: Address;
  readonly changes?: readonly BalanceChange[];
}

/** A native transfer's change. */
export function transfer(from: string, to: string, amountAtoken: bigint): BalanceChange {
  return {
    reason: "CALL",
    from: parseAddress(from),
    to: parseAddress(to),
    amountAtoken,
    effective: true,
    tracePath: "",
  };
}

/** Signs a legacy transaction of the test network with ethers. */
export function signLegacy(
  wallet: Wallet,
  fields: { nonce: number; to?: string; value?: bigint; data?: string },
): Promise<string> {
  return wallet.signTransaction({
    type: 0,
    chainId: 6940,
    gasPrice: 25_000_000n,
    gasLimit: 21_000n,
    ...fields,
  });
}

/** The read model over blocks that a test adds. */
export class FakeChain implements ChainView {
  readonly blocks: CommittedBlock[] = [];
  readonly accounts = new Map<Address, AccountState>();
  readonly codes = new Map<Address, Uint8Array>();
  readonly slots = new Map<string, bigint>();
  private readonly byHash = new Map<Hash32, Height>();
  private readonly places = new Map<Hash32, TransactionLocation>();

  constructor(readonly bus: EventBus) {
    this.add([]);
  }

  /** Appends a block and publishes it. */
  add(
    transactions: readonly TestTransaction[],
    blockChanges: readonly BalanceChange[] = [],
  ): CommittedBlock {
    const height = this.blocks.length;
    const decoded = transactions.map(({ raw }) => {
      const tx = decodeTransaction(parseHexBytes(raw));
      return { tx, from: recoverSender(tx) };
    });
    let cumulativeGasUsed = 0n;
    const receipts = transactions.map((wanted, index): Receipt => {
      const mined = decoded[index];
      if (mined === undefined) throw new Error("no transaction");
      cumulativeGasUsed += 21_000n;
      const logs = wanted.logs ?? [];
      return {
        type: mined.tx.type,
        status: wanted.status ?? 1,
        gasUsed: 21_000n,
        cumulativeGasUsed,
        effectiveGasPriceAtoken: effectiveGasPriceAtoken(mined.tx),
        logs,
        logsBloom: logsToBloom(logs),
        contractAddress: wanted.contractAddress,
      };
    });
    const header: BlockHeader = {
      parentHash: this.blocks.at(-1)?.block.hash ?? ZERO_HASH,
      coinbase: MINER,
      stateRoot: EMPTY_TRIE_ROOT,
      transactionsRoot: EMPTY_TRIE_ROOT,
      receiptsRoot: EMPTY_TRIE_ROOT,
      logsBloom: mergeBlooms(receipts.map(({ logsBloom }) => logsBloom)),
      height,
      gasLimit: 600_000_000n,
      gasUsed: cumulativeGasUsed,
      timestampSeconds: 1_700_000_000 + height * 2,
      moduleRoot: EMPTY_CODE_HASH,
      mixHash: ZERO_HASH,
    };
    const block: Block = {
      header,
      hash: hashHeader(header),
      timeMs: header.timestampSeconds * 1_000 + 120,
      transactions: decoded,
      dataHash: ZERO_HASH,
    };
    const journal = {
      height,
      transactions: decoded.map(({ tx }, index) => ({
        transactionHash: tx.hash,
        changes: transactions[index]?.changes ?? [],
      })),
      blockChanges,
      mintedAtoken: 7n,
      burnedAtoken: 3n,
    };
    const committed = { block, receipts, journal };
    this.blocks.push(committed);
    this.byHash.set(block.hash, height);
    decoded.forEach(({ tx }, index) => {
      this.places.set(tx.hash, { height, index });
    });
    this.bus.emit("block", committed);
    return committed;
  }

  cosmos() {
    return [];
  }
  cosmosTransaction() {
    return undefined;
  }
  cosmosBytes() {
    return undefined;
  }

  records(height: Height): BlockRecordBytes {
    const { block, receipts, journal } = this.at(height);
    const { transactions } = block;
    const page = [
      encodeHashPage(transactions),
      encodeRlp(transactions.map(transactionItem)),
      encodeReceiptPage(receipts, 0),
      encodeJournalPage(journal.transactions),
    ] as const;
    const isEmpty = transactions.length === 0;
    return {
      outline: encodeOutline(outlineOf({ block }), isEmpty ? [] : [0]),
      changes: encodeBlockChanges(journal),
      cosmos: [],
      pages: isEmpty ? [] : [page],
    };
  }

  head() {
    const { block } = this.at(this.blocks.length - 1);
    return { height: block.header.height, hash: block.hash, timeMs: block.timeMs };
  }
  oldest = () => ({ block: 0, journal: 0, state: 0, proof: 0 });
  blockHash = (height: Height) => this.blocks[height]?.block.hash;
  genesis = () => this.at(0);
  block = (height: Height) => this.blocks[height];
  load = async (height: Height) => this.blocks[height];
  outline(height: Height) {
    const committed = this.blocks[height];
    return committed === undefined ? undefined : outlineOf(committed);
  }
  transaction = (height: Height, index: number) => this.blocks[height]?.block.transactions[index];
  receipt(height: Height, index: number) {
    const committed = this.blocks[height];
    return committed === undefined ? undefined : placedReceipt(committed, index);
  }
  *receiptSteps(height: Height, index: number) {
    yield;
    return this.receipt(height, index);
  }
  moduleEvents = () => [];
  changes = (height: Height, index: number) =>
    this.at(height).journal.transactions[index]?.changes ?? [];
  pages = (height: Height) => pagesOf(this.at(height));
  blockChanges = (height: Height) => this.at(height).journal;
  pageStarts = (height: Height) => [...pagesOf(this.at(height))].map(({ first }) => first);
  async *logPages(term: LogTerm, from: Height, to: Height) {
    for (let height = from; height <= to; height++) {
      const isIn = (log: Log) =>
        (term.address ?? log.address) === log.address &&
        (term.topic === undefined || log.topics[0] === term.topic);
      const starts = [...pagesOf(this.at(height))]
        .filter((page) => page.receipts().some(({ receipt }) => receipt.logs.some(isIn)))
        .map(({ first }) => first);
      if (starts.length > 0) yield { height, starts };
    }
  }
  pageLogs(height: Height, start: number, isWanted: LogTest): Iterable<PlacedLog | undefined> {
    const page = [...pagesOf(this.at(height))].find(({ first }) => first === start);
    return (page?.receipts() ?? []).flatMap(({ receipt, firstLogIndex }, item) =>
      receipt.logs
        .map((log, index) => ({
          log,
          logIndex: firstLogIndex + index,
          transactionIndex: start + item,
          transactionHash: page?.hashes()[item] ?? ZERO_HASH,
        }))
        .filter(({ log }) => isWanted(addressToBytes(log.address), log.topics.map(hexToBytes))),
    );
  }
  heightOfHash = (hash: Hash32) => this.byHash.get(hash);
  locate = (hash: Hash32) => this.places.get(hash);
  locateBySdkHash: ChainView["locateBySdkHash"] = () => undefined;
  supply = () => undefined;

  async *blooms(from: Height, to: Height) {
    for (let height = from; height <= to; height++) {
      yield { height, bloom: this.at(height).block.header.logsBloom };
    }
  }
  account = async (address: Address) => this.accounts.get(address);
  async *addresses() {
    yield* [...this.accounts.keys()].toSorted();
  }
  code = async (address: Address) => this.codes.get(address) ?? new Uint8Array(0);
  storageAt = async (address: Address, slot: Hash32) => this.slots.get(address + slot) ?? 0n;
  async proof(address: Address, slots: readonly Hash32[]) {
    const account = this.accounts.get(address) ?? {
      nonce: 0n,
      balanceAtoken: 0n,
      codeHash: EMPTY_CODE_HASH,
      storageRoot: EMPTY_TRIE_ROOT,
    };
    return {
      account,
      accountProof: ["0xc0"] as const,
      storageProof: slots.map((key) => ({
        key,
        value: this.slots.get(address + key) ?? 0n,
        proof: ["0xc1"] as const,
      })),
    };
  }
  async *accountHeights(address: Address, from: Height, to: Height): AsyncGenerator<Height> {
    for (let height = from; height <= to; height++) {
      const { journal } = this.at(height);
      const changes = [
        ...journal.transactions.flatMap((tx) => tx.changes),
        ...journal.blockChanges,
      ];
      if (changes.some((change) => change.from === address || change.to === address)) yield height;
    }
  }
  async *accountJournal(
    address: Address,
    from: Height,
    to: Height,
  ): AsyncGenerator<AccountJournalEntry> {
    for (let height = from; height <= to; height++) {
      const { block, journal } = this.at(height);
      const lists = [
        ...journal.transactions.map(({ transactionHash, changes }, index) => ({
          transactionHash,
          changes,
          index,
        })),
        {
          transactionHash: undefined,
          changes: journal.blockChanges,
          index: block.transactions.length,
        },
      ];
      for (const { transactionHash, changes, index } of lists) {
        for (const [changeIndex, change] of changes.entries()) {
          if (change.from !== address && change.to !== address) continue;
          yield {
            height,
            blockHash: block.hash,
            transactionHash,
            transactionIndex: index,
            changeIndex,
            change,
          };
        }
      }
    }
  }

  private at(height: Height): CommittedBlock {
    const committed = this.blocks[height];
    if (committed === undefined) throw new Error(`no block ${height}`);
    return committed;
  }
}

/** A pool whose answers a test sets; it remembers what it was given. */
export class FakePool implements TransactionPool {
  readonly submitted: (readonly Uint8Array[])[] = [];
  readonly pending = new Map<Hash32, PendingTransaction>();
  nonce = 0n;
  answer: (raw: Uint8Array) => Hash32 | Error = (raw) => decodeTransaction(raw).hash;

  async submit(raws: readonly Uint8Array[]) {
    this.submitted.push(raws);
    return raws.map((raw) => this.answer(raw));
  }
  get = (hash: Hash32) => this.pending.get(hash);
  pendingNonce = () => this.nonce;
  status = () => ({ status: "queued", missingNonce: 4n }) as const;
  counts = () => ({ pending: this.pending.size, queued: 2 });
  carriedBytes = () => 0;
  executables = () => this.pending.values();
  content(): ReadonlyMap<Address, SenderContent> {
    return new Map(
      [...this.pending.values()].map((entry) => [entry.from, { pending: [entry], queued: [] }]),
    );
  }
  senders: TransactionPool["senders"] = () => this.content();
  contentFrom(address: Address) {
    return this.content().get(address) ?? { pending: [], queued: [] };
  }
}

/** Call workers that answer what a test sets and remember the last request. */
export class FakeCalls implements CallWorkers {
  result: CallResult = { outcome: "success", returnData: new Uint8Array(0), gasUsed: 21_000n };
  failure: Error | undefined;
  last: { request: CallRequest; height: Height; options: unknown } | undefined;

  async call(request: CallRequest, height: Height, options: unknown) {
    this.last = { request, height, options };
    if (this.failure !== undefined) throw this.failure;
    return this.result;
  }
  async estimateGas(request: CallRequest, height: Height, options: unknown) {
    const result = await this.call(request, height, options);
    return result.outcome === "success" ? { outcome: "success" as const, gas: 21_000n } : result;
  }
  createAccessList = async () => ({ accessList: [], gasUsed: 21_000n });
  traceBlock = async (height: Height, index: number | undefined, kind: unknown) => [
    { transactionHash: ZERO_HASH, json: Buffer.from(JSON.stringify({ height, index, kind })) },
  ];
  traceCall = async (request: CallRequest, _height: Height, kind: unknown) =>
    Buffer.from(JSON.stringify({ to: request.to ?? ZERO_ADDRESS, kind }));
  simulate = async () => Buffer.from("[]");
}

/** What a JSON-RPC answer looks like to a test. */
export interface TestAnswer {
  readonly jsonrpc: string;
  readonly id: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** An API over fakes, with a short way to call it. */
export function createTestNode(
  limits: Partial<EvmRpcLimits> = {},
  workers?: CallWorkers,
  namespaces: readonly string[] = [],
  log: Logger = createLogger({ component: "test", level: "silent" }),
) {
  const problems: unknown[] = [];
  const bus = new EventBus((error) => problems.push(error));
  const chain = new FakeChain(bus);
  const pool = new FakePool();
  const calls = new FakeCalls();
  const time = { nowMs: 1_700_000_000_000 };
  const state: { catchingUp: boolean; peerHeight: Height; refusedBlocks: readonly RefusedBlock[] } =
    {
      catchingUp: false,
      peerHeight: 0,
      refusedBlocks: [],
    };
  const api: EvmApi = createEvmApi({
    view: chain,
    bus,
    pool,
    calls: workers ?? calls,
    network: NETWORKS.testnet,
    suggestedGasPriceAtoken: 25_000_000n,
    minimumGasPriceAtoken: 2_000_000n,
    isCatchingUp: () => state.catchingUp,
    peerHeight: () => state.peerHeight,
    peerCount: () => 3,
    coinbase: MINER,
    consensusBlockHash: (height) => (height === 0 ? undefined : CONSENSUS_BLOCK_HASH),
    maxTransactionGas: 4_000_000n,
    chainAccounts: { ...USUAL_ACCOUNTS, burnAddress: BURNER },
    retention: { proofs: 1_024 },
    refusedBlocks: () => state.refusedBlocks,
    clientVersion: "causeway/v0.1.0",
    namespaces,
    limits: { ...DEFAULT_EVM_RPC_LIMITS, ...limits },
    clock: { nowMs: () => time.nowMs, monotonicMs: () => time.nowMs },
    log,
    metrics: createMetrics({ processMetrics: false }),
  });
  /** Sends a body and returns the answer as it is written; undefined where there is none. */
  const text = async (body: string): Promise<string | undefined> => {
    const context = new RequestContext(5_000, undefined);
    const reply = await api.dispatcher.handle(Buffer.from(body), context);
    context.finish();
    return reply?.map(String).join("");
  };
  /** Sends a body and returns the parsed answer; undefined where there is none. */
  const post = async (body: unknown): Promise<unknown> => {
    const answer = await text(typeof body === "string" ? body : JSON.stringify(body));
    return answer === undefined ? undefined : JSON.parse(answer);
  };
  /** Calls one method and returns the whole answer. */
  const ask = async (method: string, ...params: readonly unknown[]): Promise<TestAnswer> =>
    (await post({ jsonrpc: "2.0", id: 1, method, params })) as TestAnswer;
  /** Calls one method and returns its result; throws the error's message. */
  const call = async <T = unknown>(method: string, ...params: readonly unknown[]): Promise<T> => {
    const answer = await ask(method, ...params);
    if (answer.error !== undefined) {
      throw new Error(`${answer.error.code} ${answer.error.message}`);
    }
    return answer.result as T;
  };
  return { api, bus, chain, pool, calls, time, state, problems, text, post, ask, call };
}
