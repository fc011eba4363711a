/** Call workers as real threads over a real store, and the calls that tests ask of them. */
import path from "node:path";
import { pathToFileURL } from "node:url";
import { Wallet } from "ethers";
import { parseAddress } from "../../../../chain/address.js";
import { contractAddressOf } from "../../../../chain/evm/contract-address.js";
import { CallPool, type CallPoolOptions } from "../../../../node/execution/calls/call-pool.js";
import type { CallRequest } from "../../../../node/execution/calls/call-port.js";
import { createLogger } from "../../../../runtime/process/logger.js";
import { ExecutionChain, testGenesis } from "../../../helpers/chains/execution-chain.js";
import { compiledFolder } from "../../../helpers/services/services.js";

/** Pays for everything, and owns all coins. */
export const wallet = new Wallet(`0x${"11".repeat(32)}`);
/** Its address. */
export const sender = parseAddress(wallet.address);
/** A price of gas that blocks take. */
export const PRICE = 25_000_000n;
/** Counts its calls in slot 0 and returns the count; with calldata it runs for ever. */
const COUNTER = "366012575f54600101805f525f5560205ff35b601256";
/** How calls are traced here. */
export const CALLS = { tracer: "callTracer", onlyTopCall: false, withLog: false } as const;
/** Of a caller that stays. */
export const signal = new AbortController().signal;
/** The contract of all calls. */
export const counter = contractAddressOf(sender, 0n);

/** A call of it. */
export const request = (changes: Partial<CallRequest> = {}): CallRequest => ({
  from: sender,
  to: counter,
  valueAtoken: 0n,
  gasPriceAtoken: 0n,
  gasLimit: undefined,
  data: new Uint8Array(0),
  accessList: [],
  ...changes,
});

/** One that runs for ever, as far as its gas goes. */
export const endless = (gasLimit = 10n ** 9n) => request({ data: Uint8Array.of(1), gasLimit });

/** A transaction of the wallet's. */
export async function sign(nonce: number, to: string | null, data = "0x") {
  const fields = { type: 0, chainId: 6940, nonce, gasPrice: PRICE, gasLimit: 300_000n };
  return wallet.signTransaction({ ...fields, to, data });
}

/** Where the transfer of an index in a full block goes. */
export const receiver = (index: number) => `0x${(index + 1_000).toString(16).padStart(40, "0")}`;

/** A chain of three blocks and pools over it; the counter stands at 1, 3 and 4 behind them. */
export class CallBench {
  readonly #pools: CallPool[] = [];

  private constructor(
    readonly chain: ExecutionChain,
    readonly workerUrl: URL,
  ) {}

  static async open(): Promise<CallBench> {
    const folder = await compiledFolder();
    const entry = path.join(folder, "node", "execution", "calls", "call-worker.js");
    const chain = await ExecutionChain.open(testGenesis(wallet.address));
    const size = (COUNTER.length / 2).toString(16);
    await chain.mine([await sign(0, null, `0x60${size}600a5f3960${size}5ff3${COUNTER}`)]);
    await chain.mine([await sign(1, counter), await sign(2, counter)]);
    await chain.mine([await sign(3, counter)]);
    return new CallBench(chain, pathToFileURL(entry));
  }

  /** A pool of one worker, which does everything; closed with the bench. */
  open(changes: Partial<CallPoolOptions> = {}): CallPool {
    const { chain, workerUrl } = this;
    const pool = new CallPool({
      view: chain.view,
      stateReaderAt: (height) => chain.stores.state.readerAt(height),
      chainId: chain.genesis.evmChainId,
      params: chain.genesis.params,
      workerCount: 1,
      gasCap: 50_000_000n,
      timeoutMs: 20_000,
      log: createLogger({ component: "test", level: "silent" }),
      workerUrl,
      inPlaceNs: 0,
      ...changes,
    });
    this.#pools.push(pool);
    return pool;
  }

  /** Workers that can be made or not: what is not a file is refused at once, as a thread that there is not. */
  scarceWorkers() {
    const url = new URL(this.workerUrl);
    const workers = { url, areThere: true, lookCount: 0 };
    Object.defineProperty(url, "protocol", {
      get() {
        workers.lookCount += 1;
        return workers.areThere ? "file:" : "http:";
      },
    });
    return workers;
  }

  /** A block with 300 transfers, each to another. @returns its height */
  async mineFull(): Promise<number> {
    const { chain } = this;
    const nonce = Number((await chain.view.account(sender, chain.view.head().height))?.nonce);
    const raws = Array.from({ length: 300 }, (_, index) => sign(nonce + index, receiver(index)));
    await chain.mine(await Promise.all(raws));
    return chain.view.head().height;
  }

  async close(): Promise<void> {
    await Promise.all(this.#pools.map((pool) => pool.close()));
    await this.chain.close();
  }
}
