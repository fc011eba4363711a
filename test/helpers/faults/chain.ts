/**
 * The chain as an outsider sees it during faults: JSON-RPC that waits while the node is down, and
 * a witness who writes down every block that was shown and later holds the node to it.
 */
import { until } from "../until.js";

/** Time that callers bear an outage: a whole kit killed and started again on a busy machine. */
const PATIENCE_MS = 240_000;

/** Longest wait for one answer; a frozen process gives none. */
const ANSWER_TIMEOUT_MS = 30_000;

/** Calls in one batch: blocks with all their transactions stay below the reply's bound. */
const BATCH = 200;

/** Pause between two looks at the head; the tests' blocks come every 500 ms. */
const LOOK_EVERY_MS = 60;

/** One reply of a batch. */
export interface RpcReply {
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string };
}

/** A block as the checks read it. */
export interface ChainBlock {
  readonly height: number;
  readonly hash: string;
  readonly parentHash: string;
  readonly transactions: readonly ChainTransaction[];
}

/** A transaction as the checks read it. */
export interface ChainTransaction {
  readonly hash: string;
  readonly from: string;
  readonly to: string | null;
  readonly nonce: number;
  readonly valueAtoken: bigint;
  /** Hex. */
  readonly input: string;
}

/** Tries until it gets an answer below 500; faults of the wire are waited out. */
export async function patientFetch(
  url: () => string,
  init: () => RequestInit,
): Promise<{ status: number; body: unknown }> {
  let outcome: { status: number; body: unknown } | undefined;
  let lastFault = "";
  await until(
    async () => {
      try {
        const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
        const answer = await fetch(url(), { ...init(), signal });
        const text = await answer.text();
        lastFault = `${answer.status} ${text.slice(0, 500)}`;
        if (answer.status >= 500) return false;
        outcome = { status: answer.status, body: JSON.parse(text) };
        return true;
      } catch (error) {
        lastFault = String(error);
        return false;
      }
    },
    { timeoutMs: PATIENCE_MS, what: `an answer of ${url()}` },
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}; the last one was ${lastFault}`);
  });
  if (outcome === undefined) throw new Error("no outcome");
  return outcome;
}

/** A node behind a URL that may be down at times. */
export class FaultChain {
  /** @param url asked anew for each call: a kit that was started again may be another object */
  constructor(private readonly url: () => string) {}

  /** All replies in the order of the calls. */
  async batch(calls: readonly (readonly [string, readonly unknown[]])[]): Promise<RpcReply[]> {
    const replies: RpcReply[] = [];
    for (let start = 0; start < calls.length; start += BATCH) {
      const part = calls.slice(start, start + BATCH);
      const body = JSON.stringify(
        part.map(([method, params], id) => ({ jsonrpc: "2.0", id, method, params })),
      );
      const headers = { "content-type": "application/json" };
      const answer = await patientFetch(this.url, () => ({ method: "POST", headers, body }));
      const byId = new Map(
        (answer.body as (RpcReply & { id: number })[]).map((reply) => [reply.id, reply]),
      );
      part.forEach(([method], id) => {
        const reply = byId.get(id);
        if (reply === undefined) throw new Error(`no reply to ${method} in ${answer.status}`);
        replies.push(reply);
      });
    }
    return replies;
  }

  /** Results in the order of the calls; an error reply throws. */
  async results(calls: readonly (readonly [string, readonly unknown[]])[]): Promise<unknown[]> {
    const replies = await this.batch(calls);
    return replies.map(({ result, error }, index) => {
      if (error !== undefined) throw new Error(`${calls[index]?.[0]}: ${error.message}`);
      return result;
    });
  }

  async call(method: string, ...params: readonly unknown[]): Promise<unknown> {
    return (await this.results([[method, params]]))[0];
  }

  async height(): Promise<number> {
    return Number(await this.call("eth_blockNumber"));
  }

  /** Blocks of a range with their transactions, in order; all of them must be there. */
  async blocks(from: number, to: number): Promise<ChainBlock[]> {
    const heights = Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);
    const found = await this.results(
      heights.map((height) => ["eth_getBlockByNumber", [`0x${height.toString(16)}`, true]]),
    );
    return found.map((block, index) => {
      if (block === null) throw new Error(`block ${heights[index]} is missing`);
      return readBlock(block as Record<string, unknown>);
    });
  }
}

/** Writes down every block that the node has shown. */
export class BlockWitness {
  readonly #shown = new Map<number, string>();
  readonly #contradictions: string[] = [];

  constructor(private readonly chain: FaultChain) {}

  /** Blocks written down so far. */
  get count(): number {
    return this.#shown.size;
  }

  /** Looks at the head until the signal fires. */
  async run(signal: AbortSignal): Promise<void> {
    let nextHeight = (await this.chain.height()) + 1;
    while (!signal.aborted) {
      const head = await this.chain.height();
      if (head < nextHeight - 1) this.#contradictions.push(`the head fell to ${head}`);
      for (const { height, hash } of await this.chain.blocks(nextHeight, head)) {
        this.note(height, hash);
      }
      nextHeight = Math.max(nextHeight, head + 1);
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
  }

  /** Writes down one block. */
  note(height: number, hash: string): void {
    const before = this.#shown.get(height);
    if (before !== undefined && before !== hash) {
      this.#contradictions.push(`block ${height} was ${before} and became ${hash}`);
    }
    this.#shown.set(height, before ?? hash);
  }

  /** A chain that came back older owes nothing of the blocks that it has lost. */
  forgetAbove(height: number): void {
    for (const shown of this.#shown.keys()) if (shown > height) this.#shown.delete(shown);
  }

  /** Hashes by height of what was shown so far. */
  shown(): ReadonlyMap<number, string> {
    return new Map(this.#shown);
  }

  /**
   * Everything in which the chain differs from what it once showed; empty when nothing does.
   * @param blocks read behind `shown`: what came since is in none of them
   */
  contradictions(blocks: readonly ChainBlock[], shown: ReadonlyMap<number, string>): string[] {
    const faults = [...this.#contradictions];
    const byHeight = new Map(blocks.map((block) => [block.height, block.hash]));
    for (const [height, hash] of shown) {
      const now = byHeight.get(height);
      if (now !== hash) faults.push(`block ${height} was ${hash} and is ${now ?? "gone"}`);
    }
    blocks.forEach((block, index) => {
      const parent = blocks[index - 1];
      if (parent !== undefined && block.parentHash !== parent.hash) {
        faults.push(`block ${block.height} does not follow block ${parent.height}`);
      }
    });
    return faults;
  }
}

function readBlock(block: Record<string, unknown>): ChainBlock {
  const transactions = block["transactions"] as Record<string, string>[];
  return {
    height: Number(block["number"]),
    hash: String(block["hash"]),
    parentHash: String(block["parentHash"]),
    transactions: transactions.map((transaction) => ({
      hash: String(transaction["hash"]),
      from: String(transaction["from"]).toLowerCase(),
      to: transaction["to"]?.toLowerCase() ?? null,
      nonce: Number(transaction["nonce"]),
      valueAtoken: BigInt(transaction["value"] ?? "0x0"),
      input: String(transaction["input"]),
    })),
  };
}
