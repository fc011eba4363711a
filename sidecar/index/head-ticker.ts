/** The node's newest height, asked once for all who want it at the same time. */
import type { Height } from "../../chain/hex.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";

/**
 * Asks the node. Whoever comes while a request is on its way waits for the next one, which is
 * sent after he came: so he never gets an older head than one that he has seen.
 */
export class HeadTicker {
  private running: Promise<Height> | undefined;
  private next: Promise<Height> | undefined;

  constructor(
    private readonly client: Pick<EvmClient, "blockNumber">,
    private readonly rpc: RpcOptions,
  ) {}

  /** The newest height of the node, not older than this call. */
  get(): Promise<Height> {
    if (this.running === undefined) return this.start();
    this.next ??= this.running.then(
      () => this.start(),
      () => this.start(),
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
