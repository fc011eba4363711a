/**
 * A chain in memory behind a real HTTP port: JSON-RPC with a pool at `/`, the Data API at `/block`.
 * Balances follow the changes of each block, so what a test mines is consistent until the test
 * spoils it.
 */
import type { Address } from "../../../chain/address.js";
import { type BalanceChange, forEachDelta } from "../../../chain/balance-change.js";
import { decodeTransfer } from "../../../chain/evm/erc20.js";
import { keccak256Hex } from "../../../chain/hashes.js";
import { bytesToHex, type Hash32, parseHexBytes, ZERO_HASH } from "../../../chain/hex.js";
import {
  decodeTransaction,
  recoverSender,
  type SignedTransaction,
} from "../../../chain/transaction.js";
import { dataApiBlock, fakeChainMethods } from "./fake-chain-json.js";
import {
  type CallOverride,
  type FakeNode,
  RpcFault,
  startFakeNode,
  type WireFault,
} from "./fake-node.js";

/** Chain id of the fake. */
export const FAKE_CHAIN_ID = 6940n;

/** Where the fees of the fake chain go. */
export const FEE_COLLECTOR = `0x${"fe".repeat(20)}` as Address;

/** Units of the chain's token that a transaction moves, and that its contract logs. */
export interface FakeTokenMove {
  /** Undefined for a mint. */
  readonly from: Address | undefined;
  readonly to: Address;
  readonly units: bigint;
}

/** A transaction of the fake chain. */
export interface FakeTransaction {
  readonly hash: Hash32;
  readonly changes: readonly BalanceChange[];
  readonly tokenMoves?: readonly FakeTokenMove[];
  /** The signed transaction where one was sent to the pool. */
  readonly signed?: { readonly tx: SignedTransaction; readonly from: Address };
  /** Of a Cosmos transaction: it uses a nonce of its signer, and has no receipt. */
  readonly cosmos?: { readonly from: Address; readonly nonce: bigint };
}

/** A block of the fake chain; tests may replace one to spoil it. */
export interface FakeBlock {
  height: number;
  hash: Hash32;
  parentHash: Hash32;
  transactions: readonly FakeTransaction[];
  blockChanges: readonly BalanceChange[];
}

interface State {
  readonly balances: ReadonlyMap<Address, bigint>;
  readonly units: ReadonlyMap<Address, bigint>;
  readonly nonces: ReadonlyMap<Address, bigint>;
}

interface PooledTransaction {
  readonly tx: SignedTransaction;
  readonly from: Address;
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
  /** State behind the newest block; a test may set balances and nonces before it mines. */
  readonly balances = new Map<Address, bigint>();
  readonly nonces = new Map<Address, bigint>();
  /** Contract of the only token; none without it. */
  token: Address | undefined;
  /** Who holds it. */
  readonly units = new Map<Address, bigint>();

  // What the Data API tells.
  /** What it serves instead of a block's own content, by height. */
  readonly dataApiBlocks = new Map<number, FakeBlock>();
  /** Whose operations it gives out as those of a token called TOKEN, by height. */
  readonly dataApiTokens = new Map<number, Address>();
  /** Highest block that it has; all without it. */
  dataApiHead: number | undefined;

  // What JSON-RPC tells.
  /** Added to the balance that it answers, by `address@height`. */
  readonly balanceLies = new Map<string, bigint>();
  /** Head that it tells instead of the real one. */
  toldHead: number | undefined;
  isSyncing = false;
  chainId = FAKE_CHAIN_ID;
  /** True closes every connection without an answer, the Data API's as well. */
  isDown = false;
  /** Asked for every JSON-RPC request with the methods it holds. */
  wireFault: (methods: readonly string[]) => WireFault | undefined = () => undefined;
  /** Asked for every call. */
  override: (method: string, params: readonly unknown[]) => CallOverride | undefined = () =>
    undefined;

