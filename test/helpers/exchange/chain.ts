/**
 * What the exchange tests put on the chain: signed by ethers, with nonces counted here, so that
 * nothing the tests expect comes from the product.
 */
import {
  type AddressLike,
  concat,
  getCreateAddress,
  Interface,
  JsonRpcProvider,
  Transaction,
  type TransactionLike,
  Wallet,
} from "ethers";
import type { RunningKit } from "../kit.js";
import type { CompiledContract } from "../contracts/solidity.js";
import { until } from "../until.js";

/** Price of every transaction of these tests, atoken per gas. */
export const TEST_GAS_PRICE_ATOKEN = 25_000_000n;

/** A call that is enough for every contract of Exchange.sol. */
const CALL_GAS = 700_000n;

/** The longest that a transaction may take to be mined on a busy machine. */
const MINED_TIMEOUT_MS = 30_000;

/** What a test wants mined. */
export interface ChainRequest {
  /** Undefined creates a contract. */
  readonly to?: string;
  readonly valueAtoken?: bigint;
  readonly data?: string;
  readonly gasLimit?: bigint;
  readonly type?: 0 | 1 | 2;
}

/** The parts of a receipt that the tests look at. */
export interface TestReceipt {
  readonly hash: string;
  readonly blockNumber: number;
  readonly blockHash: string;
  readonly transactionIndex: number;
  readonly isSuccess: boolean;
  readonly feeAtoken: bigint;
}

/** A mined transaction of one sender. */
export interface ScannedTransaction {
  readonly hash: string;
  readonly nonce: number;
  /** Lower case; undefined creates a contract. */
  readonly to: string | undefined;
  readonly valueAtoken: bigint;
}

interface RpcReceipt {
  readonly transactionHash: string;
  readonly blockNumber: string;
  readonly blockHash: string;
  readonly transactionIndex: string;
  readonly status: string;
  readonly gasUsed: string;
  readonly effectiveGasPrice: string;
}

interface RpcBlock {
  readonly transactions: readonly {
    readonly hash: string;
    readonly from: string;
    readonly to: string | null;
    readonly nonce: string;
    readonly value: string;
  }[];
}

/** An account that signs with ethers and counts its nonces itself. */
export class Sender {
  #nonce: number;

  constructor(
    readonly wallet: Pick<Wallet, "address" | "signTransaction">,
    readonly chain: ExchangeChain,
    firstNonce = 0,
  ) {
    this.#nonce = firstNonce;
  }

