/**
 * The accounts that a chain's genesis names, for programs that have no genesis: its node tells them, and
 * they never change.
 */
import { type ChainAccounts, USUAL_ACCOUNTS } from "../chain/chain-accounts.js";
import { errorMessage } from "../chain/errors.js";
import type { Logger } from "../runtime/process/logger.js";
import { retry } from "../runtime/process/task.js";
import type { EvmClient } from "./evm-client.js";
import type { RpcOptions } from "./json-rpc.js";

/** Waits between two questions. */
const MIN_DELAY_MS = 200;
const MAX_DELAY_MS = 5_000;

/** What is known of them. */
export class KnownAccounts {
  #told: ChainAccounts | undefined;

  constructor(private readonly node: Pick<EvmClient, "chainAccounts">) {}

  /** As the node told them; before that, and of a node that tells none, the usual ones. */
  get current(): ChainAccounts {
    return this.#told ?? USUAL_ACCOUNTS;
  }

  /** The same, and undefined before the node has answered. */
  get told(): ChainAccounts | undefined {
    return this.#told;
  }

  /** Asks the node, once in a life. Throws as its calls do. */
  async ask(options: RpcOptions): Promise<void> {
    this.#told ??= (await this.node.chainAccounts(options)) ?? USUAL_ACCOUNTS;
  }

  /** Asks until the node has answered, or the signal fires. */
  async learn({ signal, log }: { readonly signal: AbortSignal; readonly log: Logger }) {
    const onRetry = (error: unknown) =>
      log.debug({ reason: errorMessage(error) }, "the chain's own accounts are not told yet");
    const delays = { minDelayMs: MIN_DELAY_MS, maxDelayMs: MAX_DELAY_MS };
    try {
      await retry(() => this.ask({ signal }), {
        signal,
        ...delays,
        isRetriable: () => true,
        onRetry,
      });
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}
