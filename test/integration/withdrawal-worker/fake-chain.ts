/** A JSON-RPC node in the test's process: one pool, blocks on demand, and faults on command. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type Address, parseAddress } from "../../../chain/address.js";
import { keccak256Hex } from "../../../chain/crypto.js";
import { type Hash32, parseHexBytes, toQuantity, ZERO_HASH } from "../../../chain/hex.js";
import {
  decodeTransaction,
  recoverSender,
  type SignedTransaction,
} from "../../../chain/transaction.js";

/** What the fake does with one HTTP request instead of answering it. */
export type WireFault =
  | "reset-before"
  | "reset-after"
  | "http-503"
  | "html"
  | "wrong-id"
  | "hang-after";

/** Result or error of one call, to be answered instead of the true one. */
export type CallOverride =
  | { readonly result: unknown }
  | { readonly error: { readonly code: number; readonly message: string } };

interface PooledTransaction {
  readonly tx: SignedTransaction;
  readonly from: Address;
}

interface MinedTransaction {
  readonly tx: SignedTransaction;
  readonly from: Address;
  readonly isSuccess: boolean;
  readonly height: number;
}

interface FakeBlock {
  readonly height: number;
  readonly hash: Hash32;
  readonly balances: ReadonlyMap<Address, bigint>;
  readonly nonces: ReadonlyMap<Address, bigint>;
}

/** Chain id of the fake. */
export const FAKE_CHAIN_ID = 6940n;