  // What the pool takes.
  /** Destinations that revert at estimate. */
  readonly reverting = new Set<Address>();
  /** Destinations that revert on the chain only. */
  readonly revertingOnChain = new Set<Address>();
  /** Every raw transaction that arrived, in order. */
  readonly arrived: string[] = [];
  /** Destinations whose transactions stay in the pool. */
  readonly unmined = new Set<Address>();
  /** Destinations that run code. */
  readonly withCode = new Set<Address>();
  /** Gas that estimates find for a destination; `gasPerPayment` for others. */
  readonly gasOf = new Map<Address, bigint>();
  /** Most gas of one transaction; the node names it where `namesTransactionGas`. */
  maxTransactionGas = 30_000_000n;
  namesTransactionGas = true;
  gasPerPayment = 21_000n;
  minimumGas = 21_000n;
  gasPriceAtoken = 25_000_000n;
  minimumPriceAtoken = 1n;

  readonly #pool = new Map<string, PooledTransaction>();
  readonly #states: State[] = [];
  #salt: string;
  #node: FakeNode | undefined;
  #nextTransaction = 0;

  constructor(salt = "fake") {
    this.#salt = salt;
  }

  async start(): Promise<void> {
    this.#node = await startFakeNode(fakeChainMethods(this), {
      wireFault: (methods) => (this.isDown ? "reset-before" : this.wireFault(methods)),
      override: (method, params) => this.override(method, params),
      route: (path, body) => (path === "/block" && !this.isDown ? this.#block(body) : undefined),
    });
  }

  async stop(): Promise<void> {
    await this.#node?.close();
  }

  get url(): string {
    if (this.#node === undefined) throw new Error("not started");
    return this.#node.url;
  }

  get head(): number {
    return this.blocks.length - 1;
  }

  get genesisHash(): Hash32 {
    return this.blockHash(0);
  }

  get poolSize(): number {
    return this.#pool.size;
  }

  blockHash(height: number): Hash32 {
    return this.blocks[height]?.hash ?? ZERO_HASH;
  }

  /** Balance after a block; undefined above the head. */
  balanceAt(address: Address, height: number): bigint | undefined {
    const state = this.#states[height];
    return state === undefined ? undefined : (state.balances.get(address) ?? 0n);
  }

  /** Units of the token after a block, by its height or hash; undefined where there is none. */
  unitsAt(address: Address, at: number | Hash32): bigint | undefined {
    const height = typeof at === "number" ? at : this.blocks.findIndex(({ hash }) => hash === at);
    const state = this.#states[height];
    return state === undefined ? undefined : (state.units.get(address) ?? 0n);
  }

  /** Next nonce after a block, or behind what waits in the pool; undefined above the head. */
  nonceAt(address: Address, at: number | "pending"): bigint | undefined {
    if (at !== "pending") {
      const state = this.#states[at];
      return state === undefined ? undefined : (state.nonces.get(address) ?? 0n);
    }
    let next = this.nonces.get(address) ?? 0n;
    while (this.#pool.has(`${address} ${next}`)) next += 1n;
    return next;
  }

  /** Nonces of what waits in the pool behind one that is missing there. */
  queuedNonces(address: Address): bigint[] {
    const next = this.nonceAt(address, "pending") ?? 0n;
    const own = [...this.#pool.values()].filter(({ from }) => from === address);
    return own.flatMap(({ tx: { nonce } }) => (nonce > next ? [nonce] : []));
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

  /** A transaction that moves units of the token, with a fee. */
  tokenPayment(from: Address, ...tokenMoves: readonly FakeTokenMove[]): FakeTransaction {
    const fee = change({ reason: "FEE", from, to: FEE_COLLECTOR, amountAtoken: 21n });
    return { ...this.transaction(fee), tokenMoves };
  }

  /** The same by Cosmos messages: by `MsgSend`, or to several by `MsgMultiSend`. */
  cosmosPayment(from: Address, to: Address, amountAtoken: bigint): FakeTransaction {
    return this.cosmosPayments(from, [[to, amountAtoken]]);
  }

  /** One Cosmos transaction that pays each of these. */
  cosmosPayments(
    from: Address,
    payments: readonly (readonly [Address, bigint])[],
  ): FakeTransaction {
    const fee = change({ reason: "FEE", from, to: FEE_COLLECTOR, amountAtoken: 21n });
    const sends = payments.map(([to, amountAtoken]) => change({ from, to, amountAtoken }));
    const nonce = this.nonces.get(from) ?? 0n;
    return { ...this.transaction(fee, ...sends), cosmos: { from, nonce } };
  }

  /** Adds a block on top: what the pool has and can be executed, then these transactions. */
  mine(
    transactions: readonly FakeTransaction[] = [],
    blockChanges: readonly BalanceChange[] = [],
  ): FakeBlock {
    const height = this.blocks.length;
    const all = [...this.#takeExecutable(), ...transactions];
    this.#apply([...transactions.flatMap(({ changes }) => changes), ...blockChanges]);
    for (const { tokenMoves = [] } of transactions) this.#move(tokenMoves);
    for (const { cosmos } of transactions) {
      if (cosmos !== undefined) this.nonces.set(cosmos.from, cosmos.nonce + 1n);
    }
    this.#states.push({
      balances: new Map(this.balances),
      nonces: new Map(this.nonces),
      units: new Map(this.units),
    });
    const block = {
      height,
      hash: this.#hash(`block ${height}`),
      parentHash: this.blocks.at(-1)?.hash ?? ZERO_HASH,
      transactions: all,
      blockChanges,
    };
    this.blocks.push(block);
    return block;
  }

  /** Loses the blocks above a height and its pool, as a node restored from an older copy does. */
  rollBack(height: number): void {
    this.blocks.length = height + 1;
    this.#states.length = height + 1;
    this.#pool.clear();
    for (const [mine, kept] of [
      [this.balances, this.#states[height]?.balances],
      [this.nonces, this.#states[height]?.nonces],
      [this.units, this.#states[height]?.units],
    ] as const) {
      mine.clear();
      for (const [address, value] of kept ?? []) mine.set(address, value);
    }
    // What is mined from here on is another history.
    this.#salt = `${this.#salt}+`;
  }

  /** Takes raw bytes into the pool. Throws what a node answers, in its words. */
  submit(raw: string): Hash32 {
    this.arrived.push(raw);
    const tx = decodeTransaction(parseHexBytes(raw));
    const from = recoverSender(tx);
    const key = `${from} ${tx.nonce}`;
    const known = this.#pool.get(key);
    if (known?.tx.hash === tx.hash) throw new RpcFault(-32000, "already known");
    const refusal = this.#refusal(tx, from, known);
    if (refusal !== undefined) throw new RpcFault(-32000, refusal);
    this.#pool.set(key, { tx, from });
    return tx.hash;
  }

  /** Forgets pooled transactions, as a restarted node without a journal does. */
  clearPool(): void {
    this.#pool.clear();
  }

  #refusal(
    tx: SignedTransaction,
    from: Address,
    known: PooledTransaction | undefined,
  ): string | undefined {
    const price = tx.maxFeePerGasAtoken;
    const next = this.nonces.get(from) ?? 0n;
    if (tx.nonce < next) return `nonce too low: next nonce ${next}, tx nonce ${tx.nonce}`;
    if (price < this.minimumPriceAtoken) {
      const needed = this.minimumPriceAtoken;
      return `transaction gas price below minimum: gas tip cap ${price}, minimum needed ${needed}`;
    }
    if (tx.gasLimit > this.maxTransactionGas) return "exceeds block gas limit";
    if (tx.gasLimit < this.minimumGas) {
      return `intrinsic gas too low: gas ${tx.gasLimit}, minimum needed ${this.minimumGas}`;
    }
    if (!this.#canPay(tx, from)) {
      return "insufficient funds for gas * price + value: balance 0, tx cost 1, overshot 1";
    }
    const isCheap = known !== undefined && price * 10n < known.tx.maxFeePerGasAtoken * 11n;
    return isCheap ? "replacement transaction underpriced" : undefined;
  }

  /** In nonce order, each executed on the state that the one before it left. */
  #takeExecutable(): FakeTransaction[] {
    const executed: FakeTransaction[] = [];
    for (let hasMore = true; hasMore; ) {
      hasMore = false;
      for (const [key, pooled] of this.#pool) {
        if (pooled.tx.nonce !== (this.nonces.get(pooled.from) ?? 0n)) continue;
        if (this.#isUnmined(pooled.tx) || !this.#canPay(pooled.tx, pooled.from)) continue;
        this.#pool.delete(key);
        executed.push(this.#execute(pooled));
        hasMore = true;
      }
    }
    return executed;
  }

  /** Of two that were taken each may be covered, and not both. */
  #canPay(
    { gasLimit, maxFeePerGasAtoken, valueAtoken }: SignedTransaction,
    from: Address,
  ): boolean {
    return gasLimit * maxFeePerGasAtoken + valueAtoken <= (this.balances.get(from) ?? 0n);
  }

  #isUnmined({ to, data }: SignedTransaction): boolean {
    const receiver = to === this.token ? decodeTransfer(bytesToHex(data))?.to : undefined;
    return [to, receiver].some((each) => each !== undefined && this.unmined.has(each));
  }

  #execute(pooled: PooledTransaction): FakeTransaction {
    const { tx, from } = pooled;
    const effective = tx.to === undefined || !this.revertingOnChain.has(tx.to);
    const amountAtoken = this.gasPerPayment * tx.maxFeePerGasAtoken;
    const feeTo = { to: FEE_COLLECTOR, tracePath: undefined };
    const fee = change({ reason: "FEE", from, amountAtoken, ...feeTo });
    this.nonces.set(from, tx.nonce + 1n);
    if (tx.to !== undefined && tx.to === this.token) return this.#executeToken(pooled, fee);
    const changes = [fee, change({ from, to: tx.to, amountAtoken: tx.valueAtoken, effective })];
    this.#apply(changes);
    return { hash: tx.hash, changes, signed: pooled };
  }

  /** The change that every call has, and the units that the token moves. */
  #executeToken({ tx, from }: PooledTransaction, fee: BalanceChange): FakeTransaction {
    const { to, amountUnits: units } = decodeTransfer(bytesToHex(tx.data)) ?? {};
    const isMoved =
      to !== undefined &&
      units !== undefined &&
      units <= (this.units.get(from) ?? 0n) &&
      !this.revertingOnChain.has(to);
    const tokenMoves = isMoved ? [{ from, to, units }] : [];
    const called = change({ from, to: tx.to, amountAtoken: 0n, effective: isMoved });
    this.#apply([fee]);
    this.#move(tokenMoves);
    return { hash: tx.hash, changes: [fee, called], tokenMoves, signed: { tx, from } };
  }

  #move(moves: readonly FakeTokenMove[]): void {
    for (const { from, to, units } of moves) {
      if (from !== undefined) this.units.set(from, (this.units.get(from) ?? 0n) - units);
      this.units.set(to, (this.units.get(to) ?? 0n) + units);
    }
  }

  #apply(changes: readonly BalanceChange[]): void {
    for (const each of changes) {
      forEachDelta(each, (address, delta) => {
        this.balances.set(address, (this.balances.get(address) ?? 0n) + delta);
      });
    }
  }

  #block(body: unknown): { status: number; answer: unknown } {
    const identifier: unknown = Reflect.get(Object(body), "block_identifier");
    const height = Number(Reflect.get(Object(identifier), "index"));
    const block = this.dataApiBlocks.get(height) ?? this.blocks[height];
    if (block === undefined || height > (this.dataApiHead ?? this.head)) {
      const answer = { code: 202, message: "block above the tip", retriable: true };
      return { status: 500, answer };
    }
    return {
      status: 200,
      answer: { block: dataApiBlock(block, this.dataApiTokens.get(height), FEE_COLLECTOR) },
    };
  }

  #hash(text: string): Hash32 {
    return keccak256Hex(Buffer.from(`${this.#salt} ${text}`));
  }
}
