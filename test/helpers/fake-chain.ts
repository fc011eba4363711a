/**
 * A chain in memory behind a real HTTP port: JSON-RPC at `/`, the Data API at `/block`. Balances
 * follow the changes of each block, so what a test mines is consistent until the test spoils it.
 */
import { createServer, type Server } from "node:http";
import type { Address } from "../../chain/address.js";
import { type BalanceChange, forEachDelta } from "../../chain/balance-change.js";
import { keccak256Hex } from "../../chain/crypto.js";
import { type Hash32, parseSafeQuantity, toQuantity, ZERO_HASH } from "../../chain/hex.js";
import { operationsOf } from "../../chain/operations.js";

/** Where the fees of the fake chain go. */
export const FEE_COLLECTOR = `0x${"fe".repeat(20)}` as Address;

/** A transaction of the fake chain. */
export interface FakeTransaction {
  readonly hash: Hash32;
  readonly changes: readonly BalanceChange[];
}

/** A block of the fake chain; tests may replace one to spoil it. */
export interface FakeBlock {
  height: number;
  hash: Hash32;
  parentHash: Hash32;
  transactions: readonly FakeTransaction[];
  blockChanges: readonly BalanceChange[];
}

/** An address of a test: the number's hex digits, right-aligned. */
export function testAddress(number: number): Address {
  return `0x${number.toString(16).padStart(40, "0")}` as Address;
}

/** One balance change; effective unless told otherwise. */
export function change(
  fields: Partial<BalanceChange> & { readonly amountAtoken: bigint },
): BalanceChange {
  return {
    reason: "CALL",
    from: undefined,
    to: undefined,
    effective: true,
    tracePath: "",
    ...fields,
  };
}

/** The fake chain and its server. */
export class FakeChain {
  readonly blocks: FakeBlock[] = [];
  /** What the Data API serves instead of a block's own content, by height. */
  readonly dataApiBlocks = new Map<number, FakeBlock>();
  /** Whose operations the Data API gives out as those of a token called TOKEN, by height. */
  readonly dataApiTokens = new Map<number, Address>();
  /** Added to the balance that JSON-RPC answers, by `address@height`. */
  readonly balanceLies = new Map<string, bigint>();
  /** Highest block that the Data API has; all without it. */
  dataApiHead: number | undefined;
  /** Head that JSON-RPC tells instead of the real one. */
  toldHead: number | undefined;
  isSyncing = false;
  /** True closes every connection without an answer. */
  isDown = false;
  chainId = 6940n;
  readonly calls = new Map<string, number>();
  #server: Server | undefined;
  #nextTransaction = 0;
  readonly #balances: Map<Address, bigint>[] = [];
  readonly #salt: string;

  constructor(salt = "fake") {
    this.#salt = salt;
  }

  get head(): number {
    return this.blocks.length - 1;
  }

  get genesisHash(): Hash32 {
    return this.blocks[0]?.hash ?? ZERO_HASH;
  }

  get url(): string {
    const address = this.#server?.address();
    if (typeof address !== "object" || address === null) throw new Error("not started");
    return `http://127.0.0.1:${address.port}`;
  }

  /** Balance after a block, as the changes say. */
  balanceAt(address: Address, height: number): bigint {
    return this.#balances[height]?.get(address) ?? 0n;
  }

  /** A transaction with its own new hash. */
  transaction(...changes: readonly BalanceChange[]): FakeTransaction {
    this.#nextTransaction += 1;
    return { hash: this.#hash(`tx ${this.#nextTransaction}`), changes };
  }

  /** A payment with a fee of `feeAtoken`. */
  payment(from: Address, to: Address, amountAtoken: bigint, feeAtoken = 21n): FakeTransaction {
    const fee = change({ reason: "FEE", from, to: FEE_COLLECTOR, amountAtoken: feeAtoken });
    return this.transaction(fee, change({ from, to, amountAtoken }));
  }

  /** Adds a block on top. */
  mine(
    transactions: readonly FakeTransaction[] = [],
    blockChanges: readonly BalanceChange[] = [],
  ): FakeBlock {
    const height = this.blocks.length;
    const balances = new Map(this.#balances.at(-1));
    const all = [...transactions.flatMap((transaction) => transaction.changes), ...blockChanges];
    for (const each of all) {
      forEachDelta(each, (address, delta) => {
        balances.set(address, (balances.get(address) ?? 0n) + delta);
      });
    }
    this.#balances.push(balances);
    const block = {
      height,
      hash: this.#hash(`block ${height}`),
      parentHash: this.blocks.at(-1)?.hash ?? ZERO_HASH,
      transactions,
      blockChanges,
    };
    this.blocks.push(block);
    return block;
  }

  async start(): Promise<void> {
    const server = createServer((request, response) => {
      if (this.isDown) {
        request.socket.destroy();
        return;
      }
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const body: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
        const { status, answer } =
          request.url === "/block" ? this.#dataApi(body) : { status: 200, answer: this.#rpc(body) };
        response.writeHead(status, { "content-type": "application/json" });
        response.end(JSON.stringify(answer));
      });
    });
    // There is no WebSocket here; subscriptions are hints that the watcher lives without.
    server.on("upgrade", (request) => request.socket.destroy());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    this.#server = server;
  }

  async stop(): Promise<void> {
    const server = this.#server;
    server?.closeAllConnections();
    await new Promise<void>((resolve) =>
      server === undefined ? resolve() : server.close(() => resolve()),
    );
  }