  /** Signs and sends in order; the hashes are computed here and compared with the node's answer. */
  async send(requests: readonly ChainRequest[]): Promise<string[]> {
    const raws: string[] = [];
    for (const request of requests) raws.push(await this.#sign(request));
    const hashes = raws.map((raw) => Transaction.from(raw).hash ?? "");
    const answers = await Promise.all(raws.map((raw) => this.chain.sendRaw(raw)));
    hashes.forEach((hash, index) => {
      const answer = String(answers[index]);
      if (answer !== hash) throw new Error(`sent ${hash}, the node said ${answer}`);
    });
    return hashes;
  }

  /** Deploys a contract without waiting. @returns its address, lower case */
  async deploy(
    contract: CompiledContract | undefined,
    args: readonly unknown[] = [],
    valueAtoken = 0n,
  ): Promise<string> {
    const address = getCreateAddress({ from: this.wallet.address, nonce: this.#nonce });
    await this.send([{ data: deployData(contract, args), valueAtoken, gasLimit: 3_000_000n }]);
    return address.toLowerCase();
  }

  #sign(request: ChainRequest): Promise<string> {
    const { to, valueAtoken = 0n, data = "0x", type = 0 } = request;
    const isPlain = to !== undefined && data === "0x";
    const price: TransactionLike<AddressLike> =
      type === 2
        ? { maxFeePerGas: TEST_GAS_PRICE_ATOKEN, maxPriorityFeePerGas: TEST_GAS_PRICE_ATOKEN }
        : { gasPrice: TEST_GAS_PRICE_ATOKEN };
    const nonce = this.#nonce;
    this.#nonce += 1;
    return this.wallet.signTransaction({
      ...price,
      ...(to === undefined ? {} : { to }),
      type,
      nonce,
      data,
      chainId: 6940n,
      value: valueAtoken,
      gasLimit: request.gasLimit ?? (isPlain ? 21_000n : CALL_GAS),
    });
  }
}

/** Bytes that create a contract. */
export function deployData(
  contract: CompiledContract | undefined,
  args: readonly unknown[] = [],
): string {
  if (contract === undefined) throw new Error("the contract did not compile");
  const encoded = new Interface(JSON.stringify(contract.abi)).encodeDeploy([...args]);
  return concat([contract.bytecode, encoded]);
}

/** The kit's node, as ethers sees it. */
export class ExchangeChain {
  readonly provider: JsonRpcProvider;

  constructor(kit: RunningKit) {
    this.provider = new JsonRpcProvider(kit.url("jsonRpc"), undefined, { batchMaxCount: 100 });
  }

  /** New accounts, each with this many atoken from the faucet. */
  async fund(faucet: Sender, count: number, eachAtoken: bigint): Promise<Sender[]> {
    const wallets = Array.from({ length: count }, () => Wallet.createRandom());
    const requests = wallets.map(({ address }) => ({ to: address, valueAtoken: eachAtoken }));
    await this.mined(await faucet.send(requests));
    return wallets.map(({ privateKey }) => new Sender(new Wallet(privateKey), this));
  }

  async sendRaw(raw: string): Promise<unknown> {
    return this.provider.send("eth_sendRawTransaction", [raw]);
  }

  /** Receipts in order, once all are mined. */
  async mined(hashes: readonly string[]): Promise<TestReceipt[]> {
    const found = new Map<string, TestReceipt>();
    const look = async (hash: string) => {
      const receipt: RpcReceipt | null = await this.provider.send("eth_getTransactionReceipt", [
        hash,
      ]);
      if (receipt !== null) found.set(hash, toReceipt(receipt));
    };
    await until(
      async () => {
        await Promise.all(hashes.filter((hash) => !found.has(hash)).map(look));
        return hashes.every((hash) => found.has(hash));
      },
      { timeoutMs: MINED_TIMEOUT_MS, what: `${hashes.length} transactions are mined` },
    );
    return hashes.flatMap((hash) => found.get(hash) ?? []);
  }

  async height(): Promise<number> {
    return Number(await this.provider.send("eth_blockNumber", []));
  }

  /** Waits for so many more blocks. */
  async blocksPass(count: number): Promise<void> {
    const target = (await this.height()) + count;
    await until(async () => (await this.height()) >= target, {
      timeoutMs: MINED_TIMEOUT_MS,
      what: `height ${target}`,
    });
  }

  /** Every transaction that an account ever got mined, by reading all blocks. */
  async scan(from: string): Promise<ScannedTransaction[]> {
    const head = await this.height();
    const found: ScannedTransaction[] = [];
    for (let first = 0; first <= head; first += 50) {
      const heights = Array.from({ length: Math.min(50, head - first + 1) }, (_, n) => first + n);
      const blocks: RpcBlock[] = await Promise.all(
        heights.map((height) =>
          this.provider.send("eth_getBlockByNumber", [`0x${height.toString(16)}`, true]),
        ),
      );
      for (const { transactions } of blocks) {
        for (const { hash, nonce, value, to, ...rest } of transactions) {
          if (rest.from.toLowerCase() !== from) continue;
          const place = { hash, nonce: Number(nonce), to: to?.toLowerCase() };
          found.push({ ...place, valueAtoken: BigInt(value) });
        }
      }
    }
    return found;
  }
}

function toReceipt(receipt: RpcReceipt): TestReceipt {
  return {
    hash: receipt.transactionHash,
    blockNumber: Number(receipt.blockNumber),
    blockHash: receipt.blockHash,
    transactionIndex: Number(receipt.transactionIndex),
    isSuccess: receipt.status === "0x1",
    feeAtoken: BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice),
  };
}
