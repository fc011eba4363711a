/** Latencies of single reads while a chain is under load: what a client beside the load meets. */
import type { Address } from "../../chain/address.js";
import { encodeCall, LoadConnection, percentiles } from "./http-load.js";

/** Pause between two reads of one node: the probe is not to be a load of its own. */
const PAUSE_MS = 40;

/** What is read. */
export const PROBED_METHODS = [
  "eth_getTransactionReceipt",
  "eth_getBalance",
  "eth_blockNumber",
] as const;

type ProbedMethod = (typeof PROBED_METHODS)[number];

/** Figures of one method. */
export interface ProbeFigures {
  readonly method: ProbedMethod;
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Reads from all nodes, one request at a time each, until it is stopped. */
export class ReadProbe {
  private readonly timesMs = new Map<ProbedMethod, number[]>();
  private readonly loops: Promise<void>;
  private isStopped = false;

  constructor(
    urls: readonly string[],
    private readonly account: Address,
  ) {
    for (const method of PROBED_METHODS) this.timesMs.set(method, []);
    this.loops = Promise.all(urls.map((url) => this.read(url))).then(() => undefined);
    // A fault is thrown by `stop`; until then nobody waits for it.
    this.loops.catch(() => undefined);
  }

  /** Forgets what was measured so far. */
  restart(): void {
    for (const times of this.timesMs.values()) times.length = 0;
  }

  /** Figures since the last `restart`. */
  figures(): ProbeFigures[] {
    return [...this.timesMs].map(([method, times]) => {
      return { method, count: times.length, ...percentiles(times) };
    });
  }

  /** Ends the reads. Throws Error when one of them failed. */
  async stop(): Promise<void> {
    this.isStopped = true;
    await this.loops;
  }

  private async read(url: string): Promise<void> {
    const connection = new LoadConnection(url);
    try {
      let hash = `0x${"0".repeat(64)}`;
      while (!this.isStopped) {
        hash = (await newestHash(connection, url)) ?? hash;
        const params = { eth_getTransactionReceipt: [hash], eth_blockNumber: [] };
        for (const method of PROBED_METHODS) {
          const own = method === "eth_getBalance" ? [this.account, "latest"] : params[method];
          const bytes = encodeCall(url, method, own);
          const startMs = performance.now();
          await connection.send(bytes, { wantsBody: false });
          this.timesMs.get(method)?.push(performance.now() - startMs);
          await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
        }
      }
    } finally {
      connection.close();
    }
  }
}

/** A transaction of the newest block, where that has one. */
async function newestHash(connection: LoadConnection, url: string): Promise<string | undefined> {
  const method = "eth_getTransactionByBlockNumberAndIndex";
  const bytes = encodeCall(url, method, ["latest", "0x0"]);
  const { body } = await connection.send(bytes, { wantsBody: true });
  return (JSON.parse(body.toString()) as { result?: { hash: string } | null }).result?.hash;
}