  #hash(text: string): Hash32 {
    return keccak256Hex(Buffer.from(`${this.#salt} ${text}`));
  }

  #dataApi(body: unknown): { status: number; answer: unknown } {
    const identifier = Reflect.get(Object(body), "block_identifier");
    const height = Number(Reflect.get(Object(identifier), "index"));
    const block = this.dataApiBlocks.get(height) ?? this.blocks[height];
    this.#count(`/block ${height}`);
    if (block === undefined || height > (this.dataApiHead ?? this.head)) {
      const answer = { code: 202, message: "block above the tip", retriable: true };
      return { status: 500, answer };
    }
    return {
      status: 200,
      answer: { block: encodeDataBlock(block, this.dataApiTokens.get(height)) },
    };
  }

  #rpc(body: unknown): unknown {
    if (Array.isArray(body)) return body.map((call) => this.#rpc(call));
    const { id, method, params } = body as { id: number; method: string; params: unknown[] };
    this.#count(method);
    try {
      return { jsonrpc: "2.0", id, result: this.#result(method, params) };
    } catch (error) {
      const message = error instanceof Error ? error.message : "fault";
      return { jsonrpc: "2.0", id, error: { code: -32000, message } };
    }
  }

  #result(method: string, params: readonly unknown[]): unknown {
    switch (method) {
      case "eth_chainId":
        return toQuantity(this.chainId);
      case "eth_syncing":
        return this.isSyncing ? { currentBlock: "0x0" } : false;
      case "eth_blockNumber":
        return toQuantity(this.toldHead ?? this.head);
      case "eth_getBlockByNumber":
        return this.#header(parseSafeQuantity(params[0]));
      case "eth_getBalance":
        return this.#balance(params[0] as Address, parseSafeQuantity(params[1]));
      case "causeway_getAccountJournal":
        return this.#journal(params);
      case "eth_getTransactionReceipt":
        return this.#receipt(params[0] as Hash32);
      default:
        throw new Error(`the method ${method} does not exist`);
    }
  }

  #header(height: number): unknown {
    const block = this.blocks[height];
    if (block === undefined) return null;
    return {
      number: toQuantity(height),
      hash: block.hash,
      parentHash: block.parentHash,
      timestamp: toQuantity(1_700_000_000 + 2 * height),
    };
  }

  #balance(address: Address, height: number): string {
    if (height > this.head) throw new Error("header not found");
    const lie = this.balanceLies.get(`${address}@${height}`) ?? 0n;
    return toQuantity(this.balanceAt(address, height) + lie);
  }

  #receipt(hash: Hash32): unknown {
    for (const block of this.blocks) {
      const index = block.transactions.findIndex((transaction) => transaction.hash === hash);
      const transaction = block.transactions[index];
      if (transaction === undefined) continue;
      const fee = transaction.changes.find((each) => each.reason === "FEE");
      const isSuccess = transaction.changes.every((each) => each.effective);
      return {
        transactionHash: hash,
        blockHash: block.hash,
        blockNumber: toQuantity(block.height),
        transactionIndex: toQuantity(index),
        from: fee?.from,
        to: transaction.changes.at(-1)?.to ?? null,
        contractAddress: null,
        status: isSuccess ? "0x1" : "0x0",
        gasUsed: toQuantity(fee?.amountAtoken ?? 0n),
        effectiveGasPrice: "0x1",
      };
    }
    return null;
  }

  /** Pages of one block each, so that paging is always exercised. */
  #journal(params: readonly unknown[]): unknown {
    const address = params[0] as Address;
    const to = parseSafeQuantity(params[2]);
    for (let height = parseSafeQuantity(params[1]); height <= to; height += 1) {
      const block = this.blocks[height];
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
            change: encodeChange(operation.change),
          })),
      );
      if (entries.length > 0) return { entries, next: height < to ? height + 1 : null };
    }
    return { entries: [], next: null };
  }

  #count(name: string): void {
    this.calls.set(name, (this.calls.get(name) ?? 0) + 1);
  }
}

/** Transactions and, last, the block-level one under the block's hash. */
function groupsOf(block: FakeBlock): readonly FakeTransaction[] {
  return block.blockChanges.length === 0
    ? block.transactions
    : [...block.transactions, { hash: block.hash, changes: block.blockChanges }];
}

function encodeChange(each: BalanceChange): unknown {
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

function encodeDataBlock(block: FakeBlock, holder: Address | undefined): unknown {
  const native = { symbol: "TOKEN", decimals: 18 };
  const token = { ...native, metadata: { contractAddress: FEE_COLLECTOR } };
  return {
    block_identifier: { index: block.height, hash: block.hash },
    parent_block_identifier: {
      index: Math.max(0, block.height - 1),
      hash: block.height === 0 ? block.hash : block.parentHash,
    },
    timestamp: 1_700_000_000_000 + 2_000 * block.height,
    transactions: groupsOf(block).map((group) => ({
      transaction_identifier: { hash: group.hash },
      operations: operationsOf(group.changes).map((operation) => ({
        operation_identifier: { index: operation.index },
        related_operations:
          operation.relatedIndex === undefined ? undefined : [{ index: operation.relatedIndex }],
        type: operation.type,
        status: operation.status,
        account: { address: operation.address },
        amount: {
          value: operation.amountAtoken.toString(),
          currency: operation.address === holder ? token : native,
        },
      })),
    })),
  };
}
