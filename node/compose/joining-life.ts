/** The two lives of a node that joins by state sync: one without a chain, and one on what was restored. */
import { setMaxListeners } from "node:events";
import { errorCode, errorMessage } from "../../chain/errors.js";
import type { Height } from "../../chain/hex.js";
import type { Service } from "../../runtime/process/lifecycle.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { JoiningNode, NodeOptions } from "./node.js";

/** Codes of faults that somebody must look at: trying again would mean trusting somebody less. */
const HALTING_CODES = new Set([
  "LIGHT_DIVERGENCE",
  "TRUST_HASH_MISMATCH",
  "LIGHT_EXPIRED",
  "LIGHT_INVALID",
  "LIGHT_UNTRUSTED",
]);

/** What the lives are made of. */
export interface JoiningLifeParts {
  /** Starts the node until the signal fires; with `join`, one without a chain. */
  readonly startNode: (life: Pick<NodeOptions, "signal" | "join">) => Promise<readonly Service[]>;
  /** Restores a state beside the chain's folder; rejects with the signal's reason. */
  readonly restore: (node: JoiningNode) => Promise<Height>;
  /** With no store open: puts the restored state in the chain's place. */
  readonly adopt: () => Promise<unknown>;
  readonly log: Logger;
  /** Fires when the process shall end, before it stops what was started. */
  readonly signal: AbortSignal;
  /** Ends the process because of a fault. */
  readonly fatal: (error: unknown) => void;
}

/** The first life of a node, without a chain, and the second, on the restored one. */
export class JoiningLife {
  private readonly ending = new AbortController();
  private services: Promise<readonly Service[]> = Promise.resolve([]);
  private restarting: Promise<void> = Promise.resolve();

  constructor(private readonly parts: JoiningLifeParts) {}

  /** Starts the first life. */
  async start(): Promise<void> {
    const signal = AbortSignal.any([this.parts.signal, this.ending.signal]);
    setMaxListeners(0, signal);
    this.services = this.parts.startNode({ signal, join: (node) => this.join(node) });
    await this.services;
  }

  /** Ends whichever life it is. */
  async stop(): Promise<void> {
    await this.restarting;
    await stopAll(await this.services);
  }

  /** Instead of following blocks. */
  private async join(node: JoiningNode): Promise<void> {
    const { log, fatal } = this.parts;
    const { signal } = node;
    try {
      const height = await this.parts.restore(node);
      // The last steps of a restore hear no signal. Who stops the node is at it by now, and the next
      // start finds the restored state.
      if (signal.aborted) return;
      log.info({ height }, "the node starts again on the restored state");
      // Not here: what is stopped waits for this to end.
      this.restarting = Promise.resolve().then(() => this.restart());
    } catch (error) {
      if (signal.aborted) return;
      log.error({ err: error }, "state sync failed");
      const isForPeople = HALTING_CODES.has(errorCode(error));
      if (isForPeople) node.halt(`state sync failed: ${errorMessage(error)}`);
      else fatal(error);
    }
  }

  private async restart(): Promise<void> {
    const { log, signal, fatal } = this.parts;
    try {
      this.ending.abort(new DOMException("the node starts again", "AbortError"));
      const services = await this.services;
      this.services = Promise.resolve([]);
      await stopAll(services);
      await this.parts.adopt();
      if (signal.aborted) return;
      this.services = Promise.resolve(await this.startAgain());
    } catch (error) {
      log.error({ err: error }, "the node cannot start on the restored state");
      fatal(error);
    }
  }

  /** Nothing is left of a start that did not come to its end; one that was stopped is no fault. */
  private async startAgain(): Promise<readonly Service[]> {
    const { log, signal, startNode } = this.parts;
    try {
      return await startNode({ signal });
    } catch (error) {
      if (!signal.aborted) throw error;
      log.debug({ err: error }, "the second start was interrupted");
      return [];
    }
  }
}

async function stopAll(services: readonly Service[]): Promise<void> {
  for (const service of services.toReversed()) await service.stop();
}