/** The fake node; close it after the test. */
export class FakeChain {
  readonly balances = new Map<Address, bigint>();
  readonly nonces = new Map<Address, bigint>();
  readonly receipts = new Map<Hash32, Record<string, unknown>>();
  /** Destinations that revert at estimate. */
  readonly reverting = new Set<Address>();
  /** Destinations that revert on the chain only. */
  readonly revertingOnChain = new Set<Address>();
  /** Every raw transaction that arrived, in order. */
  readonly arrived: string[] = [];
  gasPerPayment = 21_000n;
  minimumGas = 21_000n;
  gasPriceAtoken = 25_000_000n;
  minimumPriceAtoken = 1n;
  isSyncing = false;
  chainId = FAKE_CHAIN_ID;
  /** Asked for every HTTP request with the methods it holds. */
  wireFault: (methods: readonly string[]) => WireFault | undefined = () => undefined;
  /** Asked for every call. */
  override: (method: string, params: readonly unknown[]) => CallOverride | undefined = () =>
    undefined;
  readonly #blocks: FakeBlock[] = [];
  readonly #mined: MinedTransaction[] = [];
  readonly #pool = new Map<string, PooledTransaction>();
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
    this.#seal();
  }

  static async start(): Promise<FakeChain> {
    const chain = new FakeChain();
    await new Promise<void>((resolve) => chain.#server.listen(0, "127.0.0.1", resolve));
    return chain;
  }

  get url(): string {
    const listening = this.#server.address();
    if (listening === null || typeof listening === "string") throw new Error("not listening");
    return `http://127.0.0.1:${listening.port}`;
  }

  get height(): number {
    return this.#blocks.length - 1;
  }

  get poolSize(): number {
    return this.#pool.size;
  }

  blockHash(height: number): Hash32 {
    return this.#blocks[height]?.hash ?? ZERO_HASH;
  }

  /** Executes what is executable, in nonce order, and seals one block. */
  mine(): void {
    const height = this.#blocks.length;
    const hash = keccak256Hex(Buffer.from(`block ${height}`));
    for (let hasMore = true; hasMore; ) {
      hasMore = false;
      for (const [key, pooled] of this.#pool) {
        if (pooled.tx.nonce !== (this.nonces.get(pooled.from) ?? 0n)) continue;
        this.#pool.delete(key);
        this.#execute(pooled, { height, hash });
        hasMore = true;
      }
    }
    this.#seal();
  }

  /** Forgets pooled transactions, as a restarted node without a journal does. */
  clearPool(): void {
    this.#pool.clear();
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #seal(): void {
    const height = this.#blocks.length;
    this.#blocks.push({
      height,
      hash: keccak256Hex(Buffer.from(`block ${height}`)),
      balances: new Map(this.balances),
      nonces: new Map(this.nonces),
    });
  }

  #execute({ tx, from }: PooledTransaction, block: { height: number; hash: Hash32 }): void {
    const to = tx.to ?? from;
    const isSuccess = !this.revertingOnChain.has(to);
    const feeAtoken = this.gasPerPayment * tx.maxFeePerGasAtoken;
    const add = (owner: Address, deltaAtoken: bigint) =>
      this.balances.set(owner, (this.balances.get(owner) ?? 0n) + deltaAtoken);
    add(from, -feeAtoken);
    if (isSuccess) {
      add(from, -tx.valueAtoken);
      add(to, tx.valueAtoken);
    }
    this.nonces.set(from, tx.nonce + 1n);
    this.#mined.push({ tx, from, isSuccess, height: block.height });
    this.receipts.set(tx.hash, {
      transactionHash: tx.hash,
      transactionIndex: "0x0",
      blockHash: block.hash,
      blockNumber: toQuantity(block.height),
      from,
      to,
      contractAddress: null,
      status: isSuccess ? "0x1" : "0x0",
      gasUsed: toQuantity(this.gasPerPayment),
      cumulativeGasUsed: toQuantity(this.gasPerPayment),
      effectiveGasPrice: toQuantity(tx.maxFeePerGasAtoken),
      logs: [],
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString("utf8")) as unknown;
    const calls = (Array.isArray(body) ? body : [body]) as {
      id: number;
      method: string;
      params: unknown[];
    }[];
    const fault = this.wireFault(calls.map(({ method }) => method));
    if (fault === "reset-before") return void response.destroy();
    if (fault === "http-503") return void response.writeHead(503).end("busy");
    if (fault === "html") return void response.writeHead(200).end("<html>oops</html>");
    const answers = calls.map(({ id, method, params }) => ({
      jsonrpc: "2.0",
      id: fault === "wrong-id" ? id + 1_000_000 : id,
      ...(this.override(method, params) ?? this.#answer(method, params)),
    }));
    if (fault === "reset-after") return void response.destroy();
    if (fault === "hang-after") return;
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify(Array.isArray(body) ? answers : answers[0]));
  }

  #answer(method: string, params: readonly unknown[]): CallOverride {
    switch (method) {
      case "eth_chainId":
        return { result: toQuantity(this.chainId) };
      case "eth_syncing":
        return { result: this.isSyncing ? { currentBlock: "0x0" } : false };
      case "eth_blockNumber":
        return { result: toQuantity(this.height) };
      case "eth_gasPrice":
        return { result: toQuantity(this.gasPriceAtoken) };
      case "eth_getBlockByNumber":
        return { result: this.#header(Number(BigInt(String(params[0])))) };
      case "eth_getBalance":
        return { result: toQuantity(this.#at(params[1]).balances.get(address(params[0])) ?? 0n) };
      case "eth_getTransactionCount":
        return { result: toQuantity(this.#count(address(params[0]), params[1])) };
      case "eth_estimateGas":
        return this.#estimate(params[0] as { from: string; to: string; value: string });
      case "eth_sendRawTransaction":
        return this.#submit(String(params[0]));
      case "eth_getTransactionReceipt":
        return { result: this.receipts.get(String(params[0]) as Hash32) ?? null };
      case "causeway_getAccountJournal":
        return { result: this.#accountJournal(address(params[0]), params.slice(1)) };
      case "causeway_getBlockJournal":
        return { result: this.#blockJournal(String(params[0])) };
      default:
        return refuse(`the method ${method} does not exist`, -32601);
    }
  }

  #header(height: number): unknown {
    if (this.#blocks[height] === undefined) return null;
    return {
      number: toQuantity(height),
      hash: this.blockHash(height),
      parentHash: this.blockHash(height - 1),
      timestamp: toQuantity(1_700_000_000 + height),
    };
  }

  /** Fees and values of a sender, one block a page, so that paging is used. */
  #accountJournal(sender: Address, range: readonly unknown[]): unknown {
    const [from, to] = range.map((height) => Number(BigInt(String(height))));
    const own = this.#mined.filter((mined) => mined.from === sender);
    const inRange = own.filter(({ height }) => height >= (from ?? 0) && height <= (to ?? 0));
    const first = inRange[0]?.height;
    const following = inRange.find(({ height }) => height !== first);
    return {
      entries: inRange
        .filter(({ height }) => height === first)
        .map((mined) => {
          const [fee] = this.#changesOf(mined);
          return {
            blockNumber: toQuantity(mined.height),
            blockHash: this.blockHash(mined.height),
            transactionHash: mined.tx.hash,
            transactionIndex: 0,
            operationIndex: 0,
            delta: `-${BigInt(fee?.amount ?? 0)}`,
            change: fee,
          };
        }),
      next: following?.height ?? null,
    };
  }

  #blockJournal(hash: string): unknown {
    const block = this.#blocks.find((entry) => entry.hash === hash);
    if (block === undefined) return null;
    const mined = this.#mined.filter(({ height }) => height === block.height);
    return {
      blockHash: hash,
      blockNumber: toQuantity(block.height),
      parentHash: this.blockHash(block.height - 1),
      timestampMs: 1_700_000_000_000 + block.height,
      transactions: mined.map((entry, index) => ({
        hash: entry.tx.hash,
        index,
        status: entry.isSuccess ? "0x1" : "0x0",
        from: entry.from,
        to: entry.tx.to ?? null,
        contractAddress: null,
        gasUsed: toQuantity(this.gasPerPayment),
        gasPrice: toQuantity(entry.tx.maxFeePerGasAtoken),
        nonce: toQuantity(entry.tx.nonce),
        input: "0x",
        logs: [],
        changes: this.#changesOf(entry),
      })),
      blockChanges: [],
      minted: "0x0",
      burned: "0x0",
    };
  }

  #changesOf({ tx, from, isSuccess }: MinedTransaction) {
    const fee = this.gasPerPayment * tx.maxFeePerGasAtoken;
    const collector = `0x${"fe".repeat(20)}`;
    const side = { from, effective: true, error: null };
    return [
      { ...side, reason: "FEE", to: collector, amount: toQuantity(fee), tracePath: null },
      {
        ...side,
        reason: "CALL",
        to: tx.to ?? null,
        amount: toQuantity(tx.valueAtoken),
        effective: isSuccess,
        tracePath: "",
      },
    ];
  }

  #at(tag: unknown): FakeBlock {
    const height = tag === "latest" ? this.height : Number(BigInt(String(tag)));
    const block = this.#blocks[height];
    if (block === undefined) throw new Error(`no block ${height}`);
    return block;
  }

  #count(sender: Address, tag: unknown): bigint {
    if (tag !== "pending") return this.#at(tag).nonces.get(sender) ?? 0n;
    let next = this.nonces.get(sender) ?? 0n;
    while (this.#pool.has(`${sender} ${next}`)) next += 1n;
    return next;
  }

  #estimate(message: { from: string; to: string; value: string }): CallOverride {
    if (this.reverting.has(address(message.to))) return refuse("execution reverted: no", 3);
    if (BigInt(message.value) > (this.balances.get(address(message.from)) ?? 0n)) {
      return refuse("insufficient funds for transfer");
    }
    return { result: toQuantity(this.gasPerPayment) };
  }

  #submit(raw: string): CallOverride {
    this.arrived.push(raw);
    const tx = decodeTransaction(parseHexBytes(raw));
    const from = recoverSender(tx);
    const key = `${from} ${tx.nonce}`;
    const known = this.#pool.get(key);
    if (known?.tx.hash === tx.hash) return refuse("already known");
    const next = this.nonces.get(from) ?? 0n;
    if (tx.nonce < next) return refuse(`nonce too low: next nonce ${next}, tx nonce ${tx.nonce}`);
    if (tx.maxFeePerGasAtoken < this.minimumPriceAtoken) {
      const needed = this.minimumPriceAtoken;
      return refuse(
        `transaction gas price below minimum: gas tip cap ${tx.maxFeePerGasAtoken}, ` +
          `minimum needed ${needed}`,
      );
    }
    if (tx.gasLimit < this.minimumGas) {
      return refuse(`intrinsic gas too low: gas ${tx.gasLimit}, minimum needed ${this.minimumGas}`);
    }
    const cost = tx.gasLimit * tx.maxFeePerGasAtoken + tx.valueAtoken;
    if (cost > (this.balances.get(from) ?? 0n)) {
      return refuse("insufficient funds for gas * price + value: balance 0, tx cost 1, overshot 1");
    }
    if (known !== undefined && tx.maxFeePerGasAtoken * 10n < known.tx.maxFeePerGasAtoken * 11n) {
      return refuse("replacement transaction underpriced");
    }
    this.#pool.set(key, { tx, from });
    return { result: tx.hash };
  }
}

function address(value: unknown): Address {
  return parseAddress(value);
}

function refuse(message: string, code = -32000): CallOverride {
  return { error: { code, message } };
}
