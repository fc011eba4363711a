/** The node's newest height, asked once for all who want it at the same time. */
import { errorCode } from "../../chain/errors.js";
import type { Height } from "../../chain/hex.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";

/**
 * Time for what a node answers from memory: head, chain id, whether it is behind. One that is silent
 * for so long hangs, and clients, of whom many wait for 10 s at most, have to hear that from here.
 */
export const LIGHT_READ_TIMEOUT_MS = 5_000;

/**
 * Asks the node. Whoever comes while a request is on its way waits for the next one, which is
 * sent after he came: so he never gets an older head than one that he has seen. Where the node
 * hangs, he is told with the one that came before: the next would only make him wait once more.
 */
export class HeadTicker {
  private running: Promise<Height> | undefined;
  private next: Promise<Height> | undefined;
  private readonly rpc: RpcOptions;

  constructor(
    private readonly client: Pick<EvmClient, "blockNumber">,
    rpc: RpcOptions,
  ) {
    this.rpc = { ...rpc, timeoutMs: LIGHT_READ_TIMEOUT_MS };
  }

  /** The newest height of the node, not older than this call. */
  get(): Promise<Height> {
    if (this.running === undefined) return this.start();
    this.next ??= this.running.then(
      () => this.start(),
      (error: unknown) => {
        if (errorCode(error) !== "NODE_TIMEOUT") return this.start();
        this.next = undefined;
        throw error;
      },
    );
    return this.next;
  }

  private start(): Promise<Height> {
    this.next = undefined;
    const request = this.client.blockNumber(this.rpc).finally(() => {
      if (this.running === request) this.running = undefined;
    });
    this.running = request;
    return request;
  }
}
